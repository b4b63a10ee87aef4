//! Where received files go: a target makes room for objects and brings verified files to their
//! names. It waits for the disk, so it has a thread of its own.
//!
//! There is one type per destination, each with `open`, `commit` and `finish`. A new destination is
//! a file here and a variant of [`Target`].

use super::into::ReceiveInto;
use super::object::Opened;
use super::options::ReceiveOptions;
use super::room::shortage;
use super::staging_root::StagingRoot;
use crate::cancellation::CancellationToken;
use crate::error::Error;
use crate::kept_mark::KeptMark;
use crate::report::{IncompleteFiles, ReceiveReport};
use crate::shared::Sender;
use crossbeam_channel::Receiver;
use device::DeviceTarget;
use fcast::FcastTarget;
use fontana_proto::{MetadataMode, Opening, ReceiveJob, Scope};
use fontana_store::Selection;
use fontana_wire::{StreamIndex, Toi};
use pipe::PipeTarget;
use plain::{FileOpening, PlainOptions, PlainTarget};
use std::sync::Arc;
use tree::{TreeOptions, TreeTarget};

mod complete;
mod content;
mod device;
mod digests;
mod fcast;
mod named;
mod pipe;
mod plain;
mod remembered;
mod report;
mod session;
mod slices;
mod tree;
mod written;

pub(super) use pipe::unique_tag;
pub(super) use report::TargetReport;

/// The destination of a reception, and what has been opened there.
pub(super) enum Target {
    /// The entries of a manifest, in a directory.
    Tree(TreeTarget),
    /// The files of a plain FLUTE session, in a directory.
    Plain(PlainTarget),
    /// The files of an FCAST session, in a directory.
    Fcast(FcastTarget),
    /// Scratch files, whose bytes are delivered in order, by another thread; or memory.
    Pipe(PipeTarget),
    /// A device, or a file that is written in place.
    Device(DeviceTarget),
}

/// What an incomplete reception lacks.
#[derive(Default)]
pub(super) struct Lacking {
    /// What is missing of files that were received in part.
    errors: Vec<Error>,
    /// The files of a tree.
    files: Option<IncompleteFiles>,
}

impl Lacking {
    /// Adds it to the report.
    pub(super) fn add_to(self, report: &mut ReceiveReport) {
        report.incomplete = self.files;
        for missing in self.errors {
            report.outcome = report.outcome.worst(missing.outcome());
            report.failures.push(Arc::new(missing));
        }
    }
}

/// What a target is made of.
pub(super) struct TargetSetup<'a> {
    pub(super) options: &'a ReceiveOptions,
    pub(super) root: StagingRoot,
    pub(super) into: &'a ReceiveInto,
    pub(super) selection: Selection,
    /// What the directory remembers of the publisher.
    pub(super) mark: Option<KeptMark>,
    /// Set when the reception is over: the comparison of existing files ends early.
    pub(super) abandoned: CancellationToken,
    pub(super) reports: Sender<TargetReport>,
}

impl Target {
    pub(super) fn new(setup: TargetSetup<'_>) -> Self {
        let TargetSetup { options, root, into, selection, mark, abandoned, reports } = setup;
        match (options.metadata, into) {
            (MetadataMode::Flute, _) => {
                let plain = PlainOptions {
                    selection,
                    skip_existing: options.skip_existing,
                    lists: options.lists,
                    remembers: options.watches_tables || options.deletes_expired,
                    deletes_at_end: options.deletes_expired && !options.watches_tables,
                    file_name: options.file_name.clone(),
                    max_bytes: options.max_bytes,
                };
                Self::Plain(PlainTarget::new(root, plain, abandoned, reports))
            }
            (MetadataMode::Fcast, _) => {
                Self::Fcast(FcastTarget::new(root, options.max_bytes, reports))
            }
            (MetadataMode::Manifest, ReceiveInto::Writer(_)) => Self::Pipe(PipeTarget::new(root)),
            (MetadataMode::Manifest, ReceiveInto::Memory(memory)) => {
                Self::Pipe(PipeTarget::in_memory(root, Arc::clone(memory)))
            }
            (MetadataMode::Manifest, ReceiveInto::Device(device)) => {
                Self::Device(DeviceTarget::new(root, device.clone()))
            }
            (MetadataMode::Manifest, ReceiveInto::Directory) => {
                let options = TreeOptions {
                    selection,
                    skip_existing: options.skip_existing,
                    workers: options.workers.max(1),
                    publisher: options.expectation.publisher,
                    report_files: options.report_files,
                    all_or_nothing: options.all_or_nothing,
                };
                Self::Tree(TreeTarget::new(root, options, mark, abandoned, reports))
            }
        }
    }

    /// Does the jobs of `queue` until the driver drops its end of it.
    pub(super) fn run(&mut self, queue: &Receiver<ReceiveJob>, reports: &Sender<TargetReport>) {
        for report in queue.into_iter().filter_map(|job| self.work(job)) {
            if reports.send(report).is_err() {
                return;
            }
        }
    }

