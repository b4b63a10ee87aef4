//! Swarms: many short runs, each with a network, losses, faults and churn drawn from its seed. The
//! seed reproduces the run, so it is the whole report of a violation.
//!
//! This module draws the network and its faults. The caller supplies the [`HostFactory`], which may
//! draw the sessions from [`Scenario::random`], and decides when a run is done.

use crate::chance::Probability;
use crate::host::{Host, HostConfig};
use crate::link::{LinkConfig, LossPosition, QueueLength, ServiceTime, WireFaults};
use crate::loss::LossModel;
use crate::observe::Observer;
use crate::simulation::{Fault, Simulation, SimulationConfig, Traffic};
use crate::tcp::{TcpConfig, TcpVariant};
use crate::topology::{
    Dumbbell, LinkId, NodeId, NodePair, Rooted, Topology, TransitStub, TransitStubLinks,
    TransitStubShape,
};
use crate::violation::{RateCap, Violation};
use fontana_proto::{Instant, SplitMix64};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// Bounds of what is drawn.
#[derive(Clone, Copy, Debug)]
pub struct SwarmBounds {
    /// Most senders of a run, at least one.
    pub senders: u32,
    /// Most receivers of a run, at least one.
    pub receivers: u32,
    /// Rate of a sender: bottlenecks have a half to four times as much.
    pub rate_bytes_per_second: u64,
    /// Hosts start, crash and restart, and links fail, before this.
    pub trouble: Duration,
}

/// The network and the faults of one run.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The seed that it was drawn from.
    pub seed: u64,
    /// The network, with the losses and faults of its links.
    pub topology: Topology,
    /// Nodes of the senders.
    pub senders: Vec<NodeId>,
    /// The receivers.
    pub receivers: Vec<ScenarioReceiver>,
    /// Faults and restarts, in the order of their times.
    pub incidents: Vec<TimedIncident>,
    /// Cross traffic.
    pub flows: Vec<ScenarioFlow>,
}

/// A receiver of a [`Scenario`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScenarioReceiver {
    /// Its node.
    pub node: NodeId,
    /// When it starts.
    pub starts_at: Instant,
}

/// An [`Incident`] and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedIncident {
    /// When it happens.
    pub at: Instant,
    /// What happens.
    pub incident: Incident,
}

/// Cross traffic of a [`Scenario`], from the beginning of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScenarioFlow {
    /// The nodes that it flows between.
    pub ends: NodePair,
    /// What flows.
    pub traffic: Traffic,
    /// When it stops.
    pub stops_at: Instant,
}

/// An incident of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Incident {
    /// A fault, or its end.
    Fault(Fault),
    /// A host that crashed starts again.
    Restart(NodeId),
}

/// Makes the hosts of a run.
pub trait HostFactory<H> {
    /// The `number`th sender of the scenario; `earlier` is the host that crashed, or `None` at
    /// first.
    fn sender(&mut self, number: usize, earlier: Option<H>) -> SendingHost<H>;
    /// The `number`th receiver of the scenario; `earlier` as in [`sender`](Self::sender).
    fn receiver(&mut self, number: usize, earlier: Option<H>) -> H;
    /// How the `number`th receiver is attached, unless it only listens.
    fn place(&self, _number: usize, listening: HostConfig) -> HostConfig {
        listening
    }
}

/// A sender of a run.
#[derive(Clone, Debug)]
pub struct SendingHost<H> {
    /// The host.
    pub host: H,
    /// What it may send.
    pub cap: RateCap,
}

/// A run that has ended.
#[expect(missing_debug_implementations, reason = "events of hosts need no `Debug`")]
pub struct PlayedScenario<H: Host, O> {
    /// The run.
    pub run: Simulation<H, O>,
    /// Whether it ended because it was done, rather than out of patience.
    pub is_done: bool,
}

/// Time that 10 000 packets of 1 500 bytes take at 1 MB/s.
const LONG_HELD: Duration = Duration::from_secs(15);
/// Delay of a leave behind a router that sends no group-specific queries.
const SLOW_LEAVE: Duration = Duration::from_secs(10);

