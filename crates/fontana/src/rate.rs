//! The rate of a session.

/// A rate on the wire, IP and UDP headers included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate {
    bytes_per_second: u64,
}

impl Rate {
    /// The default rate of a sender. It leaves room on a 1 Gbit/s network, and on switches that
    /// flood multicast.
    pub const DEFAULT: Self = Self::mbit(100);

    /// Megabits per second.
    pub const fn mbit(megabits: u64) -> Self {
        Self::bits_per_second(megabits.saturating_mul(1_000_000))
    }

    /// Bits per second, rounded down to whole bytes.
    pub const fn bits_per_second(bits: u64) -> Self {
        Self { bytes_per_second: bits / 8 }
    }

    /// Bytes per second.
    pub const fn bytes_per_second(bytes: u64) -> Self {
        Self { bytes_per_second: bytes }
    }

    /// In bytes per second.
    pub const fn as_bytes_per_second(self) -> u64 {
        self.bytes_per_second
    }

    /// In bits per second.
    pub const fn as_bits_per_second(self) -> u64 {
        self.bytes_per_second.saturating_mul(8)
    }
}

impl Default for Rate {
    fn default() -> Self {
        Self::DEFAULT
    }
}
