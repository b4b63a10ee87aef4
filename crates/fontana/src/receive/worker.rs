//! The work on blocks. Jobs that move bytes (placing, recovering) belong to one worker for each
//! block, so that they stay in order. Solving works on ids alone and has threads of its own: when
//! all blocks complete at the same moment, the receiver leaves the group as soon as they are
//! solved, before they are recovered.

use super::object::OpenObject;
use crate::error::Error;
use crossbeam_channel::{Receiver, Sender};
use fontana_fec::{Esi, IdDecoder, Progress, Work};
use fontana_proto::{BlockId, BlockOutcome, Recipe, Scope, SymbolPlace};
use fontana_store::{Note, StagingError};
use fontana_wire::{BlockHasher, Hash};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// A job on one block, with the object that the block is of.
pub(super) enum WorkerJob {
    /// The symbol is a range of the list's [`WorkerJobs::symbols`].
    Place {
        object: Arc<OpenObject>,
        block: BlockId,
        esi: Esi,
        to: SymbolPlace,
        symbol: Range<usize>,
    },
    Recover {
        object: Arc<OpenObject>,
        block: BlockId,
        recipe: Recipe,
        repair: Vec<Esi>,
    },
    Settle {
        object: Arc<OpenObject>,
        block: BlockId,
        outcome: BlockOutcome,
    },
}

/// An attempt to solve a block.
pub(super) struct Attempt {
    pub(super) block: BlockId,
    pub(super) decoder: Box<dyn IdDecoder>,
    pub(super) budget: Work,
}

/// Solves blocks until the driver drops its end of the queue.
pub(super) fn run_solver(queue: &Receiver<Attempt>, reports: &Sender<WorkerReport>) {
    for Attempt { block, mut decoder, budget } in queue {
        let progress = decoder.solve(budget);
        if reports.send(WorkerReport::Solved { block, decoder, progress }).is_err() {
            return;
        }
    }
}

/// Jobs for one worker, in order.
#[derive(Default)]
pub(super) struct WorkerJobs {
    pub(super) list: Vec<WorkerJob>,
    /// Bytes of the symbols to place, one after the other: copied out of their slabs, which return
    /// to the receive thread at once, however long the disk takes.
    pub(super) symbols: Vec<u8>,
    /// Packets of the session that had been received when the list was made.
    pub(super) session_packets: u64,
}

/// The outcome of a job or an attempt.
pub(super) enum WorkerReport {
    Solved { block: BlockId, decoder: Box<dyn IdDecoder>, progress: Progress },
    Recovered { block: BlockId, hash: Hash },
    Failed { scope: Scope, error: Error },
}

/// Does jobs until the driver drops its end of the queue.
pub(super) fn run(queue: &Receiver<WorkerJobs>, reports: &Sender<WorkerReport>, budget: usize) {
    crate::system::give_way();
    for WorkerJobs { list, symbols, session_packets } in queue {
        let mut notes = Notes::default();
        for job in list {
            let scope = job.scope();
            let report = work(job, &symbols, &mut notes, budget)
                .unwrap_or_else(|error| Some(WorkerReport::Failed { scope, error }));
            if report.is_some_and(|report| reports.send(report).is_err()) {
                return;
            }
        }
        if !notes.list.is_empty() {
            notes.list.push(Note::Packets { count: session_packets });
        }
        if let Err(error) = notes.write() {
            let _ =
                reports.send(WorkerReport::Failed { scope: Scope::Session, error: error.into() });
        }
    }
}

fn work(
    job: WorkerJob,
    symbols: &[u8],
    notes: &mut Notes,
    budget: usize,
) -> Result<Option<WorkerReport>, Error> {
    match job {
        WorkerJob::Place { object, block, esi, to, symbol } => {
            let symbol = symbols.get(symbol).unwrap_or_default();
            place(&object, (block, esi), to, symbol)?;
            let (toi, sbn) = (block.toi.0 as u32, block.sbn);
            notes.add(
                &object,
                match to {
                    SymbolPlace::InPlace => Note::InPlace { toi, sbn, esi },
                    SymbolPlace::RepairSlot(slot) => Note::Spooled { toi, sbn, esi, slot },
                },
            );
            Ok(None)
        }
        WorkerJob::Recover { object, block, recipe, repair } => {
            let BlockId { toi, sbn } = block;
            let _block = tracing::debug_span!("block", toi = %toi, sbn = sbn.0).entered();
            let hash = recover(&object, block, recipe, &repair, budget)?;
            tracing::debug!(%hash, "recovered");
            Ok(Some(WorkerReport::Recovered { block, hash }))
        }
        WorkerJob::Settle { object, block, outcome } => {
            let (toi, sbn) = (block.toi.0 as u32, block.sbn);
            let note = match outcome {
                BlockOutcome::Verified => Note::Whole { toi, sbn },
                BlockOutcome::Corrupt => Note::Void { toi, sbn },
            };
            notes.add(&object, note);
            if !object.has_journal() {
                object.staged.free_repair(sbn)?;
                return Ok(None);
            }
            // The journal says that the spool is not needed before the spool is freed: after a
            // crash in between, the next run finds a spool that is needed, or none.
            notes.write()?;
            object.staged.free_repair_when_synced(sbn)?;
            Ok(None)
        }
    }
}

