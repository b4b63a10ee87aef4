//! The jobs of a sender: workers read and encode.

use super::ahead::{CheckAhead, CheckedBlock, SolveAhead, SpareJob};
use super::answers::Keys;
use super::digests::of_symbols;
use super::pacing::SendingRunner;
use super::prepared::{PreparedSymbols, Spacing};
use crate::content::{BlockVerifier, Content};
use crate::error::Error;
use crate::shared::Sender as ChannelSender;
use crossbeam_channel::{Receiver, select_biased};
use fontana_fec::{Esi, PlanCache, Sbn};
use fontana_net::thread::catch;
use fontana_net::{Bell, PanicError};
use fontana_proto::{
    BatchId, BlockId, DatagramBatch, Finished, Instant, JobRunner, SendDone, SendJob,
};
use fontana_store::{ObjectEncoder, SolvedStore};
use fontana_wire::{SymbolDigest, Toi};
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::Arc;

/// The plans and the solved blocks that all encoders of a session share.
#[derive(Clone)]
pub(super) struct EncoderPool {
    plans: Arc<PlanCache>,
    solved: Arc<SolvedStore>,
}

impl EncoderPool {
    pub(super) fn new(solved: Arc<SolvedStore>) -> Self {
        Self { plans: Arc::new(PlanCache::new(4)), solved }
    }

    /// An encoder for each object of `content`.
    pub(super) fn encoders(&self, content: &Content) -> Vec<(Toi, SentObject)> {
        let objects = content.objects.iter().map(|object| {
            let source = Arc::clone(&object.source);
            let encoder =
                ObjectEncoder::new(source, Arc::clone(&self.plans), Arc::clone(&self.solved));
            let verifier = content.verifiers.get(&object.toi).cloned();
            (object.toi, SentObject { encoder: Arc::new(encoder), verifier })
        });
        objects.collect()
    }
}

/// A batch to be encoded.
pub(super) struct EncodeJob {
    batch: BatchId,
    block: BlockId,
    esis: Vec<Esi>,
    object: SentObject,
    /// Memory for the symbols.
    memory: Vec<u8>,
    spacing: Spacing,
    makes_digests: bool,
}

impl EncodeJob {
    /// Encodes the batch. That takes at most `budget` bytes.
    fn run(self, budget: usize) -> Encoded {
        let Self { batch, block, esis, object, mut memory, spacing, makes_digests } = self;
        let mut digests = None;
        let show = |symbols: &[u8]| {
            let size = spacing.symbol;
            digests = makes_digests.then(|| of_symbols(block, &esis, symbols, size));
        };
        let result = object.encode(block.sbn, &esis, budget, spacing, &mut memory, show);
        let result = result.map(|()| digests);
        Encoded { batch, block, memory, spacing, result }
    }
}

/// The encoder of an object, and the verifier of its blocks if its files may be written to.
#[derive(Clone)]
pub(super) struct SentObject {
    encoder: Arc<ObjectEncoder>,
    verifier: Option<Arc<BlockVerifier>>,
}

impl SentObject {
    /// The spacing of symbols after headers of `header_size` bytes.
    fn spacing(&self, header_size: u16) -> Spacing {
        let symbol = self.encoder.source().layout().oti().symbol_size;
        Spacing { header: header_size.into(), symbol: symbol.into() }
    }

    /// Whether a block that fails takes no other with it: the object consists of several files.
    fn loses_blocks_alone(&self) -> bool {
        let extents = self.encoder.source().extents().as_slice();
        extents.first().zip(extents.last()).is_some_and(|(first, last)| first.file != last.file)
    }

    /// Number of source symbols among those of a block.
    fn source_symbols_among(&self, sbn: Sbn, esis: &[Esi]) -> u64 {
        let k = self.encoder.source().layout().source_symbols(sbn).unwrap_or(0);
        esis.iter().filter(|esi| esi.0 < k).count() as u64
    }

