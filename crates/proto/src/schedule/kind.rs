//! The kinds of transmission schedules.

use super::fcast::Fcast;

/// Rule that decides which block sends the next symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransmissionSchedule {
    /// Even progress: at any time, every block of every object has sent the same share of its
    /// symbols, to within one grain, also on each of several channels. A receiver may join at any
    /// time, and no block is last. A block of `k` symbols counts as `k + sqrt(k) + 1`. The number
    /// of its symbols that a lossy receiver misses varies with the root of `k`, and a lost file of
    /// one symbol should not wait until a thousand others are repeated.
    Interleaved {
        /// Number of symbols that a block sends in one turn; 0 counts as 1. A sender whose memory
        /// cannot hold a symbol of every block encodes several symbols of a block at a time. The
        /// cost is less even progress: receivers receive up to one grain too much of some blocks.
        grain: u32,
    },
    /// One block after the other, each with its repair symbols. For receivers that write blocks in
    /// order and hold few of them, as deployed FLUTE receivers do.
    Sequential {
        /// Number of repair symbols per thousand source symbols that follow the source symbols of a
        /// block.
        repair_permille: u32,
    },
    /// Random blocks, in proportion to their length and independent of earlier turns: the
    /// memoryless process of the digital fountain paper (section VII-B). A code with a fixed number
    /// of symbols repeats some of them long before all were sent; a rateless code has a fresh
    /// symbol for each turn.
    Random,
    /// Order for codes of fixed stretch and layers of rates 1, 1, 2, 4, ...: receivers of any
    /// number of layers receive every encoding symbol before a repetition. Sessions with a rateless
    /// code, which never repeats a symbol, and sessions with more than 4 million encoding symbols
    /// are interleaved instead.
    Cumulative,
    /// Order of FCAST (Roca, Mordelet 2002). Sessions with more than 4 million symbols in a list
    /// are interleaved instead.
    Fcast(Fcast),
}

impl TransmissionSchedule {
    /// Even progress with a grain of one symbol.
    pub const EVEN: Self = Self::Interleaved { grain: 1 };
}

impl Default for TransmissionSchedule {
    fn default() -> Self {
        Self::EVEN
    }
}
