//! A block device, or a file, that is written in place, without staging and renaming.

use crate::disk::{Disk, HostDisk};
use crate::failure::{Room, StagingError, failed};
use crate::sys;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Advice, FallocateFlags, FileType, Mode, OFlags, SeekFrom, Stat};
use rustix::io::Errno;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A device or file that is written in place, held open.
#[derive(Clone, Debug)]
pub struct Device {
    path: PathBuf,
    file: Arc<OwnedFd>,
    /// Bytes of a device; `None` for a file, whose length is set.
    capacity: Option<u64>,
    identity: (u64, u64),
    /// The file did not exist before.
    is_new: bool,
}

/// The unit of `st_blocks` (stat(2)).
const BLOCK: u64 = 512;

/// Zeros per write if a device cannot zero a range by itself, and per comparison.
const ZEROS: usize = 1 << 20;

impl Device {
    /// Opens a block device that is not in use, or a regular file, which is created if it does not
    /// exist. Does not change existing contents.
    ///
    /// # Errors
    /// [`StagingError::InUse`] if the device is mounted, or in use otherwise;
    /// [`StagingError::Exists`] if the file exists and `overwrite` is not set;
    /// [`StagingError::NotWritable`] for anything else with this name; [`StagingError::System`].
    pub fn open(path: impl Into<PathBuf>, overwrite: bool) -> Result<Self, StagingError> {
        let path = path.into();
        let kind = |stat: &Stat| FileType::from_raw_mode(stat.st_mode);
        let there = match rustix::fs::stat(&path) {
            Ok(stat) => Some(stat),
            Err(Errno::NOENT) => None,
            Err(errno) => return Err(failed(&path, "examine")(errno)),
        };
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOCTTY;
        // For a block device, O_EXCL fails while the device is mounted or another process has
        // opened it with O_EXCL.
        let flags = match there.as_ref().map(kind) {
            None => flags | OFlags::CREATE | OFlags::EXCL,
            Some(FileType::BlockDevice) => flags | OFlags::EXCL,
            Some(FileType::RegularFile) if overwrite => flags,
            Some(FileType::RegularFile) => return Err(StagingError::Exists { path }),
            Some(_) => return Err(StagingError::NotWritable { path }),
        };
        let mode = Mode::from_raw_mode(0o644);
        let file = match sys::retry(|| rustix::fs::open(&path, flags, mode)) {
            Ok(file) => file,
            Err(Errno::BUSY) => return Err(StagingError::InUse { path }),
            Err(errno) => return Err(failed(&path, "open")(errno)),
        };
        let stat = rustix::fs::fstat(&file).map_err(failed(&path, "examine"))?;
        let (capacity, identity) = match kind(&stat) {
            FileType::BlockDevice => {
                let end = rustix::fs::seek(&file, SeekFrom::End(0));
                (Some(end.map_err(failed(&path, "measure"))?), (u64::MAX, stat.st_rdev))
            }
            FileType::RegularFile => (None, (stat.st_dev, stat.st_ino)),
            _ => return Err(StagingError::NotWritable { path }),
        };
        let is_new = there.is_none();
        Ok(Self { path, file: Arc::new(file), capacity, identity, is_new })
    }

    /// The path as the caller gave it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes of a device; `None` for a file, which the free space of its disk limits.
    pub fn capacity(&self) -> Option<u64> {
        self.capacity
    }

    /// Present length: all of a device, or the length of a file.
    pub(crate) fn length(&self) -> Result<u64, StagingError> {
        match self.capacity {
            Some(capacity) => Ok(capacity),
            None => rustix::fs::fstat(&self.file)
                .map(|stat| stat.st_size as u64)
                .map_err(failed(&self.path, "examine")),
        }
    }

    /// Identifies it among all devices and files of this host.
    pub fn identity(&self) -> (u64, u64) {
        self.identity
    }

