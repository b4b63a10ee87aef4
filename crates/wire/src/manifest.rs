//! The manifest: the tree of files that a session delivers, which objects hold their bytes, and the
//! hash of every source block. Whoever trusts its hash, by a signed session head or a ticket, can
//! check every byte that arrives.
//!
//! A [`Manifest`] is valid by construction: [`Manifest::new`] and [`Manifest::parse`] check the same
//! rules, so that no path leads out of the tree, nothing lies below a file or a symbolic link, no
//! extent reaches beyond its object, and no length overflows. It has one encoding: `emit` and
//! `parse` are inverse to each other.
//!
//! ```text
//! "FONTMAN" and the format version, 1
//! varint version
//! varint size, label in UTF-8
//! varint object count, then for each, in the order of TOIs:
//!     varint TOI less the previous one's (0 at first)
//!     15 bytes of object transmission information, as in the session head
//!     u8 content encoding, 0
//!     32 bytes for each source block: its hash
//! varint entry count, then for each, in the order of paths:
//!     u8 kind: 0 file, 1 directory, 2 symbolic link
//!     varint size, path
//!     file and directory: varint mode, varint seconds, varint nanoseconds
//!     file: varint segment count, then for each, in the file's order:
//!         varint TOI, varint offset in that object, varint length; or
//!         varint 0, varint length, for a hole
//!     symbolic link: varint size, target
//! ```

mod check;
mod emit;
mod parse;

use crate::hash::{Hash, object_hash, tree_hash};
use crate::instance::CodeError;
use crate::path::{PathError, RelativePath};
use fontana_fec::{Oti, OtiError};
use std::ops::Range;

/// Longest file in bytes: offsets in files are signed on most systems.
pub(crate) const MAX_FILE_LENGTH: u64 = i64::MAX as u64;

/// What a session delivers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    version: u64,
    label: String,
    /// Ascending by TOI.
    objects: Vec<ManifestObject>,
    /// Ascending by path.
    entries: Vec<Entry>,
}

/// One object of the session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestObject {
    /// Its number: [`Toi::is_content`](crate::Toi::is_content).
    pub toi: u32,
    /// How it is encoded.
    pub oti: Oti,
    /// Hash of each source block, as [`BlockHasher`](crate::BlockHasher) makes it.
    pub block_hashes: Vec<Hash>,
}

impl ManifestObject {
    /// Hash of the whole object.
    pub fn hash(&self) -> Hash {
        object_hash(self.oti.transfer_length, &self.block_hashes)
    }
}

/// One name in the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A regular file.
    File(FileEntry),
    /// A directory. Those that need no entry of their own (not empty, mode and time of no interest)
    /// may be left out.
    Directory(DirectoryEntry),
    /// A symbolic link.
    Symlink(SymlinkEntry),
}

/// A regular file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileEntry {
    /// Where it goes.
    pub path: RelativePath,
    /// Mode and time.
    pub metadata: Metadata,
    /// Where its bytes are, from its first to its last.
    pub segments: Vec<Segment>,
}

/// A directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryEntry {
    /// Where it goes.
    pub path: RelativePath,
    /// Mode and time.
    pub metadata: Metadata,
}

/// A symbolic link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SymlinkEntry {
    /// Where it goes.
    pub path: RelativePath,
    /// What it points to: any bytes but NUL, relative or absolute, possibly out of the tree. A
    /// receiver creates the link and never follows it.
    pub target: Vec<u8>,
}

impl SymlinkEntry {
    /// Longest target in bytes: PATH_MAX of Linux less the final zero.
    pub const MAX_TARGET_SIZE: usize = 4095;
}

/// What a file or directory has besides its name and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// Permission bits: at most [`Metadata::MAX_MODE`].
    pub mode: u32,
    /// Time of last modification, in unix seconds.
    pub mtime_seconds: i64,
    /// Nanoseconds after that: less than a thousand million.
    pub mtime_nanoseconds: u32,
}

impl Metadata {
    /// Read, write and execute for owner, group and others. A manifest sets no user id, group id or
    /// sticky bit.
    pub const MAX_MODE: u32 = 0o777;
}

