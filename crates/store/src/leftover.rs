//! Staging directories that receivers have left in a target directory, to be listed before a user
//! resumes or removes one. Listing changes nothing. To remove one, enter it as a receiver does
//! ([`Staging::create`]), which locks it, and [remove](Staging::remove) it.

use crate::disk::Disk;
use crate::enter::is_locked;
use crate::failure::StagingError;
use crate::failure::failed;
use crate::journal::{Journal, Kept};
use crate::ours::STAGING_PREFIX;
use crate::staging::Staging;
use crate::staging::layout::{DESCRIPTION, OWNER, is_tag};
use crate::target::TargetDirectory;
use crate::timestamp::Timestamp;
use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::{Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

/// An existing staging directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    /// The tag that it was [created](Staging::create) with.
    pub tag: String,
    /// True if a receiver is using it.
    pub in_use: bool,
    /// Bytes that its files occupy on the disk.
    pub bytes_on_disk: u64,
    /// When its contents last changed.
    pub modified: Timestamp,
    /// Its contents, by its journal.
    pub kept: Kept,
    /// Its [description](Staging::describe); `None` if it has none.
    pub description: Option<Vec<u8>>,
    /// [Whose](Staging::assign) content it is; `None` if that was not said.
    pub owner: Option<Vec<u8>>,
}

/// Largest description that is read: the limit of a manifest.
const MAX_DESCRIPTION: usize = 64 << 20;
/// Longest owner that is read: a key.
const MAX_OWNER: usize = 256;

impl Staging {
    /// Stores a description of what is received, for [`TargetDirectory::leftovers`]. It is not
    /// synced, so readers must be able to recognise an incomplete one.
    ///
    /// # Errors
    /// [`StagingError::DiskFull`], [`StagingError::System`].
    pub fn describe(&self, words: &[u8]) -> Result<(), StagingError> {
        self.write_once(DESCRIPTION, words)
    }

    /// Stores whose content is received, at most 256 bytes, for
    /// [`TargetDirectory::leftovers`]. It is not synced.
    ///
    /// # Errors
    /// As [`describe`](Self::describe).
    pub fn assign(&self, owner: &[u8]) -> Result<(), StagingError> {
        self.write_once(OWNER, owner)
    }

    fn write_once(&self, name: &str, words: &[u8]) -> Result<(), StagingError> {
        // If it is the same, it is not written again: a crash while writing would lose it.
        let (disk, directory) = (self.disk(), self.directory().as_fd());
        if contents(disk, directory, name, words.len()).is_some_and(|there| there == words) {
            return Ok(());
        }
        let flags = OFlags::WRONLY
            | OFlags::CREATE
            | OFlags::TRUNC
            | OFlags::NOFOLLOW
            | OFlags::NOCTTY
            | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        disk.open(directory, name.as_bytes(), flags, mode)
            .and_then(|file| disk.write_all(file.as_fd(), words, 0))
            .map_err(failed(&self.path().join(name), "write"))
    }
}

impl TargetDirectory {
    /// The staging directories of this user in the target directory, by tag.
    ///
    /// # Errors
    /// [`StagingError::System`] if the directory cannot be listed. A staging directory that
    /// vanishes meanwhile, or cannot be read, is skipped.
    pub fn leftovers(&self) -> Result<Vec<Leftover>, StagingError> {
        let list = || failed(self.path(), "list");
        let mut leftovers = Vec::new();
        for entry in Dir::read_from(self.as_fd()).map_err(list())? {
            let entry = entry.map_err(list())?;
            let name = entry.file_name();
            let tag = name.to_bytes().strip_prefix(STAGING_PREFIX);
            let Some(tag) = tag.and_then(|tag| std::str::from_utf8(tag).ok()) else { continue };
            if !is_tag(tag) {
                continue;
            }
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let look = self
                .disk()
                .open(self.as_fd(), name.to_bytes(), flags, Mode::empty())
                .and_then(|directory| look(self.disk(), tag, directory.as_fd()));
            leftovers.extend(look.ok().flatten());
        }
        leftovers.sort_by(|a, b| a.tag.cmp(&b.tag));
        Ok(leftovers)
    }

    /// The [description](Staging::describe) of a staging directory, of at most `limit` bytes;
    /// `None` if there is none. Any process of the user may have written it: the caller must check
    /// it.
    pub fn description(&self, tag: &str, limit: usize) -> Option<Vec<u8>> {
        let name = format!("{}{tag}", String::from_utf8_lossy(STAGING_PREFIX));
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        if !is_tag(tag) {
            return None;
        }
        let disk = self.disk();
        let directory = disk.open(self.as_fd(), name.as_bytes(), flags, Mode::empty()).ok()?;
        contents(disk, directory.as_fd(), DESCRIPTION, limit)
    }
}

/// Reads the state of a staging directory; `None` if it belongs to another user.
fn look(
    disk: &dyn Disk,
    tag: &str,
    directory: BorrowedFd<'_>,
) -> rustix::io::Result<Option<Leftover>> {
    let stat = disk.stat(directory)?;
    if stat.st_uid != rustix::process::geteuid().as_raw() {
        return Ok(None);
    }
    let (mut bytes_on_disk, mut modified) = (0_u64, time_of(&stat));
    for entry in Dir::read_from(directory)? {
        let stat = match disk.stat_at(directory, entry?.file_name().to_bytes()) {
            Err(Errno::NOENT) => continue,
            stat => stat?,
        };
        if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile {
            // Blocks of 512 bytes, independent of the file system's block size (stat(2)).
            bytes_on_disk += u64::try_from(stat.st_blocks).unwrap_or(0) * 512;
            modified = modified.max(time_of(&stat));
        }
    }
    Ok(Some(Leftover {
        tag: tag.to_owned(),
        in_use: is_locked(disk, directory)?,
        bytes_on_disk,
        modified,
        kept: Journal::peek(disk, directory),
        description: contents(disk, directory, DESCRIPTION, MAX_DESCRIPTION),
        owner: contents(disk, directory, OWNER, MAX_OWNER),
    }))
}

fn time_of(stat: &rustix::fs::Stat) -> Timestamp {
    Timestamp { seconds: stat.st_mtime, nanoseconds: stat.st_mtime_nsec as u32 }
}

fn contents(
    disk: &dyn Disk,
    directory: BorrowedFd<'_>,
    name: &str,
    limit: usize,
) -> Option<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = disk.open(directory, name.as_bytes(), flags, Mode::empty()).ok()?;
    let size = usize::try_from(disk.stat(file.as_fd()).ok()?.st_size).ok()?;
    let mut bytes = vec![0; Some(size).filter(|&size| size <= limit)?];
    let count = disk.read_full(file.as_fd(), &mut bytes, 0).ok()?;
    bytes.truncate(count);
    Some(bytes)
}
