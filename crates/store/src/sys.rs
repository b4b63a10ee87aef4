//! System calls on whole buffers, with fallbacks for operations that a file system does not
//! support.

use rustix::fd::AsFd;
use rustix::fs::{self, FallocateFlags, RenameFlags};
use rustix::io::{Errno, Result};

/// Reads until `out` is full. Returns the number of bytes, which is smaller only at the end of the
/// file.
pub(crate) fn read_full_at(file: impl AsFd, mut offset: u64, out: &mut [u8]) -> Result<usize> {
    let mut done = 0;
    while let Some(rest) = out.get_mut(done..).filter(|rest| !rest.is_empty()) {
        match rustix::io::pread(file.as_fd(), rest, offset) {
            Ok(0) => break,
            Ok(count) => {
                done += count;
                offset += count as u64;
            }
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(done)
}

/// Writes all of `bytes`.
pub(crate) fn write_all_at(file: impl AsFd, mut offset: u64, mut bytes: &[u8]) -> Result<()> {
    while !bytes.is_empty() {
        match rustix::io::pwrite(file.as_fd(), bytes, offset) {
            // No system returns this; an error avoids an endless loop.
            Ok(0) => return Err(Errno::IO),
            Ok(count) => {
                bytes = bytes.get(count..).unwrap_or_default();
                offset += count as u64;
            }
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

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

/// Returns the blocks of a byte range to the file system, if it can.
pub(crate) fn punch_hole(file: impl AsFd, offset: u64, length: u64) -> Result<()> {
    if length == 0 {
        return Ok(());
    }
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    match retry(|| fs::fallocate(file.as_fd(), flags, offset, length)) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
        result => result,
    }
}

/// Renames a file without replacing anything. [`Errno::EXIST`] if the new name is taken.
pub(crate) fn rename_noreplace(
    from: impl AsFd,
    old: &[u8],
    to: impl AsFd,
    new: &[u8],
) -> Result<()> {
    match fs::renameat_with(&from, old, &to, new, RenameFlags::NOREPLACE) {
        // The file system does not support the flag, or the kernel the call.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => link_noreplace(from, old, to, new),
        result => result,
    }
}

/// The fallback: for a moment the file has both names, never neither.
fn link_noreplace(from: impl AsFd, old: &[u8], to: impl AsFd, new: &[u8]) -> Result<()> {
    fs::linkat(&from, old, &to, new, fs::AtFlags::empty())?;
    fs::unlinkat(&from, old, fs::AtFlags::empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{read, write};

    type Rename =
        fn(&std::fs::File, &[u8], &std::fs::File, &[u8]) -> std::result::Result<(), Errno>;

    #[test]
    fn both_ways_to_rename_never_replace() {
        let ways: [Rename; 2] =
            [|a, b, c, d| rename_noreplace(a, b, c, d), |a, b, c, d| link_noreplace(a, b, c, d)];
        for rename in ways {
            let dir = tempfile::tempdir().unwrap();
            let fd = std::fs::File::open(dir.path()).unwrap();
            write(dir.path().join("old"), "new bytes").unwrap();
            write(dir.path().join("taken"), "old bytes").unwrap();
            assert_eq!(rename(&fd, b"old", &fd, b"taken"), Err(Errno::EXIST));
            assert_eq!(read(dir.path().join("taken")).unwrap(), b"old bytes");
            assert_eq!(rename(&fd, b"old", &fd, b"free"), Ok(()));
            assert_eq!(read(dir.path().join("free")).unwrap(), b"new bytes");
            assert!(!dir.path().join("old").exists());
        }
    }

    #[test]
    fn a_short_file_is_read_as_far_as_it_goes() {
        let file = tempfile::tempfile().unwrap();
        write_all_at(&file, 3, b"abc").unwrap();
        let mut out = [7; 8];
        assert_eq!(read_full_at(&file, 1, &mut out), Ok(5));
        assert_eq!(&out, b"\0\0abc\x07\x07\x07");
        assert_eq!(read_full_at(&file, 6, &mut out), Ok(0));
    }

    #[test]
    fn a_hole_reads_as_zeros_and_keeps_the_length() {
        let file = tempfile::tempfile().unwrap();
        write_all_at(&file, 0, &[1; 20_000]).unwrap();
        punch_hole(&file, 4096, 8192).unwrap();
        punch_hole(&file, 0, 0).unwrap();
        reserve(&file, 0, 0).unwrap();
        let mut out = vec![9; 20_001];
        assert_eq!(read_full_at(&file, 0, &mut out), Ok(20_000));
        assert!(out[..4096].iter().chain(&out[12_288..20_000]).all(|&byte| byte == 1));
    }
}
