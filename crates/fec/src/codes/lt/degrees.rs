//! The distribution of degrees, as integer thresholds.

use super::{LtCode, MAX_SOURCE_SYMBOLS};
use crate::limits::BlockLengthError;
use alloc::vec::Vec;

/// The distribution of degrees of an [`LtCode`] for blocks of one length.
///
/// Weights are integers in units of 2^-48, rounded down, and so are the thresholds that follow from
/// them. A degree is the least `d` whose threshold exceeds a random 32-bit number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Degrees {
    /// The threshold of degree `i + 1`; the last one is 2^32.
    thresholds: Vec<u64>,
    /// For each value of the upper bits, the first degree to compare.
    first: Vec<u32>,
    /// The sum of degree times probability, in units of 2^-32.
    mean: u64,
}

/// Upper bits of a number that index [`Degrees::first`]: with so many, a look-up rarely compares
/// more than one threshold.
const FIRST_BITS: u32 = 12;

impl Degrees {
    /// The distribution for blocks of `source_symbols`.
    ///
    /// # Errors
    /// [`BlockLengthError`] if that is not 1 to 2^20.
    pub fn new(code: LtCode, source_symbols: u32) -> Result<Self, BlockLengthError> {
        BlockLengthError::check(source_symbols, MAX_SOURCE_SYMBOLS)?;
        Ok(Self::within(code, source_symbols))
    }

    /// `source_symbols` must be within the code's limits.
    pub(super) fn within(code: LtCode, source_symbols: u32) -> Self {
        let spike = u64::from(code.spike.clamp(1, source_symbols));
        let weights =
            || (1..=spike).map(|degree| weight(&code, source_symbols.into(), spike, degree));
        let total: u128 = weights().sum();
        let mut sum = 0;
        let mut thresholds: Vec<u64> = weights()
            .map(|weight| {
                sum += weight;
                ((sum << 32) / total) as u64
            })
            .collect();
        if let Some(last) = thresholds.last_mut() {
            *last = 1 << 32;
        }
        let mut before = 0;
        let mut mean = 0;
        for (degree, &threshold) in (1..).zip(&thresholds) {
            mean += degree * (threshold - before);
            before = threshold;
        }
        let first = (0..1_u64 << FIRST_BITS)
            .map(|upper| {
                thresholds.partition_point(|&t| t <= upper << (32 - FIRST_BITS)) as u32 + 1
            })
            .collect();
        Self { thresholds, first, mean }
    }

    /// The degree of a random 32-bit number.
    #[inline]
    pub fn degree(&self, random: u32) -> u32 {
        let mut degree = self.first[(random >> (32 - FIRST_BITS)) as usize];
        while self.thresholds[degree as usize - 1] <= u64::from(random) {
            degree += 1;
        }
        degree
    }

    /// `M`: the largest degree.
    pub fn max(&self) -> u32 {
        self.thresholds.len() as u32
    }

    /// The mean degree, in units of 2^-32.
    pub fn mean(&self) -> u64 {
        self.mean
    }

    /// For each degree from 1 on, the threshold: smaller random numbers give this degree or a lower
    /// one.
    pub fn thresholds(&self) -> &[u64] {
        &self.thresholds
    }
}

/// The weight of `degree`, in units of 2^-48.
fn weight(code: &LtCode, k: u64, spike: u64, degree: u64) -> u128 {
    let ripple = u64::from(code.ripple) << 32;
    let soliton = if degree == 1 { (1 << 48) / k } else { (1 << 48) / (degree * (degree - 1)) };
    let weight = if degree < spike {
        soliton + ripple / (degree * k)
    } else {
        // The weights of all larger degrees are added to the spike; their sum is 1/M.
        let tail = if degree == 1 { 0 } else { (1 << 48) / degree };
        soliton + tail + (u64::from(code.spike_weight) << 16)
    };
    weight.into()
}
