//! Symbols that a sender has announced by signed digests, and those that it has not.
//!
//! Lists of digests arrive before their symbols ([`DigestList`]). The receiver verifies the
//! signature of each group once, and holds the digests of the last groups of each sender. So every
//! symbol can be checked when it arrives, before it takes the place of another one. A check hashes
//! the symbol, which costs about as much as the rest of its reception. Therefore
//!
//! * without a suspicion, one symbol in [`SAMPLE`] is checked, and all symbols are taken;
//! * a symbol that is not announced is *evidence* of an attack, unless it may be of a list that was
//!   lost. After the first one the next [`CLOSE_LOOK`] symbols are checked;
//! * when there is enough evidence ([`ALARM`]), the receiver takes announced symbols only, until
//!   [`ALARM_SYMBOLS`] symbols have passed without as much of it.
//!
//! Symbols that were taken before are handled as without digests: the block's hash shows that one
//! is wrong, and [`Locator`](fontana_fec::Locator) which.
//!
//! **Lost lists.** Each list is sent twice. A receiver that loses both copies sees up to 96
//! symbols in a row that are not announced. It knows from the numbers of the lists around it that
//! one is missing, and then counts only the first symbol of a row as evidence. Forged symbols come
//! between honest ones, so that they begin many rows.

use crate::random::SplitMix64;
use crate::time::Instant;
use fontana_wire::{DigestList, GroupNumber, InstanceId, PublicKey, SymbolDigest};
use std::collections::VecDeque;
use std::time::Duration;

/// Of so many symbols, one is checked while nothing is suspected: 0.05 µs for each packet.
const SAMPLE: u32 = 16;
/// Symbols that are checked after one that is not announced.
const CLOSE_LOOK: u32 = 256;
/// Evidence of an attack, in units of a symbol that is announced, of which 16 refute a symbol that
/// is not: a search finds the wrong symbols of a block if they are fewer, and the receiver loses no
/// honest symbol whose list is lost.
const EVIDENCE: u32 = 16;
/// Evidence from which on only announced symbols are taken: eight symbols.
const ALARM: u32 = 8 * EVIDENCE;
/// Symbols for which only announced ones are taken after the last alarm. An attacker who begins
/// again after them gets at most [`CLOSE_LOOK`] symbols in for so many honest ones.
const ALARM_SYMBOLS: u32 = 1 << 14;
/// Lists that were proven before symbols are judged: those of the symbols that are being sent are
/// among them, because copies of two lists alternate.
const LEAST_LISTS: u32 = 4;

/// Senders whose lists are held: [`ReceiverLimits`](super::config::ReceiverLimits) allow 16
/// sessions, of which attackers may have repeated some. Each takes 600 kB at most.
const MAX_SENDERS: usize = 8;
/// Groups of each sender: the one whose symbols arrive, the next one, and the one before, whose
/// last symbols may be late.
const MAX_GROUPS: usize = 3;
/// Time between two checks of signatures: 2 % of a core. An honest sender needs one for 6 144
/// symbols, 150 in a second at 10 Gbit/s. An attacker who sends other lists gets the checks in
/// proportion to the packets, and each of the 128 packets of a group is enough.
const CHECK_INTERVAL: Duration = Duration::from_micros(2_500);
/// Checks that may follow each other at once: groups of several senders, and short first groups.
const MAX_CHECKS_AT_ONCE: u32 = 16;

/// Signed digests of the accepted content's symbols.
#[derive(Debug)]
pub(super) struct SymbolDigests {
    senders: Vec<AnnouncedSymbols>,
    checks: CheckBudget,
    sampling: SplitMix64,
    /// Symbols to check, whatever the sample.
    close_look: u32,
    evidence: u32,
    /// Symbols for which only announced ones are taken.
    alarm: u32,
    was_announced: bool,
}

/// The limit on signatures that are checked: a token bucket.
#[derive(Debug)]
struct CheckBudget {
    checks: u32,
    /// Time up to which `checks` has grown.
    grown_until: Instant,
}

/// What a list was good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListFate {
    /// Its digests are held.
    Proven,
    /// It is known, or older than those that are held.
    Known,
    /// Its signature is wrong, its sender unknown, or it is no list.
    Invalid,
    /// It was not checked: too many were in this second.
    Unchecked,
}

