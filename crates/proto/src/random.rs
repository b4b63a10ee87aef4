//! Random numbers as a function of a seed.

/// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
///
/// Not for secrets. The seed is drawn by the caller, once, from the system; a run repeats with it.
#[derive(Clone, Debug)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// One stream per `(seed, stream)`.
    pub fn new(seed: u64, stream: u64) -> Self {
        let mut start = Self(seed ^ stream.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        Self(start.next_u64())
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Uniform in `0..n`, up to a bias of `n / 2^64`; 0 if `n` is 0.
    pub fn below(&mut self, n: u32) -> u32 {
        ((u128::from(self.next_u64()) * u128::from(n)) >> 64) as u32
    }
}