/// Random streams of the drawing. Links have the small numbers.
const WORLD: u64 = 1 << 40;
const CAST: u64 = 2 << 40;

impl Scenario {
    /// Draws the scenario of a seed.
    pub fn draw(seed: u64, bounds: &SwarmBounds) -> Self {
        let mut dice = WorldDice(SplitMix64::new(seed, WORLD));
        let receivers = dice.between(1, bounds.receivers.max(1).into()) as u32;
        let senders = dice.between(1, bounds.senders.max(1).into()) as u32;
        let World { topology, places } = dice.network(senders + receivers, bounds);
        let (senders, receivers) = places.split_at((senders as usize).min(places.len()));
        let trouble = bounds.trouble;
        let first = |dice: &mut WorldDice| {
            if dice.one_in(3) { dice.moment(trouble) } else { Instant::ZERO }
        };
        let receivers = receivers.iter().map(|&node| {
            let starts_at = first(&mut dice);
            ScenarioReceiver { node, starts_at }
        });
        let receivers = receivers.collect();
        let mut scenario = Self {
            seed,
            topology,
            senders: senders.to_vec(),
            receivers,
            incidents: Vec::new(),
            flows: Vec::new(),
        };
        scenario.draw_incidents(&mut dice, trouble);
        scenario.draw_flows(&mut dice, &places, bounds);
        scenario
    }

    /// The random numbers for the sessions of this scenario.
    pub fn random(&self) -> SplitMix64 {
        SplitMix64::new(self.seed, CAST)
    }

    /// Time of the last start or incident.
    pub fn calm_at(&self) -> Instant {
        let starts = self.receivers.iter().map(|receiver| receiver.starts_at);
        let incidents = self.incidents.iter().map(|timed| timed.at);
        starts.chain(incidents).max().unwrap_or(Instant::ZERO)
    }

    /// Runs the scenario. At [`calm_at`](Self::calm_at) it calls `calm`. From then on it calls
    /// `done` once a second, and ends when that returns true, or after `patience`.
    ///
    /// # Errors
    /// The first [`Violation`].
    pub fn play<H: Host, O: Observer<H::Event>>(
        &self,
        factory: &mut impl HostFactory<H>,
        observer: O,
        patience: Duration,
        calm: impl FnOnce(&mut Simulation<H, O>),
        done: impl FnMut(&Simulation<H, O>) -> bool,
    ) -> Result<PlayedScenario<H, O>, Violation> {
        let config = SimulationConfig::new(self.seed);
        let mut run = Simulation::new(self.topology.clone(), config, observer);
        for number in 0..self.senders.len() + self.receivers.len() {
            self.enter(&mut run, factory, number, None);
        }
        for &ScenarioFlow { ends, traffic, stops_at } in &self.flows {
            run.add_flow(ends, traffic, Instant::ZERO, stops_at);
        }
        for &TimedIncident { at, incident } in &self.incidents {
            run.run_until(at)?;
            match incident {
                Incident::Fault(fault) => run.inflict(fault),
                Incident::Restart(node) => {
                    let receivers = self.receivers.iter().map(|receiver| &receiver.node);
                    let mut hosts = self.senders.iter().chain(receivers);
                    if let Some(number) = hosts.position(|&host| host == node) {
                        let earlier = run.detach(node);
                        self.enter(&mut run, factory, number, earlier);
                    }
                }
            }
        }
        run.run_until(self.calm_at())?;
        calm(&mut run);
        let is_done = run.run_while(self.calm_at() + patience, done)?;
        Ok(PlayedScenario { run, is_done })
    }

    /// Puts a host on its node. Senders have the first numbers.
    fn enter<H: Host, O: Observer<H::Event>>(
        &self,
        run: &mut Simulation<H, O>,
        factory: &mut impl HostFactory<H>,
        number: usize,
        earlier: Option<H>,
    ) {
        let now = run.now();
        if let Some(&node) = self.senders.get(number) {
            let SendingHost { host, cap } = factory.sender(number, earlier);
            run.attach(node, host, HostConfig::sender(cap).starting_at(now));
        } else if let Some(receiver) = self.receivers.get(number - self.senders.len()) {
            let ScenarioReceiver { node, starts_at } = *receiver;
            let host = factory.receiver(number - self.senders.len(), earlier);
            let config = HostConfig::receiver(self.senders.clone());
            let config = factory.place(number - self.senders.len(), config);
            run.attach(node, host, config.starting_at(starts_at.max(now)));
        }
    }

