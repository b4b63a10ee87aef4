//! What receivers have left in a target directory: to be listed before somebody goes on with it or
//! removes it. Looking changes nothing; to remove one, enter it as a receiver does
//! ([`Staging::create`]) and [remove](Staging::remove) it: then the lock keeps others out.

use crate::enter::is_locked;
use crate::failure::StagingError;
use crate::failure::failed;
use crate::journal::{Journal, Kept};
use crate::staging::Staging;
use crate::staging::layout::{DESCRIPTION, is_tag};
use crate::sys;
use crate::target::STAGING_PREFIX;
use crate::target::TargetDirectory;
use crate::timestamp::Timestamp;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

/// A staging directory that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    /// What it was [created](Staging::create) for.
    pub tag: String,
    /// Whether a receiver is using it.
    pub in_use: bool,
    /// Bytes that its files occupy on the disk.
    pub bytes_on_disk: u64,
    /// When something was put into it last.
    pub modified: Timestamp,
    /// What it holds, by its journal.
    pub kept: Kept,
    /// What it was [described](Staging::describe) as; `None` if it was not.
    pub description: Option<Vec<u8>>,
}

/// Largest description that is read: a manifest has at most as many bytes.
const MAX_DESCRIPTION: usize = 64 << 20;

impl Staging {
    /// Says what is being received, for those who find the directory later. It is not synced: who
    /// reads it must be able to tell whether it is whole.
    ///
    /// # Errors
    /// [`StagingError::DiskFull`], [`StagingError::System`].
    pub fn describe(&self, words: &[u8]) -> Result<(), StagingError> {
        // Whoever dies while writing it anew would take away what was there.
        if description(self.directory(), words.len()).is_some_and(|there| there == words) {
            return Ok(());
        }
        let flags = OFlags::WRONLY
            | OFlags::CREATE
            | OFlags::TRUNC
            | OFlags::NOFOLLOW
            | OFlags::NOCTTY
            | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        sys::retry(|| rustix::fs::openat(self.directory(), DESCRIPTION, flags, mode))
            .and_then(|file| sys::write_all_at(file, 0, words))
            .map_err(failed(&self.path().join(DESCRIPTION), "write"))
    }
}

impl TargetDirectory {
    /// The staging directories of this user in the target directory, by tag.
    ///
    /// # Errors
    /// [`StagingError::System`] if the directory cannot be listed. A staging directory that
    /// vanishes meanwhile or cannot be looked into is left out.
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
            let look = rustix::fs::openat(self.as_fd(), name, flags, Mode::empty())
                .and_then(|directory| look(tag, &directory));
            leftovers.extend(look.ok().flatten());
        }
        leftovers.sort_by(|a, b| a.tag.cmp(&b.tag));
        Ok(leftovers)
    }

    /// What a staging directory was [described](Staging::describe) as, in at most `limit` bytes;
    /// `None` if it is not there or was not. Anybody's word: see that it is what it should be.
    pub fn description(&self, tag: &str, limit: usize) -> Option<Vec<u8>> {
        let name = format!("{}{tag}", String::from_utf8_lossy(STAGING_PREFIX));
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        if !is_tag(tag) {
            return None;
        }
        let directory = rustix::fs::openat(self.as_fd(), &*name, flags, Mode::empty()).ok()?;
        description(&directory, limit)
    }
}

/// Looks into a staging directory; `None` if it is another user's.
fn look(tag: &str, directory: &OwnedFd) -> rustix::io::Result<Option<Leftover>> {
    let stat = rustix::fs::fstat(directory)?;
    if stat.st_uid != rustix::process::geteuid().as_raw() {
        return Ok(None);
    }
    let (mut bytes_on_disk, mut modified) = (0_u64, time_of(&stat));
    for entry in Dir::read_from(directory)? {
        let stat =
            match rustix::fs::statat(directory, entry?.file_name(), AtFlags::SYMLINK_NOFOLLOW) {
                Err(Errno::NOENT) => continue,
                stat => stat?,
            };
        if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile {
            // Blocks of 512 bytes, whatever the file system's own are (stat(2)).
            bytes_on_disk += u64::try_from(stat.st_blocks).unwrap_or(0) * 512;
            modified = modified.max(time_of(&stat));
        }
    }
    Ok(Some(Leftover {
        tag: tag.to_owned(),
        in_use: is_locked(directory)?,
        bytes_on_disk,
        modified,
        kept: Journal::peek(directory),
        description: description(directory, MAX_DESCRIPTION),
    }))
}

fn time_of(stat: &rustix::fs::Stat) -> Timestamp {
    Timestamp { seconds: stat.st_mtime, nanoseconds: stat.st_mtime_nsec as u32 }
}

fn description(directory: &OwnedFd, limit: usize) -> Option<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::openat(directory, DESCRIPTION, flags, Mode::empty()).ok()?;
    let size = usize::try_from(rustix::fs::fstat(&file).ok()?.st_size).ok()?;
    let mut bytes = vec![0; Some(size).filter(|&size| size <= limit)?];
    let count = sys::read_full_at(&file, 0, &mut bytes).ok()?;
    bytes.truncate(count);
    Some(bytes)
}
