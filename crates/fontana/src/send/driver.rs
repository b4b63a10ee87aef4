//! The pacing thread of a sender. Workers read and encode ahead of need, and this thread sends each
//! packet when it is due. It waits for a worker only if the symbols of the next packet are not
//! ready.

use super::answers::{Answers, Keys, ReturnPath, shown};
use super::carousel::NextInstance;
use super::emitted::Emitted;
use super::queue::SendQueue;
use super::renewal::HeadRenewal;
use super::runner::{Encoded, SendRunner, SentObject, Worker, WorkerQueues};
use crate::cancellation::CancellationToken;
use crate::error::Error;
use crate::event::{SendEvent, SendProgress};
use crate::outcome::Outcome;
use crate::report::SendReport;
use crate::reporting::Crowd;
use crate::seal::PacketSealer;
use crate::shared::unbounded;
use crossbeam_channel::{Receiver, TryRecvError, never};
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
        let answers = match (answers, sender.collection()) {
            (Some(path), Some(collection)) => {
                let signers = Arc::clone(collection.signers());
                Some(path.start(scope, signers, alarm.bell())?)
            }
            _ => None,
        };
        let mut runner = SendRunner::new(encoders, queues, spare_bytes, solving_window)
            .making_digests(makes_digests)
            .solving_on_losses(transmission.repairs_on_demand);
        runner.keys = Keys::new(answers.as_ref());
        let thread = PacingThread {
            clock: Clock::start(),
            alarm,
            core: Driver::new(sender, runner),
            queue: SendQueue::new(socket, sealer),
            source_symbols,
            instances,
            renewal,
            answers,
            solved,
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
    /// What receivers say, if they are asked.
    answers: Option<Answers>,
    solved: Arc<SolvedStore>,
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
            self.take_answers(emit)?;
            self.poll(now, emit)?;
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
                let collection = self.core.endpoint.collection();
                let crowd = self
                    .answers
                    .as_mut()
                    .zip(collection)
                    .map(|(answers, collection)| answers.end(now, collection, emit));
                return Ok(self.report(interrupted, elapsed, failure, crowd));
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

    /// Passes on what receivers have said.
    fn take_answers(&mut self, emit: &mut dyn FnMut(SendEvent)) -> Result<(), Error> {
        let taken = self.answers.as_ref().map(Answers::take).unwrap_or_default();
        for answer in taken {
            let now = self.now();
            let Driver { endpoint, runner, .. } = &mut self.core;
            answer.give(&mut runner.keys, |batch| endpoint.handle_datagrams(now, batch));
            self.poll(now, emit)?;
        }
        let now = self.now();
        if let (Some(answers), Some(collection)) =
            (&mut self.answers, self.core.endpoint.collection())
        {
            answers.show(now, collection, emit);
        }
        Ok(())
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
    fn poll(&mut self, now: Instant, emit: &mut dyn FnMut(SendEvent)) -> Result<(), Error> {
        loop {
            let Ok(effect) = self.core.poll(now, &DatagramBatch::EMPTY);
            match effect {
                Some(Effect::Transmit { to: Destination::Channel(channel), symbol }) => {
                    let (header, runner) = self.core.datagram();
                    self.queue.push(channel, header, symbol.as_ref(), &mut runner.prepared)?;
                }
                Some(Effect::Event(SenderEvent::Finished | SenderEvent::Over)) => {
                    self.ended = true;
                }
                // The runner has the reason of an object that is withdrawn.
                Some(Effect::Event(event)) => shown(event).into_iter().for_each(&mut *emit),
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
        crowd: Option<Arc<Crowd>>,
    ) -> SendReport {
        let start = if interrupted { Outcome::Interrupted } else { Outcome::Complete };
        let mut failures = self.core.runner.failures().to_vec();
        failures.extend(failure);
        let outcome = failures.iter().fold(start, |o, error| o.worst(error.outcome()));
        let summary = crowd.as_ref().map(|crowd| &crowd.summary);
        let lacks = summary.is_some_and(|s| s.expected.is_some() && !s.is_as_expected());
        let outcome = if lacks { outcome.worst(Outcome::ReceiversIncomplete) } else { outcome };
        let (stats, lost) = (self.core.endpoint.stats(), self.queue.lost);
        let (solved_bytes, scratch_bytes) =
            (self.solved.solved_bytes(), self.solved.scratch_bytes());
        SendReport { outcome, elapsed, stats, lost, failures, solved_bytes, scratch_bytes, crowd }
    }
}
