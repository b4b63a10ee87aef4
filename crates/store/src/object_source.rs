//! An object that is sent: extents of files, read as symbols and blocks.

use crate::buffered::for_each_chunk;
use crate::extents::Extents;
use crate::geometry::GeometryError;
use crate::identity::Identity;
use crate::ids::FileIndex;
use crate::object_copy::ObjectCopy;
use crate::placement::{Placement, check_size};
use crate::source::{Deviations, SourceError, SourceFiles};
use fontana_fec::{Esi, ObjectLayout, Sbn};
use rustix::io::Errno;
use std::sync::Arc;

/// Bytes that are read at a time to find the files that cannot be read.
const CHUNK: usize = 64 << 10;

/// An object on the sender's disk.
#[derive(Debug)]
pub struct ObjectSource {
    files: Arc<SourceFiles>,
    placement: Placement,
    /// What is read instead of the files.
    copy: Option<ObjectCopy>,
}

impl ObjectSource {
    /// An object made of `extents` of `files`, partitioned into blocks and symbols by `layout`.
    ///
    /// # Errors
    /// [`GeometryError`] if the extents have another length than the object, or lie outside their
    /// files.
    pub fn new(
        files: Arc<SourceFiles>,
        layout: ObjectLayout,
        extents: Extents,
    ) -> Result<Self, GeometryError> {
        for extent in extents.as_slice() {
            let (end, length) = (extent.offset + extent.length, files.file(extent.file)?.size());
            if end > length {
                return Err(GeometryError::BeyondFile { file: extent.file, end, length });
            }
        }
        Ok(Self { files, placement: Placement::new(layout, extents)?, copy: None })
    }

    /// The object, read from a copy of all its bytes: its files may change.
    #[must_use]
    pub fn with_copy(mut self, copy: ObjectCopy) -> Self {
        self.copy = Some(copy);
        self
    }

    /// The object's geometry.
    pub fn layout(&self) -> &ObjectLayout {
        self.placement.layout()
    }

    /// The object's extents.
    pub fn extents(&self) -> &Extents {
        self.placement.extents()
    }

    pub(crate) fn placement(&self) -> &Placement {
        &self.placement
    }

    /// Fills `out` with the object's bytes from `offset` on, and with zeros beyond its end.
    ///
    /// # Errors
    /// Those of [`SourceFiles::read_exact_at`].
    pub fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<(), SourceError> {
        if let Some(copy) = &self.copy {
            return self.read_copy(copy, offset, out);
        }
        let mut end = 0;
        for piece in self.placement.extents().pieces(offset, out.len()) {
            end = piece.within.end;
            if let Some(part) = out.get_mut(piece.within) {
                self.files.read_exact_at(piece.file, piece.offset, part)?;
            }
        }
        out.get_mut(end..).unwrap_or_default().fill(0);
        Ok(())
    }

    /// Like [`read_at`](Self::read_at), and checks each file after it was read: the bytes are those
    /// of the file that was opened.
    ///
    /// # Errors
    /// Those of [`SourceFiles::read_exact_at`] and [`SourceFiles::check_unchanged`]; also if a file
    /// was written to, and that is [allowed](SourceFiles::allowing_growth).
    pub fn read_unchanged_at(&self, offset: u64, out: &mut [u8]) -> Result<(), SourceError> {
        let mut change = None;
        self.read_and_note(offset, out, |file, now| change = Some((file, now)))?;
        match change {
            Some((file, now)) => Err(self.files.changed(file, &now)),
            None => Ok(()),
        }
    }

    /// Like [`read_at`](Self::read_at), and checks each file after it was read. True if one was
    /// written to, if that is [allowed](SourceFiles::allowing_growth).
    ///
    /// # Errors
    /// Those of [`SourceFiles::read_exact_at`] and [`SourceFiles::check_unchanged`].
    pub(crate) fn read_checked_at(&self, offset: u64, out: &mut [u8]) -> Result<bool, SourceError> {
        let mut deviates = false;
        self.read_and_note(offset, out, |_, _| deviates = true)?;
        Ok(deviates)
    }

    /// Like [`read_checked_at`](Self::read_checked_at). Passes each file that was written to, and
    /// its state after it was read, to `note`.
    fn read_and_note(
        &self,
        offset: u64,
        out: &mut [u8],
        mut note: impl FnMut(FileIndex, Identity),
    ) -> Result<(), SourceError> {
        if let Some(copy) = &self.copy {
            return self.read_copy(copy, offset, out);
        }
        let mut end = 0;
        for piece in self.placement.extents().pieces(offset, out.len()) {
            end = piece.within.end;
            if let Some(part) = out.get_mut(piece.within)
                && let Some(now) = self.files.read_checked_at(piece.file, piece.offset, part)?
            {
                note(piece.file, now);
            }
        }
        out.get_mut(end..).unwrap_or_default().fill(0);
        Ok(())
    }

