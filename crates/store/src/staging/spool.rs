//! The repair symbols of an object: a sparse file with a range of slots for each block.

use super::{StagedFile, Staging};
use crate::failure::StagingError;
use crate::geometry::GeometryError;
use crate::lock::Lock;
use fontana_fec::{ObjectLayout, Sbn};
use std::ops::Range;
use std::sync::{Arc, MutexGuard};

/// The spool of one object.
#[derive(Debug)]
pub(crate) struct Spool {
    pub(crate) file: Arc<StagedFile>,
    /// Slots of each block.
    slots: u32,
    /// Bytes of a slot.
    symbol_size: u64,
    /// One for each block.
    ranges: Box<[Lock<Generation>]>,
}

/// The number of writes to the range of one block, in this run of the receiver.
///
/// A range that a block no longer needs is returned to the file system only after the note that
/// says so is on the disk. Until then the same block may be received again, because its hash was
/// wrong, and new symbols are written to the range. So [`Spool::retire`] records the generation of
/// the range, each write increments it, and [`RetiredRange::free`] punches the range only if it
/// still has the recorded generation. The space of a range that has been written since is returned
/// when the block is settled again, or with the file.
///
/// A write increments the generation and writes its bytes under the range's lock, and `free`
/// compares and punches under the same lock. So a punch comes before all bytes of a later write, or
/// not at all; and a writer waits for one punch of its own block's range at most, never for a sync.
///
/// The generation is not stored: a restarted receiver has no retired ranges. After a power failure
/// that lost the `Void` note of a block, the journal may assign overwritten slots to the symbols
/// that were there before. Those belong to a reception whose hash was wrong, so the block is
/// voided once more; nothing else depends on them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Generation(u64);

/// The range of a block that was not needed when it had this generation.
#[derive(Debug)]
pub(super) struct RetiredRange {
    spool: Arc<Spool>,
    sbn: Sbn,
    generation: Generation,
}

impl Spool {
    /// A spool with `slots` slots for each block of an object. Its file is created when it is
    /// written to.
    ///
    /// # Errors
    /// [`GeometryError::Overflow`] if it would be longer than 2^64 bytes.
    pub(crate) fn new(
        staging: &Staging,
        layout: &ObjectLayout,
        slots: u32,
    ) -> Result<Self, GeometryError> {
        let symbol_size = u64::from(layout.oti().symbol_size);
        let blocks = layout.block_count();
        let length = u64::from(blocks).checked_mul(u64::from(slots) * symbol_size);
        let file = staging.add_spool(length.ok_or(GeometryError::Overflow)?);
        let ranges = (0..blocks).map(|_| Lock::default()).collect();
        Ok(Self { file, slots, symbol_size, ranges })
    }

    /// The bytes of a block. Empty if blocks have no slots.
    ///
    /// # Errors
    /// [`GeometryError::NoSuchBlock`].
    pub(crate) fn range(&self, sbn: Sbn) -> Result<Range<u64>, GeometryError> {
        self.ranges.get(sbn.0 as usize).ok_or(GeometryError::NoSuchBlock(sbn))?;
        // At most the file's length, which is known to fit.
        let length = u64::from(self.slots) * self.symbol_size;
        let start = u64::from(sbn.0) * length;
        Ok(start..start + length)
    }

    /// The bytes of a slot of a block.
    ///
    /// # Errors
    /// [`GeometryError::NoSuchBlock`], [`GeometryError::NoSuchSlot`].
    pub(crate) fn slot_range(&self, sbn: Sbn, slot: u32) -> Result<Range<u64>, GeometryError> {
        let range = self.range(sbn)?;
        if slot >= self.slots {
            return Err(GeometryError::NoSuchSlot { slot, limit: self.slots });
        }
        let start = range.start + u64::from(slot) * self.symbol_size;
        Ok(start..start + self.symbol_size)
    }

    /// Writes symbols to consecutive slots from `first` on. From then on the range of their block
    /// is in use again.
    ///
    /// # Errors
    /// [`StagingError::Geometry`], [`StagingError::DiskFull`], [`StagingError::System`].
    pub(crate) fn write(
        &self,
        staging: &Staging,
        sbn: Sbn,
        first: u32,
        symbols: &[u8],
    ) -> Result<(), StagingError> {
        let count = (symbols.len() as u64 / self.symbol_size.max(1)) as u32;
        let Some(others) = count.checked_sub(1) else { return Ok(()) };
        let offset = self.slot_range(sbn, first)?.start;
        self.slot_range(sbn, first.saturating_add(others))?;
        let mut generation = self.lock(sbn)?;
        generation.0 += 1;
        staging.write_all_at(&self.file, offset, symbols)
    }

    /// The range of a block, to be [freed](RetiredRange::free) later unless it is written before.
    ///
    /// # Errors
    /// [`GeometryError::NoSuchBlock`].
    pub(super) fn retire(self: &Arc<Self>, sbn: Sbn) -> Result<RetiredRange, GeometryError> {
        let generation = *self.lock(sbn)?;
        Ok(RetiredRange { spool: Arc::clone(self), sbn, generation })
    }

    /// Returns the range of a block to the file system now.
    ///
    /// # Errors
    /// [`StagingError::Geometry`], [`StagingError::System`].
    pub(crate) fn free_now(&self, staging: &Staging, sbn: Sbn) -> Result<(), StagingError> {
        let range = self.range(sbn)?;
        let _writers_wait = self.lock(sbn)?;
        staging.punch_hole(&self.file, range.start, range.end - range.start)
    }

    fn lock(&self, sbn: Sbn) -> Result<MutexGuard<'_, Generation>, GeometryError> {
        let range = self.ranges.get(sbn.0 as usize).ok_or(GeometryError::NoSuchBlock(sbn))?;
        Ok(range.lock())
    }
}

impl RetiredRange {
    /// Returns the range to the file system, unless it was written to after it was retired.
    ///
    /// # Errors
    /// [`StagingError::System`].
    pub(super) fn free(self, staging: &Staging) -> Result<(), StagingError> {
        let Self { spool, sbn, generation } = self;
        let range = spool.range(sbn)?;
        let now = spool.lock(sbn)?;
        if *now != generation {
            return Ok(());
        }
        staging.punch_hole(&spool.file, range.start, range.end - range.start)
    }
}
