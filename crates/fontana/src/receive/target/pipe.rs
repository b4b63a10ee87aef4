//! Scratch files for bytes that are delivered in order (to a consumer; of a stream also to a file,
//! a device or memory), and files in memory. Nothing here gets a name, and no later run resumes it,
//! as it does not have the bytes that were delivered.

use crate::error::{Error, TransferError};
use crate::receive::object::{OpenObject, Opened, OpenedObject, stage};
use crate::receive::plan::ObjectParts;
use crate::receive::staging_root::StagingRoot;
use fontana_fec::ObjectLayout;
use fontana_proto::ControlError;
use fontana_store::{Extent, Extents, FileIndex, Memory, Staging, StagingError};
use fontana_wire::{FileEntry, Manifest, ManifestObject, Toi};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// What the tags of these staging directories begin with.
const TAG: &str = "pipe-";

/// A tag that no other receiver has.
pub(in crate::receive) fn unique_tag() -> Result<String, Error> {
    Ok(format!("{TAG}{:016x}", crate::system::random_u64()?))
}

/// Zeros that are written to memory at a time.
static ZEROS: [u8; 4 << 10] = [0; 4 << 10];

/// Scratch files, whose bytes another thread delivers; or memory.
pub(in crate::receive) struct PipeTarget {
    root: StagingRoot,
    /// Memory that a file is received into, in place of scratch files.
    memory: Option<Arc<dyn Memory>>,
    staging: Option<Arc<Staging>>,
    /// The file that holds the fragments of a stream; `None` before the first one.
    ring: Option<FileIndex>,
    objects: BTreeMap<Toi, Arc<OpenObject>>,
}

/// The place of a fragment in the file that holds the fragments of a stream.
#[derive(Clone, Copy)]
pub(super) struct FragmentPlace {
    pub(super) slot: u32,
    pub(super) slot_count: u32,
    /// Bytes of a slot.
    pub(super) slot_length: u32,
}

impl PipeTarget {
    pub(super) fn new(root: StagingRoot) -> Self {
        Self { root, memory: None, staging: None, ring: None, objects: BTreeMap::new() }
    }

    /// A target whose file is in memory.
    pub(super) fn in_memory(root: StagingRoot, memory: Arc<dyn Memory>) -> Self {
        Self { memory: Some(memory), ..Self::new(root) }
    }

    /// Makes room for the objects of a manifest that has exactly one file.
    pub(super) fn open(&mut self, manifest: &Manifest) -> Result<Opened, Error> {
        let mut files = manifest.files();
        let (Some(file), None) = (files.next(), files.next()) else {
            return Err(TransferError::NotOneFile { files: manifest.files().count() }.into());
        };
        let staging = self.enter()?;
        let mut places = match self.memory.clone() {
            Some(memory) => Some(in_memory(&staging, file, &memory)?),
            None => None,
        };
        let mut opened = Opened::default();
        for ManifestObject { toi, oti, .. } in manifest.objects() {
            let layout = oti.layout().map_err(ControlError::from)?;
            let extents = match &mut places {
                Some(places) => places.take(*toi)?.extents,
                None => {
                    let length = oti.transfer_length;
                    Extents::whole_file(staging.add_scratch(length)?, length)
                }
            };
            let staged = stage(&staging, layout, extents)?;
            let names = vec![file.path.to_string()];
            let (toi, object) = (Toi::from(*toi), Arc::new(OpenObject::new(staged, names)));
            self.objects.insert(toi, Arc::clone(&object));
            opened.objects.push(OpenedObject { toi, object });
        }
        staging.check_room()?;
        Ok(opened)
    }

    /// Makes room for a fragment of a stream, in the slot that the protocol chose.
    pub(super) fn open_fragment(
        &mut self,
        toi: Toi,
        layout: ObjectLayout,
        place: FragmentPlace,
    ) -> Result<Opened, Error> {
        let FragmentPlace { slot, slot_count, slot_length } = place;
        let staging = self.enter()?;
        let file = match self.ring {
            Some(ring) => ring,
            None => {
                let ring = staging.add_scratch(u64::from(slot_count) * u64::from(slot_length))?;
                *self.ring.insert(ring)
            }
        };
        let offset = u64::from(slot) * u64::from(slot_length);
        let extent = Extent { file, offset, length: layout.oti().transfer_length };
        let extents = Extents::new([extent]).map_err(StagingError::from)?;
        let staged = stage(&staging, layout, extents)?;
        let object = Arc::new(OpenObject::new(staged, Vec::new()));
        self.objects.insert(toi, Arc::clone(&object));
        Ok(Opened::single(toi, object))
    }

    /// Gives the spool of a verified object back. Its bytes are delivered from the scratch file.
    pub(super) fn commit(&mut self, toi: Toi) -> Result<(), Error> {
        let Some(object) = self.objects.remove(&toi) else { return Ok(()) };
        Ok(object.staged.remove_spool()?)
    }

    /// Removes the scratch files. If that fails, the next receiver removes them.
    pub(super) fn discard(&mut self) {
        if let Some(staging) = self.staging.take() {
            let _ = staging.finish_directories();
            let _ = staging.remove();
        }
    }

    /// The staging directory. When it is made, those of receivers that were killed are removed.
    fn enter(&mut self) -> Result<Arc<Staging>, Error> {
        if let Some(staging) = &self.staging {
            return Ok(Arc::clone(staging));
        }
        for leftover in self.root.directory.leftovers()? {
            if leftover.tag.starts_with(TAG) && !leftover.in_use {
                // Another receiver may remove it first; what cannot be removed does no harm.
                let _ = self.root.enter(&leftover.tag).and_then(|(staging, _)| staging.remove());
            }
        }
        let (staging, _) = self.root.enter(&unique_tag()?)?;
        Ok(Arc::clone(self.staging.insert(Arc::new(staging))))
    }
}

/// The places of a file's objects in memory. Its holes become zeros.
fn in_memory(
    staging: &Staging,
    file: &FileEntry,
    memory: &Arc<dyn Memory>,
) -> Result<ObjectParts, Error> {
    let (length, capacity) = (file.length(), memory.length());
    if capacity < length {
        let path = PathBuf::from("memory");
        return Err(TransferError::TooSmall { path, capacity, length }.into());
    }
    for hole in file.holes() {
        let mut at = hole.start;
        while at < hole.end {
            let count = ZEROS.len().min(usize::try_from(hole.end - at).unwrap_or(usize::MAX));
            memory.write_at(at, ZEROS.get(..count).unwrap_or_default());
            at += count as u64;
        }
        memory.on_verified(hole);
    }
    let mut parts = ObjectParts::default();
    parts.add(file, staging.add_memory(memory, length)?);
    Ok(parts)
}
