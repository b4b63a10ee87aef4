//! Entering a staging directory: it must belong to this user, be private, and be unlocked.

use crate::disk::Disk;
use crate::failure::StagingError;
use crate::failure::failed;
use crate::holder::{self, Named};
use crate::sys;
use crate::target::TargetDirectory;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{FlockOperation, Mode, OFlags, Stat};
use rustix::io::Errno;

/// The file whose lock shows that the staging directory is in use. The directory itself cannot be
/// locked: NFS locks only files that are open for writing.
pub(crate) const LOCK: &str = "lock";

/// Attempts to enter a staging directory that vanishes, because another receiver is finishing. More
/// failures than this have another cause.
const ENTER_ATTEMPTS: u32 = 16;

/// A staging directory that is open and locked.
#[derive(Debug)]
pub(crate) struct Entered {
    pub(crate) directory: OwnedFd,
    /// Held for its lock.
    _lock: HeldLock,
}

/// A lock file, locked.
#[derive(Debug)]
struct HeldLock {
    /// Held for the lock of the file.
    _file: OwnedFd,
    /// If the file system knows no locks.
    _named: Option<Named>,
}

impl Entered {
    /// Opens and locks the staging directory `name`, creating it if it does not exist.
    pub(crate) fn new(target: &TargetDirectory, name: &str) -> Result<Self, StagingError> {
        let path = || target.path().join(name);
        let (disk, root) = (target.disk(), target.as_fd());
        for _ in 0..ENTER_ATTEMPTS {
            match disk.make_directory(root, name.as_bytes(), Mode::RWXU) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(failed(&path(), "create the directory")(errno)),
            }
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let directory = match disk.open(root, name.as_bytes(), flags, Mode::empty()) {
                Ok(directory) => directory,
                Err(Errno::NOENT) => continue, // the last receiver has just removed it
                Err(Errno::LOOP | Errno::NOTDIR) => {
                    return Err(StagingError::NotOurs { path: path() });
                }
                Err(Errno::ACCESS) if is_of_another(disk, root, name) => {
                    return Err(StagingError::NotOurs { path: path() });
                }
                Err(errno) => return Err(failed(&path(), "open")(errno)),
            };
            let stat = disk.stat(directory.as_fd()).map_err(failed(&path(), "examine"))?;
            // Checked also after creating it: in a directory that others may write to, it may have
            // been replaced since.
            if stat.st_uid != rustix::process::geteuid().as_raw() {
                return Err(StagingError::NotOurs { path: path() });
            }
            disk.set_mode(directory.as_fd(), Mode::RWXU).map_err(failed(&path(), "protect"))?;
            let lock = lock(disk, directory.as_fd()).map_err(|errno| match errno {
                Errno::WOULDBLOCK => StagingError::Busy { path: path() },
                errno => failed(&path(), "lock")(errno),
            })?;
            let now = disk.stat_at(root, name.as_bytes());
            let is_there = now.is_ok_and(|now| same_inode(&now, &stat));
            if let Some(lock) = lock.filter(|_| is_there) {
                return Ok(Self { directory, _lock: lock });
            }
        }
        Err(StagingError::Busy { path: path() })
    }
}

/// True if another user has something with this name.
pub(crate) fn is_of_another(disk: &dyn Disk, directory: BorrowedFd<'_>, name: &str) -> bool {
    let stat = disk.stat_at(directory, name.as_bytes());
    stat.is_ok_and(|stat| stat.st_uid != rustix::process::geteuid().as_raw())
}

/// Attempts to lock, and the wait between them. A process that lists interrupted receptions holds
/// the lock for a moment, a receiver for as long as it runs.
const LOCK_ATTEMPTS: u32 = 5;
const LOCK_PAUSE: std::time::Duration = std::time::Duration::from_millis(10);

/// Takes the lock of a staging directory. `None` if its last holder removed the lock file or the
/// directory.
fn lock(disk: &dyn Disk, directory: BorrowedFd<'_>) -> rustix::io::Result<Option<HeldLock>> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    let lock = match disk.open(directory, LOCK.as_bytes(), flags, mode) {
        Err(Errno::NOENT) => return Ok(None),
        lock => lock?,
    };
    let take = || sys::retry(|| rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive));
    let mut taken = take();
    for _ in 1..LOCK_ATTEMPTS {
        if taken != Err(Errno::WOULDBLOCK) {
            break;
        }
        std::thread::sleep(LOCK_PAUSE);
        taken = take();
    }
    let named = match taken {
        Err(errno) if holder::is_unknown(errno) => Some(holder::take(disk, lock.as_fd())?),
        taken => taken.map(|()| None)?,
    };
    let held = disk.stat(lock.as_fd())?;
    match disk.stat_at(directory, LOCK.as_bytes()) {
        Ok(now) if same_inode(&now, &held) => Ok(Some(HeldLock { _file: lock, _named: named })),
        Ok(_) | Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// True if a receiver is using the staging directory.
pub(crate) fn is_locked(disk: &dyn Disk, directory: BorrowedFd<'_>) -> rustix::io::Result<bool> {
    // NFS locks only files that are open for writing. The lock is shared, so that two processes
    // that list do not block each other.
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let lock = match disk.open(directory, LOCK.as_bytes(), flags, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(false),
        lock => lock?,
    };
    match sys::retry(|| rustix::fs::flock(&lock, FlockOperation::NonBlockingLockShared)) {
        Err(Errno::WOULDBLOCK) => Ok(true),
        Err(errno) if holder::is_unknown(errno) => holder::is_held(disk, lock.as_fd()),
        result => result.map(|()| false),
    }
}

fn same_inode(a: &Stat, b: &Stat) -> bool {
    (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino)
}
