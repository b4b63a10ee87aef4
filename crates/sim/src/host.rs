//! Hosts: what a simulation sees of a driver.

use crate::runner::{Delivery, SimulatedRunner};
use crate::topology::NodeId;
use crate::violation::{RateCap, RateRule};
use fontana_proto::{
    ChannelId, ChannelSet, DatagramBatch, Destination, Driver, Effect, Endpoint, Instant,
    JobRunner, ReceiverEvent, SenderEvent, SymbolId, Ticket,
};
use std::sync::Arc;
use std::time::Duration;

/// A host on a node: a [`Driver`], or a type with the same behavior. Jobs and their answers are not
/// part of it, so that one run can have hosts of several kinds.
pub trait Host {
    /// Events that it reports to observers.
    type Event: HostEvent;

    /// Handles a datagram that has arrived.
    fn handle_delivery(&mut self, now: Instant, delivery: &Delivery<'_>);
    /// Handles the end of a job that takes time: [`Effect::Later`] named its `ticket`.
    fn handle_finished(&mut self, now: Instant, ticket: Ticket);
    /// Handles a timeout, when [`poll_timeout`](Self::poll_timeout) is due.
    fn handle_timeout(&mut self, now: Instant);
    /// When `handle_timeout` must be called; `None` if no timeout is set.
    fn poll_timeout(&self) -> Option<Instant>;
    /// The next effect. `batch` is the one that was handled just before, or empty.
    ///
    /// # Errors
    /// A job of the endpoint was invalid; the text says why.
    fn poll(
        &mut self,
        now: Instant,
        batch: &DatagramBatch<'_>,
    ) -> Result<Option<Effect<Self::Event>>, &'static str>;
    /// The header of the datagram, after [`Effect::Transmit`].
    fn header(&self) -> &[u8];
    /// Number of bytes of a prepared symbol.
    fn symbol_bytes(&self, symbol: &SymbolId) -> u32;
    /// Appends its bytes to the header, if the run is on bytes.
    fn write_symbol(&self, symbol: &SymbolId, header: &mut Vec<u8>);
}

impl<E, R> Host for Driver<E, R>
where
    E: Endpoint<Event: HostEvent>,
    R: JobRunner<E::Job, Done = E::Done, Error = &'static str> + SimulatedRunner,
{
    type Event = E::Event;

    #[inline]
    fn handle_delivery(&mut self, now: Instant, delivery: &Delivery<'_>) {
        self.runner.begin_delivery(delivery);
        self.endpoint.handle_datagrams(now, &delivery.batch);
    }

    fn handle_finished(&mut self, now: Instant, ticket: Ticket) {
        Driver::handle_finished(self, now, ticket);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.endpoint.handle_timeout(now);
    }

    #[inline]
    fn poll_timeout(&self) -> Option<Instant> {
        self.endpoint.poll_timeout()
    }

    #[inline]
    fn poll(
        &mut self,
        now: Instant,
        batch: &DatagramBatch<'_>,
    ) -> Result<Option<Effect<E::Event>>, &'static str> {
        Driver::poll(self, now, batch)
    }

    fn header(&self) -> &[u8] {
        Driver::header(self)
    }

    fn symbol_bytes(&self, symbol: &SymbolId) -> u32 {
        self.runner.symbol_bytes(symbol)
    }

    fn write_symbol(&self, symbol: &SymbolId, header: &mut Vec<u8>) {
        self.runner.write_symbol(symbol, header);
    }
}

/// An event of a host.
pub trait HostEvent {
    /// The kind of event, for the digest of a run. Its other fields follow from earlier events.
    fn digest_number(&self) -> u64;
}

impl HostEvent for SenderEvent {
    fn digest_number(&self) -> u64 {
        match self {
            Self::Finished => 1,
            _ => 0,
        }
    }
}

impl HostEvent for ReceiverEvent {
    fn digest_number(&self) -> u64 {
        match self {
            Self::BlockSolved { block } => 2 << 32 | u64::from(block.sbn.0),
            Self::BlockVerified { block } => 3 << 32 | u64::from(block.sbn.0),
            Self::BlockCorrupt { block, .. } => 4 << 32 | u64::from(block.sbn.0),
            Self::ReceptionComplete => 5,
            Self::Complete => 6,
            Self::GivenUp { .. } => 7,
            Self::Silence { .. } => 8,
            _ => 0,
        }
    }
}

/// A host or an event of one of two kinds.
#[derive(Clone, Debug)]
pub enum Either<A, B> {
    /// The first kind.
    Left(A),
    /// The second kind.
    Right(B),
}

impl<A, B> Either<A, B> {
    /// The value if it is of the first kind.
    pub fn left(&self) -> Option<&A> {
        match self {
            Self::Left(left) => Some(left),
            Self::Right(_) => None,
        }
    }

