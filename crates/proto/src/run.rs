//! The driver core: polls an endpoint, runs its jobs, and returns what concerns others.
//!
//! Simulations, the threads of the `fontana` crate, real runs of the lab and tests differ in the
//! [`JobRunner`] and in what they do with [`Effect`]s.

use crate::channel::ChannelId;
use crate::datagram::DatagramBatch;
use crate::endpoint::{Destination, Endpoint, Output, SymbolId};
use crate::time::Instant;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Runs an endpoint's jobs.
pub trait JobRunner<Job> {
    /// The answer to a job.
    type Done;
    /// Why a driver cannot go on. A job that fails is a [`Self::Done`].
    type Error;

    /// Runs `job`; `batch` is what was handled just before, or empty. `None`: there is no
    /// answer, or it comes later by [`Endpoint::handle_done`].
    ///
    /// # Errors
    /// Why the driver cannot go on.
    fn run(
        &mut self,
        now: Instant,
        job: Job,
        batch: &DatagramBatch<'_>,
    ) -> Result<Option<Finished<Self::Done>>, Self::Error>;
}

/// What a job came to.
#[derive(Debug)]
pub struct Finished<Done> {
    /// What the endpoint is told.
    pub done: Done,
    /// How long the work takes in virtual time. Zero: the endpoint is told before anything else.
    pub after: Duration,
}

impl<Done> Finished<Done> {
    /// An answer without delay.
    pub const fn now(done: Done) -> Self {
        Self { done, after: Duration::ZERO }
    }
}

/// Names an answer that waits in a [`Driver`] until its time has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(u64);

/// What is left of an endpoint's outputs when its jobs are run.
#[derive(Debug)]
pub enum Effect<Event> {
    /// Send a datagram: [`Driver::header`], then the symbol.
    Transmit {
        /// Where to.
        to: Destination,
        /// The prepared symbol that follows the header, if any.
        symbol: Option<SymbolId>,
    },
    /// Join the channel's group.
    Join(ChannelId),
    /// Leave it.
    Leave(ChannelId),
    /// Report to the application.
    Event(Event),
    /// Call [`Driver::handle_finished`] when the time has passed.
    Later {
        /// Names the answer.
        ticket: Ticket,
        /// The time that the work takes.
        after: Duration,
    },
}

/// An endpoint and what runs its jobs.
#[derive(Debug)]
pub struct Driver<E: Endpoint, R> {
    /// The endpoint.
    pub endpoint: E,
    /// Runs its jobs.
    pub runner: R,
    header: Vec<u8>,
    /// Answers that the endpoint is told when it has no outputs left.
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

    /// The time that a [`Effect::Later`] asked for has passed.
    pub fn handle_finished(&mut self, now: Instant, Ticket(ticket): Ticket) {
        if let Some(done) = self.waiting.remove(&ticket) {
            self.endpoint.handle_done(now, done);
        }
    }

    /// The next effect; `batch` is what was handled just before, or empty. An endpoint
    /// is asked for all its outputs, then told one answer, and asked again.
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