/// A run of a file's bytes. Never empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Segment {
    /// Bytes of an object.
    Extent {
        /// The object.
        toi: u32,
        /// First byte in it.
        object_offset: u64,
        /// Bytes.
        length: u64,
    },
    /// Zeros that no object holds.
    Hole {
        /// Bytes.
        length: u64,
    },
}

/// A [`Segment`] and the range of the file that it fills.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedSegment {
    /// Bytes of the file.
    pub range: Range<u64>,
    /// Where they come from.
    pub segment: Segment,
}

impl Segment {
    /// Bytes of the file.
    pub const fn length(&self) -> u64 {
        match *self {
            Self::Extent { length, .. } | Self::Hole { length } => length,
        }
    }
}

impl FileEntry {
    /// A file that is exactly one object; no segment at all if it is empty.
    pub fn whole_object(path: RelativePath, metadata: Metadata, toi: u32, length: u64) -> Self {
        let extent = Segment::Extent { toi, object_offset: 0, length };
        Self { path, metadata, segments: (length > 0).then_some(extent).into_iter().collect() }
    }

    /// Bytes of the file. In a [`Manifest`] this does not overflow.
    pub fn length(&self) -> u64 {
        self.segments.iter().fold(0, |sum, segment| sum.saturating_add(segment.length()))
    }

    /// The segments with the range of the file that each fills. They tile it: every range begins
    /// where the one before it ends.
    pub fn placed_segments(&self) -> impl Iterator<Item = PlacedSegment> {
        self.segments.iter().scan(0_u64, |at, &segment| {
            let start = *at;
            *at = start.saturating_add(segment.length());
            Some(PlacedSegment { range: start..*at, segment })
        })
    }

    /// The ranges of the file that are holes.
    pub fn holes(&self) -> impl Iterator<Item = Range<u64>> {
        self.placed_segments()
            .filter(|placed| matches!(placed.segment, Segment::Hole { .. }))
            .map(|placed| placed.range)
    }
}

impl Entry {
    /// Where it goes.
    pub fn path(&self) -> &RelativePath {
        match self {
            Self::File(file) => &file.path,
            Self::Directory(directory) => &directory.path,
            Self::Symlink(link) => &link.path,
        }
    }
}

impl Manifest {
    /// Longest label in bytes: it is shown in a line.
    pub const MAX_LABEL_SIZE: usize = 255;

    /// A manifest of these objects and entries, which are put in order here.
    ///
    /// `version` is that of the content and the same as in the session head; `label` is a name for
    /// people.
    ///
    /// # Errors
    /// [`ManifestError`] says which rule is broken and by what.
    pub fn new(
        version: u64,
        label: impl Into<String>,
        mut objects: Vec<ManifestObject>,
        mut entries: Vec<Entry>,
    ) -> Result<Self, ManifestError> {
        objects.sort_by_key(|object| object.toi);
        entries.sort_by(|a, b| a.path().cmp(b.path()));
        let manifest = Self { version, label: label.into(), objects, entries };
        manifest.check()?;
        Ok(manifest)
    }

    /// Version of the content.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// A name for people; anything may be in it: [`Printable`](crate::Printable).
    pub fn label(&self) -> &str {
        &self.label
    }

    /// The objects, ascending by TOI.
    pub fn objects(&self) -> &[ManifestObject] {
        &self.objects
    }

    /// The entries, ascending by path: a directory before what is in it.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
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

    /// Bytes of all files, holes included.
    pub fn content_length(&self) -> u64 {
        self.files().fold(0, |sum, file| sum.saturating_add(file.length()))
    }

    /// Bytes of all objects: what has to be received.
    pub fn transfer_length(&self) -> u64 {
        self.objects.iter().fold(0, |sum, object| sum.saturating_add(object.oti.transfer_length))
    }

    /// Hash over all objects: equal for equal content in equal objects, whatever names and times
    /// the files have.
    pub fn tree_hash(&self) -> Hash {
        tree_hash(self.objects.iter().map(|object| (object.toi, object.hash())))
    }
}

/// Two paths of a manifest that differ in letter case only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseClash {
    /// The path that comes first in the manifest.
    pub first: RelativePath,
    /// The other one.
    pub second: RelativePath,
}

