//! The threads that a reception hands jobs to, and the queues to them.

use super::placer::{self, BlockJob, JobList};
use super::spill::{self, SpillJob};
use super::syncer;
use super::target::{Target, TargetReport};
use super::worker::{self, Attempt, WorkerReport};
use crate::error::Error;
use crate::shared::{Sender, bounded, unbounded};
use crossbeam_channel::Receiver;
use fontana_net::thread::{PanicError, catch, spawn_scoped};
use fontana_proto::{ReceiveJob, SymbolBytes};
use fontana_store::{SpillFile, Staging};
use std::sync::Arc;
use std::thread::Scope;

/// Lists of jobs that may wait for the placer. If more would, the deciding thread waits, and the
/// receive thread drops packets and counts them.
const PLACER_QUEUE: usize = 64;

/// Jobs that are handed over to the placer together, at most: more than a full batch of datagrams
/// of different blocks has.
const JOBS_PER_LIST: usize = 256;

/// Bytes of symbols that were copied from their slabs, of one list, at most. It bounds the copies
/// that wait to 4 MiB. Slabs that wait are bounded by their number.
const COPIED_PER_LIST: usize = 64 << 10;

/// Chunks of early symbols that may wait for their thread: 4 MiB. If more would, the deciding
/// thread waits.
const SPILL_QUEUE: usize = 64;

/// The queues to all threads. They end when it is dropped.
pub(super) struct Threads {
    placer: PlacerQueue,
    solver: Sender<Attempt>,
    target: Sender<ReceiveJob>,
    syncer: Sender<Arc<Staging>>,
    spill: Sender<SpillJob>,
}

/// What the threads report.
pub(super) struct Reports {
    pub(super) workers: Receiver<WorkerReport>,
    pub(super) target: Receiver<TargetReport>,
    /// Panics of the threads.
    pub(super) panics: Receiver<PanicError>,
}

/// Where the threads report.
pub(super) struct ReportSenders {
    pub(super) workers: Sender<WorkerReport>,
    pub(super) target: Sender<TargetReport>,
    pub(super) panics: Sender<PanicError>,
}

/// The channels of the threads' reports.
pub(super) fn report_channels() -> (ReportSenders, Reports) {
    let (workers, worker_reports) = unbounded();
    let (target, target_reports) = unbounded();
    let (panics, caught) = unbounded();
    let reports = Reports { workers: worker_reports, target: target_reports, panics: caught };
    (ReportSenders { workers, target, panics }, reports)
}

/// `work`, with its panic reported. What it owns is dropped before, its queues among it, so that no
/// other thread waits for it.
fn reporting(panics: Sender<PanicError>, work: impl FnOnce() + Send) -> impl FnOnce() + Send {
    move || {
        if let Err(panic) = catch(work) {
            let _ = panics.send(panic);
        }
    }
}

/// How many threads solve, and how many recover, and what each of the latter may use.
#[derive(Clone, Copy)]
pub(super) struct WorkerShare {
    pub(super) count: usize,
    /// Memory of each, in bytes.
    pub(super) bytes: usize,
}

/// The other ends of the queues.
pub(super) struct Queues {
    pub(super) placer: Receiver<JobList>,
    pub(super) solver: Receiver<Attempt>,
    pub(super) target: Receiver<ReceiveJob>,
    pub(super) syncer: Receiver<Arc<Staging>>,
    pub(super) spill: Receiver<SpillJob>,
}

struct PlacerQueue {
    jobs: Sender<JobList>,
    waiting: Vec<BlockJob>,
    /// Bytes of copied symbols in `waiting`.
    copied: usize,
}

impl PlacerQueue {
    fn push(&mut self, job: BlockJob, session_packets: u64) {
        if let BlockJob::Place { run, .. } = &job
            && let SymbolBytes::Saved(bytes) = &run.bytes
        {
            self.copied += bytes.len();
        }
        self.waiting.push(job);
        if self.waiting.len() >= JOBS_PER_LIST || self.copied >= COPIED_PER_LIST {
            self.send(session_packets);
        }
    }

    fn send(&mut self, session_packets: u64) {
        let next = Vec::with_capacity(self.waiting.len());
        let list = std::mem::replace(&mut self.waiting, next);
        self.copied = 0;
        // The placer runs until this end of its queue is dropped.
        let _ = self.jobs.send(JobList { list, session_packets });
    }
}

impl Threads {
    /// Queues that no thread empties.
    pub(super) fn queues() -> (Self, Queues) {
        let (jobs, placer_queue) = bounded(PLACER_QUEUE);
        let placer = PlacerQueue { jobs, waiting: Vec::new(), copied: 0 };
        // At most one attempt for each block waits.
        let (solver, attempts) = unbounded();
        let (syncer, stagings) = unbounded();
        let (target, target_jobs) = unbounded();
        let (spill, spill_jobs) = bounded(SPILL_QUEUE);
        let queues = Queues {
            placer: placer_queue,
            solver: attempts,
            target: target_jobs,
            syncer: stagings,
            spill: spill_jobs,
        };
        (Self { placer, solver, target, syncer, spill }, queues)
    }

