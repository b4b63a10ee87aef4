//! Parameters of efficient LT codes.
//!
//! Only a sender computes them, and sends them as integers, so floating point is allowed.

use super::{LtCode, Profile};
#[cfg(not(feature = "std"))]
use real::Real;

/// `c` and `delta` of the robust soliton distribution. They trade the mean degree against the
/// number of symbols needed. With these values a block of 10 000 takes 1.04 `k` symbols on average.
const C: f64 = 0.03;
const DELTA: f64 = 0.5;

impl LtCode {
    /// The code for blocks of about `source_symbols` whose receivers peel: the robust soliton
    /// distribution with `c = 0.03` and `delta = 0.5`, with a mean degree of about 10 to 17.
    pub fn fast(source_symbols: u32, seed: u64) -> Self {
        let (k, ripple) = ripple(source_symbols);
        let spike = (k / ripple).round().clamp(1.0, k);
        let weight = (ripple * (ripple / DELTA).ln() / k).max(0.0);
        Self::from_reals(Profile::Fast, seed, spike, ripple, weight)
    }

    /// The code for blocks of about `source_symbols` whose receivers also eliminate. It puts more
    /// weight on high degrees than [`fast`](Self::fast): the chance that a source symbol is in none
    /// of 1.05 `k` encoding symbols, times `k`, is below 5 * 10^-9. The mean degree is 25 for a
    /// thousand symbols and 31 for a million.
    pub fn strict(source_symbols: u32, seed: u64) -> Self {
        let (k, ripple) = ripple(source_symbols);
        let spike = (STRICT_SPIKE * k / ripple).round().clamp(2.0, (k / 2.0).max(2.0));
        let mean = Self::mean_for_coverage(k);
        // Weights and their first moment, without the extra weight of the spike.
        let (weight, moment) = (1..spike as u32).map(f64::from).fold(
            (1.0 / (spike - 1.0), spike / (spike - 1.0)),
            |(weight, moment), degree| {
                let soliton = if degree == 1.0 { 1.0 / k } else { 1.0 / (degree * (degree - 1.0)) };
                let here = soliton + ripple / (degree * k);
                (weight + here, moment + degree * here)
            },
        );
        let added = ((mean * weight - moment) / (spike - mean)).clamp(0.0, 1.0);
        Self::from_reals(Profile::Strict, seed, spike, ripple, added)
    }

    /// The mean degree `m` with `k (1 - m/k)^n = 5 * 10^-9`, `n` being 1.05 `k` rounded down.
    fn mean_for_coverage(k: f64) -> f64 {
        let n = (1.05 * k).floor();
        k * (1.0 - (5e-9_f64 / k).powf(1.0 / n))
    }

    fn from_reals(profile: Profile, seed: u64, spike: f64, ripple: f64, weight: f64) -> Self {
        Self {
            profile,
            seed,
            spike: spike as u32,
            ripple: (ripple * 65_536.0).round() as u32,
            spike_weight: (weight * 4_294_967_296.0).round() as u32,
        }
    }
}

/// The spike of strict codes, in units of that of fast ones. A larger spike leaves more symbols of
/// low degree for peeling; a smaller one costs less to read.
const STRICT_SPIKE: f64 = 2.0;

/// `k`, and the size of the ripple `R = c ln(k / delta) sqrt(k)`.
fn ripple(source_symbols: u32) -> (f64, f64) {
    let k = f64::from(source_symbols.max(1));
    (k, C * (k / DELTA).ln() * k.sqrt())
}

/// Functions of real numbers that the language itself does not have.
#[cfg(not(feature = "std"))]
mod real {
    pub(super) trait Real {
        fn floor(self) -> Self;
        fn ln(self) -> Self;
        fn powf(self, exponent: Self) -> Self;
        fn round(self) -> Self;
        fn sqrt(self) -> Self;
    }

    impl Real for f64 {
        fn floor(self) -> Self {
            libm::floor(self)
        }

        fn ln(self) -> Self {
            libm::log(self)
        }

        fn powf(self, exponent: Self) -> Self {
            libm::pow(self, exponent)
        }

        fn round(self) -> Self {
            libm::round(self)
        }

        fn sqrt(self) -> Self {
            libm::sqrt(self)
        }
    }
}
