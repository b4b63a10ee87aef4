//! The directory that files are received into: which names are taken, and how a file gets its name.
//!
//! Every path below the target directory is resolved from a held descriptor without following
//! symbolic links (`target/walk.rs`), so that no name, and no process that changes directories
//! meanwhile, can lead a write outside.

pub(crate) mod name;
mod walk;

pub use name::{NameError, TargetName};

use crate::across::{self, Staged};
use crate::disk::{Disk, HostDisk, OptionalCall, TolerantDisk};
use crate::failure::StagingError;
use crate::failure::failed;
use crate::identity::Identity;
use crate::sys;
use crate::writable::with_write_access;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::cell::RefCell;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The directory that files are received into, held open: it cannot be replaced by another one.
#[derive(Debug)]
pub struct TargetDirectory {
    path: PathBuf,
    disk: Arc<TolerantDisk>,
    /// The same.
    shared_disk: Arc<dyn Disk>,
    directory: OwnedFd,
}

impl TargetDirectory {
    /// Opens the directory, creating it and missing directories above it. Symbolic links in the
    /// path are followed, because the user gave it.
    ///
    /// # Errors
    /// [`StagingError::System`] if it is no directory or cannot be created.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, StagingError> {
        Self::open_on(path, Arc::new(HostDisk))
    }

    /// Like [`open`](Self::open), with another implementation of the calls that are made on what is
    /// in the directory.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_on(path: impl Into<PathBuf>, disk: Arc<dyn Disk>) -> Result<Self, StagingError> {
        let path = path.into();
        let directory = match open_directory(&path) {
            Err(Errno::NOENT) => {
                create_directories(&path)?;
                open_directory(&path)
            }
            result => result,
        };
        let directory = directory.map_err(failed(&path, "open the directory"))?;
        let disk = Arc::new(TolerantDisk::new(disk));
        let shared_disk = Arc::clone(&disk) as Arc<dyn Disk>;
        Ok(Self { path, disk, shared_disk, directory })
    }

    /// The first failure of each kind of call without which the reception goes on. Each is returned
    /// once.
    pub fn take_tolerated(&self) -> Vec<(OptionalCall, Errno)> {
        self.disk.take_tolerated()
    }

    /// Notes that what a reception does not need any more cannot be removed.
    pub(crate) fn tolerate_removal(&self, errno: Errno) {
        let _ = self.disk.tolerate(OptionalCall::RemoveStaging, Err(errno));
    }

    pub(crate) fn disk(&self) -> &dyn Disk {
        &*self.disk
    }

    pub(crate) fn shared_disk(&self) -> &Arc<dyn Disk> {
        &self.shared_disk
    }

    /// The path as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Checks that files can be created, without creating one.
    ///
    /// # Errors
    /// [`StagingError::System`] if the user may not, or the file system is read-only.
    pub fn check_writable(&self) -> Result<(), StagingError> {
        let access = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
        rustix::fs::accessat(&self.directory, ".", access, AtFlags::empty())
            .map_err(failed(&self.path, "write to"))
    }

    /// True if a regular file of `length` bytes has the name.
    ///
    /// # Errors
    /// [`StagingError::NotADirectory`] if a directory above it is a link or file,
    /// [`StagingError::System`] if a directory cannot be searched.
    pub fn has_file(&self, name: &TargetName, length: u64) -> Result<bool, StagingError> {
        Ok(self.look(name)?.is_some_and(|stat| {
            file_type(&stat) == FileType::RegularFile && stat.st_size as u64 == length
        }))
    }

    /// The state of the regular file with a name; `None` if there is none.
    ///
    /// # Errors
    /// As [`has_file`](Self::has_file).
    pub fn identity(&self, name: &TargetName) -> Result<Option<Identity>, StagingError> {
        let file = self.look(name)?.filter(|stat| file_type(stat) == FileType::RegularFile);
        Ok(file.map(|stat| Identity::new(&stat)))
    }

    /// True if a symbolic link to exactly `leads_to` has the name.
    ///
    /// # Errors
    /// As [`has_file`](Self::has_file).
    pub fn has_link(&self, name: &TargetName, leads_to: &[u8]) -> Result<bool, StagingError> {
        let Some(directory) = self.directory(name.parent().as_ref())? else { return Ok(false) };
        match rustix::fs::readlinkat(&directory, name.last(), Vec::new()) {
            Ok(found) => Ok(found.as_bytes() == leads_to),
            // The name does not exist, or is not a link.
            Err(Errno::NOENT | Errno::INVAL) => Ok(false),
            Err(errno) => Err(failed(&self.path_of(name), "examine")(errno)),
        }
    }

    /// Rejects a name that is taken, also by a dangling symbolic link. With `overwrite`, rejects
    /// only a directory. Call it before the reception; a commit checks again, atomically.
    ///
    /// # Errors
    /// [`StagingError::Exists`], [`StagingError::IsDirectory`], [`StagingError::NotADirectory`] if
    /// a directory above it is something else, or [`StagingError::System`] if a directory cannot be
    /// searched.
    pub fn check_free(&self, name: &TargetName, overwrite: bool) -> Result<(), StagingError> {
        self.check_all_free(std::iter::once((name, overwrite)))
    }

    /// Like [`check_free`](Self::check_free), for many names, each with its `overwrite`. The
    /// directory of consecutive names is opened once.
    ///
    /// # Errors
    /// As [`check_free`](Self::check_free), for the first name that is taken.
    pub(crate) fn check_all_free<'n>(
        &self,
        names: impl IntoIterator<Item = (&'n TargetName, bool)>,
    ) -> Result<(), StagingError> {
        let mut open = None;
        names.into_iter().try_for_each(|name| self.check_next_free(name, &mut open))
    }

    /// Like [`check_free`](Self::check_free). `open`: the directory of the name before, and of this
    /// one.
    pub(crate) fn check_next_free(
        &self,
        (name, overwrite): (&TargetName, bool),
        open: &mut Option<(Option<TargetName>, Option<OwnedFd>)>,
    ) -> Result<(), StagingError> {
        let parent = name.parent();
        let directory = match open.take() {
            Some((of, directory)) if of == parent => directory,
            _ => self.directory(parent.as_ref())?,
        };
        let found = self.look_in(directory.as_ref(), name)?;
        *open = Some((parent, directory));
        match found.map(|stat| file_type(&stat)) {
            None => Ok(()),
            Some(FileType::Directory) => {
                Err(StagingError::IsDirectory { path: self.path_of(name) })
            }
            Some(_) if overwrite => Ok(()),
            Some(_) => Err(StagingError::Exists { path: self.path_of(name) }),
        }
    }

    /// Rejects a name of a directory if something else has it. An existing directory is accepted.
    ///
    /// # Errors
    /// [`StagingError::NotADirectory`], [`StagingError::System`].
    pub fn check_directory(&self, name: &TargetName) -> Result<(), StagingError> {
        self.directory(Some(name)).map(drop)
    }

    /// True if the file system ignores letter case: `known` is a name in the directory with letters
    /// in it.
    pub(crate) fn ignores_case(&self, known: &str) -> bool {
        let look = |name: &str| {
            let stat = self.disk.stat_at(self.directory.as_fd(), name.as_bytes());
            stat.ok().map(|stat| (stat.st_dev, stat.st_ino))
        };
        let (lower, upper) = (known.to_ascii_lowercase(), known.to_ascii_uppercase());
        look(&lower).is_some() && look(&lower) == look(&upper)
    }

    /// The path under which a name appears.
    pub(crate) fn path_of(&self, name: &TargetName) -> PathBuf {
        self.path.join(OsStr::from_bytes(name.as_bytes()))
    }

    /// The metadata of what has the name; `None` if it is free.
    fn look(&self, name: &TargetName) -> Result<Option<Stat>, StagingError> {
        let directory = self.directory(name.parent().as_ref())?;
        self.look_in(directory.as_ref(), name)
    }

    /// The metadata of what has the name in its directory; `None` if it is free, or there is no
    /// directory.
    fn look_in(
        &self,
        directory: Option<&OwnedFd>,
        name: &TargetName,
    ) -> Result<Option<Stat>, StagingError> {
        let Some(directory) = directory else { return Ok(None) };
        match self.disk.stat_at(directory.as_fd(), name.last()) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(failed(&self.path_of(name), "examine")(errno)),
        }
    }

    /// Opens a directory in the target, or the target itself; `None` if it does not exist.
    pub(crate) fn directory(
        &self,
        name: Option<&TargetName>,
    ) -> Result<Option<OwnedFd>, StagingError> {
        let path = name.map_or(&b"."[..], TargetName::as_bytes);
        match walk::open_beneath(self.directory.as_fd(), path) {
            Ok(directory) => Ok(Some(directory)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno @ (Errno::LOOP | Errno::NOTDIR)) => {
                let obstacle = name.and_then(|name| self.obstacle(name));
                Err(obstacle.unwrap_or_else(|| failed(&self.path, "enter")(errno)))
            }
            Err(errno) => {
                let path = name.map_or_else(|| self.path.clone(), |name| self.path_of(name));
                Err(failed(&path, "open the directory")(errno))
            }
        }
    }

    /// The error for the outermost component of a path that is not a directory.
    fn obstacle(&self, name: &TargetName) -> Option<StagingError> {
        let all = name.parents().into_iter().chain([name.clone()]);
        let is_in_the_way = |name: &TargetName| {
            let opened = walk::open_beneath(self.directory.as_fd(), name.as_bytes());
            matches!(opened, Err(Errno::LOOP | Errno::NOTDIR))
        };
        let found = all.into_iter().find(is_in_the_way)?;
        Some(StagingError::NotADirectory { path: self.path_of(&found) })
    }

    /// Creates a directory in an existing one, with mode 0700, and opens it.
    pub(crate) fn make_directory(&self, name: &TargetName) -> Result<OwnedFd, StagingError> {
        let missing = || failed(&self.path_of(name), "create the directory")(Errno::NOENT);
        let parent = self.directory(name.parent().as_ref())?.ok_or_else(missing)?;
        let make = || self.disk.make_directory(parent.as_fd(), name.last(), Mode::RWXU);
        match with_write_access(self.disk(), parent.as_fd(), make) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(failed(&self.path_of(name), "create the directory")(errno)),
        }
        self.directory(Some(name))?.ok_or_else(missing)
    }

    /// Renames a file from `old` in `from` to its final name in `directory`, atomically. Replaces
    /// an existing name only with `overwrite`, and never follows a link.
    pub(crate) fn rename_into(
        &self,
        from: BorrowedFd<'_>,
        old: &str,
        directory: BorrowedFd<'_>,
        name: &TargetName,
        overwrite: bool,
    ) -> Result<(), StagingError> {
        let rename = |from: BorrowedFd<'_>, old: &[u8]| {
            with_write_access(self.disk(), directory, || match overwrite {
                true => self.disk.rename(from, old, directory, name.last()),
                false => self.disk.rename_to_free(from, old, directory, name.last()),
            })
        };
        let staged = Staged { directory: from, name: old.as_bytes() };
        let result = match rename(from, old.as_bytes()) {
            Err(Errno::XDEV) => self.rename_copy(staged, directory, rename),
            result => result,
        };
        result.map_err(|errno| match errno {
            Errno::EXIST if !overwrite => StagingError::Exists { path: self.path_of(name) },
            Errno::ISDIR => StagingError::IsDirectory { path: self.path_of(name) },
            errno => failed(&self.path_of(name), "create")(errno),
        })
    }

    /// Gives a copy of our own in `directory` its final name, atomically. Replaces an existing name
    /// only with `overwrite`.
    pub(crate) fn name_copy(
        &self,
        directory: BorrowedFd<'_>,
        copy: &[u8],
        name: &TargetName,
        overwrite: bool,
    ) -> Result<(), StagingError> {
        let rename = || match overwrite {
            true => self.disk.rename(directory, copy, directory, name.last()),
            false => self.disk.rename_to_free(directory, copy, directory, name.last()),
        };
        with_write_access(self.disk(), directory, rename).map_err(|errno| match errno {
            Errno::EXIST if !overwrite => StagingError::Exists { path: self.path_of(name) },
            errno => failed(&self.path_of(name), "create")(errno),
        })
    }

    /// Renames a copy of a file, as its directory is on another file system.
    fn rename_copy(
        &self,
        staged: Staged<'_>,
        directory: BorrowedFd<'_>,
        rename: impl Fn(BorrowedFd<'_>, &[u8]) -> rustix::io::Result<()>,
    ) -> rustix::io::Result<()> {
        let copy = RefCell::new(Vec::new());
        with_write_access(self.disk(), directory, || {
            let copied = across::copy(self.disk(), staged, directory, None)?;
            copied.sync(self.disk()).inspect_err(|_| {
                // Its space is needed.
                let _ = self.disk.unlink(directory, &copied.name);
            })?;
            copy.replace(copied.name);
            Ok(())
        })?;
        let copy = copy.into_inner();
        if let Err(errno) = rename(directory, &copy) {
            let _ = self.disk.unlink(directory, &copy);
            return Err(errno);
        }
        // The name leads to the copy: what is staged is not needed.
        match self.disk.unlink(staged.directory, staged.name) {
            Err(errno) if errno != Errno::NOENT => {
                self.tolerate_removal(errno);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Waits until the names in the target, or in a directory in it, are on the disk.
    pub(crate) fn sync(&self, name: Option<&TargetName>) -> Result<(), StagingError> {
        let path = name.map_or_else(|| self.path.clone(), |name| self.path_of(name));
        let gone = || failed(&path, "sync")(Errno::NOENT);
        let directory = self.directory(name)?.ok_or_else(gone)?;
        self.disk.sync_directory(directory.as_fd()).map_err(failed(&path, "sync"))
    }
}

impl AsFd for TargetDirectory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }
}

fn open_directory(path: &Path) -> rustix::io::Result<OwnedFd> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    sys::retry(|| rustix::fs::openat(CWD, path, flags, Mode::empty()))
}

fn file_type(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

/// Creates a directory and the missing ones above it, and syncs each one's parent, so that syncing
/// the last one later suffices.
fn create_directories(path: &Path) -> Result<(), StagingError> {
    let missing = |path: &&Path| matches!(rustix::fs::stat(*path), Err(Errno::NOENT));
    let mut to_create: Vec<&Path> =
        path.ancestors().filter(|path| !path.as_os_str().is_empty()).take_while(missing).collect();
    while let Some(path) = to_create.pop() {
        match rustix::fs::mkdirat(CWD, path, Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(failed(path, "create the directory")(errno)),
        }
        let parent = path.parent().unwrap_or(Path::new("."));
        match open_directory(parent).and_then(|parent| HostDisk.sync_directory(parent.as_fd())) {
            // As later, when it is told.
            Err(errno) if OptionalCall::Sync.may_fail_with(errno) => {}
            result => result.map_err(failed(parent, "sync"))?,
        }
    }
    Ok(())
}
