//! An object that is received: source symbols at their final offsets, repair symbols in a spool.

use crate::buffered::for_each_chunk;
use crate::extents::Extents;
use crate::failure::StagingError;
use crate::geometry::GeometryError;
use crate::ids::FileIndex;
use crate::placement::{Placement, check_size};
use crate::staging::spool::Spool;
use crate::staging::{StagedFile, Staging};
use fontana_fec::{Esi, ObjectLayout, Sbn};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// An object in a staging directory. Threads may share it; different blocks have disjoint bytes.
#[derive(Debug)]
pub struct StagedObject {
    staging: Arc<Staging>,
    placement: Placement,
    /// The files that the object has bytes in.
    files: BTreeMap<FileIndex, Arc<StagedFile>>,
    spool: Arc<Spool>,
}

impl StagedObject {
    /// An object made of `extents` of files of `staging`, with `repair_slots` slots for repair
    /// symbols of each block. Unused slots take no space: the spool is a sparse file.
    ///
    /// # Errors
    /// [`StagingError::Geometry`] if the extents have another length than the object or lie outside
    /// their files, or if the spool would exceed 2^64 bytes.
    pub fn new(
        staging: Arc<Staging>,
        layout: ObjectLayout,
        extents: Extents,
        repair_slots: u32,
    ) -> Result<Self, StagingError> {
        let mut files = BTreeMap::new();
        for extent in extents.as_slice() {
            let file = staging.file(extent.file)?;
            let (end, length) = (extent.offset + extent.length, file.length);
            if end > length {
                return Err(GeometryError::BeyondFile { file: extent.file, end, length }.into());
            }
            files.insert(extent.file, file);
        }
        let placement = Placement::new(layout, extents)?;
        let spool = Arc::new(Spool::new(&staging, &layout, repair_slots)?);
        Ok(Self { staging, placement, files, spool })
    }

    /// The object's geometry.
    pub fn layout(&self) -> &ObjectLayout {
        self.placement.layout()
    }

    /// The staging directory with its files.
    pub fn staging(&self) -> &Staging {
        &self.staging
    }

    /// The object's extents.
    pub fn extents(&self) -> &Extents {
        self.placement.extents()
    }

    /// Writes a source symbol to its place, without its padding.
    ///
    /// # Errors
    /// [`StagingError::Geometry`] if there is no such source symbol or it has another size,
    /// [`StagingError::DiskFull`], [`StagingError::System`], [`StagingError::Committed`].
    pub fn write_source(&self, sbn: Sbn, esi: Esi, symbol: &[u8]) -> Result<(), StagingError> {
        check_size(symbol.len(), self.placement.symbol_size())?;
        for piece in self.placement.column_pieces(sbn, esi, 0..symbol.len())? {
            self.write_at(piece.in_object, symbol.get(piece.in_columns).unwrap_or_default())?;
        }
        Ok(())
    }

    /// Writes consecutive source symbols, from `first` on, to their places: in one write if they
    /// are contiguous on the disk. `symbols` is a whole number of symbols.
    ///
    /// # Errors
    /// As [`StagedObject::write_source`].
    pub fn write_source_run(
        &self,
        sbn: Sbn,
        first: Esi,
        symbols: &[u8],
    ) -> Result<(), StagingError> {
        let size = self.placement.symbol_size();
        let count = symbols.len() / size;
        check_size(symbols.len(), count * size)?;
        let range = self.placement.run_range(sbn, first, count)?;
        if self.placement.is_contiguous() {
            let length = (range.end - range.start) as usize;
            return self.write_at(range.start, symbols.get(..length).unwrap_or(symbols));
        }
        for (esi, symbol) in (first.0..).zip(symbols.chunks_exact(size)) {
            self.write_source(sbn, Esi(esi), symbol)?;
        }
        Ok(())
    }

    /// Bytes of the object that a block holds; `None` if there is no such block.
    pub fn block_length(&self, sbn: Sbn) -> Option<u64> {
        self.placement.block_range(sbn).ok().map(|range| range.end - range.start)
    }