    fn draw_incidents(&mut self, dice: &mut WorldDice, trouble: Duration) {
        let links = self.topology.edges().len() as u64;
        let receivers = self.receivers.iter().map(|receiver| receiver.node);
        let hosts: Vec<_> = receivers.chain(self.senders.iter().copied()).collect();
        for node in hosts {
            if dice.one_in(8) {
                let Range { start, end } = dice.span(trouble);
                self.add_incident(start, Incident::Fault(Fault::Crash(node)));
                self.add_incident(end, Incident::Restart(node));
            }
            if dice.one_in(16) {
                let by = Duration::from_millis(dice.between(1, 100_000));
                let at = dice.moment(trouble);
                self.add_incident(at, Incident::Fault(Fault::ClockJump(node, by)));
            }
        }
        for _ in 0..dice.between(0, 3).min(links) {
            let link = LinkId(dice.between(0, links - 1) as u32);
            let Range { start, end } = dice.span(trouble);
            self.add_incident(start, Incident::Fault(Fault::Cut(link)));
            self.add_incident(end, Incident::Fault(Fault::Mend(link)));
        }
        // The sort is stable: incidents of one time happen in the order in which they were drawn.
        self.incidents.sort_by_key(|timed| timed.at);
    }

    fn add_incident(&mut self, at: Instant, incident: Incident) {
        self.incidents.push(TimedIncident { at, incident });
    }

    fn draw_flows(&mut self, dice: &mut WorldDice, places: &[NodeId], bounds: &SwarmBounds) {
        for _ in 0..dice.between(0, 4).saturating_sub(2) {
            let (Some(from), Some(to)) = (dice.pick(places), dice.pick(places)) else { return };
            let tcp = |variant| {
                // On a path without a bottleneck, only the window bounds the rate.
                Traffic::Tcp(TcpConfig { max_window: 64, ..TcpConfig::new(variant) })
            };
            let traffic = match dice.between(0, 2) {
                0 => tcp(TcpVariant::Reno),
                1 => tcp(TcpVariant::Cubic),
                _ => dice.constant_traffic(bounds),
            };
            let (ends, stops_at) = (NodePair { from, to }, dice.moment(bounds.trouble));
            self.flows.push(ScenarioFlow { ends, traffic, stops_at });
        }
    }
}

/// A network, and the nodes for hosts.
struct World {
    topology: Topology,
    places: Vec<NodeId>,
}

/// Draws the parts of a scenario.
struct WorldDice(SplitMix64);

impl WorldDice {
    fn between(&mut self, low: u64, high: u64) -> u64 {
        let span = high.saturating_sub(low).saturating_add(1).min(u32::MAX.into());
        low + u64::from(self.0.below(span as u32))
    }

    fn one_in(&mut self, count: u32) -> bool {
        self.0.below(count) == 0
    }

    fn pick<T: Copy>(&mut self, among: &[T]) -> Option<T> {
        among.get(self.0.below(among.len() as u32) as usize).copied()
    }

    fn moment(&mut self, before: Duration) -> Instant {
        let millis = u64::try_from(before.as_millis()).unwrap_or(u64::MAX);
        Instant::ZERO + Duration::from_millis(self.between(0, millis))
    }

    fn span(&mut self, before: Duration) -> Range<Instant> {
        let (a, b) = (self.moment(before), self.moment(before));
        a.min(b)..a.max(b)
    }

    /// Constant traffic at a tenth of a sender's rate to all of it.
    fn constant_traffic(&mut self, bounds: &SwarmBounds) -> Traffic {
        let packet_bytes = self.between(100, 1_500) as u32;
        let rate = bounds.rate_bytes_per_second.max(1) * self.between(1, 10) / 10;
        let nanos = u64::from(packet_bytes) * 1_000_000_000 / rate.max(1);
        Traffic::Cbr { packet_bytes, interval: Duration::from_nanos(nanos) }
    }

