//! The pacing thread of a sender: it sends each packet when it is due. What the packets are made of
//! is prepared ahead of need by other threads; it waits for them only if the symbols of the next
//! packet are not ready.

use super::answers::{Answers, Keys, shown};
use super::emitted::Emitted;
use super::prepared::PreparedSymbols;
use super::queue::SendQueue;
use crate::cancellation::CancellationToken;
use crate::error::Error;
use crate::event::{SendEvent, SendProgress};
use crate::outcome::Outcome;
use crate::report::SendReport;
use crate::reporting::Crowd;
use fontana_net::{Alarm, Clock};
use fontana_proto::{
    Collection, DatagramBatch, Destination, Driver, Effect, Endpoint, Instant, JobRunner, SendDone,
    SendJob, Sender, SenderEvent, SenderStats, StreamSender,
};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

/// Interval between progress events.
const PROGRESS_EVERY: Duration = Duration::from_millis(200);
/// Longest time until a stop request is noticed.
const STOP_LATENCY: Duration = Duration::from_millis(100);
/// A wait that nothing interrupts.
const NEAR: Duration = Duration::from_millis(1);

/// An endpoint that sends.
pub(super) trait SendingEndpoint:
    Endpoint<Job = SendJob, Done = SendDone, Event = SenderEvent>
{
    fn collection(&mut self) -> Option<&mut Collection>;
    fn stats(&self) -> SenderStats;
}

impl SendingEndpoint for Sender {
    fn collection(&mut self) -> Option<&mut Collection> {
        self.collection()
    }

    fn stats(&self) -> SenderStats {
        self.stats()
    }
}

impl SendingEndpoint for StreamSender {
    fn collection(&mut self) -> Option<&mut Collection> {
        self.collection()
    }

    fn stats(&self) -> SenderStats {
        self.stats()
    }
}

/// A runner of its jobs, with the symbols that it sends and the keys that it needs.
pub(super) trait SendingRunner:
    JobRunner<SendJob, Done = SendDone, Error = Infallible>
{
    fn prepared(&mut self) -> &mut PreparedSymbols;
    fn keys(&mut self) -> &mut Keys;
}

/// What one kind of content adds: where its symbols come from, and when it ends.
pub(super) trait Supply {
    type Endpoint: SendingEndpoint;
    type Runner: SendingRunner;
    /// Gives the endpoint what is ready.
    fn supply(&mut self, now: Instant, core: &mut Core<Self>) -> Result<(), Error>;
    /// Handles an event of the endpoint.
    fn on_event(&mut self, event: &SenderEvent, core: &mut Core<Self>);
    /// The application stops the session.
    fn interrupt(&mut self, core: &mut Core<Self>);
    /// Whether the session is over.
    fn has_ended(&self) -> bool;
    /// Whether the application has ended it.
    fn is_interrupted(&self) -> bool;
    /// Whether the endpoint could take something that is not ready yet.
    fn is_awaited(&self, core: &Core<Self>) -> bool;
    /// What has failed so far.
    fn failures<'a>(&'a self, core: &'a Core<Self>) -> &'a [Arc<Error>];
    /// The progress, with this of it.
    fn progress(&self, core: &Core<Self>, progress: SendProgress) -> SendProgress;
    /// The report, with this of it.
    fn report(&self, report: SendReport) -> SendReport;
}

/// The endpoint and its runner.
pub(super) type Core<S> = Driver<<S as Supply>::Endpoint, <S as Supply>::Runner>;

/// The thread that sends.
pub(super) struct PacingThread<S: Supply> {
    pub(super) clock: Clock,
    /// Rung when something is ready.
    pub(super) alarm: Alarm,
    pub(super) queue: SendQueue,
    pub(super) core: Core<S>,
    pub(super) supply: S,
    /// What receivers say, if they are asked.
    pub(super) answers: Option<Answers>,
}

impl<S: Supply> PacingThread<S> {
    /// Sends until everything was sent, nothing is left to send, or `stop` is cancelled.
    pub(super) fn run(
        mut self,
        stop: &CancellationToken,
        emit: &mut dyn FnMut(SendEvent),
    ) -> Result<SendReport, Error> {
        let (mut last_progress, mut emitted) = (Duration::ZERO, Emitted::new(&self.queue));
        loop {
            let now = self.now();
            self.supply.supply(now, &mut self.core)?;
            self.take_answers(emit)?;
            self.send(emit)?;
            if stop.is_cancelled() {
                self.supply.interrupt(&mut self.core);
            }
            let (elapsed, has_ended) =
                (Duration::from_nanos(now.as_nanos()), self.supply.has_ended());
            if has_ended || elapsed >= last_progress + PROGRESS_EVERY {
                last_progress = elapsed;
                let failures = self.supply.failures(&self.core);
                emitted.update(failures, &self.queue, self.progress(elapsed), emit);
            }
            if has_ended {
                let failure = emitted.end(&self.queue, elapsed, emit);
                let crowd = self.end_answers(now, emit);
                return Ok(self.report(elapsed, failure, crowd));
            }
            self.wait();
        }
    }

