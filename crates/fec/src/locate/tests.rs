use super::*;
use crate::bytes::stripes::loading::Lent;
use crate::codes::lt::{Lt, LtCode};
use crate::codes::no_code::NoCode;
use crate::codes::raptor::Raptor;
use crate::codes::raptorq::RaptorQ;
use crate::codes::reed_solomon::{ReedSolomon, ReedSolomonCode};
use crate::codes::shared::splitmix::shuffle;
use crate::codes::tornado::{Tornado, TornadoCode};
use crate::decode::Progress;
use crate::field::gf256::mul;
use crate::plan::Intermediate;
use crate::scheme::FecScheme;
use alloc::collections::BTreeMap;
use core::convert::Infallible;

const RAPTORQ: FecScheme =
    FecScheme::RaptorQ(RaptorQ { source_blocks: 1, sub_blocks: 1, alignment: 1 });
const RAPTOR: FecScheme =
    FecScheme::Raptor(Raptor { source_blocks: 1, sub_blocks: 1, alignment: 1 });

fn reed_solomon(code: ReedSolomonCode, k: u32) -> FecScheme {
    let (max_source_block_length, max_encoding_symbols) = (k as u16, 255);
    FecScheme::ReedSolomon(ReedSolomon { code, max_source_block_length, max_encoding_symbols })
}

fn lt(k: u32) -> FecScheme {
    FecScheme::Lt(Lt { max_source_block_length: k, code: LtCode::strict(k, 1) })
}

fn tornado(k: u32) -> FecScheme {
    FecScheme::Tornado(Tornado { max_source_block_length: k, code: TornadoCode::Z })
}

/// Symbols that were received, some of them wrong.
struct Received {
    scheme: FecScheme,
    plan: Arc<Plan>,
    symbols: BTreeMap<Esi, Vec<u8>>,
    wrong: Vec<Esi>,
}

fn encoder(scheme: FecScheme, k: u32, symbol: impl Fn(u32) -> Vec<u8>) -> Intermediate {
    let plan = scheme.source_plan(k).unwrap();
    let read = |esi: Esi, out: &mut [u8]| {
        out.copy_from_slice(&symbol(esi.0));
        Ok::<_, Infallible>(())
    };
    let Ok(symbols) = plan.execute(symbol(0).len(), read, Scratch::default());
    symbols
}

fn octets(count: usize, random: &mut SplitMix64) -> Vec<u8> {
    (0..count).map(|_| random.next_u64() as u8).collect()
}

impl Received {
    /// Takes symbols of `esis` in random order until the block is solved, `surplus` more of them,
    /// and replaces `wrong` of all these by random bytes.
    fn new(
        scheme: FecScheme,
        k: u32,
        esis: core::ops::Range<u32>,
        [surplus, wrong, width]: [usize; 3],
        random: &mut SplitMix64,
    ) -> Self {
        let source: Vec<Vec<u8>> = (0..k).map(|_| octets(width, random)).collect();
        let sent = encoder(scheme, k, |esi| source[esi as usize].clone());
        let mut esis: Vec<Esi> = esis.map(Esi).collect();
        shuffle(&mut esis, random);
        let mut decoder = scheme.decoder(k).unwrap();
        let (mut plan, mut needed) = (None, 0);
        for (number, &esi) in esis.iter().enumerate() {
            decoder.push(esi).unwrap();
            if decoder.symbols_wanted() == 0
                && let Progress::Solved(found) = decoder.solve(Work::UNBOUNDED)
            {
                (plan, needed) = (Some(found), number + 1);
                break;
            }
        }
        esis.truncate(needed + surplus);
        let mut symbols: BTreeMap<Esi, Vec<u8>> = BTreeMap::new();
        for &esi in &esis {
            let mut symbol = vec![0; width];
            sent.write_symbol(esi, &mut symbol);
            symbols.insert(esi, symbol);
        }
        shuffle(&mut esis, random);
        esis.truncate(wrong);
        esis.sort_unstable();
        for esi in &esis {
            symbols.insert(*esi, octets(width, random));
        }
        Self { scheme, plan: plan.expect("symbols enough"), symbols, wrong: esis }
    }

    fn locator(&self) -> Locator {
        let profile = self.scheme.profile();
        Locator::new(&profile, &self.plan, self.symbols.keys().copied())
    }

    /// Compares all columns, in as many passes.
    fn locate(&self, instructions: InstructionSet, passes: usize) -> Location {
        let mut locator = self.locator();
        let width = self.symbols.values().next().unwrap().len();
        for columns in (0..width).collect::<Vec<_>>().chunks(width.div_ceil(passes)) {
            let columns = columns[0]..columns[columns.len() - 1] + 1;
            let symbol = |esi: Esi| &self.symbols[&esi][columns.clone()];
            let Ok(_) = locator.add_columns(columns.len(), Lent(symbol), Scratch::default());
        }
        locator.locate_with(instructions, Work::UNBOUNDED)
    }

