//! The parser of manifests. It compares sizes with the limits and with the remaining bytes before
//! it allocates memory.

use super::{
    DirectoryEntry, Entry, FileEntry, FileRun, Manifest, ManifestError, ManifestLimits,
    ManifestObject, Metadata, Segment, SymlinkEntry,
};
use crate::bytes::Reader;
use crate::content::ContentEncoding;
use crate::hash::Hash;
use crate::path::RelativePath;
use crate::{oti, varint};
use std::collections::BTreeMap;

pub(super) const MAGIC: &[u8; 7] = b"FONTMAN";
pub(super) const FORMAT_VERSION: u8 = 1;
/// The format of a manifest with runs.
pub(super) const WITH_RUNS: u8 = 2;
pub(super) const FILE: u8 = 0;
pub(super) const DIRECTORY: u8 = 1;
pub(super) const SYMLINK: u8 = 2;

/// Size in bytes of the shortest object: TOI, transmission information, content encoding.
const MIN_OBJECT_SIZE: usize = 1 + oti::MIN_SIZE + 1;
/// Size in bytes of the shortest entry: a link with a name and a target of one byte each.
const MIN_ENTRY_SIZE: usize = 5;
/// Size in bytes of the shortest run.
const MIN_RUN_SIZE: usize = 1 + Hash::SIZE;
/// Size in bytes of the shortest list of runs of an object.
const MIN_RUNS_SIZE: usize = 2 + MIN_RUN_SIZE;
/// Size in bytes of the shortest unsettled name.
const MIN_NAME_SIZE: usize = 2;
/// Size in bytes of the shortest segment: a short hole.
const MIN_SEGMENT_SIZE: usize = 2;

impl Manifest {
    /// Parses a manifest within the given limits.
    ///
    /// # Errors
    /// [`ManifestError`] if the bytes are not the encoding of a valid manifest.
    pub fn parse(bytes: &[u8], limits: &ManifestLimits) -> Result<Self, ManifestError> {
        if bytes.len() > limits.bytes {
            return Err(ManifestError::Limit { what: "bytes", limit: limits.bytes as u64 });
        }
        let mut parser = Parser {
            total: bytes.len(),
            reader: Reader::new(bytes),
            limits,
            segments: 0,
            content_length: 0,
        };
        if parser.take(MAGIC.len()).map_err(|_| ManifestError::Magic)? != MAGIC {
            return Err(ManifestError::Magic);
        }
        let has_runs = match parser.u8()? {
            FORMAT_VERSION => false,
            WITH_RUNS => true,
            version => return Err(ManifestError::FormatVersion(version)),
        };
        let version = parser.varint()?;
        let label = parser.label()?;
        let objects = parser.objects()?;
        let entries = parser.entries()?;
        let runs = if has_runs { parser.runs()? } else { BTreeMap::new() };
        let unsettled = parser.unsettled(entries.len())?;
        if !parser.reader.is_empty() {
            return Err(ManifestError::TrailingBytes { count: parser.reader.rest().len() });
        }
        let manifest = Self { version, label, objects, entries, runs, unsettled };
        manifest.check()?;
        Ok(manifest)
    }
}

struct Parser<'a, 'l> {
    /// Size of the manifest in bytes.
    total: usize,
    reader: Reader<'a>,
    limits: &'l ManifestLimits,
    /// Segments, and bytes of all files, so far.
    segments: usize,
    content_length: u64,
}

