//! What a receiver misses of the data: packets, or pieces of groups (sections 3 and 7).

use super::pieces::{GROUP, PieceVector, Pieces};
use super::request_times::RequestTimes;
use fontana_proto::{Instant, SplitMix64};
use std::collections::BTreeMap;
use std::time::Duration;

/// How losses are repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repair {
    /// By the lost packet itself.
    Plain,
    /// By another piece of its group (information dispersal).
    Dispersal,
}

/// Most packets or groups that a receiver records as missing: five minutes of those of the paper's
/// experiments, all lost. What a forged number makes it miss beyond that, it never asks for.
const MOST_MISSING: usize = 1 << 14;

/// What a receiver misses.
#[derive(Clone, Debug)]
pub(super) struct MissingData {
    /// The packets, or the groups that lack pieces.
    requests: RequestTimes,
    /// The packet after the highest, or the group that is being sent.
    next: u64,
    groups: Option<Groups>,
}

/// The groups that lack pieces.
#[derive(Clone, Debug, Default)]
struct Groups {
    /// The pieces of the group that is being sent.
    current: Pieces,
    incomplete: BTreeMap<u64, Pieces>,
    /// Sum of what the incomplete ones lack.
    lacking: u64,
}

impl MissingData {
    /// A receiver that starts with payload number `first` misses nothing before it. `wait`: the
    /// control interval.
    pub(super) fn new(repair: Repair, first: u64, wait: Duration) -> Self {
        let (groups, next) = match repair {
            Repair::Plain => (None, first),
            Repair::Dispersal => (Some(Groups::default()), first / GROUP as u64),
        };
        Self { requests: RequestTimes::new(wait, MOST_MISSING), next, groups }
    }

    /// Packets or pieces that are missing.
    pub(super) fn count(&self) -> u64 {
        let packets = self.requests.missing() as u64;
        self.groups.as_ref().map_or(packets, |groups| groups.lacking)
    }

    /// The payload `data` has arrived; a piece has its vector.
    pub(super) fn receive(&mut self, now: Instant, data: u64, vector: Option<PieceVector>) {
        let Some(vector) = vector.filter(|_| self.groups.is_some()) else {
            self.skip_to(now, data);
            self.requests.arrive(data);
            self.next = self.next.max(data.saturating_add(1));
            return;
        };
        let group = data / GROUP as u64;
        self.skip_to(now, group);
        let Some(groups) = &mut self.groups else { return };
        if group == self.next {
            groups.current.add(vector);
        } else if let Some(pieces) = groups.incomplete.get_mut(&group)
            && pieces.add(vector)
        {
            groups.lacking -= 1;
            if pieces.lacking() == 0 {
                groups.incomplete.remove(&group);
                self.requests.arrive(group);
            }
        }
    }

    /// All payloads below `end` have been sent.
    pub(super) fn end(&mut self, now: Instant, end: u64) {
        let end = if self.groups.is_some() { end / GROUP as u64 } else { end };
        self.skip_to(now, end);
    }

    /// The number of the payload to request now, that of a group's first one; `None` if there is
    /// none.
    pub(super) fn ask(&mut self, now: Instant, random: &mut SplitMix64) -> Option<u64> {
        let part = self.requests.ask(now, random)?;
        Some(if self.groups.is_some() { part * GROUP as u64 } else { part })
    }

    /// All packets below `next` that have not arrived are missing, or the groups below it lack
    /// pieces.
    fn skip_to(&mut self, now: Instant, next: u64) {
        while self.next < next {
            let is_recorded = match &mut self.groups {
                None => self.requests.miss(now, self.next),
                Some(groups) => {
                    let pieces = std::mem::take(&mut groups.current);
                    let is_recorded = pieces.lacking() == 0 || self.requests.miss(now, self.next);
                    if is_recorded && pieces.lacking() > 0 {
                        groups.lacking += pieces.lacking();
                        groups.incomplete.insert(self.next, pieces);
                    }
                    is_recorded
                }
            };
            self.next = if is_recorded { self.next + 1 } else { next };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT: Duration = Duration::from_secs(10);

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    fn plain() -> MissingData {
        MissingData::new(Repair::Plain, 0, WAIT)
    }

    /// A unit vector.
    fn unit(column: usize) -> Option<PieceVector> {
        let mut vector = [0; GROUP];
        vector[column] = 1;
        Some(vector)
    }

    #[test]
    fn packets_in_a_gap_are_missing_until_they_arrive() {
        let mut missing = plain();
        for data in [0, 1, 5] {
            missing.receive(at(0), data, None);
        }
        assert_eq!(missing.count(), 3);
        missing.receive(at(1), 3, None);
        missing.receive(at(1), 3, None);
        assert_eq!(missing.count(), 2);
        let mut random = SplitMix64::new(1, 0);
        assert_eq!(missing.ask(at(9), &mut random), None);
        let mut asked = [(); 3].map(|()| missing.ask(at(10), &mut random));
        asked.sort_unstable();
        assert_eq!(asked, [None, Some(2), Some(4)]);
    }

    #[test]
    fn the_end_of_the_data_shows_what_is_missing_of_the_last_packets() {
        let mut missing = plain();
        missing.receive(at(0), 0, None);
        missing.end(at(1), 3);
        missing.end(at(1), 3);
        assert_eq!(missing.count(), 2);
    }

    #[test]
    fn a_late_receiver_misses_nothing_before_its_first_packet() {
        let mut missing = MissingData::new(Repair::Plain, 1_000, WAIT);
        missing.receive(at(0), 1_000, None);
        missing.receive(at(0), 7, None);
        assert_eq!(missing.count(), 0);
    }

    #[test]
    fn a_group_is_missing_what_it_lacks_when_the_next_one_begins() {
        let mut missing = MissingData::new(Repair::Dispersal, 0, WAIT);
        for piece in [0, 1, 2, 4] {
            missing.receive(at(0), piece, unit(piece as usize));
        }
        assert_eq!(missing.count(), 0, "its last piece may still come");
        // Of the third group; all of the second one is lost.
        missing.receive(at(1), 12, unit(2));
        assert_eq!(missing.count(), 6);
        let mut random = SplitMix64::new(1, 0);
        let mut asked = [(); 3].map(|()| missing.ask(at(11), &mut random));
        asked.sort_unstable();
        assert_eq!(asked, [None, Some(0), Some(5)]);
        // A repeated vector is of no use; the sum of all is.
        missing.receive(at(12), 0, unit(0));
        assert_eq!(missing.count(), 6);
        missing.receive(at(12), 0, Some([1; GROUP]));
        assert_eq!(missing.count(), 5);
        missing.receive(at(12), 0, unit(3));
        assert_eq!(missing.count(), 5, "the first group is complete");
    }

    #[test]
    fn a_forged_number_costs_no_more_than_the_limit() {
        for repair in [Repair::Plain, Repair::Dispersal] {
            let mut missing = MissingData::new(repair, 0, WAIT);
            missing.receive(at(0), u64::MAX, unit(0));
            assert!(missing.count() <= (MOST_MISSING * GROUP) as u64);
            missing.receive(at(0), 3, unit(0));
        }
    }
}
