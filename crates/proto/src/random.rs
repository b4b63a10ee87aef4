//! Random numbers as a function of a seed.

use std::time::Duration;

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
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform in `0..n`, up to a bias of `n / 2^64`; 0 if `n` is 0.
    #[inline]
    pub fn below(&mut self, n: u32) -> u32 {
        ((u128::from(self.next_u64()) * u128::from(n)) >> 64) as u32
    }

    /// Uniform between 0 and 1, which it never is.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// An exponentially distributed time, at most 64 times `mean`, by von Neumann's comparison of
    /// uniform numbers ("Various techniques used in connection with random digits", 1951). It needs
    /// no logarithm, whose last bit depends on the library.
    pub fn exponential(&mut self, mean: Duration) -> Duration {
        // Each rejected run adds a whole unit to the result; a run is rejected with probability
        // 1/e.
        for whole in 0..64_u32 {
            let first = self.next_u64();
            let (mut previous, mut length) = (first, 1_u32);
            loop {
                let next = self.next_u64();
                if next >= previous {
                    break;
                }
                (previous, length) = (next, length.wrapping_add(1));
            }
            if length % 2 == 1 {
                let units = mean.as_nanos().min(u128::from(u64::MAX));
                let fraction = (u128::from(first) * units) >> 64;
                return mean.saturating_mul(whole) + Duration::from_nanos(fraction as u64);
            }
        }
        mean.saturating_mul(64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponential_times_have_their_mean_and_their_tail() {
        let mut random = SplitMix64::new(3, 1);
        let mean = Duration::from_micros(1_000);
        let times: Vec<_> = (0..100_000).map(|_| random.exponential(mean)).collect();
        let average = times.iter().sum::<Duration>() / times.len() as u32;
        assert!((990..1_010).contains(&average.as_micros()), "{average:?}");
        for (multiple, expected) in [(1, 0.3679), (2, 0.1353), (4, 0.0183)] {
            let beyond = times.iter().filter(|&&t| t > mean * multiple).count() as f64 / 1e5;
            assert!((beyond - expected).abs() < 0.005, "{multiple}: {beyond}");
        }
    }
}
