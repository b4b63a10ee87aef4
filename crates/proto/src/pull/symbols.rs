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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pulled {
    /// Symbols that were of use, ascending, as ranges of ESIs.
    pub fresh: Vec<Range<u32>>,
    /// Number of symbols that had arrived before, or of blocks that need none.
    pub useless: u64,
}

impl Pulled {
    /// Number of symbols that were of use.
    pub fn fresh_count(&self) -> u64 {
        self.fresh.iter().map(|run| u64::from(run.end.saturating_sub(run.start))).sum()
    }

    /// Adds a symbol that was of use, after all others.
    pub(crate) fn add_fresh(&mut self, esi: Esi) {
        match self.fresh.last_mut() {
            Some(last) if last.end == esi.0 => last.end = esi.0.saturating_add(1),
            _ => self.fresh.push(esi.0..esi.0.saturating_add(1)),
        }
    }
}