    fn located(&self) -> Located {
        match self.locate(InstructionSet::best(), 1) {
            Location::Located(located) => located,
            other => panic!("{other:?}"),
        }
    }
}

/// Combinations of `rows` that are zero, by elimination octet by octet.
fn null_combinations(rows: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let inverse = |a: u8| (1..=255).find(|&b| mul(a, b) == 1).unwrap();
    let mut pivots: Vec<(usize, Vec<u8>, Vec<u8>)> = Vec::new();
    let mut zero = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        let (mut row, mut factors) = (row.clone(), vec![0; rows.len()]);
        factors[number] = 1;
        for (at, pivot, pivot_factors) in &pivots {
            let factor = row[*at];
            row.iter_mut().zip(pivot).for_each(|(a, &b)| *a ^= mul(factor, b));
            factors.iter_mut().zip(pivot_factors).for_each(|(a, &b)| *a ^= mul(factor, b));
        }
        match row.iter().position(|&octet| octet != 0) {
            None => zero.push(factors),
            Some(at) => {
                let scale = inverse(row[at]);
                let scaled = |row: Vec<u8>| row.into_iter().map(|a| mul(a, scale)).collect();
                pivots.push((at, scaled(row), scaled(factors)));
            }
        }
    }
    zero
}

/// What the module's documentation says, with the whole parity check matrix of the received
/// symbols, which does not depend on a plan.
fn oracle(received: &Received, k: u32) -> Vec<Esi> {
    let unit = |esi: u32| (0..k).map(|at| u8::from(at == esi)).collect();
    let generator = encoder(received.scheme, k, unit);
    let row = |&esi: &Esi| {
        let mut row = vec![0; k as usize];
        generator.write_symbol(esi, &mut row);
        row
    };
    let rows: Vec<Vec<u8>> = received.symbols.keys().map(row).collect();
    let checks = null_combinations(&rows);
    // Errors and symbols have the same syndromes.
    let width = received.symbols.values().next().unwrap().len();
    let syndromes: Vec<Vec<u8>> = checks
        .iter()
        .map(|check| {
            let mut sum = vec![0; width];
            for (&factor, symbol) in check.iter().zip(received.symbols.values()) {
                sum.iter_mut().zip(symbol).for_each(|(a, &b)| *a ^= mul(factor, b));
            }
            sum
        })
        .collect();
    let null_vectors = null_combinations(&syndromes);
    let is_accused = |column: usize| {
        let product = |vector: &Vec<u8>| {
            vector.iter().zip(&checks).fold(0, |sum, (&a, check)| sum ^ mul(a, check[column]))
        };
        checks.iter().any(|check| check[column] != 0)
            && null_vectors.iter().all(|vector| product(vector) == 0)
    };
    let esis = received.symbols.keys().enumerate();
    esis.filter(|&(column, _)| is_accused(column)).map(|(_, &esi)| esi).collect()
}

#[test]
fn a_dense_oracle_accuses_the_same_symbols() {
    let mut random = SplitMix64::new(7);
    let mut found = 0;
    for round in 0..12 {
        for (scheme, k, esis) in [
            (RAPTORQ, 40, 0..400),
            (RAPTORQ, 10, 5..1_000_000),
            (RAPTOR, 40, 0..400),
            (lt(60), 60, 0..1000),
            (lt(60), 60, 100..1000),
            (tornado(60), 60, 0..120),
            (reed_solomon(ReedSolomonCode::Rfc5510, 40), 40, 0..100),
        ] {
            let esis = if esis.len() > 10_000 { esis.start..esis.start + 2_000 } else { esis };
            let most = esis.len() - k as usize;
            let surplus = (round * 4).min(most.saturating_sub(10));
            let received = Received::new(scheme, k, esis, [surplus, round / 2, 64], &mut random);
            if let Location::Located(located) = received.locate(InstructionSet::best(), 1) {
                if located.rank == 0 {
                    assert!(located.wrong.is_empty());
                    continue;
                }
                // A plan that reads more than `k` symbols leaves fewer to compare.
                if received.plan.inputs().len() == k as usize {
                    assert_eq!(located.wrong, oracle(&received, k), "{scheme:?}, round {round}");
                    found += 1;
                }
            }
        }
    }
    assert!(found > 40, "{found}");
}

