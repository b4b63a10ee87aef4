//! How often random symbols fail to determine a block: 0.85 * 0.567^(m - K) of sets of `m > K`
//! symbols (Luby, Gasiba, Stockhammer, Watson, "Reliable Multimedia Download Delivery in Cellular
//! Broadcast Networks", IEEE Transactions on Broadcasting 53, 2007).

use crate::block::Random;
use crate::raptor::RAPTOR;
use fontana_fec::{Esi, Novelty, Progress, Work};

const TRIALS: u32 = 1_000;

/// Failures of decoding a block of `k` from `k + extra` symbols, which `esi` chooses; `None` for a
/// symbol that is lost.
fn failures(k: u32, extra: u32, mut esi: impl FnMut(&mut Random, u32) -> Option<Esi>) -> u32 {
    let mut random = Random(u64::from(k) << 32 | u64::from(extra));
    let mut failures = 0;
    for _ in 0..TRIALS {
        let mut decoder = RAPTOR.decoder(k).unwrap();
        let mut count = 0;
        for esi in (0..).filter_map(|sent| esi(&mut random, sent)) {
            count += u32::from(decoder.push(esi).unwrap() == Novelty::Fresh);
            if count == k + extra {
                break;
            }
        }
        match decoder.solve(Work::UNBOUNDED) {
            Progress::Solved(_) => {}
            Progress::Wanting(_) => failures += 1,
            Progress::OutOfBudget => panic!("without a budget"),
        }
    }
    failures
}

/// The published number of failures, and four standard deviations of a measurement.
fn published(extra: u32) -> (f64, f64) {
    let rate = 0.85 * 0.567_f64.powi(extra as i32);
    let expected = rate * f64::from(TRIALS);
    (expected, 4.0 * (expected * (1.0 - rate)).sqrt())
}

/// The symbols of a sender arrive in order, and one in ten is lost.
#[test]
fn failures_at_a_tenth_lost_are_as_rare_as_published() {
    for k in [100, 250, 1_000] {
        for extra in [1, 2, 4, 6, 10] {
            let failed =
                failures(k, extra, |random, sent| (random.below(10) > 0).then_some(Esi(sent)));
            let (expected, deviation) = published(extra);
            println!("K = {k}, m = K + {extra}: {failed} of {TRIALS}, published {expected:.1}");
            let failed = f64::from(failed);
            assert!(failed <= expected + deviation, "K = {k}, {extra} more: {failed} fail");
            assert!(failed >= 0.6 * expected - deviation, "K = {k}, {extra} more: {failed} fail");
        }
    }
}

/// Without source symbols, longer blocks fail more often than published (`docs/errata.md`): at most
/// three times as often up to a thousand symbols.
#[test]
fn failures_of_repair_symbols_alone_are_at_most_three_times_as_frequent() {
    for k in [100, 1_000] {
        for extra in [1, 4, 6, 10] {
            let repair = |random: &mut Random, _| Some(Esi(k + random.below((1 << 16) - k)));
            let failed = failures(k, extra, repair);
            let (expected, deviation) = published(extra);
            println!("K = {k}, m = K + {extra}: {failed} of {TRIALS}, published {expected:.1}");
            assert!(f64::from(failed) <= 3.0 * expected + deviation, "K = {k}, {extra}: {failed}");
        }
    }
}
