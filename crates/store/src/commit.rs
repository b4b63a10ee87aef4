//! Commits: a verified file gets its final name. The crate's page describes the order and its
//! reason.

use crate::attributes::{FileAttributes, has_mode, set_metadata, set_time_at};
use crate::directories::Changed;
use crate::disk::Disk;
use crate::failure::StagingError;
use crate::ids::FileIndex;
use crate::staging::Staging;
use crate::staging::{StagedFile, State};
use crate::target::TargetName;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{FileType, Mode};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// More files than this in one commit are synced with all others on their file system. Then no file
/// waits for a journal commit of the file system, or for a flush of the device's cache, of its own
/// (0.2 ms and more). A correction of as many files syncs them in the same way.
pub(crate) const MANY_FILES: usize = 64;

/// Files that could not be committed, each with its error.
pub type FailedFiles = Vec<(FileIndex, StagingError)>;

/// Notes an error of a file. True if there is none.
fn keeps(failed: &mut FailedFiles, index: FileIndex, result: Result<(), StagingError>) -> bool {
    let is_kept = result.is_ok();
    failed.extend(result.err().map(|error| (index, error)));
    is_kept
}

/// The first error.
fn first_of(failed: FailedFiles) -> Result<(), StagingError> {
    failed.into_iter().next().map_or(Ok(()), |(_, error)| Err(error))
}

impl Staging {
    /// Gives verified files their final names, in the order that the [crate] describes, and returns
    /// when they would survive a power failure. A file that is committed already is skipped. The
    /// caller has verified every byte; nothing is verified here.
    ///
    /// # Errors
    /// Those of [`settle`](Self::settle) and [`publish`](Self::publish).
    pub fn commit(&self, files: &[FileIndex]) -> Result<(), StagingError> {
        self.settle(files)?;
        self.publish(files)
    }

    /// The first half of a commit: gives files their lengths, modes and times, and waits until all
    /// of them are on the disk. From here on only their names are missing, and they cannot be
    /// written to.
    ///
    /// # Errors
    /// [`StagingError::Exists`] if a name was taken since the file was added; no file has changed
    /// then. [`StagingError::System`] if a file could not be synced; to commit it again fails too.
    pub fn settle(&self, files: &[FileIndex]) -> Result<(), StagingError> {
        let batch = self.batch(files)?;
        let mut names = Vec::with_capacity(batch.len());
        for file in batch.values() {
            if let Some(name) = &file.target {
                names.push((name, self.may_replace(file)?));
            }
        }
        self.target().check_all_free(names)?;
        first_of(self.settle_each(files)?)
    }

    /// Like [`settle`](Self::settle), but a file that cannot be settled does not concern others.
    /// Returns these files, with their errors.
    ///
    /// # Errors
    /// [`StagingError::System`] if all of them could not be synced together;
    /// [`StagingError::Geometry`] if there is no such file.
    pub fn settle_each(&self, files: &[FileIndex]) -> Result<FailedFiles, StagingError> {
        let mut batch = self.batch(files)?;
        let (mut failed, mut open) = (FailedFiles::new(), None);
        let mut check = |file: &StagedFile| match &file.target {
            Some(name) => {
                let name = (name, self.may_replace(file)?);
                self.target().check_next_free(name, &mut open)
            }
            None => Ok(()),
        };
        batch.retain(|&index, file| keeps(&mut failed, index, check(file)));
        batch.retain(|&index, file| keeps(&mut failed, index, self.close_for_symbols(file)));
        let together = batch.len() > MANY_FILES;
        if together {
            self.sync_together(batch.values())?;
        }
        let is_synced = together && self.disk().reports_lost_writes();
        batch.retain(|&index, file| keeps(&mut failed, index, self.settle_one(file, is_synced)));
        Ok(failed)
    }

    /// The second half of a commit: gives settled files their names, creating missing directories,
    /// and waits until the names are on the disk.
    ///
    /// # Errors
    /// [`StagingError::Exists`] if a name was taken meanwhile. It is unchanged then, and files
    /// before it in the list may have got their names. [`StagingError::NotADirectory`] if a
    /// directory was replaced by something else.
    pub fn publish(&self, files: &[FileIndex]) -> Result<(), StagingError> {
        first_of(self.publish_each(files)?)
    }

    /// Like [`publish`](Self::publish), but a file that cannot get its name does not concern
    /// others. Returns these files, with their errors.
    ///
    /// # Errors
    /// [`StagingError::System`] if names could not be synced; [`StagingError::Geometry`] if a file
    /// does not exist.
    pub fn publish_each(&self, files: &[FileIndex]) -> Result<FailedFiles, StagingError> {
        let batch = self.batch(files)?;
        let mut changed = Changed::new();
        // Files of one directory are consecutive: it is opened once.
        let mut open: Option<(Option<TargetName>, OwnedFd)> = None;
        let mut publish = |file: &StagedFile| {
            let Some(target) = &file.target else { return Ok(()) };
            let parent = target.parent();
            let directory = match open.take() {
                Some((name, directory)) if name == parent => directory,
                _ => self.enter_parent(target, &mut changed)?,
            };
            self.publish_one(file, target, &directory)?;
            changed.insert(parent.clone());
            open = Some((parent, directory));
            Ok(())
        };
        let mut failed = FailedFiles::new();
        for (&index, file) in &batch {
            keeps(&mut failed, index, publish(file));
        }
        self.sync_changed(&changed)?;
        Ok(failed)
    }

