//! Estimates: numbers that trials give, with their standard errors.

use crate::statistics::{Histogram, mean};

/// A number, and its standard error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The number; `NAN` if the rows do not determine it.
    pub value: f64,
    /// Its standard error: 0 if no trials gave it, `NAN` if too few did to know.
    pub error: f64,
}

impl From<f64> for Estimate {
    fn from(value: f64) -> Self {
        Self { value, error: 0.0 }
    }
}

impl Estimate {
    /// Standard errors to either side that a judgment allows for: 95 % of a normal distribution.
    pub const MARGIN: f64 = 2.0;

    /// The mean of independent trials.
    pub(crate) fn mean(values: &[f64]) -> Self {
        let (value, count) = (mean(values), values.len() as f64);
        let squares: f64 = values.iter().map(|each| (each - value).powi(2)).sum();
        // One trial does not tell how much trials differ.
        Self { value, error: (squares / (count - 1.0) / count).sqrt() }
    }

    /// The mean of a pool of independent trials.
    pub(crate) fn mean_of(pool: &Histogram) -> Self {
        let error = pool.standard_deviation() / (pool.count() as f64).sqrt();
        Self { value: pool.mean(), error }
    }

    /// The standard deviation of a pool of independent trials, by its fourth central moment.
    pub(crate) fn deviation_of(pool: &Histogram) -> Self {
        let (mean, count) = (pool.mean(), pool.count() as f64);
        let moment = |power: i32| {
            let each = |(value, n): (u32, u64)| (f64::from(value) - mean).powi(power) * n as f64;
            pool.entries().map(each).sum::<f64>() / count
        };
        let (value, variance) = (pool.standard_deviation(), moment(2));
        // The variance of a sample variance, and half of the relative error of its root.
        let relative = ((moment(4) / variance.powi(2) - 1.0) / count).sqrt() / 2.0;
        Self { value, error: value * relative }
    }

    /// The expected largest of `count` trials like those of a pool, with the error of the
    /// jackknife: what it is without each of the trials.
    pub(crate) fn worst_of(pool: &Histogram, count: u32) -> Self {
        let trials = pool.count() as f64;
        let without =
            |(value, n): (u32, u64)| (pool.without_one(value).expected_worst(count), n as f64);
        let all: Vec<(f64, f64)> = pool.entries().map(without).collect();
        let mean = all.iter().map(|(worst, n)| worst * n).sum::<f64>() / trials;
        let squares: f64 = all.iter().map(|(worst, n)| (worst - mean).powi(2) * n).sum();
        let error = (squares * (trials - 1.0) / trials).sqrt();
        Self { value: pool.expected_worst(count), error }
    }

    /// The share of a pool of independent trials above `limit`.
    ///
    /// The error is that of one more trial on either side of the limit, so that a share of 0 or 1
    /// has one too.
    pub(crate) fn share_above(pool: &Histogram, limit: f64) -> Self {
        let (value, count) = (pool.share_above(limit), pool.count() as f64);
        let share = value.mul_add(count, 1.0) / (count + 2.0);
        Self { value, error: (share * (1.0 - share) / (count + 2.0)).sqrt() }
    }

    /// The largest of estimates, with its error; unknown if there is none, or if one is.
    pub(crate) fn largest(all: impl IntoIterator<Item = Self>) -> Self {
        let larger = |a: Self, b: Self| if a.value >= b.value || a.value.is_nan() { a } else { b };
        all.into_iter().reduce(larger).unwrap_or(f64::NAN.into())
    }

    /// This number over an independent one.
    pub(crate) fn over(self, other: Self) -> Self {
        let value = self.value / other.value;
        let relative = (other.error * value).hypot(self.error) / other.value.abs();
        Self { value, error: relative }
    }

    /// This number less an independent one.
    pub(crate) fn minus(self, other: Self) -> Self {
        Self { value: self.value - other.value, error: self.error.hypot(other.error) }
    }

    /// This number times an exact one.
    pub(crate) fn times(self, factor: f64) -> Self {
        Self { value: self.value * factor, error: self.error * factor.abs() }
    }