/// How large a manifest may be that somebody sends. Memory for it is some fifteen times its bytes at
/// the worst (short names, short extents), 150 to 200 bytes for each entry as a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ManifestLimits {
    /// Most bytes of the encoding.
    pub bytes: usize,
    /// Most objects.
    pub objects: usize,
    /// Most entries, directories included that are only implied by what is in them.
    pub entries: usize,
    /// Most segments of all files together.
    pub segments: usize,
    /// Most bytes of all files together, holes included.
    pub content_length: u64,
}

impl Default for ManifestLimits {
    /// A million files; 32 TiB of one file in blocks of some 80 MB, whose hashes take 13 MB.
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

/// Why bytes are not a manifest, or parts do not make one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    /// Not a manifest at all.
    #[error("not a manifest of Fontana")]
    Magic,
    /// A manifest from another version.
    #[error("manifest of format {0}, only 1 is known")]
    FormatVersion(u8),
    /// One of [`ManifestLimits`] is exceeded.
    #[error("the manifest has more than {limit} {what}")]
    Limit {
        /// What there is too much of.
        what: &'static str,
        /// How much there may be.
        limit: u64,
    },
    /// The bytes end too early, or an integer is not in its shortest form.
    #[error("the manifest is malformed at byte {position}")]
    Malformed {
        /// Offset of the byte.
        position: usize,
    },
    /// Something follows the last entry.
    #[error("the manifest is followed by {count} more bytes")]
    TrailingBytes {
        /// How many.
        count: usize,
    },
    /// The label is too long, or not UTF-8.
    #[error("the label is not {} bytes of UTF-8 at most", Manifest::MAX_LABEL_SIZE)]
    Label,
    /// An object's number is used twice or reserved.
    #[error("TOI {0} cannot be that of an object here")]
    Toi(u64),
    /// An object comes with a code that is not ours.
    #[error("object {toi}: {error}")]
    Code {
        /// The object.
        toi: u32,
        /// What is not ours.
        error: CodeError,
    },
    /// An object's transmission information makes no sense.
    #[error("object {toi}: {error}")]
    Oti {
        /// The object.
        toi: u32,
        /// Why not.
        error: OtiError,
    },
    /// Objects are sent as they are.
    #[error("object {toi}: content encoding {cenc} is not supported")]
    ContentEncoding {
        /// The object.
        toi: u32,
        /// The number of the encoding.
        cenc: u8,
    },
    /// Not one hash for each source block.
    #[error("object {toi} has {expected} source blocks and {actual} hashes")]
    BlockHashes {
        /// The object.
        toi: u32,
        /// Its source blocks.
        expected: u32,
        /// The hashes there are.
        actual: usize,
    },
    /// An entry of a kind that is not known.
    #[error("entry {index} is of the unknown kind {kind}")]
    Kind {
        /// Which entry, from 0.
        index: usize,
        /// Its kind.
        kind: u8,
    },
    /// A path that must not be.
    #[error("entry {index}: {error}")]
    Path {
        /// Which entry, from 0.
        index: usize,
        /// The rule it breaks.
        error: PathError,
    },
    /// Not in order, or twice.
    #[error("{path} is not in order or appears twice")]
    Order {
        /// The entry.
        path: RelativePath,
    },
    /// An entry inside something that is no directory.
    #[error("{path} lies below {parent}, which is not a directory")]
    NotADirectory {
        /// The entry.
        path: RelativePath,
        /// The file or link.
        parent: RelativePath,
    },
    /// More than permission bits, or too many nanoseconds.
    #[error("{path} has mode {:o} and {} nanoseconds", .metadata.mode, .metadata.mtime_nanoseconds)]
    Metadata {
        /// The entry.
        path: RelativePath,
        /// What it says.
        metadata: Metadata,
    },
    /// A link that points to nothing that could be.
    #[error(
        "the target of {path} is not 1 to {} bytes without a zero",
        SymlinkEntry::MAX_TARGET_SIZE
    )]
    Target {
        /// The link.
        path: RelativePath,
    },
    /// A segment of a file that is empty, continues the one before it, lies outside its object, or
    /// takes the file's length beyond 2^63.
    #[error("{path}: segment {segment} {reason}")]
    Segment {
        /// The file.
        path: RelativePath,
        /// Which segment, from 0.
        segment: usize,
        /// What is wrong with it.
        reason: &'static str,
    },
}
