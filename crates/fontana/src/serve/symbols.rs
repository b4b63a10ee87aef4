//! Fresh symbols that clients share: encoded once for all who want them at about the same time.
//!
//! The symbols of a block are numbered (`docs/wire.md`, section 17) and computed in runs. A run
//! stays in a cache until others take its place. A client gets the first cached run of a block that
//! it has not got, so a client that is slower than others skips what is no longer cached. If there
//! is none, the next run is computed, for this client and for those that come.
//!
//! A run is computed for clients that are there when its turn comes: what waits for a worker ends
//! with its client. What a worker has begun goes on, and is for those that come.

use super::counters::Counters;
use crate::content::{BlockVerifier, ContentObject};
use crate::error::Error;
use crate::mirrored::MirroredContent;
use crate::shared::Lock;
use bytes::Bytes;
use fontana_fec::{Esi, FecScheme, PlanCache, Sbn};
use fontana_net::thread::catch;
use fontana_store::{ObjectEncoder, ObjectSource, SolvedStore};
use fontana_wire::{FreshFrame, FreshStart};
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, OnceLock};
use tokio::sync::{Mutex, Semaphore};

/// Symbols of a run, fewer if a block has fewer source symbols or they are large: as many as a
/// round of a shelf has of a block of four thousand.
const RUN_SYMBOLS: u32 = 64;
/// Most bytes of a run.
pub(super) const RUN_BYTES: usize = 256 << 10;
/// Plans that are kept: the blocks of an object have at most two lengths.
const PLANS: usize = 4;

/// Memory of a [`FreshSymbols`], in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct SymbolMemory {
    /// Encoded symbols.
    pub(super) runs: usize,
    /// Solved blocks, of which further symbols are computed.
    pub(super) solved: usize,
    /// Solving, for each worker.
    pub(super) worker: usize,
}

/// The fresh symbols of all objects.
pub(super) struct FreshSymbols {
    start: FreshStart,
    objects: BTreeMap<u32, FreshObject>,
    cache: Lock<RunCache>,
    solved: Lock<SolvedBlocks>,
    plans: Arc<PlanCache>,
    /// One for each run that may be computed at a time.
    pub(super) workers: Arc<Semaphore>,
    memory: SymbolMemory,
    counters: Arc<Counters>,
}

struct FreshObject {
    source: Arc<ObjectSource>,
    /// If its files were not read before.
    verifier: Option<Arc<BlockVerifier>>,
    /// Symbols of a run: a power of two, so that the numbers of all symbols are whole runs.
    run: u32,
}

/// A run of consecutive symbols of a block, as frames.
pub(super) struct FrameRun {
    /// The number of the first one.
    pub(super) first: u32,
    /// The frames, one after the other.
    pub(super) frames: Bytes,
    pub(super) frame_size: usize,
}

/// A block, or a run of it: object, block, number of the run.
type BlockKey = (u32, u32);
type RunKey = (u32, u32, u32);

impl FreshSymbols {
    /// The symbols of these objects. `None` if not all of them are of RaptorQ without sub-blocks:
    /// other codes have few repair symbols or none, and a client could not tell which.
    pub(super) fn new(
        content: &MirroredContent,
        start: FreshStart,
        memory: SymbolMemory,
        workers: usize,
        counters: Arc<Counters>,
    ) -> Option<Self> {
        let fresh = |object: &ContentObject| {
            let verifier = content.verifiers.get(&object.toi).cloned();
            let fresh = FreshObject::new(Arc::clone(&object.source), verifier)?;
            Some((u32::try_from(object.toi.0).ok()?, fresh))
        };
        let objects: BTreeMap<_, _> = content.objects.iter().map(fresh).collect::<Option<_>>()?;
        Some(Self {
            start,
            objects,
            cache: Lock::from(RunCache::new(memory.runs)),
            solved: Lock::default(),
            plans: Arc::new(PlanCache::new(PLANS)),
            workers: Arc::new(Semaphore::new(workers.max(1))),
            memory,
            counters,
        })
    }

    /// Where the symbols begin.
    pub(super) fn start(&self) -> FreshStart {
        self.start
    }

    /// Number of blocks of an object; `None` if there is no such object.
    pub(super) fn block_count(&self, toi: u32) -> Option<u32> {
        Some(self.objects.get(&toi)?.source.layout().block_count())
    }

    /// Bytes of a frame of an object.
    pub(super) fn frame_size(&self, toi: u32) -> Option<usize> {
        Some(self.objects.get(&toi)?.frame_size())
    }

