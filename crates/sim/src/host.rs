//! A node with an endpoint on it.

use crate::jobs::{HeardBytes, Jobs, Outcome};
use crate::topology::NodeId;
use crate::violation::RateCap;
use crate::violation::RateRule;
use fontana_proto::{
    ChannelId, ChannelSet, Datagram, Destination, Done, Endpoint, Event, Instant, Output, drain,
};
use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

/// What a host may do, and when it begins.
#[derive(Clone, Debug)]
pub struct HostConfig {
    /// When its endpoint is first asked what it wants to do.
    pub starts_at: Instant,
    /// What it may send at most; `None` if it may send nothing.
    pub sends: Option<RateCap>,
    /// The sources whose channels it joins: a channel that its endpoint joins stands for one
    /// source-specific group for each of them.
    pub sources: Arc<[NodeId]>,
    /// Bytes of IP and UDP headers that links are charged for each datagram it sends: 28 for IPv4,
    /// 48 for IPv6.
    pub packet_overhead: u32,
}

impl HostConfig {
    /// A sender that begins at once.
    pub fn sender(cap: RateCap) -> Self {
        Self { sends: Some(cap), ..Self::receiver([]) }
    }

    /// A receiver that begins at once.
    pub fn receiver(sources: impl Into<Arc<[NodeId]>>) -> Self {
        Self { starts_at: Instant::ZERO, sends: None, sources: sources.into(), packet_overhead: 28 }
    }

    /// The same, from `starts_at` on.
    pub fn starting_at(self, starts_at: Instant) -> Self {
        Self { starts_at, ..self }
    }
}

/// An endpoint, its driver, and what the node's kernel knows of them.
#[derive(Debug)]
pub(crate) struct Host<E, J> {
    pub(crate) endpoint: E,
    pub(crate) jobs: J,
    pub(crate) config: HostConfig,
    pub(crate) rate: Option<RateRule>,
    pub(crate) joined: ChannelSet,
    /// A crashed host is deaf and dumb.
    pub(crate) is_running: bool,
    /// Its clock is so much ahead of the run's.
    pub(crate) clock_ahead: Duration,
    /// Which life this is: what an earlier one had under way is void.
    pub(crate) life: u32,
    /// When it is going to be woken.
    pub(crate) armed: Instant,
    /// When it was woken last, and how often at that same moment.
    pub(crate) woken: (Instant, u32),
}

/// What an endpoint wants that concerns others.
#[derive(Debug)]
pub(crate) enum Effect {
    Transmit { channel: ChannelId, header: Box<[u8]>, symbol_bytes: u32 },
    Join(ChannelId),
    Leave(ChannelId),
    Tell(Event),
    Later(Outcome),
}

/// What a host's outputs are put down in; shared by all, so that none of it is allocated anew.
#[derive(Debug, Default)]
pub(crate) struct Desk {
    header: Vec<u8>,
    dones: VecDeque<Done>,
    pub(crate) effects: Vec<Effect>,
}

/// What an endpoint may have to say at one moment. A sender at 10 Gbit/s has 1 800 packets for the
/// 2 ms of its burst, and some tens of thousands of blocks to prepare.
const MAX_OUTPUTS: u32 = 1 << 20;
/// How often an endpoint may want to be woken at one moment.
pub(crate) const MAX_WAKES: u32 = 1_000;
pub(crate) const NEVER: Instant = Instant::from_nanos(u64::MAX);

impl<E: Endpoint, J: Jobs> Host<E, J> {
    pub(crate) fn new(endpoint: E, jobs: J, config: HostConfig) -> Self {
        Self {
            endpoint,
            jobs,
            rate: config.sends.map(RateRule::new),
            config,
            joined: ChannelSet::default(),
            is_running: false,
            clock_ahead: Duration::ZERO,
            life: 0,
            armed: NEVER,
            woken: (Instant::ZERO, 0),
        }
    }

    /// What its clock shows.
    pub(crate) fn clock(&self, now: Instant) -> Instant {
        now + self.clock_ahead
    }

