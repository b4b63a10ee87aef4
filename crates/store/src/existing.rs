//! Files that exist in the target directory, read to compare their contents.
//!
//! No symbolic link is followed on the way to a file, as everywhere in the target directory. A file
//! is only read: if its contents differ, another file takes its name.

use crate::attributes::{FileAttributes, has_metadata, set_metadata};
use crate::commit::MANY_FILES;
use crate::disk::Disk;
use crate::failure::StagingError;
use crate::failure::failed;
use crate::staging::Staging;
use crate::sys;
use crate::target::TargetDirectory;
use crate::target::TargetName;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

/// A regular file in the target directory, open for reading.
#[derive(Debug)]
pub struct ExistingFile {
    disk: Arc<dyn Disk>,
    file: OwnedFd,
    path: PathBuf,
}

/// New attributes of an existing file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Correction {
    /// The file.
    pub name: TargetName,
    /// Its length in bytes; a file of another length is not changed.
    pub length: u64,
    /// Its mode and time.
    pub attributes: FileAttributes,
}

/// Bytes that are compared with zeros at a time.
const CHUNK: usize = 64 << 10;

impl TargetDirectory {
    /// Opens the regular file of `length` bytes with this name. `None` if there is no such file, or
    /// something else has the name.
    ///
    /// # Errors
    /// [`StagingError::NotADirectory`] if a directory above it is a link or file,
    /// [`StagingError::System`] if the file cannot be opened.
    pub fn existing(
        &self,
        name: &TargetName,
        length: u64,
    ) -> Result<Option<ExistingFile>, StagingError> {
        // Checked before opening, because opening a device or a pipe may have side effects.
        if !self.has_file(name, length)? {
            return Ok(None);
        }
        let Some(directory) = self.directory(name.parent().as_ref())? else { return Ok(None) };
        let path = self.path_of(name);
        let flags =
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let disk = Arc::clone(self.shared_disk());
        let file = match disk.open(directory.as_fd(), name.last(), flags, Mode::empty()) {
            Ok(file) => file,
            Err(Errno::NOENT | Errno::LOOP) => return Ok(None),
            Err(errno) => return Err(failed(&path, "read")(errno)),
        };
        let stat = disk.stat(file.as_fd()).map_err(failed(&path, "examine"))?;
        let is_it = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
            && stat.st_size as u64 == length;
        Ok(is_it.then_some(ExistingFile { disk, file, path }))
    }
}

impl ExistingFile {
    /// Fills `out` from byte `offset` on. False if the file ends before that.
    ///
    /// # Errors
    /// [`StagingError::System`].
    pub fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<bool, StagingError> {
        let read = self.disk.read_full(self.file.as_fd(), out, offset);
        let count = read.map_err(failed(&self.path, "read"))?;
        Ok(count == out.len())
    }

    /// The first byte of a range that is not in a hole; the end of the range if there is none.
    ///
    /// # Errors
    /// [`StagingError::System`].
    pub fn next_data(&self, range: Range<u64>) -> Result<u64, StagingError> {
        sys::next_data(&self.file, range).map_err(failed(&self.path, "examine"))
    }

    /// True if a range of it is all zeros. Holes are not read.
    ///
    /// # Errors
    /// [`StagingError::System`].
    pub fn is_zero(&self, range: Range<u64>) -> Result<bool, StagingError> {
        let mut chunk = vec![0; CHUNK];
        let mut at = range.start;
        while at < range.end {
            at = self.next_data(at..range.end)?;
            let count = range.end.saturating_sub(at).min(CHUNK as u64) as usize;
            let part = chunk.get_mut(..count).unwrap_or_default();
            if !self.read_at(at, part)? || part.iter().any(|&byte| byte != 0) {
                return Ok(false);
            }
            at += count as u64;
        }
        Ok(true)
    }
}

impl Staging {
    /// Gives existing files their modes and times, and waits until all of them are on the disk.
    /// Their contents do not change. A file that no longer exists is skipped. One that cannot be
    /// synced does not concern others.
    ///
    /// # Errors
    /// [`StagingError::System`] if all of them could not be synced together.
    pub fn correct(&self, files: &[Correction]) -> Result<Vec<StagingError>, StagingError> {
        if files.is_empty() {
            return Ok(Vec::new());
        }
        let permitted = self.permitted()?;
        // A sync of each file would wait for the disk each time, also if it has nothing to write.
        let together = files.len() > MANY_FILES && self.disk().reports_lost_writes();
        let corrected = files.iter().map(|file| self.correct_one(file, permitted, !together));
        let errors = corrected.filter_map(Result::err).collect();
        if together {
            let synced = self.disk().sync_file_system(self.directory().as_fd());
            synced.map_err(failed(&self.path(), "sync"))?;
        }
        Ok(errors)
    }

    fn correct_one(
        &self,
        Correction { name, length, attributes }: &Correction,
        permitted: Mode,
        syncs: bool,
    ) -> Result<(), StagingError> {
        let Some(ExistingFile { disk, file, path }) = self.target().existing(name, *length)? else {
            return Ok(());
        };
        let file = file.as_fd();
        let stat = disk.stat(file).map_err(failed(&path, "examine"))?;
        if !has_metadata(&stat, permitted, attributes) {
            set_metadata(&*disk, file, permitted, attributes).map_err(failed(&path, "finish"))?;
        }
        if syncs { disk.sync(file).map_err(failed(&path, "sync")) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{FileExt, symlink};

    #[test]
    fn only_a_regular_file_of_the_length_is_opened() {
        let directory = tempfile::tempdir().unwrap();
        let target = TargetDirectory::open(directory.path()).unwrap();
        std::fs::write(directory.path().join("file"), "abc").unwrap();
        std::fs::create_dir(directory.path().join("directory")).unwrap();
        symlink("file", directory.path().join("link")).unwrap();
        let exists = |name: &str, length| {
            let components: Vec<_> = name.split('/').collect();
            target.existing(&TargetName::new(&components).unwrap(), length).map(|f| f.is_some())
        };
        assert!(exists("file", 3).unwrap());
        for (name, length) in [("file", 2), ("file", 4), ("link", 3), ("directory", 0), ("no", 0)] {
            assert!(!exists(name, length).unwrap(), "{name} {length}");
        }
        assert!(exists("link/file", 3).is_err());
    }

    #[test]
    fn zeros_are_found_in_holes_and_in_data() {
        let directory = tempfile::tempdir().unwrap();
        let target = TargetDirectory::open(directory.path()).unwrap();
        let file = std::fs::File::create(directory.path().join("file")).unwrap();
        file.set_len(1 << 20).unwrap();
        file.write_all_at(&[0; 4096], 8192).unwrap();
        file.write_all_at(&[7], 200_000).unwrap();
        let existing =
            target.existing(&TargetName::new(&["file"]).unwrap(), 1 << 20).unwrap().unwrap();
        for (range, zero) in [
            (0..200_000, true),
            (0..200_001, false),
            (200_000..200_000, true),
            (200_001..1 << 20, true),
            (0..1 << 20, false),
        ] {
            assert_eq!(existing.is_zero(range.clone()).unwrap(), zero, "{range:?}");
        }
    }
}
