//! A block whose hash was wrong, until its wrong symbols are found.
//!
//! Its symbols stay, and more are collected. Those beyond `k` are its *surplus*, by which a search
//! ([`Locator`]) finds the wrong symbols. The rules, which bound the work as well:
//!
//! * The first search waits for [`Locator::least_surplus`] symbols.
//! * A search that finds wrong symbols drops them, and the others are solved and hashed at once.
//! * A search that lacks surplus symbols waits for as many again. If no symbols of use arrive for
//!   [`IDLE`], because the sender has sent everything once, it does with fewer, [`IDLE_SEARCHES`]
//!   times. At most [`MIN_LIMIT`] to [`Locator::MAX_SURPLUS`] symbols are collected after the wrong
//!   hash, `k` of them in between.
//! * If these do not show the wrong symbols either, all symbols of the block are dropped. So they
//!   are if senders repeat what is there and send nothing else, after [`MAX_SEARCHES`] searches,
//!   after one that exhausts its budget, and if the symbols contradict each other but none is
//!   accused: an attacker who knows the right symbols can make errors that hide each other. Codes
//!   that have too few symbols for a search drop them at once.
//! * [`AGREEING`] surplus symbols that agree with each other and with the rest of the block, twice,
//!   with all symbols dropped in between, show that the hash is not that of the content. The object
//!   is given up. They show it only if all known sources have sent some of the block's symbols: a
//!   forger of all of them can make them agree. Sparse codes do not show it either, because few of
//!   their symbols contain any given one.
//!
//! A search costs less than decoding the block twice, and [`SEARCH_WORK`]. So for all `k` symbols
//! that a block receives, [`MAX_SEARCHES`] of these are the most that an attacker can cause, at any
//! rate of packets: the work in a minute is in proportion to the packets that arrive in it.

use crate::counter::Counter;
use fontana_fec::{Esi, Factors, FecScheme, Located, Location, Locator, Work};
use std::collections::BTreeSet;
use std::time::Duration;

/// Time without a symbol of use after which blocks are searched that wait for more symbols.
pub(super) const IDLE: Duration = Duration::from_millis(200);

/// Searches of that kind for each time that the symbols of a block are collected.
const IDLE_SEARCHES: u32 = 4;

/// Symbols that may be collected after a wrong hash, however short the block is: they take little
/// memory.
const MIN_LIMIT: u32 = 64;

/// Searches for each time that the symbols of a block are collected. Doubling from the least
/// surplus to the limit takes ten.
const MAX_SEARCHES: u32 = 16;

/// The budget to eliminate the syndromes: 1 024 surplus symbols of 1 400 bytes take a third of it,
/// about a second of a core.
pub(super) const SEARCH_WORK: Work = Work(1 << 30);

/// Surplus symbols that show, if they agree, that the hash is wrong and not a symbol. By chance
/// they do so once in 2^64 blocks.
const AGREEING: u32 = 8;

/// Times that a block has to show it.
const AGREEMENTS: u32 = 2;

/// What the code of a block allows.
#[derive(Clone, Copy, Debug)]
pub(super) struct SearchLimits {
    source_symbols: u32,
    /// Surplus of the first search.
    least: u32,
    /// Most symbols that are collected after a wrong hash.
    most: u32,
    /// Symbols of the block that a sender sends.
    sent: u32,
    /// Whether every surplus symbol checks every symbol.
    is_dense: bool,
}

/// What to do after a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Conclusion {
    /// These symbols are wrong, ascending.
    Drop(Vec<Esi>),
    /// So many more symbols are needed, at least one.
    Want(u32),
    /// Nothing was found, and more symbols would not help.
    Restart,
    /// All symbols agree with each other.
    Agreed,
}

impl SearchLimits {
    /// The limits of a block. `None` if its code has too few symbols for a search.
    pub(super) fn of(scheme: FecScheme, source_symbols: u32) -> Option<Self> {
        let (code, block) = (scheme.profile(), scheme.block_profile(source_symbols));
        let least = Locator::least_surplus(&code, source_symbols)?;
        let sent = block.symbols_per_cycle;
        let most = source_symbols.clamp(MIN_LIMIT, Locator::MAX_SURPLUS as u32);
        let limits = Self {
            source_symbols,
            least,
            most: most.min(sent.saturating_sub(source_symbols)),
            sent,
            is_dense: code.factors == Factors::Octets,
        };
        (limits.least <= limits.most).then_some(limits)
    }

