//! What the members of all protocols have: the reception, distances, timers and packets to send.

use super::packet::{Message, RepairPacket};
use super::reception::Reception;
use super::setting::{Constants, FecUse, LiConfig};
use crate::hosts::routed::ANY_HOPS;
use fontana_proto::{ChannelId, Destination, Instant, SplitMix64};
use fontana_sim::NodeId;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

/// What is due at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    /// The source sends its next segment.
    Segment,
    /// A heartbeat.
    Heartbeat,
    /// The next step of the member's search for its place.
    Search,
    /// TMTP: an offer to a member.
    Offer(NodeId),
    /// A request for a group.
    Request(u32),
    /// SRM: a repair of a group.
    Repair(u32),
    /// The requests for a group have had the time to arrive.
    Judge(u32),
}

/// A packet to send.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outgoing {
    pub(super) to: Destination,
    pub(super) packet: RepairPacket,
}

/// A member, or the source.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) id: NodeId,
    pub(super) source: NodeId,
    pub(super) fec: FecUse,
    /// Segments that the source sends.
    pub(super) segments: u32,
    pub(super) constants: Constants,
    pub(super) reception: Reception,
    pub(super) random: SplitMix64,
    distances: BTreeMap<NodeId, Duration>,
    /// Links that packets of others cross to this member: what it reads from their TTL.
    hops: BTreeMap<NodeId, u8>,
    timers: BTreeSet<(Instant, Timer)>,
    pub(super) outbox: VecDeque<Outgoing>,
}

/// The distance to a host from which nothing has arrived. ns-2.
const UNKNOWN_DISTANCE: Duration = Duration::from_secs(1);

impl Member {
    pub(super) fn new(id: NodeId, source: NodeId, config: &LiConfig, random: SplitMix64) -> Self {
        Self {
            id,
            source,
            fec: config.fec,
            segments: config.segments,
            constants: config.constants,
            reception: Reception::new(config.segments, config.group_segments),
            random,
            distances: BTreeMap::new(),
            hops: BTreeMap::new(),
            timers: BTreeSet::new(),
            outbox: VecDeque::new(),
        }
    }

    pub(super) fn is_source(&self) -> bool {
        self.id == self.source
    }

    /// Sends a packet to all members.
    pub(super) fn multicast(&mut self, now: Instant, message: Message) {
        self.send(now, Destination::Channel(ChannelId::BASE), message);
    }

    /// Sends a packet to the members within so many links.
    pub(super) fn multicast_within(&mut self, now: Instant, hops: u8, message: Message) {
        let channel = ChannelId::BASE;
        self.send(now, Destination::Scoped { channel, hops: hops.max(1) }, message);
    }

    /// Sends a packet to the members below a router.
    pub(super) fn subcast(&mut self, now: Instant, router: NodeId, message: Message) {
        let (router, channel) = (address(router), ChannelId::BASE);
        self.send(now, Destination::Subcast { router, channel }, message);
    }

    /// Sends a packet to one host.
    pub(super) fn unicast(&mut self, now: Instant, to: NodeId, message: Message) {
        self.send(now, Destination::Peer(address(to)), message);
    }

    fn send(&mut self, now: Instant, to: Destination, message: Message) {
        let hops = match to {
            Destination::Scoped { hops, .. } => hops,
            _ => ANY_HOPS,
        };
        let packet = RepairPacket { from: self.id, sent_at: now, hops, message };
        self.outbox.push_back(Outgoing { to, packet });
    }

    /// Calls [`due`](Self::due) for this timer then.
    pub(super) fn set(&mut self, at: Instant, timer: Timer) {
        self.timers.insert((at, timer));
    }

    /// Calls [`due`](Self::due) for this timer no more.
    pub(super) fn cancel(&mut self, at: Instant, timer: Timer) {
        self.timers.remove(&(at, timer));
    }

    /// The next timer that is due.
    pub(super) fn due(&mut self, now: Instant) -> Option<Timer> {
        let &(at, timer) = self.timers.first().filter(|(at, _)| *at <= now)?;
        self.timers.remove(&(at, timer));
        Some(timer)
    }

    /// When the next timer is due.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// A packet has taken so long from a host. The clocks of simulated hosts agree; real ones would
    /// exchange time stamps in their session messages.
    pub(super) fn sample_distance(&mut self, from: NodeId, sample: Duration) {
        let weight = self.constants.sample_weight;
        let distance = self.distances.entry(from).or_insert(sample);
        *distance = distance.mul_f64(1.0 - weight) + sample.mul_f64(weight);
    }

    /// The time that a packet takes to a host, or from it.
    pub(super) fn distance(&self, to: NodeId) -> Duration {
        self.distances.get(&to).copied().unwrap_or(UNKNOWN_DISTANCE)
    }

    /// A packet has crossed so many links from a host.
    pub(super) fn sample_hops(&mut self, from: NodeId, hops: u8) {
        self.hops.insert(from, hops);
    }

    /// Links between a host and this member; `None` if no packet has arrived from there.
    pub(super) fn hops(&self, from: NodeId) -> Option<u8> {
        self.hops.get(&from).copied()
    }

    /// The greatest known distance.
    pub(super) fn greatest_distance(&self) -> Duration {
        self.distances.values().max().copied().unwrap_or(UNKNOWN_DISTANCE)
    }

    /// A time after the start of a range, evenly drawn.
    pub(super) fn draw(&mut self, from: Duration, spread: Duration) -> Duration {
        from + spread.mul_f64(self.random.unit())
    }
}

/// The address of a node.
fn address(node: NodeId) -> SocketAddr {
    SocketAddr::new(node.address(), 0)
}
