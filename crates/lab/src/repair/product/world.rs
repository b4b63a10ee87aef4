//! A network of the paper with hosts of the product, and what counts in it.

use super::super::endpoint::Delivered;
use super::super::packet::Class;
use super::super::run::{LAST, LiCounts, LiLog, LiNetwork, SESSION_ENDS};
use super::super::setting::LiConfig;
use crate::swarm::hosts::{ReceiverHost, SendRunner, SwarmReceiver, SwarmRunner};
use fontana_fec::{EncodingId, Esi};
use fontana_proto::report::{Reporter, ReporterConfig};
use fontana_proto::share::SiteTurn;
use fontana_proto::{
    BlockId, Driver, Endpoint, Instant, Receiver, ReceiverEvent, SendDone, SendJob, SenderEvent,
    SiteConfig, SplitMix64,
};
use fontana_sim::{
    Either, HostConfig, IdRunner, LinkId, NodeId, Observer, Packet, RateCap, Simulation,
    SimulationConfig,
};
use fontana_wire::{self as wire, ReceiverId, ReceiverLabel, StreamIndex, Toi};
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

/// Bytes per second of a receiver's symbols for its site, how long it stays for others, and links
/// that its messages to them cross, as in the program.
const SITE_RATE: u64 = 2_500_000;
const STAYS: Duration = Duration::from_millis(500);
const SITE_HOPS: u8 = 1;
/// More than any host of a run sends.
const CAP: RateCap = RateCap {
    bytes_per_second: 1_000_000_000,
    max_packet_bytes: 2_000,
    peak_window: Duration::ZERO,
};
/// The random stream of when members join.
const JOIN_STREAM: u64 = 1 << 34;

/// What is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProductContent {
    /// A file, whose segments are there from the beginning. Each group is a block.
    File,
    /// A stream, whose segments are made one after the other. Each group is a fragment, and waits
    /// until it is full.
    Stream,
}

/// The hosts of a run.
pub(super) struct ProductHosts<'a, S> {
    pub(super) sender: S,
    /// When the sender starts.
    pub(super) starts: Instant,
    pub(super) cap: RateCap,
    pub(super) receiver: &'a dyn Fn() -> Receiver,
    pub(super) runner: IdRunner,
    /// Receivers ask others of their site before the sender.
    pub(super) sites: bool,
}

type ProductHost<S> = Either<Driver<S, SendRunner>, ReceiverHost>;

/// Observes all links, and the receivers.
#[derive(Debug)]
struct ProductLog {
    log: LiLog,
    source: NodeId,
    content: ProductContent,
    /// Segments of a group, and of the run.
    group: u32,
    segments: u32,
    /// Whether a node has a segment, for each node and segment.
    has: Vec<Vec<bool>>,
}

impl ProductLog {
    fn new(network: &LiNetwork, config: &LiConfig, content: ProductContent) -> Self {
        let LiConfig { segments, group_segments: group, .. } = *config;
        let has = vec![vec![false; segments as usize]; network.topology.node_count() as usize];
        Self { log: LiLog::new(segments), source: network.source, content, group, segments, has }
    }

    /// The first segment of a block.
    fn first(&self, block: BlockId) -> Option<u32> {
        let number = match self.content {
            ProductContent::File => block.sbn.0,
            ProductContent::Stream => StreamIndex::number(block.toi)?,
        };
        number.checked_mul(self.group)
    }

    /// The segment that a packet has; `None`: none, or a repair symbol.
    fn segment(&self, packet: &Packet) -> Option<u32> {
        if packet.symbol_bytes == 0 {
            return None;
        }
        let parsed = wire::Packet::parse(&packet.header).ok()?;
        let payload = parsed.payload(EncodingId(parsed.header.codepoint)).ok()??;
        let block = BlockId { toi: parsed.header.toi?, sbn: payload.sbn };
        let Esi(esi) = payload.esi;
        self.first(block).filter(|_| esi < self.group).map(|first| first + esi)
    }

    /// Roll calls count as requests, which they ask for.
    fn class(&self, packet: &Packet) -> Class {
        let is_of_source = packet.source == self.source;
        let is_call = || {
            let parsed = wire::Packet::parse(&packet.header);
            parsed.is_ok_and(|parsed| parsed.header.toi == Some(Toi::ROLL_CALL))
        };
        match (is_of_source, packet.symbol_bytes > 0) {
            (true, true) if self.segment(packet).is_some() => Class::Payload,
            (_, true) => Class::Repair,
            (true, false) if !is_call() => Class::Session,
            (_, false) => Class::Request,
        }
    }

    /// A node has a segment.
    fn take(&mut self, now: Instant, node: NodeId, segment: u32) {
        let has = self.has.get_mut(node.0 as usize).and_then(|it| it.get_mut(segment as usize));
        if let Some(has) = has
            && !std::mem::replace(has, true)
        {
            self.log.delivered(now, Delivered { segment });
        }
    }

