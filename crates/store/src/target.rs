//! Where received files end up: the names that are taken, and how one appears.
//!
//! A name comes from a sender, so it is hostile until checked. For now a name has one component;
//! trees of directories need more care (every step opened beneath the one before) and will replace
//! what is in this file.

use crate::failure::failed;
use crate::{StagingError, sys};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Longest component that Linux's file systems take (`NAME_MAX`), in bytes.
pub(crate) const MAX_COMPONENT: usize = 255;

/// Names of staging directories begin so; no received file may look like one.
pub(crate) const STAGING_PREFIX: &[u8] = b".fontana-";

/// Why a name cannot be the name of a received file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// No component, or an empty one.
    #[error("an empty file name")]
    Empty,
    /// `.` and `..` name directories, the second one outside the target.
    #[error("a file cannot be named {0:?}")]
    Dots(String),
    /// A byte that would end the component or the name.
    #[error("the file name {name:?} contains {byte:?}")]
    Byte {
        /// The name, as far as it can be shown.
        name: String,
        /// `/` or NUL.
        byte: char,
    },
    /// More bytes than a file system takes.
    #[error("a file name of {actual} bytes, at most {limit} are possible")]
    TooLong {
        /// Bytes of the name.
        actual: usize,
        /// Most bytes of a name.
        limit: usize,
    },
    /// The beginning of the name is kept for staging directories.
    #[error("the file name {0:?} looks like a staging directory")]
    Reserved(String),
    /// Directories below the target are not made yet.
    #[error("a file in {0} directories below the target: only the target itself is supported")]
    Nested(usize),
    /// Two files of a session have the same name.
    #[error("two files are named {0:?}")]
    Twice(String),
    /// A tag of a staging directory has 1 to 64 ASCII letters, digits, `-` or `_`.
    #[error("{0:?} cannot be part of a staging directory's name")]
    Tag(String),
}

/// The checked name of a received file, relative to the target directory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TargetName(Vec<u8>);

impl TargetName {
    /// Checks a name given as its components, in raw bytes.
    ///
    /// # Errors
    /// [`NameError`]: nothing is repaired, because a name that was changed is another name.
    pub fn new<C: AsRef<[u8]>>(components: &[C]) -> Result<Self, NameError> {
        let [component] = components else {
            let directories = components.len().checked_sub(1).ok_or(NameError::Empty)?;
            return Err(NameError::Nested(directories));
        };
        let name = component.as_ref();
        let shown = || String::from_utf8_lossy(name).into_owned();
        if name.is_empty() {
            return Err(NameError::Empty);
        }
        if name.len() > MAX_COMPONENT {
            return Err(NameError::TooLong { actual: name.len(), limit: MAX_COMPONENT });
        }
        if name == b"." || name == b".." {
            return Err(NameError::Dots(shown()));
        }
        if let Some(&byte) = name.iter().find(|&&byte| byte == b'/' || byte == 0) {
            return Err(NameError::Byte { name: shown(), byte: byte.into() });
        }
        if name.starts_with(STAGING_PREFIX) {
            return Err(NameError::Reserved(shown()));
        }
        Ok(Self(name.to_owned()))
    }

    /// The name in raw bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// The directory that files are received into, held open: from here on nobody can put another one
/// in its place.
#[derive(Debug)]
pub struct TargetDirectory {
    path: PathBuf,
    directory: OwnedFd,
}

impl TargetDirectory {
    /// Opens the directory, creating it and what is missing of its path. The path is the user's own
    /// word: symbolic links in it are followed.
    ///
    /// # Errors
    /// [`StagingError::System`] if it is no directory or cannot be created.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, StagingError> {
        let path = path.into();
        let directory = match open_directory(&path) {
            Err(Errno::NOENT) => {
                create_directories(&path)?;
                open_directory(&path)
            }
            result => result,
        };
        let directory = directory.map_err(failed(&path, "open the directory"))?;
        Ok(Self { path, directory })
    }

    /// The path as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Sees that files can be created, without creating one.
    ///
    /// # Errors
    /// [`StagingError::System`] if the user may not, or the file system is read-only.
    pub fn check_writable(&self) -> Result<(), StagingError> {
        let access = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
        rustix::fs::accessat(&self.directory, ".", access, AtFlags::empty())
            .map_err(failed(&self.path, "write to"))
    }

    /// Whether a regular file of `length` bytes has the name.
    ///
    /// # Errors
    /// [`StagingError::System`] if the directory cannot be searched.
    pub fn has_file(&self, name: &TargetName, length: u64) -> Result<bool, StagingError> {
        match rustix::fs::statat(&self.directory, name.as_bytes(), AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => Ok(false),
            Err(errno) => Err(failed(&self.path_of(name), "examine")(errno)),
            Ok(stat) => Ok(FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
                && stat.st_size as u64 == length),
        }
    }

