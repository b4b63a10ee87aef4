//! Runs a receiver's jobs: one thread writes, others decode, and one opens and commits objects.

use super::delivery::OrderedDelivery;
use super::object::OpenObject;
use super::placer::BlockJob;
use super::reporting::ReportKeys;
use super::sharing::SharedSymbols;
use super::spill::SpillJob;
use super::threads::Threads;
use super::worker::{Attempt, Recovery};
use fontana_net::ReceivedBatch;
use fontana_proto::{
    DatagramBatch, Finished, Instant, JobRunner, Opening, ReceiveDone, ReceiveJob,
};
use fontana_store::SpillFile;
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
    /// The batch that is handled, if symbols may stay in it until they are written.
    pub(super) slab: Option<Arc<ReceivedBatch>>,
    /// Datagrams of the session so far, for the journal.
    pub(super) session_packets: u64,
    /// Present in a receiver that reports.
    pub(super) keys: Option<ReportKeys>,
    pub(super) shared: SharedSymbols,
    /// Early symbols beyond the memory for them.
    pub(super) spill: Arc<SpillFile>,
}

impl JobRunner<ReceiveJob> for ReceiveRunner {
    type Done = ReceiveDone;
    type Error = Infallible;

    fn run(
        &mut self,
        now: Instant,
        job: ReceiveJob,
        batch: &DatagramBatch<'_>,
    ) -> Result<Option<Finished<ReceiveDone>>, Infallible> {
        match job {
            ReceiveJob::Open(ref opening) => {
                if let Opening::Manifest(manifest) = &**opening {
                    let lengths = manifest.objects().iter().map(|own| own.oti.transfer_length);
                    self.spill.make_room(lengths.fold(0, u64::saturating_add));
                }
                self.threads.hand_to_target(job);
            }
            ReceiveJob::Place(run) => {
                if let Some(object) = self.objects.get(&run.block.toi).cloned() {
                    let slab = self.slab.clone();
                    let run = if slab.is_some() { run } else { run.saved(batch.slab) };
                    self.hand_to_placer(BlockJob::Place { object, run, slab });
                }
            }
            ReceiveJob::Solve { block, decoder, budget } => {
                self.threads.solve(Attempt { block, decoder, budget });
            }
            ReceiveJob::Recover { block, recipe, repair, arrived } => {
                if let Some(object) = self.objects.get(&block.toi).cloned() {
                    let prefix = Box::default();
                    let recovery = Recovery { object, block, recipe, repair, arrived, prefix };
                    self.hand_to_placer(BlockJob::Recover(recovery));
                }
            }
            ReceiveJob::Locate(search) => {
                if let Some(object) = self.objects.get(&search.block.toi).cloned() {
                    self.hand_to_placer(BlockJob::Locate { object, search });
                }
            }
            ReceiveJob::Choose(choice) => {
                if let Some(object) = self.objects.get(&choice.block.toi).cloned() {
                    self.hand_to_placer(BlockJob::Choose { object, choice });
                }
            }
            ReceiveJob::Settle { block, outcome } => {
                if let Some(object) = self.objects.get(&block.toi).cloned() {
                    self.hand_to_placer(BlockJob::Settle { object, block, outcome });
                }
            }
            ReceiveJob::Drop { toi } => {
                self.objects.remove(&toi);
                self.threads.hand_to_target(job);
            }
            ReceiveJob::Expire(_) => self.threads.hand_to_target(job),
            // A fragment is committed when it was delivered, and all is finished when it was.
            ReceiveJob::Commit { toi } => match (self.delivery.stream(), self.objects.get(&toi)) {
                (Some(stream), Some(object)) => stream.deliver_fragment(toi, object),
                _ => self.threads.hand_to_target(job),
            },
            ReceiveJob::Finish => match self.delivery.thread() {
                Some(thread) => thread.finish(),
                None => self.threads.hand_to_target(ReceiveJob::Finish),
            },
            ReceiveJob::CheckCall(symbol) => {
                let called = self.keys.as_mut().map(|keys| keys.check(now, &symbol));
                return Ok(called.map(|called| Finished::now(ReceiveDone::Called(called))));
            }
            ReceiveJob::Seal(answer) => {
                return Ok(self.keys.as_ref().map(|keys| Finished::now(keys.seal(&answer))));
            }
            ReceiveJob::Read { block, batch, esis, stock } => {
                match self.shared.read((block, batch), esis, stock, &self.objects) {
                    Some(read) => self.hand_to_placer(BlockJob::Read(read)),
                    None => {
                        let done = ReceiveDone::Read { block, batch, is_read: false };
                        return Ok(Some(Finished::now(done)));
                    }
                }
            }
            ReceiveJob::Release { block } => self.shared.release(block),
            ReceiveJob::Spill { offset, bytes } => {
                self.threads.hand_to_spill(SpillJob::Write { offset, bytes });
            }
            ReceiveJob::ReadSpill { offset, length } => {
                self.threads.hand_to_spill(SpillJob::Read { offset, length });
            }
            ReceiveJob::DropSpill => self.threads.hand_to_spill(SpillJob::Drop),
        }
        Ok(None)
    }
}

impl ReceiveRunner {
    fn hand_to_placer(&mut self, job: BlockJob) {
        self.threads.hand_to_placer(job, self.session_packets);
    }

    /// Hands over what waits in the placer's list.
    pub(super) fn flush(&mut self, session_packets: u64) {
        self.session_packets = session_packets;
        self.threads.flush(session_packets);
    }
}
