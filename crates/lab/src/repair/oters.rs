//! OTERS: for each router below which the tree branches, the nearest member below it is the
//! representative. It requests from that of the next branching router above, and the repair is
//! subcast to the subtree that lacks it (sections 2, 3.1 and 5.2.1).

use super::member::{Member, Timer};
use super::packet::{Cause, Message, Path};
use super::scheme::{Repair, Request, Scheme};
use super::server::{Owed, Server};
use fontana_proto::Instant;
use fontana_sim::NodeId;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A member of OTERS.
#[derive(Debug)]
pub(super) struct Oters {
    /// The nodes from the source to the member, both included: what mtrace finds.
    route: Vec<NodeId>,
    is_traced: bool,
    /// The best of the other candidates for each router of the route.
    candidates: BTreeMap<NodeId, Candidate>,
    /// Index in the route of the router for which the member is a candidate next.
    climbs_to: usize,
    /// Counts heartbeats.
    beats: usize,
    asked: BTreeMap<u32, Asked>,
    /// Those that have requested.
    requesters: BTreeSet<NodeId>,
    server: Server<Reach>,
    /// Subcast repairs that have arrived: they have passed all subtrees below, too.
    passed: BTreeMap<u32, Vec<Instant>>,
}

/// The order of candidates: the nearest is the best. The paper prefers less lossy members; none has
/// measured its losses when the hierarchy forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    hops: u32,
    id: NodeId,
}

/// What a repair reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Reach {
    Subtree(NodeId),
    Member(NodeId),
}

/// Requests for a group.
#[derive(Clone, Copy, Debug, Default)]
struct Asked {
    tries: u32,
    /// Packets that were requested, and that are subcast.
    subcast: u32,
}

/// To whom a member sends a request, and where the repair is subcast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Upward {
    to: NodeId,
    below: Option<NodeId>,
}

/// From one router to the next above it, candidates wait so long for better ones. Ours.
const CLIMB: Duration = Duration::from_millis(20);
/// A lost trace is repeated after so long. Ours.
const TRACE_AGAIN: Duration = Duration::from_secs(1);
/// Added to the wait for a repair, which the representative may have to request itself. Ours.
const RETRY_MARGIN: Duration = Duration::from_millis(20);
/// Most doublings of the wait for a repair.
const MOST_DOUBLINGS: u32 = 5;

impl Oters {
    pub(super) fn new(member: &Member, route: Vec<NodeId>) -> Self {
        Self {
            climbs_to: route.len().saturating_sub(1),
            route,
            is_traced: false,
            candidates: BTreeMap::new(),
            beats: 0,
            asked: BTreeMap::new(),
            requesters: BTreeSet::new(),
            server: Server::new(member.fec, member.reception.group_segments()),
            passed: BTreeMap::new(),
        }
    }

    /// The member as a candidate for a router of its route.
    fn own(&self, index: usize) -> Candidate {
        let id = self.route.last().copied().unwrap_or(NodeId(u32::MAX));
        Candidate { hops: (self.route.len() - 1 - index) as u32, id }
    }

    /// The best other candidate for a router of the route.
    fn other(&self, index: usize) -> Option<Candidate> {
        self.candidates.get(self.route.get(index)?).copied()
    }

    /// Whether another member is a better candidate.
    fn is_beaten(&self, index: usize) -> bool {
        self.other(index).is_some_and(|other| other < self.own(index))
    }

    /// Routers below which there are other members, and of which the member is the representative.
    fn represents(&self) -> Vec<usize> {
        let routers = 1..self.route.len();
        routers.filter(|&index| self.other(index).is_some() && !self.is_beaten(index)).collect()
    }

    /// Offers the member as a representative of the next router above, unless a better candidate is
    /// known: that one is better for all routers above, too.
    fn climb(&mut self, member: &mut Member, now: Instant) {
        let index = self.climbs_to;
        if index == 0 || self.is_beaten(index) {
            return;
        }
        self.offer(member, now, index);
        self.climbs_to -= 1;
        member.set(now + CLIMB, Timer::Search);
    }

    fn offer(&self, member: &mut Member, now: Instant, index: usize) {
        if let Some(&router) = self.route.get(index) {
            let hops = self.own(index).hops;
            member.subcast(now, router, Message::Candidate { router, hops });
        }
    }

    /// The representative of the lowest router of which the member is not.
    fn upward(&self) -> Upward {
        let above = (1..self.route.len()).rev().find(|&index| self.is_beaten(index));
        let to = above.and_then(|index| self.other(index)).map(|other| other.id);
        let top = above.map_or(1, |index| index + 1);
        // A member that represents no router below is alone there.
        let has_others = (top..self.route.len()).any(|index| self.other(index).is_some());
        let below = self.route.get(top).copied().filter(|_| has_others);
        Upward { to: to.or(self.route.first().copied()).unwrap_or(NodeId(u32::MAX)), below }
    }