    fn read_copy(&self, copy: &ObjectCopy, offset: u64, out: &mut [u8]) -> Result<(), SourceError> {
        let left = self.layout().oti().transfer_length.saturating_sub(offset);
        let end = usize::try_from(left).unwrap_or(usize::MAX).min(out.len());
        let (bytes, beyond) = out.split_at_mut(end);
        beyond.fill(0);
        copy.read(offset, bytes).map_err(|error| {
            let first =
                self.extents().as_slice().first().map(|extent| self.files.file(extent.file));
            let path = first.and_then(Result::ok).map(|file| file.path().to_owned());
            let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
            let doing = "read the copy of files such as";
            SourceError::System { path: path.unwrap_or_default(), doing, errno }
        })
    }

    /// Reads a source symbol into `out`, padding included. Otherwise like
    /// [`read_checked_at`](Self::read_checked_at).
    ///
    /// # Errors
    /// [`SourceError::Geometry`] if there is no such source symbol, or if `out` has another length;
    /// otherwise those of [`read_checked_at`](Self::read_checked_at).
    pub(crate) fn read_symbol(
        &self,
        sbn: Sbn,
        esi: Esi,
        out: &mut [u8],
    ) -> Result<bool, SourceError> {
        check_size(out.len(), self.placement.symbol_size())?;
        let pieces = self.placement.column_pieces(sbn, esi, 0..out.len())?;
        out.fill(0);
        let mut deviates = false;
        for piece in pieces {
            if let Some(part) = out.get_mut(piece.in_columns) {
                deviates |= self.read_checked_at(piece.in_object, part)?;
            }
        }
        Ok(deviates)
    }

    /// Checks up to `count` files of a block, from the one after `before` others on, and starts
    /// again after the last one. True if one was written to, if that is
    /// [allowed](SourceFiles::allowing_growth).
    ///
    /// # Errors
    /// As [`check_unchanged`](Self::check_unchanged).
    pub(crate) fn check_some(
        &self,
        sbn: Sbn,
        before: usize,
        count: usize,
    ) -> Result<bool, SourceError> {
        let range = self.placement.block_range(sbn)?;
        if self.copy.is_some() {
            return Ok(false);
        }
        let length = (range.end - range.start) as usize;
        let pieces = || self.placement.extents().pieces(range.start, length);
        let all = pieces().count();
        let mut deviates = false;
        let first = before.checked_rem(all).unwrap_or(0);
        for piece in pieces().skip(first).chain(pieces()).take(count.min(all)) {
            deviates |= self.files.deviation(piece.file)?.is_some();
        }
        Ok(deviates)
    }

    /// Passes on the bytes of a block in the object's order, without padding, a chunk at a time, to
    /// be hashed. Checks after each read that the file has not changed.
    ///
    /// # Errors
    /// [`SourceError::Geometry`] if there is no such block, otherwise those of
    /// [`SourceFiles::read_exact_at`] and [`SourceFiles::check_unchanged`].
    pub fn for_each_chunk_of_block(
        &self,
        sbn: Sbn,
        show: impl FnMut(&[u8]),
    ) -> Result<(), SourceError> {
        let deviations = self.for_each_chunk_and_deviations(sbn, show)?;
        deviations.map_or(Ok(()), |deviations| Err(self.changed(&deviations)))
    }

    /// Like [`for_each_chunk_of_block`](Self::for_each_chunk_of_block), but returns the files that
    /// were written to when they were read, if that is [allowed](SourceFiles::allowing_growth).
    /// Each file is examined while it is open: a block may have thousands of them, and to open all
    /// of them again takes as long as to read them.
    ///
    /// # Errors
    /// As [`for_each_chunk_of_block`](Self::for_each_chunk_of_block).
    pub fn for_each_chunk_and_deviations(
        &self,
        sbn: Sbn,
        show: impl FnMut(&[u8]),
    ) -> Result<Option<Deviations>, SourceError> {
        let range = self.placement.block_range(sbn)?;
        let mut found: Vec<(FileIndex, Identity)> = Vec::new();
        let read = |offset, out: &mut [u8]| {
            self.read_and_note(offset, out, |file, now| match found.last_mut() {
                Some((last, state)) if *last == file => *state = now,
                _ => found.push((file, now)),
            })
        };
        for_each_chunk(range, read, show)?;
        Ok(Deviations::of(found))
    }

