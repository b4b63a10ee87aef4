//! The pacing thread of a sender. Workers read and encode ahead of need, and this thread sends each
//! packet when it is due. It waits for a worker only if the symbols of the next packet are not
//! ready.

use super::carousel::NextInstance;
use super::emitted::Emitted;
use super::queue::SendQueue;
use super::renewal::HeadRenewal;
use super::repair::RepairProgress;
use super::reports::ReportThread;
use super::runner::{Encoded, SendRunner, SentObject, Worker, WorkerQueues};
use super::update::Update;
use crate::cancellation::CancellationToken;
use crate::error::Error;
use crate::event::{SendEvent, SendProgress};
use crate::outcome::Outcome;
use crate::rate::Rate;
use crate::report::SendReport;
use crate::reporting::Crowd;
use crate::seal::PacketSealer;
use crate::shared::unbounded;
use crossbeam_channel::{Receiver, TryRecvError, bounded, never};
use fontana_net::clock::wake_promptly;
use fontana_net::thread::spawn_scoped;
use fontana_net::{Alarm, Clock, PanicError, SendSocket};
use fontana_proto::{
    DatagramBatch, Destination, Driver, Effect, Endpoint, Instant, Sender, SenderEvent,
};
use fontana_store::SolvedStore;
use fontana_wire::Toi;
use std::collections::BTreeMap;
use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

/// Interval between progress events.
const PROGRESS_EVERY: Duration = Duration::from_millis(200);
/// Longest time until a stop request is noticed.
const STOP_LATENCY: Duration = Duration::from_millis(100);
/// A wait that nothing interrupts.
pub(super) const NEAR: Duration = Duration::from_millis(1);
/// Updates of the collecting thread that wait for the pacing thread: more reports than arrive in a
/// second.
const MAX_UPDATES: usize = 512;

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
    /// Collects reports, if they are asked for.
    pub(super) reports: Option<ReportThread>,
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
    let Transmission { socket, sealer, sender, source_symbols, encoders, .. } = transmission;
    let Transmission { instances, workers, worker_bytes, spare_bytes, .. } = transmission;
    let Transmission { renewal, reports, solved, solving_window, makes_digests, .. } = transmission;
    let (jobs, job_queue) = unbounded();
    let (blocks, block_queue) = unbounded();
    let (finished, encoded) = unbounded();
    let alarm = Alarm::for_this_thread();
    wake_promptly();
    std::thread::scope(|scope| {
        // An early return drops the queues, which ends the workers.
        let queues = WorkerQueues { jobs, blocks };
        for number in 0..workers {
            // One of several workers is never busy with a block while a batch is needed.
            let solves = number > 0 || workers == 1;
            let worker = Worker {
                jobs: job_queue.clone(),
                blocks: if solves { block_queue.clone() } else { never() },
                finished: finished.clone(),
                bell: alarm.bell(),
                bytes: worker_bytes,
            };
            spawn_scoped(scope, "encode", move || worker.run())?;
        }
        drop((job_queue, block_queue, finished));
        let (update, updates) = bounded(MAX_UPDATES);
        let collects = CancellationToken::new();
        let sent_requests = reports.as_ref().and_then(ReportThread::sent_requests);
        match reports {
            // The receiving end is dropped with the pacing thread, which ends it in any case.
            Some(reports) => {
                let (over, bell) = (collects.clone(), alarm.bell());
                spawn_scoped(scope, "reports", move || reports.run(&update, &bell, &over))?;
            }
            None => drop(update),
        }
        let runner = SendRunner::new(encoders, queues, spare_bytes, solving_window)
            .making_digests(makes_digests)
            .solving_on_losses(sent_requests.is_some());
        let thread = PacingThread {
            clock: Clock::start(),
            alarm,
            core: Driver::new(sender, runner),
            queue: SendQueue::new(socket, sealer),
            source_symbols,
            instances,
            renewal,
            updates,
            collects,
            repair: sent_requests.map(RepairProgress::new),
            crowd: None,
            solved,
            is_over: false,
            ended: false,
        };
        // It drops `encoded` at its end, so that workers leave the jobs that are still queued.
        thread.run(encoded, stop, emit)
    })
}

