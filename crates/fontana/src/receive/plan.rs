//! The plan of a tree: what becomes of every entry of a manifest, decided before anything is
//! created.
//!
//! [`Wanted`] says what is selected, [`SavedTree`] what an earlier run left, [`Existing`] what the
//! target directory holds already. [`TreePlan::compute`] combines them; the target applies the
//! plan.

use crate::error::Error;
use crate::event::ReceivedPart;
use entries::{TreeEntry, attributes, objects_of};
use fontana_fec::ObjectLayout;
use fontana_proto::ControlError;
use fontana_store::{Correction, FileAttributes, FileIndex, Kept, Note, TargetName};
use fontana_wire::{DirectoryEntry, Entry, FileEntry, Toi};
use parts::FilesOfObject;
use saved::SavedJournal;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

mod entries;
mod existing;
mod groups;
mod parts;
mod pieces;
mod saved;
mod survey;
#[cfg(test)]
mod tests;
mod wanted;

pub(super) use entries::ManifestTree;
pub(super) use existing::Existing;
pub(super) use groups::GroupId;
pub(super) use parts::ObjectParts;
pub(super) use saved::SavedTree;
pub(super) use survey::{Survey, SurveyProgress};
pub(super) use wanted::Wanted;

/// What is to be done to receive a tree.
#[derive(Debug)]
pub(super) struct TreePlan {
    /// In the order of the manifest. Those with an index get it by being added in this order.
    pub(super) entries: Vec<PlannedEntry>,
    /// The objects that are received.
    pub(super) objects: Vec<PlannedObject>,
    /// Files that get their names together.
    pub(super) groups: BTreeMap<GroupId, Group>,
    /// Complete files of an earlier run, which may lack their names.
    pub(super) verified: Vec<FileIndex>,
    /// Files without bytes, and links: they get their names at the end.
    pub(super) without_objects: Vec<FileIndex>,
    /// Files to be received whose names may have the same bytes.
    pub(super) may_be_there: Vec<FileIndex>,
    /// Existing files that stay as they are but for mode and time.
    pub(super) corrections: Vec<Correction>,
    /// What an earlier run left.
    pub(super) saved: Kept,
    /// Notes of what an earlier run left that has been removed since.
    pub(super) voided: Vec<Note>,
    /// Objects whose files all exist already.
    pub(super) complete: BTreeSet<u32>,
    /// Objects of the manifest that are not received.
    pub(super) deselected: Vec<Toi>,
    /// The part of the manifest that is received; `None` if that is all of it.
    pub(super) part: Option<ReceivedPart>,
}

/// An entry, and what becomes of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PlannedEntry {
    pub(super) name: TargetName,
    pub(super) action: EntryAction,
}

/// What becomes of an entry. All but directories get the next index.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum EntryAction {
    /// The directory is made.
    MakeDirectory(FileAttributes),
    /// The directory is not wanted: it is made only if something in it is.
    SkipDirectory(FileAttributes),
    /// The file or link is not wanted.
    Skip,
    /// The file is not wanted or there already, but arrives with others: it never gets its name.
    Spare(FileShape),
    /// The file or link is there already.
    Keep { length: u64 },
    /// An earlier run has verified the file or link.
    Verified { length: u64 },
    /// The link is made.
    Link { leads_to: Vec<u8> },
    /// The file is received.
    Receive(FileShape),
}

/// A file as it is created.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FileShape {
    pub(super) length: u64,
    pub(super) holes: Vec<Range<u64>>,
    pub(super) attributes: FileAttributes,
}

/// An object that is received.
#[derive(Debug)]
pub(super) struct PlannedObject {
    pub(super) toi: u32,
    pub(super) layout: ObjectLayout,
    pub(super) files: FilesOfObject,
    pub(super) group: GroupId,
    pub(super) source: BlockSource,
}

/// Where the blocks of an object can come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockSource {
    /// From the network alone.
    Network,
    /// From existing files, too: the blocks that they hold are copied first.
    ExistingFiles,
}

/// Files that get their names together, and the objects that they are made of.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) files: Vec<FileIndex>,
    pub(super) objects: BTreeSet<u32>,
}

impl TreePlan {
    /// Decides what becomes of every entry.
    ///
    /// # Errors
    /// [`SetupError::TooMuch`](crate::SetupError::TooMuch) if the manifest describes objects that
    /// cannot exist.
    pub(super) fn compute(
        tree: &ManifestTree<'_>,
        wanted: &Wanted<'_>,
        existing: &Existing,
        saved: SavedTree,
    ) -> Result<Self, Error> {
        let complete = existing.complete_objects(tree, wanted);
        let mut planner = Planner {
            wanted,
            existing,
            saved: &saved,
            complete: &complete,
            next: 0,
            parts: ObjectParts::default(),
            plan: Self {
                entries: Vec::with_capacity(tree.entries.len()),
                objects: Vec::new(),
                groups: BTreeMap::new(),
                verified: Vec::new(),
                without_objects: Vec::new(),
                may_be_there: Vec::new(),
                corrections: Vec::new(),
                saved: Kept::default(),
                voided: Vec::new(),
                complete: BTreeSet::new(),
                deselected: wanted.deselected(tree.manifest),
                part: wanted.part(),
            },
        };
        for (number, entry) in tree.entries.iter().enumerate() {
            planner.add_entry(number, entry);
        }
        for object in tree.manifest.objects() {
            if wanted.has_object(object.toi) {
                let layout = object.oti.layout().map_err(ControlError::from)?;
                planner.add_object(object.toi, layout)?;
            }
        }
        let plan = planner.plan;
        let SavedJournal { journal, voided } = saved.into_journal();
        Ok(Self { saved: journal, voided, complete, ..plan })
    }
}

