//! Pulled symbols, as the driver hands them to a receiver.

use crate::endpoint::BlockId;
use fontana_fec::Esi;
use std::ops::Range;

/// Symbols of one block that were pulled: `bytes` has whole symbols one after the other, of which
/// the object's last one may lack its padding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PulledRun {
    /// The block.
    pub block: BlockId,
    /// The first symbol.
    pub first: Esi,
    /// The place of the symbols in the slab.
    pub bytes: Range<u32>,
}

/// What became of pulled symbols.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pulled {
    /// Symbols that were of use.
    pub fresh: u64,
    /// Symbols that had arrived before, or of blocks that need none.
    pub useless: u64,
}