    /// Writes symbols of a block into `memory`. Before they are spread there, `show` gets them, one
    /// after the other, while they are in the cache.
    fn encode(
        &self,
        sbn: Sbn,
        esis: &[Esi],
        worker_bytes: usize,
        spacing: Spacing,
        memory: &mut [u8],
        show: impl FnOnce(&[u8]),
    ) -> Result<(), Error> {
        // Reading and encoding write symbols that follow each other.
        let (start, end) = (esis.len() * spacing.header, esis.len() * spacing.stride());
        let symbols = memory.get_mut(start..end).unwrap_or_default();
        let deviations = self.encoder.encode(sbn, esis, worker_bytes, symbols)?;
        if let Some(verifier) = &self.verifier {
            verifier.verify(sbn, deviations)?;
        }
        show(symbols);
        spacing.spread(esis.len(), memory);
        Ok(())
    }
}

/// The result of an [`EncodeJob`].
pub(super) struct Encoded {
    batch: BatchId,
    block: BlockId,
    /// The symbols of the batch.
    memory: Vec<u8>,
    spacing: Spacing,
    /// The digests of the symbols, if the sender announces them.
    result: Result<Option<Vec<SymbolDigest>>, Error>,
}

/// What a worker has done.
pub(super) enum Worked {
    Encoded(Encoded),
    Checked(CheckedBlock),
}

/// A thread that reads and encodes.
pub(super) struct Worker {
    pub(super) jobs: Receiver<EncodeJob>,
    /// What is done while there is no job.
    pub(super) spare: Receiver<SpareJob>,
    pub(super) finished: ChannelSender<Result<Worked, PanicError>>,
    /// Wakes the pacing thread if it waits for a batch.
    pub(super) bell: Bell,
    /// Memory of an encoding in bytes.
    pub(super) bytes: usize,
}

impl Worker {
    /// Encodes batches until the queue is closed. Reports a panic.
    pub(super) fn run(self) {
        crate::system::give_way();
        if let Err(panic) = catch(|| self.encode_all()) {
            let _ = self.finished.send(Err(panic));
            self.bell.ring();
        }
    }

    /// Encodes a batch. False if no thread waits for it.
    fn encode(&self, job: EncodeJob) -> bool {
        self.hand_over(Worked::Encoded(job.run(self.bytes)))
    }

    fn hand_over(&self, worked: Worked) -> bool {
        let is_wanted = self.finished.send(Ok(worked)).is_ok();
        if is_wanted {
            self.bell.ring();
        }
        is_wanted
    }

    fn encode_all(&self) {
        loop {
            select_biased! {
                recv(self.jobs) -> job => {
                    if !job.is_ok_and(|job| self.encode(job)) {
                        return;
                    }
                },
                // Both queues are closed together.
                recv(self.spare) -> job => match job {
                    Ok(SpareJob::Solve(block)) => block.solve(self.bytes),
                    Ok(SpareJob::Check(block)) => {
                        self.hand_over(Worked::Checked(block.check()));
                    }
                    Err(_) => {}
                },
            }
        }
    }
}

/// The queues of the workers.
pub(super) struct WorkerQueues {
    pub(super) jobs: ChannelSender<EncodeJob>,
    /// What is done while there is no job.
    pub(super) spare: ChannelSender<SpareJob>,
}

/// Hands the jobs of a sender to workers, and holds the symbols of batches until they are released.
pub(super) struct SendRunner {
    pub(super) prepared: PreparedSymbols,
    encoders: BTreeMap<Toi, SentObject>,
    queues: WorkerQueues,
    ahead: SolveAhead,
    checks: CheckAhead,
    makes_digests: bool,
    pub(super) keys: Keys,
    /// Blocks that were given up, by their objects, and objects all of whose blocks were.
    failed: BTreeMap<Toi, BTreeSet<Sbn>>,
    objects_failed: usize,
    /// Those of the failures.
    messages: BTreeSet<String>,
    failures: Vec<Arc<Error>>,
}

impl JobRunner<SendJob> for SendRunner {
    type Done = SendDone;
    type Error = Infallible;

