//! System calls that are repeated while signals interrupt them, and the reservation of space.

use rustix::fd::AsFd;
use rustix::fs::{self, FallocateFlags, SeekFrom};
use rustix::io::{Errno, Result};
use std::ops::Range;

/// Repeats a call while signals interrupt it.
pub(crate) fn retry<T>(mut call: impl FnMut() -> Result<T>) -> Result<T> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            result => return result,
        }
    }
}

/// Reserves blocks for `length` bytes of a file from `offset` on. Does nothing on a file system
/// that cannot (NFS before 4.2, FAT): there, writing fails when the disk is full. On tmpfs it only
/// checks the free space: to reserve memory tmpfs clears every page of it, which for a file of
/// gigabytes takes seconds in which nothing can be received.
pub(crate) fn reserve(file: impl AsFd, offset: u64, length: u64) -> Result<()> {
    if length == 0 {
        return Ok(()); // which fallocate would refuse
    }
    if let Some(free) = free_memory(&file)? {
        return if length <= free { Ok(()) } else { Err(Errno::NOSPC) };
    }
    match retry(|| fs::fallocate(file.as_fd(), FallocateFlags::empty(), offset, length)) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
        result => result,
    }
}

/// Free bytes of the file system, if it is tmpfs.
#[cfg(target_os = "linux")]
fn free_memory(file: impl AsFd) -> Result<Option<u64>> {
    let stat = retry(|| fs::fstatfs(file.as_fd()))?;
    // `TMPFS_MAGIC` of linux/magic.h. A tmpfs without a limit has no blocks at all.
    let is_tmpfs = stat.f_type == 0x0102_1994;
    let is_bounded = stat.f_blocks > 0;
    let free = stat.f_bavail.saturating_mul(u64::try_from(stat.f_bsize).unwrap_or(0));
    Ok(is_tmpfs.then_some(if is_bounded { free } else { u64::MAX }))
}

#[cfg(not(target_os = "linux"))]
fn free_memory(_file: impl AsFd) -> Result<Option<u64>> {
    Ok(None)
}

/// The first byte of a file's range that is not in a hole; the end of the range if there is none.
/// If the file system does not report holes, the first byte.
pub(crate) fn next_data(file: impl AsFd, range: Range<u64>) -> Result<u64> {
    match fs::seek(file, SeekFrom::Data(range.start)) {
        Ok(data) => Ok(data.clamp(range.start, range.end.max(range.start))),
        Err(Errno::NXIO) => Ok(range.end),
        Err(Errno::INVAL | Errno::OPNOTSUPP) => Ok(range.start),
        Err(errno) => Err(errno),
    }
}
