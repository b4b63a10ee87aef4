//! SRM: all members hear all requests and repairs, and one that waits does not send what another
//! has sent (section 2; Floyd et al., section III; with FEC, section 5.2.2).

use super::estimates::Estimates;
use super::member::{Member, Timer};
use super::packet::{Cause, Message, Path};
use super::scheme::{Repair, Request, Scheme};
use super::setting::FecUse;
use fontana_proto::Instant;
use fontana_sim::NodeId;
use std::time::Duration;

/// A member of SRM.
#[derive(Debug)]
pub(super) struct Srm {
    /// Members do not repair, and the source does so at once. It alone sends heartbeats, and one
    /// when a group has ended, as a roll call does.
    source_alone: bool,
    groups: Vec<Group>,
    /// The source's.
    estimates: Estimates<()>,
}

/// What a member knows of the requests and repairs of a group.
#[derive(Clone, Debug, Default)]
struct Group {
    /// How often the wait has doubled.
    backoff: u32,
    request_at: Option<Instant>,
    /// Requests of others that arrive before do not double the wait again: they answer one loss.
    ignores_until: Instant,
    repair: Option<PlannedRepair>,
    /// Requests that arrive before are answered by a repair that was just sent.
    holds_until: Instant,
    /// When repairs were sent or arrived.
    repairs: Vec<Instant>,
}

#[derive(Clone, Copy, Debug)]
struct PlannedRepair {
    at: Instant,
    packets: u32,
    /// The member that has requested it.
    requester: NodeId,
}

impl Srm {
    pub(super) fn new(group_segments: u32) -> Self {
        let estimates = Estimates::new(group_segments);
        Self { source_alone: false, groups: Vec::new(), estimates }
    }

    /// SRM's requests, with repairs of the source alone.
    pub(super) fn of_source_alone(group_segments: u32) -> Self {
        Self { source_alone: true, ..Self::new(group_segments) }
    }

    fn group(&mut self, group: u32) -> &mut Group {
        let index = group as usize;
        if self.groups.len() <= index {
            self.groups.resize(index + 1, Group::default());
        }
        &mut self.groups[index]
    }

    /// Sets the timer of a request, and returns how long it waits.
    fn wait(&mut self, member: &mut Member, now: Instant, group: u32) -> Duration {
        let limit = member.constants.backoff_limit;
        let (from, spread) = (member.constants.request_from, member.constants.request_spread);
        let distance = member.distance(member.source);
        let of = self.group(group);
        let doubled = distance * (1 << of.backoff.min(limit));
        let wait = member.draw(doubled.mul_f64(from), doubled.mul_f64(spread));
        if let Some(before) = of.request_at.replace(now + wait) {
            member.cancel(before, Timer::Request(group));
        }
        member.set(now + wait, Timer::Request(group));
        wait
    }

    fn hold(&mut self, member: &Member, now: Instant, group: u32, other: NodeId) {
        let hold = member.distance(other).mul_f64(member.constants.hold);
        self.group(group).holds_until = now + hold;
    }

    fn answer(&mut self, member: &mut Member, now: Instant, request: Request) {
        let Request { from, group, need, .. } = request;
        let distance = member.distance(from);
        let source_alone = self.source_alone;
        let of = self.group(group);
        if now < of.holds_until {
            return;
        }
        let since = now - 2 * distance;
        let recent = of.repairs.iter().filter(|&&at| at >= since).count() as u32;
        let packets = need.saturating_sub(recent);
        if source_alone {
            if member.is_source() {
                self.send_repairs(member, now, group, packets);
            }
        } else if let Some(planned) = &mut of.repair {
            planned.packets = planned.packets.max(packets);
        } else if packets > 0 {
            let constants = member.constants;
            let (least, spread) = (constants.repair_from, constants.repair_spread);
            let wait = member.draw(distance.mul_f64(least), distance.mul_f64(spread));
            let at = now + wait;
            of.repair = Some(PlannedRepair { at, packets, requester: from });
            member.set(at, Timer::Repair(group));
        }
    }

    fn send_repairs(&mut self, member: &mut Member, now: Instant, group: u32, packets: u32) {
        self.group(group).repairs.extend(std::iter::repeat_n(now, packets as usize));
        for _ in 0..packets {
            let (cause, path) = (Cause::Requested, Path::Direct);
            member.multicast(now, Message::Repair { group, cause, path });
        }
    }
}

impl Scheme for Srm {
    fn begin(&mut self, _member: &mut Member, _now: Instant) {}

    fn lack(&mut self, member: &mut Member, now: Instant, group: u32) {
        if self.group(group).request_at.is_none() {
            self.wait(member, now, group);
        }
    }

    fn request(&mut self, member: &mut Member, now: Instant, request: Request) {
        let Request { group, need, .. } = request;
        if member.is_source() {
            self.estimates.report(group, (), need);
        }
        let own = member.reception.need(group);
        if own == 0 {
            self.answer(member, now, request);
        } else if need >= own && now >= self.group(group).ignores_until {
            self.group(group).backoff += 1;
            let wait = self.wait(member, now, group);
            self.group(group).ignores_until = now + wait / 2;
        } else if self.group(group).request_at.is_none() {
            // What others lack, the source has sent.
            self.wait(member, now, group);
        }
    }

    fn repair(&mut self, member: &mut Member, now: Instant, repair: Repair) {
        let Repair { from, group, was_complete, .. } = repair;
        let of = self.group(group);
        of.repairs.push(now);
        let (mut is_answered, planned) = (false, of.repair);
        if let Some(mut planned) = planned {
            planned.packets = planned.packets.saturating_sub(1);
            is_answered = planned.packets == 0;
            of.repair = (!is_answered).then_some(planned);
            if is_answered {
                member.cancel(planned.at, Timer::Repair(group));
            }
        }
        let is_whole = member.reception.group_segments() == 1;
        let completes = !was_complete && member.reception.is_complete(group);
        if is_answered || completes || is_whole {
            self.hold(member, now, group, from);
        }
    }

