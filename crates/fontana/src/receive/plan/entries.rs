//! The entries of a manifest, with their names checked.

use crate::error::Error;
use fontana_store::{FileAttributes, StagingError, TargetName, Timestamp};
use fontana_wire::{Entry, FileEntry, Manifest, Metadata, Segment};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A manifest whose names may all be used in the target directory.
pub(in crate::receive) struct ManifestTree<'a> {
    pub(in crate::receive) manifest: &'a Arc<Manifest>,
    /// In the order of the manifest: an entry is referred to by its index here.
    pub(in crate::receive) entries: Vec<TreeEntry<'a>>,
}

/// A file, directory or link, and its name in the target directory.
pub(in crate::receive) struct TreeEntry<'a> {
    pub(in crate::receive) entry: &'a Entry,
    pub(in crate::receive) name: TargetName,
}

impl<'a> ManifestTree<'a> {
    /// # Errors
    /// [`IoError::Staging`](crate::IoError::Staging) for the first name that is refused.
    pub(in crate::receive) fn new(manifest: &'a Arc<Manifest>) -> Result<Self, Error> {
        let named = |entry: &'a Entry| {
            let components: Vec<_> = entry.path().components().collect();
            let name = TargetName::new(&components).map_err(StagingError::from)?;
            Ok(TreeEntry { entry, name })
        };
        let entries = manifest.entries().iter().map(named).collect::<Result<_, Error>>()?;
        Ok(Self { manifest, entries })
    }
}

/// The objects that hold bytes of a file.
pub(super) fn objects_of(file: &FileEntry) -> BTreeSet<u32> {
    file.segments
        .iter()
        .filter_map(|segment| match segment {
            Segment::Extent { toi, .. } => Some(*toi),
            Segment::Hole { .. } => None,
        })
        .collect()
}

/// The mode and time that a file or directory gets.
pub(super) fn attributes(metadata: &Metadata) -> FileAttributes {
    let modified =
        Timestamp { seconds: metadata.mtime_seconds, nanoseconds: metadata.mtime_nanoseconds };
    FileAttributes { mode: metadata.mode, modified: Some(modified) }
}