    fn has_all(&self, node: NodeId) -> bool {
        self.has.get(node.0 as usize).is_some_and(|it| it.iter().all(|has| *has))
    }
}

impl Observer<Either<SenderEvent, ReceiverEvent>> for ProductLog {
    fn on_transmit(&mut self, now: Instant, node: NodeId, packet: &Packet) {
        let segment = self.segment(packet).filter(|_| node == self.source);
        match (self.content, segment) {
            (ProductContent::File, Some(segment)) => self.log.segment_sent(now, segment),
            // The first fragment leaves when it is full. A segment counts from when it is made,
            // whether the sender takes it or not.
            (ProductContent::Stream, Some(0)) => {
                for segment in 0..self.segments {
                    let made = now + LiConfig::SPACING * (segment + 1);
                    self.log.segment_sent(made - LiConfig::SPACING * self.group, segment);
                }
            }
            _ => {}
        }
    }

    fn on_forward(&mut self, now: Instant, _link: LinkId, packet: &Packet) {
        self.log.hop(now, self.class(packet));
    }

    fn on_deliver(&mut self, now: Instant, node: NodeId, packet: &Packet) {
        let segment = self.segment(packet);
        segment.into_iter().for_each(|segment| self.take(now, node, segment));
    }

    fn on_event(&mut self, now: Instant, node: NodeId, event: &Either<SenderEvent, ReceiverEvent>) {
        if let Either::Right(ReceiverEvent::BlockSolved { block }) = event
            && let Some(first) = self.first(*block)
        {
            (first..first + self.group).for_each(|segment| self.take(now, node, segment));
        }
    }
}

/// Runs the product in a network. `None` if an invariant of the simulation is violated.
pub(super) fn run<S>(
    network: &LiNetwork,
    config: &LiConfig,
    seed: u64,
    content: ProductContent,
    hosts: ProductHosts<'_, S>,
) -> Option<LiCounts>
where
    S: Endpoint<Job = SendJob, Done = SendDone, Event = SenderEvent> + Debug + Send,
{
    let simulation =
        SimulationConfig { multicast: config.multicast, ..SimulationConfig::new(seed) };
    let log = ProductLog::new(network, config, content);
    let mut run: Simulation<ProductHost<S>, ProductLog> =
        Simulation::new(network.topology.clone(), simulation, log);
    let sources: Arc<[NodeId]> = [network.source].into();
    let mut random = SplitMix64::new(seed, JOIN_STREAM);
    for (number, &node) in (1_u32..).zip(&network.members) {
        let id = ReceiverId(u128::from(number).to_be_bytes());
        let own = seed ^ u64::from(number) << 32;
        let reporter = Reporter::new(ReporterConfig::new(id, ReceiverLabel::default(), own));
        let mut receiver = (hosts.receiver)().with_reports(reporter);
        let joins = Instant::ZERO + config.constants.join_within.mul_f64(random.unit());
        let mut place =
            HostConfig::receiver_that_reports(Arc::clone(&sources), CAP).starting_at(joins);
        if hosts.sites {
            receiver = receiver.with_site(SiteConfig {
                seed: own,
                member: number,
                bytes_per_second: SITE_RATE,
                stays: STAYS,
                stays_beside_sender: STAYS,
                turn: SiteTurn::BeforeSender,
            });
            place = place.in_site(site_of(network, node)).within(SITE_HOPS);
        }
        let runner = SwarmRunner::of(hosts.runner.clone());
        run.attach(node, Either::Right(Driver::new(SwarmReceiver::of(receiver), runner)), place);
    }
    let host = Driver::new(hosts.sender, SendRunner::of(hosts.runner));
    let place = HostConfig::sender(hosts.cap).starting_at(hosts.starts);
    run.attach(network.source, Either::Left(host), place);
    run.run_until(Instant::ZERO + SESSION_ENDS).ok()?;
    let complete =
        |log: &ProductLog| network.members.iter().filter(|&&member| log.has_all(member)).count();
    let all = network.members.len();
    run.run_while(Instant::ZERO + LAST, |run| complete(run.observer()) == all).ok()?;
    let log = run.observer();
    Some(log.log.counts(complete(log) as f64 / all as f64))
}

/// The other members that the messages of one reach.
fn site_of(network: &LiNetwork, from: NodeId) -> Vec<NodeId> {
    let paths = network.topology.shortest_paths(from);
    let is_near = |to: NodeId| {
        let links = paths.path(&network.topology, to);
        links.is_some_and(|links| links.len() <= SITE_HOPS.into())
    };
    network.members.iter().copied().filter(|&to| to != from && is_near(to)).collect()
}
