//! A run of a protocol in a transit-stub network, and what it counts (section 4).

use super::endpoint::{Delivered, RepairEndpoint};
use super::member::Member;
use super::one_way::OneWay;
use super::oters::Oters;
use super::packet::{Class, Message, RepairPacket};
use super::scheme::Scheme;
use super::segments::Segments;
use super::setting::{LiConfig, Protocol};
use super::srm::Srm;
use super::tmtp::Tmtp;
use crate::hosts::HostsError;
use crate::hosts::routed::{self, RoutedHost, RunTime, Traffic};
use crate::no_jobs::NoJobs;
use fontana_proto::{Driver, Instant, SplitMix64};
use fontana_sim::{
    HostConfig, LinkId, LossModel, Multicast, NodeId, Observer, Packet, PathTree, RateCap,
    Simulation, SimulationConfig, Topology, TransitStub, TransitStubLinks, TransitStubShape,
};
use std::sync::Arc;
use std::time::Duration;

/// Session messages are counted until then: a run of ns-2 in the paper ends about ten seconds after
/// its beginning, by the session messages that table 1 prints for SRM.
pub(super) const SESSION_ENDS: Duration = Duration::from_secs(10);
/// A run that is not complete by then is reported as such.
pub(super) const LAST: Duration = Duration::from_secs(300);

/// The domains of a network of hosts: 2 routers in each of 3 transit domains, each with 2 stub
/// domains of 2 nodes.
const SHAPE_OF_HOSTS: TransitStubShape =
    TransitStubShape { transit_domains: 3, transit_nodes: 2, stubs_per_node: 2, stub_nodes: 2 };

/// A network with the nodes of the source and the members, of which several protocols run.
#[derive(Debug)]
pub(super) struct LiNetwork {
    pub(super) topology: Topology,
    pub(super) source: NodeId,
    pub(super) members: Vec<NodeId>,
    /// A member of which neither latency nor arrivals count: those of the others do.
    apart: Option<NodeId>,
}

impl LiNetwork {
    /// A network for these parameters. The source is a node of a stub domain, the members are any
    /// others.
    pub(super) fn new(config: &LiConfig, seed: u64) -> Self {
        Self::with_links(config, TransitStubLinks::paper(), seed)
    }

    /// A network for hosts of one computer: 24 nodes of stub domains, all of which have a host, one
    /// of them the source, and 6 transit routers. The links are the paper's.
    pub(super) fn of_hosts(config: &LiConfig, seed: u64) -> Self {
        let mut random = SplitMix64::new(seed, NETWORK_STREAM);
        let links = TransitStubLinks::paper();
        let links = links.with_loss(&LossModel::markov(config.loss, config.burst));
        let network = TransitStub::new(SHAPE_OF_HOSTS, links, &mut random);
        let mut members = network.stubs;
        let source = members.swap_remove(random.below(members.len() as u32) as usize);
        Self { topology: network.topology, source, members, apart: None }
    }

    /// The same network with one member more, on a node of its own beside any other. The link to it
    /// loses this share of the packets, the link from it as many as all others.
    pub(super) fn with_one_more(config: &LiConfig, loss: f64, seed: u64) -> Self {
        let mut network = Self::new(config, seed);
        let mut random = SplitMix64::new(seed, ONE_MORE_STREAM);
        let beside = NodeId(random.below(network.topology.node_count()));
        let node = network.topology.add_node();
        let link =
            |loss| TransitStubLinks::paper().stub.with_loss(LossModel::markov(loss, config.burst));
        network.topology.add_link(beside, node, link(loss));
        network.topology.add_link(node, beside, link(config.loss));
        network.members.push(node);
        network.apart = Some(node);
        network
    }

    fn with_links(config: &LiConfig, links: TransitStubLinks, seed: u64) -> Self {
        let mut random = SplitMix64::new(seed, NETWORK_STREAM);
        let links = links.with_loss(&LossModel::markov(config.loss, config.burst));
        let network = TransitStub::new(TransitStubShape::PAPER, links, &mut random);
        let stubs = network.stubs.len() as u32;
        let source = network.stubs[random.below(stubs) as usize];
        let mut others: Vec<NodeId> = network
            .transit
            .iter()
            .chain(&network.stubs)
            .copied()
            .filter(|n| *n != source)
            .collect();
        let count = (config.density * f64::from(network.topology.node_count())).round() as usize;
        let members = (0..count.min(others.len()))
            .map(|_| others.swap_remove(random.below(others.len() as u32) as usize))
            .collect();
        Self { topology: network.topology, source, members, apart: None }
    }