    /// The value if it is of the second kind.
    pub fn right(&self) -> Option<&B> {
        match self {
            Self::Left(_) => None,
            Self::Right(right) => Some(right),
        }
    }
}

impl<A: HostEvent, B: HostEvent> HostEvent for Either<A, B> {
    fn digest_number(&self) -> u64 {
        match self {
            Self::Left(left) => left.digest_number(),
            Self::Right(right) => right.digest_number(),
        }
    }
}

impl<A: Host, B: Host> Host for Either<A, B> {
    type Event = Either<A::Event, B::Event>;

    #[inline]
    fn handle_delivery(&mut self, now: Instant, delivery: &Delivery<'_>) {
        match self {
            Self::Left(left) => left.handle_delivery(now, delivery),
            Self::Right(right) => right.handle_delivery(now, delivery),
        }
    }

    fn handle_finished(&mut self, now: Instant, ticket: Ticket) {
        match self {
            Self::Left(left) => left.handle_finished(now, ticket),
            Self::Right(right) => right.handle_finished(now, ticket),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        match self {
            Self::Left(left) => left.handle_timeout(now),
            Self::Right(right) => right.handle_timeout(now),
        }
    }

    #[inline]
    fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Self::Left(left) => left.poll_timeout(),
            Self::Right(right) => right.poll_timeout(),
        }
    }

    #[inline]
    fn poll(
        &mut self,
        now: Instant,
        batch: &DatagramBatch<'_>,
    ) -> Result<Option<Effect<Self::Event>>, &'static str> {
        Ok(match self {
            Self::Left(left) => left.poll(now, batch)?.map(|e| with_event(e, Either::Left)),
            Self::Right(right) => right.poll(now, batch)?.map(|e| with_event(e, Either::Right)),
        })
    }

    fn header(&self) -> &[u8] {
        match self {
            Self::Left(left) => left.header(),
            Self::Right(right) => right.header(),
        }
    }

    fn symbol_bytes(&self, symbol: &SymbolId) -> u32 {
        match self {
            Self::Left(left) => left.symbol_bytes(symbol),
            Self::Right(right) => right.symbol_bytes(symbol),
        }
    }

    fn write_symbol(&self, symbol: &SymbolId, header: &mut Vec<u8>) {
        match self {
            Self::Left(left) => left.write_symbol(symbol, header),
            Self::Right(right) => right.write_symbol(symbol, header),
        }
    }
}

/// The same effect, with another type of event.
fn with_event<A, B>(effect: Effect<A>, change: impl FnOnce(A) -> B) -> Effect<B> {
    match effect {
        Effect::Transmit { to, symbol } => Effect::Transmit { to, symbol },
        Effect::Join(channel) => Effect::Join(channel),
        Effect::Leave(channel) => Effect::Leave(channel),
        Effect::Event(event) => Effect::Event(change(event)),
        Effect::Later { ticket, after } => Effect::Later { ticket, after },
    }
}

/// Configuration of a host on its node.
#[derive(Clone, Debug)]
pub struct HostConfig {
    /// When it is first polled.
    pub starts_at: Instant,
    /// Its rate limit; `None` if it may send nothing.
    pub sends: Option<RateCap>,
    /// The sources whose channels it joins. Joining a channel joins one source-specific group of
    /// each.
    pub sources: Arc<[NodeId]>,
    /// The other hosts of its site: those that hear what it sends to [`Destination::Site`], and
    /// that it hears.
    pub site: Arc<[NodeId]>,
    /// Links that what it sends to its site may cross (its TTL); `None`: any number.
    pub site_hops: Option<u8>,
    /// Bytes of IP and UDP headers that links are charged for each datagram it sends: 28 for IPv4,
    /// 48 for IPv6.
    pub packet_overhead: u32,
}

impl HostConfig {
    /// A sender that starts at time 0.
    pub fn sender(cap: RateCap) -> Self {
        Self { sends: Some(cap), ..Self::receiver([]) }
    }

    /// A receiver that starts at time 0.
    pub fn receiver(sources: impl Into<Arc<[NodeId]>>) -> Self {
        let (starts_at, site) = (Instant::ZERO, Arc::default());
        let (sends, site_hops) = (None, None);
        Self { starts_at, sends, sources: sources.into(), site, site_hops, packet_overhead: 28 }
    }

    /// A receiver that may also send, within a rate limit. It starts at time 0.
    pub fn receiver_that_reports(sources: impl Into<Arc<[NodeId]>>, cap: RateCap) -> Self {
        Self { sends: Some(cap), ..Self::receiver(sources) }
    }

