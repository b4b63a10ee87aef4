//! The rate of a session.

/// A rate on the wire, IP and UDP headers included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate {
    bits_per_second: u64,
}

impl Rate {
    /// The default rate of a sender. It leaves room on a 1 Gbit/s network, and on switches that
    /// flood multicast.
    pub const DEFAULT: Self = Self::mbit(100);

    /// Megabits per second.
    pub const fn mbit(megabits: u64) -> Self {
        Self::bits_per_second(megabits.saturating_mul(1_000_000))
    }

    /// Bits per second. A session sends whole bytes per second: the rest of less than a byte is
    /// not used.
    pub const fn bits_per_second(bits: u64) -> Self {
        Self { bits_per_second: bits }
    }

    /// Bytes per second.
    pub const fn bytes_per_second(bytes: u64) -> Self {
        Self { bits_per_second: bytes.saturating_mul(8) }
    }

    /// In bytes per second, rounded down.
    pub const fn as_bytes_per_second(self) -> u64 {
        self.bits_per_second / 8
    }

    /// In bits per second.
    pub const fn as_bits_per_second(self) -> u64 {
        self.bits_per_second
    }
}

impl Default for Rate {
    fn default() -> Self {
        Self::DEFAULT
    }
}
