//! The work on files: making room, bringing verified files to their names. Slow (it waits for the
//! medium), so it has a thread of its own.

use crate::watch::KeptMark;
use crate::{Error, ReceiveOptions, ReceivedPart, Stop};
use crossbeam_channel::{Receiver, Sender};
use fontana_fec::ObjectLayout;
use fontana_proto::{Kept, Opening, SessionKey, repair_slots};
use fontana_store::{
    Extents, FileAttributes, FileIndex, Note, Selection, StagedObject, Staging, StagingError,
    StagingOptions, TargetDirectory, TargetName,
};
use fontana_wire::{FdtFile, Toi, parse_content_location};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// An object that symbols can be put into.
#[derive(Debug)]
pub(super) struct OpenObject {
    pub(super) staged: StagedObject,
    /// The files that it has bytes of, for people.
    pub(super) names: Vec<String>,
    files: Vec<FileIndex>,
    plain: Option<plain::PlainFile>,
    /// The group of files that its own are among.
    group: u32,
    /// Where what happens to the object is noted; plain FLUTE sessions are not resumed.
    journal: Option<Arc<Staging>>,
}

impl OpenObject {
    /// Writes down what has happened to the object.
    pub(super) fn note(&self, notes: &[Note]) -> Result<(), StagingError> {
        match &self.journal {
            Some(staging) if !notes.is_empty() => staging.note(notes),
            _ => Ok(()),
        }
    }

    /// Whether anybody reads the notes.
    pub(super) fn keeps_notes(&self) -> bool {
        self.journal.is_some()
    }

    /// Where they are written, if they are.
    pub(super) fn journal(&self) -> Option<&Arc<Staging>> {
        self.journal.as_ref()
    }
}

/// A job on files.
pub(super) enum Task {
    Open(Opening),
    Commit(Arc<OpenObject>, Toi),
    Finish,
}

/// What became of it.
pub(super) enum Report {
    Compared { bytes: u64, of: u64 },
    Opened { toi: Toi, opened: Opened },
    Committed { toi: Toi },
    Finished,
    Failed { toi: Toi, error: Error },
}

/// Objects that symbols can be put into from now on, and what there was of them already.
#[derive(Default)]
pub(super) struct Opened {
    pub(super) objects: Vec<(Toi, Arc<OpenObject>)>,
    pub(super) kept: Kept,
    /// Objects of the manifest that are not received.
    pub(super) left_out: Vec<Toi>,
    /// What is received of the manifest; `None` if that is everything.
    pub(super) part: Option<ReceivedPart>,
}

/// The files of a session.
pub(super) struct Disk {
    pub(super) target: Arc<TargetDirectory>,
    pub(super) options: StagingOptions,
    /// Which of a manifest's files are received.
    selection: Selection,
    /// What the directory remembers of the publisher.
    mark: Option<KeptMark>,
    /// Version of what is received.
    version: u64,
    /// Files that are there already are not received.
    skip_existing: bool,
    workers: usize,
    /// Set when nobody waits for the work any more.
    abandoned: Stop,
    /// Says how far comparing has come: bytes, and how many there are.
    tell: Box<dyn FnMut(u64, u64) + Send>,
    /// Files that stay as they are but for mode and time.
    to_put_right: Vec<(TargetName, u64, FileAttributes)>,
    staging: Option<Arc<Staging>>,
    /// Most bytes that a file may be decompressed to.
    max_bytes: u64,
    /// Everything goes to a consumer; nothing gets a name.
    pub(super) piped: bool,
    /// What is received is written to a device, in place.
    pub(super) device: Option<device::OnDevice>,
    /// The file that holds the fragments of a stream until they are handed over.
    ring: Option<FileIndex>,
    /// Files that get their names together, by one of their objects.
    groups: BTreeMap<u32, Group>,
    /// Files without bytes, and links: they get their names at the end.
    left: Vec<FileIndex>,
}

/// Files that get their names together, and the objects that they are made of.
#[derive(Default)]
struct Group {
    files: Vec<FileIndex>,
    objects: BTreeSet<u32>,
    /// Objects that are not verified yet.
    waiting: BTreeSet<u32>,
}

impl Group {
    fn add(&mut self, toi: u32) {
        self.objects.insert(toi);
        self.waiting.insert(toi);
    }
}

pub(super) mod device;
mod existing;
pub(super) mod piped;
mod plain;
mod tree;
mod wanted;

impl Disk {
    pub(super) fn new(
        target: Arc<TargetDirectory>,
        options: &ReceiveOptions,
        selection: Selection,
        mark: Option<KeptMark>,
        abandoned: Stop,
        tell: Box<dyn FnMut(u64, u64) + Send>,
    ) -> Self {
        let (max_bytes, workers) = (options.max_bytes, options.workers.max(1));
        let skip_existing = options.skip_existing;
        let options = StagingOptions { overwrite: options.overwrite, ..StagingOptions::default() };
        Self {
            target,
            options,
            selection,
            mark,
            version: 0,
            skip_existing,
            workers,
            abandoned,
            tell,
            to_put_right: Vec::new(),
            staging: None,
            max_bytes,
            piped: false,
            device: None,
            ring: None,
            groups: BTreeMap::new(),
            left: Vec::new(),
        }
    }

