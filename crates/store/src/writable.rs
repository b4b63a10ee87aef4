//! Directories of this user that forbid their owner to change the names in them, as a read-only
//! directory of a tree that was received before.

use crate::disk::Disk;
use rustix::fd::BorrowedFd;
use rustix::fs::Mode;
use rustix::io::{Errno, Result};

/// Makes a call that changes the names in `directory`. If only its mode forbids that, and it is
/// this user's own, the owner may write to it during the call.
pub(crate) fn with_write_access(
    disk: &dyn Disk,
    directory: BorrowedFd<'_>,
    call: impl Fn() -> Result<()>,
) -> Result<()> {
    match call() {
        Err(Errno::ACCESS) => {}
        result => return result,
    }
    let stat = disk.stat(directory)?;
    let mode = Mode::from_raw_mode(stat.st_mode & 0o7777);
    let access = mode | Mode::WUSR | Mode::XUSR;
    if access == mode || stat.st_uid != rustix::process::geteuid().as_raw() {
        return Err(Errno::ACCESS);
    }
    disk.set_mode(directory, access)?;
    let result = call();
    disk.set_mode(directory, mode)?;
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::HostDisk;
    use rustix::fd::AsFd;

    #[test]
    fn the_owner_may_write_to_a_directory_for_the_time_of_a_call() {
        let directory = tempfile::tempdir().unwrap();
        let file = std::fs::File::open(directory.path()).unwrap();
        let mode = || rustix::fs::fstat(&file).unwrap().st_mode & 0o7777;
        for before in [0o555, 0o500, 0o2555] {
            HostDisk.set_mode(file.as_fd(), Mode::from_raw_mode(before)).unwrap();
            // As the kernel does for users that are not root.
            let call = || if mode() & 0o300 == 0o300 { Ok(()) } else { Err(Errno::ACCESS) };
            assert_eq!(with_write_access(&HostDisk, file.as_fd(), call), Ok(()));
            let fails = || call().and(Err(Errno::ISDIR));
            assert_eq!(with_write_access(&HostDisk, file.as_fd(), fails), Err(Errno::ISDIR));
            assert_eq!(mode(), before);
        }
        HostDisk.set_mode(file.as_fd(), Mode::RWXU).unwrap();
        let refused = || Err(Errno::ACCESS);
        assert_eq!(with_write_access(&HostDisk, file.as_fd(), refused), Err(Errno::ACCESS));
        assert_eq!(mode(), 0o700);
    }
}