    fn batch(
        &self,
        files: &[FileIndex],
    ) -> Result<BTreeMap<FileIndex, Arc<StagedFile>>, StagingError> {
        let mut batch = BTreeMap::new();
        for &index in files {
            let file = self.file(index)?;
            if *file.read() != State::Gone {
                batch.insert(index, file);
            }
        }
        Ok(batch)
    }

    /// Gives a file its length, mode and time.
    fn close_for_symbols(&self, file: &StagedFile) -> Result<(), StagingError> {
        if let Some(leads_to) = &file.link {
            return self.settle_link(file, leads_to);
        }
        self.create_file(file)?; // no symbol was written to an empty file
        let mut state = file.write();
        if *state == State::Staged && file.refused.load(Ordering::SeqCst) {
            *state = State::Doubtful;
        }
        match *state {
            State::Staged => {}
            State::Doubtful => return Err(self.doubtful(file)),
            State::Absent | State::Closed | State::Settled | State::Gone => return Ok(()),
        }
        if !self.finish_by_name(file).map_err(self.failed(file, "finish", file.length))? {
            let open = self.open(file)?;
            set_attributes(self.disk(), open.as_fd(), file.length, &file.attributes)
                .map_err(self.failed(file, "finish", file.length))?;
        }
        *state = State::Closed;
        Ok(())
    }

    /// Gives a file that has its length and mode its time, without opening it: a file that was
    /// created here has both, and a commit may have thousands of small files. False if it has not.
    fn finish_by_name(&self, file: &StagedFile) -> rustix::io::Result<bool> {
        if file.is_outside() {
            return Ok(false);
        }
        let name = file.staged_name();
        let (disk, directory) = (self.disk(), self.directory().as_fd());
        let stat = disk.stat_at(directory, name.as_bytes())?;
        let created = Mode::from_raw_mode(stat.st_mode & 0o777);
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile
            || stat.st_size as u64 != file.length
            || !has_mode(&stat, created, &file.attributes)
        {
            return Ok(false);
        }
        set_time_at(disk, directory, &name, &file.attributes)?;
        Ok(true)
    }

    /// Waits until all of a file is on the disk, unless it is.
    fn settle_one(&self, file: &StagedFile, is_synced: bool) -> Result<(), StagingError> {
        let mut state = file.write();
        match *state {
            State::Closed if !file.refused.load(Ordering::SeqCst) => {}
            State::Closed | State::Staged | State::Doubtful => {
                *state = State::Doubtful;
                return Err(self.doubtful(file));
            }
            State::Absent | State::Settled | State::Gone => return Ok(()),
        }
        if !is_synced {
            let open = self.open(file)?;
            if let Err(errno) = self.disk().sync(open.as_fd()) {
                *state = State::Doubtful;
                return Err(self.failed(file, "sync", file.length)(errno));
            }
        }
        *state = State::Settled;
        Ok(())
    }

    fn settle_link(&self, file: &StagedFile, leads_to: &[u8]) -> Result<(), StagingError> {
        let mut state = file.write();
        if *state == State::Absent {
            let name = file.staged_name();
            // An earlier receiver may have been interrupted here.
            let (disk, directory) = (self.disk(), self.directory().as_fd());
            match disk.unlink(directory, name.as_bytes()) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(errno) => return Err(self.failed(file, "remove", 0)(errno)),
            }
            disk.make_link(leads_to, directory, name.as_bytes())
                .map_err(self.failed(file, "create", 0))?;
            *state = State::Settled;
        }
        Ok(())
    }

    /// Gives a settled file its final name in `directory`.
    fn publish_one(
        &self,
        file: &StagedFile,
        target: &TargetName,
        directory: &OwnedFd,
    ) -> Result<(), StagingError> {
        let mut state = file.write();
        if *state == State::Settled {
            let overwrite = self.may_replace(file)?;
            self.close(file);
            let (from, old) = (self.directory().as_fd(), file.staged_name());
            self.target().rename_into(from, &old, directory.as_fd(), target, overwrite)?;
            *state = State::Gone;
        }
        Ok(())
    }
}

fn set_attributes(
    disk: &dyn Disk,
    file: BorrowedFd<'_>,
    length: u64,
    attributes: &FileAttributes,
) -> rustix::io::Result<()> {
    disk.set_length(file, length)?;
    // The bits that the umask left when the file was created.
    let created = Mode::from_raw_mode(disk.stat(file)?.st_mode & 0o777);
    set_metadata(disk, file, created, attributes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::staging::StagingOptions;
    use crate::target::{TargetDirectory, TargetName};
    use fontana_proto::Category;
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

    #[test]
    fn a_file_that_could_not_be_synced_is_not_marked_as_synced() {
        let dir = tempfile::tempdir().unwrap();
        let target = Arc::new(TargetDirectory::open(dir.path()).unwrap());
        let options = StagingOptions::default();
        let staging = Staging::create(Arc::clone(&target), "test", options).unwrap().0;
        let name = TargetName::new(&["a"]).unwrap();
        let index = staging.add_file(name, 5, FileAttributes::default()).unwrap();
        let file = staging.file(index).unwrap();
        staging.write_all_at(&file, 0, b"bytes").unwrap();
        let length = || std::fs::metadata(staging.path().join("journal")).unwrap().len();
        let before = length();
        *file.write() = State::Doubtful;
        assert!(staging.sync().is_err_and(|error| error.category() == Category::Io));
        assert_eq!(length(), before, "no mark");
    }
}