struct PacingThread {
    clock: Clock,
    /// Workers ring it after each batch.
    alarm: Alarm,
    core: Driver<Sender, SendRunner>,
    queue: SendQueue,
    source_symbols: u64,
    instances: Receiver<NextInstance>,
    renewal: Option<HeadRenewal>,
    /// From the collecting thread; disconnected without one.
    updates: Receiver<Update>,
    /// Ends the collecting thread.
    collects: CancellationToken,
    /// What is sent of what receivers have requested, with repair on demand.
    repair: Option<RepairProgress>,
    /// What is known of the receivers.
    crowd: Option<Arc<Crowd>>,
    solved: Arc<SolvedStore>,
    /// The collecting thread has ended: so does the session, once its last roll call is sent.
    is_over: bool,
    ended: bool,
}

impl PacingThread {
    fn run(
        mut self,
        encoded: Receiver<Result<Encoded, PanicError>>,
        stop: &CancellationToken,
        emit: &mut dyn FnMut(SendEvent),
    ) -> Result<SendReport, Error> {
        let (mut last_progress, mut emitted) = (Duration::ZERO, Emitted::new(&self.queue));
        loop {
            let now = self.now();
            for next in self.instances.try_iter() {
                self.source_symbols += next.source_symbols;
                self.core.runner.add(next.encoders);
                self.core.endpoint.extend(&next.objects, next.control);
            }
            self.take_encoded(&encoded)?;
            for update in self.updates.clone().try_iter() {
                self.take_update(update, emit);
            }
            self.poll(now)?;
            // The last roll call tells receivers that they are known.
            self.ended |= self.is_over && !self.core.endpoint.is_announcing();
            let elapsed = Duration::from_nanos(now.as_nanos());
            if let Some(head) = self.renewal.as_mut().and_then(|renewal| renewal.poll(elapsed)) {
                self.core.endpoint.renew(&head);
            }
            let over = self.ended || stop.is_cancelled();
            if over || elapsed >= last_progress + PROGRESS_EVERY {
                last_progress = elapsed;
                emitted.update(
                    self.core.runner.failures(),
                    &self.queue,
                    self.progress(elapsed),
                    emit,
                );
            }
            if over {
                let interrupted = stop.is_cancelled() && !self.ended;
                let failure = emitted.end(&self.queue, elapsed, emit);
                // What receivers have reported until now, at the end.
                self.collects.cancel();
                for update in self.updates.clone() {
                    self.take_update(update, emit);
                }
                return Ok(self.report(interrupted, elapsed, failure));
            }
            self.wait();
        }
    }

    /// Accepts the batches that workers have finished.
    fn take_encoded(
        &mut self,
        encoded: &Receiver<Result<Encoded, PanicError>>,
    ) -> Result<(), Error> {
        loop {
            match encoded.try_recv() {
                Ok(encoded) => {
                    let encoded = encoded?;
                    let done = self.core.runner.finish(encoded);
                    self.core.endpoint.handle_done(self.now(), done);
                    // A session without an end whose objects all failed would delay receivers for
                    // nothing.
                    self.ended |= self.core.runner.all_failed();
                }
                Err(TryRecvError::Empty) => return Ok(()),
                // All workers have ended.
                Err(TryRecvError::Disconnected) => {
                    self.ended = true;
                    return Ok(());
                }
            }
        }
    }

