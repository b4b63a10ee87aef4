//! Files that are given before their objects are complete: others share these objects, and bytes of
//! them are missing.
//!
//! A copy of the file gets the name. The staged file stays, because a later run needs its bytes to
//! complete the blocks. When the object is complete, the staged file takes the place of the copy,
//! if the name still has the same bytes; other bytes are the user's.

use super::{Key, StagedFile, Staging, State};
use crate::across::{self, Copied, Staged};
use crate::commit::{FailedFiles, MANY_FILES};
use crate::directories::Changed;
use crate::failure::{StagingError, failed};
use crate::ids::FileIndex;
use crate::journal::Note;
use crate::target::TargetName;
use rustix::fd::{AsFd, OwnedFd};
use std::sync::Arc;

/// Files that are copied before they are synced, noted and named: two descriptors for each.
const BATCH: usize = 128;
/// Bytes that are compared at a time.
const CHUNK: usize = 64 << 10;

/// The files that were given, and those that could not be.
#[derive(Debug, Default)]
pub struct Given {
    /// Files that now have their names, or had them: the caller gave them before.
    pub named: Vec<FileIndex>,
    /// The others, with their errors.
    pub failed: FailedFiles,
}

/// A copy that lacks its final name.
struct Copy<'f> {
    index: FileIndex,
    target: &'f TargetName,
    directory: Arc<OwnedFd>,
    copied: Copied,
    may_replace: bool,
}

impl Staging {
    /// Gives copies of files their final names, and waits until these would survive a power
    /// failure. The caller has verified every byte. Files without a final name are skipped.
    ///
    /// # Errors
    /// [`StagingError::System`] if notes or names could not be synced; [`StagingError::Geometry`]
    /// if there is no such file.
    pub fn give_each(&self, files: &[FileIndex]) -> Result<Given, StagingError> {
        let mut given = Given::default();
        for batch in files.chunks(BATCH) {
            let staged = |&index: &FileIndex| Ok((index, self.file(index)?));
            let batch = batch.iter().map(staged).collect::<Result<Vec<_>, StagingError>>()?;
            self.give_batch(&batch, &mut given)?;
        }
        Ok(given)
    }

    fn give_batch(
        &self,
        batch: &[(FileIndex, Arc<StagedFile>)],
        given: &mut Given,
    ) -> Result<(), StagingError> {
        let (mut changed, mut copies) = (Changed::new(), Vec::new());
        for (index, file) in batch {
            let Some(target) = &file.target else { continue };
            if *file.read() == State::Gone || self.has_given_bytes(file, target)? {
                given.named.push(*index);
                continue;
            }
            match self.copy(*index, file, target, &mut changed, copies.last()) {
                Ok(copy) => copies.push(copy),
                Err(error) => given.failed.push((*index, error)),
            }
        }
        if copies.len() > MANY_FILES {
            // Then less is left to do for each.
            let synced = self.disk().sync_file_system(self.directory().as_fd());
            synced.map_err(failed(&self.path(), "sync"))?;
        }
        copies.retain(|copy| {
            let path = self.target().path_of(copy.target);
            let error = copy.copied.sync(self.disk()).map_err(failed(&path, "sync")).err();
            let is_synced = error.is_none();
            self.drop_copy(copy, error, given);
            is_synced
        });
        let notes: Vec<_> = copies.iter().map(|copy| Note::Given { file: copy.index }).collect();
        if !notes.is_empty() {
            self.note(&notes)?;
            self.sync_notes()?;
        }
        self.given().extend(copies.iter().map(|copy| copy.index));
        for copy in &copies {
            let named = self.target().name_copy(
                copy.directory.as_fd(),
                &copy.copied.name,
                copy.target,
                copy.may_replace,
            );
            match named {
                Ok(()) => {
                    changed.insert(copy.target.parent());
                    given.named.push(copy.index);
                }
                Err(error) => self.drop_copy(copy, Some(error), given),
            }
        }
        self.sync_changed(&changed)
    }

