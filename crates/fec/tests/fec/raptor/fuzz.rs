//! Any ids, against plain Gaussian elimination.

use crate::block::{Block, Random, execute, symbol};
use crate::raptor::{RAPTOR, reference};
use fontana_fec::{Esi, Novelty, Progress};

/// Longest block tried: the reference is cubic.
const MAX_SOURCE_SYMBOLS: u32 = 24;

/// Decodes the block that `(k, ids)` describe and compares with the reference. Ids are small,
/// anywhere in the 16-bit range, or beyond it.
fn decode(k: u8, ids: &[u32]) {
    let k = u32::from(k) % MAX_SOURCE_SYMBOLS + 1;
    let n = RAPTOR.block_profile(k).encoding_symbols;
    let mut decoder = RAPTOR.decoder(k).unwrap();
    let mut stored = Vec::new();
    for &id in ids {
        let id = match id % 8 {
            0..=3 => (id >> 3) % (2 * k),
            4..=6 => (id >> 3) % (1 << 16),
            _ => id,
        };
        match decoder.push(Esi(id)) {
            Ok(Novelty::Fresh) => {
                assert!(!stored.contains(&id), "{id} is not fresh");
                stored.push(id);
            }
            // There are never so many that the decoder stops storing them.
            Ok(Novelty::Duplicate) => assert!(stored.contains(&id), "{id} is no duplicate"),
            Err(_) => assert!(id >= n, "{id} exists"),
        }
    }
    assert_eq!(decoder.symbols_wanted(), k.saturating_sub(stored.len() as u32));
    let plan = match decoder.solve(RAPTOR.block_profile(k).work) {
        Progress::Solved(plan) => plan,
        Progress::Wanting(lack) => {
            assert!(lack > 0);
            assert!(!reference::determines(k, &stored), "{k}: {stored:?} suffice");
            return;
        }
        Progress::OutOfBudget => panic!("a block of {k} is too much work: {stored:?}"),
    };
    assert!(reference::determines(k, &stored), "{k}: {stored:?} do not suffice");

    let lost: Vec<Esi> = (0..k).filter(|esi| !stored.contains(esi)).map(Esi).collect();
    assert_eq!(plan.lost(), lost);
    assert!(plan.inputs().is_sorted(), "{:?}", plan.inputs());
    assert!(plan.inputs().iter().all(|esi| stored.contains(&esi.0)));
    let block = Block::random(k, 3, k.into());
    let encoder = block.encoder_of(RAPTOR);
    let decoded = execute(&plan, 3, |esi, out| out.copy_from_slice(&symbol(&encoder, esi)));
    block.assert_recovered(&decoded);
}

#[test]
fn decoder() {
    bolero::check!()
        .with_type::<(u8, Vec<u32>)>()
        .with_iterations(2_000)
        .for_each(|(k, ids)| decode(*k, ids));
}

/// Like the harness, with about as many symbols as a block needs, so that success and failure both
/// occur.
#[test]
fn decoder_at_the_edge() {
    let mut random = Random(7);
    for _ in 0..1_000 {
        let k = random.below(256) as u8;
        let count = u32::from(k) % MAX_SOURCE_SYMBOLS + random.below(8);
        let ids: Vec<u32> = (0..count).map(|_| random.next() as u32 & !7).collect();
        decode(k, &ids);
    }
}