#[test]
fn wrong_symbols_of_long_blocks_are_found_and_no_others() {
    let mut random = SplitMix64::new(1);
    for (scheme, k, esis, surplus, wrong) in [
        (RAPTORQ, 1_000, 0..2_000, 20, 17),
        (RAPTORQ, 10_000, 0..11_000, 40, 20),
        (RAPTORQ, 10_000, 20_000..40_000, 10, 5),
        (RAPTOR, 4_000, 0..8_000, 60, 20),
        (lt(2_000), 2_000, 0..8_000, 60, 20),
        (reed_solomon(ReedSolomonCode::Rfc5510, 200), 200, 0..255, 20, 19),
    ] {
        let received = Received::new(scheme, k, esis, [surplus, wrong, 100], &mut random);
        let located = received.located();
        assert_eq!(located.wrong, received.wrong, "{scheme:?}");
        assert_eq!(located.rank as usize, wrong);
        assert_eq!(located.surplus_left as usize, received.symbols.len() - k as usize - wrong);
    }
}

/// Few checks of a Tornado block contain a symbol, so some symbols have the same ones.
#[test]
fn the_wrong_symbols_of_a_tornado_block_are_among_those_accused() {
    let mut random = SplitMix64::new(2);
    let mut accused = 0;
    for _ in 0..10 {
        let size = [600, 3, 100];
        let received = Received::new(tornado(1_000), 1_000, 0..2_000, size, &mut random);
        let located = received.located();
        assert!(received.wrong.iter().all(|esi| located.wrong.contains(esi)));
        accused += located.wrong.len();
    }
    assert!((30..=60).contains(&accused), "{accused}");
}

#[test]
fn correct_symbols_agree() {
    let mut random = SplitMix64::new(3);
    for scheme in [RAPTORQ, RAPTOR, lt(50), reed_solomon(ReedSolomonCode::Rfc5510, 50)] {
        let received = Received::new(scheme, 50, 0..250, [20, 0, 30], &mut random);
        let Located { wrong, surplus_left, rank } = received.located();
        assert_eq!((wrong, rank), (Vec::new(), 0));
        assert_eq!(surplus_left as usize, received.symbols.len() - 50);
    }
}

#[test]
fn too_few_surplus_symbols_accuse_nobody() {
    let mut random = SplitMix64::new(4);
    // Three null vectors confirm one error: four surplus symbols.
    for (surplus, location) in [(0, Some(4)), (3, Some(1)), (4, None)] {
        let received = Received::new(RAPTORQ, 100, 0..300, [surplus, 1, 30], &mut random);
        let wanting = match received.locate(InstructionSet::best(), 1) {
            Location::Wanting(wanting) => Some(wanting),
            Location::Located(located) => {
                assert_eq!(located.wrong, received.wrong);
                None
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(wanting, location, "{surplus}");
    }
    let received = Received::new(RAPTORQ, 100, 0..300, [10, 9, 30], &mut random);
    assert_eq!(received.locate(InstructionSet::best(), 1), Location::Wanting(10));
}

#[test]
fn every_instruction_set_and_any_number_of_passes_find_the_same() {
    let mut random = SplitMix64::new(5);
    let received = Received::new(RAPTORQ, 300, 0..600, [100, 30, 75], &mut random);
    for instructions in InstructionSet::available() {
        for passes in [1, 2, 75] {
            let Location::Located(located) = received.locate(instructions, passes) else {
                panic!("{instructions:?}, {passes} passes");
            };
            assert_eq!(located.wrong, received.wrong, "{instructions:?}, {passes} passes");
        }
    }
}

#[test]
fn a_symbol_that_is_wrong_in_one_octet_is_found() {
    let mut random = SplitMix64::new(6);
    let mut received = Received::new(RAPTORQ, 300, 0..600, [10, 0, 1000], &mut random);
    for number in [0, 17, 250] {
        let esi = *received.symbols.keys().nth(number).unwrap();
        received.symbols.get_mut(&esi).unwrap()[number] ^= 1;
        received.wrong.push(esi);
    }
    assert_eq!(received.located().wrong, received.wrong);
}

#[test]
fn a_budget_ends_the_search() {
    let mut random = SplitMix64::new(8);
    let received = Received::new(RAPTORQ, 300, 0..600, [100, 30, 75], &mut random);
    let mut locator = received.locator();
    let symbol = |esi: Esi| received.symbols[&esi].as_slice();
    let Ok(_) = locator.add_columns(75, Lent(symbol), Scratch::default());
    assert_eq!(locator.locate(Work(1_000)), Location::OutOfBudget);
    assert!(matches!(locator.locate(Work(1_000_000)), Location::Located(_)));
}

#[test]
fn what_has_no_checks_is_not_searched() {
    let mut random = SplitMix64::new(9);
    let cauchy16 = reed_solomon(ReedSolomonCode::Cauchy16, 20);
    let received = Received::new(cauchy16, 20, 0..60, [10, 1, 30], &mut random);
    assert_eq!(received.locate(InstructionSet::best(), 1), Location::Unsupported);
    let scheme = FecScheme::NoCode(NoCode { max_source_block_length: 20 });
    let received = Received::new(scheme, 20, 0..20, [0, 1, 30], &mut random);
    assert_eq!(received.locate(InstructionSet::best(), 1), Location::Unsupported);
}
