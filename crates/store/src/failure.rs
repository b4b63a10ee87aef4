//! Errors of the disk, in classes that require different reactions.

use crate::geometry::GeometryError;
use crate::target::name::NameError;
use fontana_proto::Category;
use rustix::io::Errno;
use std::path::{Path, PathBuf};

/// The class of a system error.
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

/// An error of the receiving side's disk.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StagingError {
    /// A system call failed.
    #[error("cannot {doing} {path:?}: {errno}")]
    System {
        /// The path of the call.
        path: PathBuf,
        /// The operation that failed.
        doing: &'static str,
        /// The system's error number.
        errno: Errno,
    },
    /// The file system, or the user's quota on it, is full.
    #[error("disk full: no room for {path:?}{room}")]
    DiskFull {
        /// The file or directory that has no room.
        path: PathBuf,
        /// The missing space, if known.
        room: Room,
    },
    /// The disk of a file that is written in place is full.
    #[error("disk full: no room for {path:?}{room}")]
    DeviceFull {
        /// The file.
        path: PathBuf,
        /// The missing space.
        room: Room,
    },
    /// The final name is taken.
    #[error("{path:?} exists already")]
    Exists {
        /// The final name.
        path: PathBuf,
    },
    /// A directory has the final name. It is not replaced even with overwriting.
    #[error("{path:?} is a directory")]
    IsDirectory {
        /// The final name.
        path: PathBuf,
    },
    /// A directory is expected, and something else has its name. Symbolic links are not followed.
    #[error("{path:?} is no directory, and files are to be received into it")]
    NotADirectory {
        /// The path of what has the name.
        path: PathBuf,
    },
    /// Another receiver has locked the staging directory.
    #[error("{path:?} is in use by another receiver")]
    Busy {
        /// The staging directory.
        path: PathBuf,
    },
    /// A device is mounted, or another process uses it.
    #[error("{path:?} is mounted or in use")]
    InUse {
        /// The device.
        path: PathBuf,
    },
    /// Neither a block device nor a regular file.
    #[error("{path:?} is neither a block device nor a file")]
    NotWritable {
        /// The path.
        path: PathBuf,
    },
    /// The staging directory belongs to another user, or is not a directory.
    #[error("{path:?} is not a directory of this user")]
    NotOurs {
        /// The staging directory.
        path: PathBuf,
    },
    /// The file has been committed, or is being committed: it cannot be written to.
    #[error("{path:?} is committed")]
    Committed {
        /// The final name, or the staged file if it has none.
        path: PathBuf,
    },
    /// A name that is invalid on any disk.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The files or the object do not have what the caller requested.
    #[error(transparent)]
    Geometry(#[from] GeometryError),
}

/// The space that was needed on a full disk, and the space it has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Room {
    /// Bytes that were to be written or reserved at once; 0 for names and other small things.
    pub wanted: u64,
    /// Bytes that the file system reports as free for this user, if it does.
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

/// Converts the error of a system call on `path`; `doing` names the operation.
pub(crate) fn failed(path: &Path, doing: &'static str) -> impl FnOnce(Errno) -> StagingError {
    move |errno| match errno {
        Errno::NOSPC | Errno::DQUOT => {
            StagingError::DiskFull { path: path.to_owned(), room: Room::default() }
        }
        errno => StagingError::System { path: path.to_owned(), doing, errno },
    }
}

impl StagingError {
    /// The class of the error.
    pub fn category(&self) -> Category {
        match self {
            Self::System { errno, .. } => category_of(*errno),
            Self::DiskFull { .. } | Self::DeviceFull { .. } => Category::DiskFull,
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