    /// Starts the threads.
    ///
    /// # Errors
    /// [`Error`] if a thread cannot be started; those that were started end.
    pub(super) fn spawn<'scope>(
        scope: &'scope Scope<'scope, '_>,
        share: WorkerShare,
        target: &'scope mut Target,
        spill: Arc<SpillFile>,
        reports: ReportSenders,
    ) -> Result<Self, Error> {
        let ReportSenders { workers: reports, target: target_reports, panics } = reports;
        let (threads, queues) = Self::queues();
        // The endpoint bounds the number of blocks that are worked on.
        let (bytes_jobs, bytes_queue) = unbounded();
        for _ in 0..share.count {
            let (queue, reports) = (bytes_queue.clone(), reports.clone());
            let work = move || worker::run_on_bytes(&queue, &reports, share.bytes);
            spawn_scoped(scope, "recover", reporting(panics.clone(), work))?;
        }
        let placer_reports = reports.clone();
        let work = move || placer::run(&queues.placer, bytes_jobs, &placer_reports);
        spawn_scoped(scope, "place", reporting(panics.clone(), work))?;
        for _ in 0..share.count {
            let (attempts, reports) = (queues.solver.clone(), reports.clone());
            let work = move || worker::run_solver(&attempts, &reports);
            spawn_scoped(scope, "solve", reporting(panics.clone(), work))?;
        }
        let spill_reports = reports.clone();
        let work = move || spill::run(&queues.spill, &spill, &spill_reports);
        spawn_scoped(scope, "spill", reporting(panics.clone(), work))?;
        let work = move || syncer::run(&queues.syncer, &reports);
        spawn_scoped(scope, "sync", reporting(panics.clone(), work))?;
        let work = move || target.run(&queues.target, &target_reports);
        spawn_scoped(scope, "disk", reporting(panics, work))?;
        Ok(threads)
    }

    pub(super) fn solve(&self, attempt: Attempt) {
        // As are the others, the thread is there until this end of its queue is dropped.
        let _ = self.solver.send(attempt);
    }

    pub(super) fn hand_to_target(&self, job: ReceiveJob) {
        let _ = self.target.send(job);
    }

    pub(super) fn hand_to_spill(&self, job: SpillJob) {
        let _ = self.spill.send(job);
    }

    /// Has a staging directory synced now and then.
    pub(super) fn keep_synced(&self, staging: &Arc<Staging>) {
        // The thread has ended if the disk refused something: that was reported.
        let _ = self.syncer.send(Arc::clone(staging));
    }

    /// Hands a job to the placer, with those that are handed over next.
    pub(super) fn hand_to_placer(&mut self, job: BlockJob, session_packets: u64) {
        self.placer.push(job, session_packets);
    }

    /// Hands over the jobs that are waiting, but to a placer that is behind only in full lists.
    /// Then its queue has room for some thousand packets, and a disk that is busy for a moment
    /// (thousands of small files) does not keep the deciding thread from leaving the group.
    pub(super) fn flush(&mut self, session_packets: u64) {
        if !self.placer.waiting.is_empty() && self.placer.jobs.len() < PLACER_QUEUE / 2 {
            self.placer.send(session_packets);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::receive::object::OpenObject;
    use crate::receive::placer::Placer;
    use crate::shared::counter::{BATCH, per_gigabyte, uses_during};
    use fontana_fec::codes::raptorq::RaptorQ;
    use fontana_fec::{Esi, FecScheme, Oti, Sbn};
    use fontana_proto::{BlockId, PlacedRun, SymbolPlace};
    use fontana_store::{
        Extents, FileAttributes, StagedObject, StagingOptions, TargetDirectory, TargetName,
    };
    use fontana_wire::Toi;

    const SYMBOL_SIZE: u16 = 1280;
    const SYMBOLS: u32 = 6_400;

    /// What a receiver does for each run of symbols that arrive together.
    #[test]
    fn a_batch_takes_few_messages_and_locks() {
        let directory = tempfile::tempdir().unwrap();
        let target = Arc::new(TargetDirectory::open(directory.path()).unwrap());
        let staging = Staging::create(target, "test", StagingOptions::default()).unwrap().0;
        let transfer_length = u64::from(SYMBOLS) * u64::from(SYMBOL_SIZE);
        let name = TargetName::new(&["file"]).unwrap();
        let file = staging.add_file(name, transfer_length, FileAttributes::default()).unwrap();
        let scheme = FecScheme::RaptorQ(RaptorQ { source_blocks: 1, sub_blocks: 1, alignment: 4 });
        let layout = Oti { transfer_length, symbol_size: SYMBOL_SIZE, scheme }.layout().unwrap();
        let extents = Extents::whole_file(file, transfer_length);
        let staging = Arc::new(staging);
        let staged = StagedObject::new(Arc::clone(&staging), layout, extents, 100).unwrap();
        let object = Arc::new(OpenObject::with_journal(staged, Vec::new(), staging));

        let (mut threads, queues) = Threads::queues();
        let ((bytes_jobs, _bytes_queue), (reports, done)) = (unbounded(), unbounded());
        let mut placer = Placer::new(bytes_jobs);
        let firsts = (0..SYMBOLS - BATCH as u32).step_by(BATCH);
        let batches = firsts.len() as u64;
        let uses = uses_during(|| {
            for first in firsts {
                let block = BlockId { toi: Toi(1), sbn: Sbn(0) };
                let bytes = SymbolBytes::Saved(vec![7; BATCH * usize::from(SYMBOL_SIZE)]);
                let (to, count) = (SymbolPlace::InPlace, BATCH as u32);
                let run = PlacedRun { block, first: Esi(first), count, to, bytes };
                let job = BlockJob::Place { object: Arc::clone(&object), run, slab: None };
                threads.hand_to_placer(job, 1);
                threads.flush(1);
                placer.work_on(queues.placer.try_recv().unwrap(), &reports);
            }
        });
        assert!(done.is_empty(), "no report for a batch");
        let (uses, most) = [uses, batches].map(|n| per_gigabyte(n, transfer_length)).into();
        assert!((1..=most).contains(&uses), "{uses} of {most} for each gigabyte");
    }
}
