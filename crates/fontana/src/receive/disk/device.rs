//! A file of a manifest on a device: every symbol goes to its place there at once, and in the end all
//! of it is read back.

use super::tree::{collect_parts, protocol_view};
use super::{Disk, OpenObject, Opened};
use crate::error::Error;
use fontana_fec::Sbn;
use fontana_proto::{ControlError, repair_slots};
use fontana_store::{Device, Extents, StagedObject, Staging, StagingError};
use fontana_wire::{BlockHasher, Manifest, Toi, manifest_hash};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// A device, and what is received there.
pub(in super::super) struct OnDevice {
    device: Device,
    length: u64,
    holes: Vec<Range<u64>>,
    manifest: Option<Arc<Manifest>>,
    objects: Vec<(u32, Arc<OpenObject>)>,
}

/// Zeros are looked for so many bytes at a time.
const CHUNK: usize = 256 << 10;

impl OnDevice {
    pub(in super::super) fn new(device: Device) -> Self {
        Self { device, length: 0, holes: Vec::new(), manifest: None, objects: Vec::new() }
    }

    /// Makes holes zeros, waits for the medium, and compares what it then has with the manifest.
    fn verify(&self) -> Result<(), Error> {
        self.holes.iter().try_for_each(|hole| self.device.zero(hole.clone()))?;
        self.device.set_length(self.length)?;
        self.device.settle()?;
        for (toi, object) in &self.objects {
            let described = self.manifest.as_ref().and_then(|manifest| manifest.object(*toi));
            let hashes = described.map(|object| object.block_hashes.as_slice()).unwrap_or_default();
            for (sbn, hash) in (0..).map(Sbn).zip(hashes) {
                let mut hasher = BlockHasher::new();
                object.staged.for_each_chunk_of_block(sbn, |bytes| hasher.update(bytes))?;
                if hasher.finalize() != *hash {
                    return Err(self.forgetful());
                }
            }
        }
        let mut chunk = vec![0; CHUNK];
        for hole in &self.holes {
            let mut at = hole.start;
            while at < hole.end {
                let count = (hole.end - at).min(CHUNK as u64);
                let bytes = chunk.get_mut(..count as usize).unwrap_or_default();
                self.device.read_exact_at(at, bytes)?;
                if bytes.iter().any(|&byte| byte != 0) {
                    return Err(self.forgetful());
                }
                at += count;
            }
        }
        Ok(())
    }

    fn forgetful(&self) -> Error {
        Error::ReadBack { path: self.device.path().to_owned() }
    }
}

impl Disk {
    /// Opens the objects of a manifest that has exactly one file, on the device.
    pub(super) fn open_device(
        &mut self,
        mut on: OnDevice,
        manifest: &Arc<Manifest>,
    ) -> Result<Opened, Error> {
        let mut files = manifest.files();
        let (Some(file), None) = (files.next(), files.next()) else {
            return Err(Error::NotOneFile { files: manifest.files().count() });
        };
        let length = file.length();
        if let Some(capacity) = on.device.capacity().filter(|&capacity| capacity < length) {
            let path = on.device.path().to_owned();
            return Err(Error::TooSmall { path, capacity, length });
        }
        let description = manifest.emit();
        // The same content on another device is another reception.
        let (a, b) = on.device.identity();
        let identity = [description.as_slice(), &a.to_be_bytes(), &b.to_be_bytes()].concat();
        let tag = manifest_hash(&identity).to_string();
        let (staging, mut kept) = Staging::create(Arc::clone(&self.target), &tag, self.options)?;
        let staging = Arc::new(staging);
        staging.describe(&description)?;
        let index = staging.add_device(&on.device, length)?;
        let mut parts = BTreeMap::new();
        collect_parts(file, index, true, &mut parts);
        let mut opened = Opened::default();
        for object in manifest.objects() {
            let mut parts = parts.remove(&object.toi).unwrap_or_default();
            parts.sort_by_key(|(offset, ..)| *offset);
            let layout = object.oti.layout().map_err(ControlError::from)?;
            let extents = Extents::new(parts.iter().map(|(_, extent, _)| *extent))
                .map_err(StagingError::from)?;
            let slots = repair_slots(layout.oti().scheme, layout.max_source_symbols());
            let staged = StagedObject::new(Arc::clone(&staging), layout, extents, slots)?;
            let open = Arc::new(OpenObject {
                names: vec![file.path.to_string()],
                journal: Some(Arc::clone(&staging)),
                ..OpenObject::new(staged, vec![index])
            });
            on.objects.push((object.toi, Arc::clone(&open)));
            opened.objects.push((Toi::from(object.toi), open));
        }
        let staged = on.objects.iter().map(|(toi, object)| (*toi, &object.staged));
        staging.reconcile(staged, &mut kept)?;
        // A file must be as long as what is read of it.
        on.device.set_length(length)?;
        opened.kept = protocol_view(kept);
        on.length = length;
        on.holes = file.holes().collect();
        on.manifest = Some(Arc::clone(manifest));
        self.staging = Some(staging);
        self.device = Some(on);
        Ok(opened)
    }

    /// Success is said only after the device has shown that it has everything.
    pub(super) fn finish_device(&mut self, on: &OnDevice) -> Result<(), Error> {
        let verified = on.verify();
        // What the journal says of a device that forgets is of no use to anybody.
        let forgetful = matches!(verified, Err(Error::ReadBack { .. }));
        if verified.is_ok() || forgetful {
            self.discard();
        }
        verified
    }
}
