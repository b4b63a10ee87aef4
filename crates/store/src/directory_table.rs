//! The table of the directories of a received tree.

use crate::attributes::FileAttributes;
use crate::target::TargetName;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The directories that received files are in, or that are received themselves.
#[derive(Debug, Default)]
pub(crate) struct Directories(Mutex<BTreeMap<TargetName, Directory>>);

#[derive(Debug)]
pub(crate) struct Directory {
    /// For the journal: how many were added before.
    pub(crate) number: u32,
    /// What it is given at the end; `None` if it is only known from what is in it.
    pub(crate) attributes: Option<FileAttributes>,
    /// Made by this reception, in this run or an earlier one.
    pub(crate) made: bool,
    /// False if only what is not received needs it: it then has its number, and is not made.
    pub(crate) wanted: bool,
}

impl Directories {
    pub(crate) fn lock(&self) -> MutexGuard<'_, BTreeMap<TargetName, Directory>> {
        // Every change is complete in itself.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the directories above a name.
    pub(crate) fn add_above(&self, name: &TargetName, made: &BTreeSet<u32>) {
        for parent in name.parents() {
            self.add(parent, None, made, true);
        }
    }

    /// Whether something was added that is in it, or it itself.
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
