//! Dispersal: random vectors, rank, and recovery, against elimination.

use crate::block::{Block, Random, execute, symbol};
use crate::reed_solomon::reference::solve;
use fontana_fec::codes::dispersal::Dispersal;
use fontana_fec::{Esi, IdDecoder, Novelty, Progress, Work};
use std::sync::Arc;

/// True if the vectors of `esis` determine a group.
fn determine(code: Dispersal, esis: &[u32]) -> bool {
    let equations = esis.iter().map(|&esi| (code.vector(Esi(esi)), Vec::new())).collect();
    solve(equations, code.source_symbols() as usize).is_some()
}

#[test]
fn packets_whose_vectors_are_independent_recover_the_group() {
    let mut random = Random(11);
    for round in 0..200 {
        let m = [1, 2, 5, 5, 5, 13, 64, 255][round % 8];
        let code = Dispersal::new(m, random.next()).unwrap();
        let block = Block::random(m, 70, round as u64);
        let plan = Arc::new(code.source_plan());
        let encoder = execute(&plan, 70, |esi, out| out.copy_from_slice(block.symbol(esi)));
        let (mut decoder, mut heard) = (code.decoder(), Vec::new());
        while decoder.symbols_wanted() > 0 {
            assert!(matches!(decoder.solve(Work(0)), Progress::Wanting(_)));
            // Packets of the group, and others, some of them twice.
            let esi = if random.below(3) == 0 { random.below(m) } else { random.below(u32::MAX) };
            let before = decoder.symbols_wanted();
            let fresh = decoder.push(Esi(esi)) == Ok(Novelty::Fresh);
            assert_eq!(before - decoder.symbols_wanted(), u32::from(fresh));
            heard.push(esi);
            assert_eq!(decoder.push(Esi(esi)), Ok(Novelty::Duplicate));
            if m <= 13 {
                assert_eq!(determine(code, &heard), decoder.symbols_wanted() == 0, "{heard:?}");
            }
        }
        let Progress::Solved(plan) = decoder.solve(Work(0)) else { panic!("the rank is full") };
        assert_eq!(plan.inputs().len(), m as usize);
        assert!(plan.inputs().is_sorted());
        // The group's own packets are lost if they were not received, or too late to be used.
        let used = |esi: &Esi| plan.inputs().contains(esi);
        assert!(plan.inputs().iter().all(|esi| heard.contains(&esi.0)));
        assert!(plan.lost().iter().copied().eq((0..m).map(Esi).filter(|esi| !used(esi))));
        let decoded = execute(&plan, 70, |esi, out| out.copy_from_slice(&symbol(&encoder, esi)));
        block.assert_recovered(&decoded);
        for esi in [0, m, 1 << 20, u32::MAX - 1] {
            assert_eq!(symbol(&decoded, Esi(esi)), symbol(&encoder, Esi(esi)));
        }
    }
}

/// Packets that BMTP sends: all of them have random vectors.
#[test]
fn five_random_vectors_are_dependent_once_in_255_groups() {
    const GROUPS: u64 = 20_000;
    let dependent = (0..GROUPS)
        .filter(|&seed| {
            let mut decoder = Dispersal::new(5, seed).unwrap().decoder();
            (5..10).for_each(|esi| _ = decoder.push(Esi(esi)));
            decoder.symbols_wanted() > 0
        })
        .count() as f64;
    // 1 - product of (1 - 256^-i) over i = 1 ... 5.
    let expected = GROUPS as f64 * 0.003_921_5;
    assert!((dependent - expected).abs() < 4.0 * expected.sqrt(), "{dependent}, not {expected}");
}

#[test]
fn dispersal_vectors_do_not_change() {
    let code = Dispersal::new(5, 1).unwrap();
    assert_eq!(code.vector(Esi(3)), [0, 0, 0, 1, 0]);
    assert_eq!(code.vector(Esi(5)), [65, 172, 112, 254, 205]);
    let digest = (0..1000)
        .flat_map(|esi| code.vector(Esi(esi)))
        .fold(0_u64, |digest, octet| digest.wrapping_mul(0x100_0000_01B3) ^ u64::from(octet));
    assert_eq!(digest, 0x30A8_E6C0_7EF2_FA1C);
}

#[test]
fn groups_have_1_to_255_packets() {
    for (m, fits) in [(0, false), (1, true), (255, true), (256, false)] {
        assert_eq!(Dispersal::new(m, 0).is_ok(), fits, "{m}");
    }
    let mut decoder = Dispersal::new(5, 0).unwrap().decoder();
    assert!(decoder.push(Esi(u32::MAX)).is_err());
    assert_eq!(decoder.push(Esi(u32::MAX - 1)), Ok(Novelty::Fresh));
}
