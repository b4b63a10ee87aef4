//! Calls that the content does not need, and how they may fail.
//!
//! | call | it may fail | what follows |
//! |---|---|---|
//! | set permissions | in any way | files have those that they were created with: at most the sender's, and read and write for their owner |
//! | set times | in any way | files have the times of their reception |
//! | reserve space | unless the disk is full | a full disk is noticed later |
//! | free space of repair symbols that are not needed any more | in any way | they take it until the object is complete |
//! | sync a file, a directory or the file system | if the system does not know the call | a crash may lose what was received |
//! | remove the staging directory | in any way | it stays, and the next receiver of the content removes it |
//!
//! A sync that fails in another way (EIO, ENOSPC, EDQUOT) is an error: what was received may be
//! lost. All other calls are needed: their errors are those of the file, the directory or the
//! reception that they are for.

use super::Disk;
use crate::boot::BootId;
use crate::lock::Lock;
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags, Stat, Timestamps};
use rustix::io::{Errno, Result};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A kind of call that the content does not need.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum OptionalCall {
    /// Permissions of a file or directory.
    SetMode,
    /// Times of a file or directory.
    SetTimes,
    /// Space for a file.
    Reserve,
    /// Space that is not needed any more.
    Free,
    /// Waiting until bytes or names are on the disk.
    Sync,
    /// Removal of what a reception does not need any more.
    RemoveStaging,
}

impl OptionalCall {
    /// Whether the reception goes on after this error.
    pub(crate) fn may_fail_with(self, errno: Errno) -> bool {
        match self {
            Self::SetMode | Self::SetTimes | Self::Free | Self::RemoveStaging => true,
            Self::Reserve => !matches!(errno, Errno::NOSPC | Errno::DQUOT | Errno::FBIG),
            Self::Sync => matches!(errno, Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP),
        }
    }
}

/// A disk that goes on without calls that the content does not need, and remembers the first
/// failure of each kind.
#[derive(Debug)]
pub(crate) struct TolerantDisk {
    disk: Arc<dyn Disk>,
    tolerated: Lock<Tolerated>,
}

#[derive(Debug, Default)]
struct Tolerated {
    kinds: BTreeSet<OptionalCall>,
    /// Those that were not taken yet.
    news: Vec<(OptionalCall, Errno)>,
}

impl TolerantDisk {
    pub(crate) fn new(disk: Arc<dyn Disk>) -> Self {
        Self { disk, tolerated: Lock::default() }
    }

    /// The result of a call, without an error that may be tolerated.
    pub(crate) fn tolerate(&self, call: OptionalCall, result: Result<()>) -> Result<()> {
        match result {
            Err(errno) if call.may_fail_with(errno) => {
                let mut tolerated = self.tolerated.lock();
                if tolerated.kinds.insert(call) {
                    tolerated.news.push((call, errno));
                }
                Ok(())
            }
            result => result,
        }
    }

    /// The failures that were tolerated since the last call, one of each kind.
    pub(crate) fn take_tolerated(&self) -> Vec<(OptionalCall, Errno)> {
        std::mem::take(&mut self.tolerated.lock().news)
    }
}

impl Disk for TolerantDisk {
    fn boot(&self) -> BootId {
        self.disk.boot()
    }

    fn open(
        &self,
        directory: BorrowedFd<'_>,
        name: &[u8],
        flags: OFlags,
        mode: Mode,
    ) -> Result<OwnedFd> {
        self.disk.open(directory, name, flags, mode)
    }

    fn stat(&self, file: BorrowedFd<'_>) -> Result<Stat> {
        self.disk.stat(file)
    }

    fn stat_at(&self, directory: BorrowedFd<'_>, name: &[u8]) -> Result<Stat> {
        self.disk.stat_at(directory, name)
    }

    fn available(&self, file: BorrowedFd<'_>) -> Option<u64> {
        self.disk.available(file)
    }

    fn read(&self, file: BorrowedFd<'_>, out: &mut [u8], offset: u64) -> Result<usize> {
        self.disk.read(file, out, offset)
    }

    fn write(&self, file: BorrowedFd<'_>, bytes: &[u8], offset: u64) -> Result<usize> {
        self.disk.write(file, bytes, offset)
    }