    /// The limits of a block of a control object. A short one collects as many symbols as it has:
    /// symbols of another object delay it by no more than that.
    pub(super) fn of_control(scheme: FecScheme, source_symbols: u32) -> Option<Self> {
        /// Errors of a few wrong symbols are found with so many.
        const LEAST: u32 = 8;
        let limits = Self::of(scheme, source_symbols)?;
        let most = limits.most.min(source_symbols.max(LEAST));
        (limits.least <= most).then_some(Self { most, ..limits })
    }

    /// The limits of a block that is solved from the symbols of one source, while those of others
    /// wait: a few of them may be wrong.
    pub(super) fn of_one_source(self) -> Self {
        Self { most: self.most.min(MIN_LIMIT), ..self }
    }

    /// The limits of a block that others share symbols of, before sources are chosen: few wrong
    /// symbols are found without another request.
    pub(super) fn of_few(self) -> Self {
        /// The first search finds four less.
        const FEW: u32 = 16;
        Self { most: self.most.min(FEW).max(self.least), ..self }
    }

    /// Symbols that are missing for the first search of a block with so many `available` ones.
    pub(super) fn first_wanted(&self, available: u32) -> u32 {
        self.source_symbols.saturating_add(self.least).saturating_sub(available)
    }

    /// `lack` more symbols, or as many as may be collected.
    fn want(&self, lack: u32, collected: &Collected) -> Conclusion {
        let room = self.most.saturating_sub(collected.since_wrong());
        let unsent = self.sent.saturating_sub(collected.available);
        match lack.min(room).min(unsent) {
            0 => Conclusion::Restart,
            more => Conclusion::Want(more),
        }
    }

    /// What the result of a search means.
    pub(super) fn conclude(&self, location: Location, collected: &Collected) -> Conclusion {
        let located = match location {
            Location::Located(located) => located,
            Location::Wanting(lack) => return self.want(lack, collected),
            Location::OutOfBudget | Location::Unsupported => return Conclusion::Restart,
        };
        match located {
            Located { wrong, .. } if !wrong.is_empty() => Conclusion::Drop(wrong),
            // A wrong symbol may be in none of the surplus symbols.
            Located { surplus_left, .. } if !self.is_dense => {
                self.want(surplus_left.max(1), collected)
            }
            Located { rank: 0, surplus_left, .. } => match AGREEING.saturating_sub(surplus_left) {
                0 => Conclusion::Agreed,
                lack => self.want(lack, collected),
            },
            Located { .. } => Conclusion::Restart,
        }
    }
}

/// How many symbols a block has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Collected {
    pub(super) available: u32,
    /// Those that it had when its hash was wrong first.
    pub(super) at_first: u32,
}

impl Collected {
    fn since_wrong(&self) -> u32 {
        self.available.saturating_sub(self.at_first)
    }
}

/// What a block remembers of its searches until its symbols are dropped.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SearchRecord {
    searches: u32,
    idle_searches: u32,
    /// [`Collected::available`] of the last one.
    searched: u32,
    /// [`Collected::at_first`].
    at_first: Option<u32>,
    /// Times that all symbols agreed. Survives that they are dropped.
    agreements: u32,
}

impl SearchRecord {
    /// The symbols of a block that has so many `available` ones now.
    pub(super) fn collected(&mut self, available: u32) -> Collected {
        let at_first = *self.at_first.get_or_insert(available);
        Collected { available, at_first }
    }

    /// Counts a search of so many symbols.
    pub(super) fn on_search(&mut self, available: u32) {
        self.searches.count(1);
        self.searched = available;
    }

    /// Whether to search the `available` symbols although more are wanted. Counts the search.
    pub(super) fn begins_idle(&mut self, available: u32) -> bool {
        let begins =
            self.searches > 0 && self.idle_searches < IDLE_SEARCHES && available > self.searched;
        self.idle_searches.count(u32::from(begins));
        begins
    }

    /// Whether no further search is made before the symbols are dropped.
    pub(super) fn is_exhausted(&self) -> bool {
        self.searches >= MAX_SEARCHES
    }

    /// All symbols agreed. Whether that has been shown often enough.
    pub(super) fn on_agreed(&mut self) -> bool {
        self.agreements.count(1);
        self.agreements >= AGREEMENTS
    }

