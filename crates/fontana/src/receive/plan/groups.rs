//! Groups of objects whose files get their names together.

use super::entries::objects_of;
use fontana_wire::Manifest;
use std::collections::{BTreeMap, BTreeSet};

/// A group, named by one of its objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::receive) struct GroupId(u32);

/// Which objects share files, directly or over others.
///
/// The files of a group get their names together, so that of the files of an object either all or
/// none are still to be written. Objects that bundle small files share none; the objects of a large
/// file share it.
pub(super) struct Groups {
    /// A forest of objects: the parent of each. A root is its own parent.
    parents: BTreeMap<u32, u32>,
}

impl Groups {
    /// The groups of the wanted objects of a manifest; any other object is a group of its own.
    pub(super) fn new(manifest: &Manifest, wanted: &BTreeSet<u32>) -> Self {
        let parents = manifest.objects().iter().map(|object| (object.toi, object.toi)).collect();
        let mut groups = Self { parents };
        for file in manifest.files() {
            let mut objects = objects_of(file).into_iter().filter(|toi| wanted.contains(toi));
            if let Some(first) = objects.next() {
                objects.for_each(|toi| groups.join(first, toi));
            }
        }
        groups
    }

    /// The group of an object.
    pub(super) fn of_object(&self, toi: u32) -> GroupId {
        let mut at = toi;
        while let Some(&next) = self.parents.get(&at).filter(|&&next| next != at) {
            at = next;
        }
        GroupId(at)
    }

    /// Joins two groups. Paths to the root are shortened, so that no manifest makes them long.
    fn join(&mut self, one: u32, other: u32) {
        let (GroupId(a), GroupId(b)) = (self.of_object(one), self.of_object(other));
        let root = a.min(b);
        for mut at in [one, other] {
            while let Some(next) = self.parents.insert(at, root).filter(|&next| next != at) {
                at = next;
            }
        }
    }
}
