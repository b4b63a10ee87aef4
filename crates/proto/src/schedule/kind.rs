//! The kinds of transmission schedules.

use super::fcast::Fcast;

/// Which block's turn is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransmissionSchedule {
    /// Even progress: every block of every object has at any moment had the same share of its
    /// symbols sent, to within one grain, and so on each of several channels. A receiver may join at
    /// any time and no block is the last one. A block of `k` symbols counts as `k + sqrt(k) + 1`: how many of its symbols a
    /// lossy receiver misses varies with the root of `k`, and a file of one symbol that was lost
    /// should not have to wait until a thousand others have gone round.
    Interleaved {
        /// Symbols that a block sends in one turn; 0 counts as 1. A sender whose memory cannot
        /// hold a symbol of every block encodes a block for several symbols at a time, and pays
        /// with progress that is less even: receivers hear up to a grain too much of some blocks.
        grain: u32,
    },
    /// One block after the other, each with its share of repair symbols: for receivers that write
    /// blocks in order and hold few of them, as deployed FLUTE receivers do.
    Sequential {
        /// Repair symbols per thousand source symbols that follow the source symbols of a block.
        repair_permille: u32,
    },
    /// Every turn drawn at random, blocks in proportion to their length, whatever was drawn before: the
    /// memoryless process of the digital fountain paper (section VII-B). A code of so many symbols
    /// repeats some of them long before all were sent; a rateless one has a fresh one each time.
    Random,
    /// For codes of fixed stretch and layers of rates 1, 1, 2, 4, ...: receivers of any number of layers
    /// hear every encoding symbol before one comes again. Sessions with a rateless code, which never
    /// repeats anything, and those with more than 4 million encoding symbols are interleaved instead.
    Cumulative,
    /// As FCAST sends (Roca, Mordelet 2002). Sessions with more than 4 million symbols in a list are
    /// interleaved instead.
    Fcast(Fcast),
}

impl TransmissionSchedule {
    /// Even progress to within one symbol.
    pub const EVEN: Self = Self::Interleaved { grain: 1 };
}

impl Default for TransmissionSchedule {
    fn default() -> Self {
        Self::EVEN
    }
}
