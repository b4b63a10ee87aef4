//! Symbols that were received under one id with different bytes.
//!
//! Codes with few symbols, or none beyond the source symbols, have no surplus by which wrong
//! symbols are found. After such a block was corrupt once, the receiver remembers a digest of each
//! symbol. A second, different symbol of one id makes the id *disputed*: the first copy stays where
//! it was placed, the second one is kept in memory. The block is solved without disputed ids if the
//! others suffice. If not, its hash says which copies are right
//! ([`ReceiveJob::Choose`](crate::ReceiveJob::Choose)).

use crate::counter::Counter;
use crate::job::{Choice, SymbolCopy};
use crate::receiver::sources::{Origins, SourceId};
use fontana_fec::Esi;
use fontana_wire::BlockHasher;
use std::collections::{BTreeMap, BTreeSet};

/// Disputed repair symbols of a block, at most. Further ones stay as they were received first.
const MAX_REPAIR: usize = 1024;
/// Memory that the digest of a symbol takes, about.
const DIGEST_BYTES: u64 = 32;

/// What was received of a block under each id.
#[derive(Debug)]
pub(super) struct ReceivedCopies {
    /// `k`: the ids of source symbols are less.
    source_symbols: u32,
    /// Of the first copy of each symbol.
    digests: BTreeMap<Esi, [u8; 8]>,
    /// Of these: source symbols.
    received_source: u32,
    /// The second copies of source symbols.
    seconds: BTreeMap<Esi, SecondCopy>,
    /// Disputed repair symbols.
    repair: BTreeSet<Esi>,
    /// The number of second copies when a choice was last made.
    tried: usize,
}

#[derive(Debug)]
struct SecondCopy {
    bytes: Vec<u8>,
    source: SourceId,
}

/// A choice that gave the right hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::receiver) struct Chosen {
    /// Second copies that replace the first ones.
    pub(in crate::receiver) copies: Vec<SymbolCopy>,
    /// The source of each wrong copy.
    pub(in crate::receiver) wrong: Vec<SourceId>,
}

/// How a symbol compares with those that were received before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    /// It is the first of its id.
    First,
    /// It is the same as another one, or nothing more is remembered of its id.
    Repeated,
    /// Its id is disputed from now on.
    Disputed,
}

impl ReceivedCopies {
    /// Of a block of `source_symbols`, before the first symbol.
    pub(super) fn new(source_symbols: u32) -> Self {
        Self {
            source_symbols,
            digests: BTreeMap::new(),
            received_source: 0,
            seconds: BTreeMap::new(),
            repair: BTreeSet::new(),
            tried: 0,
        }
    }

    /// Bytes of memory that it takes, about.
    pub(super) fn memory(&self) -> u64 {
        let seconds = self.seconds.values().map(|copy| copy.bytes.len() as u64);
        let digests = (self.digests.len() as u64).saturating_mul(DIGEST_BYTES);
        seconds.fold(digests, u64::saturating_add)
    }

    /// Compares a symbol with those that were received before, and remembers it. A second copy is
    /// kept if it has no more than `room` bytes.
    pub(super) fn compare(
        &mut self,
        esi: Esi,
        source: SourceId,
        bytes: &[u8],
        room: u64,
    ) -> Comparison {
        let mut hasher = BlockHasher::new();
        hasher.update(bytes);
        let digest = hasher.finalize().0.first_chunk().copied().unwrap_or_default();
        let is_source = esi.0 < self.source_symbols;
        match self.digests.get(&esi) {
            None => {
                self.digests.insert(esi, digest);
                self.received_source.count(is_source.into());
                Comparison::First
            }
            Some(&first) if first == digest => Comparison::Repeated,
            Some(_) if is_source => {
                let is_full = self.seconds.len() >= Choice::MAX_COPIES || bytes.len() as u64 > room;
                if self.seconds.contains_key(&esi) || is_full {
                    return Comparison::Repeated;
                }
                self.seconds.insert(esi, SecondCopy { bytes: bytes.to_vec(), source });
                Comparison::Disputed
            }
            Some(_) => {
                let is_new = self.repair.len() < MAX_REPAIR && self.repair.insert(esi);
                if is_new { Comparison::Disputed } else { Comparison::Repeated }
            }
        }
    }

