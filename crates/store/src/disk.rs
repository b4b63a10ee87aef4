//! The file system that files are received into, as an interface.
//!
//! Each call between a received symbol and a file under its final name is a method of [`Disk`]: on
//! staged files, the journal, directories, and memos. [`HostDisk`] makes the calls of the host. A
//! test can give a [`TargetDirectory`](crate::TargetDirectory) another implementation, which fails
//! calls, or knows what a power failure loses. Only lookups that change nothing and need no bytes
//! are made directly: resolving a path, listing a directory, locking.
//!
//! It is a trait and not an enum because a simulated disk is no part of the program. A call costs
//! one indirection beside its system call.

use crate::boot::BootId;
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags, Stat, Timestamps};
use rustix::io::{Errno, Result};
use std::fmt;

mod host;
mod tolerant;

pub use host::HostDisk;
pub use tolerant::OptionalCall;
pub(crate) use tolerant::TolerantDisk;

/// The calls to the file system that a reception makes. Threads share it. A call that a signal
/// interrupts is repeated: none returns [`Errno::INTR`].
///
/// # Errors
/// Each method returns the error of its system call.
pub trait Disk: fmt::Debug + Send + Sync {
    /// The boot of the host: bytes that were written during an earlier one and not synced may be
    /// lost.
    fn boot(&self) -> BootId;

    /// Opens `name` in a directory, or creates it (openat(2)).
    fn open(
        &self,
        directory: BorrowedFd<'_>,
        name: &[u8],
        flags: OFlags,
        mode: Mode,
    ) -> Result<OwnedFd>;

    /// The metadata of an open file (fstat(2)).
    fn stat(&self, file: BorrowedFd<'_>) -> Result<Stat>;

    /// The metadata of what has the name in a directory; of a link, its own (fstatat(2)).
    fn stat_at(&self, directory: BorrowedFd<'_>, name: &[u8]) -> Result<Stat>;

    /// Free bytes of the file system for this user; `None` if it does not tell (fstatvfs(3)).
    fn available(&self, file: BorrowedFd<'_>) -> Option<u64>;

    /// Reads bytes from `offset` on: 0 at the end of the file, or fewer than `out` holds
    /// (pread(2)).
    fn read(&self, file: BorrowedFd<'_>, out: &mut [u8], offset: u64) -> Result<usize>;

    /// Writes the first bytes of `bytes` at `offset`, and returns how many (pwrite(2)).
    fn write(&self, file: BorrowedFd<'_>, bytes: &[u8], offset: u64) -> Result<usize>;

    /// Writes the first bytes of `bytes` at the end of a file that is open for appending, and
    /// returns how many (write(2)).
    fn append(&self, file: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize>;

    /// Sets the length of a file (ftruncate(2)).
    fn set_length(&self, file: BorrowedFd<'_>, length: u64) -> Result<()>;

    /// Reserves space for `length` bytes from `offset` on, if the file system can (fallocate(2)).
    fn reserve(&self, file: BorrowedFd<'_>, offset: u64, length: u64) -> Result<()>;

    /// Frees the space of `length` bytes from `offset` on, if the file system can: they read as
    /// zeros (fallocate(2)).
    fn punch(&self, file: BorrowedFd<'_>, offset: u64, length: u64) -> Result<()>;

    /// Sets the permission bits of a file or directory (fchmod(2)).
    fn set_mode(&self, file: BorrowedFd<'_>, mode: Mode) -> Result<()>;

    /// Sets the times of a file or directory (futimens(3)).
    fn set_times(&self, file: BorrowedFd<'_>, times: &Timestamps) -> Result<()>;

    /// Sets the times of what has the name in a directory; of a link, its own (utimensat(2)).
    fn set_times_at(
        &self,
        directory: BorrowedFd<'_>,
        name: &[u8],
        times: &Timestamps,
    ) -> Result<()>;

    /// Waits until a file's bytes and metadata are on the disk (fsync(2)).
    fn sync(&self, file: BorrowedFd<'_>) -> Result<()>;

    /// Waits until a file's bytes and its length are on the disk (fdatasync(2)).
    fn sync_data(&self, file: BorrowedFd<'_>) -> Result<()>;

    /// Waits until the names in a directory are on the disk (fsync(2)).
    fn sync_directory(&self, directory: BorrowedFd<'_>) -> Result<()>;

    /// Waits until everything on the file's file system is on the disk (syncfs(2)).
    fn sync_file_system(&self, file: BorrowedFd<'_>) -> Result<()>;

    /// True if [`sync_file_system`](Self::sync_file_system) returns an error when a write to any
    /// file of the file system was lost since the descriptor was opened.
    fn reports_lost_writes(&self) -> bool;

    /// Creates a directory in another one (mkdirat(2)).
    fn make_directory(&self, directory: BorrowedFd<'_>, name: &[u8], mode: Mode) -> Result<()>;

    /// Creates a symbolic link in a directory (symlinkat(2)).
    fn make_link(&self, leads_to: &[u8], directory: BorrowedFd<'_>, name: &[u8]) -> Result<()>;

    /// Renames a file, atomically. Replaces what has the new name, unless that is a directory
    /// (renameat(2)).
    fn rename(
        &self,
        from: BorrowedFd<'_>,
        old: &[u8],
        to: BorrowedFd<'_>,
        new: &[u8],
    ) -> Result<()>;

    /// Renames a file, atomically, without replacing anything: [`Errno::EXIST`] if the new name is
    /// taken (renameat2(2)).
    fn rename_to_free(
        &self,
        from: BorrowedFd<'_>,
        old: &[u8],
        to: BorrowedFd<'_>,
        new: &[u8],
    ) -> Result<()>;

    /// Removes the name of a file or link (unlinkat(2)).
    fn unlink(&self, directory: BorrowedFd<'_>, name: &[u8]) -> Result<()>;

    /// Removes an empty directory (unlinkat(2)).
    fn remove_directory(&self, directory: BorrowedFd<'_>, name: &[u8]) -> Result<()>;

    /// Reads until `out` is full. Returns the number of bytes, which is smaller only at the end of
    /// the file.
    fn read_full(&self, file: BorrowedFd<'_>, out: &mut [u8], offset: u64) -> Result<usize> {
        let mut done = 0;
        while let Some(rest) = out.get_mut(done..).filter(|rest| !rest.is_empty()) {
            match self.read(file, rest, offset + done as u64)? {
                0 => break,
                count => done += count,
            }
        }
        Ok(done)
    }

    /// Writes all of `bytes` at `offset`.
    fn write_all(&self, file: BorrowedFd<'_>, mut bytes: &[u8], mut offset: u64) -> Result<()> {
        while !bytes.is_empty() {
            match self.write(file, bytes, offset)? {
                // No system returns this; an error avoids an endless loop.
                0 => return Err(Errno::IO),
                count => {
                    bytes = bytes.get(count..).unwrap_or_default();
                    offset += count as u64;
                }
            }
        }
        Ok(())
    }
}
