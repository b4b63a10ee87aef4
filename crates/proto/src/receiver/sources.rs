//! The sources of symbols: which of them have sent wrong ones. Remembered in memory alone, for the
//! time of a reception.
//!
//! A source is an address and a port, or, of receivers that share, an address. It is *doubted* if
//! most symbols that are known of it were wrong, or if all blocks that had symbols of it turned out
//! to be corrupt. While there is a source whose symbols were right, or, of receivers that share,
//! one that is not doubted, blocks are solved from symbols of sources that are not doubted first.
//! Nothing is dropped for its source alone: any host can send in the name of another. The symbols
//! of doubted sources wait in memory, and are used if no others arrive.

use crate::counter::Counter;
use crate::time::Instant;
use fontana_fec::Esi;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

/// A source of symbols. The default is one that is not known: that of symbols that an earlier run
/// has saved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SourceId(u32);

impl SourceId {
    /// All sources that the driver has pulled from. It judges them itself, by blocks.
    pub(super) const PULLED: Self = Self(u32::MAX);

    /// The lowest bit says whether it is a receiver that shares.
    const fn numbered(number: u32, is_shared: bool) -> Self {
        Self(number.wrapping_shl(1) | is_shared as u32)
    }

    #[cfg(test)]
    pub(super) const fn new(number: u32) -> Self {
        Self::numbered(number, false)
    }

    /// Its number, for [`of_number`](Self::of_number).
    pub(super) const fn number(self) -> u32 {
        self.0
    }

    /// The source with this number.
    pub(super) const fn of_number(number: u32) -> Self {
        Self(number)
    }

    /// Whether it is a receiver that shares. Its symbols are dropped before those that sessions and
    /// mirrors have brought.
    pub(super) fn is_shared(self) -> bool {
        self != Self::PULLED && self.0 & 1 == 1
    }
}

/// From whose symbols a block is solved, after its wrong ones were not found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// From those of one source.
    Alone(SourceId),
    /// From those of all but one, which is a receiver that shares: the others answer for each
    /// other, so that one alone may have little of a block.
    Without(SourceId),
    /// Of what other receivers have sent, from the source symbols: those that were named are asked
    /// for, and members that have no block have no others.
    Source,
}

/// What is known of the symbols of one source.
#[derive(Clone, Copy, Debug)]
struct Record {
    id: SourceId,
    address: SocketAddr,
    /// Symbols that were received.
    received: u64,
    /// Symbols of verified blocks that these were recovered from.
    right: u64,
    /// Symbols that a search has found to be wrong.
    wrong: u64,
    /// Corrupt blocks with symbols of this source, until one was verified.
    strikes: u32,
    /// Blocks that have to be verified before the source is no longer doubted for its strikes.
    doubted_for: u32,
}

/// The sources of a reception.
#[derive(Debug, Default)]
pub(super) struct Sources {
    /// In the order of their numbers.
    records: Vec<Record>,
    /// The source that was found last.
    last: usize,
    /// The number of the newest source.
    newest: u32,
    /// Whether a source is doubted, and another one was right.
    has_doubts: bool,
    /// Whether a receiver that shares is not doubted.
    has_others_that_share: bool,
    /// When what speaks against sources was halved.
    halved_at: Option<Instant>,
}

/// Sources that are remembered: honest ones are as many as senders and mirrors. An attacker who
/// sends from more displaces those that were never right and sent the fewest symbols.
const MAX_SOURCES: usize = 256;
/// The port of the sources that are addresses of receivers that share.
pub(super) const SHARED_PORT: u16 = 0;
/// Seconds after which what speaks against a source is halved.
const HALVED_AFTER: u64 = 30;
/// Blocks for which a source is doubted after its first strike. Each further strike doubles them:
/// an honest source that shared a block with a forger is tried again soon.
const FIRST_DOUBT: u32 = 4;
/// Strikes that double the number of blocks.
const MAX_DOUBLINGS: u32 = 8;

impl Record {
    fn is_doubted(&self) -> bool {
        self.wrong > self.right || self.doubted_for > 0
    }

    fn is_proven(&self) -> bool {
        self.right > 0 && !self.is_doubted()
    }
}

impl Sources {
    /// The source with this address, which has sent another symbol.
    #[inline]
    pub(super) fn find(&mut self, address: SocketAddr) -> SourceId {
        let last = self.records.get(self.last);
        if last.is_none_or(|last| last.address != address) {
            self.find_or_insert(address);
        }
        self.records.get_mut(self.last).map_or(SourceId::default(), |record| {
            record.received.count(1);
            record.id
        })
    }

