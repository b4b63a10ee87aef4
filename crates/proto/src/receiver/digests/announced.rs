//! What one sender has announced: the digests of its last groups.

use super::budget::CheckBudget;
use super::{DigestSigner, ListFate};
use crate::time::Instant;
use fontana_wire::{DigestList, GroupNumber, SymbolDigest};
use std::collections::VecDeque;

/// Groups of each sender: the one whose symbols arrive, the next one, and the one before, whose
/// last symbols may be late.
const MAX_GROUPS: usize = 3;

/// What one sender has announced.
#[derive(Debug)]
pub(super) struct AnnouncedSymbols {
    pub(super) signer: DigestSigner,
    /// The last groups, ascending.
    pub(super) groups: VecDeque<Group>,
    /// Number of lists that were proven.
    pub(super) lists: u32,
    pub(super) last_proven_at: Instant,
}

/// A group whose signature was verified.
#[derive(Debug)]
pub(super) struct Group {
    number: GroupNumber,
    lists: u8,
    root: SymbolDigest,
    /// A bit for each list that has arrived.
    arrived: u64,
    pub(super) digests: DigestSet,
}

impl AnnouncedSymbols {
    pub(super) fn new(signer: DigestSigner) -> Self {
        let (groups, last_proven_at) = (VecDeque::new(), Instant::ZERO);
        Self { signer, groups, lists: 0, last_proven_at }
    }

    pub(super) fn on_list(
        &mut self,
        now: Instant,
        checks: &mut CheckBudget,
        list: &DigestList<'_>,
    ) -> ListFate {
        let number = list.group();
        let known = self.groups.iter().position(|group| group.number == number);
        let at = match known {
            Some(at) => at,
            // Older ones make room for no newer one.
            None if self.groups.len() >= MAX_GROUPS
                && self.groups.front().is_some_and(|group| number < group.number) =>
            {
                return ListFate::Known;
            }
            None => {
                if !checks.permit(now) {
                    return ListFate::Unchecked;
                }
                let root = list.root();
                if !list.verifies(&self.signer.key, self.signer.instance, root) {
                    return ListFate::Invalid;
                }
                if self.groups.len() >= MAX_GROUPS {
                    self.groups.pop_front();
                }
                let at = self.groups.partition_point(|group| group.number < number);
                self.groups.insert(at, Group::new(number, list.lists(), root));
                at
            }
        };
        let Some(group) = self.groups.get_mut(at) else { return ListFate::Invalid };
        let fate = group.add(list);
        if fate == ListFate::Proven {
            self.lists = self.lists.saturating_add(1);
            self.last_proven_at = now;
        }
        fate
    }

    /// Whether a list before the last one has not arrived.
    pub(super) fn lacks_a_list(&self) -> bool {
        let mut expected = None;
        let mut groups = self.groups.iter().rev();
        let last = groups.next().is_some_and(Group::has_gap);
        let others = groups.any(|group| !group.is_complete());
        let has_gap = self.groups.iter().any(|group| {
            let before = expected.replace(group.number.0.saturating_add(1));
            before.is_some_and(|expected| expected != group.number.0)
        });
        last || others || has_gap
    }

    pub(super) fn contains(&self, digest: SymbolDigest) -> bool {
        self.groups.iter().any(|group| group.digests.contains(digest))
    }
}

impl Group {
    fn new(number: GroupNumber, lists: u8, root: SymbolDigest) -> Self {
        let digests = DigestSet::for_digests(usize::from(lists) * DigestList::MAX_DIGESTS);
        Self { number, lists, root, arrived: 0, digests }
    }

    fn add(&mut self, list: &DigestList<'_>) -> ListFate {
        let bit = 1_u64.checked_shl(list.index().into()).unwrap_or(0);
        if self.arrived & bit != 0 {
            return ListFate::Known;
        }
        if list.lists() != self.lists || list.root() != self.root {
            return ListFate::Invalid;
        }
        self.arrived |= bit;
        list.digests().for_each(|digest| self.digests.insert(digest));
        ListFate::Proven
    }

    /// Whether a list before the last one that has arrived has not.
    fn has_gap(&self) -> bool {
        self.arrived & self.arrived.wrapping_add(1) != 0
    }

    fn is_complete(&self) -> bool {
        self.arrived.count_ones() == u32::from(self.lists)
    }
}

/// A set of digests: a table with open addressing, at most half full. Digests are hashes, and only
/// those that a publisher has signed are inserted: their own bytes are the place.
#[derive(Debug)]
pub(super) struct DigestSet {
    /// Zeros where there is none. A symbol whose digest is 0 is never announced.
    pub(super) slots: Vec<SymbolDigest>,
}

impl DigestSet {
    fn for_digests(count: usize) -> Self {
        let slots = count.saturating_mul(2).next_power_of_two();
        Self { slots: vec![SymbolDigest::default(); slots] }
    }

    /// The slot that has the digest, or the first empty one from its place on.
    fn find(&self, digest: SymbolDigest) -> usize {
        let [a, b, c, d, ..] = digest.0;
        let mask = self.slots.len().saturating_sub(1);
        let mut at = u32::from_be_bytes([a, b, c, d]) as usize & mask;
        while self.slots.get(at).is_some_and(|&s| s != digest && s != SymbolDigest::default()) {
            at = at.wrapping_add(1) & mask;
        }
        at
    }

    fn insert(&mut self, digest: SymbolDigest) {
        let at = self.find(digest);
        if let Some(slot) = self.slots.get_mut(at) {
            *slot = digest;
        }
    }

    fn contains(&self, digest: SymbolDigest) -> bool {
        digest != SymbolDigest::default() && self.slots.get(self.find(digest)) == Some(&digest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fontana_fec::{Esi, Sbn};
    use fontana_wire::Toi;

    fn digest(number: u32) -> SymbolDigest {
        SymbolDigest::of(Toi(1), Sbn(0), Esi(number), b"symbol")
    }

    #[test]
    fn a_set_has_what_was_inserted() {
        let mut set = DigestSet::for_digests(1_000);
        (0..1_000).for_each(|number| set.insert(digest(number)));
        (0..1_000).for_each(|number| set.insert(digest(number)));
        assert!((0..1_000).all(|number| set.contains(digest(number))));
        assert!((1_000..3_000).all(|number| !set.contains(digest(number))));
        assert!(!set.contains(SymbolDigest::default()));
        // Digests that begin alike.
        let mut alike = DigestSet::for_digests(4);
        let of = |last| SymbolDigest([255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0, last]);
        (0..4).for_each(|last| alike.insert(of(last)));
        assert!((0..4).all(|last| alike.contains(of(last))) && !alike.contains(of(5)));
    }
}
