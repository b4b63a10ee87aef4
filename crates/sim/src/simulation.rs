//! A run: hosts on a network, in virtual time.

use crate::host::HostConfig;
use crate::host::{Desk, Effect, Host, MAX_WAKES, NEVER};
use crate::jobs::{HeardBytes, Jobs};
use crate::link::Link;
use crate::multicast::SourceTree;
use crate::observe::Observer;
use crate::packet::{Burst, Sheet};
use crate::queue::EventQueue;
use crate::topology::{LinkId, NodeId, Topology};
use crate::trace::{Note, Trace};
use crate::violation::Violation;
use fontana_proto::{ChannelId, Done, Endpoint, Instant, SplitMix64};
use std::collections::BTreeMap;
use std::time::Duration;

mod fault;
mod flow;
mod forward;

pub use fault::Fault;
use flow::{Flow, Segment};
pub use flow::{FlowId, FlowStats, Traffic};

/// What a run needs to know beside its network and its hosts.
#[derive(Clone, Copy, Debug)]
pub struct SimulationConfig {
    /// Everything that is left to chance follows from it: one stream of random numbers for each
    /// link.
    pub seed: u64,
    /// Most events that may wait at the same time.
    pub max_events: usize,
}

impl SimulationConfig {
    /// With the default limits.
    pub fn new(seed: u64) -> Self {
        // 16 million events are 1.5 GB, and a hundred thousand receivers have ten thousand times
        // less of them under way.
        Self { seed, max_events: 1 << 24 }
    }
}

/// Counters of a run, never reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SimulationStats {
    /// Events that happened.
    pub events: u64,
    /// Datagrams that hosts sent.
    pub sent: u64,
    /// Datagrams that hosts heard, each counted for every host.
    pub deliveries: u64,
    /// Datagrams that links did not pass.
    pub drops: u64,
    /// Most events that waited at the same time.
    pub most_events: usize,
}

/// Hosts on a network, in virtual time.
///
/// `E` are the endpoints ([`Either`](crate::Either) where there are two kinds), `J` does their jobs,
/// `O` watches. A run is a function of all these and the seed: its [`digest`](Self::digest) says whether two
/// were the same.
#[derive(Debug)]
pub struct Simulation<E, J, O = ()> {
    config: SimulationConfig,
    topology: Topology,
    links: Vec<Link>,
    /// One for each link.
    random: Vec<SplitMix64>,
    queue: EventQueue<Event>,
    hosts: Vec<Option<Box<Host<E, J>>>>,
    trees: Vec<SourceTree>,
    tree_of: BTreeMap<NodeId, u32>,
    flows: Vec<Flow>,
    desk: Desk,
    sheet: Sheet,
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
    /// A host begins.
    Start { node: NodeId, life: u32 },
    /// A host wants to be woken.
    Wake { node: NodeId },
    /// A job is done.
    Done { node: NodeId, life: u32, done: Box<Done> },
    /// A burst comes to the ends of all hops of a fan.
    Fan { group: GroupId, from: NodeId, fan: u32, entered: Instant, burst: Burst },
    /// A packet comes to the end of a hop.
    Hop { group: GroupId, to: NodeId, burst: Burst },
    /// A node's wish for a group reaches the node above it.
    Settle { group: GroupId, node: NodeId, epoch: u32 },
    /// A flow begins, or its timer has run out.
    FlowWake { flow: FlowId },
    /// A segment of a flow comes to the hop that is next on its way.
    Segment { flow: FlowId, hop: u32, segment: Segment, bytes: u32 },
}