    #[cold]
    fn find_or_insert(&mut self, address: SocketAddr) {
        if let Some(at) = self.records.iter().position(|record| record.address == address) {
            self.last = at;
        } else {
            // A number is never used twice: symbols of a source that is forgotten are of none.
            let newest = self.newest.checked_add(1).filter(|&number| number < u32::MAX / 2);
            let Some(newest) = newest else {
                self.last = usize::MAX;
                return;
            };
            self.newest = newest;
            if self.records.len() >= MAX_SOURCES {
                let least = self.records.iter().enumerate();
                let least = least.min_by_key(|(_, record)| (record.right, record.received));
                let at = least.map_or(0, |(at, _)| at);
                self.records.remove(at);
            }
            self.last = self.records.len();
            let id = SourceId::numbered(self.newest, address.port() == SHARED_PORT);
            let (received, right, wrong, strikes, doubted_for) = (0, 0, 0, 0, 0);
            self.records.push(Record { id, address, received, right, wrong, strikes, doubted_for });
            self.has_others_that_share |= id.is_shared();
        }
    }

    fn record(&self, id: SourceId) -> Option<&Record> {
        let at = self.records.binary_search_by_key(&id, |record| record.id).ok()?;
        self.records.get(at)
    }

    fn change(&mut self, id: SourceId, change: impl FnOnce(&mut Record)) {
        if let Ok(at) = self.records.binary_search_by_key(&id, |record| record.id)
            && let Some(record) = self.records.get_mut(at)
        {
            change(record);
        }
    }

    fn update_doubts(&mut self) {
        self.has_doubts = self.records.iter().any(Record::is_doubted)
            && self.records.iter().any(Record::is_proven);
        self.has_others_that_share =
            self.records.iter().any(|record| record.id.is_shared() && !record.is_doubted());
    }

    /// Whether symbols of this source wait until no others arrive.
    #[inline]
    pub(super) fn doubts(&self, id: SourceId) -> bool {
        let has_others = if id.is_shared() { self.has_others_that_share } else { self.has_doubts };
        has_others && self.is_doubted(id)
    }

    /// The wrong symbols of a block were found. Receivers that share whose symbols are left are not
    /// doubted for it.
    pub(super) fn on_cleared(&mut self, counts: &BTreeMap<SourceId, u32>) {
        for &id in counts.keys().filter(|id| id.is_shared()) {
            self.change(id, |record| (record.strikes, record.doubted_for) = (0, 0));
        }
        self.update_doubts();
    }

    /// Whether a receiver that shares is not doubted.
    pub(super) fn has_others_that_share(&self) -> bool {
        self.has_others_that_share
    }

    /// Whether a receiver that shares is doubted.
    pub(super) fn doubts_shared(&self) -> bool {
        self.records.iter().any(|record| record.id.is_shared() && record.is_doubted())
    }

    /// Whether the source is doubted, whatever the others are.
    pub(super) fn is_doubted(&self, id: SourceId) -> bool {
        self.record(id).is_some_and(Record::is_doubted)
    }

    /// Whether symbols of this source were right, and it is not doubted.
    pub(super) fn has_proven(&self, id: SourceId) -> bool {
        self.record(id).is_some_and(Record::is_proven)
    }

    /// Whether symbols of this address were right, and it is not doubted.
    pub(super) fn is_proven(&self, address: SocketAddr) -> bool {
        self.at(address).is_some_and(Record::is_proven)
    }

    /// Whether this address is doubted, whatever the others are.
    pub(super) fn is_doubted_at(&self, address: SocketAddr) -> bool {
        self.at(address).is_some_and(Record::is_doubted)
    }

    fn at(&self, address: SocketAddr) -> Option<&Record> {
        self.records.iter().find(|record| record.address == address)
    }

    /// Halves what speaks against sources, for each [`HALVED_AFTER`] that has passed. A host that
    /// goes on is doubted again, after one more corrupt block; one in whose name another has sent
    /// is right again.
    pub(super) fn forget(&mut self, now: Instant) {
        let since = *self.halved_at.get_or_insert(now);
        let times = now.saturating_since(since).as_secs().checked_div(HALVED_AFTER).unwrap_or(0);
        if times == 0 {
            return;
        }
        self.halved_at = Some(now);
        let halved = |count: u64| count.checked_shr(times as u32).unwrap_or(0);
        for record in &mut self.records {
            record.wrong = halved(record.wrong);
            record.strikes = halved(record.strikes.into()) as u32;
            record.doubted_for = halved(record.doubted_for.into()) as u32;
        }
        self.update_doubts();
    }

