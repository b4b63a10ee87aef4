//! The thread that writes received symbols. It does all jobs that move bytes of blocks in their
//! order, except for recoveries and searches, which it passes on: several threads that write to one
//! file would only wait for each other. Blocks that arrive in order are hashed right after each
//! write, while their bytes are in the cache.

use super::hashing::HashedPrefixes;
use super::object::OpenObject;
use super::resend::SymbolRead;
use super::worker::{BytesJob, Recovery, WorkerReport};
use crate::error::Error;
use crate::shared::Sender;
use crossbeam_channel::{Receiver, TryRecvError};
use fontana_net::ReceivedBatch;
use fontana_proto::{BlockId, BlockOutcome, Choice, PlacedRun, Scope, Search, SymbolPlace};
use fontana_store::{Note, StagingError};
use std::sync::Arc;

/// Bytes of symbols that are gathered for one write. They stay in the second-level cache.
const GATHERED: usize = 128 << 10;

/// Notes that are written to the journal together, at most.
const NOTES: usize = 256;

/// A job on one block, with the object that the block is of.
pub(super) enum BlockJob {
    Place {
        object: Arc<OpenObject>,
        run: PlacedRun,
        /// The batch that the symbols are in; `None` if the run has a copy of them.
        slab: Option<Arc<ReceivedBatch>>,
    },
    Recover(Recovery),
    Locate {
        object: Arc<OpenObject>,
        search: Box<Search>,
    },
    Choose {
        object: Arc<OpenObject>,
        choice: Box<Choice>,
    },
    /// After all symbols that were placed before.
    Read(SymbolRead),
    Settle {
        object: Arc<OpenObject>,
        block: BlockId,
        outcome: BlockOutcome,
    },
}

/// Jobs for the placer, in order.
#[derive(Default)]
pub(super) struct JobList {
    pub(super) list: Vec<BlockJob>,
    /// Packets of the session that had been received when the list was made.
    pub(super) session_packets: u64,
}

/// Does jobs until the driver drops its end of the queue.
pub(super) fn run(
    queue: &Receiver<JobList>,
    bytes_jobs: Sender<BytesJob>,
    reports: &Sender<WorkerReport>,
) {
    crate::system::give_way();
    let mut placer = Placer::new(bytes_jobs);
    loop {
        let next = queue.try_recv().or_else(|error| match error {
            TryRecvError::Empty => {
                placer.write_notes(reports);
                queue.recv().map_err(|_| TryRecvError::Disconnected)
            }
            TryRecvError::Disconnected => Err(error),
        });
        let Ok(list) = next else {
            return placer.write_notes(reports);
        };
        placer.work_on(list, reports);
    }
}

pub(super) struct Placer {
    bytes_jobs: Sender<BytesJob>,
    notes: Notes,
    /// The symbols that are written next, one after the other.
    gathered: Vec<u8>,
    prefixes: HashedPrefixes,
}

impl Placer {
    pub(super) fn new(bytes_jobs: Sender<BytesJob>) -> Self {
        Self {
            bytes_jobs,
            notes: Notes::default(),
            gathered: Vec::new(),
            prefixes: HashedPrefixes::default(),
        }
    }

    /// Does the jobs of a list, and writes the notes if there are many.
    pub(super) fn work_on(&mut self, jobs: JobList, reports: &Sender<WorkerReport>) {
        let JobList { list, session_packets } = jobs;
        self.notes.session_packets = session_packets;
        for job in list {
            let scope = job.scope();
            let report =
                self.work(job).unwrap_or_else(|error| Some(WorkerReport::Failed { scope, error }));
            if let Some(report) = report {
                // The driver has ended if it takes no report.
                let _ = reports.send(report);
            }
        }
        if self.notes.list.len() >= NOTES {
            self.write_notes(reports);
        }
    }

