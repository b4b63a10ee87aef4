//! SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014):
//! the random generator of Fontana's own codes. It uses integers only, so two hosts agree to the
//! bit.

/// The odd fraction of 2^64 by which the state advances.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// The finaliser: a bijection that spreads every input bit over the output.
#[inline]
const fn finalise(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// SplitMix64: a stream of numbers that follows from its key. Not for cryptography.
#[derive(Clone, Copy, Debug)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// The stream with this key.
    pub const fn new(key: u64) -> Self {
        Self(key)
    }

    /// Stream number `index` of the family that `seed` names: its key is draw `index` of the stream
    /// with key `seed`.
    pub(crate) const fn member(seed: u64, index: u32) -> Self {
        Self(finalise(seed.wrapping_add((index as u64 + 1).wrapping_mul(GOLDEN))))
    }

    /// The next 64 bits.
    #[inline]
    pub const fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        finalise(self.0)
    }

    /// The upper half of the next draw.
    #[inline]
    pub(crate) const fn next_u32(&mut self) -> u32 {
        (self.next_u64() >> 32) as u32
    }

    /// A number below `limit`. Probabilities differ by `limit` in 2^32 at most: no draw is
    /// rejected, so the number of draws never depends on their values.
    #[inline]
    pub(crate) const fn below(&mut self, limit: u32) -> u32 {
        ((self.next_u32() as u64 * limit as u64) >> 32) as u32
    }
}

/// The Fisher-Yates shuffle, from the last item down.
pub(crate) fn shuffle<T>(items: &mut [T], random: &mut SplitMix64) {
    for last in (1..items.len()).rev() {
        items.swap(last, random.below(last as u32 + 1) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first outputs of the generator's published C code for the seed 1 234 567.
    #[test]
    fn draws_are_the_published_ones() {
        let mut random = SplitMix64::new(1_234_567);
        for expected in [6_457_827_717_110_365_317, 3_203_168_211_198_807_973] {
            assert_eq!(random.next_u64(), expected);
        }
    }

    #[test]
    fn numbers_stay_below_their_limit() {
        let mut random = SplitMix64::new(7);
        assert!((0..1000).all(|_| random.below(1) == 0));
        assert!((0..1000).all(|_| random.below(3) < 3));
    }
}
