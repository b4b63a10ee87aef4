//! The parameters that are worth having.
//!
//! Only a sender runs this: what comes out are integers that travel, so it may use floating point.

use super::{Lt, Profile};

/// `c` and `delta` of the robust soliton distribution. They trade the mean degree against the number
/// of symbols needed; with these a block of 10 000 takes 1.04 `k` symbols on average.
const C: f64 = 0.03;
const DELTA: f64 = 0.5;

impl Lt {
    /// The code for blocks of about `source_symbols` whose receivers peel: the robust soliton
    /// distribution with `c = 0.03` and `delta = 0.5`, of a mean degree of about 10 to 17.
    pub fn fast(source_symbols: u32, seed: u64) -> Self {
        let (k, ripple) = ripple(source_symbols);
        let spike = (k / ripple).round().clamp(1.0, k);
        let weight = (ripple * (ripple / DELTA).ln() / k).max(0.0);
        Self::from_reals(Profile::Fast, seed, spike, ripple, weight)
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

/// `k`, and the size of the ripple `R = c ln(k / delta) sqrt(k)`.
fn ripple(source_symbols: u32) -> (f64, f64) {
    let k = f64::from(source_symbols.max(1));
    (k, C * (k / DELTA).ln() * k.sqrt())
}
