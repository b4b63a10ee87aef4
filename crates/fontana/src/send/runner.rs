//! The jobs of a sender: workers read and encode.

use super::prepared::{PreparedSymbols, Spacing};
use crate::content::{BlockVerifier, Content};
use crate::error::Error;
use crossbeam_channel::{Receiver, Sender as ChannelSender};
use fontana_fec::{Esi, PlanCache, Sbn};
use fontana_net::Bell;
use fontana_proto::{
    BatchId, BlockId, DatagramBatch, Finished, Instant, JobRunner, SendDone, SendJob,
};
use fontana_store::{ObjectEncoder, SolvedStore};
use fontana_wire::Toi;
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

    /// Writes symbols of a block into `memory`.
    fn encode(
        &self,
        sbn: Sbn,
        esis: &[Esi],
        worker_bytes: usize,
        spacing: Spacing,
        memory: &mut [u8],
    ) -> Result<(), Error> {
        // Reading and encoding write symbols that follow each other.
        let (start, end) = (esis.len() * spacing.header, esis.len() * spacing.stride());
        let symbols = memory.get_mut(start..end).unwrap_or_default();
        let deviations = self.encoder.encode(sbn, esis, worker_bytes, symbols)?;
        if let Some(verifier) = &self.verifier {
            verifier.verify(sbn, deviations)?;
        }
        spacing.spread(esis.len(), memory);
        Ok(())
    }
}

/// The result of an [`EncodeJob`].
pub(super) struct Encoded {
    batch: BatchId,
    toi: Toi,
    /// The symbols of the batch.
    memory: Vec<u8>,
    spacing: Spacing,
    result: Result<(), Error>,
}

/// A thread that reads and encodes.
pub(super) struct Worker {
    pub(super) jobs: Receiver<EncodeJob>,
    pub(super) finished: ChannelSender<Encoded>,
    /// Wakes the pacing thread if it waits for a batch.
    pub(super) bell: Bell,
    /// Memory of an encoding in bytes.
    pub(super) bytes: usize,
}

impl Worker {
    /// Encodes batches until the queue is closed.
    pub(super) fn run(self) {
        crate::system::give_way();
        let Self { jobs, finished, bell, bytes } = self;
        for EncodeJob { batch, block, esis, object, mut memory, spacing } in jobs {
            let result = object.encode(block.sbn, &esis, bytes, spacing, &mut memory);
            let toi = block.toi;
            if finished.send(Encoded { batch, toi, memory, spacing, result }).is_err() {
                return;
            }
            bell.ring();
        }
    }
}

/// Hands the jobs of a sender to workers, and holds the symbols of batches until they are released.
pub(super) struct SendRunner {
    pub(super) prepared: PreparedSymbols,
    encoders: BTreeMap<Toi, SentObject>,
    queue: ChannelSender<EncodeJob>,
    failed: BTreeSet<Toi>,
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
                    // Workers run until this end of their queue is dropped.
                    let job = EncodeJob { batch, block, esis, object, memory, spacing };
                    let _ = self.queue.send(job);
                }
            }
            SendJob::Release { batch } => self.prepared.release(batch),
        }
        Ok(None)
    }
}

impl SendRunner {
    /// At most `spare_bytes` bytes are held for batches to come.
    pub(super) fn new(
        encoders: BTreeMap<Toi, SentObject>,
        queue: ChannelSender<EncodeJob>,
        spare_bytes: usize,
    ) -> Self {
        let (failed, failures) = Default::default();
        let prepared = PreparedSymbols::new(spare_bytes);
        Self { prepared, encoders, queue, failed, failures }
    }

    /// Adds the encoders of further objects.
    pub(super) fn add(&mut self, encoders: Vec<(Toi, SentObject)>) {
        self.encoders.extend(encoders);
    }

    /// Stores the symbols of a batch. Returns the answer for the sender.
    pub(super) fn finish(&mut self, encoded: Encoded) -> SendDone {
        let Encoded { batch, toi, memory, spacing, result } = encoded;
        match result {
            Ok(()) => {
                self.prepared.store(batch, memory, spacing);
                SendDone::Prepared { batch }
            }
            Err(error) => {
                let error = Arc::new(error);
                let failed = SendDone::Failed { batch, error: Error::of_job(&error) };
                // One error for each object: later ones are its consequences.
                if self.failed.insert(toi) {
                    self.failures.push(error);
                }
                failed
            }
        }
    }

    /// The first failure of each object that was given up.
    pub(super) fn failures(&self) -> &[Arc<Error>] {
        &self.failures
    }

    /// Whether there are objects, and all were given up.
    pub(super) fn all_failed(&self) -> bool {
        !self.encoders.is_empty() && self.failed.len() == self.encoders.len()
    }
}
