//! The work on files: making room, bringing verified files to their names. Slow (it waits for the
//! medium), so it has a thread of its own.

use crate::error::Error;
use crate::receive::{ReceiveOptions, ReceivedPart};
use crate::stop::Stop;
use crate::watch::KeptMark;
use crossbeam_channel::{Receiver, Sender};
use fontana_fec::ObjectLayout;
use fontana_proto::{Kept, Opening, SessionKey, repair_slots};
use fontana_store::{
    Extents, FileAttributes, FileIndex, Note, Selection, StagedObject, Staging, StagingError,
    StagingOptions, TargetDirectory, TargetName,
};
use fontana_wire::{CarouselInstance, FdtFile, RelativePath, Toi, parse_content_location};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

/// An object that symbols can be put into.
#[derive(Debug)]
pub(super) struct OpenObject {
    pub(super) staged: StagedObject,
    /// The files that it has bytes of, for people.
    names: Vec<String>,
    /// The name of the file that it turned out to have bytes of, if only its header told.
    found: OnceLock<[String; 1]>,
    files: Vec<FileIndex>,
    plain: Option<plain::PlainFile>,
    /// It describes itself (FCAST).
    is_compound: bool,
    /// The group of files that its own are among.
    group: u32,
    /// Where what happens to the object is noted; plain FLUTE and FCAST sessions are not resumed.
    journal: Option<Arc<Staging>>,
}

impl OpenObject {
    /// An object of these files that has no name, belongs to no group and is not resumed.
    fn new(staged: StagedObject, files: Vec<FileIndex>) -> Self {
        Self {
            staged,
            names: Vec::new(),
            found: OnceLock::new(),
            files,
            plain: None,
            is_compound: false,
            group: 0,
            journal: None,
        }
    }

    /// The files that it has bytes of, as far as is known, for people.
    pub(super) fn names(&self) -> &[String] {
        self.found.get().map_or(&self.names[..], |found| &found[..])
    }

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
    Compared {
        bytes: u64,
        of: u64,
    },
    Opened {
        toi: Toi,
        opened: Opened,
    },
    Committed {
        toi: Toi,
    },
    /// An object has told what it is a part of.
    Found {
        toi: Toi,
        name: String,
        bytes: u64,
    },
    CarouselRead {
        toi: Toi,
        instance: CarouselInstance,
    },
    Finished,
    Failed {
        toi: Toi,
        error: Error,
    },
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
    /// Files of which some slices have arrived.
    slices: fcast::Slices,
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
mod fcast;
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
            slices: fcast::Slices::default(),
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
                Task::Commit(object, toi) if object.is_compound => {
                    (toi, self.commit_compound(&object, toi, reports))
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
            &Opening::Compound { session, toi, layout } => {
                let object = self.open_compound(session, layout)?;
                Ok(Opened { objects: vec![(toi, object)], ..Opened::default() })
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
        // Everything that was listed is here, and it is not enough.
        if let Some(missing) = self.slices.pop_unfinished() {
            return Err(missing);
        }
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
        let (path, target) = self.target_of(&file.content_location)?;
        let staging = self.plain_staging("flute", session)?;
        let length = layout.oti().transfer_length;
        let (index, plain) = plain::open(&staging, file, target, length)?;
        let extents = Extents::whole_file(index, length);
        let slots = repair_slots(layout.oti().scheme, layout.max_source_symbols());
        let staged = StagedObject::new(staging, layout, extents, slots)?;
        let (names, plain) = (vec![path.to_string()], Some(plain));
        Ok(Arc::new(OpenObject { names, plain, ..OpenObject::new(staged, vec![index]) }))
    }

    /// The file that a Content-Location stands for, if it may have that name here.
    fn target_of(&self, location: &str) -> Result<(RelativePath, TargetName), Error> {
        let path = parse_content_location(location)
            .map_err(|error| Error::Name { name: location.to_owned(), error })?;
        let components: Vec<_> = path.components().collect();
        let target = TargetName::new(&components).map_err(StagingError::from)?;
        self.target.check_free(&target, self.options.overwrite)?;
        Ok((path, target))
    }

    /// The staging directory of a session that has no manifest.
    fn plain_staging(&mut self, kind: &str, session: SessionKey) -> Result<Arc<Staging>, Error> {
        if let Some(staging) = &self.staging {
            return Ok(Arc::clone(staging));
        }
        let SessionKey { source, tsi } = session;
        let tag = format!("{kind}-{source}-{tsi}").replace(['.', ':'], "-");
        let create = || Staging::create(Arc::clone(&self.target), &tag, self.options);
        let (mut staging, kept) = create()?;
        if kept != fontana_store::Kept::default() {
            // Files come in any order: what a killed receiver noted means nothing here.
            staging.remove()?;
            drop(staging);
            staging = create()?.0;
        }
        Ok(Arc::clone(self.staging.insert(Arc::new(staging))))
    }
}
