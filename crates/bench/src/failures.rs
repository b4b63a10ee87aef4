//! The rate at which random encoding symbols fail to determine a RaptorQ block, on ids alone.
//!
//! RFC 6330 promises at most one failure in a hundred with as many symbols as the block has source
//! symbols, and a hundred times fewer with each additional one. This program counts failures, and
//! gives an interval: with `x` failures in `n` independent trials, the true rate is within the 95 %
//! interval of Clopper and Pearson (Biometrika 26, 1934), which is exact for the binomial
//! distribution.
//!
//! Every trial is a function of its number, so the result does not depend on the threads.

use fontana_fec::codes::raptorq::RaptorQ;
use fontana_fec::{Esi, FecScheme, Novelty, PlanCache, Progress, Work};
use std::ops::Range;

const SCHEME: FecScheme =
    FecScheme::RaptorQ(RaptorQ { source_blocks: 1, sub_blocks: 1, alignment: 1 });

/// Trials with 0, 1 and 2 symbols more than the block has: enough that the intervals of the
/// measured rates end below the bounds.
const TRIALS: [u64; 3] = [100_000, 1_000_000, 20_000_000];
const BOUNDS: [f64; 3] = [1e-2, 1e-4, 1e-6];

/// Runs all trials for a block of `k` symbols, on all cores, and prints the results.
pub(crate) fn run(k: u32, json: bool) {
    let threads = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let plans = PlanCache::new(1);
    for ((extra, trials), bound) in (0..).zip(TRIALS).zip(BOUNDS) {
        let slice = |thread: u64| trials * thread / threads..trials * (thread + 1) / threads;
        let failures: u64 = std::thread::scope(|scope| {
            let count = |thread| failures(&plans, k, extra, slice(thread));
            let workers: Vec<_> =
                (0..threads).map(|thread| scope.spawn(move || count(thread))).collect();
            workers.into_iter().map(|worker| worker.join().unwrap()).sum()
        });
        let (low, high) = interval(failures, trials);
        if json {
            let row = serde_json::json!({
                "code": "raptorq", "k": k, "extra": extra, "trials": trials,
                "failures": failures, "low": low, "high": high, "bound": bound,
            });
            println!("{row}");
        } else {
            println!(
                "K = {k}, {k} + {extra} symbols: {failures} of {trials} fail, \
                 95 % interval {low:.2e} to {high:.2e}, bound {bound:.0e}"
            );
        }
    }
}

/// Failures among some trials of decoding a block of `k` from `k + extra` random repair symbols,
/// which are the hardest mix.
fn failures(plans: &PlanCache, k: u32, extra: u32, trials: Range<u64>) -> u64 {
    let fails = |trial: &u64| {
        let mut decoder = plans.decoder(SCHEME, k).unwrap();
        let mut random = Random(u64::from(k) << 48 | u64::from(extra) << 40 | trial);
        let mut missing = k + extra;
        while missing > 0 {
            let esi = Esi(k + random.below((1 << 24) - k));
            missing -= u32::from(decoder.push(esi).unwrap() == Novelty::Fresh);
        }
        match decoder.solve(Work::UNBOUNDED) {
            Progress::Solved(_) => false,
            Progress::Wanting(_) => true,
            Progress::OutOfBudget => unreachable!("without a budget"),
        }
    };
    trials.filter(fails).count() as u64
}

/// A linear congruential generator, with the output function of SplitMix64: adjacent seeds give
/// independent numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u32) -> u32 {
        self.0 = self.0.wrapping_mul(0xD134_2543_DE82_EF95).wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((((z ^ (z >> 31)) >> 32) * u64::from(limit)) >> 32) as u32
    }
}

/// The interval of Clopper and Pearson at 95 %: the rates at which this many failures or more, and
/// this many or fewer, have a probability of 2.5 %.
fn interval(failures: u64, trials: u64) -> (f64, f64) {
    let low = if failures == 0 {
        0.0
    } else {
        bisect(|rate| 1.0 - at_most(failures - 1, trials, rate) < 0.025)
    };
    let high = bisect(|rate| at_most(failures, trials, rate) > 0.025);
    (low, high)
}

/// The largest rate below 1 for which `holds`, which is true for small rates.
fn bisect(holds: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..100 {
        let middle = (low + high) / 2.0;
        if holds(middle) { low = middle } else { high = middle }
    }
    low
}

/// The probability of at most `failures` in `trials`.
fn at_most(failures: u64, trials: u64, rate: f64) -> f64 {
    let (n, log_rate, log_rest) = (trials as f64, rate.ln(), (-rate).ln_1p());
    // Terms of the binomial distribution, by their logarithms, each from the previous one.
    let mut log_term = n * log_rest;
    let mut sum = log_term.exp();
    for x in 0..failures {
        let x = x as f64;
        log_term += ((n - x) / (x + 1.0)).ln() + log_rate - log_rest;
        sum += log_term.exp();
    }
    sum.min(1.0)
}

#[cfg(test)]
mod tests {
    // `cargo bench` compiles this without a harness: then there are no tests to use it.
    #[allow(unused_imports)]
    use super::*;

    /// Values of published tables, and by hand for no failure: 1 - 0.025^(1/n).
    #[test]
    fn intervals_equal_published_values() {
        for (failures, trials, low, high) in [
            (0, 10, 0.0, 0.308_497),
            (1, 10, 0.002_528_58, 0.445_016),
            (5, 10, 0.187_086, 0.812_914),
            (10, 100, 0.049_005, 0.176_223),
            (0, 5_000_000, 0.0, 7.377_76e-7),
        ] {
            let (l, h) = interval(failures, trials);
            let is_near = |a: f64, b: f64| (a - b).abs() <= 1e-4 * b + 1e-12;
            assert!(is_near(l, low) && is_near(h, high), "{failures} of {trials}: {l} to {h}");
        }
    }

    #[test]
    fn trials_are_counted_the_same_in_slices() {
        let plans = PlanCache::new(1);
        let parts = failures(&plans, 10, 0, 0..700) + failures(&plans, 10, 0, 700..2_000);
        assert_eq!(parts, failures(&plans, 10, 0, 0..2_000));
        assert!(parts > 0, "about one in a hundred");
    }
}