    fn hosts(&self) -> impl Iterator<Item = NodeId> {
        std::iter::once(self.source).chain(self.members.iter().copied())
    }

    /// Tells members how many links are between them, along the tree of the sender. Simulated
    /// packets have no TTL to read it from.
    fn show_hops(&self, members: &mut [Planned]) {
        for from in self.hosts() {
            let paths = self.topology.shortest_paths(from);
            for Planned { member, .. } in &mut *members {
                let links = paths.path(&self.topology, member.id).map_or(0, |links| links.len());
                member.sample_hops(from, links.min(u8::MAX.into()) as u8);
            }
        }
    }

    /// The source and the members, and when each of them joins.
    fn planned(&self, config: &LiConfig, seed: u64) -> Vec<Planned> {
        let plan = |(node, stream)| {
            let mut random = SplitMix64::new(seed, stream);
            let within = config.constants.join_within;
            let starts_after = match node == self.source {
                true => Duration::ZERO,
                false => within.mul_f64(random.unit()),
            };
            Planned { member: Member::new(node, self.source, config, random), starts_after }
        };
        self.hosts().zip(HOST_STREAMS..).map(plan).collect()
    }

    /// Runs a protocol. `None` if an invariant of the simulation is violated.
    pub(super) fn run(&self, config: &LiConfig, seed: u64) -> Option<LiCounts> {
        let simulation =
            SimulationConfig { multicast: config.multicast, ..SimulationConfig::new(seed) };
        let not_counted = std::iter::once(self.source).chain(self.apart).collect();
        let log = LiLog { not_counted, ..LiLog::new(config.segments) };
        let mut run: Simulation<Driver<RepairEndpoint, NoJobs>, LiLog> =
            Simulation::new(self.topology.clone(), simulation, log);
        let paths = self.topology.shortest_paths(self.source);
        // All hosts send to the group. With broadcasts, joining takes no part in forwarding.
        let sources: Arc<[NodeId]> = match config.multicast {
            Multicast::Broadcast => [self.source].into(),
            Multicast::Pruned => self.hosts().collect(),
        };
        let mut planned = self.planned(config, seed);
        if config.protocol == Protocol::TmtpUni {
            self.show_hops(&mut planned);
        }
        for Planned { member, starts_after } in planned {
            let (node, scheme) = (member.id, self.scheme(config, &member, &paths));
            let host = Driver::new(RepairEndpoint::new(member, scheme), NoJobs);
            let place = HostConfig::receiver_that_reports(Arc::clone(&sources), CAP);
            run.attach(node, host, place.starting_at(Instant::ZERO + starts_after));
        }
        run.run_until(Instant::ZERO + SESSION_ENDS).ok()?;
        let is_complete = |run: &Simulation<_, _>| self.complete(run) == self.members.len();
        run.run_while(Instant::ZERO + LAST, is_complete).ok()?;
        let complete = self.complete(&run) as f64 / self.members.len() as f64;
        Some(run.observer().counts(complete))
    }

    /// Runs a protocol without FEC between hosts, on the links of a simulation with this seed.
    ///
    /// # Errors
    /// [`HostsError`] if the network cannot be created, or fails.
    pub(super) fn run_between_hosts(
        &self,
        config: &LiConfig,
        seed: u64,
        time: RunTime,
    ) -> Result<HostsCounts, HostsError> {
        let paths = self.topology.shortest_paths(self.source);
        let segments = Segments::draw(config.segments, seed);
        let host = |Planned { member, starts_after }: Planned| {
            let scheme = self.scheme(config, &member, &paths);
            let content = if member.is_source() { segments.sent() } else { segments.lacking() };
            RoutedHost {
                node: member.id,
                endpoint: RepairEndpoint::new(member, scheme),
                content,
                starts_after,
            }
        };
        let hosts = self.planned(config, seed).into_iter().map(host).collect();
        let log = LiLog::new(config.segments);
        let run = routed::run(&self.topology, seed, hosts, log, time)?;
        let mut log = run.traffic;
        let events = run.hosts.iter().flat_map(|host| &host.events);
        events.for_each(|&(at, event)| log.delivered(at, event));
        let complete = run.hosts.iter().filter(|host| host.endpoint.has_all()).count();
        Ok(HostsCounts {
            counts: log.counts(complete as f64 / run.hosts.len() as f64),
            incomplete: run.hosts.iter().filter(|host| !host.content.is_whole()).count() as u32,
            lost_here: run.lost_here,
            late: run.late,
        })
    }

