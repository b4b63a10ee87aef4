//! What can go wrong with a disk, in the classes that call for different answers.

use crate::geometry::GeometryError;
use crate::target::name::NameError;
use fontana_proto::Category;
use rustix::io::Errno;
use std::path::{Path, PathBuf};

/// The class of an error number.
pub(crate) fn category_of(errno: Errno) -> Category {
    match errno {
        Errno::NOSPC | Errno::DQUOT => Category::DiskFull,
        Errno::ACCESS
        | Errno::PERM
        | Errno::ROFS
        | Errno::NOENT
        | Errno::NOTDIR
        | Errno::ISDIR
        | Errno::EXIST
        | Errno::NOTEMPTY
        | Errno::LOOP
        | Errno::NAMETOOLONG
        | Errno::XDEV
        | Errno::TXTBSY
        | Errno::NXIO
        | Errno::ILSEQ => Category::Refused,
        _ => Category::Io,
    }
}

/// The receiving side's disk refused or failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StagingError {
    /// A system call failed.
    #[error("cannot {doing} {path:?}: {errno}")]
    System {
        /// What it was called on.
        path: PathBuf,
        /// What was tried.
        doing: &'static str,
        /// The system's answer.
        errno: Errno,
    },
    /// The file system, or the user's quota on it, is full.
    #[error("disk full: no room for {path:?}{room}")]
    DiskFull {
        /// The file or directory that has no room.
        path: PathBuf,
        /// How much was missing, where that is known.
        room: Room,
    },
    /// Something has the final name already.
    #[error("{path:?} exists already")]
    Exists {
        /// The final name.
        path: PathBuf,
    },
    /// A directory has the final name: not even overwriting would replace it.
    #[error("{path:?} is a directory")]
    IsDirectory {
        /// The final name.
        path: PathBuf,
    },
    /// Something else stands where a directory should be: a symbolic link is never followed.
    #[error("{path:?} is no directory, and files are to be received into it")]
    NotADirectory {
        /// What is in the way.
        path: PathBuf,
    },
    /// Another receiver holds the staging directory.
    #[error("{path:?} is in use by another receiver")]
    Busy {
        /// The staging directory.
        path: PathBuf,
    },
    /// A device is mounted, or somebody else uses it.
    #[error("{path:?} is mounted or in use")]
    InUse {
        /// The device.
        path: PathBuf,
    },
    /// Neither a block device nor a regular file.
    #[error("{path:?} is neither a block device nor a file")]
    NotWritable {
        /// What has the name.
        path: PathBuf,
    },
    /// The staging directory belongs to another user, or is none.
    #[error("{path:?} is not a directory of this user")]
    NotOurs {
        /// The staging directory.
        path: PathBuf,
    },
    /// The file left staging, or is about to: nothing may write to it any more.
    #[error("{path:?} is committed")]
    Committed {
        /// The final name, or the staged file if it has none.
        path: PathBuf,
    },
    /// A name that is refused, whatever the disk says.
    #[error(transparent)]
    Name(#[from] NameError),
    /// Something was asked for that the files or the object do not have.
    #[error(transparent)]
    Geometry(#[from] GeometryError),
}

/// What was wanted of a full disk and what it has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Room {
    /// Bytes that were to be written or reserved at once; 0 for names and other small things.
    pub wanted: u64,
    /// Bytes that the file system says are free for this user, if it says so.
    pub available: Option<u64>,
}

impl std::fmt::Display for Room {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self { wanted: 0, .. } => Ok(()),
            Self { wanted, available: None } => write!(f, " ({wanted} bytes wanted)"),
            Self { wanted, available: Some(available) } => {
                write!(f, " ({wanted} bytes wanted, {available} free)")
            }
        }
    }
}

/// Says what a system call on `path` was for.
pub(crate) fn failed(path: &Path, doing: &'static str) -> impl FnOnce(Errno) -> StagingError {
    move |errno| match errno {
        Errno::NOSPC | Errno::DQUOT => {
            StagingError::DiskFull { path: path.to_owned(), room: Room::default() }
        }
        errno => StagingError::System { path: path.to_owned(), doing, errno },
    }
}

impl StagingError {
    /// The class of the failure.
    pub fn category(&self) -> Category {
        match self {
            Self::System { errno, .. } => category_of(*errno),
            Self::DiskFull { .. } => Category::DiskFull,
            Self::Exists { .. }
            | Self::IsDirectory { .. }
            | Self::NotADirectory { .. }
            | Self::Busy { .. }
            | Self::InUse { .. }
            | Self::NotWritable { .. }
            | Self::NotOurs { .. }
            | Self::Name(_) => Category::Refused,
            Self::Committed { .. } | Self::Geometry(_) => Category::Geometry,
        }
    }
}
