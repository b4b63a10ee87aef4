//! Deletion of received files that newer content lacks.
//!
//! As everywhere in the target directory, no symbolic link is followed on the way to a name. One
//! that has the name is itself deleted.

use crate::failure::{StagingError, failed};
use crate::target::{TargetDirectory, TargetName};
use crate::writable::with_write_access;
use rustix::fd::AsFd;
use rustix::fs::FileType;
use rustix::io::Errno;
use std::collections::BTreeSet;

impl TargetDirectory {
    /// Deletes the file or link with this name. Anything else that has the name stays, and a name
    /// that does not exist is no error.
    ///
    /// # Errors
    /// [`StagingError::NotADirectory`] if a directory above it is a link or file,
    /// [`StagingError::System`].
    pub fn remove_file(&self, name: &TargetName) -> Result<(), StagingError> {
        let Some(directory) = self.directory(name.parent().as_ref())? else { return Ok(()) };
        let path = self.path_of(name);
        let stat = match self.disk().stat_at(directory.as_fd(), name.last()) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(()),
            Err(errno) => return Err(failed(&path, "examine")(errno)),
        };
        if !matches!(
            FileType::from_raw_mode(stat.st_mode),
            FileType::RegularFile | FileType::Symlink
        ) {
            return Ok(());
        }
        let unlink = || self.disk().unlink(directory.as_fd(), name.last());
        match with_write_access(self.disk(), directory.as_fd(), unlink) {
            // A directory has taken its place.
            Ok(()) | Err(Errno::NOENT | Errno::ISDIR) => Ok(()),
            Err(errno) => Err(failed(&path, "delete")(errno)),
        }
    }

    /// Deletes a directory if it is empty. True if no directory has the name any more.
    ///
    /// # Errors
    /// As [`remove_file`](Self::remove_file).
    pub fn remove_empty_directory(&self, name: &TargetName) -> Result<bool, StagingError> {
        let Some(parent) = self.directory(name.parent().as_ref())? else { return Ok(true) };
        let remove = || self.disk().remove_directory(parent.as_fd(), name.last());
        match with_write_access(self.disk(), parent.as_fd(), remove) {
            Ok(()) | Err(Errno::NOENT | Errno::NOTDIR) => Ok(true),
            Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(false),
            Err(errno) => Err(failed(&self.path_of(name), "delete")(errno)),
        }
    }

    /// Waits until deletions of names are on the disk.
    ///
    /// # Errors
    /// [`StagingError::System`].
    pub fn sync_removed<'n>(
        &self,
        names: impl Iterator<Item = &'n TargetName>,
    ) -> Result<(), StagingError> {
        let parents: BTreeSet<_> = names.map(TargetName::parent).collect();
        for parent in parents {
            if self.directory(parent.as_ref())?.is_some() {
                self.sync(parent.as_ref())?;
            }
        }
        Ok(())
    }

    /// Whether a directory has the name.
    ///
    /// # Errors
    /// As [`remove_file`](Self::remove_file).
    pub fn has_directory(&self, name: &TargetName) -> Result<bool, StagingError> {
        Ok(self.directory(Some(name))?.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn name(path: &str) -> TargetName {
        TargetName::new(&path.split('/').collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn files_and_links_are_deleted_and_nothing_outside_or_of_another_kind() {
        let outer = tempfile::tempdir().unwrap();
        let (root, outside) = (outer.path().join("root"), outer.path().join("outside"));
        std::fs::create_dir_all(root.join("d/full")).unwrap();
        std::fs::create_dir(&outside).unwrap();
        for file in [outside.join("file"), root.join("d/file"), root.join("d/full/mine")] {
            std::fs::write(file, "x").unwrap();
        }
        symlink(&outside, root.join("link")).unwrap();
        let target = TargetDirectory::open(&root).unwrap();
        assert!(target.remove_file(&name("link/file")).is_err());
        assert!(target.remove_empty_directory(&name("link/file")).is_err());
        target.remove_file(&name("d/full")).unwrap();
        assert!(!target.remove_empty_directory(&name("d/full")).unwrap());
        assert!(root.join("d/full/mine").exists() && outside.join("file").exists());
        for gone in ["link", "d/file", "d/file", "nothing/there"] {
            target.remove_file(&name(gone)).unwrap();
        }
        assert!(!root.join("link").is_symlink() && !root.join("d/file").exists());
        assert!(outside.join("file").exists(), "the link was deleted, not what it leads to");
        std::fs::remove_file(root.join("d/full/mine")).unwrap();
        assert!(target.remove_empty_directory(&name("d/full")).unwrap());
        assert!(target.has_directory(&name("d")).unwrap());
        assert!(!target.has_directory(&name("d/full")).unwrap());
        target.sync_removed([name("d/file"), name("nothing/there")].iter()).unwrap();
    }
}