    fn work(&mut self, job: BlockJob) -> Result<Option<WorkerReport>, Error> {
        match job {
            BlockJob::Place { object, run, slab } => {
                let slab = slab.as_deref().map_or(&[][..], |slab| slab.as_datagrams().slab);
                self.place(&object, &run, slab)?;
                self.notes.add(&object, note_of(&run));
            }
            BlockJob::Recover(mut recovery) => {
                recovery.prefix = self.prefixes.take(recovery.block);
                if recovery.is_hashed() {
                    let (block, hash) = (recovery.block, recovery.prefix.finalize());
                    return Ok(Some(WorkerReport::Recovered { block, hash }));
                }
                // The threads run until this end of their queue is dropped.
                let _ = self.bytes_jobs.send(BytesJob::Recover(recovery));
            }
            BlockJob::Locate { object, search } => {
                let _ = self.bytes_jobs.send(BytesJob::Locate { object, search });
            }
            BlockJob::Choose { object, choice } => {
                let _ = self.bytes_jobs.send(BytesJob::Choose { object, choice });
            }
            BlockJob::Read(read) => _ = self.bytes_jobs.send(BytesJob::Read(read)),
            BlockJob::Settle { object, block, outcome } => {
                let (toi, sbn) = (block.toi.0 as u32, block.sbn);
                let note = match outcome {
                    BlockOutcome::Verified => Note::Whole { toi, sbn },
                    BlockOutcome::Corrupt => Note::Void { toi, sbn },
                };
                self.notes.add(&object, note);
                if !object.has_journal() {
                    object.staged.free_repair(sbn)?;
                    return Ok(None);
                }
                // The journal says that the spool is not needed before the spool is freed: after a
                // crash in between, the next run finds a spool that is needed, or none.
                self.notes.write()?;
                object.staged.free_repair_when_synced(sbn)?;
            }
        }
        Ok(None)
    }

    /// Writes the symbols of a run, with one write for each [`GATHERED`] bytes, and hashes them if
    /// they continue what is hashed of their block.
    fn place(&mut self, object: &OpenObject, run: &PlacedRun, slab: &[u8]) -> Result<(), Error> {
        let (staged, sbn) = (&object.staged, run.block.sbn);
        let size = usize::from(staged.layout().oti().symbol_size);
        let at_once = (GATHERED / size).max(1);
        let bytes = match run.to {
            SymbolPlace::InPlace => staged.bytes_in_block(sbn, run.first, run.count),
            SymbolPlace::RepairSlot(_) => None,
        };
        let mut unhashed = bytes.as_ref().map_or(0, |bytes| bytes.end - bytes.start) as usize;
        let mut prefix = bytes
            .zip(staged.block_length(sbn))
            .and_then(|(bytes, of)| self.prefixes.continued(run.block, &bytes, of));
        let mut symbols = run.symbols(slab).zip(run.ids()).peekable();
        while let Some(&(_, (first, to))) = symbols.peek() {
            self.gathered.clear();
            for (index, (symbol, _)) in (1..).zip(symbols.by_ref().take(at_once)) {
                self.gathered.extend_from_slice(symbol.unwrap_or_default());
                // The last source symbol may come without its padding.
                self.gathered.resize(index * size, 0);
            }
            match to {
                SymbolPlace::InPlace => {
                    staged.write_source_run(sbn, first, &self.gathered)?;
                    if let Some(prefix) = &mut prefix {
                        // Without the padding of the last symbol.
                        let length = unhashed.min(self.gathered.len());
                        prefix.update(self.gathered.get(..length).unwrap_or_default());
                        unhashed -= length;
                    }
                }
                SymbolPlace::RepairSlot(slot) => {
                    staged.write_repair_run(sbn, slot, &self.gathered)?;
                }
            }
        }
        Ok(())
    }

    pub(super) fn write_notes(&mut self, reports: &Sender<WorkerReport>) {
        if let Err(error) = self.notes.write() {
            let _ =
                reports.send(WorkerReport::Failed { scope: Scope::Session, error: error.into() });
        }
    }
}

fn note_of(run: &PlacedRun) -> Note {
    let (toi, sbn, esi, count) = (run.block.toi.0 as u32, run.block.sbn, run.first, run.count);
    match run.to {
        SymbolPlace::InPlace => Note::InPlace { toi, sbn, esi, count },
        SymbolPlace::RepairSlot(slot) => Note::Spooled { toi, sbn, esi, slot, count },
    }
}

/// Notes for the journal, until they are written in one go.
#[derive(Default)]
struct Notes {
    list: Vec<Note>,
    object: Option<Arc<OpenObject>>,
    /// Packets of the session that had been received.
    session_packets: u64,
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
        let Some(object) = self.object.as_ref().filter(|_| !self.list.is_empty()) else {
            return Ok(());
        };
        self.list.push(Note::Packets { count: self.session_packets });
        let result = object.note(&self.list);
        self.list.clear();
        result
    }
}