/// A plan in the making.
struct Planner<'a> {
    wanted: &'a Wanted<'a>,
    existing: &'a Existing,
    saved: &'a SavedTree,
    /// Objects whose files all exist already.
    complete: &'a BTreeSet<u32>,
    /// Index of the file or link that is added next.
    next: u32,
    parts: ObjectParts,
    plan: TreePlan,
}

impl Planner<'_> {
    fn add_entry(&mut self, number: usize, TreeEntry { entry, name }: &TreeEntry<'_>) {
        let is_wanted = self.wanted.has(entry);
        let action = match entry {
            Entry::Directory(directory) => directory_action(directory, is_wanted),
            Entry::File(file) if is_wanted => self.add_file(number, file, name),
            Entry::File(file) if self.wanted.touches(file) => self.add_deselected(file),
            Entry::Symlink(link) if is_wanted => {
                let index = self.take_index();
                if self.existing.has_entry(number) {
                    EntryAction::Keep { length: 0 }
                } else if self.saved.has_link(number) {
                    EntryAction::Verified { length: 0 }
                } else {
                    self.plan.without_objects.push(index);
                    EntryAction::Link { leads_to: link.target.clone() }
                }
            }
            Entry::File(_) | Entry::Symlink(_) => {
                self.take_index();
                EntryAction::Skip
            }
        };
        self.plan.entries.push(PlannedEntry { name: name.clone(), action });
    }

    fn add_file(&mut self, number: usize, file: &FileEntry, name: &TargetName) -> EntryAction {
        let index = self.take_index();
        self.parts.add(file, index);
        let length = file.length();
        if self.saved.has_file(number, file) {
            self.plan.verified.push(index);
            return EntryAction::Verified { length };
        }
        let object = objects_of(file).first().copied();
        if self.existing.has_entry(number) {
            let attributes = attributes(&file.metadata);
            self.plan.corrections.push(Correction { name: name.clone(), length, attributes });
            match object {
                // Others of its object are missing: its bytes come with theirs.
                Some(toi) if !self.complete.contains(&toi) => {
                    self.group(toi).files.push(index);
                    return EntryAction::Spare(FileShape::of(file));
                }
                _ => return EntryAction::Keep { length },
            }
        }
        match object {
            Some(toi) => self.group(toi).files.push(index),
            None => self.plan.without_objects.push(index),
        }
        if self.existing.may_have(number) {
            self.plan.may_be_there.push(index);
        }
        EntryAction::Receive(FileShape::of(file))
    }

    /// Adds a file that is not wanted, but arrives with one that is. It is committed with the files
    /// of its group, so that a later run that wants it has it.
    fn add_deselected(&mut self, file: &FileEntry) -> EntryAction {
        let index = self.take_index();
        self.parts.add_spare(file, index);
        for toi in objects_of(file) {
            if self.wanted.has_object(toi) {
                self.group(toi).files.push(index);
            }
        }
        EntryAction::Spare(FileShape::of(file))
    }

    fn add_object(&mut self, toi: u32, layout: ObjectLayout) -> Result<(), Error> {
        let is_complete = self.complete.contains(&toi) || self.saved.committed().contains(&toi);
        let source = if is_complete { BlockSource::Network } else { BlockSource::ExistingFiles };
        let (files, group) = (self.parts.take(toi)?, self.wanted.group_of(toi));
        self.plan.objects.push(PlannedObject { toi, layout, files, group, source });
        self.group(toi).objects.insert(toi);
        Ok(())
    }

    fn group(&mut self, toi: u32) -> &mut Group {
        self.plan.groups.entry(self.wanted.group_of(toi)).or_default()
    }

    fn take_index(&mut self) -> FileIndex {
        let index = FileIndex(self.next);
        self.next += 1;
        index
    }
}

fn directory_action(directory: &DirectoryEntry, is_wanted: bool) -> EntryAction {
    let attributes = attributes(&directory.metadata);
    if is_wanted {
        EntryAction::MakeDirectory(attributes)
    } else {
        EntryAction::SkipDirectory(attributes)
    }
}

impl FileShape {
    fn of(file: &FileEntry) -> Self {
        Self {
            length: file.length(),
            holes: file.holes().collect(),
            attributes: attributes(&file.metadata),
        }
    }
}
