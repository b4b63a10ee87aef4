//! Sets of positions, as ranges that do not touch.

use std::collections::BTreeMap;
use std::ops::Range;

/// A set of positions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RangeSet {
    /// The ends of the ranges, by their starts. No two ranges touch, and none is empty.
    ends: BTreeMap<u64, u64>,
    /// Number of positions.
    len: u64,
}

impl RangeSet {
    /// Number of positions.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there is no position.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The ranges, ascending.
    pub fn iter(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.ends.iter().map(|(&start, &end)| start..end)
    }

    /// The first positions that follow each other, from `from` on.
    pub fn first_from(&self, from: u64) -> Option<Range<u64>> {
        self.within(from..u64::MAX).next()
    }

    /// The ranges of the positions that are in `range`.
    pub fn within(&self, range: Range<u64>) -> impl Iterator<Item = Range<u64>> + '_ {
        let before = self.ends.range(..range.start).next_back().map(|(&start, &end)| start..end);
        let others = self.ends.range(range.start..range.end.max(range.start));
        before
            .into_iter()
            .chain(others.map(|(&start, &end)| start..end))
            .map(move |own| own.start.max(range.start)..own.end.min(range.end))
            .filter(|own| !own.is_empty())
    }

    /// Adds positions.
    pub fn insert(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let mut whole = range;
        let before = self.ends.range(..=whole.start).next_back().map(|(&start, &end)| start..end);
        if let Some(before) = before.filter(|before| before.end >= whole.start) {
            self.take(before.start);
            whole = before.start..before.end.max(whole.end);
        }
        while let Some((&start, &end)) = self.ends.range(whole.start..=whole.end).next() {
            self.take(start);
            whole.end = whole.end.max(end);
        }
        self.put(whole);
    }

    /// Removes positions.
    pub fn remove(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let before = self.ends.range(..range.start).next_back().map(|(&start, &end)| start..end);
        if let Some(before) = before.filter(|before| before.end > range.start) {
            self.take(before.start);
            self.put(before.start..range.start);
            self.put(range.end..before.end);
        }
        while let Some((&start, &end)) = self.ends.range(range.start..range.end).next() {
            self.take(start);
            self.put(range.end..end);
        }
    }

    fn take(&mut self, start: u64) {
        if let Some(end) = self.ends.remove(&start) {
            self.len -= end - start;
        }
    }

    fn put(&mut self, range: Range<u64>) {
        if range.start < range.end {
            self.len += range.end - range.start;
            self.ends.insert(range.start, range.end);
        }
    }
}

impl FromIterator<Range<u64>> for RangeSet {
    fn from_iter<I: IntoIterator<Item = Range<u64>>>(ranges: I) -> Self {
        let mut set = Self::default();
        ranges.into_iter().for_each(|range| set.insert(range));
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// A set of numbers is the model.
        #[test]
        fn a_range_set_is_a_set(steps in prop::collection::vec((any::<bool>(), 0_u64..60, 0_u64..20), 0..60)) {
            let (mut set, mut model) = (RangeSet::default(), BTreeSet::new());
            for (inserts, start, count) in steps {
                let range = start..start + count;
                if inserts {
                    set.insert(range.clone());
                    model.extend(range);
                } else {
                    set.remove(range.clone());
                    model.retain(|position| !range.contains(position));
                }
                prop_assert_eq!(set.len(), model.len() as u64);
                let positions: Vec<u64> = set.iter().flatten().collect();
                prop_assert_eq!(positions, model.iter().copied().collect::<Vec<_>>());
                let touching = set.iter().zip(set.iter().skip(1)).any(|(a, b)| a.end >= b.start);
                prop_assert!(!touching);
                let inside: Vec<u64> = set.within(7..31).flatten().collect();
                prop_assert_eq!(inside, model.range(7..31).copied().collect::<Vec<_>>());
                let first = set.first_from(start).map(|range| range.start);
                prop_assert_eq!(first, model.range(start..).next().copied());
            }
        }
    }
}
