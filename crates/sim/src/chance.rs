//! Random decisions by integers and comparisons alone, so that all computers draw the same.

use fontana_proto::SplitMix64;

/// A probability, as a fraction of 2^63.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Probability(u64);

impl Probability {
    /// Never.
    pub const ZERO: Self = Self(0);
    /// Always.
    pub const ONE: Self = Self(1 << 63);

    /// The probability `p`, clamped to `0.0..=1.0`; NaN counts as 0.
    pub fn new(p: f64) -> Self {
        // A power of two: the product is exact, and a cast saturates.
        Self(((p.clamp(0.0, 1.0) * Self::ONE.0 as f64) as u64).min(Self::ONE.0))
    }

    /// The probability as a floating-point number.
    pub fn as_f64(self) -> f64 {
        self.0 as f64 / Self::ONE.0 as f64
    }

    /// Draws whether the event occurs. Probabilities 0 and 1 use no random number.
    pub fn draw(self, random: &mut SplitMix64) -> bool {
        match self {
            Self::ZERO => false,
            Self::ONE => true,
            Self(threshold) => random.next_u64() >> 1 < threshold,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_and_certain_are_exact() {
        let mut random = SplitMix64::new(1, 1);
        for (p, happens) in
            [(0.0, false), (-1.0, false), (f64::NAN, false), (1.0, true), (2.0, true)]
        {
            assert_eq!(Probability::new(p).draw(&mut random), happens, "{p}");
        }
        assert_eq!(Probability::new(0.25).as_f64(), 0.25);
    }

    #[test]
    fn a_probability_happens_as_often_as_it_says() {
        let mut random = SplitMix64::new(2, 1);
        let third = Probability::new(1.0 / 3.0);
        let count = (0..90_000).filter(|_| third.draw(&mut random)).count();
        assert!((29_500..30_500).contains(&count), "{count}");
    }
}
