//! Encoding and decoding of files in memory with each code.

use super::super::carousel::shuffle;
use super::xor_cauchy::XorCauchy;
use fontana_fec::codes::lt::{Lt, LtCode};
use fontana_fec::codes::raptorq::RaptorQ;
use fontana_fec::codes::tornado::{Tornado, TornadoCode};
use fontana_fec::{BlockLengthError, Esi, FecScheme, Plan, PlanCache, Progress, Scratch};
use fontana_proto::SplitMix64;
use std::convert::Infallible;
use std::sync::Arc;

/// 1 KB, in 16 parts of a cache line.
pub(crate) const SYMBOL_SIZE: usize = 1024;

/// Bits of an element, and parts of a packet: a field that has room for the longest file.
pub(super) const BITS: u32 = 16;

/// The operation that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Encode,
    Decode,
}

/// A file in one block of the paper's Cauchy code.
pub(super) struct Cauchy {
    code: XorCauchy,
    source: Vec<u8>,
    repair: Vec<u8>,
    lost: Vec<u32>,
    used: Vec<u32>,
    /// Symbols of a receiver, with repair symbols in the places of lost ones.
    at_hand: Vec<u8>,
    recovered: Vec<u8>,
}

impl Cauchy {
    /// `k` packets, half of which are lost; `None` if the field has no room for them.
    pub(super) fn new(k: u32, random: &mut SplitMix64) -> Option<Self> {
        let code = XorCauchy::new(k, k, BITS).ok()?;
        let source = bytes(k, random);
        let mut repair = vec![0; source.len()];
        code.encode(&source, SYMBOL_SIZE, &mut repair).ok()?;
        let (lost, used) = exchanged(k);
        let mut at_hand = source.clone();
        for (&lost, &used) in lost.iter().zip(&used) {
            symbol_mut(&mut at_hand, lost).copy_from_slice(symbol(&repair, used - k));
        }
        let recovered = vec![0; lost.len() * SYMBOL_SIZE];
        Some(Self { code, source, repair, lost, used, at_hand, recovered })
    }

    /// Makes all repair symbols, or the lost source symbols.
    pub(super) fn run(&mut self, direction: Direction) {
        // The sizes are right, and `is_right` detects any other error.
        if direction == Direction::Decode {
            if let Ok(product) = self.code.recovery(&self.lost, &self.used) {
                let _ = product.run(&self.at_hand, SYMBOL_SIZE, &mut self.recovered);
            }
        } else {
            let _ = self.code.encode(&self.source, SYMBOL_SIZE, &mut self.repair);
        }
    }

    /// Whether the last decoding recovered the lost symbols, which also checks the encoding.
    pub(super) fn is_right(&self, direction: Direction) -> bool {
        let recovered = self.recovered.chunks_exact(SYMBOL_SIZE);
        direction == Direction::Encode
            || self.lost.iter().zip(recovered).all(|(&esi, got)| got == symbol(&self.source, esi))
    }
}

/// Exclusive-ors of parts for a block of `k`; `None` if the field has no room for it.
pub(super) fn cauchy_xors(k: u32, direction: Direction) -> Option<u64> {
    let code = XorCauchy::new(k, k, BITS).ok()?;
    let (lost, used) = exchanged(k);
    match direction {
        Direction::Decode => code.recovery(&lost, &used).ok().map(|product| product.xors()),
        Direction::Encode => Some(code.encoding_xors()),
    }
}

/// Half of the source symbols and as many repair symbols. Any choice is the same for this code.
fn exchanged(k: u32) -> (Vec<u32>, Vec<u32>) {
    (0..k).step_by(2).map(|esi| (esi, k + esi)).unzip()
}

const RAPTORQ: FecScheme =
    FecScheme::RaptorQ(RaptorQ { source_blocks: 1, sub_blocks: 1, alignment: 8 });

/// A file in one block of a code of ours: Tornado Z, LT or RaptorQ.
pub(crate) struct Fountain {
    name: &'static str,
    scheme: FecScheme,
    /// Plans, made once for all files of this length.
    plans: PlanCache,
    encoding: Arc<Plan>,
    source: Vec<u8>,
    /// ESIs from `k` on: as many as source symbols, and a quarter more for a code without
    /// systematic symbols.
    repair_esis: Vec<Esi>,
    repair: Vec<u8>,
    received: Vec<Esi>,
    recovered: Vec<u8>,
    scratch: Scratch,
}

impl Fountain {
    /// All codes, with files of `k` packets, prepared for this operation.
    pub(super) fn all(k: u32, direction: Direction, random: &mut SplitMix64) -> Vec<Self> {
        let max_source_block_length = k;
        let lt = |code| FecScheme::Lt(Lt { max_source_block_length, code });
        let schemes = [
            (
                "Tornado Z",
                FecScheme::Tornado(Tornado { max_source_block_length, code: TornadoCode::Z }),
            ),
            ("LT (fast)", lt(LtCode::fast(k, 1))),
            ("LT (strict)", lt(LtCode::strict(k, 1))),
            ("RaptorQ", RAPTORQ),
        ];
        let made = schemes
            .into_iter()
            .filter_map(|(name, scheme)| Self::new(name, scheme, k, direction, random).ok());
        made.collect()
    }

    /// A file of `k` packets with RaptorQ; `None` if it has no such block.
    pub(crate) fn raptorq(k: u32, direction: Direction, random: &mut SplitMix64) -> Option<Self> {
        Self::new("RaptorQ", RAPTORQ, k, direction, random).ok()
    }

