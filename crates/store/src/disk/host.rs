//! The disk of the host: each method is one system call, with fallbacks for operations that a file
//! system does not support.

use super::Disk;
use crate::boot::BootId;
use crate::sys::{self, retry};
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::fs::{self, AtFlags, FallocateFlags, Mode, OFlags, RenameFlags, Stat, Timestamps};
use rustix::io::{Errno, Result};

/// The disk of the host.
#[derive(Clone, Copy, Debug, Default)]
pub struct HostDisk;

impl Disk for HostDisk {
    fn boot(&self) -> BootId {
        BootId::now()
    }

    fn open(
        &self,
        directory: BorrowedFd<'_>,
        name: &[u8],
        flags: OFlags,
        mode: Mode,
    ) -> Result<OwnedFd> {
        retry(|| fs::openat(directory, name, flags, mode))
    }

    fn stat(&self, file: BorrowedFd<'_>) -> Result<Stat> {
        fs::fstat(file)
    }

    fn stat_at(&self, directory: BorrowedFd<'_>, name: &[u8]) -> Result<Stat> {
        fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)
    }

    fn available(&self, file: BorrowedFd<'_>) -> Option<u64> {
        let stat = fs::fstatvfs(file).ok()?;
        Some(stat.f_bavail.saturating_mul(stat.f_frsize))
    }

    fn read(&self, file: BorrowedFd<'_>, out: &mut [u8], offset: u64) -> Result<usize> {
        retry(|| rustix::io::pread(file, &mut *out, offset))
    }

    fn write(&self, file: BorrowedFd<'_>, bytes: &[u8], offset: u64) -> Result<usize> {
        retry(|| rustix::io::pwrite(file, bytes, offset))
    }

    fn append(&self, file: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize> {
        retry(|| rustix::io::write(file, bytes))
    }

    fn set_length(&self, file: BorrowedFd<'_>, length: u64) -> Result<()> {
        retry(|| fs::ftruncate(file, length))
    }

    fn reserve(&self, file: BorrowedFd<'_>, offset: u64, length: u64) -> Result<()> {
        sys::reserve(file, offset, length)
    }

    fn punch(&self, file: BorrowedFd<'_>, offset: u64, length: u64) -> Result<()> {
        if length == 0 {
            return Ok(());
        }
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match retry(|| fs::fallocate(file, flags, offset, length)) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
            result => result,
        }
    }

    fn set_mode(&self, file: BorrowedFd<'_>, mode: Mode) -> Result<()> {
        fs::fchmod(file, mode)
    }

    fn set_times(&self, file: BorrowedFd<'_>, times: &Timestamps) -> Result<()> {
        fs::futimens(file, times)
    }

    fn set_times_at(
        &self,
        directory: BorrowedFd<'_>,
        name: &[u8],
        times: &Timestamps,
    ) -> Result<()> {
        fs::utimensat(directory, name, times, AtFlags::SYMLINK_NOFOLLOW)
    }

    fn sync(&self, file: BorrowedFd<'_>) -> Result<()> {
        retry(|| fs::fsync(file))
    }

    fn sync_data(&self, file: BorrowedFd<'_>) -> Result<()> {
        retry(|| fs::fdatasync(file))
    }

    fn sync_directory(&self, directory: BorrowedFd<'_>) -> Result<()> {
        match retry(|| fs::fsync(directory)) {
            // Some file systems return this error because a directory needs no sync.
            Err(Errno::INVAL) => Ok(()),
            result => result,
        }
    }

    fn sync_file_system(&self, file: BorrowedFd<'_>) -> Result<()> {
        fs::syncfs(file)
    }

    /// Since Linux 5.8: syncfs(2).
    fn reports_lost_writes(&self) -> bool {
        let system = rustix::system::uname();
        is_release_since(system.release().to_bytes(), (5, 8))
    }

    fn make_directory(&self, directory: BorrowedFd<'_>, name: &[u8], mode: Mode) -> Result<()> {
        fs::mkdirat(directory, name, mode)
    }

    fn make_link(&self, leads_to: &[u8], directory: BorrowedFd<'_>, name: &[u8]) -> Result<()> {
        fs::symlinkat(leads_to, directory, name)
    }

    fn rename(
        &self,
        from: BorrowedFd<'_>,
        old: &[u8],
        to: BorrowedFd<'_>,
        new: &[u8],
    ) -> Result<()> {
        fs::renameat(from, old, to, new)
    }

    fn rename_to_free(
        &self,
        from: BorrowedFd<'_>,
        old: &[u8],
        to: BorrowedFd<'_>,
        new: &[u8],
    ) -> Result<()> {
        match fs::renameat_with(from, old, to, new, RenameFlags::NOREPLACE) {
            // The file system does not support the flag, or the kernel the call.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => link_to_free(from, old, to, new),
            result => result,
        }
    }

    fn unlink(&self, directory: BorrowedFd<'_>, name: &[u8]) -> Result<()> {
        fs::unlinkat(directory, name, AtFlags::empty())
    }

    fn remove_directory(&self, directory: BorrowedFd<'_>, name: &[u8]) -> Result<()> {
        fs::unlinkat(directory, name, AtFlags::REMOVEDIR)
    }
}

