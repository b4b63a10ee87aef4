//! The directories of a received tree: made when the first file needs them, for this user alone,
//! and given their modes and times at the end, the deepest first, because everything that is put
//! into a directory changes its time and a mode may forbid it.
//!
//! A directory that was there before is entered and otherwise left as it was, unless files may be
//! replaced too.

use crate::attributes::{FileAttributes, set_metadata};
use crate::directory_table::Directory;
use crate::failure::StagingError;
use crate::failure::failed;
use crate::journal::Note;
use crate::staging::Staging;
use crate::target::TargetName;
use crate::target::sync_directory;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, Mode};
use rustix::io::Errno;
use std::collections::BTreeSet;

/// What a directory is given that nothing is said of: what `mkdir` would.
const BARE: FileAttributes = FileAttributes { mode: 0o777, modified: None };

/// Directories with new names in them, which are not synced yet; `None` is the target.
pub(crate) type Changed = BTreeSet<Option<TargetName>>;

impl Staging {
    /// Adds a directory that is to be there at the end, with these attributes if it was not there
    /// before. Directories that only files are in need not be added.
    ///
    /// # Errors
    /// [`StagingError::NotADirectory`] if something else has its name, or stands above it.
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

    /// Keeps the place of a directory that is not received itself: with `attributes` it is made if
    /// something in it is.
    pub fn pass_over_directory(&self, name: TargetName, attributes: FileAttributes) {
        self.directories().pass_over_above(&name, self.made());
        self.directories().add(name, Some(attributes), self.made(), false);
    }

    /// Opens the directory that a name is in, making those that are missing.
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

    /// Opens a directory in an existing one, making it if it is missing.
    fn enter(
        &self,
        name: Option<&TargetName>,
        changed: &mut Changed,
    ) -> Result<OwnedFd, StagingError> {
        if let Some(directory) = self.target().directory(name)? {
            return Ok(directory);
        }
        // The target itself is held open; it can only be missing if somebody removed it.
        let Some(name) = name else {
            return Err(failed(self.target().path(), "enter")(Errno::NOENT));
        };
        let number = self.directories().lock().get(name).map(|directory| directory.number);
        if let Some(directory) = number {
            // Before it is made: otherwise a life that ends in between leaves a directory that
            // nobody knows to be ours.
            self.note(&[Note::Made { directory }])?;
        }
        let opened = self.target().make_directory(name)?;
        if let Some(directory) = self.directories().lock().get_mut(name) {
            directory.made = true;
        }
        changed.insert(name.parent());
        Ok(opened)
    }

    /// Waits until new names are on the medium.
    pub(crate) fn sync_changed(&self, changed: &Changed) -> Result<(), StagingError> {
        changed.iter().try_for_each(|directory| self.target().sync(directory.as_ref()))
    }

    /// Makes the directories that are still missing and gives all that were made here their modes
    /// and times: after everything in them was committed. Returns when they would survive a power
    /// failure.
    ///
    /// # Errors
    /// [`StagingError::NotADirectory`], [`StagingError::System`].
    pub fn commit_directories(&self) -> Result<(), StagingError> {
        let wanted =
            |(name, directory): (&TargetName, &Directory)| directory.wanted.then(|| name.clone());
        let names: Vec<_> = self.directories().lock().iter().filter_map(wanted).collect();
        let mut changed = Changed::new();
        let made = names.iter().try_for_each(|name| {
            self.enter_parent(name, &mut changed)?;
            self.enter(Some(name), &mut changed).map(drop)
        });
        made.and(self.sync_changed(&changed))?;
        self.finish_directories()
    }

    /// Gives the directories that were made here their modes and times: also of a reception that
    /// ends before everything is there. None is made. Returns when the medium has them.
    ///
    /// # Errors
    /// [`StagingError::System`].
    pub fn finish_directories(&self) -> Result<(), StagingError> {
        let names: Vec<_> = self.directories().lock().keys().cloned().collect();
        if names.is_empty() {
            return Ok(());
        }
        let permitted = self.permitted()?;
        // In the order of names a directory comes before what is in it.
        for name in names.iter().rev() {
            let attributes = match self.directories().lock().get(name) {
                Some(&Directory { attributes, made: true, .. }) => attributes.unwrap_or(BARE),
                // Of one that was there before only what the sender says of it may be changed.
                Some(&Directory { attributes: Some(said), .. }) if self.overwrites_everything() => {
                    said
                }
                _ => continue,
            };
            let path = self.target().path_of(name);
            let Some(directory) = self.target().directory(Some(name))? else { continue };
            set_metadata(&directory, permitted, &attributes).map_err(failed(&path, "finish"))?;
            sync_directory(directory.as_fd()).map_err(failed(&path, "sync"))?;
        }
        Ok(())
    }

    /// Permission bits that the umask leaves. The kernel applies it here; reading it would mean
    /// changing it for all threads.
    pub(crate) fn permitted(&self) -> Result<Mode, StagingError> {
        const PROBE: &str = "umask";
        let probe = || {
            match rustix::fs::mkdirat(self.directory(), PROBE, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno),
            }
            let stat = rustix::fs::statat(self.directory(), PROBE, AtFlags::SYMLINK_NOFOLLOW)?;
            rustix::fs::unlinkat(self.directory(), PROBE, AtFlags::REMOVEDIR)?;
            Ok(Mode::from_raw_mode(stat.st_mode & 0o777))
        };
        probe().map_err(failed(&self.path(), "create a directory in"))
    }
}