    fn scheme(&self, config: &LiConfig, member: &Member, paths: &PathTree) -> Box<dyn Scheme> {
        match config.protocol {
            Protocol::Srm => Box::new(Srm::new(config.group_segments)),
            Protocol::OnDemand => Box::new(Srm::of_source_alone(config.group_segments)),
            Protocol::OneWay { share } => Box::new(OneWay { share }),
            Protocol::TmtpUni => Box::new(Tmtp::new(member)),
            Protocol::Oters => {
                let links = paths.path(&self.topology, member.id).unwrap_or_default();
                let edges = self.topology.edges();
                let below = links.iter().filter_map(|link| edges.get(link.0 as usize));
                let route = std::iter::once(self.source).chain(below.map(|edge| edge.to));
                Box::new(Oters::new(member, route.collect()))
            }
        }
    }

    /// Members that have all segments.
    fn complete(&self, run: &Simulation<Driver<RepairEndpoint, NoJobs>, LiLog>) -> usize {
        let has_all = |node: &&NodeId| run.host(**node).is_some_and(|it| it.endpoint.has_all());
        self.members.iter().filter(has_all).count()
    }
}

/// A member, or the source, before a run.
struct Planned {
    member: Member,
    starts_after: Duration,
}

/// More than any host of an experiment sends.
const CAP: RateCap = RateCap {
    bytes_per_second: 1_000_000_000,
    max_packet_bytes: 1_500,
    peak_window: Duration::ZERO,
};

/// The random stream of the network: links have those from 1 on.
const NETWORK_STREAM: u64 = 1 << 33;
/// The random stream of what is beside the member that a network has more.
const ONE_MORE_STREAM: u64 = NETWORK_STREAM + 1;
/// The random streams of hosts.
const HOST_STREAMS: u64 = 1 << 32;

/// Packet-hops and packets of a run, and its latency.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct LiCounts {
    /// Packet-hops for each segment, by [`Class`].
    pub(super) hops: [f64; Class::ALL.len()],
    /// Packets for each segment.
    pub(super) packets: [f64; Class::ALL.len()],
    /// Packet-hops of session messages, in thousands.
    pub(super) session_kilo: f64,
    /// Mean time from when a segment is sent until the last member has it, without the one apart.
    pub(super) ms: f64,
    /// Packets with a segment or a repair that arrive at the members, without the one apart, for
    /// each segment.
    pub(super) arrived: f64,
    /// The share of the members that have all segments.
    pub(super) complete: f64,
}

/// What a run between hosts counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct HostsCounts {
    pub(super) counts: LiCounts,
    /// Hosts that do not have every byte as it was sent.
    pub(super) incomplete: u32,
    /// Datagrams that this computer lost, and not the links.
    pub(super) lost_here: u64,
    /// Longest delay of a packet or of a timeout beyond its time.
    pub(super) late: Duration,
}

/// A run between hosts counts session messages as long as a simulation. If the members are not
/// complete a minute later, they never will be.
pub(super) const HOSTS_TIME: RunTime =
    RunTime { least: SESSION_ENDS, most: Duration::from_secs(70) };

impl LiCounts {
    pub(super) fn payload(&self) -> f64 {
        self.of(Class::Payload)
    }

    pub(super) fn requests(&self) -> f64 {
        self.of(Class::Request)
    }

    pub(super) fn is_complete(&self) -> bool {
        self.complete >= 1.0
    }

