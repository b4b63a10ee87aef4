//! The manifest: the tree of files that a session delivers, the objects that hold their bytes, and
//! the hash of every source block. A receiver that trusts the manifest's hash, by a signed session
//! head or a ticket, can verify every byte.

mod check;
mod emit;
mod parse;

use crate::hash::{Hash, object_hash, tree_hash};
use crate::path::{PathError, RelativePath};
use fontana_fec::{CodeError, Oti, OtiError};
use std::collections::BTreeMap;
use std::ops::Range;

/// Longest file in bytes. Offsets in files are signed on most systems.
pub(crate) const MAX_FILE_LENGTH: u64 = i64::MAX as u64;

/// Description of all content of a session.
///
/// A [`Manifest`] is valid by construction: [`Manifest::new`] and [`Manifest::parse`] check the
/// same rules. No path leaves the tree, no entry lies below a file or a symbolic link, no extent
/// exceeds its object, and no length overflows. A manifest has one encoding: `emit` and `parse` are
/// inverse to each other.
///
/// ```text
/// "FONTMAN" and the format version: 1, or 2 with runs
/// varint version
/// varint size, label in UTF-8
/// varint object count, then for each, in the order of TOIs:
///     varint TOI less the previous one's (0 at first)
///     15 bytes of object transmission information, as in the session head
///     u8 content encoding, 0
///     32 bytes for each source block: its hash
/// varint entry count, then for each, in the order of paths:
///     u8 kind: 0 file, 1 directory, 2 symbolic link
///     varint size, path
///     file and directory: varint mode, varint seconds, varint nanoseconds
///     file: varint segment count, then for each, in the file's order:
///         varint TOI, varint offset in that object, varint length; or
///         varint 0, varint length, for a hole
///     symbolic link: varint size, target
/// if there are runs: varint count of objects with runs, then for each, in the order of TOIs:
///     varint TOI less the previous one's (0 at first)
///     varint run count, then for each: varint length, 32 bytes with its hash
/// if there are unsettled names: varint count, then for each, in their order:
///     varint size, path
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    version: u64,
    label: String,
    /// Objects, ascending by TOI.
    objects: Vec<ManifestObject>,
    /// Entries, ascending by path.
    entries: Vec<Entry>,
    /// Runs of objects, by TOI.
    runs: BTreeMap<u32, Vec<FileRun>>,
    /// Unsettled names, ascending.
    unsettled: Vec<RelativePath>,
}

/// One object of the session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestObject {
    /// Object number, for which [`Toi::is_content`](crate::Toi::is_content) is true.
    pub toi: u32,
    /// Transmission information.
    pub oti: Oti,
    /// Hash of each source block, made by [`BlockHasher`](crate::BlockHasher).
    pub block_hashes: Vec<Hash>,
}

impl ManifestObject {
    /// Hash of the whole object.
    pub fn hash(&self) -> Hash {
        object_hash(self.oti.transfer_length, &self.block_hashes)
    }
}

/// A run of an object's bytes that has a hash of its own, so that the files in it can be verified
/// before their source block is complete. A sender ends a run where a file ends, and where a block
/// does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileRun {
    /// Length in bytes, at least 1.
    pub length: u64,
    /// Hash of these bytes, made by [`RunHasher`](crate::RunHasher).
    pub hash: Hash,
}

impl FileRun {
    /// Bytes from which on a run ends with the next file. The hashes of runs then take less than a
    /// thousandth of their bytes.
    pub const LEAST: u64 = 64 << 10;
}

/// One name in the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A regular file.
    File(FileEntry),
    /// A directory. Directories that are not empty need no entry if their mode and time do not
    /// matter.
    Directory(DirectoryEntry),
    /// A symbolic link.
    Symlink(SymlinkEntry),
}

/// A regular file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileEntry {
    /// Path in the tree.
    pub path: RelativePath,
    /// Mode and time.
    pub metadata: Metadata,
    /// Segments that make up the file, in its order.
    pub segments: Vec<Segment>,
}

/// A directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryEntry {
    /// Path in the tree.
    pub path: RelativePath,
    /// Mode and time.
    pub metadata: Metadata,
}