    /// When its endpoint wants to be woken, by the run's clock.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.endpoint.poll_timeout().map(|due| due - self.clock_ahead)
    }

    pub(crate) fn hear(
        &mut self,
        now: Instant,
        datagram: &Datagram<'_>,
        zeros_from: usize,
        desk: &mut Desk,
    ) -> Result<(), &'static str> {
        self.endpoint.handle_datagram(self.clock(now), datagram);
        self.drain(now, HeardBytes { bytes: datagram.payload, zeros_from }, desk)
    }

    /// Lets the endpoint say all it has to say, and does its jobs, until there is nothing more.
    pub(crate) fn drain(
        &mut self,
        now: Instant,
        heard: HeardBytes<'_>,
        desk: &mut Desk,
    ) -> Result<(), &'static str> {
        let clock = self.clock(now);
        let Desk { header, dones, effects } = desk;
        let mut outputs = 0;
        loop {
            let jobs = &mut self.jobs;
            let flow = drain(&mut self.endpoint, clock, header, |output, header| {
                outputs += 1;
                if outputs > MAX_OUTPUTS {
                    return ControlFlow::Break("it never comes to an end");
                }
                let effect = match output {
                    Output::Job(job) => match jobs.carry_out(clock, job, heard) {
                        Ok(None) => return ControlFlow::Continue(()),
                        Ok(Some(outcome)) if outcome.after.is_zero() => {
                            dones.push_back(outcome.done);
                            return ControlFlow::Continue(());
                        }
                        Ok(Some(outcome)) => Effect::Later(outcome),
                        Err(reason) => return ControlFlow::Break(reason),
                    },
                    Output::Transmit { to: Destination::Channel(channel), symbol } => {
                        let symbol_bytes = symbol.map_or(0, |symbol| jobs.symbol_bytes(&symbol));
                        Effect::Transmit { channel, header: header.into(), symbol_bytes }
                    }
                    Output::Join(channel) => Effect::Join(channel),
                    Output::Leave(channel) => Effect::Leave(channel),
                    Output::Event(event) => Effect::Tell(event),
                };
                effects.push(effect);
                ControlFlow::Continue(())
            });
            if let ControlFlow::Break(reason) = flow {
                return Err(reason);
            }
            let Some(done) = dones.pop_front() else { return Ok(()) };
            self.endpoint.handle_done(clock, done);
        }
    }
}

/// One of two kinds of endpoints, so that a run can hold both and still be asked about each.
#[derive(Debug)]
pub enum Either<A, B> {
    /// The one.
    Left(A),
    /// The other.
    Right(B),
}

impl<A, B> Either<A, B> {
    /// The one, if that is what it is.
    pub fn left(&self) -> Option<&A> {
        match self {
            Self::Left(left) => Some(left),
            Self::Right(_) => None,
        }
    }

    /// The other, if that is what it is.
    pub fn right(&self) -> Option<&B> {
        match self {
            Self::Left(_) => None,
            Self::Right(right) => Some(right),
        }
    }
}

impl<A: Endpoint, B: Endpoint> Endpoint for Either<A, B> {
    fn handle_datagram(&mut self, now: Instant, datagram: &Datagram<'_>) {
        match self {
            Self::Left(left) => left.handle_datagram(now, datagram),
            Self::Right(right) => right.handle_datagram(now, datagram),
        }
    }

    fn handle_done(&mut self, now: Instant, done: Done) {
        match self {
            Self::Left(left) => left.handle_done(now, done),
            Self::Right(right) => right.handle_done(now, done),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        match self {
            Self::Left(left) => left.handle_timeout(now),
            Self::Right(right) => right.handle_timeout(now),
        }
    }

    fn poll_output(&mut self, now: Instant, header: &mut Vec<u8>) -> Option<Output> {
        match self {
            Self::Left(left) => left.poll_output(now, header),
            Self::Right(right) => right.poll_output(now, header),
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Self::Left(left) => left.poll_timeout(),
            Self::Right(right) => right.poll_timeout(),
        }
    }
}
