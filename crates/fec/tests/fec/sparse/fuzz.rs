//! Any ids, in any order, with repetitions, against plain elimination.

use crate::block::{Block, Random, execute, symbol};
use crate::sparse::reference;
use fontana_fec::codes::lt::{Lt, LtCode, Profile};
use fontana_fec::codes::tornado::{Tornado, TornadoCode};
use fontana_fec::{Esi, FecScheme, Novelty, Progress, Work};

/// Longest block tried: the reference is cubic.
const MAX_SOURCE_SYMBOLS: u32 = 48;

fn scheme(kind: u8, k: u32, seed: u64) -> FecScheme {
    let max_source_block_length = MAX_SOURCE_SYMBOLS;
    let lt = |code| FecScheme::Lt(Lt { max_source_block_length, code });
    match kind % 6 {
        0 => lt(LtCode::fast(k, seed)),
        1 | 2 => lt(LtCode::strict(k, seed)),
        // Unusual numbers, which need more elimination.
        3 => lt(LtCode { profile: Profile::Strict, seed, spike: 3, ripple: 0, spike_weight: 9 }),
        kind => {
            let code = TornadoCode::new(2 + (kind - 4) * 3, seed).unwrap();
            FecScheme::Tornado(Tornado { max_source_block_length, code })
        }
    }
}

/// Decodes the block that the arguments describe, solves from time to time, and compares.
fn decode(kind: u8, k: u8, seed: u8, ids: &[u32]) {
    let k = u32::from(k) % MAX_SOURCE_SYMBOLS + 1;
    let scheme = scheme(kind, k, seed.into());
    let n = scheme.block_profile(k).encoding_symbols;
    let mut decoder = scheme.decoder(k).unwrap();
    let mut kept = Vec::new();
    let mut solved = None;
    for (count, &id) in ids.iter().enumerate() {
        let id = match id % 8 {
            0 => (id >> 3) % k,
            1..=5 => (id >> 3) % n.min(5 * k),
            6 => (id >> 3) % n,
            _ => id,
        };
        match decoder.push(Esi(id)) {
            Ok(Novelty::Fresh) => {
                assert!(!kept.contains(&id), "{id} is not fresh");
                kept.push(id);
            }
            // There are never so many that the decoder stops storing them.
            Ok(Novelty::Duplicate) => assert!(solved.is_some() || kept.contains(&id), "{id}"),
            Err(error) => assert!(id >= n && error.encoding_symbols == n, "{id} exists"),
        }
        if count % 7 == 6 || count + 1 == ids.len() {
            match decoder.solve(Work::UNBOUNDED) {
                Progress::Solved(plan) => solved = Some(plan),
                Progress::Wanting(lack) => {
                    assert!(lack > 0 && solved.is_none());
                    let missing = k as usize - reference::rank(scheme, k, &kept);
                    match scheme {
                        FecScheme::Lt(Lt {
                            code: LtCode { profile: Profile::Strict, .. }, ..
                        }) => {
                            assert!(
                                (1..=missing).contains(&(lack as usize)),
                                "{lack} of {missing}"
                            );
                        }
                        // Peeling may fail where elimination would not.
                        _ => assert!(lack as usize <= missing.max(1), "{lack} of {missing}"),
                    }
                    assert!(decoder.symbols_wanted() > 0, "nothing new to try");
                }
                Progress::OutOfBudget => panic!("without a budget"),
            }
        }
    }
    let Some(plan) = solved else { return };
    assert_eq!(reference::rank(scheme, k, &kept), k as usize, "{kept:?} do not suffice");
    assert_eq!(decoder.symbols_wanted(), 0);
    let lost: Vec<Esi> = (0..k).filter(|esi| !kept.contains(esi)).map(Esi).collect();
    assert_eq!(plan.lost(), lost);
    assert!(plan.inputs().is_sorted_by(|a, b| a < b), "{:?}", plan.inputs());
    assert!(plan.inputs().iter().all(|esi| kept.contains(&esi.0)));

    let block = Block::random(k, 3, k.into());
    let encoder = block.encoder_of(scheme);
    let decoded = execute(&plan, 3, |esi, out| out.copy_from_slice(&symbol(&encoder, esi)));
    block.assert_recovered(&decoded);
    for esi in [0, k, 2 * k - 1, n - 1, n, u32::MAX].map(Esi) {
        let expected = reference_symbol(scheme, &block, esi);
        assert_eq!(symbol(&encoder, esi), expected, "{esi:?} of {n}");
        assert_eq!(symbol(&decoded, esi), expected, "{esi:?} of {n}");
    }
}

fn reference_symbol(scheme: FecScheme, block: &Block, esi: Esi) -> Vec<u8> {
    let mut bytes = vec![0; block.width];
    if esi.0 < scheme.block_profile(block.k).encoding_symbols {
        for (term, is_part) in (0..).zip(reference::sum(scheme, block.k, esi.0)) {
            if is_part {
                bytes.iter_mut().zip(block.symbol(Esi(term))).for_each(|(to, from)| *to ^= from);
            }
        }
    }
    bytes
}

#[test]
fn decoders() {
    bolero::check!()
        .with_type::<(u8, u8, u8, Vec<u32>)>()
        .with_iterations(1_000)
        .for_each(|(kind, k, seed, ids)| decode(*kind, *k, *seed, ids));
}

/// Like the harness, with about as many symbols as a block needs, so that success and failure both
/// occur.
#[test]
fn decoders_at_the_edge() {
    let mut random = Random(7);
    for round in 0..1_000 {
        let k = random.below(256) as u8;
        let needed = u32::from(k) % MAX_SOURCE_SYMBOLS + 1;
        let count = needed + random.below(needed + 10);
        let ids: Vec<u32> = (0..count).map(|_| random.next() as u32 | 1).collect();
        decode(round as u8, k, random.next() as u8, &ids);
    }
}
