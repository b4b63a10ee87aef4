//! Which groups of segments a member has.

/// The reception of all groups. A group is complete with any k of its packets (section 4.1).
#[derive(Clone, Debug)]
pub(super) struct Reception {
    group_segments: u32,
    groups: Vec<Group>,
    /// Groups of which the source has sent all: it has sent a packet of a later one.
    ended: u32,
}

#[derive(Clone, Debug)]
struct Group {
    /// For each segment, whether it has arrived.
    arrived: Vec<bool>,
    /// Segments that have arrived.
    segments: u32,
    repairs: u32,
}

/// What a packet has changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Progress {
    /// Segments that can be delivered now.
    pub(super) delivered: Vec<u32>,
    /// The group is complete now.
    pub(super) completes: bool,
}

impl Reception {
    /// Nothing of `segments` segments.
    pub(super) fn new(segments: u32, group_segments: u32) -> Self {
        let group_segments = group_segments.max(1);
        let count = segments.div_ceil(group_segments) as usize;
        let arrived = vec![false; group_segments as usize];
        let groups = vec![Group { arrived, segments: 0, repairs: 0 }; count];
        Self { group_segments, groups, ended: 0 }
    }

    pub(super) fn group_segments(&self) -> u32 {
        self.group_segments
    }

    pub(super) fn group_of(&self, segment: u32) -> u32 {
        segment / self.group_segments
    }

    /// Whether there is such a group.
    pub(super) fn has(&self, group: u32) -> bool {
        (group as usize) < self.groups.len()
    }

    /// Packets that complete a group; 0 if it is complete.
    pub(super) fn need(&self, group: u32) -> u32 {
        self.groups
            .get(group as usize)
            .map_or(0, |of| self.group_segments.saturating_sub(of.segments + of.repairs))
    }

    pub(super) fn is_complete(&self, group: u32) -> bool {
        self.need(group) == 0
    }

    /// Whether all groups are complete.
    pub(super) fn has_all(&self) -> bool {
        (0..self.groups.len() as u32).all(|group| self.is_complete(group))
    }

    /// A segment arrives.
    pub(super) fn segment(&mut self, segment: u32) -> Progress {
        let group = self.group_of(segment);
        if self.is_complete(group) {
            return Progress::default();
        }
        let index = (segment % self.group_segments) as usize;
        let Some(of) = self.groups.get_mut(group as usize) else { return Progress::default() };
        match of.arrived.get_mut(index) {
            Some(arrived) if !*arrived => *arrived = true,
            _ => return Progress::default(),
        }
        of.segments += 1;
        let mut progress = self.progress(group);
        // A segment that arrives is delivered at once.
        if !progress.completes {
            progress.delivered.push(segment);
        } else if !progress.delivered.contains(&segment) {
            progress.delivered.insert(0, segment);
        }
        progress
    }

    /// An FEC packet arrives, or the only segment of its group again.
    pub(super) fn repair(&mut self, group: u32) -> Progress {
        if self.is_complete(group) {
            return Progress::default();
        }
        if let Some(of) = self.groups.get_mut(group as usize) {
            of.repairs += 1;
        }
        self.progress(group)
    }

    fn progress(&self, group: u32) -> Progress {
        if !self.is_complete(group) {
            return Progress::default();
        }
        let arrived = self.groups.get(group as usize).map_or(&[][..], |of| &of.arrived);
        let recovered = (0..).zip(arrived).filter(|(_, arrived)| !**arrived);
        let first = group * self.group_segments;
        let delivered = recovered.map(|(index, _): (u32, _)| first + index).collect();
        Progress { delivered, completes: true }
    }

    /// The source has sent all groups before `group`. Returns those of them that are incomplete and
    /// of which that was not known.
    pub(super) fn end_before(&mut self, group: u32) -> Vec<u32> {
        let from = self.ended;
        self.ended = from.max(group.min(self.groups.len() as u32));
        (from..self.ended).filter(|&group| !self.is_complete(group)).collect()
    }

    /// Segments that the source is known to have sent, in whole groups.
    pub(super) fn segments_sent(&self) -> u32 {
        self.ended * self.group_segments
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_k_packets_complete_a_group_and_deliver_the_lost_segments() {
        let mut reception = Reception::new(14, 7);
        for segment in [0, 2, 3, 4, 6] {
            assert_eq!(reception.segment(segment).delivered, [segment]);
        }
        assert_eq!(reception.segment(3), Progress::default(), "it is there already");
        assert_eq!(reception.need(0), 2);
        assert_eq!(reception.repair(0), Progress::default());
        let progress = reception.repair(0);
        assert_eq!(progress, Progress { delivered: vec![1, 5], completes: true });
        assert_eq!(reception.repair(0), Progress::default());
        assert_eq!(reception.segment(1), Progress::default(), "it was recovered");
        assert!(reception.is_complete(0) && !reception.has_all());
    }

    #[test]
    fn a_late_segment_completes_a_group_too() {
        let mut reception = Reception::new(3, 3);
        reception.segment(2);
        reception.repair(0);
        let progress = reception.segment(0);
        assert_eq!(progress, Progress { delivered: vec![0, 1], completes: true });
        assert!(reception.has_all());
    }

    #[test]
    fn incomplete_groups_are_reported_once_when_a_later_one_begins() {
        let mut reception = Reception::new(448, 112);
        assert_eq!(reception.end_before(0), [0; 0]);
        (112..224).for_each(|segment| drop(reception.segment(segment)));
        assert_eq!(reception.end_before(3), [0, 2]);
        assert_eq!(reception.end_before(2), [0; 0]);
        assert_eq!(reception.end_before(99), [3]);
        assert_eq!(reception.segments_sent(), 448);
        assert!(!reception.has(4) && reception.is_complete(4));
    }
}
