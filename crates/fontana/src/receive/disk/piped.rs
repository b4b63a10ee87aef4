//! Room for what goes to a consumer: scratch files that never get a name.

use super::{Disk, OpenObject, Opened};
use crate::error::Error;
use fontana_fec::ObjectLayout;
use fontana_proto::{ControlError, repair_slots};
use fontana_store::{Extent, Extents, StagedObject, Staging, StagingError};
use fontana_wire::{Manifest, Toi};
use std::sync::Arc;

/// What the tags of receivers for a consumer begin with. They hold nothing that a later one could go
/// on with, as the consumer's bytes are gone.
const TAG: &str = "pipe-";

/// A tag that no other receiver has.
pub(in super::super) fn tag() -> Result<String, Error> {
    Ok(format!("{TAG}{:016x}", crate::system::random_u64()?))
}

/// A fragment of a stream, and its place on the disk.
pub(super) struct Place {
    pub(super) layout: ObjectLayout,
    pub(super) slot: u32,
    pub(super) slot_count: u32,
    pub(super) slot_length: u32,
}

impl Disk {
    /// Opens a fragment: in one file, which holds as many as there are places for.
    pub(super) fn open_fragment(&mut self, place: &Place) -> Result<OpenObject, Error> {
        let Place { layout, slot, slot_count, slot_length } = *place;
        self.piped = true;
        let (staging, file) = match (&self.staging, self.ring) {
            (Some(staging), Some(file)) => (Arc::clone(staging), file),
            _ => {
                let staging = self.scratch_directory()?;
                let file = staging.add_scratch(u64::from(slot_count) * u64::from(slot_length))?;
                (staging, *self.ring.insert(file))
            }
        };
        let offset = u64::from(slot) * u64::from(slot_length);
        let extent = Extent { file, offset, length: layout.oti().transfer_length };
        let extents = Extents::new([extent]).map_err(StagingError::from)?;
        let slots = repair_slots(layout.oti().scheme, layout.max_source_symbols());
        let staged = StagedObject::new(staging, layout, extents, slots)?;
        Ok(OpenObject::new(staged, Vec::new()))
    }

    /// Opens the objects of a manifest that has exactly one file.
    pub(super) fn open_piped(&mut self, manifest: &Manifest) -> Result<Opened, Error> {
        let files = manifest.files().count();
        if files != 1 {
            return Err(Error::NotOneFile { files });
        }
        let staging = self.scratch_directory()?;
        let mut opened = Opened::default();
        for object in manifest.objects() {
            let layout = object.oti.layout().map_err(ControlError::from)?;
            let length = object.oti.transfer_length;
            let index = staging.add_scratch(length)?;
            let extents = Extents::whole_file(index, length);
            let slots = repair_slots(layout.oti().scheme, layout.max_source_symbols());
            let staged = StagedObject::new(Arc::clone(&staging), layout, extents, slots)?;
            let open = OpenObject {
                names: manifest.files().map(|file| file.path.to_string()).collect(),
                ..OpenObject::new(staged, vec![index])
            };
            opened.objects.push((Toi::from(object.toi), Arc::new(open)));
        }
        staging.check_room()?;
        Ok(opened)
    }

    /// A staging directory that nobody will look for. What receivers left that were killed is
    /// removed.
    pub(super) fn scratch_directory(&mut self) -> Result<Arc<Staging>, Error> {
        for leftover in self.target.leftovers()? {
            if leftover.tag.starts_with(TAG) && !leftover.in_use {
                let target = Arc::clone(&self.target);
                // If somebody else is quicker, or it cannot be removed, no harm is done.
                let _ = Staging::create(target, &leftover.tag, self.options)
                    .and_then(|(staging, _)| staging.remove());
            }
        }
        let (staging, _) = Staging::create(Arc::clone(&self.target), &tag()?, self.options)?;
        Ok(Arc::clone(self.staging.insert(Arc::new(staging))))
    }
}