    /// Packet-hops of reactive and proactive FEC packets.
    pub(super) fn repairs(&self) -> f64 {
        self.of(Class::Repair) + self.of(Class::Proactive)
    }

    fn of(&self, class: Class) -> f64 {
        self.hops[class as usize]
    }
}

/// Observes all links.
#[derive(Debug)]
pub(super) struct LiLog {
    hops: [u64; Class::ALL.len()],
    packets: [u64; Class::ALL.len()],
    session: u64,
    sent: Vec<Instant>,
    last: Vec<Instant>,
    /// Packets with a segment or a repair that have arrived.
    arrived: u64,
    /// Nodes where nothing counts that arrives: the source, and the member apart.
    not_counted: Vec<NodeId>,
}

impl LiLog {
    pub(super) fn new(segments: u32) -> Self {
        let none = vec![Instant::ZERO; segments as usize];
        let (hops, packets) = Default::default();
        let (sent, last, not_counted) = (none.clone(), none, Vec::new());
        Self { hops, packets, session: 0, sent, last, arrived: 0, not_counted }
    }

    /// A host has sent a packet.
    fn transmitted(&mut self, now: Instant, packet: &[u8]) {
        if let Some(class) = Class::of(packet) {
            self.packets[class as usize] += 1;
        }
        let message = RepairPacket::parse(packet).map(|packet| packet.message);
        if let Some(Message::Data { segment }) = message {
            self.segment_sent(now, segment);
        }
    }

    /// The source has sent a segment.
    pub(super) fn segment_sent(&mut self, now: Instant, segment: u32) {
        if let Some(sent) = self.sent.get_mut(segment as usize) {
            *sent = now;
        }
    }

    /// A node has forwarded a packet to a link.
    fn forwarded(&mut self, now: Instant, packet: &[u8]) {
        if let Some(class) = Class::of(packet) {
            self.hop(now, class);
        }
    }

    /// A packet of this class was forwarded to a link.
    pub(super) fn hop(&mut self, now: Instant, class: Class) {
        self.hops[class as usize] += 1;
        let counts = class == Class::Session && now <= Instant::ZERO + SESSION_ENDS;
        self.session += u64::from(counts);
    }

    /// A segment was delivered to a member.
    pub(super) fn delivered(&mut self, now: Instant, Delivered { segment }: Delivered) {
        if let Some(last) = self.last.get_mut(segment as usize) {
            *last = now.max(*last);
        }
    }

    pub(super) fn counts(&self, complete: f64) -> LiCounts {
        let segments = self.sent.len() as f64;
        let each = |count: u64| count as f64 / segments;
        let latency =
            |(sent, last): (&Instant, &Instant)| last.saturating_since(*sent).as_secs_f64();
        let sum: f64 = self.sent.iter().zip(&self.last).map(latency).sum();
        LiCounts {
            hops: self.hops.map(each),
            packets: self.packets.map(each),
            session_kilo: self.session as f64 / 1e3,
            ms: 1e3 * sum / segments,
            arrived: each(self.arrived),
            complete,
        }
    }
}

impl Observer<Delivered> for LiLog {
    fn on_transmit(&mut self, now: Instant, _node: NodeId, packet: &Packet) {
        self.transmitted(now, &packet.header);
    }

    fn on_forward(&mut self, now: Instant, _link: LinkId, packet: &Packet) {
        self.forwarded(now, &packet.header);
    }

    fn on_deliver(&mut self, _now: Instant, node: NodeId, packet: &Packet) {
        let class = Class::of(&packet.header);
        let has_symbol = matches!(class, Some(Class::Payload | Class::Repair | Class::Proactive));
        self.arrived += u64::from(has_symbol && !self.not_counted.contains(&node));
    }

    fn on_event(&mut self, now: Instant, node: NodeId, event: &Delivered) {
        if !self.not_counted.contains(&node) {
            self.delivered(now, *event);
        }
    }
}

impl Traffic for LiLog {
    fn on_transmit(&mut self, now: Instant, payload: &[u8]) {
        self.transmitted(now, payload);
    }

    fn on_forward(&mut self, now: Instant, payload: &[u8]) {
        self.forwarded(now, payload);
    }
}