    /// Its absolute value.
    pub(crate) fn size(self) -> Self {
        Self { value: self.value.abs(), ..self }
    }

    /// Per cent by which this number is smaller than an independent one.
    pub(crate) fn percent_below(self, other: Self) -> Self {
        let ratio = self.over(other);
        Self { value: 100.0 * (1.0 - ratio.value), error: 100.0 * ratio.error }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(value: f64, error: f64) -> Estimate {
        Estimate { value, error }
    }

    #[test]
    fn a_mean_has_the_error_of_its_trials() {
        let found = Estimate::mean(&[1.0, 2.0, 3.0, 4.0]);
        assert_eq!(found.value, 2.5);
        assert!((found.error - (5.0_f64 / 3.0 / 4.0).sqrt()).abs() < 1e-12);
        let one = Estimate::mean(&[1.0]);
        assert!(one.value == 1.0 && one.error.is_nan());
        assert!(Estimate::mean(&[]).value.is_nan());
    }

    #[test]
    fn the_largest_estimate_keeps_its_error() {
        let all = [estimate(1.0, 0.5), estimate(3.0, 0.25), estimate(2.0, 0.0)];
        assert_eq!(Estimate::largest(all), estimate(3.0, 0.25));
        assert!(Estimate::largest([]).value.is_nan());
        assert!(Estimate::largest([estimate(f64::NAN, 0.0), all[0]]).value.is_nan());
    }

    #[test]
    fn the_worst_of_one_is_the_mean_with_its_error() {
        let mut pool = Histogram::default();
        [2, 4, 4, 4, 5, 5, 7, 9].into_iter().for_each(|value| pool.add(value));
        let (worst, mean) = (Estimate::worst_of(&pool, 1), Estimate::mean_of(&pool));
        assert!((worst.value - mean.value).abs() < 1e-12);
        assert!((worst.error - mean.error).abs() < 1e-12, "{worst:?} {mean:?}");
    }

    #[test]
    fn a_share_of_nothing_has_an_error_too() {
        let mut pool = Histogram::default();
        pool.add_many(1, 4);
        let none = Estimate::share_above(&pool, 1.0);
        // One of six, more or less.
        assert_eq!(none.value, 0.0);
        assert!((none.error - (5.0_f64 / 36.0 / 6.0).sqrt()).abs() < 1e-12, "{none:?}");
        pool.add_many(2, 9_996);
        let most = Estimate::share_above(&pool, 1.0);
        assert!(most.value == 0.9996 && most.error < 0.0003, "{most:?}");
    }

    #[test]
    fn a_deviation_of_a_normal_pool_has_its_textbook_error() {
        // 16 tosses of a coin, each outcome as often as expected.
        let mut pool = Histogram::default();
        let mut ways = 1_u64;
        for value in 0..=16_u32 {
            pool.add_many(value, ways);
            ways = ways * u64::from(16 - value) / u64::from(value + 1);
        }
        let found = Estimate::deviation_of(&pool);
        assert!((found.value - 2.0).abs() < 1e-4, "{found:?}");
        // Of a normal distribution: the deviation over the root of twice the trials.
        let normal = 2.0 / (2.0 * 65_536.0_f64).sqrt();
        assert!((found.error / normal - 1.0).abs() < 0.05, "{found:?}");
    }

    #[test]
    fn errors_of_ratios_and_differences_add_up_in_squares() {
        let ratio = estimate(6.0, 0.3).over(estimate(3.0, 0.2));
        // 5 % and 6.7 %.
        let relative = 0.05_f64.hypot(0.2 / 3.0);
        assert!((ratio.value - 2.0).abs() < 1e-12 && (ratio.error - 2.0 * relative).abs() < 1e-12);
        assert_eq!(estimate(6.0, 0.3).minus(estimate(3.0, 0.4)), estimate(3.0, 0.5));
        assert_eq!(estimate(6.0, 0.5).times(-2.0), estimate(-12.0, 1.0));
        let less = estimate(3.0, 0.0).percent_below(estimate(4.0, 0.0));
        assert_eq!(less, estimate(25.0, 0.0));
    }
}
