//! Scratch files for bytes that are delivered in order (to a consumer; of a stream also to a file
//! or a device). Nothing here gets a name, and no later run resumes it, as it does not have the
//! bytes that were delivered.

use crate::error::{Error, TransferError};
use crate::receive::object::{OpenObject, Opened, OpenedObject, stage};
use crate::receive::staging_root::StagingRoot;
use fontana_fec::ObjectLayout;
use fontana_proto::ControlError;
use fontana_store::{Extent, Extents, FileIndex, Staging, StagingError};
use fontana_wire::{Manifest, Toi};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What the tags of these staging directories begin with.
const TAG: &str = "pipe-";

/// A tag that no other receiver has.
pub(in crate::receive) fn unique_tag() -> Result<String, Error> {
    Ok(format!("{TAG}{:016x}", crate::system::random_u64()?))
}

/// Scratch files, whose bytes another thread delivers.
pub(in crate::receive) struct PipeTarget {
    root: StagingRoot,
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
        Self { root, staging: None, ring: None, objects: BTreeMap::new() }
    }

    /// Makes room for the objects of a manifest that has exactly one file.
    pub(super) fn open(&mut self, manifest: &Manifest) -> Result<Opened, Error> {
        let files = manifest.files().count();
        if files != 1 {
            return Err(TransferError::NotOneFile { files }.into());
        }
        let staging = self.enter()?;
        let mut opened = Opened::default();
        for object in manifest.objects() {
            let layout = object.oti.layout().map_err(ControlError::from)?;
            let length = object.oti.transfer_length;
            let index = staging.add_scratch(length)?;
            let staged = stage(&staging, layout, Extents::whole_file(index, length))?;
            let names = manifest.files().map(|file| file.path.to_string()).collect();
            let (toi, object) = (Toi::from(object.toi), Arc::new(OpenObject::new(staged, names)));
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
