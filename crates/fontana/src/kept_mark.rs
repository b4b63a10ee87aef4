//! The high-water mark of a directory during a reception.

mod mark;

use crate::error::{Error, SetupError};
use crate::versions::Versions;
use fontana_store::{StagingError, TargetDirectory, TargetName};
use fontana_wire::{Entry, Manifest, PublicKey, RelativePath};
use mark::Mark;
use std::collections::BTreeSet;

/// The high-water mark of the publisher in the target directory.
#[derive(Debug)]
pub(crate) struct KeptMark {
    publisher: PublicKey,
    mark: Mark,
    follows: bool,
    deletes: bool,
}

/// The names of a version that is received.
pub(crate) struct VersionNames<'n> {
    /// Files and links.
    pub(crate) files: Vec<&'n [u8]>,
    /// Those of the files and links that are in the directory, as the version has them.
    pub(crate) found: BTreeSet<&'n [u8]>,
    /// Directories, and those above files.
    pub(crate) directories: BTreeSet<Vec<u8>>,
}

/// What a reception does with the mark of its directory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MarkUse {
    pub(crate) versions: Versions,
    /// It deletes what earlier versions created and the newest one lacks.
    pub(crate) deletes: bool,
}

impl KeptMark {
    /// Reads the mark. `None` without a publisher, if any version is accepted, and in a directory
    /// without a mark unless versions are followed or files deleted, which creates one.
    pub(crate) fn open(
        target: &TargetDirectory,
        publisher: Option<PublicKey>,
        MarkUse { versions, deletes }: MarkUse,
    ) -> Result<Option<Self>, Error> {
        let follows = versions == Versions::Newer;
        let publisher = match publisher {
            None if follows || deletes => return Err(SetupError::NoPublisher.into()),
            Some(publisher) if versions != Versions::Any => publisher,
            _ => return Ok(None),
        };
        let mark = Mark::read(target, &publisher)?;
        let creates = follows || deletes;
        let mark = if creates { Some(mark.unwrap_or_default()) } else { mark };
        Ok(mark.map(|mark| Self { publisher, mark, follows, deletes }))
    }

    /// The version that an accepted version must exceed.
    pub(crate) fn newer_than(&self) -> Option<u64> {
        match self.follows {
            true => self.mark.version,
            false => self.mark.version.and_then(|version| version.checked_sub(1)),
        }
    }

    /// Whether it receives one newer version after the other.
    pub(crate) fn follows(&self) -> bool {
        self.follows
    }

    /// Names of files that a newer version may replace.
    pub(crate) fn replaceable(&self) -> BTreeSet<Vec<u8>> {
        if self.follows { self.mark.names.clone() } else { BTreeSet::new() }
    }

    /// Records the names of a version before its files appear.
    pub(crate) fn add_names(
        &mut self,
        target: &TargetDirectory,
        names: &VersionNames<'_>,
    ) -> Result<(), Error> {
        let mut changed = false;
        for &path in &names.files {
            let was_found = names.found.contains(path);
            let is_new = self.mark.names.insert(path.to_vec());
            changed |= is_new;
            if was_found && is_new {
                self.mark.found.insert(path.to_vec());
            } else if !was_found {
                changed |= self.mark.found.remove(path);
            }
        }
        for path in &names.directories {
            if !target.has_directory(&target_name(path)?)? {
                changed |= self.mark.directories.insert(path.clone());
            }
        }
        if changed { self.mark.write(target, &self.publisher) } else { Ok(()) }
    }