    fn run(
        &mut self,
        _now: Instant,
        job: SendJob,
        _batch: &DatagramBatch<'_>,
    ) -> Result<Option<Finished<SendDone>>, Infallible> {
        match job {
            SendJob::Prepare { batch, block, esis, header_size } => {
                if let Some(object) = self.encoders.get(&block.toi).cloned() {
                    let spacing = object.spacing(header_size);
                    let memory = self.prepared.request(batch, esis.len() * spacing.stride());
                    let source_symbols = object.source_symbols_among(block.sbn, &esis);
                    let symbols = esis.len() as u64;
                    // Workers run until these ends of their queues are dropped.
                    let makes_digests = self.makes_digests;
                    let job =
                        EncodeJob { batch, block, esis, object, memory, spacing, makes_digests };
                    let _ = self.queues.jobs.send(job);
                    for block in self.checks.advance(symbols) {
                        let _ = self.queues.spare.send(SpareJob::Check(block));
                    }
                    for block in self.ahead.advance(source_symbols) {
                        let _ = self.queues.spare.send(SpareJob::Solve(block));
                    }
                }
            }
            SendJob::Release { batch } => self.prepared.release(batch),
            SendJob::ExpectRepair => {
                for block in self.ahead.begin() {
                    let _ = self.queues.spare.send(SpareJob::Solve(block));
                }
            }
            SendJob::Sign(_) | SendJob::Open { .. } => {
                return Ok(self.keys.run(job).map(Finished::now));
            }
        }
        Ok(None)
    }
}

impl SendingRunner for SendRunner {
    fn prepared(&mut self) -> &mut PreparedSymbols {
        &mut self.prepared
    }

    fn keys(&mut self) -> &mut Keys {
        &mut self.keys
    }
}

impl SendRunner {
    /// At most `spare_bytes` bytes are held for batches to come. Blocks are solved while the last
    /// `solving_window` source symbols are prepared.
    pub(super) fn new(
        encoders: BTreeMap<Toi, SentObject>,
        queues: WorkerQueues,
        spare_bytes: usize,
        solving_window: u64,
    ) -> Self {
        let (failed, objects_failed, messages, failures) = Default::default();
        let prepared = PreparedSymbols::new(spare_bytes);
        let ahead = encoders.values().map(|object| &object.encoder);
        let ahead = SolveAhead::new(ahead, solving_window);
        let symbols = |object: &SentObject| object.encoder.source().layout().total_source_symbols();
        let verifiers =
            encoders.iter().filter_map(|(toi, object)| Some((*toi, object.verifier.as_ref()?)));
        let checks = CheckAhead::new(verifiers, encoders.values().map(symbols).sum());
        let (makes_digests, keys) = (false, Keys::default());
        Self {
            prepared,
            encoders,
            queues,
            ahead,
            checks,
            makes_digests,
            keys,
            failed,
            objects_failed,
            messages,
            failures,
        }
    }

    /// The runner of a sender that announces its symbols, or does not.
    pub(super) fn making_digests(self, makes_digests: bool) -> Self {
        Self { makes_digests, ..self }
    }

    /// The runner of a sender that repairs on demand, or does not: it solves no block ahead before
    /// [`SendJob::ExpectRepair`].
    pub(super) fn solving_on_losses(mut self, is_on_demand: bool) -> Self {
        if is_on_demand {
            self.ahead = self.ahead.on_losses();
        }
        self
    }

    /// Adds the encoders of further objects.
    pub(super) fn add(&mut self, encoders: Vec<(Toi, SentObject)>) {
        self.encoders.extend(encoders);
    }

    /// Takes what a worker has done. Returns the answer for the sender, if it waits for one.
    pub(super) fn finish(&mut self, worked: Worked) -> Option<SendDone> {
        match worked {
            Worked::Encoded(encoded) => Some(self.store(encoded)),
            // The next symbols of the object cannot be prepared, and the sender then gives it up.
            Worked::Checked(block) => {
                self.checks.finish();
                if let Err(error) = block.result {
                    self.fail(block.toi, None, Arc::new(error.into()));
                }
                None
            }
        }
    }

    /// Stores the symbols of a batch.
    fn store(&mut self, encoded: Encoded) -> SendDone {
        let Encoded { batch, block, memory, spacing, result } = encoded;
        match result {
            Ok(digests) => {
                self.prepared.store(batch, memory, spacing);
                match digests {
                    None => SendDone::Prepared { batch },
                    Some(digests) => SendDone::Digested { batch, digests },
                }
            }
            Err(error) => {
                let error = Arc::new(error);
                let object = self.encoders.get(&block.toi);
                let is_alone = object.is_some_and(SentObject::loses_blocks_alone);
                let failed = SendDone::Failed { batch, is_alone, error: Error::of_job(&error) };
                self.fail(block.toi, is_alone.then_some(block.sbn), error);
                failed
            }
        }
    }

