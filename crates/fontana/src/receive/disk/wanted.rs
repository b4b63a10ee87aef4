//! Which of a manifest's entries are received, and which objects hold bytes of them.

use super::tree::objects_of;
use crate::error::Error;
use crate::receive::ReceivedPart;
use fontana_store::Selection;
use fontana_wire::{Entry, FileEntry, Manifest, Printable, Toi};
use std::collections::BTreeSet;

/// Names that an error lists, so that whoever mistyped a pattern sees what there is.
const NAMES_TOLD: usize = 5;

/// What is received of a manifest.
pub(super) struct Wanted<'a> {
    selection: &'a Selection,
    /// Objects that hold a byte of a wanted file.
    objects: BTreeSet<u32>,
    pub(super) part: ReceivedPart,
}

impl<'a> Wanted<'a> {
    /// # Errors
    /// [`Error::NothingSelected`] if nothing is.
    pub(super) fn of(manifest: &Manifest, selection: &'a Selection) -> Result<Self, Error> {
        let mut wanted =
            Self { selection, objects: BTreeSet::new(), part: ReceivedPart::default() };
        let mut entries = 0_u64;
        for entry in manifest.entries().iter().filter(|entry| is_taken(selection, entry)) {
            entries += 1;
            if let Entry::File(file) = entry {
                wanted.objects.extend(objects_of(file));
                wanted.part.files += 1;
                wanted.part.bytes += file.length();
            }
        }
        if entries == 0 && !selection.is_everything() {
            return Err(nothing_selected(manifest));
        }
        if selection.is_everything() {
            // Also objects that no file has bytes of: the manifest's word counts.
            wanted.objects.extend(manifest.objects().iter().map(|object| object.toi));
        }
        wanted.part.objects = wanted.objects.len() as u64;
        Ok(wanted)
    }

    pub(super) fn takes(&self, entry: &Entry) -> bool {
        is_taken(self.selection, entry)
    }

    pub(super) fn takes_object(&self, toi: u32) -> bool {
        self.objects.contains(&toi)
    }

    /// Whether bytes of a file arrive, though perhaps only for another file's sake.
    pub(super) fn touches(&self, file: &FileEntry) -> bool {
        objects_of(file).iter().any(|toi| self.objects.contains(toi))
    }

    /// The files and links.
    pub(super) fn names<'m>(&self, manifest: &'m Manifest) -> impl Iterator<Item = &'m [u8]> {
        let named = |entry: &&Entry| !matches!(entry, Entry::Directory(_)) && self.takes(entry);
        manifest.entries().iter().filter(named).map(|entry| entry.path().as_bytes())
    }

    /// What the protocol need not receive.
    pub(super) fn left_out(&self, manifest: &Manifest) -> Vec<Toi> {
        let objects = manifest.objects().iter().map(|object| object.toi);
        objects.filter(|toi| !self.objects.contains(toi)).map(Toi::from).collect()
    }
}

fn is_taken(selection: &Selection, entry: &Entry) -> bool {
    selection.takes(entry.path().as_bytes(), matches!(entry, Entry::Directory(_)))
}

fn nothing_selected(manifest: &Manifest) -> Error {
    let names = manifest.entries().iter().take(NAMES_TOLD);
    let more = manifest.entries().len().saturating_sub(NAMES_TOLD);
    let mut names = names.map(|entry| entry.path().to_string()).collect::<Vec<_>>().join(", ");
    if more > 0 {
        names += &format!(" and {more} more");
    }
    Error::NothingSelected { label: Printable(manifest.label()).to_string(), names }
}