    fn complete(&mut self, member: &mut Member, now: Instant, group: u32) {
        if let Some(at) = self.group(group).request_at {
            member.cancel(at, Timer::Request(group));
        }
        if member.is_source() && self.source_alone {
            self.heartbeat(member, now);
        }
        // Others would send to the same receivers (section 3.2).
        if member.is_source() && member.fec == FecUse::Proactive {
            for _ in 0..self.estimates.packets().first().map_or(0, |of| of.1) {
                let (cause, path) = (Cause::Estimated, Path::Direct);
                member.multicast(now, Message::Repair { group, cause, path });
                self.group(group).repairs.push(now);
            }
            if let Some(before) = group.checked_sub(1) {
                member.set(now + 2 * member.greatest_distance(), Timer::Judge(before));
            }
        }
    }

    fn message(&mut self, _member: &mut Member, _now: Instant, _from: NodeId, _message: Message) {}

    fn due(&mut self, member: &mut Member, now: Instant, timer: Timer) {
        match timer {
            Timer::Request(group) => {
                let need = member.reception.need(group);
                if need > 0 {
                    member.multicast(now, Message::Request { group, need, below: None });
                    self.group(group).backoff += 1;
                    self.wait(member, now, group);
                }
            }
            Timer::Repair(group) => {
                if let Some(PlannedRepair { packets, requester, .. }) =
                    self.group(group).repair.take()
                {
                    self.send_repairs(member, now, group, packets);
                    self.hold(member, now, group, requester);
                }
            }
            Timer::Judge(group) => self.estimates.judge(group),
            _ => {}
        }
    }

    fn heartbeat(&mut self, member: &mut Member, now: Instant) {
        // Members that do not repair need not be known.
        if member.is_source() || !self.source_alone {
            let segments = member.reception.segments_sent();
            member.multicast(now, Message::Heartbeat { segments, radius: 0 });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::setting::{LiConfig, Protocol};
    use super::*;
    use fontana_proto::SplitMix64;
    use fontana_sim::Multicast;

    const SOURCE: NodeId = NodeId(0);
    const OTHER: NodeId = NodeId(2);

    fn at(milliseconds: u64) -> Instant {
        Instant::from_nanos(milliseconds * 1_000_000)
    }

    /// A member that is 10 ms away from the others, and lacks so many of the first seven segments.
    fn member(lacks: u32, seed: u64) -> Member {
        let table_1 = LiConfig::table_1(Protocol::Srm, Multicast::Broadcast);
        let config = LiConfig { group_segments: 7, ..table_1 };
        let mut member = Member::new(NodeId(1), SOURCE, &config, SplitMix64::new(seed, 0));
        for other in [SOURCE, OTHER] {
            member.sample_distance(other, Duration::from_millis(10));
        }
        (lacks..7).for_each(|segment| drop(member.reception.segment(segment)));
        member
    }

    fn request(need: u32) -> Request {
        Request { from: OTHER, group: 0, need, below: None }
    }

    #[test]
    fn a_request_for_less_does_not_delay_one_for_more() {
        for seed in 0..100 {
            let (mut member, mut srm) = (member(3, seed), Srm::new(7));
            srm.lack(&mut member, at(0), 0);
            let due = member.next_due().unwrap();
            assert!((at(20)..=at(40)).contains(&due), "between C1 and C1 + C2 distances");
            srm.request(&mut member, at(1), request(2));
            assert_eq!(member.next_due(), Some(due));
            srm.request(&mut member, at(1), request(3));
            let later = member.next_due().unwrap();
            assert!((at(41)..=at(81)).contains(&later), "twice as long, from now on");
            srm.request(&mut member, at(2), request(7));
            assert_eq!(member.next_due(), Some(later), "it answers the same loss");
        }
    }

    #[test]
    fn with_a_source_that_repairs_alone_members_do_not_and_it_does_not_wait() {
        let (mut member, mut srm) = (member(0, 1), Srm::of_source_alone(7));
        srm.request(&mut member, at(0), request(2));
        srm.heartbeat(&mut member, at(0));
        assert_eq!((member.next_due(), member.outbox.len()), (None, 0));
        member.id = SOURCE;
        srm.request(&mut member, at(0), request(2));
        assert_eq!(member.outbox.len(), 2);
        srm.request(&mut member, at(10), request(3));
        assert_eq!(member.outbox.len(), 3, "two of them are on their way");
        srm.heartbeat(&mut member, at(11));
        assert_eq!(member.outbox.len(), 4);
    }

    #[test]
    fn a_repair_is_for_what_others_have_not_sent() {
        for seed in 0..100 {
            let (mut member, mut srm) = (member(0, seed), Srm::new(7));
            srm.request(&mut member, at(0), request(2));
            let due = member.next_due().unwrap();
            assert!((at(10)..=at(20)).contains(&due), "between D1 and D1 + D2 distances");
            let heard = Repair { from: OTHER, group: 0, path: Path::Direct, was_complete: true };
            srm.repair(&mut member, at(5), heard);
            srm.due(&mut member, due, Timer::Repair(0));
            assert_eq!(member.outbox.len(), 1);
            srm.request(&mut member, due, request(2));
            assert_eq!(srm.group(0).repair.map(|planned| planned.packets), None, "it holds");
            // Three distances later, what was sent is no longer on its way.
            srm.request(&mut member, due + Duration::from_millis(30), request(2));
            assert_eq!(srm.group(0).repair.map(|planned| planned.packets), Some(2));
        }
    }
}
