//! The directories of a received tree. They are created when the first file needs them, with mode
//! 0700. They get their modes and times at the end, the deepest first: a file that is added to a
//! directory changes its time, and a mode may forbid adding one.
//!
//! A directory that existed before is left unchanged, unless files may be replaced too.

use crate::attributes::{FileAttributes, set_metadata};
use crate::directory_table::Directory;
use crate::failure::StagingError;
use crate::failure::failed;
use crate::journal::Note;
use crate::staging::Staging;
use crate::target::TargetName;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::Mode;
use rustix::io::Errno;
use std::collections::BTreeSet;

/// Attributes of a directory for which the sender gives none: as `mkdir` creates it.
const BARE: FileAttributes = FileAttributes { mode: 0o777, modified: None };

/// Directories with new names in them that are not synced yet; `None` is the target directory.
pub(crate) type Changed = BTreeSet<Option<TargetName>>;

impl Staging {
    /// Adds a received directory. It gets these attributes if it did not exist before. Directories
    /// that only contain files need not be added.
    ///
    /// # Errors
    /// [`StagingError::NotADirectory`] if something else has its name, or that of a directory above
    /// it.
    pub fn add_directory(
        &self,
        name: TargetName,
        attributes: FileAttributes,
    ) -> Result<(), StagingError> {
        self.target().check_directory(&name)?;
        self.directories().add_above(&name, self.made());
        self.directories().add(name, Some(attributes), self.made(), true);
        Ok(())
    }

    /// Reserves the number of a directory that is not received. It is created with `attributes` if
    /// something in it is received.
    pub fn pass_over_directory(&self, name: TargetName, attributes: FileAttributes) {
        self.directories().pass_over_above(&name, self.made());
        self.directories().add(name, Some(attributes), self.made(), false);
    }

    /// Opens the directory of a name, creating missing ones.
    pub(crate) fn enter_parent(
        &self,
        name: &TargetName,
        changed: &mut Changed,
    ) -> Result<OwnedFd, StagingError> {
        let mut parents = name.parents();
        let Some(innermost) = parents.last() else {
            return self.enter(None, changed);
        };
        if let Some(directory) = self.target().directory(Some(innermost))? {
            return Ok(directory);
        }
        let innermost = parents.pop();
        for parent in &parents {
            self.enter(Some(parent), changed)?;
        }
        self.enter(innermost.as_ref(), changed)
    }

    /// Opens a directory in an existing one, creating it if it is missing.
    fn enter(
        &self,
        name: Option<&TargetName>,
        changed: &mut Changed,
    ) -> Result<OwnedFd, StagingError> {
        if let Some(directory) = self.target().directory(name)? {
            return Ok(directory);
        }
        // The target directory itself is held open; it is missing only if a user removed it.
        let Some(name) = name else {
            return Err(failed(self.target().path(), "enter")(Errno::NOENT));
        };
        let number = self.directories().lock().get(name).map(|directory| directory.number);
        if let Some(directory) = number {
            // Recorded before the directory is created: otherwise a run that ends in between leaves
            // a directory that no later run recognises.
            self.note(&[Note::Made { directory }])?;
        }
        let opened = self.target().make_directory(name)?;
        if let Some(directory) = self.directories().lock().get_mut(name) {
            directory.made = true;
        }
        changed.insert(name.parent());
        Ok(opened)
    }

    /// Waits until new names are on the disk.
    pub(crate) fn sync_changed(&self, changed: &Changed) -> Result<(), StagingError> {
        changed.iter().try_for_each(|directory| self.target().sync(directory.as_ref()))
    }

    /// Creates the directories that are still missing, and gives all created directories their
    /// modes and times. Call it after everything in them was committed. Returns when they, and all
    /// names that earlier receivers gave, would survive a power failure. A directory that cannot be
    /// created or synced does not concern others.
    ///
    /// # Errors
    /// [`StagingError::System`] if what earlier receivers did cannot be synced.
    pub fn commit_directories(&self) -> Result<Vec<StagingError>, StagingError> {
        let wanted =
            |(name, directory): (&TargetName, &Directory)| directory.wanted.then(|| name.clone());
        let names: Vec<_> = self.directories().lock().iter().filter_map(wanted).collect();
        let (mut changed, mut errors) = (Changed::new(), Vec::new());
        for name in &names {
            let made = self.enter_parent(name, &mut changed);
            let made = made.and_then(|_| self.enter(Some(name), &mut changed));
            errors.extend(made.err());
        }
        self.sync_changed(&changed)?;
        errors.extend(self.finish_directories()?);
        if self.is_resumed() {
            // An earlier receiver may have ended between a name and its sync.
            let synced = self.disk().sync_file_system(self.directory().as_fd());
            synced.map_err(failed(&self.path(), "sync"))?;
        }
        Ok(errors)
    }

    /// Gives the directories that were created here their modes and times, also if the reception is
    /// incomplete. Creates none. Returns when the changes are on the disk. A directory that cannot
    /// be changed does not concern others.
    ///
    /// # Errors
    /// [`StagingError::System`] if none can be changed.
    pub fn finish_directories(&self) -> Result<Vec<StagingError>, StagingError> {
        let names: Vec<_> = self.directories().lock().keys().cloned().collect();
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let permitted = self.permitted()?;
        // In the order of names a directory comes before its contents.
        let finished = names.iter().rev().map(|name| self.finish_directory(name, permitted));
        Ok(finished.filter_map(Result::err).collect())
    }

    fn finish_directory(&self, name: &TargetName, permitted: Mode) -> Result<(), StagingError> {
        let attributes = match self.directories().lock().get(name) {
            Some(&Directory { attributes, made: true, .. }) => attributes.unwrap_or(BARE),
            // A directory that existed before may get only attributes that the sender gives.
            Some(&Directory { attributes: Some(said), .. }) if self.overwrites_everything() => said,
            _ => return Ok(()),
        };
        let path = self.target().path_of(name);
        let Some(directory) = self.target().directory(Some(name))? else { return Ok(()) };
        let (disk, directory) = (self.disk(), directory.as_fd());
        set_metadata(disk, directory, permitted, &attributes).map_err(failed(&path, "finish"))?;
        disk.sync_directory(directory).map_err(failed(&path, "sync"))
    }

    /// Permission bits that the umask allows. The kernel applies the umask here; to read it, it
    /// would have to be changed for all threads.
    pub(crate) fn permitted(&self) -> Result<Mode, StagingError> {
        const PROBE: &[u8] = b"umask";
        let (disk, directory) = (self.disk(), self.directory().as_fd());
        let probe = || {
            match disk.make_directory(directory, PROBE, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno),
            }
            let stat = disk.stat_at(directory, PROBE)?;
            disk.remove_directory(directory, PROBE)?;
            Ok(Mode::from_raw_mode(stat.st_mode & 0o777))
        };
        probe().map_err(failed(&self.path(), "create a directory in"))
    }
}
