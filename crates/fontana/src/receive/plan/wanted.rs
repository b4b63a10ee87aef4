//! Which of a manifest's entries are received, and which objects hold bytes of them.

use super::entries::objects_of;
use super::groups::{GroupId, Groups};
use crate::error::{Error, TransferError};
use crate::event::ReceivedPart;
use fontana_store::Selection;
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