    /// Deletes what versions created where this one has another kind of entry: a file or link where
    /// it has a directory, and a directory where it has a file or link. What others have put into
    /// such a directory stays, and is then in the way.
    pub(crate) fn make_way<'n>(
        &mut self,
        target: &TargetDirectory,
        directories: &BTreeSet<Vec<u8>>,
        files: impl Iterator<Item = &'n [u8]>,
    ) -> Result<(), Error> {
        if !self.follows {
            return Ok(());
        }
        let mut were_files: BTreeSet<_> =
            self.mark.names.intersection(directories).cloned().collect();
        let mut were_directories = BTreeSet::new();
        for path in files.filter(|&path| self.mark.directories.contains(path)) {
            let below = [path, b"/"].concat();
            let is_below = |found: &&Vec<u8>| found.starts_with(&below);
            let names = self.mark.names.range(below.clone()..).take_while(is_below);
            were_files.extend(names.filter(|&name| !self.mark.found.contains(name)).cloned());
            let inner = self.mark.directories.range(below.clone()..).take_while(is_below);
            were_directories.extend(inner.cloned());
            were_directories.insert(path.to_vec());
        }
        if were_files.is_empty() && were_directories.is_empty() {
            return Ok(());
        }
        for path in &were_files {
            target.remove_file(&target_name(path)?)?;
            self.mark.names.remove(path);
            self.mark.found.remove(path);
        }
        for path in were_directories.iter().rev() {
            if target.remove_empty_directory(&target_name(path)?)? {
                self.mark.directories.remove(path);
            }
        }
        self.mark.write(target, &self.publisher)
    }

    /// Records that a version is complete.
    pub(crate) fn raise(&mut self, target: &TargetDirectory, version: u64) -> Result<(), Error> {
        if self.mark.version.is_none_or(|mark| mark < version) {
            self.mark.version = Some(version);
            self.mark.write(target, &self.publisher)?;
        }
        Ok(())
    }

    /// Deletes what earlier versions created and the newest one does not contain, if that is asked
    /// for. What cannot be deleted is left to the next version. Returns its errors.
    pub(crate) fn delete_absent(
        &mut self,
        target: &TargetDirectory,
        manifest: &Manifest,
    ) -> Result<Vec<StagingError>, Error> {
        let mut failed = Vec::new();
        if !self.deletes {
            return Ok(failed);
        }
        let contained = paths_of(manifest);
        let mut removed = Vec::new();
        let absent: Vec<_> = self.mark.names.difference(&contained).cloned().collect();
        for path in absent {
            if self.mark.found.remove(&path) {
                // No version has created it: from now on it is the user's.
                self.mark.names.remove(&path);
                continue;
            }
            let name = target_name(&path)?;
            match target.remove_file(&name) {
                Ok(()) => {
                    self.mark.names.remove(&path);
                    removed.push(name);
                }
                Err(error) => failed.push(error),
            }
        }
        // In the order of paths a directory comes before its contents.
        let absent: Vec<_> = self.mark.directories.difference(&contained).cloned().collect();
        for path in absent.into_iter().rev() {
            let name = target_name(&path)?;
            match target.remove_empty_directory(&name) {
                Ok(true) => {
                    self.mark.directories.remove(&path);
                    removed.push(name);
                }
                Ok(false) => {}
                Err(error) => failed.push(error),
            }
        }
        if !removed.is_empty() {
            target.sync_removed(removed.iter())?;
            self.mark.write(target, &self.publisher)?;
        }
        Ok(failed)
    }
}

/// The paths of all entries of a manifest, selected or not, of the directories above them, and of
/// what its publisher has left out because it was being written.
fn paths_of(manifest: &Manifest) -> BTreeSet<Vec<u8>> {
    let entries = manifest.entries().iter().map(Entry::path);
    let mut paths = BTreeSet::new();
    for path in entries.chain(manifest.unsettled()).map(RelativePath::as_bytes) {
        let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        paths.extend(slashes.filter_map(|(at, _)| path.get(..at)).map(<[u8]>::to_vec));
        paths.insert(path.to_vec());
    }
    paths
}

fn target_name(path: &[u8]) -> Result<TargetName, Error> {
    let components: Vec<_> = path.split(|&byte| byte == b'/').collect();
    Ok(TargetName::new(&components).map_err(StagingError::from)?)
}