/// A symbolic link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SymlinkEntry {
    /// Path in the tree.
    pub path: RelativePath,
    /// Target of the link: any bytes except NUL, relative or absolute, possibly outside the tree. A
    /// receiver creates the link and never follows it.
    pub target: Vec<u8>,
}

impl SymlinkEntry {
    /// Longest target in bytes: PATH_MAX of Linux without the final zero.
    pub const MAX_TARGET_SIZE: usize = 4095;
}

/// Mode and time of a file or directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// Permission bits, at most [`Metadata::MAX_MODE`].
    pub mode: u32,
    /// Time of last modification, in unix seconds.
    pub mtime_seconds: i64,
    /// Nanoseconds after `mtime_seconds`: less than 1 000 000 000.
    pub mtime_nanoseconds: u32,
}

impl Metadata {
    /// Largest mode: read, write and execute for owner, group and others. A manifest sets no
    /// setuid, setgid or sticky bit.
    pub const MAX_MODE: u32 = 0o777;
}

/// A run of a file's bytes, never empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Segment {
    /// Bytes of an object.
    Extent {
        /// Object number.
        toi: u32,
        /// Offset of the first byte in the object.
        object_offset: u64,
        /// Length in bytes.
        length: u64,
    },
    /// Zeros that are in no object.
    Hole {
        /// Length in bytes.
        length: u64,
    },
}

/// A [`Segment`] and the range of the file that it fills.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedSegment {
    /// Bytes of the file that the segment fills.
    pub range: Range<u64>,
    /// Source of these bytes.
    pub segment: Segment,
}

impl Segment {
    /// Length in bytes.
    pub const fn length(&self) -> u64 {
        match *self {
            Self::Extent { length, .. } | Self::Hole { length } => length,
        }
    }
}

impl FileEntry {
    /// A file that is exactly one object. An empty file has no segment.
    pub fn whole_object(path: RelativePath, metadata: Metadata, toi: u32, length: u64) -> Self {
        let extent = Segment::Extent { toi, object_offset: 0, length };
        Self { path, metadata, segments: (length > 0).then_some(extent).into_iter().collect() }
    }

    /// Length of the file in bytes. In a [`Manifest`] this does not overflow.
    pub fn length(&self) -> u64 {
        self.segments.iter().fold(0, |sum, segment| sum.saturating_add(segment.length()))
    }

    /// Segments with the range of the file that each fills. Every range begins where the previous
    /// one ends.
    pub fn placed_segments(&self) -> impl Iterator<Item = PlacedSegment> {
        self.segments.iter().scan(0_u64, |at, &segment| {
            let start = *at;
            *at = start.saturating_add(segment.length());
            Some(PlacedSegment { range: start..*at, segment })
        })
    }

    /// Ranges of the file that are holes.
    pub fn holes(&self) -> impl Iterator<Item = Range<u64>> {
        self.placed_segments()
            .filter(|placed| matches!(placed.segment, Segment::Hole { .. }))
            .map(|placed| placed.range)
    }
}

impl Entry {
    /// Path in the tree.
    pub fn path(&self) -> &RelativePath {
        match self {
            Self::File(file) => &file.path,
            Self::Directory(directory) => &directory.path,
            Self::Symlink(link) => &link.path,
        }
    }
}

impl Manifest {
    /// Longest label in bytes. Programs show it in one line.
    pub const MAX_LABEL_SIZE: usize = 255;

    /// A manifest of these objects and entries, which the function sorts.
    ///
    /// `version` is the version of the content, the same as in the session head. `label` is a name
    /// for users.
    ///
    /// # Errors
    /// [`ManifestError`] names the violated rule and the violating part.
    pub fn new(
        version: u64,
        label: impl Into<String>,
        mut objects: Vec<ManifestObject>,
        mut entries: Vec<Entry>,
    ) -> Result<Self, ManifestError> {
        objects.sort_by_key(|object| object.toi);
        entries.sort_by(|a, b| a.path().cmp(b.path()));
        let (label, runs, unsettled) = (label.into(), BTreeMap::new(), Vec::new());
        let manifest = Self { version, label, objects, entries, runs, unsettled };
        manifest.check()?;
        Ok(manifest)
    }