    /// The device's model name, if the system knows it.
    pub fn model(&self) -> Option<String> {
        self.capacity?;
        let (major, minor) =
            (rustix::fs::major(self.identity.1), rustix::fs::minor(self.identity.1));
        let device = format!("/sys/dev/block/{major}:{minor}/device");
        let read = |name: &str| std::fs::read_to_string(format!("{device}/{name}")).ok();
        let words: Vec<_> = ["vendor", "model"].into_iter().filter_map(read).collect();
        let model = words.iter().map(|word| word.trim()).collect::<Vec<_>>().join(" ");
        Some(model).filter(|model| !model.trim().is_empty())
    }

    /// Reserves the space of a file of `length` bytes except its `holes`, which are in order. Does
    /// nothing for a device. Space that the file occupies already counts. If it fails, the file has
    /// its previous length, and a file that [`Device::open`] has created is removed.
    ///
    /// # Errors
    /// [`StagingError::DeviceFull`] with what is missing and what is free;
    /// [`StagingError::System`].
    pub fn reserve(&self, length: u64, holes: &[Range<u64>]) -> Result<(), StagingError> {
        if self.capacity.is_some() {
            return Ok(());
        }
        let before = rustix::fs::fstat(&self.file).map_err(failed(&self.path, "examine"))?;
        let ends = holes.iter().map(|hole| hole.start).chain([length]);
        let starts = [0].into_iter().chain(holes.iter().map(|hole| hole.end));
        let data = || starts.clone().zip(ends.clone()).filter(|(start, end)| start < end);
        let bytes = data().map(|(start, end)| end - start).sum::<u64>();
        let occupied = u64::try_from(before.st_blocks).unwrap_or(0).saturating_mul(BLOCK);
        let wanted = bytes.saturating_sub(occupied);
        let available = self.available();
        let reserved = if available.is_some_and(|available| available < wanted) {
            Err(Errno::NOSPC)
        } else {
            data().try_for_each(|(start, end)| sys::reserve(&self.file, start, end - start))
        };
        reserved.map_err(|errno| {
            if self.is_new && before.st_size == 0 {
                // Nothing is in it, and the next attempt must not find it.
                let _ = std::fs::remove_file(&self.path);
            } else {
                let _ = rustix::fs::ftruncate(&self.file, before.st_size as u64);
            }
            match errno {
                Errno::NOSPC | Errno::DQUOT => {
                    let room = Room { wanted, available };
                    StagingError::DeviceFull { path: self.path.clone(), room }
                }
                errno => failed(&self.path, "reserve")(errno),
            }
        })
    }

    /// Free bytes of the file's disk for this user; `None` for a device, if the system does not
    /// tell, or if a disk in memory has no limit.
    pub(crate) fn available(&self) -> Option<u64> {
        if self.capacity.is_some() {
            return None;
        }
        let stat = rustix::fs::fstatvfs(&self.file).ok().filter(|stat| stat.f_blocks > 0)?;
        Some(stat.f_bavail.saturating_mul(stat.f_frsize))
    }

    /// Sets the length of a file; does nothing for a device.
    ///
    /// # Errors
    /// [`StagingError::System`].
    pub fn set_length(&self, length: u64) -> Result<(), StagingError> {
        match self.capacity {
            Some(_) => Ok(()),
            None => sys::retry(|| rustix::fs::ftruncate(&self.file, length))
                .map_err(failed(&self.path, "resize")),
        }
    }

    /// Writes all of `bytes` at byte `offset`.
    ///
    /// # Errors
    /// [`StagingError::System`].
    pub fn write_all_at(&self, offset: u64, bytes: &[u8]) -> Result<(), StagingError> {
        let written = HostDisk.write_all(self.file.as_fd(), bytes, offset);
        written.map_err(failed(&self.path, "write"))
    }

    /// Fills `out` from byte `offset`.
    ///
    /// # Errors
    /// [`StagingError::System`], also if it ends before the end of `out`.
    pub fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<(), StagingError> {
        match HostDisk.read_full(self.file.as_fd(), out, offset) {
            Ok(count) if count == out.len() => Ok(()),
            Ok(_) => Err(failed(&self.path, "read")(Errno::IO)),
            Err(errno) => Err(failed(&self.path, "read")(errno)),
        }
    }

