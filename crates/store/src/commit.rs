//! What makes a verified file appear under its name. The crate's page tells the order and why.

use crate::staging::{StagedFile, State};
use crate::{FileIndex, Staging, StagingError, Timestamp, sys};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Mode, Timespec, Timestamps};
use std::collections::BTreeMap;

/// What a file is given when it is committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileAttributes {
    /// Permission bits. The process's umask applies; set-user-id, set-group-id and sticky bits are
    /// dropped.
    pub mode: u32,
    /// Time of last modification; `None` leaves the time of receiving.
    pub modified: Option<Timestamp>,
}

impl Default for FileAttributes {
    fn default() -> Self {
        Self { mode: 0o644, modified: None }
    }
}

impl Staging {
    /// Makes verified files appear under their names, in the order that the [crate] describes, and
    /// returns when they would survive a power failure. A file that was committed before is passed
    /// over. The caller vouches for every byte: nothing is verified here.
    ///
    /// # Errors
    /// [`StagingError::Exists`] if a name was taken meanwhile; it is then still there as it was,
    /// and the files of the list before it may have been committed. [`StagingError::System`] if the
    /// medium did not take a file; to commit it again fails too.
    pub fn commit(&self, files: &[FileIndex]) -> Result<(), StagingError> {
        let mut batch = BTreeMap::new();
        for &index in files {
            let file = self.file(index)?;
            if *file.read() != State::Gone {
                batch.insert(index, file);
            }
        }
        for name in batch.values().filter_map(|file| file.target.as_ref()) {
            self.target().check_free(name, self.overwrite())?;
        }
        for file in batch.values() {
            self.settle(file)?;
        }
        let published = batch.values().try_for_each(|file| self.publish(file));
        // Also if one of them failed: those before it are committed.
        published.and(self.target().sync())
    }

    /// Gives a file its length, mode and time and waits until the medium has all of it.
    fn settle(&self, file: &StagedFile) -> Result<(), StagingError> {
        self.create_file(file)?; // an empty file never saw a symbol
        let mut state = file.write();
        match *state {
            State::Staged => {}
            State::Doubtful => return Err(self.doubtful(file)),
            State::Absent | State::Settled | State::Gone => return Ok(()),
        }
        let open = self.open(file)?;
        set_attributes(&open, file.length, &file.attributes).map_err(self.failed(
            file,
            "finish",
            file.length,
        ))?;
        if let Err(errno) = sys::retry(|| rustix::fs::fsync(&open)) {
            *state = State::Doubtful;
            return Err(self.failed(file, "sync", file.length)(errno));
        }
        *state = State::Settled;
        Ok(())
    }

    /// Gives a settled file its final name.
    fn publish(&self, file: &StagedFile) -> Result<(), StagingError> {
        let mut state = file.write();
        if let (State::Settled, Some(target)) = (*state, &file.target) {
            self.close(file);
            let (directory, old) = (self.directory().as_fd(), file.staged_name());
            self.target().rename_into(directory, &old, target, self.overwrite())?;
            *state = State::Gone;
        }
        Ok(())
    }
}

fn set_attributes(
    file: &OwnedFd,
    length: u64,
    attributes: &FileAttributes,
) -> rustix::io::Result<()> {
    sys::retry(|| rustix::fs::ftruncate(file, length))?;
    // What the umask left of the bits that were asked for when the file was created.
    let created = rustix::fs::fstat(file)?.st_mode;
    rustix::fs::fchmod(file, Mode::from_raw_mode(created & attributes.mode & 0o777))?;
    if let Some(Timestamp { seconds, nanoseconds }) = attributes.modified {
        let omit = Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_OMIT };
        let modified = Timespec { tv_sec: seconds, tv_nsec: nanoseconds.min(999_999_999).into() };
        let times = Timestamps { last_access: omit, last_modification: modified };
        rustix::fs::futimens(file, &times)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Category, StagingOptions, TargetDirectory, TargetName};
    use std::sync::Arc;

    #[test]
    fn a_file_that_could_not_be_synced_is_never_committed() {
        let dir = tempfile::tempdir().unwrap();
        let target = Arc::new(TargetDirectory::open(dir.path()).unwrap());
        let staging = Staging::create(target, "test", StagingOptions::default()).unwrap().0;
        let name = TargetName::new(&["a"]).unwrap();
        let index = staging.add_file(name, 5, FileAttributes::default()).unwrap();
        let file = staging.file(index).unwrap();
        staging.write_all_at(&file, 0, b"bytes").unwrap();
        *file.write() = State::Doubtful;
        let errors = [staging.commit(&[index]), staging.write_all_at(&file, 0, b"bytes")];
        assert!(errors.iter().all(|e| e.as_ref().is_err_and(|e| e.category() == Category::Io)));
        assert!(!dir.path().join("a").exists());
        assert!(staging.path().join("0").exists());
    }
}