    /// The manifest with runs of objects, by TOI: format 2. Those of an object are all of it.
    ///
    /// # Errors
    /// [`ManifestError::Runs`] if the runs of an object are not all of it, or one is empty, or lies
    /// in two blocks, or there is no such object.
    pub fn with_runs(mut self, runs: BTreeMap<u32, Vec<FileRun>>) -> Result<Self, ManifestError> {
        self.runs = runs;
        self.check_runs()?;
        Ok(self)
    }

    /// The manifest with these unsettled names, which the function sorts.
    ///
    /// # Errors
    /// [`ManifestError::Order`] if a name appears twice, or is the path of an entry.
    pub fn with_unsettled(mut self, mut names: Vec<RelativePath>) -> Result<Self, ManifestError> {
        names.sort();
        self.unsettled = names;
        self.check_unsettled()?;
        Ok(self)
    }

    /// Version of the content.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Name for users. It may contain any characters; display it with
    /// [`Printable`](crate::Printable).
    pub fn label(&self) -> &str {
        &self.label
    }

    /// The objects, ascending by TOI.
    pub fn objects(&self) -> &[ManifestObject] {
        &self.objects
    }

    /// The runs of an object, in its order; none if only its blocks have hashes.
    pub fn runs(&self, toi: u32) -> &[FileRun] {
        self.runs.get(&toi).map_or(&[], Vec::as_slice)
    }

    /// The entries, ascending by path: a directory precedes its content.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Unsettled names, ascending: a file or link of this name exists at the publisher, but changes
    /// at present, so that this version does not contain it. A receiver that removes what a version
    /// does not contain leaves these names, and everything below them, as they are.
    pub fn unsettled(&self) -> &[RelativePath] {
        &self.unsettled
    }

    /// The object with this number.
    pub fn object(&self, toi: u32) -> Option<&ManifestObject> {
        let index = self.objects.binary_search_by_key(&toi, |object| object.toi).ok()?;
        self.objects.get(index)
    }

    /// The regular files among the entries.
    pub fn files(&self) -> impl Iterator<Item = &FileEntry> {
        self.entries.iter().filter_map(|entry| match entry {
            Entry::File(file) => Some(file),
            Entry::Directory(_) | Entry::Symlink(_) => None,
        })
    }

    /// Length of all files in bytes, holes included.
    pub fn content_length(&self) -> u64 {
        self.files().fold(0, |sum, file| sum.saturating_add(file.length()))
    }

    /// Length of all objects in bytes, which a receiver has to receive.
    pub fn transfer_length(&self) -> u64 {
        self.objects.iter().fold(0, |sum, object| sum.saturating_add(object.oti.transfer_length))
    }

    /// What a receiver may have to store, in bytes: the larger one of what it receives and of the
    /// length of all files, holes included.
    pub fn largest_length(&self) -> u64 {
        self.transfer_length().max(self.content_length())
    }

    /// Hash over all objects. Manifests with equal objects have the same hash, regardless of the
    /// names and times of the files.
    pub fn tree_hash(&self) -> Hash {
        tree_hash(self.objects.iter().map(|object| (object.toi, object.hash())))
    }
}

/// Two paths of a manifest that differ in letter case only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseClash {
    /// Path that comes first in the manifest.
    pub first: RelativePath,
    /// Path that comes later.
    pub second: RelativePath,
}

/// Limits on the size of a received manifest. In memory a manifest takes up to 15 times its encoded
/// size (short names, short extents), and typically 150 to 200 bytes per entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ManifestLimits {
    /// Largest encoded size in bytes.
    pub bytes: usize,
    /// Largest number of objects.
    pub objects: usize,
    /// Largest number of entries, including directories that only appear in the paths of entries.
    pub entries: usize,
    /// Largest number of segments of all files together.
    pub segments: usize,
    /// Largest length of all files together in bytes, holes included.
    pub content_length: u64,
}

impl Default for ManifestLimits {
    /// Limits for a million files, or for one file of 32 TiB in blocks of about 80 MB, whose hashes
    /// take 13 MB.
    fn default() -> Self {
        Self {
            bytes: 64 << 20,
            objects: 1 << 16,
            entries: 1_000_000,
            segments: 1_000_000,
            content_length: 1 << 45,
        }
    }
}

