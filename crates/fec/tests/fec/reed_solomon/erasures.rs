//! Any `k` symbols, in any order, with duplicates; and ids that do not exist.

use crate::block::{Block, Random, execute, symbol};
use crate::reed_solomon::{CODES, scheme, with_limits};
use fontana_fec::codes::reed_solomon::ReedSolomonCode;
use fontana_fec::{Esi, EsiError, Intermediate, Novelty, Progress, Scratch, Work};
use proptest::prelude::*;

fn encoder(code: ReedSolomonCode, block: &Block) -> Intermediate {
    let plan = scheme(code).source_plan(block.k).unwrap();
    execute(&plan, block.width, |esi, out| out.copy_from_slice(block.symbol(esi)))
}

/// Decodes a random block from `esis`, of which at least `k` are different.
fn decode(code: ReedSolomonCode, k: u32, width: usize, esis: &[u32]) {
    let block = Block::random(k, width, k.into());
    let encoder = encoder(code, &block);
    let mut decoder = scheme(code).decoder(k).unwrap();
    let mut kept: Vec<u32> = Vec::new();
    for &esi in esis {
        let novelty = decoder.push(Esi(esi)).unwrap();
        let fresh = !kept.contains(&esi) && kept.len() < k as usize;
        assert_eq!(novelty == Novelty::Fresh, fresh, "{esi} after {kept:?}");
        if fresh {
            kept.push(esi);
        }
        assert_eq!(decoder.symbols_wanted(), k - kept.len() as u32);
    }
    let Progress::Solved(plan) = decoder.solve(scheme(code).block_profile(k).work) else {
        panic!("enough")
    };
    kept.sort_unstable();
    assert!(plan.inputs().iter().map(|esi| esi.0).eq(kept.iter().copied()), "sorted, and all");
    assert!(plan.lost().iter().map(|esi| esi.0).eq((0..k).filter(|esi| !kept.contains(esi))));
    let decoded = execute(&plan, width, |esi, out| out.copy_from_slice(&symbol(&encoder, esi)));
    block.assert_recovered(&decoded);
    // The decoded block also works as an encoder.
    for esi in [k, 200, 254] {
        assert_eq!(symbol(&decoded, Esi(esi)), symbol(&encoder, Esi(esi)), "{esi}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn any_k_symbols_recover_the_block(
        k in 1_u32..=254,
        code in prop::sample::select(&CODES[..]),
        width in prop::sample::select(&[1_usize, 64, 333][..]),
        seed: u64,
    ) {
        let mut random = Random(seed);
        // Every symbol once, in random order, some of them twice.
        let mut esis: Vec<u32> = (0..255).collect();
        for i in 0..esis.len() {
            let other = i + random.below((esis.len() - i) as u32) as usize;
            esis.swap(i, other);
        }
        esis.truncate(k as usize);
        let again: Vec<u32> = esis.iter().copied().filter(|esi| esi % 3 == 0).collect();
        esis.splice(0..0, again);
        esis.extend([0, 254]);
        decode(code, k, width, &esis);
    }
}

/// A single symbol is computed with a matrix, many at once by transforms if the block is long.
#[test]
fn many_symbols_at_once_are_those_one_by_one_for_every_block_length() {
    for code in [ReedSolomonCode::Rfc5510, ReedSolomonCode::Cauchy] {
        for k in 1..=254 {
            let width = [1, 64, 333][k as usize % 3];
            let encoder = encoder(code, &Block::random(k, width, k.into()));
            let ascending: Vec<Esi> = (k..255).map(Esi).collect();
            // The last one twice.
            let descending: Vec<Esi> = (0..255).chain([254]).rev().map(Esi).collect();
            for esis in [ascending, descending] {
                let mut out = vec![0xAA; esis.len() * width];
                encoder.write_symbols(&esis, &mut out);
                for (&esi, out) in esis.iter().zip(out.chunks(width)) {
                    assert_eq!(out, symbol(&encoder, esi), "{code:?}: {esi:?} of {k}");
                }
            }
        }
    }
}

#[test]
fn erasures_are_recovered_for_every_block_length() {
    let mut random = Random(17);
    for k in 1..=254 {
        // Mostly repair symbols, and any symbols.
        for first in [k.min(254 - k), 0] {
            let esis: Vec<u32> = (0..2_000).map(|_| first + random.below(255 - first)).collect();
            let esis: Vec<u32> = esis.into_iter().chain(0..k).collect();
            decode(ReedSolomonCode::Rfc5510, k, [65, 1][k as usize % 2], &esis);
        }
    }
}

#[test]
fn recovery_allocates_what_it_says() {
    for k in [10, 127] {
        let mut decoder = scheme(ReedSolomonCode::Rfc5510).decoder(k).unwrap();
        (k..2 * k).for_each(|esi| assert_eq!(decoder.push(Esi(esi)), Ok(Novelty::Fresh)));
        let Progress::Solved(plan) = decoder.solve(Work::UNBOUNDED) else { panic!("k suffice") };
        let read = |_: Esi, out: &mut [u8]| {
            out.fill(1);
            Ok::<(), std::convert::Infallible>(())
        };
        let Ok(recovered) = plan.recover(1280, read, Scratch::default());
        assert!(recovered.into_scratch().bytes() <= plan.recovery_memory(1280), "{k}");
    }
}

#[test]
fn the_first_and_last_symbols_of_the_code_can_be_used() {
    for code in CODES {
        decode(code, 1, 5, &[254]);
        decode(code, 254, 5, &(1..255).collect::<Vec<_>>());
        decode(code, 127, 5, &(128..255).collect::<Vec<_>>());
        // Only source symbols: there is nothing to compute.
        decode(code, 255 - 1, 5, &(0..254).collect::<Vec<_>>());
    }
    let scheme = scheme(ReedSolomonCode::Cauchy);
    assert!(scheme.decoder(255).is_ok() && scheme.decoder(256).is_err());
    assert!(scheme.decoder(0).is_err());
}

#[test]
fn ids_beyond_the_scheme_are_refused() {
    for code in CODES {
        let scheme = with_limits(code, 10, 20);
        assert_eq!(
            (scheme.profile().max_source_symbols, scheme.block_profile(10).encoding_symbols),
            (10, 20)
        );
        assert!(scheme.decoder(10).is_ok() && scheme.decoder(11).is_err());
        let mut decoder = scheme.decoder(10).unwrap();
        assert_eq!(decoder.push(Esi(19)), Ok(Novelty::Fresh));
        for esi in [20, 255, 256, u32::MAX] {
            let refused = EsiError { esi: Esi(esi), encoding_symbols: 20 };
            assert_eq!(decoder.push(Esi(esi)), Err(refused));
        }
        assert!(matches!(decoder.solve(Work::UNBOUNDED), Progress::Wanting(9)));
        // A block that is shorter than the longest one is sent with the same code rate.
        let cycle =
            [1, 5, 9, 10].map(|k| with_limits(code, 10, 25).block_profile(k).symbols_per_cycle);
        assert_eq!(cycle, [2, 12, 22, 25]);
        // The code's limit applies.
        assert_eq!(with_limits(code, 10, 300).block_profile(10).encoding_symbols, 255);
        // A source block must not have more symbols than there are encoding symbols.
        assert!(with_limits(code, 30, 20).decoder(21).is_err());
    }
}

#[test]
fn a_symbol_that_does_not_exist_is_zeros() {
    let block = Block::random(10, 40, 1);
    for code in CODES {
        let encoder = encoder(code, &block);
        for esi in [255, 256, 1 << 24, u32::MAX] {
            assert_eq!(symbol(&encoder, Esi(esi)), [0; 40]);
        }
        let mut out = vec![0xAA; 5 * 40];
        encoder.write_symbols(&[12, 3, 300, 11, 4].map(Esi), &mut out);
        for (esi, out) in [12, 3, 300, 11, 4].into_iter().zip(out.chunks(40)) {
            assert_eq!(out, symbol(&encoder, Esi(esi)), "{esi}");
        }
    }
}

#[test]
fn solving_stays_within_the_budget() {
    let scheme = scheme(ReedSolomonCode::Rfc5510);
    let mut decoder = scheme.decoder(100).unwrap();
    (100..200).for_each(|esi| assert_eq!(decoder.push(Esi(esi)), Ok(Novelty::Fresh)));
    let Work(enough) = scheme.block_profile(100).work;
    assert!(matches!(decoder.solve(Work(enough - 1)), Progress::OutOfBudget));
    assert!(matches!(decoder.solve(Work(enough)), Progress::Solved(_)));
}
