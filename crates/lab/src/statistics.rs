//! Means, quantiles, expected maxima, and straight lines.

use std::collections::BTreeMap;

/// A histogram. Values are counts of packets, so a pool of a million receivers has a few hundred
/// entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Histogram(BTreeMap<u32, u64>);

impl Histogram {
    pub(crate) fn add(&mut self, value: u32) {
        self.add_many(value, 1);
    }

    pub(crate) fn add_many(&mut self, value: u32, count: u64) {
        *self.0.entry(value).or_default() += count;
    }

    /// The same without one of these values.
    pub(crate) fn without_one(&self, value: u32) -> Self {
        let mut rest = self.clone();
        if let Some(count) = rest.0.get_mut(&value) {
            *count = count.saturating_sub(1);
        }
        rest
    }

    /// Values and how often they occurred, in increasing order.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (u32, u64)> {
        self.0.iter().map(|(&value, &count)| (value, count))
    }

    pub(crate) fn count(&self) -> u64 {
        self.0.values().sum()
    }

    pub(crate) fn mean(&self) -> f64 {
        let sum: f64 = self.entries().map(|(value, count)| f64::from(value) * count as f64).sum();
        sum / self.count() as f64
    }

    pub(crate) fn standard_deviation(&self) -> f64 {
        let mean = self.mean();
        let square = |(value, count): (u32, u64)| (f64::from(value) - mean).powi(2) * count as f64;
        (self.entries().map(square).sum::<f64>() / (self.count() as f64 - 1.0)).sqrt()
    }

    pub(crate) fn max(&self) -> f64 {
        self.0.last_key_value().map_or(f64::NAN, |(&value, _)| f64::from(value))
    }

    /// Share of the values above `limit`.
    pub(crate) fn share_above(&self, limit: f64) -> f64 {
        let above = self.entries().filter(|&(value, _)| f64::from(value) > limit);
        above.map(|(_, count)| count).sum::<u64>() as f64 / self.count() as f64
    }

    /// Expected maximum of `receivers` values drawn from the pool: the sum of
    /// `x * (F(x)^r - F(x-)^r)`.
    pub(crate) fn expected_worst(&self, receivers: u32) -> f64 {
        let total = self.count() as f64;
        let (mut below, mut worst, mut before) = (0, 0.0, 0.0);
        for (value, count) in self.entries() {
            below += count;
            let power = (below as f64 / total).powf(f64::from(receivers));
            worst += f64::from(value) * (power - before);
            before = power;
        }
        worst
    }
}

pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The largest value; `NAN` if there is none, or if one is `NAN`.
pub(crate) fn largest(values: impl IntoIterator<Item = f64>) -> f64 {
    values.into_iter().reduce(|a, b| if a >= b || a.is_nan() { a } else { b }).unwrap_or(f64::NAN)
}

/// The smallest value; `NAN` if there is none, or if one is `NAN`.
pub(crate) fn smallest(values: impl IntoIterator<Item = f64>) -> f64 {
    values.into_iter().reduce(|a, b| if a <= b || a.is_nan() { a } else { b }).unwrap_or(f64::NAN)
}

/// The straight line of least squares through points.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct StraightLine {
    pub(crate) slope: f64,
    pub(crate) intercept: f64,
}

impl StraightLine {
    pub(crate) fn through(points: &[(f64, f64)]) -> Self {
        let count = points.len() as f64;
        let mean_x = points.iter().map(|(x, _)| x).sum::<f64>() / count;
        let mean_y = points.iter().map(|(_, y)| y).sum::<f64>() / count;
        let covariance: f64 = points.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
        let variance: f64 = points.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
        let slope = covariance / variance;
        Self { slope, intercept: mean_y - slope * mean_x }
    }

    /// The value at `x`.
    pub(crate) fn at(&self, x: f64) -> f64 {
        self.slope.mul_add(x, self.intercept)
    }
}

/// `b` of the best power law `y = a x^b`: the slope of the logarithms.
pub(crate) fn exponent(points: &[(f64, f64)]) -> f64 {
    let logarithms: Vec<_> = points.iter().map(|(x, y)| (x.ln(), y.ln())).collect();
    StraightLine::through(&logarithms).slope
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(values: &[u32]) -> Histogram {
        let mut pool = Histogram::default();
        values.iter().for_each(|&value| pool.add(value));
        pool
    }

    #[test]
    fn a_pool_knows_its_moments() {
        let pool = pool(&[2, 4, 4, 4, 5, 5, 7, 9]);
        assert_eq!((pool.mean(), pool.max()), (5.0, 9.0));
        assert!((pool.standard_deviation() - 32.0_f64.sqrt() / 7.0_f64.sqrt()).abs() < 1e-12);
        assert_eq!(pool.share_above(5.0), 0.25);
    }

    #[test]
    fn the_expected_worst_of_one_is_the_mean_and_of_many_the_maximum() {
        let pool = pool(&[1, 1, 2, 6]);
        assert!((pool.expected_worst(1) - pool.mean()).abs() < 1e-12);
        // Two draws: 1 with (2/4)^2, 2 with (3/4)^2 - (2/4)^2, 6 otherwise.
        assert!((pool.expected_worst(2) - (0.25 + 2.0 * 0.3125 + 6.0 * 0.4375)).abs() < 1e-12);
        assert!((pool.expected_worst(1000) - 6.0).abs() < 1e-9);
    }

    #[test]
    fn fits_find_what_was_put_in() {
        let cubic: Vec<_> = [1.0, 2.0, 5.0, 9.0].map(|x: f64| (x, 4.0 * x.powi(3))).into();
        assert!((exponent(&cubic) - 3.0).abs() < 1e-12);
        let line = StraightLine::through(&[(0.0, 1.0), (1.0, 3.0), (2.0, 5.0)]);
        assert!((line.slope - 2.0).abs() < 1e-12 && (line.intercept - 1.0).abs() < 1e-12);
        assert!((line.at(4.0) - 9.0).abs() < 1e-12);
    }

    #[test]
    fn the_extreme_of_nothing_or_of_the_unknown_is_unknown() {
        assert!(largest([]).is_nan());
        assert!(largest([1.0, f64::NAN, 2.0]).is_nan());
        assert_eq!(largest([1.0, 3.0, 2.0]), 3.0);
        assert!(smallest([]).is_nan() && smallest([1.0, f64::NAN, 2.0]).is_nan());
        assert_eq!(smallest([3.0, 1.0, 2.0]), 1.0);
    }
}
