//! TMTP-uni: members find a representative nearby by an expanding ring search. They send it their
//! requests by unicast, and it repairs its subgroup by multicast of limited scope (sections 2 and
//! 3.1).

use super::member::{Member, Timer};
use super::packet::{Cause, Message, Path};
use super::scheme::{Repair, Request, Scheme};
use super::server::{Owed, Server};
use fontana_proto::Instant;
use fontana_sim::NodeId;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A member of TMTP-uni. The source represents the highest subgroup, and has no parent.
#[derive(Debug)]
pub(super) struct Tmtp {
    /// Links that the last search may cross.
    ring: u8,
    offers: Vec<Offer>,
    parent: Option<Parent>,
    is_representative: bool,
    children: BTreeSet<NodeId>,
    /// Links to the farthest child.
    radius: u8,
    /// How often each group was requested.
    tries: BTreeMap<u32, u32>,
    server: Server<()>,
}

/// The order of offers: the nearest is the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Offer {
    hops: u8,
    children: u32,
    from: NodeId,
    radius: u8,
}

#[derive(Clone, Copy, Debug)]
struct Parent {
    id: NodeId,
    /// Links that its subgroup spans.
    radius: u8,
}

/// The widest search: beyond it, the source is the parent.
const WIDEST_RING: u8 = 32;
/// An offer waits up to so long for each link to the searching member, so that not all answer at
/// the same time. Ours.
const OFFER_SPREAD: Duration = Duration::from_millis(5);
/// Most doublings of the wait for a repair.
const MOST_DOUBLINGS: u32 = 5;

impl Tmtp {
    pub(super) fn new(member: &Member) -> Self {
        Self {
            ring: 0,
            offers: Vec::new(),
            parent: None,
            is_representative: member.is_source(),
            children: BTreeSet::new(),
            radius: 1,
            tries: BTreeMap::new(),
            server: Server::new(member.fec, member.reception.group_segments()),
        }
    }

    /// Chooses a parent if there is an offer, or looks further.
    fn search(&mut self, member: &mut Member, now: Instant) {
        let last = Offer { hops: WIDEST_RING, children: 0, from: member.source, radius: 1 };
        let is_last = self.ring >= WIDEST_RING;
        match self.offers.iter().min().copied().or(is_last.then_some(last)) {
            Some(offer) => self.join(member, now, offer),
            None => {
                self.ring = (2 * self.ring).clamp(1, WIDEST_RING);
                member.multicast_within(now, self.ring, Message::Search);
                let wait = member.constants.search_wait * self.ring.into();
                member.set(now + wait, Timer::Search);
            }
        }
    }

    fn join(&mut self, member: &mut Member, now: Instant, offer: Offer) {
        self.parent = Some(Parent { id: offer.from, radius: offer.radius.max(offer.hops) });
        self.is_representative = offer.hops > member.constants.representative_beyond;
        member.unicast(now, offer.from, Message::Join);
        let lacking: Vec<u32> = self.tries.keys().copied().collect();
        lacking.into_iter().for_each(|group| self.ask(member, now, group));
    }

    /// Requests a group from the parent, as soon as there is one.
    fn ask(&mut self, member: &mut Member, now: Instant, group: u32) {
        let tries = self.tries.entry(group).or_default();
        let (Some(parent), need @ 1..) = (self.parent, member.reception.need(group)) else {
            return;
        };
        let round_trip = 2 * member.distance(parent.id);
        let wait = round_trip.mul_f64(member.constants.retry) * (1 << (*tries).min(MOST_DOUBLINGS));
        *tries += 1;
        member.unicast(now, parent.id, Message::Request { group, need, below: None });
        member.set(now + wait, Timer::Request(group));
    }

    /// Takes a child, which repairs have to reach.
    fn adopt(&mut self, member: &Member, child: NodeId) {
        self.children.insert(child);
        self.is_representative = true;
        self.radius = self.radius.max(hops(member, child));
    }

    fn send(&self, member: &mut Member, now: Instant, group: u32, packets: u32, cause: Cause) {
        for _ in 0..packets {
            let repair = Message::Repair { group, cause, path: Path::Direct };
            member.multicast_within(now, self.radius, repair);
        }
    }

    fn largest_round_trip(&self, member: &Member) -> Duration {
        let distances = self.children.iter().map(|&child| member.distance(child));
        2 * distances.max().unwrap_or_default()
    }
}

/// Links between a host and this member.
fn hops(member: &Member, other: NodeId) -> u8 {
    member.hops(other).unwrap_or(WIDEST_RING)
}

impl Scheme for Tmtp {
    fn begin(&mut self, member: &mut Member, now: Instant) {
        if !member.is_source() {
            self.search(member, now);
        }
    }

    fn lack(&mut self, member: &mut Member, now: Instant, group: u32) {
        self.ask(member, now, group);
    }

    fn request(&mut self, member: &mut Member, now: Instant, request: Request) {
        let Request { from, group, need, .. } = request;
        // Its JOIN may be lost.
        self.adopt(member, from);
        if member.reception.is_complete(group) {
            let recently = 2 * self.largest_round_trip(member);
            let packets = self.server.serve(now, group, (), need, recently);
            self.send(member, now, group, packets, Cause::Requested);
        } else {
            self.server.record(group, (), need);
        }
    }

    fn repair(&mut self, _member: &mut Member, _now: Instant, _repair: Repair) {}

    fn complete(&mut self, member: &mut Member, now: Instant, group: u32) {
        if !self.is_representative {
            return;
        }
        for Owed { packets, cause, .. } in self.server.complete(now, group, 0) {
            self.send(member, now, group, packets, cause);
        }
        if let Some(before) = group.checked_sub(1) {
            member.set(now + self.largest_round_trip(member), Timer::Judge(before));
        }
    }

    fn message(&mut self, member: &mut Member, now: Instant, from: NodeId, message: Message) {
        let hops = hops(member, from);
        match message {
            Message::Search => {
                let has_room = self.children.len() < member.constants.most_children;
                if self.is_representative && has_room {
                    let wait = member.draw(Duration::ZERO, OFFER_SPREAD * hops.into());
                    member.set(now + wait, Timer::Offer(from));
                }
            }
            Message::Offer { children, radius } if self.parent.is_none() => {
                self.offers.push(Offer { hops, children, from, radius });
            }
            Message::Join => self.adopt(member, from),
            Message::Heartbeat { radius, .. } => {
                if let Some(parent) = self.parent.as_mut().filter(|parent| parent.id == from) {
                    parent.radius = radius;
                }
            }
            _ => {}
        }
    }

    fn due(&mut self, member: &mut Member, now: Instant, timer: Timer) {
        match timer {
            Timer::Search if self.parent.is_none() => self.search(member, now),
            Timer::Offer(to) => {
                let children = self.children.len() as u32;
                member.unicast(now, to, Message::Offer { children, radius: self.radius });
            }
            Timer::Request(group) => self.ask(member, now, group),
            Timer::Judge(group) => self.server.judge(group),
            _ => {}
        }
    }

    fn heartbeat(&mut self, member: &mut Member, now: Instant) {
        let segments = member.reception.segments_sent();
        let heartbeat = Message::Heartbeat { segments, radius: self.radius };
        if member.is_source() {
            // The others learn from it that the last packets were sent.
            member.multicast(now, heartbeat);
        } else if let Some(parent) = self.parent {
            let own = if self.is_representative { self.radius } else { 0 };
            member.multicast_within(now, parent.radius.max(own), heartbeat);
        }
    }
}
