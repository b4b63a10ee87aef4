//! The table of the directories of a received tree.

use crate::attributes::FileAttributes;
use crate::lock::Lock;
use crate::target::TargetName;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::MutexGuard;

/// The directories that are received, or that contain received files.
#[derive(Debug, Default)]
pub(crate) struct Directories(Lock<BTreeMap<TargetName, Directory>>);

#[derive(Debug)]
pub(crate) struct Directory {
    /// The number of directories added before, for the journal.
    pub(crate) number: u32,
    /// The attributes that it gets at the end; `None` if the sender gives none.
    pub(crate) attributes: Option<FileAttributes>,
    /// Created by this reception, in this run or an earlier one.
    pub(crate) made: bool,
    /// False if it contains only entries that are not received: it has a number, and is not
    /// created.
    pub(crate) wanted: bool,
}

impl Directories {
    pub(crate) fn lock(&self) -> MutexGuard<'_, BTreeMap<TargetName, Directory>> {
        self.0.lock()
    }

    /// Adds the directories above a name.
    pub(crate) fn add_above(&self, name: &TargetName, made: &BTreeSet<u32>) {
        for parent in name.parents() {
            self.add(parent, None, made, true);
        }
    }

    /// True if the directory, or something in it, was added.
    pub(crate) fn contains(&self, name: &TargetName) -> bool {
        self.lock().contains_key(name)
    }

    /// Numbers the directories above a name that is not received.
    pub(crate) fn pass_over_above(&self, name: &TargetName, made: &BTreeSet<u32>) {
        for parent in name.parents() {
            self.add(parent, None, made, false);
        }
    }

    pub(crate) fn add(
        &self,
        name: TargetName,
        attributes: Option<FileAttributes>,
        made: &BTreeSet<u32>,
        wanted: bool,
    ) {
        let mut all = self.lock();
        let number = all.len() as u32;
        let made = made.contains(&number);
        let new = Directory { number, attributes: None, made, wanted };
        let directory = all.entry(name).or_insert(new);
        directory.attributes = attributes.or(directory.attributes);
        directory.wanted |= wanted;
    }
}
