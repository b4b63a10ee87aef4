//! Which of a manifest's entries are received, and which objects hold bytes of them.

use super::entries::{ManifestTree, TreeEntry, objects_of};
use super::groups::{GroupId, Groups};
use crate::error::{Error, TransferError};
use crate::event::ReceivedPart;
use fontana_store::{Selection, TargetDirectory};
use fontana_wire::{Entry, FileEntry, Manifest, Printable, Toi};
use std::collections::BTreeSet;

/// Names that the error lists, so that a mistyped pattern is noticed.
const NAMES_LISTED: usize = 5;

/// What is received of a manifest.
pub(in crate::receive) struct Wanted<'a> {
    selection: &'a Selection,
    /// Objects that hold a byte of a wanted file.
    objects: BTreeSet<u32>,
    groups: Groups,
    part: ReceivedPart,
}

impl<'a> Wanted<'a> {
    /// # Errors
    /// [`TransferError::NothingSelected`] if no entry is selected.
    pub(in crate::receive) fn new(
        manifest: &Manifest,
        selection: &'a Selection,
    ) -> Result<Self, Error> {
        let mut objects = BTreeSet::new();
        let mut part = ReceivedPart::default();
        let mut entries = 0_u64;
        for entry in manifest.entries().iter().filter(|entry| is_selected(selection, entry)) {
            entries += 1;
            if let Entry::File(file) = entry {
                objects.extend(objects_of(file));
                part.files += 1;
                part.bytes += file.length();
            }
        }
        if entries == 0 && !selection.is_everything() {
            return Err(nothing_selected(manifest));
        }
        if selection.is_everything() {
            // Also objects that no file has bytes of.
            objects.extend(manifest.objects().iter().map(|object| object.toi));
        }
        part.objects = objects.len() as u64;
        let groups = Groups::new(manifest, &objects);
        Ok(Self { selection, objects, groups, part })
    }

    /// Whether an entry is received.
    pub(super) fn has(&self, entry: &Entry) -> bool {
        is_selected(self.selection, entry)
    }

    /// Whether an object is received.
    pub(super) fn has_object(&self, toi: u32) -> bool {
        self.objects.contains(&toi)
    }

    /// The group of an object.
    pub(super) fn group_of(&self, toi: u32) -> GroupId {
        self.groups.of_object(toi)
    }

    /// Whether bytes of a file arrive, wanted or with those of a wanted file.
    pub(super) fn touches(&self, file: &FileEntry) -> bool {
        objects_of(file).iter().any(|toi| self.objects.contains(toi))
    }

    /// The paths of the files and links.
    pub(in crate::receive) fn names<'m>(
        &self,
        manifest: &'m Manifest,
    ) -> impl Iterator<Item = &'m [u8]> {
        let named = |entry: &&Entry| !matches!(entry, Entry::Directory(_)) && self.has(entry);
        manifest.entries().iter().filter(named).map(|entry| entry.path().as_bytes())
    }

    /// Whether files of the right lengths, and links, have the names of all wanted ones, and there
    /// is one.
    pub(in crate::receive) fn is_all_named(
        &self,
        tree: &ManifestTree<'_>,
        directory: &TargetDirectory,
    ) -> bool {
        let mut count = 0;
        for TreeEntry { entry, name } in tree.entries.iter().filter(|e| self.has(e.entry)) {
            let is_there = match entry {
                Entry::File(file) => directory.has_file(name, file.length()),
                Entry::Symlink(link) => directory.has_link(name, &link.target),
                Entry::Directory(_) => continue,
            };
            // A directory above it may be something else: that is refused later.
            if !is_there.unwrap_or(false) {
                return false;
            }
            count += 1;
        }
        count > 0
    }

    /// The paths of the wanted directories, and of those above wanted entries.
    pub(in crate::receive) fn directories(&self, manifest: &Manifest) -> BTreeSet<Vec<u8>> {
        let mut directories = BTreeSet::new();
        for entry in manifest.entries().iter().filter(|entry| self.has(entry)) {
            let path = entry.path().as_bytes();
            let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
            directories.extend(slashes.filter_map(|(at, _)| path.get(..at)).map(<[u8]>::to_vec));
            if matches!(entry, Entry::Directory(_)) {
                directories.insert(path.to_vec());
            }
        }
        directories
    }

    /// The objects of the manifest that are not received.
    pub(super) fn deselected(&self, manifest: &Manifest) -> Vec<Toi> {
        let objects = manifest.objects().iter().map(|object| object.toi);
        objects.filter(|toi| !self.objects.contains(toi)).map(Toi::from).collect()
    }

    /// The part that is received; `None` if that is everything.
    pub(super) fn part(&self) -> Option<ReceivedPart> {
        (!self.selection.is_everything()).then_some(self.part)
    }
}

fn is_selected(selection: &Selection, entry: &Entry) -> bool {
    selection.takes(entry.path().as_bytes(), matches!(entry, Entry::Directory(_)))
}

fn nothing_selected(manifest: &Manifest) -> Error {
    let names = manifest.entries().iter().take(NAMES_LISTED);
    let more = manifest.entries().len().saturating_sub(NAMES_LISTED);
    let mut names = names.map(|entry| entry.path().to_string()).collect::<Vec<_>>().join(", ");
    if more > 0 {
        names += &format!(" and {more} more");
    }
    TransferError::NothingSelected { label: Printable(manifest.label()).to_string(), names }.into()
}
