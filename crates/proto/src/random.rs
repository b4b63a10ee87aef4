//! Random numbers as a function of a seed.

/// The generator behind the codes ([`fontana_fec::SplitMix64`]), in numbered streams.
///
/// Not for cryptography. The caller takes the seed from the system once; the same seed gives the
/// same run.
#[derive(Clone, Debug)]
pub struct SplitMix64(fontana_fec::SplitMix64);

impl SplitMix64 {
    /// One stream per `(seed, stream)`.
    pub fn new(seed: u64, stream: u64) -> Self {
        let key = seed ^ stream.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        Self(fontana_fec::SplitMix64::new(fontana_fec::SplitMix64::new(key).next_u64()))
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform in `0..n`, up to a bias of `n / 2^64`; 0 if `n` is 0.
    pub fn below(&mut self, n: u32) -> u32 {
        ((u128::from(self.next_u64()) * u128::from(n)) >> 64) as u32
    }
}
