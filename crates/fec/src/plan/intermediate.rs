//! Intermediate symbols, and the encoding symbols made of them.

use super::{Plan, Rows};
use crate::bytes::kernel::InstructionSet;
use crate::bytes::stripes::{Scratch, Stripes};
use crate::ids::Esi;
use alloc::sync::Arc;

/// The intermediate symbols of a block, or some columns of them. Every encoding symbol can be made
/// of them.
pub struct Intermediate {
    pub(super) plan: Arc<Plan>,
    pub(super) instructions: InstructionSet,
    /// Bytes of a symbol.
    pub(super) width: usize,
    pub(super) symbols: Stripes,
}

impl Intermediate {
    /// The plan that computed them.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// Bytes of a symbol.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Writes encoding symbol `esi` into `out`. An `esi` that the code does not have (see
    /// [`BlockProfile::encoding_symbols`](crate::BlockProfile::encoding_symbols)) gives zeros.
    ///
    /// # Panics
    /// If `out` is not [`width`](Self::width) bytes long.
    pub fn write_symbol(&self, esi: Esi, out: &mut [u8]) {
        self.write_symbols(&[esi], out);
    }

    /// Writes many encoding symbols, one after another, into `out`. Faster than one call per symbol
    /// if the block is larger than the processor's caches.
    ///
    /// # Panics
    /// If `out` is not `esis.len() * width` bytes long.
    pub fn write_symbols(&self, esis: &[Esi], out: &mut [u8]) {
        let (instructions, width) = (self.instructions, self.width);
        assert_eq!(out.len(), esis.len() * width, "one width of bytes for each symbol");
        let rows = Rows { instructions, width, symbols: &self.symbols };
        self.plan.program.write_symbols(&self.plan.ids, rows, esis, out);
    }

    /// The number of rows. Rows are what encoding symbols are computed from ([`Plan::sums`]).
    pub fn row_count(&self) -> usize {
        self.symbols.rows()
    }

    /// Copies a row into `out`.
    ///
    /// # Panics
    /// If there is no such row, or `out` is not [`width`](Self::width) bytes long.
    pub fn read_row(&self, row: usize, out: &mut [u8]) {
        assert_eq!(out.len(), self.width, "one width of bytes for a row");
        self.symbols.read_row(row, out);
    }

    /// Returns the memory, for the next block.
    pub fn into_scratch(self) -> Scratch {
        self.symbols.into_scratch()
    }
}

impl core::fmt::Debug for Intermediate {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Intermediate")
            .field("plan", &self.plan)
            .field("width", &self.width)
            .finish_non_exhaustive()
    }
}
