//! Recovery of an incomplete block, and the search for its wrong symbols, within a memory budget.

use crate::buffered::{CHUNK, ReadAhead, WriteBehind, for_each_chunk};
use crate::failure::StagingError;
use crate::geometry::GeometryError;
use crate::passes::column_passes;
use crate::staged_object::StagedObject;
use fontana_fec::{Esi, Locator, Plan, Recovered, Sbn, Scratch, SymbolSource};
use fontana_proto::SymbolPlace;
use std::ops::Range;
use std::sync::Arc;

/// The memory of a thread that recovers blocks. It is used again for each block: the system
/// provides new memory page by page, and clears it.
#[derive(Debug)]
pub struct RecoveryMemory {
    budget: usize,
    /// The bytes of a block.
    block: Vec<u8>,
    /// The symbols that a plan works on.
    scratch: Scratch,
}

impl RecoveryMemory {
    /// At most `budget` bytes.
    pub fn new(budget: usize) -> Self {
        Self { budget, block: Vec::new(), scratch: Scratch::default() }
    }

    /// The most bytes that it may be.
    pub fn budget(&self) -> usize {
        self.budget
    }

    /// Allocated bytes, from one block to the next. At most the budget.
    pub fn bytes(&self) -> usize {
        self.block.capacity() + self.scratch.bytes()
    }

    /// Frees the memory of earlier blocks if it exceeds the budget, or would do so together with
    /// what grows for a block of `block` bytes whose plan needs `symbols` bytes.
    fn make_room(&mut self, block: usize, symbols: usize) {
        let block = block.max(self.block.capacity());
        if block.saturating_add(symbols.max(self.scratch.bytes())) > self.budget {
            (self.block, self.scratch) = (Vec::new(), Scratch::default());
        }
    }
}

/// How a block is recovered.
#[derive(Clone, Copy, Debug)]
pub struct RecoverySteps<'p> {
    /// The plan.
    pub plan: &'p Arc<Plan>,
    /// Source symbols that the plan recovers and that are in their places nevertheless, ascending:
    /// they were received when the plan was made already. They stay as they are.
    pub arrived: &'p [Esi],
}

impl<'p> RecoverySteps<'p> {
    /// All that the plan recovers.
    pub fn all_of(plan: &'p Arc<Plan>) -> Self {
        Self { plan, arrived: &[] }
    }

    /// The symbols to be written, and the index of each among those that the plan recovers.
    pub fn lost(self) -> impl Iterator<Item = (usize, Esi)> {
        let all = self.plan.lost().iter().copied().enumerate();
        all.filter(move |(_, esi)| self.arrived.binary_search(esi).is_err())
    }
}

/// The symbols of a block in memory. Those that are in one piece there are lent.
struct HeldBlock<'b, P, R> {
    /// The bytes of the block.
    bytes: &'b [u8],
    /// The place of a symbol in `bytes`; `None` if it has to be read.
    in_block: P,
    read: R,
}

impl<'b, P, R> SymbolSource<'b> for HeldBlock<'b, P, R>
where
    P: Fn(Esi) -> Option<Range<usize>>,
    R: FnMut(Esi, &mut [u8]) -> Result<(), StagingError>,
{
    type Error = StagingError;

    fn read(&mut self, esi: Esi, out: &mut [u8]) -> Result<(), StagingError> {
        (self.read)(esi, out)
    }

    fn lend(&self, esi: Esi) -> Option<&'b [u8]> {
        self.bytes.get((self.in_block)(esi)?)
    }
}

impl StagedObject {
    /// Executes a plan and writes the lost source symbols to their places. `where_is` returns the
    /// place of each of the plan's inputs. Then passes on the bytes of the block from its byte
    /// `from` on, without padding, to be hashed: the result is not verified.
    ///
    /// Takes at most the budget of `memory` for the recovery ([`Plan::recovery_memory`]) and the
    /// block, and less than a megabyte for buffers. The block is read once if both fit. If not, it
    /// makes several passes over ranges of columns, none of which is narrower than 64 bytes, and
    /// reads the block again. If no symbol was lost, only bytes to pass on are read.
    ///
    /// # Errors
    /// [`StagingError::Geometry`] if there is no such block, the plan is for another length or a
    /// place does not exist, [`StagingError::DiskFull`], [`StagingError::System`].
    pub fn recover_block(
        &self,
        sbn: Sbn,
        steps: RecoverySteps<'_>,
        memory: &mut RecoveryMemory,
        where_is: impl Fn(Esi) -> SymbolPlace,
        from: u64,
        mut show: impl FnMut(&[u8]),
    ) -> Result<(), StagingError> {
        let plan = steps.plan;
        let (expected, actual) = (self.placement().source_symbols(sbn)?, plan.source_symbols());
        if expected != actual {
            return Err(GeometryError::Plan { expected, actual }.into());
        }
        let range = self.placement().block_range(sbn)?;
        let shown = range.end.min(range.start.saturating_add(from))..range.end;
        if steps.lost().next().is_some() {
            let width = self.placement().symbol_size();
            let length = (range.end - range.start) as usize;
            let symbols = plan.recovery_memory(width);
            if length.saturating_add(symbols) <= memory.budget {
                memory.make_room(length, symbols);
                self.recover_in_memory(sbn, steps, memory, &where_is)?;
                show(memory.block.get((shown.start - range.start) as usize..).unwrap_or_default());
                memory.make_room(0, 0);
                return Ok(());
            }
            memory.block = Vec::new();
            for columns in column_passes(width, memory.budget, |width| plan.recovery_memory(width))
            {
                self.recover_columns(sbn, steps, columns, &where_is, &mut memory.scratch)?;
            }
            memory.make_room(0, 0);
        }
        for_each_chunk(shown, |offset, out| self.read_at(offset, out), show)
    }

