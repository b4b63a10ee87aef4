//! A run: hosts on a network, in virtual time.

use crate::host::{Attached, Host, HostConfig, HostEvent, MAX_WAKES, NEVER, Recorded};
use crate::link::Link;
use crate::multicast::{Membership, Multicast, SITE, SourceTree};
use crate::observe::Observer;
use crate::packet::{Burst, PayloadBuffer};
use crate::queue::{DueEvent, EventQueue};
use crate::topology::{LinkId, NodeId, Topology};
use crate::trace::{Note, Trace};
use crate::violation::Violation;
use fontana_proto::{ChannelId, DatagramBatch, Instant, SplitMix64, Ticket};
use std::collections::BTreeMap;
use std::time::Duration;

mod fault;
mod flow;
mod forward;

pub use fault::Fault;
use flow::{Flow, Segment};
pub use flow::{FlowId, FlowStats, Traffic};

/// Seed and limits of a run.
#[derive(Clone, Copy, Debug)]
pub struct SimulationConfig {
    /// Seed of all random numbers. Each link draws from a stream of its own.
    pub seed: u64,
    /// Most events that may be scheduled at the same time.
    pub max_events: usize,
    /// Which hops forward multicast.
    pub multicast: Multicast,
}

impl SimulationConfig {
    /// With the default limits.
    pub fn new(seed: u64) -> Self {
        // 16 million events take 1.5 GB. A run of 100 000 receivers schedules fewer than 2 000 at
        // the same time.
        Self { seed, max_events: 1 << 24, multicast: Multicast::Pruned }
    }
}

/// Counters of a run, never reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SimulationStats {
    /// Events that were processed.
    pub events: u64,
    /// Datagrams that hosts sent.
    pub sent: u64,
    /// Datagrams that were delivered, counted once for each host.
    pub deliveries: u64,
    /// Datagrams that links did not pass.
    pub drops: u64,
    /// Most events that were scheduled at the same time.
    pub most_events: usize,
}

/// Hosts on a network, in virtual time.
///
/// `H` is the type of the hosts ([`Either`](crate::Either) if there are two kinds), `O` observes
/// them. Two runs did the same if their [`digest`](Self::digest)s are equal.
#[derive(Debug)]
pub struct Simulation<H: Host, O = ()> {
    config: SimulationConfig,
    topology: Topology,
    links: Vec<Link>,
    /// One for each link.
    random: Vec<SplitMix64>,
    queue: EventQueue<Event>,
    hosts: Vec<Option<Box<Attached<H>>>>,
    trees: Vec<SourceTree>,
    tree_of: BTreeMap<NodeId, u32>,
    /// The next hop of each node towards a destination of unicast datagrams.
    next_hops: BTreeMap<NodeId, Vec<Option<LinkId>>>,
    flows: Vec<Flow>,
    /// Effects of a host until they are carried out; a field, so that it is allocated once.
    outbox: Vec<Recorded<H::Event>>,
    payloads: PayloadBuffer,
    trace: Trace,
    stats: SimulationStats,
    observer: O,
    violation: Option<Violation>,
}

/// A multicast group: the tree of its source, and the channel.
#[derive(Clone, Copy, Debug)]
struct GroupId {
    tree: u32,
    channel: ChannelId,
}

#[derive(Debug)]
enum Event {
    /// A host starts.
    Start { node: NodeId, run: u32 },
    /// A host's timeout is due.
    Wake { node: NodeId },
    /// A job that takes time is finished.
    Finished { node: NodeId, run: u32, ticket: Ticket },
    /// A burst arrives at the far ends of all hops of a fan.
    Fan { group: GroupId, from: NodeId, fan: u32, entered: Instant, burst: Burst },
    /// A packet arrives at the far end of a hop.
    Hop { group: GroupId, to: NodeId, burst: Burst },
    /// A unicast datagram arrives at a node, on its way to `to`.
    Unicast { to: NodeId, at: NodeId, burst: Burst },
    /// A datagram arrives at a node, on its way to the router below which it is multicast.
    Subcast { group: GroupId, router: NodeId, at: NodeId, burst: Burst },
    /// A graft or prune takes effect.
    Settle { group: GroupId, node: NodeId, epoch: u32 },
    /// A flow starts, or its timer is due.
    FlowWake { flow: FlowId },
    /// A segment of a flow arrives at its next hop.
    Segment { flow: FlowId, hop: u32, segment: Segment, bytes: u32 },
}

