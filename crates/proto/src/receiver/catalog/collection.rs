//! The collections of one object: its bytes may turn out to be wrong, and are collected again.

use crate::collection::object_of;
use crate::time::Instant;
use fontana_wire::{Hash, Toi};
use std::time::Duration;

/// Time from the beginning of a collection to that of the next one of the same TOI: it bounds the
/// work for a sender, or a stranger, whose packets are wrong again and again.
pub(super) const EVERY: Duration = Duration::from_secs(2);
/// Wrong digests that are remembered of an object, the last ones.
const MAX_WRONG: usize = 4;

/// The collection of an object that is under way, or due.
#[derive(Debug)]
pub(super) struct Collection {
    number: u16,
    began: Instant,
    /// It begins with the next packet of the object from its time on.
    is_due: bool,
    /// Digests of the bytes of earlier collections, which were wrong.
    wrong: Vec<Hash>,
}

impl Collection {
    /// The first collection of an object.
    pub(super) fn first(now: Instant) -> Self {
        Self { number: 0, began: now, is_due: false, wrong: Vec::new() }
    }

    /// Whether it is the first one.
    pub(super) fn is_first(&self) -> bool {
        self.number == 0
    }

    /// The object that is collected, from packets of `toi`.
    pub(super) fn object(&self, toi: Toi) -> Toi {
        object_of(toi, self.number)
    }

    /// Whether it has not begun: packets are of no use before.
    pub(super) fn is_due(&self) -> bool {
        self.is_due
    }

    /// Whether it begins with a packet that arrives now.
    pub(super) fn begins(&self, now: Instant) -> bool {
        self.is_due && now.saturating_since(self.began) >= EVERY
    }

    /// Another collection begins, of other bytes.
    pub(super) fn renew(&mut self, now: Instant) {
        self.number = self.number.wrapping_add(1);
        self.wrong.clear();
        self.begin(now);
    }

    /// Begins.
    pub(super) fn begin(&mut self, now: Instant) {
        (self.is_due, self.began) = (false, now);
    }

    /// The bytes were wrong. False if an earlier collection had the same bytes: then the sender's
    /// data are wrong, and no further collection is of use.
    pub(super) fn on_wrong(&mut self, digest: Hash) -> bool {
        if self.wrong.contains(&digest) {
            return false;
        }
        if self.wrong.len() >= MAX_WRONG {
            self.wrong.remove(0);
        }
        self.wrong.push(digest);
        self.number = self.number.wrapping_add(1);
        self.is_due = true;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_collected_again_until_its_bytes_are_twice_the_same() {
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let mut collection = Collection::first(at(10));
        let first = collection.object(Toi(7));
        assert!(collection.on_wrong(Hash([1; 32])));
        assert!(collection.is_due() && collection.object(Toi(7)) != first);
        assert!(!collection.begins(at(11)) && collection.begins(at(12)));
        collection.begin(at(15));
        assert!(!collection.is_due() && !collection.begins(at(30)));
        assert!(collection.on_wrong(Hash([2; 32])));
        assert!(!collection.begins(at(16)) && collection.begins(at(17)));
        assert!(!collection.on_wrong(Hash([1; 32])));
    }

    #[test]
    fn few_wrong_digests_are_remembered() {
        let mut collection = Collection::first(Instant::ZERO);
        assert!((0..100).all(|n| collection.on_wrong(Hash([n; 32]))));
        assert_eq!(collection.wrong.len(), MAX_WRONG);
    }
}