    /// A block is verified that was recovered from so many symbols of these sources.
    pub(super) fn on_verified(&mut self, counts: &BTreeMap<SourceId, u32>) {
        for record in &mut self.records {
            record.doubted_for.discount(1);
        }
        for (&id, &count) in counts {
            self.change(id, |record| {
                record.right.count(count.into());
                (record.strikes, record.doubted_for) = (0, 0);
            });
        }
        self.update_doubts();
    }

    /// A block with symbols of these sources is corrupt. Those whose symbols were right in other
    /// blocks are not doubted for it.
    pub(super) fn on_corrupt(&mut self, counts: &BTreeMap<SourceId, u32>) {
        for &id in counts.keys() {
            self.change(id, |record| {
                if record.right == 0 {
                    let doublings = record.strikes.min(MAX_DOUBLINGS);
                    record.doubted_for = FIRST_DOUBT.checked_shl(doublings).unwrap_or(u32::MAX);
                    record.strikes.count(1);
                }
            });
        }
        self.update_doubts();
    }

    /// A symbol of each of these sources was wrong.
    pub(super) fn on_wrong(&mut self, ids: impl IntoIterator<Item = SourceId>) {
        for id in ids {
            self.change(id, |record| record.wrong = record.wrong.saturating_add(1));
        }
        self.update_doubts();
    }

    /// Whether sources are known that have sent no symbol of a block. `counts`: the number of
    /// symbols of those that have.
    pub(super) fn has_others(&self, counts: &BTreeMap<SourceId, u32>) -> bool {
        self.records.iter().any(|record| !counts.contains_key(&record.id))
    }

    /// From whose symbols a block is solved next. `counts`: the number of symbols of each of its
    /// sources. Alone the best one that was not `tried`; of receivers that share, without the worst
    /// one that was not. After all of them, and if there is only one, `None`: all together. Never
    /// the source of saved symbols, which sends no others.
    pub(super) fn next_choice(
        &self,
        counts: &BTreeMap<SourceId, u32>,
        tried: &BTreeSet<SourceId>,
    ) -> Option<Choice> {
        /// An attacker may send each symbol from another port.
        const MOST: usize = 4;
        // Those that share are judged beside what the block has from elsewhere.
        let shared = counts.iter().filter(|(id, _)| id.is_shared());
        if let Some((&first, _)) = shared.clone().next() {
            if tried.len() >= MOST || shared.clone().count() < 2 && tried.contains(&first) {
                return None;
            }
            let is_left = |(id, _): &(&SourceId, &u32)| !tried.contains(id);
            return shared
                .filter(is_left)
                .max_by_key(|(id, count)| self.suspicion(**id, **count))
                .map(|(&id, _)| Choice::Without(id));
        }
        if counts.len() < 2 || tried.len() >= MOST {
            return None;
        }
        let rank = |(&id, &count): (&SourceId, &u32)| {
            let record = self.record(id);
            let is_doubted = record.is_some_and(Record::is_doubted);
            let wrong = record.map_or(0, |record| record.wrong_permille());
            (is_doubted, wrong, Reverse(count), id)
        };
        let is_left =
            |(id, _): &(&SourceId, &u32)| **id != SourceId::default() && !tried.contains(id);
        let best = counts.iter().filter(is_left).map(rank).min();
        best.map(|(.., id)| Choice::Alone(id))
    }

    /// How likely it is that the wrong symbols of a block are those of a receiver that shares,
    /// which has sent so many of it: one that is doubted before one of which nothing is known, and
    /// that before one that was right.
    fn suspicion(&self, id: SourceId, count: u32) -> impl Ord {
        let record = self.record(id);
        let is_doubted = record.is_some_and(Record::is_doubted);
        let is_proven = record.is_some_and(Record::is_proven);
        let wrong = record.map_or(0, |record| record.wrong_permille());
        (is_doubted, !is_proven, wrong, count)
    }
}

impl Record {
    /// The share of wrong symbols among those that are known, in thousandths.
    fn wrong_permille(&self) -> u64 {
        let all = self.right.saturating_add(self.wrong);
        self.wrong.saturating_mul(1_000).checked_div(all).unwrap_or(0)
    }
}

/// The source of each symbol of a block. Most blocks have symbols of one source alone, and take no
/// memory for it.
#[derive(Debug, Default)]
pub(super) struct Origins {
    /// The source of all other symbols; `None` before the first.
    main: Option<SourceId>,
    others: BTreeMap<Esi, SourceId>,
}

impl Origins {
    /// Of symbols that an earlier run has saved.
    pub(super) fn of_earlier_run() -> Self {
        Self { main: Some(SourceId::default()), others: BTreeMap::new() }
    }