    fn now(&self) -> Instant {
        Instant::from_nanos(self.clock.now_nanos())
    }

    /// Passes on what receivers have said.
    fn take_answers(&mut self, emit: &mut dyn FnMut(SendEvent)) -> Result<(), Error> {
        let taken = self.answers.as_ref().map(Answers::take).unwrap_or_default();
        for answer in taken {
            let now = self.now();
            let Driver { endpoint, runner, .. } = &mut self.core;
            answer.give(runner.keys(), |batch| endpoint.handle_datagrams(now, batch));
            self.send(emit)?;
        }
        let now = self.now();
        if let (Some(answers), Some(collection)) =
            (&mut self.answers, self.core.endpoint.collection())
        {
            answers.show(now, collection, emit);
        }
        Ok(())
    }

    /// What receivers have reported until now.
    fn end_answers(&mut self, now: Instant, emit: &mut dyn FnMut(SendEvent)) -> Option<Arc<Crowd>> {
        let collection = self.core.endpoint.collection()?;
        Some(self.answers.as_mut()?.end(now, collection, emit))
    }

    /// Sends what is due.
    fn send(&mut self, emit: &mut dyn FnMut(SendEvent)) -> Result<(), Error> {
        let now = self.now();
        loop {
            let Ok(effect) = self.core.poll(now, &DatagramBatch::EMPTY);
            match effect {
                Some(Effect::Transmit { to: Destination::Channel(channel), symbol }) => {
                    let (header, runner) = self.core.datagram();
                    self.queue.push(channel, header, symbol.as_ref(), runner.prepared())?;
                }
                Some(Effect::Event(event)) => {
                    self.supply.on_event(&event, &mut self.core);
                    shown(event).into_iter().for_each(&mut *emit);
                }
                // A sender uses channels only, and joins none.
                Some(
                    Effect::Transmit { .. }
                    | Effect::Join(_)
                    | Effect::Leave(_)
                    | Effect::Later { .. },
                ) => {}
                None => {
                    let prepared = self.core.runner.prepared();
                    self.queue.flush(prepared)?;
                    prepared.recycle();
                    return Ok(());
                }
            }
        }
    }

    /// Waits until the next packet is due. If that is far, or something is not ready, then also
    /// until another thread rings.
    fn wait(&mut self) {
        let now = self.now();
        let latest = now + STOP_LATENCY;
        let due = self.core.endpoint.poll_timeout();
        match due {
            Some(due) if due < now + NEAR && !self.supply.is_awaited(&self.core) => {
                self.clock.sleep_until(due.as_nanos());
            }
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

    fn progress(&self, elapsed: Duration) -> SendProgress {
        let stats = self.core.endpoint.stats();
        let (source_symbols, lost) = (stats.source_symbols, self.queue.lost);
        let progress = SendProgress { elapsed, stats, source_symbols, lost, first_sent: true };
        self.supply.progress(&self.core, progress)
    }

    /// `failure`: no packet has left this host.
    fn report(
        mut self,
        elapsed: Duration,
        failure: Option<Arc<Error>>,
        crowd: Option<Arc<Crowd>>,
    ) -> SendReport {
        let start = match self.supply.is_interrupted() {
            true => Outcome::Interrupted,
            false => Outcome::Complete,
        };
        let mut failures = self.supply.failures(&self.core).to_vec();
        failures.extend(failure);
        let outcome = failures.iter().fold(start, |o, error| o.worst(error.outcome()));
        let summary = crowd.as_ref().map(|crowd| &crowd.summary);
        let lacks = summary.is_some_and(|s| s.expected.is_some() && !s.is_as_expected());
        let outcome = if lacks { outcome.worst(Outcome::ReceiversIncomplete) } else { outcome };
        let (stats, lost) = (self.core.endpoint.stats(), self.queue.lost);
        let (solved_bytes, scratch_bytes) = (0, 0);
        let receivers = self.core.endpoint.collection().map(|it| Box::new(it.take_receivers()));
        self.supply.report(SendReport {
            outcome,
            elapsed,
            stats,
            lost,
            failures,
            solved_bytes,
            scratch_bytes,
            crowd,
            receivers,
        })
    }
}