    /// Whether a run with a symbol of this number, or a later one, is computed and cached.
    pub(super) fn has_cached(&self, toi: u32, sbn: u32, number: u32) -> bool {
        let Some(object) = self.objects.get(&toi) else { return false };
        self.cache.lock().is_computed((toi, sbn), number, object.run)
    }

    /// Whether a client may name this number: no symbol of the block with a number before it is
    /// left to be computed. One that names a later one has the numbers of another server.
    pub(super) fn has_reached(&self, toi: u32, sbn: u32, number: u32) -> bool {
        number <= self.cache.lock().end((toi, sbn))
    }

    /// A run with the symbol of this number, or with later ones if one is cached.
    ///
    /// # Errors
    /// A file cannot be read, or has changed.
    pub(super) async fn run(
        self: &Arc<Self>,
        toi: u32,
        sbn: u32,
        number: u32,
    ) -> Result<FrameRun, Arc<Error>> {
        let no_object = || Error::system("find an object")(io::ErrorKind::NotFound.into());
        let object = self.objects.get(&toi).ok_or_else(|| Arc::new(no_object()))?;
        let (run, frame_size) = (object.run, object.frame_size());
        let size = run as usize * frame_size;
        let (key, cell) = self.cache.lock().take((toi, sbn), number, run, size);
        let frames = match cell.frames.get() {
            Some(frames) => frames.clone(),
            None => self.encode_when_free(key, cell).await?,
        };
        Ok(FrameRun { first: key.2 * run, frames, frame_size })
    }

    /// Computes a run on a thread that may block, one for each worker at a time, unless another
    /// client has it computed meanwhile.
    async fn encode_when_free(
        self: &Arc<Self>,
        key: RunKey,
        cell: Arc<RunCell>,
    ) -> Result<Bytes, Arc<Error>> {
        // Both are held until the run is computed, also if the client goes.
        let turn = Arc::clone(&cell.turn).lock_owned().await;
        if let Some(frames) = cell.frames.get() {
            return Ok(frames.clone());
        }
        // The semaphore is never closed.
        let permit = Arc::clone(&self.workers).acquire_owned().await.ok();
        let own = Arc::clone(self);
        let encode = move || {
            let result = catch(|| own.encode(key));
            let result = result.unwrap_or_else(|panic| Err(panic.into()));
            if let Ok(frames) = &result {
                let _ = cell.frames.set(frames.clone());
            }
            drop((permit, turn));
            result
        };
        let result = tokio::task::spawn_blocking(encode).await;
        let result = result.unwrap_or_else(|error| {
            Err(Error::system("wait for symbols")(io::Error::other(error)))
        });
        result.map_err(|error| {
            let error = Arc::new(error);
            self.counters.fail(Arc::clone(&error));
            error
        })
    }

    fn encode(&self, (toi, sbn, number): RunKey) -> Result<Bytes, Error> {
        let Some(object) = self.objects.get(&toi) else { return Ok(Bytes::new()) };
        let block = self.solved_block((toi, sbn), object);
        let first = number * object.run;
        let esis: Vec<Esi> =
            (first..first + object.run).map(|number| self.start.esi(number)).collect();
        let size = object.frame_size() - FreshFrame::ID_SIZE;
        let mut symbols = vec![0; esis.len() * size];
        let sbn = Sbn(sbn);
        if let Some(verifier) = &object.verifier {
            verifier.check_once(sbn)?;
        }
        if let Some(deviations) =
            block.encoder.encode(sbn, &esis, self.memory.worker, &mut symbols)?
        {
            return Err(object.source.changed(&deviations).into());
        }
        let mut frames = Vec::with_capacity(esis.len() * object.frame_size());
        for (esi, symbol) in esis.iter().zip(symbols.chunks_exact(size)) {
            frames.extend_from_slice(&FreshFrame::id(sbn, *esi));
            frames.extend_from_slice(symbol);
        }
        Counters::add(&self.counters.encoded, esis.len() as u64);
        self.solved.lock().shrink(self.memory.solved, (toi, sbn.0));
        Ok(frames.into())
    }

    /// The encoder of a block, which keeps the solved block.
    fn solved_block(&self, key: BlockKey, object: &FreshObject) -> Arc<SolvedBlock> {
        self.solved.lock().block(key, || {
            let store = SolvedStore::new(self.memory.solved);
            let (source, plans) = (Arc::clone(&object.source), Arc::clone(&self.plans));
            SolvedBlock { encoder: ObjectEncoder::new(source, plans, Arc::clone(&store)), store }
        })
    }
}

