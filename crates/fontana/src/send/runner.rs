//! The jobs of a sender: workers read and encode.

use crate::content::Content;
use crate::error::Error;
use crossbeam_channel::{Receiver, Sender as ChannelSender};
use fontana_fec::{Esi, PlanCache};
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
    pub(super) fn encoders(&self, content: &Content) -> Vec<(Toi, Arc<ObjectEncoder>)> {
        let objects = content.objects.iter().map(|object| {
            let source = Arc::clone(&object.source);
            let encoder =
                ObjectEncoder::new(source, Arc::clone(&self.plans), Arc::clone(&self.kept));
            (object.toi, Arc::new(encoder))
        });
        objects.collect()
    }
}

/// A batch to be encoded.
pub(super) struct EncodeJob {
    batch: BatchId,
    block: BlockId,
    esis: Vec<Esi>,
    encoder: Arc<ObjectEncoder>,
}

/// The result of an [`EncodeJob`]: the symbols of a batch, concatenated.
pub(super) struct Encoded {
    batch: BatchId,
    toi: Toi,
    symbols: Result<Vec<u8>, Error>,
}

/// Runs a worker: encodes batches until the queue is closed.
pub(super) fn encode(
    queue: &Receiver<EncodeJob>,
    finished: &ChannelSender<Encoded>,
    worker_bytes: usize,
) {
    crate::system::give_way();
    for EncodeJob { batch, block, esis, encoder } in queue {
        let size = usize::from(encoder.source().layout().oti().symbol_size);
        let mut symbols = vec![0; esis.len() * size];
        let result = encoder.encode(block.sbn, &esis, worker_bytes, &mut symbols);
        let symbols = result.map(|()| symbols).map_err(Error::from);
        if finished.send(Encoded { batch, toi: block.toi, symbols }).is_err() {
            return;
        }
    }
}

/// Hands the jobs of a sender to workers, and holds the symbols of batches until they are released.
pub(super) struct SendRunner {
    batches: BTreeMap<BatchId, Batch>,
    encoders: BTreeMap<Toi, Arc<ObjectEncoder>>,
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
                if let Some(encoder) = self.encoders.get(&block.toi).map(Arc::clone) {
                    // Workers run until this end of their queue is dropped.
                    let _ = self.queue.send(EncodeJob { batch, block, esis, encoder });
                }
            }
            SendJob::Release { batch } => _ = self.batches.remove(&batch),
        }
        Ok(None)
    }
}

impl SendRunner {
    pub(super) fn new(
        encoders: BTreeMap<Toi, Arc<ObjectEncoder>>,
        queue: ChannelSender<EncodeJob>,
    ) -> Self {
        let (failed, failures) = Default::default();
        Self { batches: BTreeMap::new(), encoders, queue, failed, failures }
    }

    /// Adds the encoders of further objects.
    pub(super) fn add(&mut self, encoders: Vec<(Toi, Arc<ObjectEncoder>)>) {
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
