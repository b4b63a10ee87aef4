//! The threads that a reception hands jobs to, and the queues to them.

use super::syncer;
use super::target::{Target, TargetReport};
use super::worker::{self, Attempt, WorkerJob, WorkerJobs, WorkerReport};
use crate::error::Error;
use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use fontana_fec::Sbn;
use fontana_net::thread::spawn_scoped;
use fontana_proto::ReceiveJob;
use fontana_store::Staging;
use std::ops::Range;
use std::sync::Arc;
use std::thread::Scope;

/// Lists of jobs that may wait for one worker. If more would, the deciding thread waits, and the
/// receive thread drops packets and counts them.
const WORKER_QUEUE: usize = 64;

/// Jobs that are handed over to a worker together, at most: those of a batch of 64 datagrams.
const JOBS_PER_LIST: usize = 64;

/// The queues to all threads. They end when it is dropped.
pub(super) struct Threads {
    workers: Vec<WorkerQueue>,
    solver: Sender<Attempt>,
    target: Sender<ReceiveJob>,
    syncer: Sender<Arc<Staging>>,
}

/// What the threads report.
pub(super) struct Reports {
    pub(super) workers: Receiver<WorkerReport>,
    pub(super) target: Receiver<TargetReport>,
}

/// Where the threads report.
pub(super) struct ReportSenders {
    pub(super) workers: Sender<WorkerReport>,
    pub(super) target: Sender<TargetReport>,
}

/// The channels of the threads' reports.
pub(super) fn report_channels() -> (ReportSenders, Reports) {
    let (workers, worker_reports) = unbounded();
    let (target, target_reports) = unbounded();
    let reports = Reports { workers: worker_reports, target: target_reports };
    (ReportSenders { workers, target }, reports)
}

/// How many workers there are, and what each may use.
#[derive(Clone, Copy)]
pub(super) struct WorkerShare {
    pub(super) count: usize,
    /// Memory of each, in bytes.
    pub(super) bytes: usize,
}

struct WorkerQueue {
    jobs: Sender<WorkerJobs>,
    waiting: WorkerJobs,
}

impl WorkerQueue {
    fn push(&mut self, job: WorkerJob, session_packets: u64) {
        self.waiting.list.push(job);
        if self.waiting.list.len() >= JOBS_PER_LIST {
            self.send(session_packets);
        }
    }

    fn send(&mut self, session_packets: u64) {
        let next = WorkerJobs {
            list: Vec::with_capacity(self.waiting.list.len()),
            symbols: Vec::with_capacity(self.waiting.symbols.len()),
            session_packets: 0,
        };
        let jobs = std::mem::replace(&mut self.waiting, next);
        // The worker runs until this end of its queue is dropped.
        let _ = self.jobs.send(WorkerJobs { session_packets, ..jobs });
    }
}

impl Threads {
    /// Starts the threads.
    ///
    /// # Errors
    /// [`Error`] if a thread cannot be started; those that were started end.
    pub(super) fn spawn<'scope>(
        scope: &'scope Scope<'scope, '_>,
        share: WorkerShare,
        target: &'scope mut Target,
        reports: ReportSenders,
    ) -> Result<Self, Error> {
        let ReportSenders { workers: reports, target: target_reports } = reports;
        let mut workers = Vec::new();
        for _ in 0..share.count {
            let (jobs, queue) = bounded(WORKER_QUEUE);
            let reports = reports.clone();
            let work = move || worker::run(&queue, &reports, share.bytes);
            spawn_scoped(scope, "place", work)?;
            workers.push(WorkerQueue { jobs, waiting: WorkerJobs::default() });
        }
        // At most one attempt for each block waits.
        let (solver, attempts) = unbounded();
        for _ in 0..share.count {
            let (attempts, reports) = (attempts.clone(), reports.clone());
            spawn_scoped(scope, "solve", move || worker::run_solver(&attempts, &reports))?;
        }
        let (syncer, stagings) = unbounded();
        spawn_scoped(scope, "sync", move || syncer::run(&stagings, &reports))?;
        let (jobs, queue) = unbounded();
        spawn_scoped(scope, "disk", move || target.run(&queue, &target_reports))?;
        Ok(Self { workers, solver, target: jobs, syncer })
    }

    pub(super) fn solve(&self, attempt: Attempt) {
        // As are the others, the thread is there until this end of its queue is dropped.
        let _ = self.solver.send(attempt);
    }

    pub(super) fn hand_to_target(&self, job: ReceiveJob) {
        let _ = self.target.send(job);
    }

    /// Has a staging directory synced now and then.
    pub(super) fn keep_synced(&self, staging: &Arc<Staging>) {
        // The thread has ended if the disk refused something: that was reported.
        let _ = self.syncer.send(Arc::clone(staging));
    }

    /// Hands a job to the worker of a block. Blocks of one number share a worker; consecutive ones
    /// do not.
    pub(super) fn hand_to_worker(&mut self, sbn: Sbn, job: WorkerJob, session_packets: u64) {
        if let Some(worker) = self.worker(sbn) {
            worker.push(job, session_packets);
        }
    }

    /// The same for a job that places a symbol, which `job` makes of its bytes' range in the list.
    pub(super) fn hand_symbol_to_worker(
        &mut self,
        sbn: Sbn,
        symbol: &[u8],
        job: impl FnOnce(Range<usize>) -> WorkerJob,
        session_packets: u64,
    ) {
        if let Some(worker) = self.worker(sbn) {
            let symbols = &mut worker.waiting.symbols;
            let start = symbols.len();
            symbols.extend_from_slice(symbol);
            let range = start..symbols.len();
            worker.push(job(range), session_packets);
        }
    }

    fn worker(&mut self, Sbn(sbn): Sbn) -> Option<&mut WorkerQueue> {
        let count = self.workers.len().max(1);
        self.workers.get_mut(sbn as usize % count)
    }

    /// Hands over the jobs that are waiting, but to a worker that is behind only in full lists.
    /// Then its queue has room for some thousand packets, and a disk that is busy for a moment
    /// (thousands of small files) does not keep the deciding thread from leaving the group.
    pub(super) fn flush(&mut self, session_packets: u64) {
        let is_due = |worker: &&mut WorkerQueue| {
            !worker.waiting.list.is_empty() && worker.jobs.len() < WORKER_QUEUE / 2
        };
        for worker in self.workers.iter_mut().filter(is_due) {
            worker.send(session_packets);
        }
    }
}
