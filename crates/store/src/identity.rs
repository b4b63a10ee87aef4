//! States of a file, and how two of them differ.

use crate::timestamp::Timestamp;
use rustix::fs::Stat;

/// The difference of a file from its earlier state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Its size in bytes.
    Size {
        /// Bytes when it was first opened.
        before: u64,
        /// Now.
        now: u64,
    },
    /// Another file has its path.
    Replaced,
    /// Its contents or metadata changed.
    Modified,
    /// Its path does not exist any more.
    Missing,
    /// Its bytes are not those of its manifest, although its size and time are.
    Unlike,
}

impl std::fmt::Display for Change {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Size { before, now } => write!(f, "it had {before} bytes and has {now}"),
            Self::Replaced => f.write_str("another file is in its place"),
            Self::Modified => f.write_str("it was modified"),
            Self::Missing => f.write_str("it is gone"),
            Self::Unlike => f.write_str("its bytes are not those of its manifest"),
        }
    }
}

/// Identifies a state of a file.
///
/// Times have the resolution of the file system: a write in the same clock tick (milliseconds on
/// Linux) as the first look at the file is not detected here, but by the receivers' hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Device and inode number.
    pub inode: (u64, u64),
    /// Bytes.
    pub size: u64,
    /// Time of the last change of the contents.
    pub modified: Timestamp,
    /// Time of the last change of contents or metadata, which no program can set back. It is no
    /// content: it changes with permissions, links and names, too.
    pub changed: Timestamp,
}

impl Identity {
    pub(crate) fn new(stat: &Stat) -> Self {
        let timestamp = |seconds, nanoseconds| Timestamp { seconds, nanoseconds };
        Self {
            inode: (stat.st_dev, stat.st_ino),
            size: u64::try_from(stat.st_size).unwrap_or(0),
            modified: timestamp(stat.st_mtime, stat.st_mtime_nsec as u32),
            changed: timestamp(stat.st_ctime, stat.st_ctime_nsec as u32),
        }
    }

    /// The difference of `now` from `self` that is one of contents, by all that is known without
    /// reading them.
    pub(crate) fn change(&self, now: &Self) -> Option<Change> {
        if self.inode != now.inode {
            Some(Change::Replaced)
        } else if self.size != now.size {
            Some(Change::Size { before: self.size, now: now.size })
        } else {
            (self.modified != now.modified).then_some(Change::Modified)
        }
    }
}