impl FreshObject {
    fn new(source: Arc<ObjectSource>, verifier: Option<Arc<BlockVerifier>>) -> Option<Self> {
        let layout = source.layout();
        let oti = layout.oti();
        let FecScheme::RaptorQ(code) = oti.scheme else { return None };
        let k = layout.source_symbols(Sbn(0)).filter(|_| code.sub_blocks == 1)?;
        let fits = (RUN_BYTES / usize::from(oti.symbol_size).max(1)).max(1);
        let run = k.next_power_of_two().min(RUN_SYMBOLS).min(1 << fits.ilog2());
        Some(Self { source, verifier, run })
    }

    fn frame_size(&self) -> usize {
        FreshFrame::ID_SIZE + usize::from(self.source.layout().oti().symbol_size)
    }
}

/// Runs that are computed, or being computed.
struct RunCache {
    limit: usize,
    bytes: usize,
    runs: BTreeMap<RunKey, CachedRun>,
    /// The keys by their last use.
    by_use: BTreeMap<u64, RunKey>,
    uses: u64,
    /// Of each block, the number after the last one that was computed.
    ends: BTreeMap<BlockKey, u32>,
}

struct CachedRun {
    cell: Arc<RunCell>,
    size: usize,
    used: u64,
}

/// The frames of a run.
#[derive(Default)]
struct RunCell {
    frames: OnceLock<Bytes>,
    /// Held by the client for which they are computed.
    turn: Arc<Mutex<()>>,
}

impl RunCache {
    fn new(limit: usize) -> Self {
        let (runs, by_use, ends) = Default::default();
        Self { limit, bytes: 0, runs, by_use, uses: 0, ends }
    }

    /// The number after the last symbol of a block that was computed.
    fn end(&self, block: BlockKey) -> u32 {
        self.ends.get(&block).copied().unwrap_or(0)
    }

    /// The run to begin with for a symbol of this number, which is not above the end.
    fn wanted(&self, block: BlockKey, number: u32, run: u32) -> u32 {
        number.min(self.end(block)) % FreshStart::SYMBOLS / run
    }

    /// Whether the first cached run of a block with a symbol of this number is computed.
    fn is_computed(&self, block: BlockKey, number: u32, run: u32) -> bool {
        let found = self.find(block, number, run).and_then(|key| self.runs.get(&key));
        found.is_some_and(|run| run.cell.frames.get().is_some())
    }

    /// The first cached run of a block with a symbol of this number or a later one.
    fn find(&self, block: BlockKey, number: u32, run: u32) -> Option<RunKey> {
        let first = (block.0, block.1, self.wanted(block, number, run));
        self.runs.range(first..=(block.0, block.1, u32::MAX)).next().map(|(&key, _)| key)
    }

    /// That run, or a new one, and where its frames are or will be.
    fn take(
        &mut self,
        block: BlockKey,
        number: u32,
        run: u32,
        size: usize,
    ) -> (RunKey, Arc<RunCell>) {
        self.uses += 1;
        let found = self.find(block, number, run);
        let key = found.unwrap_or((block.0, block.1, self.wanted(block, number, run)));
        if found.is_none() {
            self.make_room(size);
            self.bytes += size;
            let end = self.ends.entry(block).or_default();
            *end = (*end).max((key.2 + 1) * run);
        }
        let used = self.uses;
        let entry =
            self.runs.entry(key).or_insert_with(|| CachedRun { cell: Arc::default(), size, used });
        self.by_use.remove(&entry.used);
        entry.used = used;
        let cell = Arc::clone(&entry.cell);
        self.by_use.insert(used, key);
        (key, cell)
    }

    /// Drops the runs whose last use is the longest ago.
    fn make_room(&mut self, size: usize) {
        while self.bytes + size > self.limit
            && let Some((_, key)) = self.by_use.pop_first()
        {
            if let Some(run) = self.runs.remove(&key) {
                self.bytes -= run.size;
            }
        }
    }
}

/// The blocks that are solved, each in a store of its own, so that each can be dropped.
#[derive(Default)]
struct SolvedBlocks {
    blocks: BTreeMap<BlockKey, (Arc<SolvedBlock>, u64)>,
    uses: u64,
}

struct SolvedBlock {
    encoder: ObjectEncoder,
    store: Arc<SolvedStore>,
}

impl SolvedBlocks {
    fn block(&mut self, key: BlockKey, make: impl FnOnce() -> SolvedBlock) -> Arc<SolvedBlock> {
        self.uses += 1;
        let entry = self.blocks.entry(key).or_insert_with(|| (Arc::new(make()), 0));
        entry.1 = self.uses;
        Arc::clone(&entry.0)
    }