    fn ask(&mut self, member: &mut Member, now: Instant, group: u32) {
        let own = member.reception.need(group);
        if own == 0 {
            return;
        }
        let (need, Upward { to, below }) = (own.max(self.server.wanted(group)), self.upward());
        let asked = self.asked.entry(group).or_default();
        if below.is_some() {
            asked.subcast = asked.subcast.max(need);
        }
        let round_trip = 2 * member.distance(to);
        let wait = round_trip.mul_f64(member.constants.retry) + RETRY_MARGIN;
        let wait = wait * (1 << asked.tries.min(MOST_DOUBLINGS));
        asked.tries += 1;
        member.unicast(now, to, Message::Request { group, need, below });
        member.set(now + wait, Timer::Request(group));
    }

    fn send(&self, member: &mut Member, now: Instant, group: u32, owed: Owed<Reach>) {
        let Owed { to, packets, cause } = owed;
        for _ in 0..packets {
            match to {
                Reach::Subtree(router) => {
                    let repair = Message::Repair { group, cause, path: Path::Subcast };
                    member.subcast(now, router, repair);
                }
                Reach::Member(id) => {
                    let repair = Message::Repair { group, cause, path: Path::Direct };
                    member.unicast(now, id, repair);
                }
            }
        }
    }
}

impl Scheme for Oters {
    fn begin(&mut self, member: &mut Member, now: Instant) {
        if !member.is_source() && !self.is_traced {
            member.unicast(now, member.source, Message::Trace);
            member.set(now + TRACE_AGAIN, Timer::Search);
        }
    }

    fn lack(&mut self, member: &mut Member, now: Instant, group: u32) {
        self.ask(member, now, group);
    }

    fn request(&mut self, member: &mut Member, now: Instant, request: Request) {
        let Request { from, group, need, below } = request;
        self.requesters.insert(from);
        let to = below.map_or(Reach::Member(from), Reach::Subtree);
        if member.reception.is_complete(group) {
            let recently = 4 * member.distance(from);
            let passed = self.passed.get(&group).map_or(&[][..], Vec::as_slice);
            let passed = passed.iter().filter(|&&at| at >= now - recently).count() as u32;
            let need = need.saturating_sub(passed);
            let packets = self.server.serve(now, group, to, need, recently);
            self.send(member, now, group, Owed { to, packets, cause: Cause::Requested });
        } else {
            self.server.record(group, to, need);
        }
    }

    fn repair(&mut self, _member: &mut Member, now: Instant, repair: Repair) {
        if repair.path == Path::Subcast {
            self.passed.entry(repair.group).or_default().push(now);
        }
    }

    fn complete(&mut self, member: &mut Member, now: Instant, group: u32) {
        let passed = self.asked.get(&group).map_or(0, |asked| asked.subcast);
        for owed in self.server.complete(now, group, passed) {
            self.send(member, now, group, owed);
        }
        if let Some(before) = group.checked_sub(1) {
            let distances = self.requesters.iter().map(|&requester| member.distance(requester));
            let round_trip = 2 * distances.max().unwrap_or_default();
            member.set(now + round_trip, Timer::Judge(before));
        }
    }

    fn message(&mut self, member: &mut Member, now: Instant, from: NodeId, message: Message) {
        match message {
            Message::Trace => member.unicast(now, from, Message::Traced),
            Message::Traced if !self.is_traced => {
                self.is_traced = true;
                self.climb(member, now);
            }
            Message::Candidate { router, hops } => {
                let candidate = Candidate { hops, id: from };
                let best = self.candidates.entry(router).or_insert(candidate);
                *best = candidate.min(*best);
            }
            _ => {}
        }
    }

    fn due(&mut self, member: &mut Member, now: Instant, timer: Timer) {
        match timer {
            Timer::Search if self.is_traced => self.climb(member, now),
            Timer::Search => self.begin(member, now),
            Timer::Request(group) => self.ask(member, now, group),
            Timer::Judge(group) => self.server.judge(group),
            _ => {}
        }
    }

    fn heartbeat(&mut self, member: &mut Member, now: Instant) {
        self.beats += 1;
        if member.is_source() {
            let segments = member.reception.segments_sent();
            return member.multicast(now, Message::Heartbeat { segments, radius: 0 });
        }
        let represents = self.represents();
        // One router after the other. Members that have lost an offer learn of it then.
        let turn = self.beats.checked_rem(represents.len()).and_then(|turn| represents.get(turn));
        if let Some(&index) = turn {
            self.offer(member, now, index);
        }
    }
}
