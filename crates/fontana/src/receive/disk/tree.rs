//! The files of a manifest: refused before anything is created, or opened, with what an earlier
//! receiver left of them.

use super::{Disk, OpenObject, Opened};
use crate::Error;
use fontana_proto::{BlockId, ControlError, Kept, KeptBlock, repair_slots};
use fontana_store::{
    Extent, Extents, FileAttributes, FileIndex, StagedObject, Staging, StagingError, TargetName,
    Timestamp,
};
use fontana_wire::{Entry, FileEntry, Manifest, PathError, Segment, Toi, manifest_hash};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Bytes of an object, where they go, and the name of the file for people.
type Part = (u64, Extent, String);

impl Disk {
    pub(super) fn open_tree(&mut self, manifest: &Manifest) -> Result<Opened, Error> {
        let mut files = Vec::new();
        for entry in manifest.entries() {
            let path = entry.path();
            let Entry::File(file) = entry else {
                let error = PathError::NotPortable("only regular files can be received");
                return Err(Error::Name { name: path.to_string(), error });
            };
            let components: Vec<_> = path.components().collect();
            files.push((file, TargetName::new(&components).map_err(StagingError::from)?));
        }
        let tag = manifest_hash(&manifest.emit()).to_string();
        let (staging, kept) = Staging::create(Arc::clone(&self.target), &tag, self.options)?;
        let staging = Arc::new(staging);
        let fresh = kept == fontana_store::Kept::default();
        let opened = self.open_files(manifest, files, &staging, kept);
        match &opened {
            Ok(_) => self.staging = Some(staging),
            // Nothing has been received: what was begun is of no use to anybody.
            Err(_) if fresh => _ = staging.remove(),
            Err(_) => {}
        }
        opened
    }

    fn open_files(
        &mut self,
        manifest: &Manifest,
        files: Vec<(&FileEntry, TargetName)>,
        staging: &Arc<Staging>,
        mut kept: fontana_store::Kept,
    ) -> Result<Opened, Error> {
        let resumed = kept != fontana_store::Kept::default();
        // What was committed and has been taken away since is received again.
        for (file, target) in &files {
            if !self.target.has_file(target, file.length())? {
                for toi in objects_of(file) {
                    kept.committed.remove(&toi);
                }
            }
        }
        let mut parts: BTreeMap<u32, Vec<Part>> = BTreeMap::new();
        for (file, target) in files {
            let objects: Vec<u32> = objects_of(file).into_iter().collect();
            let is_empty_and_there =
                resumed && file.length() == 0 && self.target.has_file(&target, 0)?;
            let committed =
                !objects.is_empty() && objects.iter().all(|toi| kept.committed.contains(toi));
            let index = if committed || is_empty_and_there {
                staging.add_committed(file.length())
            } else {
                let index = staging.add_file(target, file.length(), attributes(file))?;
                let waiting = objects.into_iter().map(Toi::from).collect();
                self.waiting.insert(index, waiting);
                index
            };
            collect_parts(file, index, &mut parts);
        }
        let mut objects = Vec::new();
        for object in manifest.objects() {
            let mut parts = parts.remove(&object.toi).unwrap_or_default();
            parts.sort_by_key(|(offset, ..)| *offset);
            let layout = object.oti.layout().map_err(ControlError::from)?;
            let extents = Extents::new(parts.iter().map(|(_, extent, _)| *extent))
                .map_err(StagingError::from)?;
            let slots = repair_slots(layout.max_source_symbols());
            let open = OpenObject {
                staged: StagedObject::new(Arc::clone(staging), layout, extents, slots)?,
                files: parts.iter().map(|(_, extent, _)| extent.file).collect(),
                names: parts.into_iter().map(|(.., name)| name).collect(),
                plain: None,
                journal: Some(Arc::clone(staging)),
            };
            objects.push((Toi::from(object.toi), Arc::new(open)));
        }
        Ok(Opened { objects, kept: protocol_view(kept) })
    }
}

fn attributes(file: &FileEntry) -> FileAttributes {
    let metadata = file.metadata;
    let modified =
        Timestamp { seconds: metadata.mtime_seconds, nanoseconds: metadata.mtime_nanoseconds };
    FileAttributes { mode: metadata.mode, modified: Some(modified) }
}

fn objects_of(file: &FileEntry) -> BTreeSet<u32> {
    file.segments
        .iter()
        .filter_map(|segment| match segment {
            Segment::Extent { toi, .. } => Some(*toi),
            Segment::Hole { .. } => None,
        })
        .collect()
}

fn collect_parts(file: &FileEntry, index: FileIndex, parts: &mut BTreeMap<u32, Vec<Part>>) {
    for (range, segment) in file.placed_segments() {
        if let Segment::Extent { toi, object_offset, length } = segment {
            let extent = Extent { file: index, offset: range.start, length };
            let part = (object_offset, extent, file.path.to_string());
            parts.entry(toi).or_default().push(part);
        }
    }
}

fn protocol_view(kept: fontana_store::Kept) -> Kept {
    Kept {
        session_packets: kept.packets,
        committed: kept.committed.into_iter().map(Toi::from).collect(),
        blocks: kept
            .blocks
            .into_iter()
            .map(|((toi, sbn), block)| KeptBlock {
                block: BlockId { toi: Toi::from(toi), sbn },
                whole: block.whole,
                in_place: block.in_place,
                spooled: block.spooled,
            })
            .collect(),
    }
}