    /// A network with nodes for at most `hosts` hosts.
    fn network(&mut self, hosts: u32, bounds: &SwarmBounds) -> World {
        match self.between(0, 3) {
            0 => {
                let (trunk, access) = (self.link(bounds), self.link(bounds));
                let star = Rooted::star(hosts.saturating_sub(1), trunk, access);
                let places = [vec![star.source], star.leaves].concat();
                World { topology: star.topology, places }
            }
            1 => {
                let links: Vec<_> = (0..3).map(|_| Arc::new(self.link(bounds))).collect();
                let fan = self.between(2, 4) as u32;
                let tree = Rooted::tree(&[fan, fan, hosts.div_ceil(fan * fan)], &links);
                let places = [vec![tree.source], tree.leaves].concat().into_iter();
                World { topology: tree.topology, places: places.take(hosts as usize).collect() }
            }
            2 => {
                let (bottleneck, access) = (self.link(bounds), self.link(bounds));
                let dumbbell = Dumbbell::new(hosts.div_ceil(2), bottleneck, access);
                let near = dumbbell.pairs.iter().map(|pair| pair.from);
                let far = dumbbell.pairs.iter().map(|pair| pair.to);
                let places = near.chain(far).take(hosts as usize).collect();
                World { topology: dumbbell.topology, places }
            }
            _ => {
                let shape = TransitStubShape {
                    transit_domains: 2,
                    transit_nodes: 2,
                    stubs_per_node: 2,
                    stub_nodes: hosts.div_ceil(8).max(1),
                };
                let links = TransitStubLinks {
                    stub: self.link(bounds),
                    access: self.link(bounds),
                    transit: self.link(bounds),
                    core: self.link(bounds),
                };
                let network = TransitStub::new(shape, links, &mut self.0);
                let places = network.stubs.into_iter().take(hosts as usize).collect();
                World { topology: network.topology, places }
            }
        }
    }

    /// A link: losses and a bottleneck are frequent, other faults are rare.
    fn link(&mut self, bounds: &SwarmBounds) -> LinkConfig {
        let millis = |dice: &mut Self, most| Duration::from_millis(dice.between(0, most));
        let rate = bounds.rate_bytes_per_second.max(1);
        let has_rate = self.one_in(2);
        let permille = |dice: &mut Self, most| dice.between(0, most) as f64 / 1_000.0;
        let loss = match self.between(0, 4) {
            0 => LossModel::bernoulli(permille(self, 300)),
            1 => LossModel::markov(permille(self, 300), self.between(1, 10) as f64),
            2 => LossModel::Periodic { period: self.between(2, 100) as u32, first: 0 },
            _ => LossModel::None,
        };
        let rare = |dice: &mut Self, one_in| match dice.one_in(one_in) {
            true => Probability::new(permille(dice, 20)),
            false => Probability::ZERO,
        };
        let faults = WireFaults {
            duplicate: rare(self, 6),
            reorder: rare(self, 4),
            // One time in eight, 10 000 packets can overtake a held one.
            held: if self.one_in(8) { LONG_HELD } else { millis(self, 50) },
            corrupt: Probability::new(rare(self, 8).as_f64() / 20.0),
        };
        let queue = match self.one_in(2) {
            true => QueueLength::Packets(self.between(5, 500) as u32),
            false => QueueLength::Bytes(self.between(10_000, 500_000)),
        };
        LinkConfig {
            rate_bytes_per_second: has_rate.then(|| self.between(rate / 2, 4 * rate)),
            service: ServiceTime::ByLength,
            queue,
            mark_from: self.one_in(4).then(|| QueueLength::Packets(self.between(1, 50) as u32)),
            delay: millis(self, 100),
            jitter: if self.one_in(3) { millis(self, 20) } else { Duration::ZERO },
            loss,
            loss_position: LossPosition::Wire,
            faults,
            graft: millis(self, 100),
            prune: if self.one_in(8) { SLOW_LEAVE } else { millis(self, 2_000) },
        }
    }
}
