//! The recovered symbols of a block.

use super::{Plan, Rows};
use crate::bytes::kernel::InstructionSet;
use crate::bytes::stripes::{Scratch, Stripes};
use alloc::sync::Arc;
use core::ops::Range;

/// The lost symbols of a source block, or some columns of them.
pub struct Recovered {
    pub(super) plan: Arc<Plan>,
    pub(super) instructions: InstructionSet,
    /// Bytes of a symbol.
    pub(super) width: usize,
    pub(super) symbols: Stripes,
}

impl Recovered {
    /// The plan that computed them.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// Bytes of a symbol.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Writes some of the lost symbols, by their indices in [`Plan::lost`], one after another into
    /// `out`.
    ///
    /// # Panics
    /// If fewer were lost, or `out` is not `lost.len() * width` bytes long.
    pub fn write_symbols(&self, lost: Range<usize>, out: &mut [u8]) {
        let (instructions, width) = (self.instructions, self.width);
        assert!(lost.end <= self.plan.lost().len(), "{lost:?} of {}", self.plan.lost().len());
        assert_eq!(out.len(), lost.len() * width, "one width of bytes for each symbol");
        let rows = Rows { instructions, width, symbols: &self.symbols };
        self.plan.program.write_lost(&self.plan.ids, rows, lost, out);
    }

    /// Returns the memory, for the next block.
    pub fn into_scratch(self) -> Scratch {
        self.symbols.into_scratch()
    }
}

impl core::fmt::Debug for Recovered {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Recovered")
            .field("plan", &self.plan)
            .field("width", &self.width)
            .finish_non_exhaustive()
    }
}