    /// Symbols were found to be wrong, and were dropped.
    pub(super) fn forget(&mut self, wrong: &[Esi]) {
        for esi in wrong {
            if self.digests.remove(esi).is_some() && esi.0 < self.source_symbols {
                self.received_source.discount(1);
            }
            self.seconds.remove(esi);
            self.repair.remove(esi);
        }
    }

    /// Symbols of which no other copy was received.
    pub(super) fn undisputed(&self) -> impl Iterator<Item = Esi> {
        let is_disputed = |esi: &Esi| self.seconds.contains_key(esi) || self.repair.contains(esi);
        self.digests.keys().copied().filter(move |esi| !is_disputed(esi))
    }

    /// Whether a choice is to be made: all source symbols were received, and more second copies
    /// than there were at the last choice.
    pub(super) fn may_choose(&self) -> bool {
        self.received_source >= self.source_symbols && self.seconds.len() > self.tried
    }

    /// The second copies, to choose among.
    pub(super) fn choice(&mut self) -> Vec<SymbolCopy> {
        self.tried = self.seconds.len();
        let copy =
            |(&esi, copy): (&Esi, &SecondCopy)| SymbolCopy { esi, bytes: copy.bytes.clone() };
        self.seconds.iter().map(copy).collect()
    }

    /// The hash has chosen the second copies of `right` among the source symbols that were disputed
    /// then, and the first ones of all others. `origins`: of the copies in place, before and after.
    pub(super) fn on_chosen(&mut self, right: &[Esi], origins: &mut Origins) -> Chosen {
        let (mut copies, mut wrong) = (Vec::new(), Vec::new());
        for (esi, SecondCopy { bytes, source }) in std::mem::take(&mut self.seconds) {
            if right.contains(&esi) {
                wrong.push(origins.of(esi));
                origins.note(esi, source);
                copies.push(SymbolCopy { esi, bytes });
            } else {
                wrong.push(source);
            }
        }
        Chosen { copies, wrong }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: SourceId = SourceId::new(1);
    const B: SourceId = SourceId::new(2);

    #[test]
    fn a_second_different_symbol_makes_its_id_disputed() {
        let mut copies = ReceivedCopies::new(2);
        assert_eq!(copies.compare(Esi(0), A, b"a", 1), Comparison::First);
        assert_eq!(copies.compare(Esi(0), B, b"a", 1), Comparison::Repeated);
        assert_eq!(copies.compare(Esi(0), B, b"b", 1), Comparison::Disputed);
        assert!(!copies.may_choose(), "source symbol 1 is missing");
        assert_eq!(copies.compare(Esi(1), B, b"x", 1), Comparison::First);
        assert_eq!(copies.compare(Esi(2), A, b"r", 1), Comparison::First);
        assert_eq!(copies.compare(Esi(2), A, b"s", 1), Comparison::Disputed);
        assert_eq!(copies.compare(Esi(2), A, b"t", 1), Comparison::Repeated);
        assert_eq!(copies.undisputed().collect::<Vec<_>>(), [Esi(1)]);
        assert!(copies.may_choose());
        let second = SymbolCopy { esi: Esi(0), bytes: b"b".to_vec() };
        assert_eq!(copies.choice(), std::slice::from_ref(&second));
        assert!(!copies.may_choose(), "it was tried");
        assert_eq!(copies.compare(Esi(1), A, b"y", 1), Comparison::Disputed);
        assert!(copies.may_choose());
        let mut origins = Origins::default();
        [0, 1].into_iter().for_each(|esi| origins.note(Esi(esi), A));
        let chosen = copies.on_chosen(&[Esi(0)], &mut origins);
        assert_eq!(chosen, Chosen { copies: vec![second], wrong: vec![A, A] });
        assert_eq!([0, 1].map(|esi| origins.of(Esi(esi))), [B, A]);
    }

    #[test]
    fn the_number_of_copies_is_limited() {
        let mut copies = ReceivedCopies::new(100);
        assert_eq!(copies.memory(), 0);
        for esi in (0..100).map(Esi) {
            copies.compare(esi, A, &[1; 50], 50);
        }
        assert_eq!(copies.compare(Esi(0), A, &[2; 50], 49), Comparison::Repeated, "no room");
        let disputed = (0..100)
            .filter(|&esi| copies.compare(Esi(esi), A, &[2; 50], 50) == Comparison::Disputed);
        assert_eq!(disputed.count(), Choice::MAX_COPIES);
        assert_eq!(copies.memory(), 100 * DIGEST_BYTES + 50 * Choice::MAX_COPIES as u64);
    }
}