/// Notes for the journal, until they are written in one go.
#[derive(Default)]
struct Notes {
    list: Vec<Note>,
    object: Option<Arc<OpenObject>>,
}

impl Notes {
    fn add(&mut self, object: &Arc<OpenObject>, note: Note) {
        if object.has_journal() {
            self.list.push(note);
            // All objects of a session share one journal.
            self.object.get_or_insert_with(|| Arc::clone(object));
        }
    }

    fn write(&mut self) -> Result<(), StagingError> {
        let list = std::mem::take(&mut self.list);
        self.object.as_ref().map_or(Ok(()), |object| object.note(&list))
    }
}

impl WorkerJob {
    fn scope(&self) -> Scope {
        match self {
            Self::Place { block, .. }
            | Self::Recover { block, .. }
            | Self::Settle { block, .. } => Scope::Object(block.toi),
        }
    }
}

fn place(
    object: &OpenObject,
    (block, esi): (BlockId, Esi),
    to: SymbolPlace,
    symbol: &[u8],
) -> Result<(), Error> {
    let size = usize::from(object.staged.layout().oti().symbol_size);
    let mut symbol = Cow::Borrowed(symbol);
    // The last source symbol may come without its padding.
    if symbol.len() != size {
        symbol.to_mut().resize(size, 0);
    }
    match to {
        SymbolPlace::InPlace => object.staged.write_source(block.sbn, esi, &symbol)?,
        SymbolPlace::RepairSlot(slot) => object.staged.write_repair(block.sbn, slot, &symbol)?,
    }
    Ok(())
}