    /// The symbols of the block were dropped.
    pub(super) fn on_restart(&mut self) {
        *self = Self { agreements: self.agreements, ..Self::default() };
    }
}

/// The symbols of a block that may be wrong.
#[derive(Debug)]
pub(super) struct Suspects {
    /// One flag for each source symbol.
    source: Vec<bool>,
    repair: BTreeSet<Esi>,
    /// Number of all.
    available: u32,
    /// Symbols that are missing for the next search.
    pub(super) wanted: u32,
    /// Symbols that it had, and that have arrived since the last one that it had not.
    repeated: u64,
}

impl Suspects {
    /// The symbols of a block of `source_symbols` that has received all source symbols but `lost`
    /// ones, and `repair` symbols.
    pub(super) fn new(
        source_symbols: u32,
        lost: &[Esi],
        repair: impl IntoIterator<Item = Esi>,
    ) -> Self {
        let mut source = vec![true; source_symbols as usize];
        for esi in lost {
            if let Some(is_here) = source.get_mut(esi.0 as usize) {
                *is_here = false;
            }
        }
        let repair: BTreeSet<Esi> = repair.into_iter().collect();
        let in_place = source.iter().filter(|&&is_here| is_here).count();
        let available = in_place.saturating_add(repair.len()) as u32;
        Self { source, repair, available, wanted: 0, repeated: 0 }
    }

    /// Whether senders repeat the symbols that are there: the search will get no others. In the
    /// time of two cycles one that is lost with probability `p` stays away with `p` squared.
    pub(super) fn are_all_that_is_sent(&self) -> bool {
        self.wanted > 0 && self.repeated >= u64::from(self.available).saturating_mul(2)
    }

    /// Number of symbols.
    pub(super) fn available(&self) -> u32 {
        self.available
    }

    /// All symbols, ascending.
    pub(super) fn esis(&self) -> impl Iterator<Item = Esi> {
        let source = (0..).zip(&self.source).filter(|&(_, &is_here)| is_here);
        source.map(|(esi, _)| Esi(esi)).chain(self.repair.iter().copied())
    }

    /// Adds a symbol. False if it is there.
    pub(super) fn insert(&mut self, esi: Esi) -> bool {
        let is_fresh = match self.source.get_mut(esi.0 as usize) {
            Some(is_here) => !std::mem::replace(is_here, true),
            None => self.repair.insert(esi),
        };
        if is_fresh {
            self.available.count(1);
            self.wanted.discount(1);
            self.repeated = 0;
        } else {
            self.repeated.count(1);
        }
        is_fresh
    }

