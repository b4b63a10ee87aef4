//! The Cauchy code over GF(2^16): by its definition, against elimination, and at both ends of its
//! limits.

use crate::block::{Block, Random, execute, symbol};
use crate::reed_solomon::with_limits;
use fontana_fec::codes::reed_solomon::ReedSolomonCode;
use fontana_fec::{
    Esi, EsiError, FecScheme, Intermediate, Novelty, Oti, OtiError, Plan, Progress, Work,
};
use std::sync::Arc;

const N: u32 = 65_535;

fn scheme() -> FecScheme {
    with_limits(ReedSolomonCode::Cauchy16, 65_535, 65_535)
}

/// Polynomials over GF(2), modulo x^16 + x^12 + x^3 + x + 1.
fn product(a: u16, b: u16) -> u16 {
    (0..16).rev().fold(0, |sum, bit| {
        let doubled = (sum << 1) ^ if sum & 0x8000 != 0 { 0x100B } else { 0 };
        doubled ^ if b >> bit & 1 == 1 { a } else { 0 }
    })
}

/// `a^(2^16 - 2)`.
fn inverse(a: u16) -> u16 {
    (1..16)
        .fold((1, a), |(power, square), _| {
            let square = product(square, square);
            (product(power, square), square)
        })
        .0
}

fn elements(bytes: &[u8]) -> Vec<u16> {
    bytes.as_chunks::<2>().0.iter().map(|&element| u16::from_be_bytes(element)).collect()
}

/// An encoding symbol by the definition.
fn defined(block: &Block, esi: u32) -> Vec<u8> {
    if esi < block.k {
        return block.symbol(Esi(esi)).to_vec();
    }
    let mut sum = vec![0; block.width / 2];
    for y in 0..block.k {
        let factor = inverse((esi ^ y) as u16);
        for (sum, element) in sum.iter_mut().zip(elements(block.symbol(Esi(y)))) {
            *sum ^= product(factor, element);
        }
    }
    sum.into_iter().flat_map(u16::to_be_bytes).collect()
}

fn encoder(block: &Block) -> Intermediate {
    block.encoder_of(scheme())
}

fn solved(k: u32, esis: impl IntoIterator<Item = u32>) -> Arc<Plan> {
    let mut decoder = scheme().decoder(k).unwrap();
    esis.into_iter().for_each(|esi| _ = decoder.push(Esi(esi)).unwrap());
    let Progress::Solved(plan) = decoder.solve(scheme().block_profile(k).work) else {
        panic!("enough")
    };
    plan
}

/// Decodes a random block from `esis`, of which at least `k` are different.
fn decode(k: u32, width: usize, esis: impl IntoIterator<Item = u32>) {
    let block = Block::random(k, width, k.into());
    let encoder = encoder(&block);
    let plan = solved(k, esis);
    let mut sent = vec![0; plan.inputs().len() * width];
    encoder.write_symbols(plan.inputs(), &mut sent);
    let mut sent = sent.chunks(width);
    let decoded = execute(&plan, width, |_, out| out.copy_from_slice(sent.next().unwrap()));
    block.assert_recovered(&decoded);
    // The decoded block also works as an encoder.
    assert_eq!(symbol(&decoded, Esi(N - 1)), symbol(&encoder, Esi(N - 1)));
}

#[test]
fn symbols_are_those_of_a_cauchy_matrix() {
    for (k, width) in [(1, 2), (3, 256), (65, 258), (100, 130)] {
        let block = Block::random(k, width, 7);
        let encoder = encoder(&block);
        for esi in [0, k - 1, k, k + 1, 255, 256, 257, 40_000, N - 1] {
            assert_eq!(symbol(&encoder, Esi(esi)), defined(&block, esi), "{esi} of {k}");
        }
        // More symbols than are encoded at a time, in any order, and one twice.
        let esis: Vec<Esi> = (0..130).map(|i| Esi((i * 40_503 + 5) % N)).chain([Esi(5)]).collect();
        let mut out = vec![0xAA; esis.len() * width];
        encoder.write_symbols(&esis, &mut out);
        for (&esi, out) in esis.iter().zip(out.chunks(width)) {
            assert_eq!(out, symbol(&encoder, esi), "{esi:?} of {k}");
        }
    }
}

#[test]
fn any_k_symbols_recover_the_block() {
    let mut random = Random(3);
    for round in 0..40 {
        let k = 1 + random.below(300);
        let width = [2, 64, 256, 334][round % 4];
        let limit = [k + 1 + k / 2, 2 * k + 100, N][round % 3];
        // Far more than needed, and some of them twice.
        let esis: Vec<u32> = (0..40 * k).map(|_| random.below(limit)).chain(0..k).collect();
        decode(k, width, esis);
    }
}

#[test]
fn many_losses_are_recovered_like_few() {
    // The weights symbol by symbol for up to 518 lost of 1 500, by a transform from there on.
    for lost in [10, 700, 1_500] {
        decode(1_500, 2, (lost..1_500).chain(20_000..20_000 + lost));
    }
}

#[test]
fn the_first_and_last_symbols_of_the_code_can_be_used() {
    decode(1, 6, [N - 1]);
    decode(N - 1, 2, 1..N);
    decode(N - 1, 2, 0..N - 1);
    decode(40_000, 2, 300..40_300);
    assert!(scheme().decoder(N).is_ok() && scheme().decoder(N + 1).is_err());
    assert!(scheme().decoder(0).is_err());
    let mut decoder = scheme().decoder(10).unwrap();
    for esi in [N, N + 1, 1 << 24, u32::MAX] {
        let refused = EsiError { esi: Esi(esi), encoding_symbols: N };
        assert_eq!(decoder.push(Esi(esi)), Err(refused));
    }
    assert_eq!(decoder.push(Esi(N - 1)), Ok(Novelty::Fresh));
    assert_eq!(decoder.push(Esi(N - 1)), Ok(Novelty::Duplicate));
    assert!(matches!(decoder.solve(Work::UNBOUNDED), Progress::Wanting(9)));
    let block = Block::random(10, 40, 1);
    for esi in [N, N + 1, 1 << 24, u32::MAX] {
        assert_eq!(symbol(&encoder(&block), Esi(esi)), [0; 40], "there is no {esi}");
    }
}

