//! The driver core: polls an endpoint, runs its jobs, and returns the other outputs.
//!
//! Simulations, the threads of the `fontana` crate, real runs of the lab and tests differ in the
//! [`JobRunner`] and in how they handle [`Effect`]s.

use crate::channel::ChannelId;
use crate::datagram::DatagramBatch;
use crate::endpoint::{Destination, Endpoint, Output, SymbolId};
use crate::time::Instant;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

pub mod memory;

/// Runs an endpoint's jobs.
pub trait JobRunner<Job> {
    /// The answer to a job.
    type Done;
    /// Why a driver cannot continue. A job that fails is a [`Self::Done`].
    type Error;

    /// Runs `job`; `batch` is the batch that was handled last, or empty. `None`: there is no
    /// answer, or it comes later by [`Endpoint::handle_done`].
    ///
    /// # Errors
    /// Why the driver cannot continue.
    fn run(
        &mut self,
        now: Instant,
        job: Job,
        batch: &DatagramBatch<'_>,
    ) -> Result<Option<Finished<Self::Done>>, Self::Error>;
}

/// The result of a job.
#[derive(Debug)]
pub struct Finished<Done> {
    /// The answer for the endpoint.
    pub done: Done,
    /// Virtual time that the work takes. Zero: the endpoint gets the answer before anything else.
    pub after: Duration,
}

impl<Done> Finished<Done> {
    /// An answer without delay.
    pub const fn now(done: Done) -> Self {
        Self { done, after: Duration::ZERO }
    }
}

/// Identifies an answer that waits in a [`Driver`] for its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(u64);

/// An output of an endpoint that is not a job.
#[derive(Debug)]
pub enum Effect<Event> {
    /// Send a datagram: [`Driver::header`], then the symbol.
    Transmit {
        /// The destination.
        to: Destination,
        /// The prepared symbol that follows the header, if any.
        symbol: Option<SymbolId>,
    },
    /// Join the channel's group.
    Join(ChannelId),
    /// Leave the channel's group.
    Leave(ChannelId),
    /// Report to the application.
    Event(Event),
    /// Call [`Driver::handle_finished`] when the time has passed.
    Later {
        /// The answer.
        ticket: Ticket,
        /// The time that the work takes.
        after: Duration,
    },
}

/// An endpoint and its job runner.
#[derive(Debug)]
pub struct Driver<E: Endpoint, R> {
    /// The endpoint.
    pub endpoint: E,
    /// The job runner.
    pub runner: R,
    header: Vec<u8>,
    /// Answers that the endpoint gets when it has no outputs left.
    answers: VecDeque<E::Done>,
    /// Answers whose work takes time, by ticket.
    waiting: BTreeMap<u64, E::Done>,
    next_ticket: u64,
}

impl<E: Endpoint, R: JobRunner<E::Job, Done = E::Done>> Driver<E, R> {
    /// A driver of an endpoint that has not been polled yet.
    pub fn new(endpoint: E, runner: R) -> Self {
        Self {
            endpoint,
            runner,
            header: Vec::new(),
            answers: VecDeque::new(),
            waiting: BTreeMap::new(),
            next_ticket: 0,
        }
    }

    /// The header of the datagram, after [`Effect::Transmit`].
    pub fn header(&self) -> &[u8] {
        &self.header
    }

    /// The header of the datagram, and the job runner, which has its symbol.
    pub fn datagram(&mut self) -> (&[u8], &mut R) {
        (&self.header, &mut self.runner)
    }

    /// Passes on the answer of an [`Effect::Later`] whose time has passed.
    pub fn handle_finished(&mut self, now: Instant, Ticket(ticket): Ticket) {
        if let Some(done) = self.waiting.remove(&ticket) {
            self.endpoint.handle_done(now, done);
        }
    }

    /// The next effect; `batch` is the batch that was handled last, or empty. All outputs of the
    /// endpoint come first, then it gets one answer, and its outputs are polled again.
    ///
    /// # Errors
    /// As [`JobRunner::run`].
    #[inline]
    pub fn poll(
        &mut self,
        now: Instant,
        batch: &DatagramBatch<'_>,
    ) -> Result<Option<Effect<E::Event>>, R::Error> {
        loop {
            self.header.clear();
            let effect = match self.endpoint.poll_output(now, &mut self.header) {
                None => match self.answers.pop_front() {
                    Some(done) => {
                        self.endpoint.handle_done(now, done);
                        continue;
                    }
                    None => return Ok(None),
                },
                Some(Output::Job(job)) => match self.runner.run(now, job, batch)? {
                    None => continue,
                    Some(Finished { done, after }) if after.is_zero() => {
                        self.answers.push_back(done);
                        continue;
                    }
                    Some(Finished { done, after }) => {
                        let ticket = self.next_ticket;
                        self.next_ticket += 1;
                        self.waiting.insert(ticket, done);
                        Effect::Later { ticket: Ticket(ticket), after }
                    }
                },
                Some(Output::Transmit { to, symbol }) => Effect::Transmit { to, symbol },
                Some(Output::Join(channel)) => Effect::Join(channel),
                Some(Output::Leave(channel)) => Effect::Leave(channel),
                Some(Output::Event(event)) => Effect::Event(event),
            };
            return Ok(Some(effect));
        }
    }
}