    /// Makes a range zeros. In a file it becomes a hole, which needs no room on the disk.
    ///
    /// # Errors
    /// [`StagingError::System`].
    pub fn zero(&self, range: Range<u64>) -> Result<(), StagingError> {
        let length = range.end.saturating_sub(range.start);
        if length == 0 {
            return Ok(());
        }
        if self.capacity.is_none() {
            let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            return match sys::retry(|| {
                rustix::fs::fallocate(&self.file, flags, range.start, length)
            }) {
                Ok(()) => Ok(()),
                // What is not in a hole has its room already.
                Err(_) => self.overwrite(range),
            };
        }
        // A device does this by itself if it can (BLKZEROOUT).
        let flags = FallocateFlags::ZERO_RANGE | FallocateFlags::KEEP_SIZE;
        if sys::retry(|| rustix::fs::fallocate(&self.file, flags, range.start, length)).is_ok() {
            return Ok(());
        }
        self.overwrite(range)
    }

    /// Writes zeros where a range is not a hole.
    fn overwrite(&self, range: Range<u64>) -> Result<(), StagingError> {
        let zeros = vec![0; ZEROS];
        let mut at = self.next_data(range.clone())?;
        while at < range.end {
            let count = (range.end - at).min(ZEROS as u64);
            self.write_all_at(at, zeros.get(..count as usize).unwrap_or_default())?;
            at = self.next_data(at + count..range.end)?;
        }
        Ok(())
    }

    /// True if a range is all zeros. Holes of a file are not read.
    ///
    /// # Errors
    /// [`StagingError::System`].
    pub fn is_zero(&self, range: Range<u64>) -> Result<bool, StagingError> {
        let mut chunk = vec![0; ZEROS];
        let mut at = self.next_data(range.clone())?;
        while at < range.end {
            let count = (range.end - at).min(ZEROS as u64);
            let bytes = chunk.get_mut(..count as usize).unwrap_or_default();
            self.read_exact_at(at, bytes)?;
            if bytes.iter().any(|&byte| byte != 0) {
                return Ok(false);
            }
            at = self.next_data(at + count..range.end)?;
        }
        Ok(true)
    }

    /// The first byte of a range that is not in a hole of a file; the end of the range if there is
    /// none. A device has no holes.
    fn next_data(&self, range: Range<u64>) -> Result<u64, StagingError> {
        if self.capacity.is_some() || range.start >= range.end {
            return Ok(range.start);
        }
        sys::next_data(&self.file, range).map_err(failed(&self.path, "examine"))
    }

    /// Waits until everything is on the disk, and drops the page cache, so that later reads come
    /// from the device, if the system allows it.
    ///
    /// # Errors
    /// [`StagingError::System`].
    pub fn settle(&self) -> Result<(), StagingError> {
        sys::retry(|| rustix::fs::fsync(&self.file)).map_err(failed(&self.path, "sync"))?;
        // Only advice: the system may ignore it.
        let _ = rustix::fs::fadvise(&self.file, 0, None, Advice::DontNeed);
        Ok(())
    }

    pub(crate) fn file(&self) -> &Arc<OwnedFd> {
        &self.file
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn a_hole_of_a_file_takes_no_room_and_no_time() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let device = Device::open(&path, false).unwrap();
        // As much as no disk has.
        let (start, end) = (1 << 20, 1 << 42);
        device.set_length(end).unwrap();
        device.write_all_at(0, &[7; 4096]).unwrap();
        device.write_all_at(start, &[7; 1 << 16]).unwrap();
        assert!(!device.is_zero(start - 1..end).unwrap());
        device.zero(start..end).unwrap();
        assert!(device.is_zero(start..end).unwrap());
        device.overwrite(start..end).unwrap();
        assert!(!device.is_zero(0..end).unwrap());
        assert!(std::fs::metadata(&path).unwrap().blocks() * BLOCK < 1 << 19);
    }
}
