//! The work on files: making room, bringing verified files to their names. Slow (it waits for the
//! medium), so it has a thread of its own.

use crate::Error;
use crossbeam_channel::{Receiver, Sender};
use fontana_fec::ObjectLayout;
use fontana_proto::{Opening, repair_slots};
use fontana_store::{
    Extent, Extents, FileAttributes, FileIndex, StagedObject, Staging, StagingError,
    StagingOptions, TargetDirectory, TargetName, Timestamp,
};
use fontana_wire::{
    Entry, FdtFile, Manifest, PathError, Segment, Toi, manifest_hash, parse_content_location,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// An object that symbols can be put into.
#[derive(Debug)]
pub(super) struct OpenObject {
    pub(super) staged: StagedObject,
    /// The files that it has bytes of, for people.
    pub(super) names: Vec<String>,
    files: Vec<FileIndex>,
    plain: Option<plain::PlainFile>,
}

/// A job on files.
pub(super) enum Task {
    Open(Opening),
    Commit(Arc<OpenObject>, Toi),
    Finish,
}

/// What became of it.
pub(super) enum Report {
    Opened { toi: Toi, objects: Vec<(Toi, Arc<OpenObject>)> },
    Committed { toi: Toi },
    Finished,
    Failed { toi: Toi, error: Error },
}

/// The files of a session.
pub(super) struct Disk {
    pub(super) target: Arc<TargetDirectory>,
    pub(super) options: StagingOptions,
    staging: Option<Arc<Staging>>,
    /// For each file, its objects that are not verified yet.
    waiting: BTreeMap<FileIndex, Vec<Toi>>,
}

mod plain;

impl Disk {
    pub(super) fn new(target: Arc<TargetDirectory>, overwrite: bool) -> Self {
        let options = StagingOptions { overwrite, ..StagingOptions::default() };
        Self { target, options, staging: None, waiting: BTreeMap::new() }
    }

    /// Works until there is nobody to work for.
    pub(super) fn run(mut self, queue: &Receiver<Task>, reports: &Sender<Report>) {
        for task in queue {
            let (toi, result) = match task {
                Task::Open(opening) => {
                    let toi = opening.toi();
                    let opened = self.open(&opening);
                    (toi, opened.map(|objects| Report::Opened { toi, objects }))
                }
                Task::Commit(object, toi) => {
                    (toi, self.commit(&object, toi).map(|()| Report::Committed { toi }))
                }
                Task::Finish => (Toi::MANIFEST, self.finish().map(|()| Report::Finished)),
            };
            let report = result.unwrap_or_else(|error| Report::Failed { toi, error });
            if reports.send(report).is_err() {
                return;
            }
        }
    }

    fn staging(&mut self, tag: &str) -> Result<Arc<Staging>, StagingError> {
        if let Some(staging) = &self.staging {
            return Ok(Arc::clone(staging));
        }
        let target = Arc::clone(&self.target);
        let staging = Arc::new(Staging::create(target, tag, self.options)?);
        self.staging = Some(Arc::clone(&staging));
        Ok(staging)
    }

    fn open(&mut self, opening: &Opening) -> Result<Vec<(Toi, Arc<OpenObject>)>, Error> {
        match opening {
            Opening::Manifest(manifest) => self.open_manifest(manifest),
            Opening::File { file, layout } => {
                let object = self.open_plain(file, *layout)?;
                Ok(vec![(file.toi, object)])
            }
        }
    }

    fn open_manifest(&mut self, manifest: &Manifest) -> Result<Vec<(Toi, Arc<OpenObject>)>, Error> {
        // Refuse before anything is created.
        let mut targets = Vec::new();
        for entry in manifest.entries() {
            let path = entry.path();
            let name = || path.to_string();
            let Entry::File(file) = entry else {
                let error = PathError::NotPortable("only regular files can be received");
                return Err(Error::Name { name: name(), error });
            };
            let components: Vec<_> = path.components().collect();
            let target = TargetName::new(&components).map_err(StagingError::from)?;
            self.target.check_free(&target, self.options.overwrite)?;
            targets.push((file, target));
        }
        let tag = manifest_hash(&manifest.emit()).to_string();
        let staging = self.staging(&tag)?;
        let mut extents: BTreeMap<u32, Vec<(u64, Extent, String)>> = BTreeMap::new();
        for (file, target) in targets {
            let metadata = file.metadata;
            let attributes = FileAttributes {
                mode: metadata.mode,
                modified: Some(Timestamp {
                    seconds: metadata.mtime_seconds,
                    nanoseconds: metadata.mtime_nanoseconds,
                }),
            };
            let index = staging.add_file(target, file.length(), attributes)?;
            let waiting = self.waiting.entry(index).or_default();
            for (range, segment) in file.placed_segments() {
                let Segment::Extent { toi, object_offset, length } = segment else { continue };
                let extent = Extent { file: index, offset: range.start, length };
                let list = extents.entry(toi).or_default();
                list.push((object_offset, extent, file.path.to_string()));
                if !waiting.contains(&Toi::from(toi)) {
                    waiting.push(Toi::from(toi));
                }
            }
        }
        let mut objects = Vec::new();
        for object in manifest.objects() {
            let mut of_object = extents.remove(&object.toi).unwrap_or_default();
            of_object.sort_by_key(|(offset, ..)| *offset);
            let layout = object.oti.layout().map_err(fontana_proto::ControlError::from)?;
            let names: Vec<_> = of_object.iter().map(|(.., name)| name.clone()).collect();
            let files = of_object.iter().map(|(_, extent, _)| extent.file).collect();
            let extents = Extents::new(of_object.iter().map(|(_, extent, _)| *extent))
                .map_err(StagingError::from)?;
            let slots = repair_slots(layout.max_source_symbols());
            let staged = StagedObject::new(Arc::clone(&staging), layout, extents, slots)?;
            let open = OpenObject { staged, names, files, plain: None };
            objects.push((Toi::from(object.toi), Arc::new(open)));
        }
        Ok(objects)
    }

    /// Commits the files that are whole now that `toi` is.
    fn commit(&mut self, object: &OpenObject, toi: Toi) -> Result<(), Error> {
        if let Some(file) = &object.plain {
            return self.commit_plain(object, file);
        }
        let mut whole = Vec::new();
        for index in &object.files {
            if let Some(waiting) = self.waiting.get_mut(index) {
                waiting.retain(|&other| other != toi);
                if waiting.is_empty() {
                    whole.push(*index);
                }
            }
        }
        if let Some(staging) = &self.staging {
            staging.commit(&whole)?;
        }
        object.staged.remove_spool()?;
        Ok(())
    }

    /// Commits what has no object (empty files) and removes the staging directory.
    fn finish(&mut self) -> Result<(), Error> {
        if let Some(staging) = &self.staging {
            let left: Vec<_> = self.waiting.keys().copied().collect();
            staging.commit(&left)?;
            staging.remove()?;
        }
        Ok(())
    }

    fn open_plain(
        &mut self,
        file: &Arc<FdtFile>,
        layout: ObjectLayout,
    ) -> Result<Arc<OpenObject>, Error> {
        let name = || file.content_location.clone();
        let path = parse_content_location(&file.content_location)
            .map_err(|error| Error::Name { name: name(), error })?;
        // Directories are not made here: the last component is the name.
        let last: Vec<_> = path.components().next_back().into_iter().collect();
        let target = TargetName::new(&last).map_err(StagingError::from)?;
        self.target.check_free(&target, self.options.overwrite)?;
        let staging = self.staging(&format!("flute-{}", std::process::id()))?;
        let length = layout.oti().transfer_length;
        let (index, plain) = plain::open(&staging, file, target, length)?;
        let extents = Extents::whole_file(index, length);
        let slots = repair_slots(layout.max_source_symbols());
        let staged = StagedObject::new(staging, layout, extents, slots)?;
        let (names, files) = (vec![path.to_string()], vec![index]);
        Ok(Arc::new(OpenObject { staged, names, files, plain: Some(plain) }))
    }
}