    /// Refuses a name that is taken, by whatever: also by a symbolic link that leads nowhere. With
    /// `overwrite` only a directory is in the way. Meant for before anything is received; a commit
    /// looks again, atomically.
    ///
    /// # Errors
    /// [`StagingError::Exists`], [`StagingError::IsDirectory`], or [`StagingError::System`] if the
    /// directory cannot be searched.
    pub fn check_free(&self, name: &TargetName, overwrite: bool) -> Result<(), StagingError> {
        let path = || self.path_of(name);
        match rustix::fs::statat(&self.directory, name.as_bytes(), AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(failed(&path(), "examine")(errno)),
            Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Directory => {
                Err(StagingError::IsDirectory { path: path() })
            }
            Ok(_) if overwrite => Ok(()),
            Ok(_) => Err(StagingError::Exists { path: path() }),
        }
    }

    /// The path under which a name appears.
    pub(crate) fn path_of(&self, name: &TargetName) -> PathBuf {
        self.path.join(OsStr::from_bytes(name.as_bytes()))
    }

    /// Gives a file its final name, atomically: it was there under `old` in `from`. What has the
    /// name is replaced only with `overwrite`, and never followed if it is a link.
    pub(crate) fn rename_into(
        &self,
        from: BorrowedFd<'_>,
        old: &str,
        name: &TargetName,
        overwrite: bool,
    ) -> Result<(), StagingError> {
        let (old, new) = (old.as_bytes(), name.as_bytes());
        let result = if overwrite {
            rustix::fs::renameat(from, old, &self.directory, new)
        } else {
            sys::rename_noreplace(from, old, &self.directory, new)
        };
        result.map_err(|errno| match errno {
            Errno::EXIST if !overwrite => StagingError::Exists { path: self.path_of(name) },
            Errno::ISDIR => StagingError::IsDirectory { path: self.path_of(name) },
            errno => failed(&self.path_of(name), "create")(errno),
        })
    }

    /// Waits until the names in the directory are on the medium.
    pub(crate) fn sync(&self) -> Result<(), StagingError> {
        sync_directory(self.directory.as_fd()).map_err(failed(&self.path, "sync"))
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

fn sync_directory(directory: BorrowedFd<'_>) -> rustix::io::Result<()> {
    match sys::retry(|| rustix::fs::fsync(directory)) {
        // Some file systems have nothing to do for a directory and say so in this way.
        Err(Errno::INVAL) => Ok(()),
        result => result,
    }
}

/// Creates a directory and the missing ones above it, each made durable in its parent, so that
/// syncing the last one later means something.
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
        open_directory(parent)
            .and_then(|parent| sync_directory(parent.as_fd()))
            .map_err(failed(parent, "sync"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(components: &[&[u8]]) -> Result<(), NameError> {
        TargetName::new(components).map(drop)
    }

    #[test]
    fn a_plain_name_is_taken_whatever_its_bytes_mean() {
        let longest = vec![b'x'; 255];
        let names: [&[u8]; 8] =
            [b"a", b"...", b"a b", b".hidden", b"\xff\xfe", b"\n\x1b[2J", b"CON", &longest];
        for name in names {
            assert_eq!(check(&[name]), Ok(()), "{name:?}");
            assert_eq!(TargetName::new(&[name]).unwrap().as_bytes(), name);
        }
    }

    #[test]
    fn a_name_that_leads_elsewhere_is_refused() {
        assert_eq!(check(&[]), Err(NameError::Empty));
        assert_eq!(check(&[b""]), Err(NameError::Empty));
        assert_eq!(check(&[b"."]), Err(NameError::Dots(".".into())));
        assert_eq!(check(&[b".."]), Err(NameError::Dots("..".into())));
        for byte in ['/', '\0'] {
            for name in [format!("{byte}a"), format!("a{byte}"), format!("..{byte}a")] {
                let expected = NameError::Byte { name: name.clone(), byte };
                assert_eq!(check(&[name.as_bytes()]), Err(expected));
            }
        }
        let too_long = NameError::TooLong { actual: 256, limit: 255 };
        assert_eq!(check(&[&[b'x'; 256]]), Err(too_long));
        assert_eq!(check(&[b"a", b"b"]), Err(NameError::Nested(1)));
        let staging = b".fontana-1";
        assert!(matches!(check(&[staging]), Err(NameError::Reserved(_))));
    }
}