    /// Adds the bytes of a block's symbols to a search for wrong ones. `where_is` returns the place
    /// of each symbol that was received.
    ///
    /// Takes at most the budget of `memory` ([`Locator::memory`]), in several passes over ranges of
    /// columns if necessary, none of which is narrower than 64 bytes, and less than a megabyte for
    /// buffers.
    ///
    /// # Errors
    /// [`StagingError::Geometry`] if there is no such block or place, [`StagingError::System`].
    pub fn add_to_search(
        &self,
        sbn: Sbn,
        locator: &mut Locator,
        memory: &mut RecoveryMemory,
        where_is: impl Fn(Esi) -> SymbolPlace,
    ) -> Result<(), StagingError> {
        let range = self.placement().block_range(sbn)?;
        let width = self.placement().symbol_size();
        let passes: Vec<_> =
            column_passes(width, memory.budget, |width| locator.memory(width)).collect();
        memory.block = Vec::new();
        for columns in passes {
            let mut object = ReadAhead::new(range.clone(), |offset, out| self.read_at(offset, out));
            let read = |offset, out: &mut [u8]| object.read_exact_at(offset, out);
            let load = self.symbol_reader(sbn, columns.clone(), &where_is, read)?;
            let used = std::mem::take(&mut memory.scratch);
            memory.scratch = locator.add_columns(columns.len(), load, used)?;
        }
        memory.make_room(0, 0);
        Ok(())
    }