impl<H: Host, O: Observer<H::Event>> Simulation<H, O> {
    /// A run at time 0, without hosts.
    pub fn new(topology: Topology, config: SimulationConfig, observer: O) -> Self {
        let links = topology.edges().iter().map(|edge| Link::new(edge.config.clone())).collect();
        let streams = 1..=topology.edges().len() as u64;
        Self {
            config,
            links,
            random: streams.map(|stream| SplitMix64::new(config.seed, stream)).collect(),
            queue: EventQueue::new(),
            hosts: (0..topology.node_count()).map(|_| None).collect(),
            topology,
            trees: Vec::new(),
            tree_of: BTreeMap::new(),
            next_hops: BTreeMap::new(),
            flows: Vec::new(),
            outbox: Vec::new(),
            payloads: PayloadBuffer::default(),
            trace: Trace::new(config.seed),
            stats: SimulationStats::default(),
            observer,
            violation: None,
        }
    }

    /// Puts a host on a node, and removes the one that was there.
    ///
    /// # Panics
    /// If the network has no such node.
    pub fn attach(&mut self, node: NodeId, host: H, config: HostConfig) {
        self.leave_all(node);
        let place = &mut self.hosts[node.index()];
        let run = place.as_ref().map_or(0, |before| before.run + 1);
        let starts_at = config.starts_at;
        *place = Some(Box::new(Attached { run, ..Attached::new(host, config) }));
        self.queue.schedule(starts_at, Event::Start { node, run });
    }

    /// Processes all events up to `until`.
    ///
    /// # Errors
    /// The first [`Violation`], after which the run processes no event.
    pub fn run_until(&mut self, until: Instant) -> Result<(), Violation> {
        while self.violation.is_none() {
            let Some(DueEvent { at: now, event }) = self.queue.pop_until(until) else { break };
            self.stats.events += 1;
            self.process(now, event);
            let waiting = self.queue.len();
            self.stats.most_events = self.stats.most_events.max(waiting);
            if waiting > self.config.max_events {
                self.violate(Violation::Events { events: waiting, at: now });
            }
        }
        self.queue.rest_until(until);
        self.violation.map_or(Ok(()), Err)
    }

    /// Runs until `done` returns true, which is called once a second, or until `limit`. Returns
    /// whether it was done.
    ///
    /// # Errors
    /// As [`run_until`](Self::run_until).
    pub fn run_while(
        &mut self,
        limit: Instant,
        mut done: impl FnMut(&Self) -> bool,
    ) -> Result<bool, Violation> {
        while !done(self) {
            if self.now() >= limit {
                return Ok(false);
            }
            let next = self.now() + Duration::from_secs(1);
            self.run_until(next.min(limit))?;
        }
        Ok(true)
    }

    /// The time.
    pub fn now(&self) -> Instant {
        self.queue.now()
    }

    /// Counters so far.
    pub fn stats(&self) -> SimulationStats {
        self.stats
    }

    /// BLAKE3 of everything that the run has done so far.
    pub fn digest(&self) -> [u8; 32] {
        self.trace.digest()
    }

    /// The network.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// A link and its counters; `None` if there is no such link.
    pub fn link(&self, link: LinkId) -> Option<&Link> {
        self.links.get(link.index())
    }

    /// The host of a node; `None` if it has none.
    pub fn host(&self, node: NodeId) -> Option<&H> {
        self.attached(node).map(|attached| &attached.host)
    }

    /// The channels that a node's host is joined to.
    pub fn joined(&self, node: NodeId) -> Vec<ChannelId> {
        let mut joined = self.joined_groups(node);
        joined.retain(|&channel| channel != SITE);
        joined
    }

    fn joined_groups(&self, node: NodeId) -> Vec<ChannelId> {
        self.attached(node).map_or(Vec::new(), |host| host.joined.iter().collect())
    }

    /// The observer.
    pub fn observer(&self) -> &O {
        &self.observer
    }

    /// The observer.
    pub fn observer_mut(&mut self) -> &mut O {
        &mut self.observer
    }

    fn attached(&self, node: NodeId) -> Option<&Attached<H>> {
        self.hosts.get(node.index())?.as_deref()
    }

