//! The kinds of transmission schedules.

use super::fcast::{Fcast, ObjectOrder, SymbolOrganization};
use super::turn::RunLength;
use fontana_wire::{AnnouncedSchedule, LayerSymbols};

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
    /// Even progress in runs: a block sends up to `length` consecutive symbols, and at most a 200th
    /// of its `k` symbols, before the next block has its run. Runs of consecutive packets of one
    /// block are encoded, sent, received and written together. A cycle over all blocks sends at
    /// most a 200th of the content, or a symbol of each: a receiver receives up to that much too
    /// much of some blocks. For one channel: with several, each would add a run.
    Runs {
        /// Largest number of symbols of a run; 0 counts as 1.
        length: u32,
        /// How often each block is visited in one pass over the content, if a visit prepares
        /// several runs; they are sent in turn with the runs of other visits of the window.
        /// `None`: a visit prepares one run.
        visits: Option<u32>,
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

    /// The record with which a session announces it; `None` for even progress and for one block
    /// after the other.
    pub fn announced(self) -> Option<AnnouncedSchedule> {
        match self {
            Self::Interleaved { .. } | Self::Runs { .. } | Self::Sequential { .. } => None,
            Self::Random => Some(AnnouncedSchedule::Random),
            Self::Cumulative => Some(AnnouncedSchedule::Cumulative),
            Self::Fcast(fcast) => Some(AnnouncedSchedule::Fcast {
                layers: match fcast.organization {
                    SymbolOrganization::AllOnEach => LayerSymbols::All,
                    SymbolOrganization::Segments => LayerSymbols::Segment,
                },
                one_in: match fcast.object_order {
                    ObjectOrder::Sequential => 0,
                    ObjectOrder::PartlyRandom { one_in } => one_in.max(1),
                    ObjectOrder::Random => 1,
                },
                stretch_factor: u8::try_from(fcast.stretch_factor).unwrap_or(u8::MAX),
                anticipated_layers: fcast.anticipated_layers,
            }),
        }
    }

    /// Consecutive symbols of a block among those that a window has of all blocks.
    pub(crate) fn run_length(self) -> RunLength {
        match self {
            Self::Runs { length, .. } => {
                RunLength { most: length.max(1).into(), parts: RUNS_IN_BLOCK }
            }
            Self::Sequential { .. } => RunLength::WHOLE,
            Self::Interleaved { .. } | Self::Random | Self::Cumulative | Self::Fcast(_) => {
                RunLength::ONE
            }
        }
    }

    /// Symbols of a block that are planned one after the other.
    pub(crate) fn visit_length(self) -> RunLength {
        match self {
            Self::Interleaved { grain } => RunLength { most: grain.max(1).into(), parts: 1 },
            Self::Runs { visits: Some(visits), .. } => {
                RunLength { most: u64::MAX, parts: u64::from(visits).min(RUNS_IN_BLOCK) }
            }
            _ => self.run_length(),
        }
    }

    /// True if the blocks of a window alternate after each run, however long the visits are.
    pub(crate) fn alternates_in_windows(self) -> bool {
        matches!(self, Self::Interleaved { .. } | Self::Runs { visits: Some(_), .. })
    }
}

/// Least number of runs that have the source symbols of a long block: a cycle over all blocks then
/// sends at most 0.5 % of the content.
const RUNS_IN_BLOCK: u64 = 200;

impl Default for TransmissionSchedule {
    fn default() -> Self {
        Self::EVEN
    }
}