    /// Reads a block into memory, without its padding. `None` if it exceeds the budget.
    ///
    /// # Errors
    /// [`StagingError::Geometry`] if there is no such block, [`StagingError::System`].
    pub fn read_block<'m>(
        &self,
        sbn: Sbn,
        memory: &'m mut RecoveryMemory,
    ) -> Result<Option<&'m mut [u8]>, StagingError> {
        let range = self.placement().block_range(sbn)?;
        let length = (range.end - range.start) as usize;
        if length > memory.budget {
            return Ok(None);
        }
        memory.make_room(length, 0);
        if memory.block.capacity() < length {
            // Growing the vector would allocate more than is needed.
            memory.block = Vec::with_capacity(length);
        }
        memory.block.resize(length, 0);
        self.read_at(range.start, &mut memory.block)?;
        Ok(Some(&mut memory.block))
    }

    /// Reads the block into memory, and recovers it there and on the disk.
    fn recover_in_memory(
        &self,
        sbn: Sbn,
        steps: RecoverySteps<'_>,
        memory: &mut RecoveryMemory,
        where_is: impl Fn(Esi) -> SymbolPlace,
    ) -> Result<(), StagingError> {
        let range = self.placement().block_range(sbn)?;
        let RecoveryMemory { block, scratch, .. } = memory;
        let length = (range.end - range.start) as usize;
        if block.capacity() < length {
            // Growing the vector would copy its contents, and allocate more than is needed.
            *block = Vec::new();
        }
        // Reading fills all of it.
        block.resize(length, 0);
        self.read_at(range.start, block)?;
        let columns = 0..self.placement().symbol_size();
        let used = std::mem::take(scratch);
        let held = |offset: u64, out: &mut [u8]| {
            let start = (offset - range.start) as usize;
            out.copy_from_slice(block.get(start..start + out.len()).unwrap_or_default());
            Ok(())
        };
        let in_block = |esi| match where_is(esi) {
            SymbolPlace::InPlace => self.whole_symbol(sbn, esi),
            SymbolPlace::RepairSlot(_) => None,
        };
        let read = self.symbol_reader(sbn, columns.clone(), &where_is, held)?;
        let symbols = HeldBlock { bytes: block.as_slice(), in_block, read };
        let recovered = steps.plan.recover(columns.len(), symbols, used)?;
        let mut writer = WriteBehind::new(|offset, bytes: &[u8]| self.write_at(offset, bytes));
        self.for_each_lost_piece(sbn, steps, columns, &recovered, |offset, part| {
            let start = (offset - range.start) as usize;
            if let Some(hole) = block.get_mut(start..start + part.len()) {
                hole.copy_from_slice(part);
            }
            writer.write_all_at(offset, part)
        })?;
        writer.flush()?;
        *scratch = recovered.into_scratch();
        Ok(())
    }

    /// The bytes of a source symbol in its block; `None` if they are in several pieces.
    fn whole_symbol(&self, sbn: Sbn, esi: Esi) -> Option<Range<usize>> {
        let placement = self.placement();
        let mut pieces = placement.column_pieces(sbn, esi, 0..placement.symbol_size()).ok()?;
        let piece = pieces.next().filter(|piece| piece.in_columns.start == 0)?;
        if pieces.next().is_some() {
            return None;
        }
        let start = (piece.in_object - placement.block_range(sbn).ok()?.start) as usize;
        Some(start..start + piece.in_columns.len())
    }

    fn recover_columns(
        &self,
        sbn: Sbn,
        steps: RecoverySteps<'_>,
        columns: Range<usize>,
        where_is: impl Fn(Esi) -> SymbolPlace,
        scratch: &mut Scratch,
    ) -> Result<(), StagingError> {
        let range = self.placement().block_range(sbn)?;
        let mut object = ReadAhead::new(range, |offset, out| self.read_at(offset, out));
        let read = |offset, out: &mut [u8]| object.read_exact_at(offset, out);
        let used = std::mem::take(scratch);
        let recovered =
            self.recovered_columns(sbn, steps.plan, columns.clone(), where_is, read, used)?;
        let mut writer = WriteBehind::new(|offset, bytes: &[u8]| self.write_at(offset, bytes));
        self.for_each_lost_piece(sbn, steps, columns, &recovered, |offset, part| {
            writer.write_all_at(offset, part)
        })?;
        writer.flush()?;
        *scratch = recovered.into_scratch();
        Ok(())
    }

    /// Executes the plan on some columns, in the memory of `scratch`. `read` fills a buffer with
    /// the object's bytes from an offset on.
    fn recovered_columns(
        &self,
        sbn: Sbn,
        plan: &Arc<Plan>,
        columns: Range<usize>,
        where_is: impl Fn(Esi) -> SymbolPlace,
        read: impl FnMut(u64, &mut [u8]) -> Result<(), StagingError>,
        scratch: Scratch,
    ) -> Result<Recovered, StagingError> {
        let width = columns.len();
        let load = self.symbol_reader(sbn, columns, where_is, read)?;
        plan.recover(width, load, scratch)
    }

    /// Reads some columns of a symbol. `read` fills a buffer with the object's bytes from an offset
    /// on.
    pub(crate) fn symbol_reader(
        &self,
        sbn: Sbn,
        columns: Range<usize>,
        where_is: impl Fn(Esi) -> SymbolPlace,
        mut read: impl FnMut(u64, &mut [u8]) -> Result<(), StagingError>,
    ) -> Result<impl FnMut(Esi, &mut [u8]) -> Result<(), StagingError>, StagingError> {
        let placement = self.placement();
        let mut spool =
            ReadAhead::new(self.spool().range(sbn)?, |offset, out| self.read_spool(offset, out));
        Ok(move |esi: Esi, out: &mut [u8]| match where_is(esi) {
            SymbolPlace::InPlace => {
                for piece in placement.column_pieces(sbn, esi, columns.clone())? {
                    if let Some(part) = out.get_mut(piece.in_columns) {
                        read(piece.in_object, part)?;
                    }
                }
                Ok::<(), StagingError>(())
            }
            SymbolPlace::RepairSlot(slot) => {
                let offset = self.spool().slot_range(sbn, slot)?.start + columns.start as u64;
                spool.read_exact_at(offset, out)
            }
        })
    }

    /// Passes on the recovered columns of the lost symbols, and their offsets in the object.
    fn for_each_lost_piece(
        &self,
        sbn: Sbn,
        steps: RecoverySteps<'_>,
        columns: Range<usize>,
        recovered: &Recovered,
        mut write: impl FnMut(u64, &[u8]) -> Result<(), StagingError>,
    ) -> Result<(), StagingError> {
        let width = columns.len();
        let at_once = (CHUNK / width.max(1)).max(1);
        let lost: Vec<(usize, Esi)> = steps.lost().collect();
        let mut symbols = vec![0; at_once.min(lost.len()) * width];
        let follow = |(a, _): &(usize, Esi), (b, _): &(usize, Esi)| a + 1 == *b;
        for lost in lost.chunk_by(follow).flat_map(|run| run.chunks(at_once)) {
            let Some(&(first, _)) = lost.first() else { continue };
            let symbols = symbols.get_mut(..lost.len() * width).unwrap_or_default();
            recovered.write_symbols(first..first + lost.len(), symbols);
            for (&(_, esi), symbol) in lost.iter().zip(symbols.chunks_exact(width)) {
                for piece in self.placement().column_pieces(sbn, esi, columns.clone())? {
                    let part = symbol.get(piece.in_columns).unwrap_or_default();
                    write(piece.in_object, part)?;
                }
            }
        }
        Ok(())
    }
}
