//! The threads of a sender of files: workers read and encode ahead of need.

use super::answers::{Keys, ReturnPath};
use super::carousel::NextInstance;
use super::pacing::{Core, PacingThread, Supply};
use super::queue::SendQueue;
use super::renewal::HeadRenewal;
use super::runner::{SendRunner, SentObject, Worked, Worker, WorkerQueues};
use crate::cancellation::CancellationToken;
use crate::error::Error;
use crate::event::{SendEvent, SendProgress};
use crate::report::SendReport;
use crate::seal::PacketSealer;
use crate::shared::unbounded;
use crossbeam_channel::{Receiver, TryRecvError, never};
use fontana_net::clock::wake_promptly;
use fontana_net::thread::spawn_scoped;
use fontana_net::{Alarm, Clock, PanicError, SendSocket};
use fontana_proto::{Driver, Endpoint, Instant, Sender, SenderEvent};
use fontana_store::SolvedStore;
use fontana_wire::Toi;
use std::collections::BTreeMap;
use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

/// Everything that a session needs for sending.
pub(super) struct Transmission {
    pub(super) socket: SendSocket,
    pub(super) sealer: Option<PacketSealer>,
    pub(super) sender: Sender,
    /// The sender announces its symbols by their digests.
    pub(super) makes_digests: bool,
    /// Source symbols of the whole content.
    pub(super) source_symbols: u64,
    pub(super) encoders: BTreeMap<Toi, SentObject>,
    /// Additions to the running session.
    pub(super) instances: Receiver<NextInstance>,
    pub(super) renewal: Option<HeadRenewal>,
    /// Where receivers report, if they are asked to.
    pub(super) answers: Option<ReturnPath>,
    /// Nothing is encoded ahead for repair before receivers lose packets.
    pub(super) repairs_on_demand: bool,
    /// Number of threads that read and encode, and the memory of each in bytes.
    pub(super) workers: usize,
    pub(super) worker_bytes: usize,
    /// Bytes of memory that are held for symbols to come.
    pub(super) spare_bytes: usize,
    pub(super) solved: Arc<SolvedStore>,
    /// Source symbols before the end of the source pass from which on blocks are solved.
    pub(super) solving_window: u64,
    /// Unnamed files that hold compressed ones, open until the session ends.
    pub(super) _spooled: Vec<File>,
}

/// Sends until everything was sent, or `stop` is cancelled.
pub(super) fn run(
    transmission: Transmission,
    stop: &CancellationToken,
    emit: &mut dyn FnMut(SendEvent),
) -> Result<SendReport, Error> {
    let Transmission { socket, sealer, mut sender, source_symbols, encoders, .. } = transmission;
    let Transmission { instances, workers, worker_bytes, spare_bytes, .. } = transmission;
    let Transmission { renewal, answers, solved, solving_window, makes_digests, .. } = transmission;
    let (jobs, job_queue) = unbounded();
    let (spare, spare_queue) = unbounded();
    let (finished, encoded) = unbounded();
    let alarm = Alarm::for_this_thread();
    wake_promptly();
    std::thread::scope(|scope| {
        // An early return drops the queues, which ends the workers.
        let queues = WorkerQueues { jobs, spare };
        for number in 0..workers {
            // One of several workers is never busy with a block while a batch is needed.
            let solves = number > 0 || workers == 1;
            let worker = Worker {
                jobs: job_queue.clone(),
                spare: if solves { spare_queue.clone() } else { never() },
                finished: finished.clone(),
                bell: alarm.bell(),
                bytes: worker_bytes,
            };
            spawn_scoped(scope, "encode", move || worker.run())?;
        }
        drop((job_queue, spare_queue, finished));
        let answers = match (answers, sender.collection()) {
            (Some(path), Some(collection)) => Some(path.start(scope, collection, alarm.bell())?),
            _ => None,
        };
        let mut runner = SendRunner::new(encoders, queues, spare_bytes, solving_window)
            .making_digests(makes_digests)
            .solving_on_losses(transmission.repairs_on_demand);
        runner.keys = Keys::new(answers.as_ref());
        let (ended, is_checked, interrupted) = (false, true, false);
        // It drops `encoded` at its end, so that workers leave the jobs that are still queued.
        let supply = Files {
            source_symbols,
            instances,
            renewal,
            encoded,
            solved,
            ended,
            is_checked,
            interrupted,
        };
        let thread = PacingThread {
            clock: Clock::start(),
            alarm,
            queue: SendQueue::new(socket, sealer),
            core: Driver::new(sender, runner),
            supply,
            answers,
        };
        thread.run(stop, emit)
    })
}

/// Files, whose symbols workers encode.
struct Files {
    source_symbols: u64,
    instances: Receiver<NextInstance>,
    renewal: Option<HeadRenewal>,
    /// From the workers, which ring after each.
    encoded: Receiver<Result<Worked, PanicError>>,
    solved: Arc<SolvedStore>,
    ended: bool,
    /// What was sent is what the manifest describes, as far as that is compared while it is sent.
    is_checked: bool,
    interrupted: bool,
}

impl Supply for Files {
    type Endpoint = Sender;
    type Runner = SendRunner;

    fn supply(&mut self, now: Instant, core: &mut Core<Self>) -> Result<(), Error> {
        for next in self.instances.try_iter() {
            self.source_symbols += next.source_symbols;
            core.runner.add(next.encoders);
            core.endpoint.extend(&next.objects, next.control);
        }
        let elapsed = Duration::from_nanos(now.as_nanos());
        if let Some(head) = self.renewal.as_mut().and_then(|renewal| renewal.poll(elapsed)) {
            core.endpoint.renew(&head);
        }
        loop {
            match self.encoded.try_recv() {
                Ok(worked) => {
                    if let Some(done) = core.runner.finish(worked?) {
                        core.endpoint.handle_done(now, done);
                    }
                    // A session without an end whose objects all failed would delay receivers for
                    // nothing.
                    self.ended |= core.runner.all_failed();
                }
                Err(TryRecvError::Empty) => break,
                // All workers have ended.
                Err(TryRecvError::Disconnected) => {
                    (self.ended, self.is_checked) = (true, true);
                    return Ok(());
                }
            }
        }
        self.is_checked = core.runner.is_checked();
        Ok(())
    }

    fn on_event(&mut self, event: &SenderEvent, _core: &mut Core<Self>) {
        // The runner has the reason of an object that is withdrawn.
        self.ended |= matches!(event, SenderEvent::Finished | SenderEvent::Over);
    }

    fn interrupt(&mut self, _core: &mut Core<Self>) {
        // Also while the last blocks are compared: then not everything is done that was asked.
        self.interrupted |= !self.has_ended();
    }

    fn has_ended(&self) -> bool {
        self.ended && self.is_checked || self.interrupted
    }

    fn is_interrupted(&self) -> bool {
        self.interrupted
    }

    /// The endpoint says when nothing is prepared: it has no time of its own then.
    fn is_awaited(&self, _core: &Core<Self>) -> bool {
        false
    }

    fn failures<'a>(&'a self, core: &'a Core<Self>) -> &'a [Arc<Error>] {
        core.runner.failures()
    }

    fn progress(&self, core: &Core<Self>, progress: SendProgress) -> SendProgress {
        let first_sent = core.endpoint.is_first_phase_over();
        SendProgress { source_symbols: self.source_symbols, first_sent, ..progress }
    }

    fn report(&self, report: SendReport) -> SendReport {
        let (solved_bytes, scratch_bytes) =
            (self.solved.solved_bytes(), self.solved.scratch_bytes());
        SendReport { solved_bytes, scratch_bytes, ..report }
    }
}
