//! Permissions and times of files and directories.

use crate::disk::Disk;
use crate::timestamp::Timestamp;
use rustix::fd::BorrowedFd;
use rustix::fs::{Mode, Stat, Timespec, Timestamps};

/// The permissions and the modification time that a commit gives a file or directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileAttributes {
    /// Permission bits. The process's umask applies; set-user-id, set-group-id and sticky bits are
    /// dropped.
    pub mode: u32,
    /// Time of last modification; `None` keeps the time of receiving.
    pub modified: Option<Timestamp>,
}

impl Default for FileAttributes {
    fn default() -> Self {
        Self { mode: 0o644, modified: None }
    }
}

/// Whether [`set_metadata`] would change nothing of a file or directory.
pub(crate) fn has_metadata(stat: &Stat, permitted: Mode, attributes: &FileAttributes) -> bool {
    let has_time = attributes.modified.is_none_or(|Timestamp { seconds, nanoseconds }| {
        stat.st_mtime == seconds && stat.st_mtime_nsec as u32 == nanoseconds.min(999_999_999)
    });
    has_time && has_mode(stat, permitted, attributes)
}

/// Whether a file or directory has those of its permission bits that are `permitted`.
pub(crate) fn has_mode(stat: &Stat, permitted: Mode, attributes: &FileAttributes) -> bool {
    stat.st_mode & 0o7777 == permitted_mode(permitted, attributes).as_raw_mode()
}

fn permitted_mode(permitted: Mode, attributes: &FileAttributes) -> Mode {
    Mode::from_raw_mode(permitted.as_raw_mode() & attributes.mode & 0o777)
}

/// Sets the time of a file or directory, and those of its permission bits that are `permitted`.
pub(crate) fn set_metadata(
    disk: &dyn Disk,
    file: BorrowedFd<'_>,
    permitted: Mode,
    attributes: &FileAttributes,
) -> rustix::io::Result<()> {
    if let Some(times) = times(attributes) {
        disk.set_times(file, &times)?;
    }
    disk.set_mode(file, permitted_mode(permitted, attributes))
}

/// Sets the time of a file by its name in `directory`. A link is not followed.
pub(crate) fn set_time_at(
    disk: &dyn Disk,
    directory: BorrowedFd<'_>,
    name: &str,
    attributes: &FileAttributes,
) -> rustix::io::Result<()> {
    let set = |times| disk.set_times_at(directory, name.as_bytes(), &times);
    times(attributes).map_or(Ok(()), set)
}

/// The times to set, if there is one.
fn times(attributes: &FileAttributes) -> Option<Timestamps> {
    let Timestamp { seconds, nanoseconds } = attributes.modified?;
    let omit = Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_OMIT };
    let modified = Timespec { tv_sec: seconds, tv_nsec: nanoseconds.min(999_999_999).into() };
    Some(Timestamps { last_access: omit, last_modification: modified })
}