    fn attached_mut(&mut self, node: NodeId) -> Option<&mut Attached<H>> {
        self.hosts.get_mut(node.index())?.as_deref_mut()
    }

    fn violate(&mut self, violation: Violation) {
        self.violation.get_or_insert(violation);
    }

    fn process(&mut self, now: Instant, event: Event) {
        match event {
            Event::Start { node, run } => self.start(now, node, run),
            Event::Wake { node } => self.wake(now, node),
            Event::Finished { node, run, ticket } => self.finish_job(now, node, run, ticket),
            Event::Fan { group, from, fan, entered, burst } => {
                self.leave_fan(now, group, (from, fan), entered, &burst);
            }
            Event::Hop { group, to, burst } => self.arrive(now, group, to, &burst),
            Event::Unicast { to, at, burst } => self.pass(now, to, at, &burst),
            Event::Subcast { group, router, at, burst } => {
                self.approach(now, group, (router, at), &burst);
            }
            Event::Settle { group, node, epoch } => self.settle(now, group, node, epoch),
            Event::FlowWake { flow } => self.wake_flow(now, flow),
            Event::Segment { flow, hop, segment, bytes } => {
                self.pass_on(now, (flow, hop), segment, bytes);
            }
        }
    }

    fn start(&mut self, now: Instant, node: NodeId, run: u32) {
        let Some(host) = self.attached_mut(node).filter(|host| host.run == run) else { return };
        host.is_running = true;
        if !host.config.site.is_empty() {
            self.change_membership(now, node, SITE, Membership::Join);
        }
        self.poll(now, node);
    }

    fn wake(&mut self, now: Instant, node: NodeId) {
        let Some(host) = self.attached_mut(node).filter(|host| host.is_running) else { return };
        if host.armed != now {
            return;
        }
        host.armed = NEVER;
        if host.due().is_some_and(|due| due <= now) {
            if host.count_wake(now) > MAX_WAKES {
                return self.violate(Violation::Livelock { node, at: now });
            }
            host.host.handle_timeout(host.clock(now));
        }
        self.poll(now, node);
    }

    fn finish_job(&mut self, now: Instant, node: NodeId, run: u32, ticket: Ticket) {
        let Some(host) = self.attached_mut(node).filter(|host| host.run == run) else { return };
        if host.is_running {
            host.host.handle_finished(host.clock(now), ticket);
            self.poll(now, node);
        }
    }

    /// Polls a host to which no datagram was delivered.
    fn poll(&mut self, now: Instant, node: NodeId) {
        let Some(host) = self.hosts.get_mut(node.index()).and_then(Option::as_mut) else { return };
        let result = host.record(now, &DatagramBatch::EMPTY, &mut self.outbox);
        self.carry_out(now, node, result);
        self.arm(now, node);
    }

    /// Carries out the recorded effects of a host.
    fn carry_out(&mut self, now: Instant, node: NodeId, result: Result<(), &'static str>) {
        if let Err(reason) = result {
            self.violate(Violation::Job { node, at: now, reason });
        }
        if self.outbox.is_empty() {
            return;
        }
        let mut outbox = std::mem::take(&mut self.outbox);
        let mut burst = Vec::new();
        for effect in outbox.drain(..) {
            match effect {
                Recorded::Transmit(transmission) => {
                    self.transmit(now, node, transmission, &mut burst);
                }
                Recorded::Join(channel) => {
                    self.change_membership(now, node, channel, Membership::Join);
                }
                Recorded::Leave(channel) => {
                    self.change_membership(now, node, channel, Membership::Leave);
                }
                Recorded::Event(event) => {
                    self.trace.note(now, Note::Event, node.0, [event.digest_number(), 0]);
                    self.observer.on_event(now, node, &event);
                }
                Recorded::Later { ticket, after } => {
                    let run = self.attached(node).map_or(0, |host| host.run);
                    self.queue.schedule(now + after, Event::Finished { node, run, ticket });
                }
            }
        }
        self.send(now, node, &mut burst);
        self.outbox = outbox;
    }

    /// Schedules the host's next timeout.
    fn arm(&mut self, now: Instant, node: NodeId) {
        let Some(host) = self.attached_mut(node).filter(|host| host.is_running) else { return };
        let Some(due) = host.due() else { return };
        let due = due.max(now);
        if due < host.armed {
            host.armed = due;
            self.queue.schedule(due, Event::Wake { node });
        }
    }
}
