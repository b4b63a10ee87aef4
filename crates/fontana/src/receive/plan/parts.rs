//! Where the bytes of objects are written.

use fontana_store::{Extent, Extents, FileIndex, StagingError};
use fontana_wire::{FileEntry, PlacedSegment, Segment};
use std::collections::BTreeMap;

/// The parts of files that objects consist of, collected file by file.
#[derive(Default)]
pub(in crate::receive) struct ObjectParts {
    by_object: BTreeMap<u32, Vec<Part>>,
}

/// Consecutive bytes of an object that are consecutive in a file.
struct Part {
    object_offset: u64,
    extent: Extent,
    /// The file's name, if the file is wanted.
    name: Option<String>,
}

/// The files that one object has bytes of.
#[derive(Debug)]
pub(in crate::receive) struct FilesOfObject {
    pub(in crate::receive) extents: Extents,
    /// The names of the wanted ones, in the order of the object.
    pub(in crate::receive) names: Vec<String>,
}

impl ObjectParts {
    /// Adds the parts of a wanted file.
    pub(in crate::receive) fn add(&mut self, file: &FileEntry, index: FileIndex) {
        self.add_parts(file, index, Some(file.path.to_string()));
    }

    /// Adds the parts of a file that is received for another file's sake.
    pub(super) fn add_spare(&mut self, file: &FileEntry, index: FileIndex) {
        self.add_parts(file, index, None);
    }

    fn add_parts(&mut self, file: &FileEntry, index: FileIndex, name: Option<String>) {
        for PlacedSegment { range, segment } in file.placed_segments() {
            if let Segment::Extent { toi, object_offset, length } = segment {
                let extent = Extent { file: index, offset: range.start, length };
                let part = Part { object_offset, extent, name: name.clone() };
                self.by_object.entry(toi).or_default().push(part);
            }
        }
    }

    /// Takes the parts of an object, after every file was added.
    pub(in crate::receive) fn take(&mut self, toi: u32) -> Result<FilesOfObject, StagingError> {
        let mut parts = self.by_object.remove(&toi).unwrap_or_default();
        parts.sort_by_key(|part| part.object_offset);
        let extents = Extents::new(parts.iter().map(|part| part.extent))?;
        let mut names: Vec<_> = parts.into_iter().filter_map(|part| part.name).collect();
        names.dedup(); // a file with holes has several parts
        Ok(FilesOfObject { extents, names })
    }
}
