//! The one file of a manifest on a device: every symbol is written to its final place at once, and
//! all of it is read back at the end.

use crate::error::{Error, IoError, TransferError};
use crate::receive::object::{OpenObject, Opened, OpenedObject, stage};
use crate::receive::plan::ObjectParts;
use crate::receive::saved;
use crate::receive::staging_root::StagingRoot;
use fontana_fec::Sbn;
use fontana_proto::ControlError;
use fontana_store::{Device, Staging};
use fontana_wire::{BlockHasher, FileEntry, Manifest, ManifestObject, Toi, manifest_hash};
use std::ops::Range;
use std::sync::Arc;

/// A device, and the file that is received there.
pub(in crate::receive) struct DeviceTarget {
    root: StagingRoot,
    device: Device,
    file: Option<FileOnDevice>,
}

/// A file that is being received.
struct FileOnDevice {
    length: u64,
    holes: Vec<Range<u64>>,
    manifest: Arc<Manifest>,
    objects: Vec<OpenedObject>,
    /// Holds repair symbols, and the journal that a later run resumes from.
    staging: Arc<Staging>,
}

impl DeviceTarget {
    pub(super) fn new(root: StagingRoot, device: Device) -> Self {
        Self { root, device, file: None }
    }

    pub(super) fn root(&self) -> &StagingRoot {
        &self.root
    }

    /// Opens the objects of a manifest that has exactly one file.
    pub(super) fn open(&mut self, manifest: &Arc<Manifest>) -> Result<Opened, Error> {
        let mut files = manifest.files();
        let (Some(file), None) = (files.next(), files.next()) else {
            return Err(TransferError::NotOneFile { files: manifest.files().count() }.into());
        };
        let length = file.length();
        if let Some(capacity) = self.device.capacity().filter(|&capacity| capacity < length) {
            let path = self.device.path().to_owned();
            return Err(TransferError::TooSmall { path, capacity, length }.into());
        }
        let holes: Vec<_> = file.holes().collect();
        self.device.reserve(length, &holes)?;
        let description = manifest.emit();
        // The same content on another device is another reception.
        let (a, b) = self.device.identity();
        let identity = [description.as_slice(), &a.to_be_bytes(), &b.to_be_bytes()].concat();
        let (staging, mut left) = self.root.enter(&manifest_hash(&identity).to_string())?;
        let staging = Arc::new(staging);
        staging.describe(&description)?;
        let objects = self.open_objects(manifest, file, &staging)?;
        let staged = objects.iter().map(|opened| (opened.toi.0 as u32, &opened.object.staged));
        staging.reconcile(staged, &mut left)?;
        // The file must be as long as what is read of it.
        self.device.set_length(length)?;
        let opened = Opened { objects, saved: saved::for_protocol(left), ..Opened::default() };
        self.file = Some(FileOnDevice {
            length,
            holes,
            manifest: Arc::clone(manifest),
            objects: opened.objects.clone(),
            staging,
        });
        Ok(opened)
    }

    fn open_objects(
        &self,
        manifest: &Manifest,
        file: &FileEntry,
        staging: &Arc<Staging>,
    ) -> Result<Vec<OpenedObject>, Error> {
        let index = staging.add_device(&self.device, file.length())?;
        let mut parts = ObjectParts::default();
        parts.add(file, index);
        let mut objects = Vec::new();
        for ManifestObject { toi, oti, .. } in manifest.objects() {
            let layout = oti.layout().map_err(ControlError::from)?;
            let staged = stage(staging, layout, parts.take(*toi)?.extents)?;
            let names = vec![file.path.to_string()];
            let object = OpenObject::with_journal(staged, names, Arc::clone(staging));
            objects.push(OpenedObject { toi: Toi::from(*toi), object: Arc::new(object) });
        }
        Ok(objects)
    }

    /// Gives the spool of a verified object back: its bytes are in their place.
    pub(super) fn commit(&mut self, toi: Toi) -> Result<(), Error> {
        let Some(file) = &self.file else { return Ok(()) };
        let Some(opened) = file.objects.iter().find(|opened| opened.toi == toi) else {
            return Ok(());
        };
        // Without the spool the only notes that are true are those of complete blocks: the disk
        // must have these first.
        file.staging.sync()?;
        Ok(opened.object.staged.remove_spool()?)
    }

    /// Reads the file back. Success is reported only after the device has shown that it has it.
    pub(super) fn finish(&mut self) -> Result<(), Error> {
        let Some(file) = &self.file else { return Ok(()) };
        let verified = file.verify(&self.device);
        // The journal of a device that forgets is worthless.
        if matches!(verified, Ok(()) | Err(Error::Io(IoError::ReadBack { .. }))) {
            let _ = file.staging.remove();
            self.file = None;
        }
        verified
    }

    /// Syncs what a later run resumes. If that fails, a power failure costs what came since the
    /// last time.
    pub(super) fn sync(&self) {
        let _ = self.file.as_ref().map(|file| file.staging.sync());
    }
}

impl FileOnDevice {
    /// Makes holes zeros, syncs the device, and compares what it then holds with the manifest.
    fn verify(&self, device: &Device) -> Result<(), Error> {
        self.holes.iter().try_for_each(|hole| device.zero(hole.clone()))?;
        device.set_length(self.length)?;
        device.settle()?;
        let differs = || IoError::ReadBack { path: device.path().to_owned() };
        for OpenedObject { toi, object } in &self.objects {
            let described = self.manifest.object(toi.0 as u32);
            let hashes = described.map(|object| object.block_hashes.as_slice()).unwrap_or_default();
            for (sbn, hash) in (0..).map(Sbn).zip(hashes) {
                let mut hasher = BlockHasher::new();
                object.staged.for_each_chunk_of_block(sbn, |bytes| hasher.update(bytes))?;
                if hasher.finalize() != *hash {
                    return Err(differs().into());
                }
            }
        }
        for hole in &self.holes {
            if !device.is_zero(hole.clone())? {
                return Err(differs().into());
            }
        }
        Ok(())
    }
}