    /// An object is given up, or a block of it. Collects one error for each: later ones are its
    /// consequences. A file in two blocks is one error.
    fn fail(&mut self, toi: Toi, alone: Option<Sbn>, error: Arc<Error>) {
        let Some(object) = self.encoders.get(&toi) else { return };
        let all = object.encoder.source().layout().block_count();
        let blocks = self.failed.entry(toi).or_default();
        let before = blocks.len();
        match alone {
            Some(sbn) => _ = blocks.insert(sbn),
            None => blocks.extend((0..all).map(Sbn)),
        }
        let is_new = blocks.len() > before;
        self.objects_failed += usize::from(is_new && blocks.len() == all as usize);
        if is_new && self.messages.insert(error.to_string()) {
            self.failures.push(error);
        }
    }

    /// Whether no block is left to be compared of those whose turn has come: a block of each share
    /// of the symbols that were prepared.
    pub(super) fn is_checked(&self) -> bool {
        self.checks.is_idle()
    }

    /// The first failure of each object, or block, that was given up.
    pub(super) fn failures(&self) -> &[Arc<Error>] {
        &self.failures
    }

    /// Whether there are objects, and all were given up.
    pub(super) fn all_failed(&self) -> bool {
        !self.encoders.is_empty() && self.objects_failed == self.encoders.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::counter::{BATCH, per_gigabyte, uses_during};
    use crate::shared::unbounded;
    use fontana_fec::codes::raptorq::RaptorQ;
    use fontana_fec::{FecScheme, Oti};
    use fontana_net::Alarm;
    use fontana_store::{Extents, ObjectSource, SourceFiles};

    const SYMBOL_SIZE: u16 = 1280;
    const SYMBOLS: u32 = 6_400;

    /// What a sender does for each batch, of source symbols and of repair symbols.
    #[test]
    fn a_batch_takes_few_messages_and_locks() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let transfer_length = u64::from(SYMBOLS) * u64::from(SYMBOL_SIZE);
        std::fs::write(&path, vec![7; transfer_length as usize]).unwrap();
        let mut files = SourceFiles::default();
        let extents = Extents::whole_file(files.add(&path).unwrap(), transfer_length);
        let scheme = FecScheme::RaptorQ(RaptorQ { source_blocks: 1, sub_blocks: 1, alignment: 4 });
        let layout = Oti { transfer_length, symbol_size: SYMBOL_SIZE, scheme }.layout().unwrap();
        let source = Arc::new(ObjectSource::new(Arc::new(files), layout, extents).unwrap());
        let pool = EncoderPool::new(SolvedStore::new(64 << 20));
        let encoder = ObjectEncoder::new(source, pool.plans, pool.solved);
        let object = SentObject { encoder: Arc::new(encoder), verifier: None };

        let (toi, sbn) = (Toi(1), Sbn(0));
        let ((jobs, job_queue), (spare, spare_queue)) = (unbounded(), unbounded());
        let (finished, encoded) = unbounded();
        let bell = Alarm::for_this_thread().bell();
        let worker =
            Worker { jobs: job_queue, spare: spare_queue, finished, bell, bytes: 64 << 20 };
        let queues = WorkerQueues { jobs, spare };
        let mut runner = SendRunner::new([(toi, object)].into(), queues, 1 << 20, 0);
        for start in [0, SYMBOLS] {
            let uses = uses_during(|| {
                for first in (start..start + SYMBOLS).step_by(BATCH) {
                    let end = (first + BATCH as u32).min(start + SYMBOLS);
                    let (batch, block) = (BatchId(first.into()), BlockId { toi, sbn });
                    let esis = (first..end).map(Esi).collect();
                    let prepare = SendJob::Prepare { batch, block, esis, header_size: 30 };
                    for job in [prepare, SendJob::Release { batch }] {
                        runner.run(Instant::ZERO, job, &DatagramBatch::EMPTY).unwrap();
                        if let Ok(job) = worker.jobs.try_recv() {
                            assert!(worker.encode(job));
                            runner.finish(encoded.try_recv().unwrap().unwrap()).unwrap();
                        }
                    }
                }
            });
            // One to a worker, and one back.
            let most = 2 * per_gigabyte(u64::from(SYMBOLS).div_ceil(BATCH as u64), transfer_length);
            let uses = per_gigabyte(uses, transfer_length);
            assert!((1..=most).contains(&uses), "{uses} of {most} for each gigabyte");
        }
    }
}
