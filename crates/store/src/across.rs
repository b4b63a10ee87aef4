//! Files that get their names on another file system than the staging directory's, below a mount
//! point in the target directory: they are copied there, synced, and renamed there.

use crate::attributes::{FileAttributes, set_metadata};
use crate::disk::Disk;
use crate::ours::STAGING_PREFIX;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{FileType, Mode, OFlags, Stat, Timespec, Timestamps};
use rustix::io::{Errno, Result};

/// Bytes that are copied at a time.
const CHUNK: usize = 1 << 20;

/// A staged file or link, by its name in the staging directory.
#[derive(Clone, Copy)]
pub(crate) struct Staged<'a> {
    pub(crate) directory: BorrowedFd<'a>,
    pub(crate) name: &'a [u8],
}

/// A copy of a staged file or link, under a name of our own.
pub(crate) struct Copied {
    pub(crate) name: Vec<u8>,
    /// `None`: it is a link.
    file: Option<OwnedFd>,
}

impl Copied {
    /// Waits until it is on the disk. A link is there with its name.
    pub(crate) fn sync(&self, disk: &dyn Disk) -> Result<()> {
        self.file.as_ref().map_or(Ok(()), |file| disk.sync(file.as_fd()))
    }
}

/// Copies a file into a directory, under a name of our own. A copy that an earlier run left is
/// replaced. The staged file stays. The caller [syncs](Copied::sync) the copy. `attributes`: those
/// that it gets; those of the staged file, which is settled, if `None`.
pub(crate) fn copy(
    disk: &dyn Disk,
    from: Staged<'_>,
    directory: BorrowedFd<'_>,
    attributes: Option<&FileAttributes>,
) -> Result<Copied> {
    let stat = disk.stat_at(from.directory, from.name)?;
    let copy = name_of_copy(&stat);
    match disk.unlink(directory, &copy) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(errno) => return Err(errno),
    }
    let copied = match FileType::from_raw_mode(stat.st_mode) {
        FileType::Symlink => copy_link(disk, from, directory, &copy).map(|()| None),
        _ => copy_bytes(disk, from, &stat, directory, &copy).and_then(|file| {
            set_attributes(disk, file.as_fd(), &stat, attributes)?;
            Ok(Some(file))
        }),
    };
    if copied.is_err() {
        // Its space is needed.
        let _ = disk.unlink(directory, &copy);
    }
    copied.map(|file| Copied { name: copy, file })
}

/// The same for each copy of a staged file.
fn name_of_copy(stat: &Stat) -> Vec<u8> {
    const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let mut name = [STAGING_PREFIX, b"new-"].concat();
    let mut rest = stat.st_ino;
    for _ in 0..6 {
        name.push(DIGITS.get((rest % 36) as usize).copied().unwrap_or(b'0'));
        rest /= 36;
    }
    name
}

fn copy_link(
    disk: &dyn Disk,
    from: Staged<'_>,
    directory: BorrowedFd<'_>,
    copy: &[u8],
) -> Result<()> {
    let leads_to = rustix::fs::readlinkat(from.directory, from.name, Vec::new())?;
    disk.make_link(leads_to.as_bytes(), directory, copy)
}

fn copy_bytes(
    disk: &dyn Disk,
    from: Staged<'_>,
    stat: &Stat,
    directory: BorrowedFd<'_>,
    copy: &[u8],
) -> Result<OwnedFd> {
    let read = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
    let old = disk.open(from.directory, from.name, read, Mode::empty())?;
    let write = OFlags::RDWR
        | OFlags::CREATE
        | OFlags::EXCL
        | OFlags::NOFOLLOW
        | OFlags::NOCTTY
        | OFlags::CLOEXEC;
    let new = disk.open(directory, copy, write, Mode::RUSR | Mode::WUSR)?;
    let length = u64::try_from(stat.st_size).unwrap_or(0);
    disk.set_length(new.as_fd(), length)?;
    let (mut chunk, mut at) = (vec![0; CHUNK], 0);
    while at < length {
        let count = disk.read_full(old.as_fd(), &mut chunk, at)?;
        let bytes = chunk.get(..count).unwrap_or_default();
        if bytes.is_empty() {
            // It has become shorter.
            return Err(Errno::IO);
        }
        // Zeros are there already, as a hole.
        if bytes.iter().any(|&byte| byte != 0) {
            disk.write_all(new.as_fd(), bytes, at)?;
        }
        at = at.saturating_add(count as u64);
    }
    Ok(new)
}

fn set_attributes(
    disk: &dyn Disk,
    copy: BorrowedFd<'_>,
    stat: &Stat,
    attributes: Option<&FileAttributes>,
) -> Result<()> {
    if let Some(attributes) = attributes {
        let created = Mode::from_raw_mode(stat.st_mode & 0o777);
        return set_metadata(disk, copy, created, attributes);
    }
    let omit = Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_OMIT };
    let modified = Timespec { tv_sec: stat.st_mtime, tv_nsec: (stat.st_mtime_nsec as u32).into() };
    let times = Timestamps { last_access: omit, last_modification: modified };
    disk.set_times(copy, &times)?;
    disk.set_mode(copy, Mode::from_raw_mode(stat.st_mode & 0o7777))
}
