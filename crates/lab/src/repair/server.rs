//! What a representative owes to those that it repairs (section 3.1).

use super::estimates::Estimates;
use super::packet::Cause;
use super::setting::FecUse;
use fontana_proto::Instant;
use std::collections::BTreeMap;
use std::time::Duration;

/// Requests and repairs of a representative, by what a repair reaches: `T`.
#[derive(Clone, Debug)]
pub(super) struct Server<T> {
    fec: FecUse,
    /// The largest request for each group that is not complete yet.
    wanted: BTreeMap<(u32, T), u32>,
    sent: BTreeMap<(u32, T), Vec<Sent>>,
    estimates: Estimates<T>,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    at: Instant,
    packets: u32,
}

/// Repairs to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owed<T> {
    pub(super) to: T,
    pub(super) packets: u32,
    pub(super) cause: Cause,
}

impl<T: Copy + Ord> Server<T> {
    pub(super) fn new(fec: FecUse, group_segments: u32) -> Self {
        let (wanted, sent) = (BTreeMap::new(), BTreeMap::new());
        Self { fec, wanted, sent, estimates: Estimates::new(group_segments) }
    }

    /// A request for a group that the representative lacks itself.
    pub(super) fn record(&mut self, group: u32, to: T, need: u32) {
        self.estimates.report(group, to, need);
        let wanted = self.wanted.entry((group, to)).or_default();
        *wanted = need.max(*wanted);
    }

    /// The largest recorded request for a group.
    pub(super) fn wanted(&self, group: u32) -> u32 {
        let of_group = self.wanted.iter().filter(|((of, _), _)| *of == group);
        of_group.map(|(_, wanted)| *wanted).max().unwrap_or(0)
    }

    /// A request for a group that the representative has: the packets to send, less those that it
    /// has sent within `recently`, which may still reach the requester.
    pub(super) fn serve(
        &mut self,
        now: Instant,
        group: u32,
        to: T,
        need: u32,
        recently: Duration,
    ) -> u32 {
        self.estimates.report(group, to, need);
        let since = now - recently;
        let sent = self.sent.get(&(group, to)).map_or(&[][..], Vec::as_slice);
        let recent: u32 = sent.iter().filter(|sent| sent.at >= since).map(|s| s.packets).sum();
        let packets = need.saturating_sub(recent);
        self.note(now, group, to, packets);
        packets
    }

    /// The representative has completed a group: what was recorded for it, less `passed` that
    /// travelled to the requesters already, and what the estimates add.
    pub(super) fn complete(&mut self, now: Instant, group: u32, passed: u32) -> Vec<Owed<T>> {
        let mut owed = BTreeMap::new();
        if self.fec == FecUse::Proactive {
            for (to, packets) in self.estimates.packets() {
                owed.insert(to, Owed { to, packets, cause: Cause::Estimated });
            }
        }
        let recorded = self.wanted.iter().filter(|((of, _), _)| *of == group);
        for (&(_, to), wanted) in recorded {
            let packets = wanted.saturating_sub(passed);
            let before = owed.get(&to).map_or(0, |owed| owed.packets);
            if packets > before {
                owed.insert(to, Owed { to, packets, cause: Cause::Requested });
            }
        }
        self.wanted.retain(|(of, _), _| *of != group);
        for of in owed.values() {
            self.note(now, group, of.to, of.packets);
        }
        owed.into_values().collect()
    }

    /// The requests for a group have had the time to arrive.
    pub(super) fn judge(&mut self, group: u32) {
        self.estimates.judge(group);
    }

    fn note(&mut self, at: Instant, group: u32, to: T, packets: u32) {
        if packets > 0 {
            self.sent.entry((group, to)).or_default().push(Sent { at, packets });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Instant {
        Instant::from_nanos(milliseconds * 1_000_000)
    }

    const RECENTLY: Duration = Duration::from_millis(100);

    #[test]
    fn a_request_gets_what_was_not_sent_recently() {
        let mut server = Server::new(FecUse::Reactive, 7);
        let mut serve = |ms, to, need| server.serve(at(ms), 3, to, need, RECENTLY);
        assert_eq!([serve(0, 'a', 2), serve(50, 'a', 3), serve(100, 'a', 3)], [2, 1, 0]);
        assert_eq!(serve(101, 'a', 3), 2, "those of the beginning have not arrived");
        assert_eq!(serve(101, 'b', 3), 3, "and these went to others");
    }

    #[test]
    fn recorded_requests_are_served_once_less_what_has_passed() {
        let mut server = Server::new(FecUse::Reactive, 7);
        for (to, need) in [('a', 1), ('a', 3), ('b', 2), ('a', 2)] {
            server.record(5, to, need);
        }
        assert_eq!((server.wanted(5), server.wanted(6)), (3, 0));
        let owed = server.complete(at(9), 5, 2);
        assert_eq!(owed, [Owed { to: 'a', packets: 1, cause: Cause::Requested }]);
        assert_eq!(server.complete(at(9), 5, 0), []);
        assert_eq!(server.serve(at(10), 5, 'a', 1, RECENTLY), 0);
    }

    #[test]
    fn estimates_and_requests_do_not_add_up() {
        let mut server = Server::new(FecUse::Proactive, 7);
        server.record(0, 'a', 2);
        assert_eq!(server.complete(at(0), 0, 0).len(), 1);
        server.judge(0);
        server.record(1, 'a', 1);
        let owed = |packets, cause| [Owed { to: 'a', packets, cause }];
        assert_eq!(server.complete(at(1), 1, 0), owed(2, Cause::Estimated));
        server.record(2, 'a', 3);
        assert_eq!(server.complete(at(2), 2, 0), owed(3, Cause::Requested));
    }
}