/// Reason why bytes, or parts, do not make a valid manifest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    /// Bytes that do not begin as a manifest.
    #[error("not a manifest of Fontana")]
    Magic,
    /// An unknown version of the format.
    #[error("manifest of format {0}, only 1 and 2 are known")]
    FormatVersion(u8),
    /// A size above one of [`ManifestLimits`].
    #[error("the manifest has more than {limit} {what}")]
    Limit {
        /// Name of the limited quantity.
        what: &'static str,
        /// Largest value allowed.
        limit: u64,
    },
    /// Bytes that end too early, or an integer that is not in its shortest form.
    #[error("the manifest is malformed at byte {position}")]
    Malformed {
        /// Offset in bytes.
        position: usize,
    },
    /// Bytes after the last name, or an empty list of runs or unsettled names.
    #[error("the manifest is followed by {count} more bytes")]
    TrailingBytes {
        /// Number of bytes.
        count: usize,
    },
    /// A label that is too long, or not UTF-8.
    #[error("the label is not {} bytes of UTF-8 at most", Manifest::MAX_LABEL_SIZE)]
    Label,
    /// An object number that is repeated or reserved.
    #[error("TOI {0} cannot be that of an object here")]
    Toi(u64),
    /// An object with an unsupported code.
    #[error("object {toi}: {error}")]
    Code {
        /// Object number.
        toi: u32,
        /// The unsupported code.
        error: CodeError,
    },
    /// An object with invalid transmission information.
    #[error("object {toi}: {error}")]
    Oti {
        /// Object number.
        toi: u32,
        /// The invalid part.
        error: OtiError,
    },
    /// An object with a content encoding. Fontana sends objects without encoding.
    #[error("object {toi}: content encoding {cenc} is not supported")]
    ContentEncoding {
        /// Object number.
        toi: u32,
        /// Number of the encoding.
        cenc: u8,
    },
    /// A number of hashes that is not the number of source blocks.
    #[error("object {toi} has {expected} source blocks and {actual} hashes")]
    BlockHashes {
        /// Object number.
        toi: u32,
        /// Number of source blocks.
        expected: u32,
        /// Number of hashes.
        actual: usize,
    },
    /// Runs that are not all of an object in order, or of no object.
    #[error("object {toi}: the runs are not those of its bytes")]
    Runs {
        /// Object number.
        toi: u64,
    },
    /// An entry of an unknown kind.
    #[error("entry {index} is of the unknown kind {kind}")]
    Kind {
        /// Index of the entry, from 0.
        index: usize,
        /// Number of the kind.
        kind: u8,
    },
    /// An entry or an unsettled name with an invalid path.
    #[error("entry {index}: {error}")]
    Path {
        /// Index of the entry, from 0. Unsettled names are counted after the entries.
        index: usize,
        /// The violated rule.
        error: PathError,
    },
    /// An entry or an unsettled name that is not in order, or repeated.
    #[error("{path} is not in order or appears twice")]
    Order {
        /// The path.
        path: RelativePath,
    },
    /// An entry below something that is not a directory.
    #[error("{path} lies below {parent}, which is not a directory")]
    NotADirectory {
        /// Path of the entry.
        path: RelativePath,
        /// Path of the file or link.
        parent: RelativePath,
    },
    /// A mode beyond the permission bits, or too many nanoseconds.
    #[error("{path} has mode {:o} and {} nanoseconds", .metadata.mode, .metadata.mtime_nanoseconds)]
    Metadata {
        /// Path of the entry.
        path: RelativePath,
        /// Mode and time of the entry.
        metadata: Metadata,
    },
    /// An invalid target of a symbolic link.
    #[error(
        "the target of {path} is not 1 to {} bytes without a zero",
        SymlinkEntry::MAX_TARGET_SIZE
    )]
    Target {
        /// Path of the link.
        path: RelativePath,
    },
    /// A segment that is empty, continues the previous one, exceeds its object, or extends the file
    /// beyond 2^63 bytes.
    #[error("{path}: segment {segment} {reason}")]
    Segment {
        /// Path of the file.
        path: RelativePath,
        /// Index of the segment, from 0.
        segment: usize,
        /// The violated rule.
        reason: &'static str,
    },
}