/// True if a release of Linux (`6.1.0-18-amd64`) is `least` or later. False if it has another form.
fn is_release_since(release: &[u8], least: (u32, u32)) -> bool {
    let mut numbers = release.split(|byte| !byte.is_ascii_digit()).map(|digits| {
        std::str::from_utf8(digits).ok().and_then(|digits| digits.parse::<u32>().ok())
    });
    match (numbers.next().flatten(), numbers.next().flatten()) {
        (Some(major), Some(minor)) => (major, minor) >= least,
        _ => false,
    }
}

/// The fallback: for a moment the file has both names, never neither.
fn link_to_free(from: BorrowedFd<'_>, old: &[u8], to: BorrowedFd<'_>, new: &[u8]) -> Result<()> {
    fs::linkat(from, old, to, new, AtFlags::empty())?;
    fs::unlinkat(from, old, AtFlags::empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fd::AsFd;
    use std::fs::{File, read, write};

    type Rename = fn(BorrowedFd<'_>, &[u8], BorrowedFd<'_>, &[u8]) -> Result<()>;

    #[test]
    fn both_ways_to_rename_never_replace() {
        let ways: [Rename; 2] = [
            |from, old, to, new| HostDisk.rename_to_free(from, old, to, new),
            |from, old, to, new| link_to_free(from, old, to, new),
        ];
        for rename in ways {
            let dir = tempfile::tempdir().unwrap();
            let file = File::open(dir.path()).unwrap();
            let fd = file.as_fd();
            write(dir.path().join("old"), "new bytes").unwrap();
            write(dir.path().join("taken"), "old bytes").unwrap();
            assert_eq!(rename(fd, b"old", fd, b"taken"), Err(Errno::EXIST));
            assert_eq!(read(dir.path().join("taken")).unwrap(), b"old bytes");
            assert_eq!(rename(fd, b"old", fd, b"free"), Ok(()));
            assert_eq!(read(dir.path().join("free")).unwrap(), b"new bytes");
            assert!(!dir.path().join("old").exists());
        }
    }

    #[test]
    fn releases_are_compared_as_numbers() {
        let is_since = |release: &str| is_release_since(release.as_bytes(), (5, 8));
        for release in ["5.8", "5.8.0", "5.10.0-28-amd64", "6.1", "10.0.1"] {
            assert!(is_since(release), "{release}");
        }
        for release in ["5.7.19", "4.19.0", "3.10.0-1160.el7", "5", "", "x.y", "-5.9"] {
            assert!(!is_since(release), "{release}");
        }
    }

    #[test]
    fn a_short_file_is_read_as_far_as_it_goes() {
        let file = tempfile::tempfile().unwrap();
        HostDisk.write_all(file.as_fd(), b"abc", 3).unwrap();
        let mut out = [7; 8];
        assert_eq!(HostDisk.read_full(file.as_fd(), &mut out, 1), Ok(5));
        assert_eq!(&out, b"\0\0abc\x07\x07\x07");
        assert_eq!(HostDisk.read_full(file.as_fd(), &mut out, 6), Ok(0));
    }

    #[test]
    fn a_hole_reads_as_zeros_and_keeps_the_length() {
        let file = tempfile::tempfile().unwrap();
        let fd = file.as_fd();
        HostDisk.write_all(fd, &[1; 20_000], 0).unwrap();
        HostDisk.punch(fd, 4096, 8192).unwrap();
        HostDisk.punch(fd, 0, 0).unwrap();
        HostDisk.reserve(fd, 0, 0).unwrap();
        let mut out = vec![9; 20_001];
        assert_eq!(HostDisk.read_full(fd, &mut out, 0), Ok(20_000));
        assert!(out[..4096].iter().chain(&out[12_288..20_000]).all(|&byte| byte == 1));
    }
}