#[cfg(test)]
mod tests {
    use super::super::setting::FecUse;
    use super::*;
    use crate::hosts;
    use fontana_sim::LinkConfig;

    fn run(config: &LiConfig, seed: u64) -> LiCounts {
        LiNetwork::new(config, seed).run(config, seed).expect("no violation")
    }

    fn short(protocol: Protocol, fec: FecUse, group_segments: u32) -> LiConfig {
        let config = LiConfig::table_1(protocol, Multicast::Broadcast);
        LiConfig { segments: 56, fec, group_segments, ..config }
    }

    #[test]
    fn every_protocol_completes_and_repeats_exactly() {
        for protocol in Protocol::ALL {
            let forms = [(FecUse::Reactive, 7), (FecUse::Proactive, 7), (FecUse::Reactive, 1)];
            for (fec, k) in forms {
                let config = LiConfig { loss: 0.03, ..short(protocol, fec, k) };
                let counts = run(&config, 3);
                assert!(counts.is_complete(), "{} k {k}", protocol.name(fec));
                if k == 1 {
                    assert_eq!(counts, run(&config, 3));
                    assert_ne!(counts, run(&config, 4));
                }
            }
        }
    }

    /// What an independent model of SRM printed, written from the same text in another language:
    /// for six networks of GT-ITM's kind whose links all take 1.2 times their delay, with k = 1.
    struct ModelRow {
        payload: f64,
        request: f64,
        repair: f64,
        ms: f64,
    }

    const MODEL: [ModelRow; 6] = [
        ModelRow { payload: 534.0, request: 817.0, repair: 3_090.0, ms: 508.0 },
        ModelRow { payload: 565.0, request: 581.0, repair: 2_343.0, ms: 537.0 },
        ModelRow { payload: 577.0, request: 593.0, repair: 3_589.0, ms: 486.0 },
        ModelRow { payload: 559.0, request: 613.0, repair: 2_732.0, ms: 486.0 },
        ModelRow { payload: 565.0, request: 601.0, repair: 2_971.0, ms: 497.0 },
        ModelRow { payload: 558.0, request: 712.0, repair: 2_390.0, ms: 509.0 },
    ];

    /// Links without a transmitter whose delay is always its mean.
    fn even_links() -> TransitStubLinks {
        let even = |link: LinkConfig| LinkConfig::wire(link.delay + link.jitter);
        let TransitStubLinks { stub, access, transit, core } = TransitStubLinks::paper();
        let [stub, access, transit, core] = [stub, access, transit, core].map(even);
        TransitStubLinks { stub, access, transit, core }
    }

    #[test]
    fn srm_without_fec_is_that_of_an_independent_model() {
        let config =
            LiConfig { segments: 112, ..LiConfig::table_1(Protocol::Srm, Multicast::Broadcast) };
        let runs = 1..=3_u64;
        let counts: Vec<LiCounts> = runs
            .map(|seed| LiNetwork::with_links(&config, even_links(), seed).run(&config, seed))
            .map(|counts| counts.expect("no violation"))
            .collect();
        let ours = |number: fn(&LiCounts) -> f64| {
            counts.iter().map(number).sum::<f64>() / counts.len() as f64
        };
        let model = |number: fn(&ModelRow) -> f64| {
            MODEL.iter().map(number).sum::<f64>() / MODEL.len() as f64
        };
        // Networks differ: by up to 40 % in repairs.
        for (name, ours, model, tolerance) in [
            ("payload", ours(LiCounts::payload), model(|row| row.payload), 0.05),
            ("request", ours(LiCounts::requests), model(|row| row.request), 0.3),
            ("repair", ours(LiCounts::repairs), model(|row| row.repair), 0.4),
            ("latency", ours(|counts| counts.ms), model(|row| row.ms), 0.2),
        ] {
            assert!((ours / model - 1.0).abs() <= tolerance, "{name}: {ours:.0}, model {model:.0}");
        }
    }

