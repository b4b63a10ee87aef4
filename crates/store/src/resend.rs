//! Symbols of a block that is being received, for other receivers: those that were received, or
//! new ones of a block that is complete.

use crate::buffered::ReadAhead;
use crate::failure::StagingError;
use crate::geometry::GeometryError;
use crate::passes::column_passes;
use crate::placement::check_size;
use crate::solved::write_columns;
use crate::staged_object::StagedObject;
use fontana_fec::{Esi, Plan, Sbn, Scratch};
use fontana_proto::SymbolPlace;
use std::sync::Arc;

impl StagedObject {
    /// Reads symbols that were received into `out`, one after another, the last source symbol with
    /// its padding. `where_is` returns the place of each.
    ///
    /// # Errors
    /// [`StagingError::Geometry`] if there is no such block or place, or `out` has another length,
    /// [`StagingError::Committed`], [`StagingError::System`].
    pub fn read_symbols(
        &self,
        sbn: Sbn,
        esis: &[Esi],
        where_is: impl Fn(Esi) -> SymbolPlace,
        out: &mut [u8],
    ) -> Result<(), StagingError> {
        let size = self.placement().symbol_size();
        check_size(out.len(), esis.len().saturating_mul(size))?;
        let read = |offset, bytes: &mut [u8]| self.read_at(offset, bytes);
        let mut read = self.symbol_reader(sbn, 0..size, where_is, read)?;
        out.fill(0);
        esis.iter().zip(out.chunks_exact_mut(size)).try_for_each(|(&esi, symbol)| read(esi, symbol))
    }

    /// Computes repair symbols of a block whose source symbols are all in their places into `out`,
    /// one after another. `plan` is that of such a block. Takes at most `budget` bytes
    /// ([`Plan::memory`]), in several passes over ranges of columns if necessary, none of which is
    /// narrower than 64 bytes, and a quarter of a megabyte for reading.
    ///
    /// # Errors
    /// [`StagingError::Geometry`] if there is no such block, the plan is for another length or
    /// `out` has another length, [`StagingError::Committed`], [`StagingError::System`].
    pub fn compute_symbols(
        &self,
        sbn: Sbn,
        esis: &[Esi],
        plan: &Arc<Plan>,
        budget: usize,
        out: &mut [u8],
    ) -> Result<(), StagingError> {
        let (expected, actual) = (self.placement().source_symbols(sbn)?, plan.source_symbols());
        if expected != actual {
            return Err(GeometryError::Plan { expected, actual }.into());
        }
        let size = self.placement().symbol_size();
        check_size(out.len(), esis.len().saturating_mul(size))?;
        let block = self.placement().block_range(sbn)?;
        for columns in column_passes(size, budget, |width| plan.memory(width)) {
            let mut ahead = ReadAhead::new(block.clone(), |offset, bytes: &mut [u8]| {
                self.read_at(offset, bytes)
            });
            let read = |offset, bytes: &mut [u8]| ahead.read_exact_at(offset, bytes);
            let in_place = |_| SymbolPlace::InPlace;
            let source = self.symbol_reader(sbn, columns.clone(), in_place, read)?;
            let part = plan.execute(columns.len(), source, Scratch::default())?;
            write_columns(&part, &columns, esis, size, out);
        }
        Ok(())
    }
}