#[test]
fn a_symbol_is_a_whole_number_of_elements() {
    let layout =
        |symbol_size| Oti { transfer_length: 1000, symbol_size, scheme: scheme() }.layout();
    assert!(layout(1280).is_ok() && layout(2).is_ok());
    let refused = OtiError::Alignment { symbol_size: 1281, sub_blocks: 1, alignment: 2 };
    assert_eq!(layout(1281), Err(refused));
    // The other codes allow an odd number of bytes.
    let oti = Oti {
        transfer_length: 1000,
        symbol_size: 1281,
        scheme: crate::reed_solomon::scheme(ReedSolomonCode::Cauchy),
    };
    assert!(oti.layout().is_ok());
}

#[test]
fn columns_can_be_recovered_range_by_range() {
    let (k, width) = (20, 400);
    let block = Block::random(k, width, 9);
    let encoder = encoder(&block);
    let plan = solved(k, 7..27);
    for range in [0..64, 64..66, 66..66, 66..400] {
        let part = execute(&plan, range.len(), |esi, out| {
            out.copy_from_slice(&symbol(&encoder, esi)[range.clone()]);
        });
        for esi in [0, 6, 7, 19, 1_000] {
            assert_eq!(symbol(&part, Esi(esi)), symbol(&encoder, Esi(esi))[range.clone()]);
        }
    }
    // An odd number of bytes is an error of the caller, which must not panic.
    let odd = execute(&plan, 3, |_, out| out.fill(1));
    assert_eq!(symbol(&odd, Esi(0)).len(), 3);
}

#[test]
fn solving_stays_within_the_budget() {
    for k in [100, 60_000] {
        let mut decoder = scheme().decoder(k).unwrap();
        (N - k.min(N - k)..N).chain(0..k).for_each(|esi| _ = decoder.push(Esi(esi)).unwrap());
        let Work(enough) = scheme().block_profile(k).work;
        assert!(enough < 5_000_000, "a few milliseconds for any block");
        assert!(matches!(decoder.solve(Work(enough)), Progress::Solved(_)));
        assert!(matches!(decoder.solve(Work(1_000)), Progress::OutOfBudget));
    }
}

/// The source elements from equations `(factors, element)`.
fn eliminate(mut equations: Vec<(Vec<u16>, u16)>) -> Vec<u16> {
    let k = equations.len();
    for column in 0..k {
        let pivot = (column..k).find(|&row| equations[row].0[column] != 0).unwrap();
        equations.swap(column, pivot);
        let scale = inverse(equations[column].0[column]);
        let (factors, element) = &mut equations[column];
        factors.iter_mut().chain([element]).for_each(|a| *a = product(*a, scale));
        let (factors, element) = equations[column].clone();
        for (row, (others, other)) in equations.iter_mut().enumerate() {
            let factor = others[column];
            if row != column && factor != 0 {
                let to = others.iter_mut().chain([other]);
                to.zip(factors.iter().chain([&element]))
                    .for_each(|(to, &a)| *to ^= product(factor, a));
            }
        }
    }
    equations.into_iter().map(|(_, element)| element).collect()
}

#[test]
fn any_bytes_give_the_solution_of_elimination() {
    let mut random = Random(5);
    for _ in 0..25 {
        let k = 1 + random.below(30);
        let limit = if random.below(2) == 0 { k + 20 } else { N };
        let plan =
            solved(k, std::iter::repeat_with(|| random.below(limit)).take(2_000).chain(0..k));
        // Random bytes, not a codeword: the solution is unique.
        let received: Vec<Vec<u8>> = plan.inputs().iter().map(|_| random.bytes(2)).collect();
        let mut each = received.iter();
        let decoded = execute(&plan, 2, |_, out| out.copy_from_slice(each.next().unwrap()));
        let row = |esi: Esi| -> Vec<u16> {
            let unit = |y: u32| u16::from(esi.0 == y);
            (0..k).map(|y| if esi.0 < k { unit(y) } else { inverse((esi.0 ^ y) as u16) }).collect()
        };
        let equations = plan.inputs().iter().zip(&received);
        let equations = equations.map(|(&esi, bytes)| (row(esi), elements(bytes)[0])).collect();
        let solution = eliminate(equations).into_iter().flat_map(u16::to_be_bytes).collect();
        Block::new(solution, 2).assert_recovered(&decoded);
    }
}

/// FNV-1a of symbols, so that the code does not change.
#[test]
fn encoding_symbols_do_not_change() {
    let block = Block::new((0..1_000 * 34_u32).map(|i| (i * i + i / 251) as u8).collect(), 34);
    let esis = [1_000, 1_001, 1_999, 32_768, 65_534].map(Esi);
    let mut out = vec![0; esis.len() * 34];
    encoder(&block).write_symbols(&esis, &mut out);
    let digest = out.iter().fold(0xCBF2_9CE4_8422_2325_u64, |digest, &octet| {
        (digest ^ u64::from(octet)).wrapping_mul(0x100_0000_01B3)
    });
    assert_eq!(digest, 0xB5F0_F930_3415_5AB7);
    assert_eq!(out[..34], defined(&block, 1_000));
}
