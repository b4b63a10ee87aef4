//! Recovery of an incomplete block, within a memory budget.

use crate::buffered::{CHUNK, ReadAhead, WriteBehind};
use crate::failure::StagingError;
use crate::geometry::GeometryError;
use crate::passes::column_passes;
use crate::staged_object::StagedObject;
use fontana_fec::{Esi, Plan, Sbn, Scratch};
use fontana_proto::SymbolPlace;
use std::sync::Arc;

impl StagedObject {
    /// Executes `plan` and writes the lost source symbols to their places. `where_is` returns the
    /// place of each of the plan's inputs.
    ///
    /// Takes at most `budget` bytes for the recovery ([`Plan::recovery_memory`]), and less than a
    /// megabyte for buffers. If whole symbols do not fit, it makes several passes over ranges of
    /// columns; none is narrower than 64 bytes. Does nothing if no symbol was lost. The result is
    /// not verified: the caller must hash the block.
    ///
    /// # Errors
    /// [`StagingError::Geometry`] if there is no such block, the plan is for another length or a
    /// place does not exist, [`StagingError::DiskFull`], [`StagingError::System`].
    pub fn recover_block(
        &self,
        sbn: Sbn,
        plan: &Arc<Plan>,
        budget: usize,
        where_is: impl Fn(Esi) -> SymbolPlace,
    ) -> Result<(), StagingError> {
        let (expected, actual) = (self.placement().source_symbols(sbn)?, plan.source_symbols());
        if expected != actual {
            return Err(GeometryError::Plan { expected, actual }.into());
        }
        if plan.lost().is_empty() {
            return Ok(());
        }
        let symbol_size = self.placement().symbol_size();
        for columns in column_passes(symbol_size, budget, |width| plan.recovery_memory(width)) {
            self.recover_columns(sbn, plan, columns, &where_is)?;
        }
        Ok(())
    }

    fn recover_columns(
        &self,
        sbn: Sbn,
        plan: &Arc<Plan>,
        columns: std::ops::Range<usize>,
        where_is: impl Fn(Esi) -> SymbolPlace,
    ) -> Result<(), StagingError> {
        let placement = self.placement();
        let mut object =
            ReadAhead::new(placement.block_range(sbn)?, |offset, out| self.read_at(offset, out));
        let mut spool =
            ReadAhead::new(self.spool().range(sbn)?, |offset, out| self.read_spool(offset, out));

        let width = columns.len();
        let read = |esi: Esi, out: &mut [u8]| match where_is(esi) {
            SymbolPlace::InPlace => {
                for piece in placement.column_pieces(sbn, esi, columns.clone())? {
                    if let Some(part) = out.get_mut(piece.in_columns) {
                        object.read_exact_at(piece.in_object, part)?;
                    }
                }
                Ok::<(), StagingError>(())
            }
            SymbolPlace::RepairSlot(slot) => {
                let offset = self.spool().slot_range(sbn, slot)?.start + columns.start as u64;
                spool.read_exact_at(offset, out)
            }
        };
        let recovered = plan.recover(width, read, Scratch::default())?;
        drop((object, spool));

        let mut writer = WriteBehind::new(|offset, bytes: &[u8]| self.write_at(offset, bytes));
        let at_once = (CHUNK / width.max(1)).max(1);
        let mut symbols = vec![0; at_once.min(plan.lost().len()) * width];
        for (lost, first) in plan.lost().chunks(at_once).zip((0..).step_by(at_once)) {
            let symbols = symbols.get_mut(..lost.len() * width).unwrap_or_default();
            recovered.write_symbols(first..first + lost.len(), symbols);
            for (&esi, symbol) in lost.iter().zip(symbols.chunks_exact(width)) {
                for piece in placement.column_pieces(sbn, esi, columns.clone())? {
                    let part = symbol.get(piece.in_columns).unwrap_or_default();
                    writer.write_all_at(piece.in_object, part)?;
                }
            }
        }
        writer.flush()
    }
}