    /// Works until there is nobody to work for.
    pub(super) fn run(&mut self, queue: &Receiver<Task>, reports: &Sender<Report>) {
        for task in queue {
            let (toi, result) = match task {
                Task::Open(opening) => {
                    let toi = opening.toi();
                    let opened = self.open(&opening);
                    (toi, opened.map(|opened| Report::Opened { toi, opened }))
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

    fn open(&mut self, opening: &Opening) -> Result<Opened, Error> {
        if let (Opening::Manifest(manifest), Some(device)) = (opening, self.device.take()) {
            return self.open_device(device, manifest);
        }
        match opening {
            Opening::Manifest(manifest) if self.piped => self.open_piped(manifest),
            Opening::Manifest(manifest) => self.open_tree(manifest),
            Opening::File { session, file, layout } => {
                let object = self.open_plain(*session, file, *layout)?;
                Ok(Opened { objects: vec![(file.toi, object)], ..Opened::default() })
            }
            &Opening::Fragment { layout, slot, slot_count, slot_length, .. } => {
                let place = piped::Place { layout, slot, slot_count, slot_length };
                let object = Arc::new(self.open_fragment(&place)?);
                Ok(Opened { objects: vec![(opening.toi(), object)], ..Opened::default() })
            }
        }
    }

    /// Commits the files that are whole now that `toi` is.
    fn commit(&mut self, object: &OpenObject, toi: Toi) -> Result<(), Error> {
        if let Some(file) = &object.plain {
            return self.commit_plain(object, file);
        }
        if self.piped {
            return Ok(object.staged.remove_spool()?);
        }
        if let (Some(_), Some(staging)) = (&self.device, &self.staging) {
            // As below, for an object of a group that is not whole.
            staging.sync()?;
            return Ok(object.staged.remove_spool()?);
        }
        let number = toi.0 as u32;
        if let (Some(group), Some(staging)) = (self.groups.get_mut(&object.group), &self.staging)
            && group.waiting.remove(&number)
        {
            if !group.waiting.is_empty() {
                // Its blocks are whole, and of their notes nothing but that must be believed once
                // the spool is gone.
                staging.sync()?;
                return Ok(object.staged.remove_spool()?);
            }
            staging.settle(&group.files)?;
            // Whoever comes after a crash between two names knows that the rest is right.
            let notes: Vec<_> = group.objects.iter().map(|&toi| Note::Committed { toi }).collect();
            staging.note(&notes)?;
            staging.sync_notes()?;
            staging.publish(&group.files)?;
        }
        object.staged.remove_spool()?;
        Ok(())
    }

    /// Commits what has no object (empty files, links, directories) and removes the staging
    /// directory.
    fn finish(&mut self) -> Result<(), Error> {
        if let Some(device) = self.device.take() {
            self.finish_device(&device)?;
        } else if self.piped {
            self.discard();
        } else if let Some(staging) = self.staging.take() {
            staging.commit(&std::mem::take(&mut self.left))?;
            staging.put_right(&std::mem::take(&mut self.to_put_right))?;
            staging.commit_directories()?;
            // Before success is said, and after everything that it speaks of.
            if let Some(mark) = &mut self.mark {
                mark.raise(&self.target, self.version)?;
            }
            staging.remove()?;
        }
        Ok(())
    }

    /// Brings what is left for the next life to the medium: the machine may be about to be switched
    /// off. If that fails, a power failure costs what came since the last time.
    pub(super) fn sync(&self) {
        let _ = self.staging.as_ref().map(|staging| staging.sync());
    }

    /// Removes what was not committed, where nobody can ever go on with it. If that fails, whoever
    /// receives the session next removes it.
    pub(super) fn discard(&mut self) {
        let _ = self.staging.take().map(|staging| {
            let _ = staging.finish_directories();
            staging.remove()
        });
    }

    fn open_plain(
        &mut self,
        session: SessionKey,
        file: &FdtFile,
        layout: ObjectLayout,
    ) -> Result<Arc<OpenObject>, Error> {
        let name = || file.content_location.clone();
        let path = parse_content_location(&file.content_location)
            .map_err(|error| Error::Name { name: name(), error })?;
        let components: Vec<_> = path.components().collect();
        let target = TargetName::new(&components).map_err(StagingError::from)?;
        self.target.check_free(&target, self.options.overwrite)?;
        let SessionKey { source, tsi } = session;
        let tag = format!("flute-{source}-{tsi}").replace(['.', ':'], "-");
        let staging = match &self.staging {
            Some(staging) => Arc::clone(staging),
            None => {
                let create = || Staging::create(Arc::clone(&self.target), &tag, self.options);
                let (mut staging, kept) = create()?;
                if kept != fontana_store::Kept::default() {
                    // Files come in any order: what a killed receiver noted means nothing here.
                    staging.remove()?;
                    drop(staging);
                    staging = create()?.0;
                }
                Arc::clone(self.staging.insert(Arc::new(staging)))
            }
        };
        let length = layout.oti().transfer_length;
        let (index, plain) = plain::open(&staging, file, target, length)?;
        let extents = Extents::whole_file(index, length);
        let slots = repair_slots(layout.oti().scheme, layout.max_source_symbols());
        let staged = StagedObject::new(staging, layout, extents, slots)?;
        let (names, files) = (vec![path.to_string()], vec![index]);
        let (plain, journal) = (Some(plain), None);
        Ok(Arc::new(OpenObject { staged, names, files, plain, group: 0, journal }))
    }
}
