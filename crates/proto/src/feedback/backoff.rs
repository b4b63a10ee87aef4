//! Random waits after which few of many receivers request the same (RFC 5401, RandomBackoff).

use crate::random::SplitMix64;
use std::time::Duration;

/// A random wait of at most `longest` before a request, for a group of so many receivers.
///
/// The density grows exponentially towards `longest`, by e^(1 + ln(receivers)) over the whole
/// range. Whatever their number, a few of the receivers wait much less than the others. When these
/// request, the others hear it and need not. RFC 5401 inverts the distribution with logarithms;
/// here `longest` less an exponential wait of mean `longest / (1 + ln(receivers))` is drawn until
/// it is not negative, which has the same distribution.
pub fn truncated_backoff(longest: Duration, receivers: u32, random: &mut SplitMix64) -> Duration {
    let mean = longest.div_f64(natural_logarithm(receivers.max(1)) + 1.0);
    // One draw in e times the number of receivers is too long, 37 % at most.
    for _ in 0..MOST_DRAWS {
        if let Some(wait) = longest.checked_sub(random.exponential(mean)) {
            return wait;
        }
    }
    longest
}

/// Draws of which all are too long with a probability below 10^-27.
const MOST_DRAWS: u32 = 64;

/// The natural logarithm of an integer. It is the same on all hosts, which library functions are
/// not.
fn natural_logarithm(number: u32) -> f64 {
    let exponent = number.max(1).ilog2();
    let mantissa = f64::from(number.max(1)) / f64::from(1_u32 << exponent);
    // ln m = 2 artanh((m - 1) / (m + 1)), of at most a third.
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let (mut term, mut sum) = (s, 0.0);
    for k in 0..20_u32 {
        sum += term / f64::from(2 * k + 1);
        term *= s * s;
    }
    2.0 * sum + f64::from(exponent) * std::f64::consts::LN_2
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONGEST: Duration = Duration::from_secs(1);

    #[test]
    fn the_logarithm_is_that_of_the_library() {
        for number in [1, 2, 3, 7, 10, 1_000, 65_537, u32::MAX] {
            let library = f64::from(number).ln();
            assert!((natural_logarithm(number) - library).abs() < 1e-12 * (1.0 + library));
        }
    }

    /// The distribution that RFC 5401 inverts: F(t) = (e^(l t) - 1) / (e^l - 1), l = 1 + ln(n).
    #[test]
    fn waits_have_the_distribution_of_the_rfc() {
        for receivers in [1, 10, 1_000, 100_000] {
            let mut random = SplitMix64::new(7, receivers.into());
            let lambda = f64::from(receivers).ln() + 1.0;
            let count = 40_000;
            let mut waits: Vec<f64> = (0..count)
                .map(|_| truncated_backoff(LONGEST, receivers, &mut random).as_secs_f64())
                .collect();
            waits.sort_by(f64::total_cmp);
            assert!(waits.last().is_some_and(|&longest| longest <= 1.0));
            for (rank, wait) in (1..).zip(waits) {
                let expected = ((lambda * wait).exp() - 1.0) / (lambda.exp() - 1.0);
                let found = f64::from(rank) / f64::from(count);
                // Kolmogorov's bound for one run in a hundred thousand: 2.5 / sqrt(count).
                assert!((expected - found).abs() < 0.0125, "{receivers}: {wait}");
            }
        }
    }

    /// Requests that are sent if a request takes a tenth of the longest wait to be heard.
    #[test]
    fn few_request_whatever_their_number() {
        for receivers in [1, 10, 100, 1_000, 10_000] {
            let mut sum = 0;
            for seed in 0..200 {
                let mut random = SplitMix64::new(seed, receivers.into());
                let waits: Vec<Duration> = (0..receivers)
                    .map(|_| truncated_backoff(LONGEST, receivers, &mut random))
                    .collect();
                let heard = waits.iter().min().map_or(LONGEST, |first| *first + LONGEST / 10);
                sum += waits.iter().filter(|&&wait| wait <= heard).count();
            }
            assert!(sum <= 200 * 8, "{receivers}: {sum} in 200 rounds");
        }
    }

    #[test]
    fn no_longest_wait_is_no_wait() {
        let mut random = SplitMix64::new(1, 1);
        assert_eq!(truncated_backoff(Duration::ZERO, 0, &mut random), Duration::ZERO);
    }
}