impl<'a> Parser<'a, '_> {
    fn label(&mut self) -> Result<String, ManifestError> {
        let label = self.sized(Manifest::MAX_LABEL_SIZE, ManifestError::Label)?;
        let label = str::from_utf8(label).map_err(|_| ManifestError::Label)?;
        Ok(label.to_owned())
    }

    fn objects(&mut self) -> Result<Vec<ManifestObject>, ManifestError> {
        let count = self.count("objects", self.limits.objects, MIN_OBJECT_SIZE)?;
        let mut objects = Vec::with_capacity(count);
        let mut toi = 0_u32;
        for _ in 0..count {
            let step = self.varint()?;
            let next = u64::from(toi).saturating_add(step);
            if step == 0 {
                return Err(ManifestError::Toi(next));
            }
            toi = u32::try_from(next).map_err(|_| ManifestError::Toi(next))?;
            objects.push(self.object(toi)?);
        }
        Ok(objects)
    }

    fn object(&mut self, toi: u32) -> Result<ManifestObject, ManifestError> {
        let malformed = self.malformed();
        let oti = oti::parse(&mut self.reader).ok_or(malformed)?;
        let oti = oti.map_err(|error| ManifestError::Code { toi, error })?;
        let cenc = self.u8()?;
        if cenc != ContentEncoding::Null.cenc() {
            return Err(ManifestError::ContentEncoding { toi, cenc });
        }
        let layout = oti.layout().map_err(|error| ManifestError::Oti { toi, error })?;
        let count = layout.block_count() as usize;
        let hashes = self.take(count.checked_mul(Hash::SIZE).ok_or(self.malformed())?)?;
        let (hashes, _) = hashes.as_chunks::<{ Hash::SIZE }>();
        Ok(ManifestObject { toi, oti, block_hashes: hashes.iter().copied().map(Hash).collect() })
    }

    fn entries(&mut self) -> Result<Vec<Entry>, ManifestError> {
        let count = self.count("entries", self.limits.entries, MIN_ENTRY_SIZE)?;
        let mut entries: Vec<Entry> = Vec::with_capacity(count);
        // In the order of paths, the components that a path does not share with its predecessor are
        // new.
        let mut names = 0_usize;
        for index in 0..count {
            let entry = self.entry(index)?;
            let path = entry.path();
            let shared = entries.last().map_or(0, |previous| path.shared_depth(previous.path()));
            let new = path.components().count().saturating_sub(shared);
            names = names.saturating_add(new);
            if names > self.limits.entries {
                let limit = self.limits.entries as u64;
                return Err(ManifestError::Limit { what: "entries", limit });
            }
            entries.push(entry);
        }
        Ok(entries)
    }

    /// Parses the runs of objects, of which there are some.
    fn runs(&mut self) -> Result<BTreeMap<u32, Vec<FileRun>>, ManifestError> {
        let rest = self.reader.rest().len();
        let count = self.count("objects with runs", self.limits.objects, MIN_RUNS_SIZE)?;
        if count == 0 {
            return Err(ManifestError::TrailingBytes { count: rest });
        }
        let (mut all, mut toi) = (BTreeMap::new(), 0_u32);
        for _ in 0..count {
            let step = self.varint()?;
            let next = u64::from(toi).saturating_add(step);
            toi = u32::try_from(next).map_err(|_| ManifestError::Runs { toi: next })?;
            // The remaining bytes bound their number.
            let runs = self.count("runs", self.limits.bytes, MIN_RUN_SIZE)?;
            let runs = (0..runs).map(|_| self.run()).collect::<Result<Vec<_>, _>>()?;
            if step == 0 || all.insert(toi, runs).is_some() {
                return Err(ManifestError::Runs { toi: next });
            }
        }
        Ok(all)
    }

    fn run(&mut self) -> Result<FileRun, ManifestError> {
        let length = self.varint()?;
        let (hash, _) = self.take(Hash::SIZE)?.as_chunks::<{ Hash::SIZE }>();
        let hash = hash.first().copied().map(Hash).ok_or(self.malformed())?;
        Ok(FileRun { length, hash })
    }

    /// Parses the list of unsettled names, which is absent if it is empty.
    fn unsettled(&mut self, entries: usize) -> Result<Vec<RelativePath>, ManifestError> {
        let rest = self.reader.rest().len();
        if rest == 0 {
            return Ok(Vec::new());
        }
        let count = self.count("unsettled names", self.limits.entries, MIN_NAME_SIZE)?;
        if count == 0 {
            return Err(ManifestError::TrailingBytes { count: rest });
        }
        let mut names = Vec::with_capacity(count);
        for index in entries..entries.saturating_add(count) {
            let size = self.varint()?;
            let path = RelativePath::new(self.take_u64(size)?)
                .map_err(|error| ManifestError::Path { index, error })?;
            names.push(path);
        }
        Ok(names)
    }

    fn entry(&mut self, index: usize) -> Result<Entry, ManifestError> {
        let kind = self.u8()?;
        let size = self.varint()?;
        let path = RelativePath::new(self.take_u64(size)?)
            .map_err(|error| ManifestError::Path { index, error })?;
        match kind {
            FILE => {
                let metadata = self.metadata(&path)?;
                let segments = self.segments()?;
                Ok(Entry::File(FileEntry { path, metadata, segments }))
            }
            DIRECTORY => {
                let metadata = self.metadata(&path)?;
                Ok(Entry::Directory(DirectoryEntry { path, metadata }))
            }
            SYMLINK => {
                let error = ManifestError::Target { path: path.clone() };
                let target = self.sized(SymlinkEntry::MAX_TARGET_SIZE, error)?.to_vec();
                Ok(Entry::Symlink(SymlinkEntry { path, target }))
            }
            kind => Err(ManifestError::Kind { index, kind }),
        }
    }

    fn metadata(&mut self, path: &RelativePath) -> Result<Metadata, ManifestError> {
        let mode = self.varint()?;
        let mtime_seconds = varint::to_signed(self.varint()?);
        let nanoseconds = self.varint()?;
        // A number that does not fit its field becomes the largest one, and is refused.
        let metadata = Metadata {
            mode: mode.try_into().unwrap_or(u32::MAX),
            mtime_seconds,
            mtime_nanoseconds: nanoseconds.try_into().unwrap_or(u32::MAX),
        };
        super::check::check_metadata(path, &metadata)?;
        Ok(metadata)
    }

    fn segments(&mut self) -> Result<Vec<Segment>, ManifestError> {
        let left = self.limits.segments.saturating_sub(self.segments);
        let count =
            self.count("segments", left, MIN_SEGMENT_SIZE).map_err(|error| match error {
                ManifestError::Limit { what, .. } => {
                    ManifestError::Limit { what, limit: self.limits.segments as u64 }
                }
                error => error,
            })?;
        self.segments = self.segments.saturating_add(count);
        let mut segments = Vec::with_capacity(count);
        for _ in 0..count {
            let segment = match self.varint()? {
                0 => Segment::Hole { length: self.varint()? },
                toi => Segment::Extent {
                    toi: u32::try_from(toi).map_err(|_| ManifestError::Toi(toi))?,
                    object_offset: self.varint()?,
                    length: self.varint()?,
                },
            };
            self.content_length = self.content_length.saturating_add(segment.length());
            let limit = self.limits.content_length;
            if self.content_length > limit {
                return Err(ManifestError::Limit { what: "bytes of content", limit });
            }
            segments.push(segment);
        }
        Ok(segments)
    }

    /// Parses a number of items that take at least `min_size` bytes each.
    fn count(
        &mut self,
        what: &'static str,
        limit: usize,
        min_size: usize,
    ) -> Result<usize, ManifestError> {
        let count = self.varint()?;
        if count > limit as u64 {
            return Err(ManifestError::Limit { what, limit: limit as u64 });
        }
        let count = count as usize;
        let rest = self.reader.rest().len();
        if count.checked_mul(min_size).is_none_or(|least| least > rest) {
            return Err(self.malformed());
        }
        Ok(count)
    }

    /// Parses a size and as many bytes; `error` if the size exceeds `limit`.
    fn sized(&mut self, limit: usize, error: ManifestError) -> Result<&'a [u8], ManifestError> {
        let size = self.varint()?;
        if size > limit as u64 { Err(error) } else { self.take_u64(size) }
    }

    fn take_u64(&mut self, size: u64) -> Result<&'a [u8], ManifestError> {
        let size = usize::try_from(size).map_err(|_| self.malformed())?;
        self.take(size)
    }

    fn take(&mut self, size: usize) -> Result<&'a [u8], ManifestError> {
        let error = self.malformed();
        self.reader.take(size).ok_or(error)
    }

    fn u8(&mut self) -> Result<u8, ManifestError> {
        let error = self.malformed();
        self.reader.u8().ok_or(error)
    }

    fn varint(&mut self) -> Result<u64, ManifestError> {
        let error = self.malformed();
        varint::parse(&mut self.reader).ok_or(error)
    }

    /// The error for an item that begins at the next byte.
    fn malformed(&self) -> ManifestError {
        ManifestError::Malformed { position: self.total.saturating_sub(self.reader.rest().len()) }
    }
}