    /// The same receiver, at a site with these other hosts.
    pub fn in_site(self, site: impl Into<Arc<[NodeId]>>) -> Self {
        Self { site: site.into(), ..self }
    }

    /// The same receiver, whose messages to its site cross so many links at most.
    pub fn within(self, hops: u8) -> Self {
        Self { site_hops: Some(hops), ..self }
    }

    /// The same configuration with another start.
    pub fn starting_at(self, starts_at: Instant) -> Self {
        Self { starts_at, ..self }
    }
}

/// A host on its node, with what its operating system would hold.
#[derive(Debug)]
pub(crate) struct Attached<H> {
    pub(crate) host: H,
    pub(crate) config: HostConfig,
    pub(crate) rate: Option<RateRule>,
    pub(crate) joined: ChannelSet,
    /// A crashed host neither receives nor sends.
    pub(crate) is_running: bool,
    /// How far its clock is ahead of the run's.
    pub(crate) clock_ahead: Duration,
    /// Number of this run of the host. Events of earlier runs are ignored.
    pub(crate) run: u32,
    /// When its next timeout is scheduled.
    pub(crate) armed: Instant,
    /// When it was woken last.
    pub(crate) woken_at: Instant,
    /// How often it was woken at that moment.
    pub(crate) wakes: u32,
}

/// A datagram that a host sends.
#[derive(Debug)]
pub(crate) struct Transmission {
    pub(crate) to: Destination,
    pub(crate) header: Box<[u8]>,
    /// Bytes of the symbol behind the header.
    pub(crate) symbol_bytes: u32,
}

/// An effect of a host, recorded until it is carried out.
#[derive(Debug)]
pub(crate) enum Recorded<Event> {
    Transmit(Transmission),
    Join(ChannelId),
    Leave(ChannelId),
    Event(Event),
    Later { ticket: Ticket, after: Duration },
}

/// Most effects of a host at one time. A late sender at 10 Gbit/s catches up with 24 000 packets.
const MAX_EFFECTS: u32 = 1 << 20;
/// Most timeouts of a host at one time.
pub(crate) const MAX_WAKES: u32 = 1_000;
pub(crate) const NEVER: Instant = Instant::from_nanos(u64::MAX);

impl<H: Host> Attached<H> {
    pub(crate) fn new(host: H, config: HostConfig) -> Self {
        Self {
            host,
            rate: config.sends.map(RateRule::new),
            config,
            joined: ChannelSet::default(),
            is_running: false,
            clock_ahead: Duration::ZERO,
            run: 0,
            armed: NEVER,
            woken_at: Instant::ZERO,
            wakes: 0,
        }
    }

    /// The time by the host's clock.
    pub(crate) fn clock(&self, now: Instant) -> Instant {
        now + self.clock_ahead
    }

    /// When its timeout is due, by the run's clock.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.host.poll_timeout().map(|due| due - self.clock_ahead)
    }

    /// Notes that it is woken; returns how often it has been at this moment.
    pub(crate) fn count_wake(&mut self, now: Instant) -> u32 {
        self.wakes = if self.woken_at == now { self.wakes + 1 } else { 1 };
        self.woken_at = now;
        self.wakes
    }

    pub(crate) fn receive(
        &mut self,
        now: Instant,
        delivery: &Delivery<'_>,
        outbox: &mut Vec<Recorded<H::Event>>,
    ) -> Result<(), &'static str> {
        self.host.handle_delivery(self.clock(now), delivery);
        self.record(now, &delivery.batch, outbox)
    }

    /// Polls the host until it has no further effect, and records all of them.
    pub(crate) fn record(
        &mut self,
        now: Instant,
        batch: &DatagramBatch<'_>,
        outbox: &mut Vec<Recorded<H::Event>>,
    ) -> Result<(), &'static str> {
        let clock = self.clock(now);
        for _ in 0..MAX_EFFECTS {
            let Some(effect) = self.host.poll(clock, batch)? else { return Ok(()) };
            outbox.push(match effect {
                Effect::Transmit { to, symbol } => {
                    let mut header = self.host.header().to_vec();
                    let mut symbol_bytes = 0;
                    if let Some(symbol) = symbol {
                        symbol_bytes = self.host.symbol_bytes(&symbol);
                        self.host.write_symbol(&symbol, &mut header);
                    }
                    let header = header.into_boxed_slice();
                    Recorded::Transmit(Transmission { to, header, symbol_bytes })
                }
                Effect::Join(channel) => Recorded::Join(channel),
                Effect::Leave(channel) => Recorded::Leave(channel),
                Effect::Event(event) => Recorded::Event(event),
                Effect::Later { ticket, after } => Recorded::Later { ticket, after },
            });
        }
        Err("its effects never come to an end")
    }
}
