//! How many FEC packets are sent before any is requested (section 3.2).

use fontana_proto::feedback::RedundancyEstimate;
use std::collections::BTreeMap;

/// The redundancy estimates of a sender of FEC packets, one for each `T` that it sends them to.
#[derive(Clone, Debug)]
pub(super) struct Estimates<T> {
    group_segments: u32,
    estimates: BTreeMap<T, RedundancyEstimate>,
    /// The largest request for each group.
    reported: BTreeMap<(u32, T), u32>,
    /// Groups before this one are judged: their estimates have decayed if nothing was requested.
    judged: u32,
}

impl<T: Copy + Ord> Estimates<T> {
    pub(super) fn new(group_segments: u32) -> Self {
        let (estimates, reported) = (BTreeMap::new(), BTreeMap::new());
        Self { group_segments, estimates, reported, judged: 0 }
    }

    /// So many packets of a group are requested. Requests that come late count for the group that
    /// they name.
    pub(super) fn report(&mut self, group: u32, to: T, need: u32) {
        let largest = self.reported.entry((group, to)).or_default();
        let more = need.saturating_sub(*largest);
        *largest = need.max(*largest);
        let estimate = self.estimates.entry(to).or_default();
        if more > 0 && group < self.judged {
            estimate.judge(Some(more), self.group_segments);
        }
    }

    /// The requests for a group have had the time to arrive.
    pub(super) fn judge(&mut self, group: u32) {
        if group < self.judged {
            return;
        }
        self.judged = group + 1;
        for (&to, estimate) in &mut self.estimates {
            estimate.judge(self.reported.get(&(group, to)).copied(), self.group_segments);
        }
    }

    /// FEC packets to send of the next group.
    pub(super) fn packets(&self) -> Vec<(T, u32)> {
        let packets = self.estimates.iter().map(|(&to, estimate)| (to, estimate.symbols()));
        packets.filter(|(_, packets)| *packets > 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_for_four_groups_give_the_numbers_of_the_next_ones() {
        let mut estimates = Estimates::new(7);
        let mut after = |group, need: Option<u32>| {
            if let Some(need) = need {
                estimates.report(group, 'a', need);
                estimates.report(group, 'a', 1);
            }
            estimates.judge(group);
            estimates.packets().first().map_or(0, |of| of.1)
        };
        // 3, 1.5, 0.75 and 2.75.
        assert_eq!([after(0, Some(3)), after(1, None), after(2, None)], [3, 2, 1]);
        assert_eq!(after(3, Some(2)), 3);
    }

    #[test]
    fn a_late_request_counts_by_what_it_adds() {
        let mut estimates = Estimates::new(7);
        estimates.report(0, 'a', 1);
        estimates.judge(0);
        estimates.report(0, 'a', 3);
        estimates.report(0, 'a', 2);
        assert_eq!(estimates.packets(), [('a', 3)]);
        estimates.judge(0);
        assert_eq!(estimates.packets(), [('a', 3)], "it was judged already");
    }
}