    /// Removes symbols.
    pub(super) fn remove(&mut self, esis: &[Esi]) {
        for esi in esis {
            let was_here = match self.source.get_mut(esi.0 as usize) {
                Some(is_here) => std::mem::replace(is_here, false),
                None => self.repair.remove(esi),
            };
            self.available.discount(was_here.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fontana_fec::codes::no_code::NoCode;
    use fontana_fec::codes::raptorq::RaptorQ;
    use fontana_fec::codes::reed_solomon::{ReedSolomon, ReedSolomonCode};
    use fontana_fec::codes::tornado::{Tornado, TornadoCode};

    const RAPTORQ: FecScheme =
        FecScheme::RaptorQ(RaptorQ { source_blocks: 1, sub_blocks: 1, alignment: 1 });

    fn limits(scheme: FecScheme, source_symbols: u32) -> SearchLimits {
        SearchLimits::of(scheme, source_symbols).unwrap()
    }

    fn reed_solomon(k: u16, n: u16) -> FecScheme {
        let code = ReedSolomonCode::Rfc5510;
        FecScheme::ReedSolomon(ReedSolomon {
            code,
            max_source_block_length: k,
            max_encoding_symbols: n,
        })
    }

    fn located(wrong: &[u32], surplus_left: u32, rank: u32) -> Location {
        let wrong = wrong.iter().copied().map(Esi).collect();
        Location::Located(Located { wrong, surplus_left, rank })
    }

    #[test]
    fn codes_without_surplus_symbols_are_not_searched() {
        let none = FecScheme::NoCode(NoCode { max_source_block_length: 10 });
        assert!(SearchLimits::of(none, 10).is_none());
        assert!(SearchLimits::of(reed_solomon(10, 11), 10).is_none(), "one does not confirm it");
        let few = limits(reed_solomon(10, 12), 10);
        assert_eq!((few.least, few.most), (2, 2));
    }

    #[test]
    fn the_limit_follows_the_length_of_the_block() {
        for (k, most) in [(1, 64), (64, 64), (500, 500), (50_000, 1024)] {
            let limits = limits(RAPTORQ, k);
            assert_eq!((limits.least, limits.most), (4, most), "{k}");
            assert_eq!(limits.first_wanted(k), 4);
            assert_eq!(limits.first_wanted(k + 5), 0);
        }
    }

    #[test]
    fn a_search_that_finds_nothing_wants_twice_as_many_up_to_the_limit() {
        let limits = limits(RAPTORQ, 100);
        let conclude = |lack, available| {
            limits.conclude(Location::Wanting(lack), &Collected { available, at_first: 100 })
        };
        assert_eq!(conclude(4, 104), Conclusion::Want(4));
        assert_eq!(conclude(64, 164), Conclusion::Want(36));
        assert_eq!(conclude(100, 200), Conclusion::Restart);
        let few = self::limits(reed_solomon(10, 15), 10);
        let all = Collected { available: 15, at_first: 12 };
        assert_eq!(few.conclude(Location::Wanting(5), &all), Conclusion::Restart);
    }

    #[test]
    fn only_dense_codes_show_that_the_hash_is_wrong() {
        let at = |available| Collected { available, at_first: 100 };
        let dense = limits(RAPTORQ, 100);
        assert_eq!(dense.conclude(located(&[], 4, 0), &at(104)), Conclusion::Want(4));
        assert_eq!(dense.conclude(located(&[], 8, 0), &at(108)), Conclusion::Agreed);
        assert_eq!(dense.conclude(located(&[], 7, 1), &at(108)), Conclusion::Restart);
        let wrong = Conclusion::Drop(vec![Esi(7)]);
        assert_eq!(dense.conclude(located(&[7], 7, 1), &at(108)), wrong);
        let code = Tornado { max_source_block_length: 100, code: TornadoCode::Z };
        let sparse = limits(FecScheme::Tornado(code), 100);
        assert_eq!(sparse.conclude(located(&[], 20, 0), &at(120)), Conclusion::Want(20));
    }

    #[test]
    fn agreements_count_across_restarts_and_searches_do_not() {
        let mut record = SearchRecord::default();
        assert_eq!(record.collected(10).since_wrong(), 0);
        assert_eq!(record.collected(13).since_wrong(), 3);
        (0..MAX_SEARCHES).for_each(|_| record.on_search(14));
        assert!(record.is_exhausted() && !record.on_agreed());
        record.on_restart();
        assert!(!record.is_exhausted());
        assert_eq!(record.collected(20).since_wrong(), 0);
        assert!(record.on_agreed());
    }

    #[test]
    fn a_block_is_searched_while_idle_if_symbols_have_arrived_since() {
        let mut record = SearchRecord::default();
        assert!(!record.begins_idle(20), "the first search waits for its surplus");
        record.on_search(20);
        assert!(!record.begins_idle(20));
        assert!((0..IDLE_SEARCHES).all(|_| record.begins_idle(21)));
        assert!(!record.begins_idle(22));
        record.on_restart();
        record.on_search(20);
        assert!(record.begins_idle(21));
    }

    #[test]
    fn symbols_are_added_and_removed() {
        let mut suspects = Suspects::new(4, &[Esi(1)], [Esi(12), Esi(11)]);
        suspects.wanted = 2;
        let esis = |suspects: &Suspects| suspects.esis().map(|esi| esi.0).collect::<Vec<_>>();
        assert_eq!(esis(&suspects), [0, 2, 3, 11, 12]);
        assert!(!suspects.insert(Esi(11)) && !suspects.insert(Esi(0)));
        assert!(suspects.insert(Esi(1)) && suspects.insert(Esi(20)));
        assert_eq!((suspects.available(), suspects.wanted), (7, 0));
        suspects.remove(&[Esi(2), Esi(12), Esi(99)]);
        assert_eq!(esis(&suspects), [0, 1, 3, 11, 20]);
        assert_eq!(suspects.available(), 5);
    }
}