    fn append(&self, file: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize> {
        self.disk.append(file, bytes)
    }

    fn set_length(&self, file: BorrowedFd<'_>, length: u64) -> Result<()> {
        self.disk.set_length(file, length)
    }

    fn reserve(&self, file: BorrowedFd<'_>, offset: u64, length: u64) -> Result<()> {
        self.tolerate(OptionalCall::Reserve, self.disk.reserve(file, offset, length))
    }

    fn punch(&self, file: BorrowedFd<'_>, offset: u64, length: u64) -> Result<()> {
        self.tolerate(OptionalCall::Free, self.disk.punch(file, offset, length))
    }

    fn set_mode(&self, file: BorrowedFd<'_>, mode: Mode) -> Result<()> {
        self.tolerate(OptionalCall::SetMode, self.disk.set_mode(file, mode))
    }

    fn set_times(&self, file: BorrowedFd<'_>, times: &Timestamps) -> Result<()> {
        self.tolerate(OptionalCall::SetTimes, self.disk.set_times(file, times))
    }

    fn set_times_at(
        &self,
        directory: BorrowedFd<'_>,
        name: &[u8],
        times: &Timestamps,
    ) -> Result<()> {
        let result = self.disk.set_times_at(directory, name, times);
        self.tolerate(OptionalCall::SetTimes, result)
    }

    fn sync(&self, file: BorrowedFd<'_>) -> Result<()> {
        self.tolerate(OptionalCall::Sync, self.disk.sync(file))
    }

    fn sync_data(&self, file: BorrowedFd<'_>) -> Result<()> {
        self.tolerate(OptionalCall::Sync, self.disk.sync_data(file))
    }

    fn sync_directory(&self, directory: BorrowedFd<'_>) -> Result<()> {
        self.tolerate(OptionalCall::Sync, self.disk.sync_directory(directory))
    }

    fn sync_file_system(&self, file: BorrowedFd<'_>) -> Result<()> {
        self.tolerate(OptionalCall::Sync, self.disk.sync_file_system(file))
    }

    fn reports_lost_writes(&self) -> bool {
        self.disk.reports_lost_writes()
    }

    fn make_directory(&self, directory: BorrowedFd<'_>, name: &[u8], mode: Mode) -> Result<()> {
        self.disk.make_directory(directory, name, mode)
    }

    fn make_link(&self, leads_to: &[u8], directory: BorrowedFd<'_>, name: &[u8]) -> Result<()> {
        self.disk.make_link(leads_to, directory, name)
    }

    fn rename(
        &self,
        from: BorrowedFd<'_>,
        old: &[u8],
        to: BorrowedFd<'_>,
        new: &[u8],
    ) -> Result<()> {
        self.disk.rename(from, old, to, new)
    }

    fn rename_to_free(
        &self,
        from: BorrowedFd<'_>,
        old: &[u8],
        to: BorrowedFd<'_>,
        new: &[u8],
    ) -> Result<()> {
        self.disk.rename_to_free(from, old, to, new)
    }

    fn unlink(&self, directory: BorrowedFd<'_>, name: &[u8]) -> Result<()> {
        self.disk.unlink(directory, name)
    }

    fn remove_directory(&self, directory: BorrowedFd<'_>, name: &[u8]) -> Result<()> {
        self.disk.remove_directory(directory, name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_call_may_fail_as_the_table_says_and_is_told_once() {
        let disk = TolerantDisk::new(Arc::new(super::super::HostDisk));
        let tolerated = |call, errno| disk.tolerate(call, Err(errno)).is_ok();
        use OptionalCall::{Free, RemoveStaging, SetMode, SetTimes};
        for call in [SetMode, SetTimes, Free, RemoveStaging] {
            for errno in [Errno::PERM, Errno::OPNOTSUPP, Errno::ROFS, Errno::IO] {
                assert!(tolerated(call, errno), "{call:?} {errno}");
            }
        }
        assert!(tolerated(OptionalCall::Reserve, Errno::IO));
        assert!(!tolerated(OptionalCall::Reserve, Errno::NOSPC));
        for errno in [Errno::INVAL, Errno::NOSYS, Errno::OPNOTSUPP] {
            assert!(tolerated(OptionalCall::Sync, errno), "{errno}");
        }
        for errno in [Errno::IO, Errno::NOSPC, Errno::DQUOT, Errno::BADF] {
            assert!(!tolerated(OptionalCall::Sync, errno), "{errno}");
        }
        let told = disk.take_tolerated();
        assert_eq!(told.len(), 6);
        assert_eq!(told.first(), Some(&(OptionalCall::SetMode, Errno::PERM)));
        assert!(tolerated(OptionalCall::SetMode, Errno::PERM) && disk.take_tolerated().is_empty());
    }
}
