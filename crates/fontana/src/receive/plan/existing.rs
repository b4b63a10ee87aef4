//! What the target directory holds of a manifest already (`--existing skip`).
//!
//! It is found by hashing, never by size or time. A manifest has a hash for each block, so a block
//! is the unit: one whose bytes are all there is not received. A file is *the same* if all blocks
//! that hold bytes of it are there, and its holes are zeros. Of files that share a block, as small
//! files do, one that differs leaves it open whether the others are the same: their block is
//! received, and they are compared with it.

use super::entries::{ManifestTree, TreeEntry, objects_of};
use super::pieces::{Piece, PieceReader, Pieces, Reading};
use super::wanted::Wanted;
use fontana_fec::{ObjectLayout, Sbn};
use fontana_store::{Note, StagedObject, Staging, StagingError, TargetDirectory};
use fontana_wire::Entry;
use std::collections::{BTreeMap, BTreeSet};

/// What is there already.
#[derive(Debug, Default)]
pub(in crate::receive) struct Existing {
    /// Indices of the entries that are there: files whose bytes are all there, and links.
    same: BTreeSet<usize>,
    /// Those of which this is open: files of the right lengths that share blocks with one that
    /// differs.
    open: BTreeSet<usize>,
    /// Blocks whose bytes are all there, by object.
    blocks: BTreeMap<u32, BTreeSet<Sbn>>,
    pieces: Pieces,
}

/// The blocks that were compared: of objects that are wanted and not complete.
pub(super) struct Compared {
    pub(super) layouts: BTreeMap<u32, ObjectLayout>,
    /// Blocks whose hashes agree with the manifest's, by object.
    pub(super) agreeing: BTreeMap<u32, BTreeSet<Sbn>>,
}

impl Existing {
    /// Finds the entries whose blocks all agree, and whose holes are zeros. Of the files, those of
    /// `candidates` have the right name and length.
    pub(super) fn find(
        tree: &ManifestTree<'_>,
        pieces: Pieces,
        compared: Compared,
        candidates: BTreeSet<usize>,
        directory: &TargetDirectory,
    ) -> Result<Self, StagingError> {
        let (mut same, mut open) = (candidates.clone(), candidates);
        for (toi, of_object) in &pieces.by_object {
            // An object that was not compared says nothing of its files.
            let Some(layout) = compared.layouts.get(toi) else {
                for Piece { entry, .. } in of_object {
                    let _ = (same.remove(entry), open.remove(entry));
                }
                continue;
            };
            let agreeing = compared.agreeing.get(toi);
            for sbn in (0..layout.block_count()).map(Sbn) {
                let Some(range) = layout.block_range(sbn) else { continue };
                if !agreeing.is_some_and(|agreeing| agreeing.contains(&sbn)) {
                    let pieces = pieces.overlapping(*toi, &range);
                    pieces.iter().for_each(|piece| _ = same.remove(&piece.entry));
                    if let [Piece { entry, .. }] = pieces {
                        open.remove(entry);
                    }
                }
            }
        }
        let mut differing = Vec::new();
        for &index in &same {
            let Some(entry) = tree.entries.get(index) else { continue };
            if !holes_are_zeros(entry, directory)? {
                differing.push(index);
            }
        }
        for index in &differing {
            let _ = (same.remove(index), open.remove(index));
        }
        open.retain(|index| !same.contains(index));
        Ok(Self { same, open, blocks: compared.agreeing, pieces })
    }

    /// Entries that are there, without blocks that could be copied.
    #[cfg(test)]
    pub(super) fn of_entries(entries: impl IntoIterator<Item = usize>) -> Self {
        Self { same: entries.into_iter().collect(), ..Self::default() }
    }

    /// Adds a link that is there.
    pub(super) fn add_link(&mut self, index: usize) {
        self.same.insert(index);
    }

    /// Whether an entry is there: all bytes of a file, or the link.
    pub(super) fn has_entry(&self, index: usize) -> bool {
        self.same.contains(&index)
    }

    /// Whether a file may be there, which the content of its block will tell.
    pub(super) fn may_have(&self, index: usize) -> bool {
        self.open.contains(&index)
    }

    /// Whether all wanted files and links are there.
    pub(in crate::receive) fn has_all(&self, tree: &ManifestTree<'_>, wanted: &Wanted<'_>) -> bool {
        tree.entries.iter().enumerate().all(|(index, TreeEntry { entry, .. })| {
            matches!(entry, Entry::Directory(_)) || !wanted.has(entry) || self.has_entry(index)
        })
    }

    /// The paths of the entries that are there.
    pub(in crate::receive) fn paths<'m>(&self, tree: &ManifestTree<'m>) -> BTreeSet<&'m [u8]> {
        let entries = self.same.iter().filter_map(|&index| tree.entries.get(index));
        entries.map(|entry| entry.entry.path().as_bytes()).collect()
    }

    /// Objects whose files need not be received: of a group of objects that share files, all or
    /// none.
    pub(super) fn complete_objects(
        &self,
        tree: &ManifestTree<'_>,
        wanted: &Wanted<'_>,
    ) -> BTreeSet<u32> {
        let mut missing = BTreeSet::new();
        let mut objects = BTreeSet::new();
        for (index, entry) in tree.entries.iter().enumerate() {
            let Entry::File(file) = entry.entry else { continue };
            let of_file = objects_of(file);
            if !self.has_entry(index) && wanted.has(entry.entry) {
                missing.extend(of_file.iter().map(|&toi| wanted.group_of(toi)));
            }
            objects.extend(of_file);
        }
        objects.retain(|&toi| wanted.has_object(toi) && !missing.contains(&wanted.group_of(toi)));
        objects
    }

    /// Copies the blocks of an object that are there into staging, and notes them. Returns those
    /// that were copied.
    pub(in crate::receive) fn copy(
        &self,
        tree: &ManifestTree<'_>,
        directory: &TargetDirectory,
        toi: u32,
        object: &StagedObject,
        staging: &Staging,
    ) -> Result<Vec<Sbn>, StagingError> {
        let Some(blocks) = self.blocks.get(&toi) else { return Ok(Vec::new()) };
        let mut reader = PieceReader::new(directory, tree);
        let mut copied = Vec::new();
        for &sbn in blocks {
            let Some(range) = object.layout().block_range(sbn) else { continue };
            let mut write = |at, bytes: &[u8]| {
                object.write_at(at, bytes)?;
                Ok(Reading::Continue)
            };
            // The receiver hashes the block again where it now is: a file that has changed since is
            // received.
            if reader.read(&range, self.pieces.overlapping(toi, &range), &mut write)? {
                staging.note(&[Note::Whole { toi, sbn }])?;
                copied.push(sbn);
            }
        }
        Ok(copied)
    }
}

/// Whether the holes of a file are zeros in the existing one.
fn holes_are_zeros(
    entry: &TreeEntry<'_>,
    directory: &TargetDirectory,
) -> Result<bool, StagingError> {
    let Entry::File(file) = entry.entry else { return Ok(true) };
    let mut holes = file.holes().peekable();
    if holes.peek().is_none() {
        return Ok(true);
    }
    let Some(existing) = directory.existing(&entry.name, file.length())? else {
        return Ok(false);
    };
    for hole in holes {
        if !existing.is_zero(hole)? {
            return Ok(false);
        }
    }
    Ok(true)
}
