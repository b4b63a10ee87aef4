//! Locks on file systems that know none (Lustre, some NFS): the lock file names its holder.
//!
//! A holder of an earlier boot of this host, or whose process is gone, holds nothing. One of
//! another host does, as far as this one can tell. Two that take the lock at once read it again.

use crate::boot::BootId;
use crate::disk::Disk;
use crate::lock::Lock;
use rustix::fd::{AsFd, BorrowedFd};
use rustix::io::{Errno, Result};
use rustix::process::{Pid, getpriority_process};
use std::collections::BTreeSet;
use std::time::Duration;

/// Longest text of a lock file: a host name of Linux has at most 64 bytes.
const MAX_TEXT: usize = 256;
/// Time in which another process that has read the file writes to it.
const WRITTEN_WITHIN: Duration = Duration::from_millis(20);

/// The lock files that this process holds, by device and inode.
static HELD: Lock<BTreeSet<(u64, u64)>> = Lock::new(BTreeSet::new());

/// Whether a lock fails because the file system knows none.
pub(crate) fn is_unknown(errno: Errno) -> bool {
    matches!(errno, Errno::NOSYS | Errno::OPNOTSUPP | Errno::NOLCK)
}

/// A lock file that names this process.
#[derive(Debug)]
pub(crate) struct Named((u64, u64));

impl Drop for Named {
    fn drop(&mut self) {
        HELD.lock().remove(&self.0);
    }
}

/// Writes this process to a lock file.
///
/// # Errors
/// [`Errno::WOULDBLOCK`] if another one holds it.
pub(crate) fn take(disk: &dyn Disk, file: BorrowedFd<'_>) -> Result<Named> {
    if is_held(disk, file)? {
        return Err(Errno::WOULDBLOCK);
    }
    let text = this(disk.boot());
    disk.set_length(file, 0)?;
    disk.write(file, text.as_bytes(), 0)?;
    std::thread::sleep(WRITTEN_WITHIN);
    if read(disk, file)? != text {
        return Err(Errno::WOULDBLOCK);
    }
    let stat = disk.stat(file)?;
    let inode = (stat.st_dev, stat.st_ino);
    match HELD.lock().insert(inode) {
        true => Ok(Named(inode)),
        false => Err(Errno::WOULDBLOCK),
    }
}

/// Whether a process holds a lock file.
pub(crate) fn is_held(disk: &dyn Disk, file: BorrowedFd<'_>) -> Result<bool> {
    let stat = disk.stat(file)?;
    let is_ours = || HELD.lock().contains(&(stat.st_dev, stat.st_ino));
    Ok(holds(&read(disk, file)?, disk.boot(), std::process::id(), is_ours))
}

/// Whether the holder that a lock file names may be alive.
fn holds(text: &str, boot: BootId, process: u32, is_ours: impl Fn() -> bool) -> bool {
    let mut words = text.split_whitespace();
    let (Some(host), Some(of_boot), Some(number)) = (words.next(), words.next(), words.next())
    else {
        return false;
    };
    if host != host_name() {
        return true;
    }
    if of_boot != boot_name(boot) {
        return false;
    }
    match number.parse() {
        Ok(number) if number == process => is_ours(),
        Ok(number) => is_running(number),
        Err(_) => false,
    }
}

fn is_running(process: u32) -> bool {
    let process = i32::try_from(process).ok().and_then(Pid::from_raw);
    // A sandbox lets no process signal others, and a receiver has one.
    process.is_some_and(|process| getpriority_process(Some(process)) != Err(Errno::SRCH))
}

/// The text of a lock file that this process holds.
fn this(boot: BootId) -> String {
    format!("{} {} {}\n", host_name(), boot_name(boot), std::process::id())
}

/// One word, also if the name is empty.
fn host_name() -> String {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    name.split_whitespace().collect::<String>() + "."
}

fn boot_name(boot: BootId) -> String {
    boot.0.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn read(disk: &dyn Disk, file: BorrowedFd<'_>) -> Result<String> {
    let mut bytes = [0; MAX_TEXT];
    let length = disk.read(file.as_fd(), &mut bytes, 0)?;
    Ok(String::from_utf8_lossy(bytes.get(..length).unwrap_or_default()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::HostDisk;

    #[test]
    fn a_file_that_names_a_process_is_held_as_long_as_that_lives() {
        let (boot, this) = (BootId([7; 16]), std::process::id());
        let name =
            |host: &str, boot, process: u32| format!("{host} {} {process}\n", boot_name(boot));
        let is_held = |text: &str, is_ours| holds(text, boot, this, || is_ours);
        let host = host_name();
        assert!(is_held(&name(&host, boot, this), true));
        // A process of the same number has ended, as in a container that is started again.
        assert!(!is_held(&name(&host, boot, this), false));
        assert!(is_held(&name(&host, boot, 1), false), "the first process of all");
        assert!(!is_held(&name(&host, boot, i32::MAX as u32), false));
        assert!(!is_held(&name(&host, BootId([8; 16]), 1), false), "an earlier boot");
        assert!(is_held(&name("elsewhere", BootId([8; 16]), 1), false), "another host");
        for text in ["", "\n", "a b", &format!("{host} {} x", boot_name(boot))] {
            assert!(!is_held(text, true), "{text:?}");
        }
    }

    #[test]
    fn a_lock_is_taken_once_and_again_when_it_is_dropped() {
        let directory = tempfile::tempdir().unwrap();
        let open = || {
            let path = directory.path().join("lock");
            let mut options = std::fs::File::options();
            options.read(true).write(true).create(true).truncate(false).open(path).unwrap()
        };
        let (first, second) = (open(), open());
        let named = take(&HostDisk, first.as_fd()).unwrap();
        assert_eq!(is_held(&HostDisk, second.as_fd()), Ok(true));
        assert_eq!(take(&HostDisk, second.as_fd()).err(), Some(Errno::WOULDBLOCK));
        drop(named);
        assert_eq!(is_held(&HostDisk, second.as_fd()), Ok(false));
        assert!(take(&HostDisk, second.as_fd()).is_ok());
    }
}
