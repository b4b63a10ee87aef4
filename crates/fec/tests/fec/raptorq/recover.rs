//! Recovery of lost symbols, by whichever plan the decoder chooses.

use crate::block::{Block, RAPTORQ, Random, symbol};
use fontana_fec::{Esi, PlanCache, Progress, Scratch};
use std::convert::Infallible;

/// Pushes all of a block but `lost` random source symbols, and random repair symbols until it is
/// solved; then recovers the lost ones.
fn lose_and_recover(plans: &PlanCache, block: &Block, lost: u32, random: &mut Random) {
    let (k, width) = (block.k, block.width);
    let encoder = block.encoder();
    let mut decoder = plans.decoder(RAPTORQ, k).unwrap();
    let mut order: Vec<u32> = (0..k).collect();
    for i in 0..lost {
        order.swap(i as usize, (i + random.below(k - i)) as usize);
    }
    for &esi in &order[lost as usize..] {
        decoder.push(Esi(esi)).unwrap();
    }
    let plan = loop {
        match decoder.solve(RAPTORQ.block_profile(k).work) {
            Progress::Solved(plan) => break plan,
            Progress::Wanting(_) => {
                decoder.push(Esi(k + random.below((1 << 24) - k))).unwrap();
            }
            Progress::OutOfBudget => panic!("{lost} of {k} lost: honest symbols"),
        }
    };
    order.truncate(lost as usize);
    order.sort_unstable();
    assert!(plan.lost().iter().map(|esi| esi.0).eq(order));
    let mut read = Vec::new();
    let load = |esi, out: &mut [u8]| {
        read.push(esi);
        out.copy_from_slice(&symbol(&encoder, esi));
        Ok::<_, Infallible>(())
    };
    let Ok(recovered) = plan.recover(width, load, Scratch::default());
    assert_eq!(read, plan.inputs());
    assert!(read.is_sorted(), "inputs are read in order");
    let mut out = vec![0; lost as usize * width];
    recovered.write_symbols(0..lost as usize, &mut out);
    for (&esi, out) in plan.lost().iter().zip(out.chunks(width)) {
        assert!(out == block.symbol(esi), "{esi:?}, {lost} of {k} lost");
    }
}

#[test]
fn any_number_of_losses_is_recovered() {
    let (mut random, plans) = (Random(11), PlanCache::new(8));
    // These include the limits of the direct plan, for all instruction sets.
    for (k, losses) in [
        (1, &[0, 1][..]),
        (10, &[1, 3, 10]),
        (100, &[1, 14, 15, 49, 50, 64, 65, 100]),
        (500, &[1, 2, 63, 121, 122, 123, 128, 129, 160, 161, 400]),
    ] {
        for (&lost, width) in losses.iter().zip([40, 64, 321].into_iter().cycle()) {
            lose_and_recover(&plans, &Block::random(k, width, 5), lost, &mut random);
        }
    }
}