    /// The source, two routers and a member in a line.
    fn line(first_lost: u32) -> LiNetwork {
        let mut topology = Topology::new();
        let nodes = topology.add_nodes(4);
        let wire = LinkConfig::wire(Duration::from_millis(10));
        topology.connect(nodes[0], nodes[1], wire.clone());
        let loss = LossModel::Periodic { period: 100_000, first: first_lost };
        topology.add_link(nodes[1], nodes[2], wire.clone().with_loss(loss));
        topology.add_link(nodes[2], nodes[1], wire.clone());
        topology.connect(nodes[2], nodes[3], wire);
        LiNetwork { topology, source: nodes[0], members: vec![nodes[3]], apart: None }
    }

    #[test]
    fn a_segment_that_is_lost_on_the_second_of_three_links_costs_a_request_and_a_repair() {
        for protocol in Protocol::ALL {
            let config =
                LiConfig { segments: 20, ..LiConfig::table_1(protocol, Multicast::Broadcast) };
            let mut segments_lost = 0;
            for first_lost in 0..12 {
                let counts = line(first_lost).run(&config, 1).expect("no violation");
                let hops = |number: f64| (number * f64::from(config.segments)).round();
                // Another packet is lost, or the segment crosses two links of three.
                let is_segment = hops(counts.payload()) < 60.0;
                let expected = if is_segment { [59.0, 3.0, 3.0] } else { [60.0, 0.0, 0.0] };
                let ours = [counts.payload(), counts.requests(), counts.repairs()].map(hops);
                assert_eq!(ours, expected, "{protocol:?} {first_lost}");
                assert!(counts.is_complete());
                segments_lost += u32::from(is_segment);
            }
            assert!(segments_lost >= 5, "{protocol:?}");
        }
    }

    #[test]
    fn a_lost_segment_costs_the_same_between_hosts() {
        if !hosts::are_possible() {
            return;
        }
        let time = RunTime { least: Duration::from_millis(1_500), most: Duration::from_secs(20) };
        for protocol in Protocol::ALL {
            let config =
                LiConfig { segments: 20, ..LiConfig::table_1(protocol, Multicast::Broadcast) };
            let run = line(9).run_between_hosts(&config, 1, time).expect("a run");
            let HostsCounts { counts, incomplete, lost_here, .. } = run;
            let hops = |number: f64| (number * f64::from(config.segments)).round();
            let ours = [counts.payload(), counts.requests(), counts.repairs()].map(hops);
            assert_eq!(ours, [59.0, 3.0, 3.0], "{protocol:?}");
            assert!(counts.is_complete() && incomplete == 0 && lost_here == 0, "{run:?}");
            // Three links of 10 ms, and once a request and a repair.
            assert!((30.0..50.0).contains(&counts.ms), "{counts:?}");
        }
    }

    #[test]
    fn of_a_member_apart_nothing_counts_but_what_it_makes_others_send() {
        let arrived = |protocol, loss| {
            let config = LiConfig { loss: 0.0, ..short(protocol, FecUse::Reactive, 14) };
            let network = LiNetwork::with_one_more(&config, loss, 1);
            let counts = network.run(&config, 1).expect("no violation");
            assert_eq!(counts.is_complete(), loss < 0.9, "{protocol:?}");
            counts.arrived
        };
        let one_way = Protocol::OneWay { share: 1 };
        // 60 members, and an FEC packet for each 14 segments.
        assert_eq!([0.0, 0.9].map(|loss| arrived(one_way, loss)), [60.0 * 15.0 / 14.0; 2]);
        assert_eq!(arrived(Protocol::Srm, 0.0), 60.0);
        assert!(arrived(Protocol::Srm, 0.3) > 61.0);
    }

    #[test]
    fn without_losses_nothing_is_repaired() {
        for protocol in Protocol::ALL {
            for multicast in [Multicast::Broadcast, Multicast::Pruned] {
                let config =
                    LiConfig { loss: 0.0, multicast, ..short(protocol, FecUse::Proactive, 7) };
                let counts = run(&config, 1);
                assert_eq!((counts.requests(), counts.repairs()), (0.0, 0.0), "{protocol:?}");
                match multicast {
                    Multicast::Broadcast => assert_eq!(counts.payload(), 599.0),
                    Multicast::Pruned => assert!((100.0..200.0).contains(&counts.payload())),
                }
                assert!((150.0..280.0).contains(&counts.ms), "{counts:?}");
            }
        }
    }
}