    /// Does a job. `None` if it is one of the workers'.
    pub(super) fn work(&mut self, job: ReceiveJob) -> Option<TargetReport> {
        let (scope, result) = match job {
            ReceiveJob::Open(opening) => {
                let scope = opening.scope();
                let opened = self.open(&opening);
                let report = |opened| {
                    let is_listed = matches!(*opening, Opening::Manifest(_));
                    let room = if is_listed { shortage(&opened) } else { None };
                    TargetReport::Opened { scope, opened, room }
                };
                (scope, opened.map(report))
            }
            ReceiveJob::Commit { toi } => {
                let _object = tracing::debug_span!("object", %toi).entered();
                tracing::debug!("committing");
                (Scope::Object(toi), self.commit(toi))
            }
            ReceiveJob::Drop { toi } => {
                self.drop_object(toi);
                return None;
            }
            ReceiveJob::Expire(expired) => {
                if let Self::Plain(plain) = self {
                    plain.expire(&expired);
                }
                return None;
            }
            ReceiveJob::Finish => (Scope::Session, self.finish().map(|()| TargetReport::Finished)),
            ReceiveJob::Place { .. }
            | ReceiveJob::Solve { .. }
            | ReceiveJob::Recover { .. }
            | ReceiveJob::Locate(_)
            | ReceiveJob::Choose(_)
            | ReceiveJob::Settle { .. }
            | ReceiveJob::CheckCall(_)
            | ReceiveJob::Seal(_)
            | ReceiveJob::Read { .. }
            | ReceiveJob::Release { .. }
            | ReceiveJob::Spill { .. }
            | ReceiveJob::ReadSpill { .. }
            | ReceiveJob::DropSpill => return None,
        };
        Some(result.unwrap_or_else(|error| TargetReport::Failed { scope, error }))
    }

    /// Makes room for objects, before a symbol of them is written.
    fn open(&mut self, opening: &Opening) -> Result<Opened, Error> {
        if let (Opening::Fragment { .. }, Some(root)) = (opening, self.root_of_files()) {
            // A stream has turned up where a manifest might have: its bytes are delivered in order,
            // whatever takes them.
            *self = Self::Pipe(PipeTarget::new(root));
        }
        match (self, opening) {
            (Self::Tree(tree), Opening::Manifest(manifest)) => tree.open(manifest),
            (Self::Device(device), Opening::Manifest(manifest)) => device.open(manifest),
            (Self::Pipe(pipe), Opening::Manifest(manifest)) => pipe.open(manifest),
            (
                Self::Plain(plain),
                &Opening::File { session, object: toi, ref file, version, expires, layout },
            ) => plain.open(&FileOpening { session, toi, file, version, expires, layout }),
            (Self::Fcast(fcast), &Opening::Compound { session, toi, layout }) => {
                fcast.open(session, toi, layout)
            }
            (
                Self::Pipe(pipe),
                &Opening::Fragment { number, layout, slot, slot_count, slot_length },
            ) => {
                let place = pipe::FragmentPlace { slot, slot_count, slot_length };
                pipe.open_fragment(StreamIndex::toi(number), layout, place)
            }
            _ => {
                let error = std::io::Error::other("the session is of another kind");
                Err(Error::system("make room for an object")(error))
            }
        }
    }

    /// The root of a target that receives the files of a manifest, if it does.
    fn root_of_files(&self) -> Option<StagingRoot> {
        match self {
            Self::Tree(tree) => Some(tree.root().clone()),
            Self::Device(device) => Some(device.root().clone()),
            Self::Plain(_) | Self::Fcast(_) | Self::Pipe(_) => None,
        }
    }

    /// Commits the files that are complete now that every block of an object is verified.
    fn commit(&mut self, toi: Toi) -> Result<TargetReport, Error> {
        match self {
            Self::Tree(tree) => tree.commit(toi)?,
            Self::Plain(plain) => return plain.commit(toi),
            Self::Fcast(fcast) => return fcast.commit(toi),
            Self::Pipe(pipe) => pipe.commit(toi)?,
            Self::Device(device) => device.commit(toi)?,
        }
        Ok(TargetReport::Committed { toi })
    }

    /// Frees what was stored of an object that is not received any more.
    fn drop_object(&mut self, toi: Toi) {
        match self {
            Self::Plain(plain) => plain.drop_object(toi),
            Self::Fcast(fcast) => fcast.drop_object(toi),
            // Their objects have hashes, and are not dropped.
            Self::Tree(_) | Self::Pipe(_) | Self::Device(_) => {}
        }
    }

    /// Completes what was received, after every object was committed or given up, and removes the
    /// staging directory.
    fn finish(&mut self) -> Result<(), Error> {
        match self {
            Self::Tree(tree) => tree.finish(),
            Self::Plain(plain) => plain.finish(),
            Self::Fcast(fcast) => fcast.finish(),
            Self::Pipe(pipe) => {
                pipe.discard();
                Ok(())
            }
            Self::Device(device) => device.finish(),
        }
    }

    /// Ends a reception, complete or not: syncs what a later run resumes, removes what none can.
    /// Files of an incomplete one that are complete get their names if it `gives` them.
    pub(super) fn end(self, gives: bool) -> Lacking {
        match self {
            Self::Tree(mut tree) => {
                tree.sync();
                let files = if gives { tree.give() } else { None };
                return Lacking { files, ..Lacking::default() };
            }
            Self::Device(device) => device.sync(),
            Self::Plain(mut plain) => plain.discard(),
            Self::Pipe(mut pipe) => pipe.discard(),
            Self::Fcast(fcast) => {
                return Lacking { errors: fcast.end(), ..Lacking::default() };
            }
        }
        Lacking::default()
    }
}