fn recover(
    object: &OpenObject,
    block: BlockId,
    recipe: Recipe,
    repair: &[Esi],
    budget: usize,
) -> Result<Hash, Error> {
    let plan = recipe.into_plan().ok_or_else(|| {
        let error = std::io::Error::other("a solved block has no solution any more");
        Error::system("recover a block")(error)
    })?;
    let slots: BTreeMap<Esi, u32> = repair.iter().copied().zip(0..).collect();
    let place =
        |esi: Esi| slots.get(&esi).map_or(SymbolPlace::InPlace, |&s| SymbolPlace::RepairSlot(s));
    object.staged.recover_block(block.sbn, &plan, budget, place)?;
    let mut hasher = BlockHasher::new();
    object.staged.for_each_chunk_of_block(block.sbn, |bytes| hasher.update(bytes))?;
    Ok(hasher.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cancellation::CancellationToken;
    use crate::receive::into::ReceiveInto;
    use crate::receive::options::ReceiveOptions;
    use crate::receive::staging_root::StagingRoot;
    use crate::receive::target::{Target, TargetReport, TargetSetup};
    use crossbeam_channel::unbounded;
    use fontana_fec::codes::raptorq::RaptorQ;
    use fontana_fec::{FecScheme, ObjectLayout, Oti, PlanCache, Sbn};
    use fontana_proto::{Opening, ReceiveJob};
    use fontana_store::{
        Extents, FileIndex, ObjectEncoder, ObjectSource, Selection, SolvedStore, SourceFiles,
        StagingOptions, TargetDirectory,
    };
    use fontana_wire::{Entry, FileEntry, Manifest, ManifestObject, Metadata, RelativePath, Toi};
    use std::path::Path;

    const SYMBOL_SIZE: usize = 64;
    const SOURCE_SYMBOLS: u32 = 16;
    const BUDGET: usize = 1 << 20;
    const BLOCK: BlockId = BlockId { toi: Toi(1), sbn: Sbn(0) };

    fn layout() -> ObjectLayout {
        let scheme = FecScheme::RaptorQ(RaptorQ { source_blocks: 1, sub_blocks: 1, alignment: 4 });
        let transfer_length = u64::from(SOURCE_SYMBOLS) * SYMBOL_SIZE as u64;
        Oti { transfer_length, symbol_size: SYMBOL_SIZE as u16, scheme }.layout().unwrap()
    }

    fn hash(bytes: &[u8]) -> Hash {
        let mut hasher = BlockHasher::new();
        hasher.update(bytes);
        hasher.finalize()
    }

    /// Opens the object of a manifest that has one file of one block, as a receiver does.
    fn open(target: &Path, content: &[u8]) -> Arc<OpenObject> {
        let block_hashes = vec![hash(content)];
        let object = ManifestObject { toi: 1, oti: layout().oti(), block_hashes };
        let path = RelativePath::new("file").unwrap();
        let length = content.len() as u64;
        let file = FileEntry::whole_object(path, Metadata::default(), 1, length);
        let manifest = Manifest::new(1, "", vec![object], vec![Entry::File(file)]).unwrap();
        let directory = Arc::new(TargetDirectory::open(target).unwrap());
        let ((jobs, queue), (reports, done)) = (unbounded(), unbounded());
        let mut target = Target::new(TargetSetup {
            options: &ReceiveOptions::new(target),
            root: StagingRoot { directory, options: StagingOptions::default() },
            into: &ReceiveInto::Directory,
            selection: Selection::new(&[]).unwrap(),
            mark: None,
            abandoned: CancellationToken::new(),
            reports: reports.clone(),
        });
        jobs.send(ReceiveJob::Open(Box::new(Opening::Manifest(Arc::new(manifest))))).unwrap();
        drop(jobs);
        target.run(&queue, &reports);
        match done.recv().unwrap() {
            TargetReport::Opened { mut opened, .. } => opened.objects.remove(0).object,
            TargetReport::Failed { error, .. } => panic!("{error}"),
            _ => panic!("another report"),
        }
    }

    /// What the sender sends of the block: these symbols, one after the other.
    fn symbols(directory: &Path, content: &[u8], esis: &[Esi]) -> Vec<u8> {
        let path = directory.join("sent");
        std::fs::write(&path, content).unwrap();
        let mut files = SourceFiles::default();
        files.add(&path).unwrap();
        let extents = Extents::whole_file(FileIndex(0), content.len() as u64);
        let source = ObjectSource::new(Arc::new(files), layout(), extents).unwrap();
        let plans = Arc::new(PlanCache::new(2));
        let encoder = ObjectEncoder::new(Arc::new(source), plans, SolvedStore::new(BUDGET));
        let mut symbols = vec![0; esis.len() * SYMBOL_SIZE];
        encoder.encode(Sbn(0), esis, BUDGET, &mut symbols).unwrap();
        symbols
    }

    fn work_on(list: Vec<WorkerJob>, symbols: &[u8]) -> Vec<WorkerReport> {
        let ((jobs, queue), (reports, done)) = (unbounded(), unbounded());
        let symbols = symbols.to_vec();
        jobs.send(WorkerJobs { list, symbols, session_packets: 1 }).ok().unwrap();
        drop(jobs);
        run(&queue, &reports, BUDGET);
        drop(reports);
        done.iter().collect()
    }

    /// The jobs that place symbols: source symbols in the file, repair symbols in the spool.
    fn placing(object: &Arc<OpenObject>, esis: &[Esi]) -> Vec<WorkerJob> {
        let mut slots = 0..;
        let job = |(index, &esi): (usize, &Esi)| {
            let to = match esi.0 {
                esi if esi < SOURCE_SYMBOLS => SymbolPlace::InPlace,
                _ => SymbolPlace::RepairSlot(slots.next().unwrap()),
            };
            let object = Arc::clone(object);
            let symbol = index * SYMBOL_SIZE..(index + 1) * SYMBOL_SIZE;
            WorkerJob::Place { object, block: BLOCK, esi, to, symbol }
        };
        esis.iter().enumerate().map(job).collect()
    }

    fn recovering(object: &Arc<OpenObject>, esis: &[Esi]) -> WorkerJob {
        let mut decoder = layout().oti().scheme.decoder(SOURCE_SYMBOLS).unwrap();
        esis.iter().for_each(|&esi| _ = decoder.push(esi).unwrap());
        let Progress::Solved(plan) = decoder.solve(Work::UNBOUNDED) else { panic!("unsolved") };
        let repair = esis.iter().copied().filter(|esi| esi.0 >= SOURCE_SYMBOLS).collect();
        WorkerJob::Recover {
            object: Arc::clone(object),
            block: BLOCK,
            recipe: Recipe::Plan(plan),
            repair,
        }
    }

    fn recovered(reports: &[WorkerReport]) -> Hash {
        match reports {
            [WorkerReport::Recovered { hash, .. }] => *hash,
            [WorkerReport::Failed { error, .. }, ..] => panic!("{error}"),
            _ => panic!("{} reports", reports.len()),
        }
    }

    #[test]
    fn a_block_with_a_forged_symbol_completes_when_it_is_received_again() {
        let directory = tempfile::tempdir().unwrap();
        let content = fontana_testing::noise(SOURCE_SYMBOLS as usize * SYMBOL_SIZE, 5);
        let object = open(&directory.path().join("into"), &content);
        let esis: Vec<Esi> = (0..10).chain(20..28).map(Esi).collect();
        let genuine = symbols(directory.path(), &content, &esis);

        let mut forged = genuine.clone();
        forged[12 * SYMBOL_SIZE] ^= 1; // a repair symbol
        let mut first = placing(&object, &esis);
        first.push(recovering(&object, &esis));
        assert_ne!(recovered(&work_on(first, &forged)), hash(&content));

        let mut again = vec![WorkerJob::Settle {
            object: Arc::clone(&object),
            block: BLOCK,
            outcome: BlockOutcome::Corrupt,
        }];
        again.extend(placing(&object, &esis));
        assert!(work_on(again, &genuine).is_empty());
        object.journal().unwrap().sync().unwrap();
        assert_eq!(recovered(&work_on(vec![recovering(&object, &esis)], &[])), hash(&content));
    }
}