    /// Sends a roll call, or emits what receivers have reported.
    fn take_update(&mut self, update: Update, emit: &mut dyn FnMut(SendEvent)) {
        match update {
            Update::Losses => self.core.runner.begin_solving(),
            Update::Repair(symbols) => {
                self.core.endpoint.repair(&symbols);
                self.repair.iter_mut().for_each(RepairProgress::take);
            }
            Update::Resend(symbols) => {
                self.core.endpoint.resend(&symbols);
                self.repair.iter_mut().for_each(RepairProgress::take);
            }
            Update::Rate { bytes_per_second } => {
                self.core.endpoint.set_rate(bytes_per_second);
                emit(SendEvent::RateChanged { rate: Rate::bytes_per_second(bytes_per_second) });
            }
            Update::Slow(slow) => emit(SendEvent::Slow {
                receiver: slow.receiver,
                rate: Rate::bytes_per_second(slow.bytes_per_second),
            }),
            Update::RollCall(object) => self.core.endpoint.announce(*object),
            Update::Report(status) => emit(SendEvent::Report(status)),
            Update::Crowd(crowd) => {
                self.crowd = Some(Arc::clone(&crowd));
                emit(SendEvent::Crowd(crowd));
            }
            Update::Over => self.is_over = true,
            // Of another kind of session.
            Update::Stream(_) => {}
        }
    }

    /// Waits until the next packet is due. If that is far, or its symbols are not ready, then also
    /// until a worker has finished a batch, or receivers have requested something.
    fn wait(&mut self) {
        let now = self.now();
        let latest = now + STOP_LATENCY;
        let due = self.core.endpoint.poll_timeout();
        match due {
            Some(due) if due < now + NEAR => self.clock.sleep_until(due.as_nanos()),
            _ => {
                let until = due.map_or(latest, |due| due.min(latest));
                self.alarm.wait_until(&self.clock, until.as_nanos());
            }
        }
        let now = self.now();
        if due.is_some_and(|due| due <= now) {
            self.core.endpoint.handle_timeout(now);
        }
    }

    fn now(&self) -> Instant {
        Instant::from_nanos(self.clock.now_nanos())
    }

    /// Sends what is due.
    fn poll(&mut self, now: Instant) -> Result<(), Error> {
        loop {
            let Ok(effect) = self.core.poll(now, &DatagramBatch::EMPTY);
            match effect {
                Some(Effect::Transmit { to: Destination::Channel(channel), symbol }) => {
                    let (header, runner) = self.core.datagram();
                    self.queue.push(channel, header, symbol.as_ref(), &mut runner.prepared)?;
                }
                Some(Effect::Event(SenderEvent::Finished)) => self.ended = true,
                // The runner has the reason.
                Some(Effect::Event(SenderEvent::Withdrawn { .. })) => {}
                // A sender uses channels only, and joins none.
                Some(
                    Effect::Transmit { .. }
                    | Effect::Join(_)
                    | Effect::Leave(_)
                    | Effect::Later { .. },
                ) => {}
                None => {
                    let prepared = &mut self.core.runner.prepared;
                    self.queue.flush(prepared)?;
                    prepared.recycle();
                    if let Some(repair) =
                        self.repair.as_ref().filter(|_| self.core.endpoint.is_sent())
                    {
                        repair.all_sent();
                    }
                    return Ok(());
                }
            }
        }
    }

    fn progress(&self, elapsed: Duration) -> SendProgress {
        SendProgress {
            elapsed,
            stats: self.core.endpoint.stats(),
            source_symbols: self.source_symbols,
            lost: self.queue.lost,
            first_sent: self.core.endpoint.is_first_phase_over(),
        }
    }

    /// `failure`: no packet has left this host.
    fn report(
        self,
        interrupted: bool,
        elapsed: Duration,
        failure: Option<Arc<Error>>,
    ) -> SendReport {
        let start = if interrupted { Outcome::Interrupted } else { Outcome::Complete };
        let mut failures = self.core.runner.failures().to_vec();
        failures.extend(failure);
        let outcome = failures.iter().fold(start, |o, error| o.worst(error.outcome()));
        let summary = self.crowd.as_ref().map(|crowd| &crowd.summary);
        let lacks = summary.is_some_and(|s| s.expected.is_some() && !s.is_as_expected());
        let outcome = if lacks { outcome.worst(Outcome::ReceiversIncomplete) } else { outcome };
        let (stats, lost) = (self.core.endpoint.stats(), self.queue.lost);
        let (solved_bytes, scratch_bytes) =
            (self.solved.solved_bytes(), self.solved.scratch_bytes());
        let crowd = self.crowd;
        SendReport { outcome, elapsed, stats, lost, failures, solved_bytes, scratch_bytes, crowd }
    }
}