    /// The bytes of their block that consecutive source symbols are, without padding. `None` if
    /// they are not contiguous, or there are no such symbols.
    pub fn bytes_in_block(&self, sbn: Sbn, first: Esi, count: u32) -> Option<Range<u64>> {
        let block = self.placement.block_range(sbn).ok()?;
        let bytes = self.placement.run_range(sbn, first, count as usize).ok()?;
        let is_contiguous = self.placement.is_contiguous();
        is_contiguous.then(|| bytes.start - block.start..bytes.end - block.start)
    }

    /// Writes repair symbols of a block to consecutive slots of the spool, from `first` on, in one
    /// write. `symbols` is a whole number of symbols.
    ///
    /// # Errors
    /// [`StagingError::Geometry`] if there is no such block or slot or the symbols have another
    /// size, [`StagingError::DiskFull`], [`StagingError::System`].
    pub fn write_repair_run(
        &self,
        sbn: Sbn,
        first: u32,
        symbols: &[u8],
    ) -> Result<(), StagingError> {
        let size = self.placement.symbol_size();
        check_size(symbols.len(), symbols.len() / size * size)?;
        self.spool.write(&self.staging, sbn, first, symbols)
    }

    /// Frees the disk space of a block's repair symbols, if the file system can.
    ///
    /// # Errors
    /// [`StagingError::Geometry`] if there is no such block, [`StagingError::System`].
    pub fn free_repair(&self, sbn: Sbn) -> Result<(), StagingError> {
        self.spool.free_now(&self.staging, sbn)
    }

    /// Like [`free_repair`](Self::free_repair), but after the next [sync](Staging::sync) of the
    /// note that the block is whole or void, which was written before this call. Does nothing if a
    /// repair symbol of the block is written before that.
    ///
    /// # Errors
    /// [`StagingError::Geometry`] if there is no such block.
    pub fn free_repair_when_synced(&self, sbn: Sbn) -> Result<(), StagingError> {
        Ok(self.staging.free_when_synced(&self.spool, sbn)?)
    }

    /// Removes the spool, after every block is recovered.
    ///
    /// # Errors
    /// [`StagingError::System`].
    pub fn remove_spool(&self) -> Result<(), StagingError> {
        self.staging.remove_spool(&self.spool.file)
    }

    /// Passes on the bytes of a block in the object's order, without padding, a chunk at a time, to
    /// be hashed and compared with the manifest.
    ///
    /// # Errors
    /// [`StagingError::Geometry`] if there is no such block, [`StagingError::System`].
    pub fn for_each_chunk_of_block(
        &self,
        sbn: Sbn,
        show: impl FnMut(&[u8]),
    ) -> Result<(), StagingError> {
        let range = self.placement.block_range(sbn)?;
        for_each_chunk(range, |offset, out| self.read_at(offset, out), show)
    }

    pub(crate) fn placement(&self) -> &Placement {
        &self.placement
    }

    pub(crate) fn files(&self) -> &BTreeMap<FileIndex, Arc<StagedFile>> {
        &self.files
    }

    pub(crate) fn spool(&self) -> &Spool {
        &self.spool
    }

    pub(crate) fn read_spool(&self, offset: u64, out: &mut [u8]) -> Result<(), StagingError> {
        self.staging.read_exact_at(&self.spool.file, offset, out)
    }

    /// Fills `out` with the object's bytes from `offset` on, which must exist.
    pub fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<(), StagingError> {
        for piece in self.placement.extents().pieces(offset, out.len()) {
            if let (Some(file), Some(part)) =
                (self.files.get(&piece.file), out.get_mut(piece.within))
            {
                self.staging.read_exact_at(file, piece.offset, part)?;
            }
        }
        Ok(())
    }

    /// Writes bytes of the object from `offset` on; bytes after its end are dropped.
    ///
    /// # Errors
    /// [`StagingError::DiskFull`], [`StagingError::System`], [`StagingError::Committed`].
    pub fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), StagingError> {
        for piece in self.placement.extents().pieces(offset, bytes.len()) {
            if let (Some(file), Some(part)) = (self.files.get(&piece.file), bytes.get(piece.within))
            {
                self.staging.write_all_at(file, piece.offset, part)?;
            }
        }
        Ok(())
    }
}
