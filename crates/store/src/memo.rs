//! Memos: small files in a target directory that outlive receptions, such as the high-water mark.
//! They are replaced atomically and synced.
//!
//! Their names begin like those of staging directories, so no received file can have them.

use crate::enter::is_of_another;
use crate::failure::StagingError;
use crate::failure::failed;
use crate::ours::STAGING_PREFIX;
use crate::target::TargetDirectory;
use rustix::fd::AsFd;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use std::path::PathBuf;

impl TargetDirectory {
    /// The path of a memo.
    pub fn memo_path(&self, name: &str) -> PathBuf {
        self.path().join(file_name(name))
    }

    /// Reads a memo of at most `limit` bytes; `None` if there is none. Its contents may be torn or
    /// forged: the caller must check them.
    ///
    /// # Errors
    /// [`StagingError::NotOurs`] if it is not a file of this user, or longer;
    /// [`StagingError::System`].
    pub fn read_memo(&self, name: &str, limit: usize) -> Result<Option<Vec<u8>>, StagingError> {
        let path = self.memo_path(name);
        let flags =
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let disk = self.disk();
        let file = match disk.open(self.as_fd(), file_name(name).as_bytes(), flags, Mode::empty()) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP) => return Err(StagingError::NotOurs { path }),
            Err(Errno::ACCESS) if is_of_another(disk, self.as_fd(), &file_name(name)) => {
                return Err(StagingError::NotOurs { path });
            }
            Err(errno) => return Err(failed(&path, "read")(errno)),
        };
        let stat = disk.stat(file.as_fd()).map_err(failed(&path, "examine"))?;
        let is_ours = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
            && stat.st_uid == rustix::process::geteuid().as_raw();
        let length = usize::try_from(stat.st_size).unwrap_or(usize::MAX);
        if !is_ours || length > limit {
            return Err(StagingError::NotOurs { path });
        }
        let mut bytes = vec![0; length];
        let count = disk.read_full(file.as_fd(), &mut bytes, 0).map_err(failed(&path, "read"))?;
        bytes.truncate(count);
        Ok(Some(bytes))
    }

    /// Replaces a memo, and waits until the new one would survive a power failure.
    ///
    /// # Errors
    /// [`StagingError::DiskFull`], [`StagingError::System`]: the previous memo is unchanged.
    pub fn write_memo(&self, name: &str, bytes: &[u8]) -> Result<(), StagingError> {
        let path = self.memo_path(name);
        let (new, last) = (format!("{}.new", file_name(name)), file_name(name));
        let (new, last) = (new.as_bytes(), last.as_bytes());
        let (disk, directory) = (self.disk(), self.as_fd());
        // An earlier write may have been interrupted, or something else may have the name.
        match disk.unlink(directory, new) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(failed(&path, "write")(errno)),
        }
        let flags = OFlags::WRONLY
            | OFlags::CREATE
            | OFlags::EXCL
            | OFlags::NOFOLLOW
            | OFlags::NOCTTY
            | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        disk.open(directory, new, flags, mode)
            .and_then(|file| {
                disk.write_all(file.as_fd(), bytes, 0)?;
                disk.sync(file.as_fd())
            })
            .and_then(|()| disk.rename(directory, new, directory, last))
            .and_then(|()| disk.sync_directory(directory))
            .map_err(failed(&path, "write"))
    }
}

impl TargetDirectory {
    /// Appends to a memo, and waits until the bytes would survive a power failure. A reader must
    /// notice bytes that were written in part.
    ///
    /// # Errors
    /// [`StagingError::DiskFull`], [`StagingError::System`].
    pub fn append_memo(&self, name: &str, bytes: &[u8]) -> Result<(), StagingError> {
        let flags = OFlags::WRONLY
            | OFlags::APPEND
            | OFlags::NOFOLLOW
            | OFlags::NONBLOCK
            | OFlags::NOCTTY
            | OFlags::CLOEXEC;
        let disk = self.disk();
        disk.open(self.as_fd(), file_name(name).as_bytes(), flags, Mode::empty())
            .and_then(|file| match disk.append(file.as_fd(), bytes)? {
                count if count == bytes.len() => disk.sync_data(file.as_fd()),
                _ => Err(Errno::NOSPC),
            })
            .map_err(failed(&self.memo_path(name), "write"))
    }
}

fn file_name(name: &str) -> String {
    format!("{}{name}", String::from_utf8_lossy(STAGING_PREFIX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_memo_is_the_last_one_written_by_this_user() {
        let directory = tempfile::tempdir().unwrap();
        let target = TargetDirectory::open(directory.path()).unwrap();
        assert_eq!(target.read_memo("mark", 9), Ok(None));
        for words in [&b"first"[..], b"", b"the third"] {
            target.write_memo("mark", words).unwrap();
            assert_eq!(target.read_memo("mark", 9).unwrap().as_deref(), Some(words));
        }
        target.append_memo("mark", b" and more").unwrap();
        let whole = target.read_memo("mark", 18).unwrap();
        assert_eq!(whole.as_deref(), Some(&b"the third and more"[..]));
        target.write_memo("mark", b"the third").unwrap();
        assert!(target.append_memo("other", b"").is_err());
        assert!(matches!(target.read_memo("mark", 8), Err(StagingError::NotOurs { .. })));
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
        let path = target.memo_path("mark");
        std::fs::rename(&path, directory.path().join("elsewhere")).unwrap();
        symlink("elsewhere", &path).unwrap();
        assert!(matches!(target.read_memo("mark", 9), Err(StagingError::NotOurs { .. })));
        target.write_memo("mark", b"new").unwrap();
        assert_eq!(std::fs::read(directory.path().join("elsewhere")).unwrap(), b"the third");
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        assert!(target.read_memo("mark", 9).is_err() && target.write_memo("mark", b"").is_err());
    }
}