    /// Notes the source of a symbol.
    #[inline]
    pub(super) fn note(&mut self, esi: Esi, source: SourceId) {
        if *self.main.get_or_insert(source) != source {
            self.others.insert(esi, source);
        } else if !self.others.is_empty() {
            self.others.remove(&esi);
        }
    }

    /// Forgets the sources of symbols that were dropped.
    pub(super) fn forget(&mut self, esis: &[Esi]) {
        for esi in esis {
            self.others.remove(esi);
        }
    }

    /// The source of a symbol that was noted.
    pub(super) fn of(&self, esi: Esi) -> SourceId {
        self.others.get(&esi).copied().or(self.main).unwrap_or_default()
    }

    /// The sources of a block of so many `symbols`, and the number of symbols of each.
    pub(super) fn counts(&self, symbols: u32) -> BTreeMap<SourceId, u32> {
        let mut counts = BTreeMap::new();
        for &source in self.others.values() {
            let count: &mut u32 = counts.entry(source).or_default();
            *count = count.saturating_add(1);
        }
        let of_main = symbols.saturating_sub(self.others.len() as u32);
        counts.extend(self.main.filter(|_| of_main > 0).map(|main| (main, of_main)));
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(port: u16) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, 1], port))
    }

    fn counts<const N: usize>(counts: [(SourceId, u32); N]) -> BTreeMap<SourceId, u32> {
        counts.into()
    }

    #[test]
    fn a_source_is_doubted_beside_one_that_was_right() {
        let mut sources = Sources::default();
        let [honest, forger] = [1, 2].map(|port| sources.find(address(port)));
        sources.on_corrupt(&counts([(honest, 50), (forger, 50)]));
        assert!(!sources.doubts(honest) && !sources.doubts(forger), "which one is not known");
        assert!(sources.is_doubted(honest) && sources.is_doubted(forger));
        sources.on_verified(&counts([(honest, 100)]));
        assert!(!sources.doubts(honest) && sources.doubts(forger));
        // A block that they share does not make the honest one doubted.
        sources.on_corrupt(&counts([(honest, 99), (forger, 1)]));
        assert!(!sources.doubts(honest) && sources.doubts(forger));
    }

    #[test]
    fn doubts_for_strikes_end_and_return_for_longer() {
        let mut sources = Sources::default();
        let [honest, other] = [1, 2].map(|port| sources.find(address(port)));
        let verified = counts([(honest, 100)]);
        sources.on_verified(&verified);
        for doubted_for in [4, 8, 16] {
            sources.on_corrupt(&counts([(honest, 99), (other, 1)]));
            for _ in 0..doubted_for {
                assert!(sources.doubts(other));
                sources.on_verified(&verified);
            }
            assert!(!sources.doubts(other));
        }
        sources.on_verified(&counts([(other, 1)]));
        sources.on_corrupt(&counts([(honest, 99), (other, 1)]));
        assert!(!sources.doubts(other), "it was right once");
    }

    #[test]
    fn a_source_with_more_wrong_symbols_than_right_ones_is_doubted() {
        let mut sources = Sources::default();
        let [honest, other] = [1, 2].map(|port| sources.find(address(port)));
        sources.on_verified(&counts([(honest, 9), (other, 2)]));
        sources.on_wrong([other, other]);
        assert!(!sources.doubts(other) && sources.has_proven(other));
        sources.on_wrong([other]);
        assert!(sources.doubts(other) && !sources.doubts(honest));
        assert!(!sources.has_proven(other) && sources.has_proven(honest));
        // A source that is not known is not doubted.
        assert!(!sources.doubts(SourceId::default()));
    }

    #[test]
    fn sources_that_were_right_are_not_displaced() {
        let mut sources = Sources::default();
        let honest = sources.find(address(1));
        sources.on_verified(&counts([(honest, 1)]));
        (2..2_000).for_each(|port| _ = sources.find(address(port)));
        assert_eq!(sources.records.len(), MAX_SOURCES);
        assert_eq!(sources.find(address(1)), honest);
        assert_ne!(sources.find(address(2)), SourceId(2), "numbers are used once");
    }

    #[test]
    fn sources_take_turns_and_then_all_together() {
        let mut sources = Sources::default();
        let ids: Vec<_> = (1..7).map(|port| sources.find(address(port))).collect();
        sources.on_verified(&counts([(ids[2], 10)]));
        sources.on_wrong([ids[1]]);
        let of = counts([(ids[0], 10), (ids[1], 90), (ids[2], 20)]);
        let next = |sources: &Sources, tried: &[SourceId]| {
            sources.next_choice(&of, &tried.iter().copied().collect())
        };
        assert_eq!(next(&sources, &[]), Some(Choice::Alone(ids[2])));
        assert_eq!(next(&sources, &[ids[2]]), Some(Choice::Alone(ids[0])));
        assert_eq!(next(&sources, &[ids[2], ids[0]]), Some(Choice::Alone(ids[1])));
        assert_eq!(next(&sources, &[ids[2], ids[0], ids[1]]), None);
        // Another one is the best now, and was not tried.
        sources.on_verified(&counts([(ids[1], 1_000)]));
        sources.on_wrong([ids[2]; 20]);
        assert_eq!(next(&sources, &[ids[2]]), Some(Choice::Alone(ids[1])));
        assert_eq!(sources.next_choice(&counts([(ids[0], 1)]), &BTreeSet::new()), None);
        assert!(sources.has_others(&of));
        assert!(!sources.has_others(&ids.iter().map(|&id| (id, 1)).collect()));
    }

    #[test]
    fn receivers_that_share_are_left_out_in_turn_the_worst_first() {
        let mut sources = Sources::default();
        let at = |host| SocketAddr::from(([10, 0, 0, host], SHARED_PORT));
        let [good, new, bad, some] = [1, 2, 3, 4].map(|host| sources.find(at(host)));
        let session = sources.find(address(7));
        sources.on_verified(&counts([(good, 10)]));
        sources.on_wrong([bad]);
        let of = counts([(good, 90), (new, 20), (bad, 5), (some, 30), (session, 200)]);
        let mut tried = BTreeSet::new();
        for left_out in [bad, some, new, good] {
            assert_eq!(sources.next_choice(&of, &tried), Some(Choice::Without(left_out)));
            tried.insert(left_out);
        }
        assert_eq!(sources.next_choice(&of, &tried), None);
        let one = counts([(good, 90), (session, 200)]);
        assert_eq!(sources.next_choice(&one, &[].into()), Some(Choice::Without(good)));
        assert_eq!(sources.next_choice(&one, &[good].into()), None);
    }

    #[test]
    fn doubt_halves_with_time() {
        let mut sources = Sources::default();
        let [honest, other] = [1, 2].map(|port| sources.find(address(port)));
        sources.on_verified(&counts([(honest, 100)]));
        sources.on_corrupt(&counts([(honest, 99), (other, 1)]));
        sources.on_wrong([other; 5]);
        let at = |seconds| Instant::ZERO + std::time::Duration::from_secs(seconds);
        for (seconds, is_doubted) in [(0, true), (29, true), (61, true), (89, true), (122, false)] {
            sources.forget(at(seconds));
            assert_eq!(sources.doubts(other), is_doubted, "after {seconds} s");
        }
        // The next strike is as the first one.
        sources.on_corrupt(&counts([(honest, 99), (other, 1)]));
        for _ in 0..FIRST_DOUBT {
            assert!(sources.doubts(other));
            sources.on_verified(&counts([(honest, 100)]));
        }
        assert!(!sources.doubts(other));
    }

    #[test]
    fn no_block_waits_for_symbols_of_an_earlier_run() {
        let mut sources = Sources::default();
        let [a, b] = [1, 2].map(|port| sources.find(address(port)));
        let saved = SourceId::default();
        sources.on_corrupt(&counts([(saved, 50), (a, 30), (b, 20)]));
        let of = counts([(saved, 50), (a, 30), (b, 20)]);
        assert_eq!(sources.next_choice(&of, &[].into()), Some(Choice::Alone(a)));
        assert_eq!(sources.next_choice(&of, &[a].into()), Some(Choice::Alone(b)));
        assert_eq!(sources.next_choice(&of, &[a, b].into()), None);
        assert_eq!(
            sources.next_choice(&counts([(saved, 50), (a, 30)]), &[].into()),
            Some(Choice::Alone(a))
        );
        assert_eq!(sources.next_choice(&counts([(saved, 50)]), &[].into()), None);
    }

    #[test]
    fn origins_count_the_symbols_of_each_source() {
        let mut origins = Origins::default();
        let [a, b] = [1, 2].map(SourceId::new);
        assert!(origins.counts(0).is_empty());
        for (esi, source) in [(0, a), (1, b), (2, a), (3, b), (1, a)] {
            origins.note(Esi(esi), source);
        }
        assert_eq!(origins.counts(4), counts([(a, 3), (b, 1)]));
        assert_eq!([0, 1, 3].map(|esi| origins.of(Esi(esi))), [a, a, b]);
        origins.forget(&[Esi(0), Esi(3)]);
        assert_eq!(origins.counts(2), counts([(a, 2)]));
    }
}