    /// Drops the blocks whose last use is the longest ago, but not `present`.
    fn shrink(&mut self, limit: usize, present: BlockKey) {
        let used = |blocks: &BTreeMap<_, (Arc<SolvedBlock>, _)>| -> usize {
            blocks.values().map(|(block, _)| block.store.used()).sum()
        };
        while used(&self.blocks) > limit {
            let others = self.blocks.iter().filter(|(key, _)| **key != present);
            let Some((&oldest, _)) = others.min_by_key(|(_, (_, used))| *used) else { return };
            self.blocks.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: BlockKey = (1, 0);

    /// The number of the run that a client gets which wants symbols from `number` on.
    fn taken(cache: &mut RunCache, number: u32) -> u32 {
        cache.take(BLOCK, number, 64, 100).0.2
    }

    #[test]
    fn clients_share_runs_and_slow_ones_skip() {
        let mut cache = RunCache::new(250);
        assert_eq!([0, 0, 64, 64].map(|number| taken(&mut cache, number)), [0, 0, 1, 1]);
        assert_eq!(taken(&mut cache, 128), 2);
        // Two runs are cached: a client that is still at the first one goes on with the second.
        assert_eq!(cache.bytes, 200);
        assert_eq!(taken(&mut cache, 0), 1);
        assert_eq!(taken(&mut cache, 70), 1);
        let other = cache.take((1, 1), 0, 64, 100).0;
        assert_eq!(other, (1, 1, 0));
    }

    #[test]
    fn a_client_does_not_move_the_numbers_of_others() {
        let mut cache = RunCache::new(10_000);
        assert_eq!(cache.end(BLOCK), 0);
        assert_eq!([0, 0].map(|number| taken(&mut cache, number)), [0, 0]);
        assert_eq!(cache.end(BLOCK), 64);
        assert_eq!(taken(&mut cache, 64), 1);
        assert_eq!(taken(&mut cache, 0), 0);
        // After the last number comes the first one.
        cache.ends.insert(BLOCK, FreshStart::SYMBOLS);
        assert_eq!(taken(&mut cache, FreshStart::SYMBOLS), 0);
    }

    /// The symbols of blocks of 256 KiB, with one worker.
    fn symbols(blocks: usize) -> (tempfile::TempDir, Arc<FreshSymbols>) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, fontana_testing::noise(blocks << 18, 1)).unwrap();
        let content = crate::MirroredContent::describe(&[path], 256 << 10, 1).unwrap();
        let memory = SymbolMemory { runs: 64 << 20, solved: 64 << 20, worker: 64 << 20 };
        let (start, counters) = (FreshStart::draw(7), Arc::default());
        let symbols = FreshSymbols::new(&content, start, memory, 1, counters).unwrap();
        assert_eq!(symbols.block_count(1), Some(blocks as u32));
        (directory, Arc::new(symbols))
    }

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap()
    }

    #[test]
    fn nothing_is_computed_for_clients_that_have_gone_before_their_turn() {
        let (_directory, symbols) = symbols(4);
        runtime().block_on(async {
            // The only worker is busy.
            let busy = Arc::clone(&symbols.workers).acquire_owned().await.unwrap();
            let wait = |sbn| {
                let symbols = Arc::clone(&symbols);
                tokio::spawn(async move { symbols.run(1, sbn, 0).await.map(drop) })
            };
            let gone: Vec<_> = (0..40).map(|number| wait(number % 4)).collect();
            let stays = [wait(2), wait(2)];
            tokio::task::yield_now().await;
            for client in gone {
                client.abort();
                assert!(client.await.unwrap_err().is_cancelled());
            }
            drop(busy);
            for client in stays {
                client.await.unwrap().unwrap();
            }
            // One run, for both that have stayed.
            assert_eq!(symbols.counters.progress().encoded_symbols, 64);
        });
    }

    #[test]
    fn what_a_worker_has_begun_is_for_those_that_come() {
        let (_directory, symbols) = symbols(1);
        runtime().block_on(async {
            for _ in 0..3 {
                // It begins, and the client goes.
                tokio::select! {
                    biased;
                    _ = symbols.run(1, 0, 0) => {}
                    () = std::future::ready(()) => {}
                }
                let is_free = symbols.workers.available_permits() == 1;
                assert!(!is_free || symbols.counters.progress().encoded_symbols > 0, "it works");
            }
            symbols.run(1, 0, 0).await.unwrap();
            assert_eq!(symbols.counters.progress().encoded_symbols, 64);
            assert_eq!(symbols.workers.available_permits(), 1);
        });
    }

    #[test]
    fn the_memory_of_the_cache_is_bounded() {
        let mut cache = RunCache::new(1_000);
        for number in 0..100 {
            taken(&mut cache, number * 64);
            assert!(cache.bytes <= 1_000);
            assert_eq!(cache.bytes, cache.runs.len() * 100);
            assert_eq!(cache.runs.len(), cache.by_use.len());
        }
    }
}