impl Default for SymbolDigests {
    fn default() -> Self {
        Self {
            senders: Vec::new(),
            checks: CheckBudget { checks: MAX_CHECKS_AT_ONCE, grown_until: Instant::ZERO },
            sampling: SplitMix64::new(0, 0),
            close_look: 0,
            evidence: 0,
            alarm: 0,
            was_announced: true,
        }
    }
}

impl SymbolDigests {
    /// Takes a list. `signers` are the keys that heads of its session certify, each for a run of
    /// the sender.
    pub(super) fn on_list(
        &mut self,
        now: Instant,
        signers: &[DigestSigner],
        payload: &[u8],
    ) -> ListFate {
        let Ok(list) = DigestList::parse(payload) else { return ListFate::Invalid };
        let at = self.senders.iter().position(|sender| list.is_of(sender.signer.instance));
        let Some(at) = at else {
            let signer = signers.iter().find(|signer| list.is_of(signer.instance));
            let Some(&signer) = signer else { return ListFate::Invalid };
            let mut sender = AnnouncedSymbols::new(signer);
            let fate = sender.on_list(now, &mut self.checks, &list);
            if fate == ListFate::Proven {
                self.insert(sender);
            }
            return fate;
        };
        let Some(sender) = self.senders.get_mut(at) else { return ListFate::Invalid };
        sender.on_list(now, &mut self.checks, &list)
    }

    /// Adds a sender, in place of the one whose last list is the oldest if there are too many.
    fn insert(&mut self, sender: AnnouncedSymbols) {
        if self.senders.len() >= MAX_SENDERS {
            let last = |(_, sender): &(usize, &AnnouncedSymbols)| sender.last_proven_at;
            if let Some((oldest, _)) = self.senders.iter().enumerate().min_by_key(last) {
                self.senders.remove(oldest);
            }
        }
        let InstanceId(id) = sender.signer.instance;
        let seed = id.first_chunk().map_or(0, |start| u64::from_be_bytes(*start));
        self.sampling = SplitMix64::new(seed, self.senders.len() as u64);
        self.close_look = CLOSE_LOOK;
        self.senders.push(sender);
    }

    /// Whether only announced symbols are taken.
    pub(super) fn takes_announced_only(&self) -> bool {
        self.alarm > 0
    }

    /// Whether to take a symbol that arrives from a sender of lists. `digest` computes its digest.
    #[inline]
    pub(super) fn admits(&mut self, digest: impl FnOnce() -> SymbolDigest) -> bool {
        if self.senders.is_empty() {
            return true;
        }
        if self.alarm == 0 && self.close_look == 0 && self.sampling.below(SAMPLE) != 0 {
            return true;
        }
        self.judge(digest())
    }

    fn judge(&mut self, digest: SymbolDigest) -> bool {
        let lists = self.senders.iter().map(|sender| sender.lists).max().unwrap_or(0);
        if lists < LEAST_LISTS {
            return true;
        }
        let is_announced = self.is_announced(digest);
        self.close_look = self.close_look.saturating_sub(1);
        self.alarm = self.alarm.saturating_sub(1);
        if is_announced {
            self.evidence = self.evidence.saturating_sub(1);
        } else if self.was_announced || !self.senders.iter().any(AnnouncedSymbols::lacks_a_list) {
            self.close_look = CLOSE_LOOK;
            self.evidence = self.evidence.saturating_add(EVIDENCE).min(ALARM);
            if self.evidence == ALARM {
                self.alarm = ALARM_SYMBOLS;
            }
        }
        self.was_announced = is_announced;
        is_announced || self.alarm == 0
    }

    /// Whether a sender has announced a symbol.
    pub(super) fn is_announced(&self, digest: SymbolDigest) -> bool {
        self.senders.iter().any(|sender| sender.contains(digest))
    }
}

/// A key that signs the lists of a run of a sender, as the publisher has certified it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DigestSigner {
    pub(super) instance: InstanceId,
    pub(super) key: PublicKey,
}

/// What one sender has announced.
#[derive(Debug)]
struct AnnouncedSymbols {
    signer: DigestSigner,
    /// The last groups, ascending.
    groups: VecDeque<Group>,
    /// Number of lists that were proven.
    lists: u32,
    last_proven_at: Instant,
}

/// A group whose signature was verified.
#[derive(Debug)]
struct Group {
    number: GroupNumber,
    lists: u8,
    root: SymbolDigest,
    /// A bit for each list that has arrived.
    arrived: u64,
    digests: DigestSet,
}

