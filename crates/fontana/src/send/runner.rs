//! The jobs of a sender: workers read and encode.

use crate::content::{BlockVerifier, Content};
use crate::error::Error;
use crossbeam_channel::{Receiver, Sender as ChannelSender};
use fontana_fec::{Esi, PlanCache, Sbn};
use fontana_net::Bell;
use fontana_proto::{
    BatchId, BlockId, DatagramBatch, Finished, Instant, JobRunner, SendDone, SendJob, SymbolId,
};
use fontana_store::{Allowance, ObjectEncoder};
use fontana_wire::Toi;
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::Arc;

/// The plans and the memory that all encoders of a session share.
#[derive(Clone)]
pub(super) struct EncoderPool {
    plans: Arc<PlanCache>,
    kept: Arc<Allowance>,
}

impl EncoderPool {
    pub(super) fn new(kept_bytes: usize) -> Self {
        Self { plans: Arc::new(PlanCache::new(4)), kept: Allowance::new(kept_bytes) }
    }

    /// An encoder for each object of `content`.
    pub(super) fn encoders(&self, content: &Content) -> Vec<(Toi, SentObject)> {
        let objects = content.objects.iter().map(|object| {
            let source = Arc::clone(&object.source);
            let encoder =
                ObjectEncoder::new(source, Arc::clone(&self.plans), Arc::clone(&self.kept));
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
}

/// The encoder of an object, and the verifier of its blocks if its files may be written to.
#[derive(Clone)]
pub(super) struct SentObject {
    encoder: Arc<ObjectEncoder>,
    verifier: Option<Arc<BlockVerifier>>,
}

impl SentObject {
    /// The symbols of a block, concatenated.
    fn encode(&self, sbn: Sbn, esis: &[Esi], worker_bytes: usize) -> Result<Vec<u8>, Error> {
        let size = usize::from(self.encoder.source().layout().oti().symbol_size);
        let mut symbols = vec![0; esis.len() * size];
        let deviations = self.encoder.encode(sbn, esis, worker_bytes, &mut symbols)?;
        if let Some(verifier) = &self.verifier {
            verifier.verify(sbn, deviations)?;
        }
        Ok(symbols)
    }
}

/// The result of an [`EncodeJob`]: the symbols of a batch, concatenated.
pub(super) struct Encoded {
    batch: BatchId,
    toi: Toi,
    symbols: Result<Vec<u8>, Error>,
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
        for EncodeJob { batch, block, esis, object } in jobs {
            let symbols = object.encode(block.sbn, &esis, bytes);
            if finished.send(Encoded { batch, toi: block.toi, symbols }).is_err() {
                return;
            }
            bell.ring();
        }
    }
}

/// Hands the jobs of a sender to workers, and holds the symbols of batches until they are released.
pub(super) struct SendRunner {
    batches: BTreeMap<BatchId, Batch>,
    encoders: BTreeMap<Toi, SentObject>,
    queue: ChannelSender<EncodeJob>,
    failed: BTreeSet<Toi>,
    failures: Vec<Arc<Error>>,
}

/// Symbols, concatenated; none until they are encoded.
struct Batch {
    symbols: Vec<u8>,
    count: usize,
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
            SendJob::Prepare { batch, block, esis } => {
                self.batches.insert(batch, Batch { symbols: Vec::new(), count: esis.len() });
                if let Some(object) = self.encoders.get(&block.toi).cloned() {
                    // Workers run until this end of their queue is dropped.
                    let _ = self.queue.send(EncodeJob { batch, block, esis, object });
                }
            }
            SendJob::Release { batch } => _ = self.batches.remove(&batch),
        }
        Ok(None)
    }
}

impl SendRunner {
    pub(super) fn new(
        encoders: BTreeMap<Toi, SentObject>,
        queue: ChannelSender<EncodeJob>,
    ) -> Self {
        let (failed, failures) = Default::default();
        Self { batches: BTreeMap::new(), encoders, queue, failed, failures }
    }

    /// Adds the encoders of further objects.
    pub(super) fn add(&mut self, encoders: Vec<(Toi, SentObject)>) {
        self.encoders.extend(encoders);
    }

    /// Stores the symbols of a batch. Returns the answer for the sender.
    pub(super) fn finish(&mut self, Encoded { batch, toi, symbols }: Encoded) -> SendDone {
        match symbols {
            Ok(symbols) => {
                // A batch that was released meanwhile is not waited for.
                if let Some(waiting) = self.batches.get_mut(&batch) {
                    waiting.symbols = symbols;
                }
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

    pub(super) fn symbol(&self, symbol: SymbolId) -> Option<&[u8]> {
        let batch = self.batches.get(&symbol.batch)?;
        let size = batch.symbols.len().checked_div(batch.count)?;
        let at = symbol.index as usize * size;
        batch.symbols.get(at..at + size.min(symbol.size.into()))
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