impl<E: Endpoint, J: Jobs, O: Observer> Simulation<E, J, O> {
    /// A run that has not begun, without hosts.
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
            flows: Vec::new(),
            desk: Desk::default(),
            sheet: Sheet::default(),
            trace: Trace::new(config.seed),
            stats: SimulationStats::default(),
            observer,
            violation: None,
        }
    }

    /// Puts an endpoint and who does its jobs on a node, in the place of what was there.
    ///
    /// # Panics
    /// If the network has no such node.
    pub fn attach(&mut self, node: NodeId, endpoint: E, jobs: J, config: HostConfig) {
        self.leave_all(node);
        let place = &mut self.hosts[node.index()];
        let life = place.as_ref().map_or(0, |before| before.life + 1);
        let starts_at = config.starts_at;
        let mut host = Host::new(endpoint, jobs, config);
        host.life = life;
        *place = Some(Box::new(host));
        self.queue.schedule(starts_at, Event::Start { node, life });
    }

    /// Lets everything happen until `until`.
    ///
    /// # Errors
    /// The first [`Violation`]; a run goes no further then.
    pub fn run_until(&mut self, until: Instant) -> Result<(), Violation> {
        while self.violation.is_none() {
            let Some((now, event)) = self.queue.pop_until(until) else { break };
            self.stats.events += 1;
            self.happen(now, event);
            let waiting = self.queue.len();
            self.stats.most_events = self.stats.most_events.max(waiting);
            if waiting > self.config.max_events {
                self.violate(Violation::Events { events: waiting, at: now });
            }
        }
        self.queue.rest_until(until);
        self.violation.map_or(Ok(()), Err)
    }

    /// Lets everything happen, a second at a time, until `done` says so or until `limit`. Whether
    /// it was done.
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

    /// BLAKE3 of everything that has happened so far.
    pub fn digest(&self) -> [u8; 32] {
        self.trace.digest()
    }

    /// The network.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// A link, with its counters.
    pub fn link(&self, link: LinkId) -> Option<&Link> {
        self.links.get(link.index())
    }

    /// The endpoint of a node.
    pub fn endpoint(&self, node: NodeId) -> Option<&E> {
        self.host(node).map(|host| &host.endpoint)
    }

    /// Who does the jobs of a node's endpoint.
    pub fn jobs(&self, node: NodeId) -> Option<&J> {
        self.host(node).map(|host| &host.jobs)
    }

    /// The channels that a node's endpoint has joined.
    pub fn joined(&self, node: NodeId) -> Vec<ChannelId> {
        self.host(node).map_or(Vec::new(), |host| host.joined.iter().collect())
    }

    /// Who watches.
    pub fn observer(&self) -> &O {
        &self.observer
    }

    /// Who watches.
    pub fn observer_mut(&mut self) -> &mut O {
        &mut self.observer
    }

    fn host(&self, node: NodeId) -> Option<&Host<E, J>> {
        self.hosts.get(node.index())?.as_deref()
    }

    fn host_mut(&mut self, node: NodeId) -> Option<&mut Host<E, J>> {
        self.hosts.get_mut(node.index())?.as_deref_mut()
    }

    fn violate(&mut self, violation: Violation) {
        self.violation.get_or_insert(violation);
    }

    fn happen(&mut self, now: Instant, event: Event) {
        match event {
            Event::Start { node, life } => self.start(now, node, life),
            Event::Wake { node } => self.wake(now, node),
            Event::Done { node, life, done } => self.job_is_done(now, node, life, *done),
            Event::Fan { group, from, fan, entered, burst } => {
                self.leave_fan(now, group, (from, fan), entered, &burst);
            }
            Event::Hop { group, to, burst } => self.arrive(now, group, to, &burst),
            Event::Settle { group, node, epoch } => self.settle(now, group, node, epoch),
            Event::FlowWake { flow } => self.wake_flow(now, flow),
            Event::Segment { flow, hop, segment, bytes } => {
                self.pass_on(now, (flow, hop), segment, bytes);
            }
        }
    }

    fn start(&mut self, now: Instant, node: NodeId, life: u32) {
        let Some(host) = self.host_mut(node).filter(|host| host.life == life) else { return };
        host.is_running = true;
        self.listen_to(now, node);
    }

    fn wake(&mut self, now: Instant, node: NodeId) {
        let Some(host) = self.host_mut(node).filter(|host| host.is_running) else { return };
        if host.armed != now {
            return;
        }
        host.armed = NEVER;
        if host.due().is_some_and(|due| due <= now) {
            host.woken = (now, if host.woken.0 == now { host.woken.1 + 1 } else { 1 });
            if host.woken.1 > MAX_WAKES {
                return self.violate(Violation::Livelock { node, at: now });
            }
            host.endpoint.handle_timeout(host.clock(now));
        }
        self.listen_to(now, node);
    }

    fn job_is_done(&mut self, now: Instant, node: NodeId, life: u32, done: Done) {
        let Some(host) = self.host_mut(node).filter(|host| host.life == life) else { return };
        if host.is_running {
            host.endpoint.handle_done(host.clock(now), done);
            self.listen_to(now, node);
        }
    }

    /// Hears what an endpoint has to say, without a datagram being there.
    fn listen_to(&mut self, now: Instant, node: NodeId) {
        let Some(host) = self.hosts.get_mut(node.index()).and_then(Option::as_mut) else { return };
        let result = host.drain(now, HeardBytes::default(), &mut self.desk);
        self.after(now, node, result);
        self.arm(now, node);
    }

    /// Does what an endpoint wanted done beyond its own host.
    fn after(&mut self, now: Instant, node: NodeId, result: Result<(), &'static str>) {
        if let Err(reason) = result {
            self.violate(Violation::Job { node, at: now, reason });
        }
        if self.desk.effects.is_empty() {
            return;
        }
        let mut effects = std::mem::take(&mut self.desk.effects);
        let mut burst = Vec::new();
        for effect in effects.drain(..) {
            match effect {
                Effect::Transmit { channel, header, symbol_bytes } => {
                    self.transmit(now, node, (channel, header, symbol_bytes), &mut burst);
                }
                Effect::Join(channel) => self.change_membership(now, node, channel, true),
                Effect::Leave(channel) => self.change_membership(now, node, channel, false),
                Effect::Tell(event) => {
                    self.trace.note(now, Note::Event, node.0, [event_number(&event), 0]);
                    self.observer.on_event(now, node, &event);
                }
                Effect::Later(outcome) => {
                    let life = self.host(node).map_or(0, |host| host.life);
                    let done = Box::new(outcome.done);
                    self.queue.schedule(now + outcome.after, Event::Done { node, life, done });
                }
            }
        }
        self.send(now, node, &mut burst);
        self.desk.effects = effects;
    }

    /// Has the host woken when its endpoint wants that.
    fn arm(&mut self, now: Instant, node: NodeId) {
        let Some(host) = self.host_mut(node).filter(|host| host.is_running) else { return };
        let Some(due) = host.due() else { return };
        let due = due.max(now);
        if due < host.armed {
            host.armed = due;
            self.queue.schedule(due, Event::Wake { node });
        }
    }
}

/// Which kind of event it is, for the digest. What it says follows from what has happened before.
fn event_number(event: &fontana_proto::Event) -> u64 {
    use fontana_proto::Event;
    match event {
        Event::Finished => 1,
        Event::BlockSolved { block } => 2 << 32 | u64::from(block.sbn.0),
        Event::BlockVerified { block } => 3 << 32 | u64::from(block.sbn.0),
        Event::BlockPoisoned { block, .. } => 4 << 32 | u64::from(block.sbn.0),
        Event::HeardEnough => 5,
        Event::Complete => 6,
        Event::GivenUp => 7,
        Event::Silence { .. } => 8,
        _ => 0,
    }
}