impl AnnouncedSymbols {
    fn new(signer: DigestSigner) -> Self {
        let (groups, last_proven_at) = (VecDeque::new(), Instant::ZERO);
        Self { signer, groups, lists: 0, last_proven_at }
    }

    fn on_list(
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
    fn lacks_a_list(&self) -> bool {
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

    fn contains(&self, digest: SymbolDigest) -> bool {
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

impl CheckBudget {
    /// Whether a signature may be checked now; counts the check if so.
    fn permit(&mut self, now: Instant) -> bool {
        let since = now.saturating_since(self.grown_until);
        let grown = since.as_micros().checked_div(CHECK_INTERVAL.as_micros()).unwrap_or(0);
        let grown = u32::try_from(grown).unwrap_or(u32::MAX);
        if grown >= MAX_CHECKS_AT_ONCE {
            (self.checks, self.grown_until) = (MAX_CHECKS_AT_ONCE, now);
        } else {
            self.checks = self.checks.saturating_add(grown).min(MAX_CHECKS_AT_ONCE);
            self.grown_until = self.grown_until + CHECK_INTERVAL.saturating_mul(grown);
        }
        let is_left = self.checks > 0;
        self.checks = self.checks.saturating_sub(1);
        is_left
    }
}

/// A set of digests: a table with open addressing, at most half full. Digests are hashes, and only
/// those that a publisher has signed are inserted: their own bytes are the place.
#[derive(Debug)]
struct DigestSet {
    /// Zeros where there is none. A symbol whose digest is 0 is never announced.
    slots: Vec<SymbolDigest>,
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
    use fontana_wire::{DigestGroup, SecretKey, Toi};

    fn key() -> SecretKey {
        SecretKey::from_seed(&[5; 32])
    }

    fn signer(run: u8) -> DigestSigner {
        DigestSigner { instance: InstanceId([run; 16]), key: key().public_key() }
    }

    fn digest(number: u32) -> SymbolDigest {
        SymbolDigest::of(Toi(1), Sbn(0), Esi(number), b"symbol")
    }

    /// A group of 64 lists of 96 symbols.
    fn group(run: u8, number: u64) -> Vec<Vec<u8>> {
        let first = number as u32 * 6_144;
        let digests: Vec<_> = (first..first + 6_144).map(digest).collect();
        let instance = InstanceId([run; 16]);
        DigestGroup::new(&key(), instance, GroupNumber(number), &digests, 96).into_lists()
    }

    /// A receiver that has the first `lists` lists of group 0.
    fn receiver(lists: usize) -> SymbolDigests {
        let mut digests = SymbolDigests::default();
        for list in group(1, 0).iter().take(lists) {
            assert_eq!(digests.on_list(Instant::ZERO, &[signer(1)], list), ListFate::Proven);
        }
        digests
    }

    #[test]
    fn a_list_counts_once_and_if_its_sender_is_certified() {
        let mut digests = SymbolDigests::default();
        let (lists, now) = (group(1, 0), Instant::ZERO);
        assert_eq!(digests.on_list(now, &[signer(2)], &lists[0]), ListFate::Invalid);
        assert_eq!(digests.on_list(now, &[], &lists[0]), ListFate::Invalid);
        assert_eq!(digests.on_list(now, &[signer(2), signer(1)], &lists[3]), ListFate::Proven);
        // The key is known now.
        assert_eq!(digests.on_list(now, &[], &lists[0]), ListFate::Proven);
        assert_eq!(digests.on_list(now, &[], &lists[0]), ListFate::Known);
        let announced = |number| digests.is_announced(digest(number));
        assert!(announced(0) && announced(95) && !announced(96) && announced(3 * 96));
    }

    #[test]
    fn signatures_are_checked_400_times_a_second_at_most() {
        let mut digests = receiver(0);
        let forged = |number: u64| {
            let other = SecretKey::from_seed(&[6; 32]);
            let instance = InstanceId([1; 16]);
            DigestGroup::new(&other, instance, GroupNumber(number), &[digest(0)], 1).into_lists()
        };
        let (mut checked, mut number) = (0, 0);
        for millis in 0..1_000 {
            let now = Instant::ZERO + Duration::from_millis(millis);
            for _ in 0..2 {
                number += 1;
                let fate = digests.on_list(now, &[signer(1)], &forged(number)[0]);
                checked += u32::from(fate == ListFate::Invalid);
                assert!(matches!(fate, ListFate::Invalid | ListFate::Unchecked));
            }
        }
        assert!((400..=400 + MAX_CHECKS_AT_ONCE).contains(&checked), "{checked}");
        // A pause does not make up for more.
        let now = Instant::ZERO + Duration::from_secs(100);
        let fates = (0..100).map(|_| digests.on_list(now, &[signer(1)], &forged(1)[0]));
        let checked = fates.filter(|&fate| fate == ListFate::Invalid).count();
        assert_eq!(checked, MAX_CHECKS_AT_ONCE as usize);
    }

    #[test]
    fn the_last_groups_of_the_last_senders_are_held() {
        let mut digests = SymbolDigests::default();
        let now = |number| Instant::ZERO + Duration::from_secs(number);
        for number in [0, 1, 2, 4] {
            let fate = digests.on_list(now(number), &[signer(1)], &group(1, number)[0]);
            assert_eq!(fate, ListFate::Proven);
        }
        // Group 0 is forgotten, 3 is newer than the oldest that is held.
        assert_eq!(digests.on_list(now(5), &[], &group(1, 0)[1]), ListFate::Known);
        assert_eq!(digests.on_list(now(5), &[], &group(1, 3)[0]), ListFate::Proven);
        let held =
            |digests: &SymbolDigests, number: u32| digests.is_announced(digest(number * 6_144));
        assert!(!held(&digests, 0) && !held(&digests, 1));
        assert!(held(&digests, 2) && held(&digests, 3) && held(&digests, 4));
        for run in 2..10 {
            let fate = digests.on_list(now(10), &[signer(run)], &group(run, 0)[0]);
            assert_eq!(fate, ListFate::Proven);
        }
        assert_eq!(digests.senders.len(), MAX_SENDERS);
        assert!(!held(&digests, 4), "the sender whose last list is the oldest is forgotten");
        let slots = digests.senders.iter().flat_map(|sender| &sender.groups);
        let bytes: usize = slots.map(|group| group.digests.slots.len() * SymbolDigest::SIZE).sum();
        assert!(bytes <= 200_000 * MAX_SENDERS, "{bytes}");
    }

    #[test]
    fn eight_symbols_that_are_not_announced_raise_the_alarm() {
        let mut digests = receiver(64);
        for number in 0..7 {
            assert!(digests.admits(|| digest(1_000_000 + number)), "{number}");
            assert!(digests.admits(|| digest(number)));
        }
        // Each announced one has refuted a sixteenth of one.
        assert!(digests.admits(|| digest(2_000_000)) && !digests.takes_announced_only());
        assert!(!digests.admits(|| digest(2_000_001)) && digests.takes_announced_only());
        for number in 0..ALARM_SYMBOLS {
            assert!(digests.admits(|| digest(number % 6_144)), "{number}");
        }
        assert!(!digests.takes_announced_only());
    }

    #[test]
    fn a_row_of_symbols_whose_list_is_missing_is_evidence_once() {
        let mut digests = SymbolDigests::default();
        for (index, list) in group(1, 0).iter().enumerate() {
            if index % 2 == 0 {
                digests.on_list(Instant::ZERO, &[signer(1)], list);
            }
        }
        for number in 0..3_000 {
            assert!(digests.admits(|| digest(number)), "{number}");
        }
        assert!(!digests.takes_announced_only());
        // Between them they are evidence nevertheless.
        let mut forged = 10_000_000;
        while !digests.takes_announced_only() && forged < 10_000_100 {
            forged += 1;
            digests.admits(|| digest(forged));
            digests.admits(|| digest(0));
        }
        assert!(digests.takes_announced_only());
    }

    #[test]
    fn few_lists_judge_nothing() {
        let mut digests = receiver(LEAST_LISTS as usize - 1);
        for number in 0..10_000 {
            assert!(digests.admits(|| digest(1_000_000 + number)));
        }
        assert!(!digests.takes_announced_only());
    }

    #[test]
    fn one_symbol_in_sixteen_is_checked_in_peace() {
        let mut digests = receiver(64);
        let mut checked = 0;
        for number in 0..40_000 {
            digests.admits(|| {
                checked += 1;
                digest(number % 6_144)
            });
        }
        let sampled = checked - CLOSE_LOOK;
        assert!((2_200..2_800).contains(&sampled), "{sampled}");
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