    fn new(
        name: &'static str,
        scheme: FecScheme,
        k: u32,
        direction: Direction,
        random: &mut SplitMix64,
    ) -> Result<Self, BlockLengthError> {
        let plans = PlanCache::new(1);
        let repair_symbols = if direction == Direction::Decode && !scheme.profile().is_systematic {
            k + k / 4
        } else {
            k
        };
        let mut this = Self {
            name,
            scheme,
            encoding: plans.source_plan(scheme, k)?,
            plans,
            source: bytes(k, random),
            repair_esis: (k..k + repair_symbols).map(Esi).collect(),
            repair: vec![0; repair_symbols as usize * SYMBOL_SIZE],
            received: Vec::new(),
            recovered: Vec::new(),
            scratch: Scratch::default(),
        };
        if direction == Direction::Decode {
            this.run(Direction::Encode);
            this.receive(random);
        }
        Ok(this)
    }

    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// Receives source and repair symbols alternately, in random order, until they suffice: `k`
    /// symbols, and then groups of half a percent.
    fn receive(&mut self, random: &mut SplitMix64) {
        let k = self.encoding.source_symbols();
        let mut repair = self.repair_esis.clone();
        shuffle(&mut repair, random);
        let arriving: Vec<Esi> = if self.scheme.profile().is_systematic {
            let mut source: Vec<Esi> = (0..k).map(Esi).collect();
            shuffle(&mut source, random);
            source.into_iter().zip(repair).flat_map(|(source, repair)| [source, repair]).collect()
        } else {
            repair
        };
        let mut count = k as usize;
        while count <= arriving.len() {
            self.received = arriving[..count].to_vec();
            if let Some(plan) = self.plan() {
                self.recovered = vec![0; plan.lost().len() * SYMBOL_SIZE];
                return;
            }
            count += (k as usize / 200).max(1);
        }
    }

    /// Makes `k` repair symbols, or the lost source symbols.
    pub(crate) fn run(&mut self, direction: Direction) {
        let k = self.encoding.source_symbols();
        let scratch = std::mem::take(&mut self.scratch);
        if direction == Direction::Encode {
            let load = |esi: Esi, out: &mut [u8]| {
                out.copy_from_slice(symbol(&self.source, esi.0));
                Ok::<_, Infallible>(())
            };
            let Ok(block) = self.encoding.execute(SYMBOL_SIZE, load, scratch);
            block.write_symbols(&self.repair_esis, &mut self.repair);
            self.scratch = block.into_scratch();
            return;
        }
        let Some(plan) = self.plan() else { return };
        let load = |esi: Esi, out: &mut [u8]| {
            out.copy_from_slice(match esi.0.checked_sub(k) {
                None => symbol(&self.source, esi.0),
                Some(index) => symbol(&self.repair, index),
            });
            Ok::<_, Infallible>(())
        };
        let Ok(block) = plan.recover(SYMBOL_SIZE, load, scratch);
        block.write_symbols(0..plan.lost().len(), &mut self.recovered);
        self.scratch = block.into_scratch();
    }

    fn plan(&self) -> Option<Arc<Plan>> {
        let k = self.encoding.source_symbols();
        let mut decoder = self.plans.decoder(self.scheme, k).ok()?;
        for &esi in &self.received {
            decoder.push(esi).ok()?;
        }
        match decoder.solve(self.scheme.block_profile(k).work) {
            Progress::Solved(plan) => Some(plan),
            Progress::Wanting(_) | Progress::OutOfBudget => None,
        }
    }

    /// Whether the last decoding recovered the lost symbols.
    pub(crate) fn is_right(&self, direction: Direction) -> bool {
        if direction == Direction::Encode {
            return true;
        }
        let Some(plan) = self.plan() else { return false };
        let recovered = self.recovered.chunks_exact(SYMBOL_SIZE);
        plan.lost().len() == recovered.len()
            && plan
                .lost()
                .iter()
                .zip(recovered)
                .all(|(&esi, got)| got == symbol(&self.source, esi.0))
    }
}

fn bytes(symbols: u32, random: &mut SplitMix64) -> Vec<u8> {
    let words = symbols as usize * SYMBOL_SIZE / 8;
    (0..words).flat_map(|_| random.next_u64().to_le_bytes()).collect()
}

fn symbol(bytes: &[u8], index: u32) -> &[u8] {
    &bytes[index as usize * SYMBOL_SIZE..][..SYMBOL_SIZE]
}

fn symbol_mut(bytes: &mut [u8], index: u32) -> &mut [u8] {
    &mut bytes[index as usize * SYMBOL_SIZE..][..SYMBOL_SIZE]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_gives_back_what_was_lost() {
        let mut random = SplitMix64::new(1, 1);
        let mut cauchy = Cauchy::new(40, &mut random).unwrap();
        assert!(!cauchy.is_right(Direction::Decode), "before it ran");
        cauchy.run(Direction::Decode);
        assert!(cauchy.is_right(Direction::Decode));
        let mut fountains = Fountain::all(300, Direction::Decode, &mut random);
        assert_eq!(fountains.len(), 4);
        for fountain in &mut fountains {
            assert!(!fountain.is_right(Direction::Decode), "{} before it ran", fountain.name());
            fountain.run(Direction::Decode);
            assert!(fountain.is_right(Direction::Decode), "{}", fountain.name());
        }
    }

    #[test]
    fn exclusive_ors_are_those_of_the_formula() {
        // k (n - k) A/2 of packets, each of A parts.
        for (direction, share) in [(Direction::Encode, 1.0), (Direction::Decode, 0.5)] {
            let counted = cauchy_xors(1000, direction).unwrap() as f64;
            let formula = 1e6 * share * f64::from(BITS * BITS) / 2.0;
            assert!((counted / formula - 1.0).abs() < 0.02, "{counted} {formula}");
        }
    }
}