    /// Passes on the bytes of a block in whatever state its files are. Otherwise like
    /// [`for_each_chunk_of_block`](Self::for_each_chunk_of_block).
    ///
    /// # Errors
    /// [`SourceError::Geometry`] if there is no such block, otherwise those of
    /// [`SourceFiles::read_exact_at`].
    pub fn for_each_chunk_of_changed_block(
        &self,
        sbn: Sbn,
        show: impl FnMut(&[u8]),
    ) -> Result<(), SourceError> {
        let range = self.placement.block_range(sbn)?;
        for_each_chunk(range, |offset, out| self.read_at(offset, out), show)
    }

    /// The files of a block that cannot be read, or have changed, each with its error. Reads all of
    /// them. Files for which `may_change` is true may have been written to.
    ///
    /// # Errors
    /// [`SourceError::Geometry`] if there is no such block.
    pub fn failures_of_block(
        &self,
        sbn: Sbn,
        may_change: impl Fn(FileIndex) -> bool,
    ) -> Result<Vec<(FileIndex, SourceError)>, SourceError> {
        let range = self.placement.block_range(sbn)?;
        let length = (range.end - range.start) as usize;
        let mut chunk = vec![0; CHUNK];
        let mut failures: Vec<(FileIndex, SourceError)> = Vec::new();
        for piece in self.placement.extents().pieces(range.start, length) {
            let file = piece.file;
            if failures.last().is_some_and(|(last, _)| *last == file) {
                continue;
            }
            for start in (0..piece.within.len()).step_by(CHUNK) {
                let count = CHUNK.min(piece.within.len() - start);
                let part = chunk.get_mut(..count).unwrap_or_default();
                let read = self.files.read_checked_at(file, piece.offset + start as u64, part);
                let read = read.and_then(|now| match now {
                    Some(now) if !may_change(file) => self.files.check_contents(file, &now),
                    _ => Ok(()),
                });
                if let Err(error) = read {
                    failures.push((file, error));
                    break;
                }
            }
        }
        Ok(failures)
    }

    /// Checks that no contents have changed, by all that is known without reading them: a file may
    /// have got another name, link or mode.
    ///
    /// # Errors
    /// [`SourceError::Changed`] of the first file whose contents have.
    pub fn check_contents(&self, deviations: &Deviations) -> Result<(), SourceError> {
        deviations.states().try_for_each(|(file, now)| self.files.check_contents(*file, now))
    }

    /// Checks that the files of a block have not changed.
    ///
    /// # Errors
    /// [`SourceError::Geometry`] if there is no such block, otherwise those of
    /// [`SourceFiles::check_unchanged`].
    pub fn check_unchanged(&self, sbn: Sbn) -> Result<(), SourceError> {
        self.deviations(sbn)?.map_or(Ok(()), |deviations| Err(self.changed(&deviations)))
    }

    /// The files of a block that were written to; `None` unless that is
    /// [allowed](SourceFiles::allowing_growth). What was read of the block counts only if a hash
    /// confirms that it still has its bytes.
    ///
    /// # Errors
    /// As [`check_unchanged`](Self::check_unchanged).
    pub fn deviations(&self, sbn: Sbn) -> Result<Option<Deviations>, SourceError> {
        let range = self.placement.block_range(sbn)?;
        if self.copy.is_some() {
            return Ok(None);
        }
        let length = (range.end - range.start) as usize;
        let mut found = Vec::new();
        for piece in self.placement.extents().pieces(range.start, length) {
            if let Some(now) = self.files.deviation(piece.file)? {
                found.push((piece.file, now));
            }
        }
        Ok(Deviations::of(found))
    }

    /// The error that a block has other bytes than its manifest says. Of several files it names the
    /// first one that the block has bytes of. `None` if there is no such block.
    pub fn unlike(&self, sbn: Sbn) -> Option<SourceError> {
        let range = self.placement.block_range(sbn).ok()?;
        let length = (range.end - range.start) as usize;
        let piece = self.placement.extents().pieces(range.start, length).next()?;
        Some(self.files.unlike(piece.file))
    }

    /// The error that files have changed.
    pub fn changed(&self, deviations: &Deviations) -> SourceError {
        let (file, now) = deviations.first;
        self.files.changed(file, &now)
    }
}
