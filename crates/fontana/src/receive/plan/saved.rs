//! What an earlier run left of a tree.

use super::entries::{ManifestTree, objects_of};
use super::wanted::Wanted;
use crate::receive::staging_root::StagingRoot;
use fontana_fec::Sbn;
use fontana_store::{FileIndex, Kept, Note, Staging, StagingError, TargetName};
use fontana_wire::{Entry, FileEntry};
use std::collections::BTreeSet;

/// What an earlier run left, as far as it is still there.
#[derive(Default)]
pub(in crate::receive) struct SavedTree {
    /// What the journal says of objects and blocks.
    journal: Kept,
    /// Indices of the entries without bytes (links, files of zeros) that have their final names.
    made: BTreeSet<usize>,
    /// Notes that contradict the journal where its files have been removed since.
    voided: Vec<Note>,
}

/// What the journal says, and the notes that it lacks.
pub(super) struct SavedJournal {
    pub(super) journal: Kept,
    pub(super) voided: Vec<Note>,
}

impl SavedTree {
    /// A journal, and entries without bytes that have their names.
    #[cfg(test)]
    pub(super) fn of_parts(journal: Kept, made: impl IntoIterator<Item = usize>) -> Self {
        Self { journal, made: made.into_iter().collect(), voided: Vec::new() }
    }

    /// Compares the journal of an earlier run with what is there. Nothing is changed.
    ///
    /// # Errors
    /// [`StagingError`] if a file or directory cannot be examined.
    pub(in crate::receive) fn read(
        tree: &ManifestTree<'_>,
        wanted: &Wanted<'_>,
        journal: Kept,
        staging: &Staging,
        root: &StagingRoot,
    ) -> Result<Self, StagingError> {
        if journal == Kept::default() {
            return Ok(Self::default());
        }
        let mut saved = Self { journal, ..Self::default() };
        saved.forget_what_is_gone(tree, wanted, staging, root)?;
        for (index, entry) in tree.entries.iter().enumerate() {
            if wanted.has(entry.entry) && is_made(entry.entry, &entry.name, root)? {
                saved.made.insert(index);
            }
        }
        Ok(saved)
    }

    /// The objects whose files are complete, perhaps without their final names.
    pub(in crate::receive) fn committed(&self) -> &BTreeSet<u32> {
        &self.journal.committed
    }

    /// What the journal says, and the notes that it lacks.
    pub(super) fn into_journal(self) -> SavedJournal {
        SavedJournal { journal: self.journal, voided: self.voided }
    }

    /// Whether a file is complete, perhaps without its final name.
    pub(super) fn has_file(&self, index: usize, file: &FileEntry) -> bool {
        match objects_of(file).first() {
            Some(toi) => self.journal.committed.contains(toi),
            None => self.made.contains(&index),
        }
    }

    /// Whether a link has its final name.
    pub(super) fn has_link(&self, index: usize) -> bool {
        self.made.contains(&index)
    }

    /// Removes committed objects whose files have been removed since. They are received again, with
    /// all objects of their groups.
    fn forget_what_is_gone(
        &mut self,
        tree: &ManifestTree<'_>,
        wanted: &Wanted<'_>,
        staging: &Staging,
        root: &StagingRoot,
    ) -> Result<(), StagingError> {
        let mut gone = BTreeSet::new();
        // In the order in which they are added: directories have no index.
        let indexed =
            tree.entries.iter().filter(|entry| !matches!(entry.entry, Entry::Directory(_)));
        for (index, entry) in (0..).map(FileIndex).zip(indexed) {
            let Entry::File(file) = entry.entry else { continue };
            let objects = objects_of(file);
            let committed = objects.iter().filter(|toi| self.journal.committed.contains(toi));
            let committed = committed.count();
            if committed == 0 || !wanted.has(entry.entry) {
                continue;
            }
            // Fewer than all if the earlier run wanted only some of the files that share objects.
            let length = file.length();
            let is_there = staging.has_staged(index, length)?
                || root.directory.has_file(&entry.name, length)?;
            if committed < objects.len() || !is_there {
                gone.extend(objects.first().map(|&toi| wanted.group_of(toi)));
            }
        }
        let is_gone = |toi: u32| gone.contains(&wanted.group_of(toi));
        let committed = self.journal.committed.iter().map(|&toi| (toi, Sbn(0)));
        self.voided = committed
            .chain(self.journal.blocks.keys().copied())
            .filter(|&(toi, _)| is_gone(toi))
            .map(|(toi, sbn)| Note::Void { toi, sbn })
            .collect();
        self.journal.committed.retain(|&toi| !is_gone(toi));
        self.journal.blocks.retain(|&(toi, _), _| !is_gone(toi));
        Ok(())
    }
}

/// Whether an entry without bytes has its final name.
fn is_made(entry: &Entry, name: &TargetName, root: &StagingRoot) -> Result<bool, StagingError> {
    match entry {
        Entry::Symlink(link) => root.directory.has_link(name, &link.target),
        // Where files are replaced, a file of zeros is made again.
        Entry::File(file) if objects_of(file).is_empty() && !root.overwrites() => {
            root.directory.has_file(name, file.length())
        }
        Entry::File(_) | Entry::Directory(_) => Ok(false),
    }
}
