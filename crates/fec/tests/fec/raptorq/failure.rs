//! How often random symbols fail to determine a block. The design promises at most 1 in 100 with as
//! many symbols as the block has, and a hundred times fewer with each additional one.

use crate::block::{RAPTORQ, Random};
use fontana_fec::{Esi, Progress, Work};

/// Failures in `trials` of decoding a block of `k` from `k + extra` random repair symbols. Repair
/// symbols alone are the hardest mix.
fn failures(k: u32, extra: u32, trials: u32) -> u32 {
    let mut random = Random(u64::from(k) << 32 | u64::from(extra));
    let mut failures = 0;
    for _ in 0..trials {
        let mut decoder = RAPTORQ.decoder(k).unwrap();
        let mut count = 0;
        while count < k + extra {
            let esi = Esi(k + random.below((1 << 24) - k));
            count += u32::from(decoder.push(esi).unwrap() == fontana_fec::Novelty::Fresh);
        }
        match decoder.solve(Work::UNBOUNDED) {
            Progress::Solved(_) => {}
            Progress::Wanting(_) => failures += 1,
            Progress::OutOfBudget => panic!("without a budget"),
        }
    }
    failures
}

/// A true rate of 1e-2, 1e-4 and 1e-6 exceeds the bounds in one of 10^5 runs or fewer.
#[test]
fn each_symbol_beyond_k_makes_failures_a_hundred_times_rarer() {
    for k in [10, 26, 60] {
        let (at_k, one_more, two_more) =
            (failures(k, 0, 20_000), failures(k, 1, 20_000), failures(k, 2, 20_000));
        println!("K = {k}: {at_k}, {one_more}, {two_more} of 20 000");
        assert!(at_k <= 200 + 60, "{at_k} of 20 000 fail at K = {k}");
        assert!(one_more <= 2 + 8, "{one_more} of 20 000 fail at K + 1, K = {k}");
        assert!(two_more <= 1, "{two_more} of 20 000 fail at K + 2, K = {k}");
    }
}