impl BlockJob {
    fn scope(&self) -> Scope {
        Scope::Object(match self {
            Self::Place { run, .. } => run.block.toi,
            Self::Recover(recovery) => recovery.block.toi,
            Self::Locate { search, .. } => search.block.toi,
            Self::Choose { choice, .. } => choice.block.toi,
            Self::Read(read) => read.block.toi,
            Self::Settle { block, .. } => block.toi,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cancellation::CancellationToken;
    use crate::receive::into::ReceiveInto;
    use crate::receive::options::ReceiveOptions;
    use crate::receive::staging_root::StagingRoot;
    use crate::receive::target::{Target, TargetReport, TargetSetup};
    use crate::receive::worker::run_on_bytes;
    use crate::shared::unbounded;
    use fontana_fec::codes::raptorq::RaptorQ;
    use fontana_fec::{Esi, Progress, Work};
    use fontana_fec::{FecScheme, ObjectLayout, Oti, PlanCache, Sbn};
    use fontana_proto::{Opening, ReceiveJob, Recipe, SymbolBytes};
    use fontana_store::{
        Extents, FileIndex, ObjectEncoder, ObjectSource, Selection, SolvedStore, SourceFiles,
        StagingOptions, TargetDirectory,
    };
    use fontana_wire::{
        BlockHasher, Entry, FileEntry, Hash, Manifest, ManifestObject, Metadata, RelativePath, Toi,
    };
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

    fn work_on(list: Vec<BlockJob>) -> Vec<WorkerReport> {
        let ((jobs, queue), (reports, done)) = (unbounded(), unbounded());
        let (bytes_jobs, bytes_queue) = unbounded();
        jobs.send(JobList { list, session_packets: 1 }).ok().unwrap();
        drop(jobs);
        run(&queue, bytes_jobs, &reports);
        run_on_bytes(&bytes_queue, &reports, BUDGET);
        drop(reports);
        done.iter().collect()
    }

    /// The jobs that place symbols: source symbols in the file, repair symbols in the spool.
    fn placing(object: &Arc<OpenObject>, esis: &[Esi], symbols: &[u8]) -> Vec<BlockJob> {
        let mut slots = 0..;
        let job = |(&esi, symbol): (&Esi, &[u8])| {
            let to = match esi.0 {
                esi if esi < SOURCE_SYMBOLS => SymbolPlace::InPlace,
                _ => SymbolPlace::RepairSlot(slots.next().unwrap()),
            };
            let bytes = SymbolBytes::Saved(symbol.to_vec());
            let run = PlacedRun { block: BLOCK, first: esi, count: 1, to, bytes };
            BlockJob::Place { object: Arc::clone(object), run, slab: None }
        };
        esis.iter().zip(symbols.chunks(SYMBOL_SIZE)).map(job).collect()
    }

    fn recovering(object: &Arc<OpenObject>, esis: &[Esi]) -> BlockJob {
        recovering_but(object, esis, &[])
    }

    /// Recovers a block from these symbols, but no symbol that has `arrived` since.
    fn recovering_but(object: &Arc<OpenObject>, esis: &[Esi], arrived: &[Esi]) -> BlockJob {
        let mut decoder = layout().oti().scheme.decoder(SOURCE_SYMBOLS).unwrap();
        esis.iter().for_each(|&esi| _ = decoder.push(esi).unwrap());
        let Progress::Solved(plan) = decoder.solve(Work::UNBOUNDED) else { panic!("unsolved") };
        let repair = esis.iter().copied().filter(|esi| esi.0 >= SOURCE_SYMBOLS).collect();
        let recipe = Recipe::Plan(plan);
        let (object, arrived, prefix) = (Arc::clone(object), arrived.to_vec(), Box::default());
        BlockJob::Recover(Recovery { object, block: BLOCK, recipe, repair, arrived, prefix })
    }

    fn recovered(reports: &[WorkerReport]) -> Hash {
        match reports {
            [WorkerReport::Recovered { hash, .. }] => *hash,
            [WorkerReport::Failed { error, .. }, ..] => panic!("{error}"),
            _ => panic!("{} reports", reports.len()),
        }
    }

    /// One job that places all source symbols.
    fn placing_all(object: &Arc<OpenObject>, content: &[u8]) -> BlockJob {
        let (first, to) = (Esi(0), SymbolPlace::InPlace);
        let bytes = SymbolBytes::Saved(content.to_vec());
        let run = PlacedRun { block: BLOCK, first, count: SOURCE_SYMBOLS, to, bytes };
        BlockJob::Place { object: Arc::clone(object), run, slab: None }
    }

    #[test]
    fn a_block_that_arrives_in_order_is_not_read_again() {
        let directory = tempfile::tempdir().unwrap();
        let content = fontana_testing::noise(SOURCE_SYMBOLS as usize * SYMBOL_SIZE, 6);
        let object = open(&directory.path().join("into"), &content);
        let source: Vec<Esi> = (0..SOURCE_SYMBOLS).map(Esi).collect();
        let ((jobs, queue), (reports, done)) = (unbounded(), unbounded());
        let (bytes_jobs, bytes_queue) = unbounded();
        let list = vec![placing_all(&object, &content), recovering(&object, &source)];
        jobs.send(JobList { list, session_packets: 1 }).ok().unwrap();
        drop((jobs, bytes_queue));
        run(&queue, bytes_jobs, &reports);
        drop(reports);
        assert_eq!(recovered(&done.iter().collect::<Vec<_>>()), hash(&content));
    }

    #[test]
    fn a_symbol_that_is_replaced_after_it_was_hashed_makes_the_hash_wrong() {
        let directory = tempfile::tempdir().unwrap();
        let content = fontana_testing::noise(SOURCE_SYMBOLS as usize * SYMBOL_SIZE, 7);
        let object = open(&directory.path().join("into"), &content);
        let source: Vec<Esi> = (0..SOURCE_SYMBOLS).map(Esi).collect();
        let mut list = vec![placing_all(&object, &content)];
        list.extend(placing(&object, &[Esi(5)], &[9; SYMBOL_SIZE]));
        list.push(recovering(&object, &source));
        assert_ne!(recovered(&work_on(list)), hash(&content));
    }

    /// The decoder does not know of symbol 3, which arrived while it solved the block.
    #[test]
    fn a_symbol_that_arrives_while_its_block_is_solved_stays() {
        let directory = tempfile::tempdir().unwrap();
        let content = fontana_testing::noise(SOURCE_SYMBOLS as usize * SYMBOL_SIZE, 8);
        let object = open(&directory.path().join("into"), &content);
        let file = || std::fs::read(object.journal().unwrap().path().join("0")).unwrap();
        let esis: Vec<Esi> = (0..3).chain(5..SOURCE_SYMBOLS).chain(20..23).map(Esi).collect();
        let mut repair = symbols(directory.path(), &content, &esis[14..]);
        repair.iter_mut().for_each(|byte| *byte ^= 1);
        // Symbol 4 is lost. Its recovered bytes are wrong, because repair symbols are.
        let mut list = placing(&object, &[Esi(0), Esi(1), Esi(2), Esi(3)], &content[..256]);
        list.extend(placing(&object, &esis[3..14], &content[5 * SYMBOL_SIZE..]));
        list.extend(placing(&object, &esis[14..], &repair));
        list.push(recovering_but(&object, &esis, &[Esi(3)]));
        assert_ne!(recovered(&work_on(list)), hash(&content));
        assert_eq!(file()[..4 * SYMBOL_SIZE], content[..4 * SYMBOL_SIZE]);
        assert_ne!(file()[4 * SYMBOL_SIZE..5 * SYMBOL_SIZE], content[256..320]);
        // Symbol 4 arrives as well: nothing is recovered, or read again.
        let list =
            vec![placing_all(&object, &content), recovering_but(&object, &esis, &[Esi(3), Esi(4)])];
        assert_eq!(recovered(&work_on(list)), hash(&content));
        assert_eq!(file(), content);
    }

    /// Symbol 3 was found to be wrong, and was dropped.
    #[test]
    fn a_symbol_that_is_recovered_after_it_was_hashed_is_hashed_again() {
        let directory = tempfile::tempdir().unwrap();
        let content = fontana_testing::noise(SOURCE_SYMBOLS as usize * SYMBOL_SIZE, 8);
        let object = open(&directory.path().join("into"), &content);
        let esis: Vec<Esi> = (0..3).chain(4..SOURCE_SYMBOLS).chain(20..23).map(Esi).collect();
        let mut repair = symbols(directory.path(), &content, &esis[15..]);
        repair.iter_mut().for_each(|byte| *byte ^= 1);
        let mut list = vec![placing_all(&object, &content)];
        list.extend(placing(&object, &esis[15..], &repair));
        list.push(recovering(&object, &esis));
        assert_ne!(recovered(&work_on(list)), hash(&content));
        let file = std::fs::read(object.journal().unwrap().path().join("0")).unwrap();
        assert_ne!(hash(&file), hash(&content), "the recovered bytes are on the disk");
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
        let mut first = placing(&object, &esis, &forged);
        first.push(recovering(&object, &esis));
        assert_ne!(recovered(&work_on(first)), hash(&content));

        let mut again = vec![BlockJob::Settle {
            object: Arc::clone(&object),
            block: BLOCK,
            outcome: BlockOutcome::Corrupt,
        }];
        again.extend(placing(&object, &esis, &genuine));
        assert!(work_on(again).is_empty());
        object.journal().unwrap().sync().unwrap();
        assert_eq!(recovered(&work_on(vec![recovering(&object, &esis)])), hash(&content));
    }
}
