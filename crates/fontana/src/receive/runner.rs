//! Runs a receiver's jobs: workers write and decode, and one thread opens and commits objects.

use super::delivery::OrderedDelivery;
use super::object::OpenObject;
use super::threads::Threads;
use super::worker::{Attempt, WorkerJob};
use fontana_fec::Sbn;
use fontana_proto::{
    DatagramBatch, Finished, Instant, JobRunner, ReceiveDone, ReceiveJob, SymbolBytes,
};
use fontana_wire::Toi;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

/// Hands the jobs of a receiver to threads. Their answers come back as reports, which the deciding
/// thread gives to the receiver.
pub(super) struct ReceiveRunner {
    pub(super) threads: Threads,
    pub(super) objects: BTreeMap<Toi, Arc<OpenObject>>,
    pub(super) delivery: OrderedDelivery,
    /// Datagrams of the session so far, for the journal.
    pub(super) session_packets: u64,
}

impl JobRunner<ReceiveJob> for ReceiveRunner {
    type Done = ReceiveDone;
    type Error = Infallible;

    fn run(
        &mut self,
        _now: Instant,
        job: ReceiveJob,
        batch: &DatagramBatch<'_>,
    ) -> Result<Option<Finished<ReceiveDone>>, Infallible> {
        match job {
            ReceiveJob::Open(_) => self.threads.hand_to_target(job),
            ReceiveJob::Place { block, esi, to, symbol } => {
                let symbol = match &symbol {
                    SymbolBytes::Saved(bytes) => Some(&bytes[..]),
                    SymbolBytes::InSlab(range) => batch.bytes(range),
                };
                let object = self.objects.get(&block.toi).cloned();
                if let (Some(object), Some(bytes)) = (object, symbol) {
                    let job = |symbol| WorkerJob::Place { object, block, esi, to, symbol };
                    let session_packets = self.session_packets;
                    self.threads.hand_symbol_to_worker(block.sbn, bytes, job, session_packets);
                }
            }
            ReceiveJob::Solve { block, decoder, budget } => {
                self.threads.solve(Attempt { block, decoder, budget });
            }
            ReceiveJob::Recover { block, recipe, repair } => {
                if let Some(object) = self.objects.get(&block.toi).cloned() {
                    let job = WorkerJob::Recover { object, block, recipe, repair };
                    self.hand_to_worker(block.sbn, job);
                }
            }
            ReceiveJob::Settle { block, outcome } => {
                if let Some(object) = self.objects.get(&block.toi).cloned() {
                    self.hand_to_worker(block.sbn, WorkerJob::Settle { object, block, outcome });
                }
            }
            // A fragment is committed when it was delivered, and all is finished when it was.
            ReceiveJob::Commit { toi } => match (self.delivery.stream(), self.objects.get(&toi)) {
                (Some(stream), Some(object)) => stream.deliver_fragment(toi, object),
                _ => self.threads.hand_to_target(job),
            },
            ReceiveJob::Finish => match self.delivery.thread() {
                Some(thread) => thread.finish(),
                None => self.threads.hand_to_target(ReceiveJob::Finish),
            },
        }
        Ok(None)
    }
}

impl ReceiveRunner {
    fn hand_to_worker(&mut self, sbn: Sbn, job: WorkerJob) {
        self.threads.hand_to_worker(sbn, job, self.session_packets);
    }

    /// Writes out what waits in the workers' lists.
    pub(super) fn flush(&mut self, session_packets: u64) {
        self.session_packets = session_packets;
        self.threads.flush(session_packets);
    }
}