    /// Copies a file into its directory. Files of one directory are consecutive: it is that of the
    /// copy before.
    fn copy<'f>(
        &self,
        index: FileIndex,
        file: &StagedFile,
        target: &'f TargetName,
        changed: &mut Changed,
        before: Option<&Copy<'f>>,
    ) -> Result<Copy<'f>, StagingError> {
        let may_replace = self.overwrites(target);
        self.target().check_free(target, may_replace)?;
        let directory = match before {
            Some(before) if before.target.parent() == target.parent() => {
                Arc::clone(&before.directory)
            }
            _ => Arc::new(self.enter_parent(target, changed)?),
        };
        let staged = file.staged_name();
        let from = Staged { directory: self.directory().as_fd(), name: staged.as_bytes() };
        let copied = across::copy(self.disk(), from, directory.as_fd(), Some(&file.attributes))
            .map_err(self.failed(file, "copy", file.length))?;
        Ok(Copy { index, target, directory, copied, may_replace })
    }

    /// Removes a copy that does not get its name.
    fn drop_copy(&self, copy: &Copy<'_>, error: Option<StagingError>, given: &mut Given) {
        if let Some(error) = error {
            let _ = self.disk().unlink(copy.directory.as_fd(), &copy.copied.name);
            given.failed.push((copy.index, error));
        }
    }

    /// Whether a file was given, and its name has its bytes.
    pub(crate) fn has_given_bytes(
        &self,
        file: &StagedFile,
        name: &TargetName,
    ) -> Result<bool, StagingError> {
        let Key::Data(index) = file.key else { return Ok(false) };
        if !self.is_given(FileIndex(index)) {
            return Ok(false);
        }
        let Some(existing) = self.target().existing(name, file.length)? else { return Ok(false) };
        // Its bytes are in staging, unless that was damaged.
        let Ok(staged) = self.open(file) else { return Ok(false) };
        let (mut one, mut other, mut at) = (vec![0; CHUNK], vec![0; CHUNK], 0);
        while at < file.length {
            let count = CHUNK.min(usize::try_from(file.length - at).unwrap_or(CHUNK));
            let parts = one.get_mut(..count).zip(other.get_mut(..count));
            let Some((one, other)) = parts else { return Ok(false) };
            let read = self.disk().read_full(staged.as_fd(), one, at);
            let read = read.map_err(self.failed(file, "read", 0))?;
            if read != count || !existing.read_at(at, other)? || one != other {
                return Ok(false);
            }
            at += count as u64;
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attributes::FileAttributes;
    use crate::staging::StagingOptions;
    use crate::target::TargetDirectory;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    /// Enters the staging directory, and adds two files of four bytes.
    fn enter(path: &Path) -> (Staging, [FileIndex; 2]) {
        let target = Arc::new(TargetDirectory::open(path).unwrap());
        let staging = Staging::create(target, "test", StagingOptions::default()).unwrap().0;
        let files = ["d/a", "d/b"].map(|name| {
            let name = TargetName::new(&name.split('/').collect::<Vec<_>>()).unwrap();
            let modified = Some(crate::Timestamp { seconds: 5, nanoseconds: 0 });
            staging.add_file(name, 4, FileAttributes { mode: 0o444, modified }).unwrap()
        });
        (staging, files)
    }

    #[test]
    fn a_file_that_is_given_is_a_copy_until_it_is_committed() {
        let dir = tempfile::tempdir().unwrap();
        let (staging, [a, b]) = enter(dir.path());
        staging.write_file(a, 0, b"abcd").unwrap();
        let given = staging.give_each(&[a]).unwrap();
        assert_eq!((given.named, given.failed.len()), (vec![a], 0));
        let path = dir.path().join("d/a");
        let metadata = std::fs::metadata(&path).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"abcd");
        assert_eq!(metadata.permissions().mode() & 0o777, 0o444);
        let since = metadata.modified().unwrap().duration_since(std::time::UNIX_EPOCH).unwrap();
        assert_eq!(since.as_secs(), 5);
        assert_eq!(std::fs::read_dir(dir.path().join("d")).unwrap().count(), 1, "no other name");
        drop(staging);

        // The next run has its bytes, and commits it with the others.
        let (staging, [a, b2]) = enter(dir.path());
        assert_eq!(b, b2);
        assert_eq!(staging.give_each(&[a]).unwrap().named, [a], "it has been given");
        staging.write_file(b, 0, b"efgh").unwrap();
        staging.commit(&[a, b]).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"abcd");
        assert_eq!(std::fs::read(dir.path().join("d/b")).unwrap(), b"efgh");
        staging.remove().unwrap();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_the_user_made_of_a_given_file_stays() {
        let dir = tempfile::tempdir().unwrap();
        let (staging, [a, b]) = enter(dir.path());
        staging.write_file(a, 0, b"abcd").unwrap();
        staging.give_each(&[a]).unwrap();
        drop(staging);
        let path = dir.path().join("d/a");
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "mine").unwrap();
        let (staging, [a, _]) = enter(dir.path());
        staging.write_file(b, 0, b"efgh").unwrap();
        let failed = staging.settle_each(&[a, b]).unwrap();
        assert!(matches!(&failed[..], [(file, StagingError::Exists { .. })] if *file == a));
        staging.publish(&[b]).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"mine");
        assert_eq!(std::fs::read(dir.path().join("d/b")).unwrap(), b"efgh");
        // One that the user has removed is given again, or committed.
        std::fs::remove_file(&path).unwrap();
        assert_eq!(staging.give_each(&[a]).unwrap().named, [a]);
        assert_eq!(std::fs::read(&path).unwrap(), b"abcd");
    }

    #[test]
    fn a_taken_name_does_not_concern_other_files() {
        let dir = tempfile::tempdir().unwrap();
        let (staging, [a, b]) = enter(dir.path());
        staging.write_file(a, 0, b"abcd").unwrap();
        staging.write_file(b, 0, b"efgh").unwrap();
        std::fs::create_dir(dir.path().join("d")).unwrap();
        std::fs::write(dir.path().join("d/a"), "abcd").unwrap();
        let given = staging.give_each(&[a, b]).unwrap();
        assert_eq!(given.named, [b]);
        assert!(matches!(&given.failed[..], [(_, StagingError::Exists { .. })]));
    }
}
