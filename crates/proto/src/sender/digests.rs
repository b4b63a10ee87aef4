//! Signed lists of the digests of the symbols that are sent next.
//!
//! The symbols of a window and their order are known when the window is prepared, which is before
//! its first symbol is due. A list is sent twice: [`LEAD`] packets before its first symbol, and
//! directly before it. A burst of losses rarely takes both, and a receiver that joins waits for the
//! next list at most.

use super::control::ControlError;
use fontana_wire::{DigestGroup, DigestList, GroupNumber, InstanceId, SecretKey, SymbolDigest};
use std::collections::VecDeque;

/// Symbols between the two copies of a list.
const LEAD: u64 = 1_000;

/// What a sender needs to announce its symbols.
#[derive(Clone, Debug)]
pub struct DigestSigner {
    /// The run of the sender, as in its head.
    pub instance: InstanceId,
    /// The key whose public part the head has ([`DigestKey`](fontana_wire::DigestKey)).
    pub key: SecretKey,
    /// Largest size of a list in bytes: that of the symbols, so that no packet is longer than those
    /// of content.
    pub max_bytes: u16,
    /// Number of the first group. A later run with the same instance has a higher one: receivers
    /// hold the groups with the highest numbers.
    pub first_group: GroupNumber,
}

/// The lists of a session.
#[derive(Debug)]
pub(super) struct DigestLists {
    signer: DigestSigner,
    per_list: usize,
    next: GroupNumber,
    /// Lists whose symbols are not sent yet, in the order of these.
    lists: VecDeque<PendingList>,
    /// Number of those at the front of which one copy was sent.
    sent_once: usize,
    /// Digests that wait for others to fill a list.
    rest: Vec<SymbolDigest>,
    /// Position of the first symbol of `rest`.
    rest_at: u64,
}

/// A list, signed.
#[derive(Debug)]
struct PendingList {
    /// Position of its first symbol in the order of the session.
    at: u64,
    bytes: Vec<u8>,
}

impl DigestLists {
    pub(super) fn new(signer: DigestSigner) -> Result<Self, ControlError> {
        let per_list = DigestList::digests_in(signer.max_bytes.into());
        if per_list == 0 {
            let least = DigestList::size_of(1) as u64;
            return Err(ControlError::Length { actual: signer.max_bytes.into(), expected: least });
        }
        Ok(Self {
            per_list,
            next: signer.first_group,
            signer,
            lists: VecDeque::new(),
            sent_once: 0,
            rest: Vec::new(),
            rest_at: 0,
        })
    }

    /// Adds the digests of a window. The first is of the symbol at position `at`.
    pub(super) fn add(&mut self, at: u64, digests: Vec<SymbolDigest>) {
        if self.rest_at + self.rest.len() as u64 != at {
            // The order began again.
            self.rest.clear();
            self.rest_at = at;
        }
        self.rest.extend(digests);
        while self.rest.len() >= self.per_list {
            let lists = (self.rest.len() / self.per_list).min(DigestGroup::MAX_LISTS);
            self.sign(lists * self.per_list);
        }
    }

    /// Makes a group of the first `count` digests of `rest`.
    fn sign(&mut self, count: usize) {
        let DigestSigner { instance, key, .. } = &self.signer;
        let digests: Vec<_> = self.rest.drain(..count).collect();
        let group = DigestGroup::new(key, *instance, self.next, &digests, self.per_list);
        self.next.0 += 1;
        for (bytes, index) in group.into_lists().into_iter().zip(0..) {
            let at = self.rest_at + index * self.per_list as u64;
            self.lists.push_back(PendingList { at, bytes });
        }
        self.rest_at += count as u64;
    }

    /// The list that is sent before the symbol at this position, if one is due.
    pub(super) fn due(&mut self, position: u64) -> Option<&[u8]> {
        if !self.rest.is_empty() && self.rest_at <= position {
            // The next window is not prepared.
            self.sign(self.rest.len());
        }
        // Those whose symbols were withdrawn.
        while self.lists.get(1).is_some_and(|next| next.at <= position) && self.sent_once > 0 {
            self.drop_first();
        }
        let first = self.lists.get(self.sent_once).filter(|list| list.at <= position + LEAD);
        let second = self.lists.front().filter(|list| list.at <= position);
        first.or(second).map(|list| list.bytes.as_slice())
    }

    /// The list that was [due](Self::due) was sent.
    pub(super) fn on_sent(&mut self, position: u64) {
        let is_first = |list: &PendingList| list.at <= position + LEAD;
        if self.lists.get(self.sent_once).is_some_and(is_first) {
            self.sent_once += 1;
        } else {
            self.drop_first();
        }
    }

    fn drop_first(&mut self) {
        self.lists.pop_front();
        self.sent_once = self.sent_once.saturating_sub(1);
    }

    /// The order of symbols begins again: what is announced is not sent.
    pub(super) fn clear(&mut self) {
        self.lists.clear();
        self.sent_once = 0;
        self.rest.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fontana_fec::{Esi, Sbn};
    use fontana_wire::Toi;

    const INSTANCE: InstanceId = InstanceId([3; 16]);

    fn lists(max_bytes: u16) -> DigestLists {
        let (key, first_group) = (SecretKey::from_seed(&[5; 32]), GroupNumber(7));
        DigestLists::new(DigestSigner { instance: INSTANCE, key, max_bytes, first_group }).unwrap()
    }

    /// The digest of the symbol at this position.
    fn digest(position: u64) -> SymbolDigest {
        SymbolDigest::of(Toi(1), Sbn(0), Esi(position as u32), b"symbol")
    }

    fn window(at: u64, count: u64) -> Vec<SymbolDigest> {
        (at..at + count).map(digest).collect()
    }

    /// Positions at which the lists are sent, if windows of `count` symbols are prepared a window
    /// ahead, and the bytes of the lists. Checks that each symbol was announced before.
    fn sent(lists: &mut DigestLists, count: u64, symbols: u64) -> (Vec<u64>, usize) {
        let (mut prepared, mut positions, mut bytes) = (0, Vec::new(), 0);
        let mut announced = std::collections::BTreeSet::new();
        for position in 0..symbols {
            while prepared < (position + 2 * count) / count * count {
                lists.add(prepared, window(prepared, count));
                prepared += count;
            }
            while let Some(list) = lists.due(position).map(<[u8]>::to_vec) {
                announced.extend(DigestList::parse(&list).unwrap().digests());
                bytes += list.len();
                positions.push(position);
                lists.on_sent(position);
            }
            assert!(announced.contains(&digest(position)), "{position}");
        }
        (positions, bytes)
    }

    /// With symbols of 1 404 bytes: packets of 1 452 bytes, and 48 bytes of headers of a list.
    #[test]
    fn lists_take_at_most_a_45th_of_the_bytes() {
        for window in [2_048, 6_144, 20_000] {
            let symbols = 100_000;
            let mut all = lists(1_404);
            let (positions, bytes) = sent(&mut all, window, symbols);
            let bytes = bytes + positions.len() * 48;
            let share = bytes as f64 / (1_452.0 * symbols as f64 + bytes as f64);
            println!("windows of {window}: {share:.4} of the bytes");
            assert!(share <= 0.022, "{share}");
        }
    }

    #[test]
    fn the_copies_of_a_list_are_a_thousand_symbols_apart() {
        let mut all = lists(1_404);
        let (positions, _) = sent(&mut all, 4_096, 20_000);
        let at = |position| positions.iter().filter(|&&p| p == position).count();
        // Up to 960, and the first one again.
        assert_eq!(at(0), 12);
        // The second copy of those from 96 on, and the first of those from 1 056 on, 1 000 before.
        assert_eq!((at(56), at(96), at(152), at(192)), (1, 1, 1, 1));
        assert_eq!(at(96 * 100) + at(96 * 100 + 56), 2);
    }

    #[test]
    fn symbols_whose_window_is_the_last_are_announced_in_a_short_list() {
        let mut all = lists(1_404);
        all.add(0, window(0, 100));
        let mut digests = 0;
        for position in 0..100 {
            while let Some(list) = all.due(position).map(<[u8]>::to_vec) {
                digests += DigestList::parse(&list).unwrap().digests().len();
                all.on_sent(position);
            }
        }
        assert_eq!(digests, 2 * 100, "each list is sent twice");
        assert!(all.due(100).is_none());
    }

    #[test]
    fn withdrawn_symbols_and_new_orders_leave_no_lists_behind() {
        let mut all = lists(1_404);
        all.add(0, window(0, 960));
        (0..11).for_each(|_| _ = all.due(0).map(<[u8]>::to_vec).map(|_| all.on_sent(0)));
        // Most of the window was withdrawn.
        let list = all.due(900).map(<[u8]>::to_vec).unwrap();
        let of_list = DigestList::parse(&list).unwrap().digests().next();
        assert_eq!(of_list, Some(digest(864)));
        all.on_sent(900);
        assert!(all.due(900).is_none() && all.lists.is_empty());
        all.add(960, window(960, 50));
        all.clear();
        all.add(3, window(3, 96));
        assert!(all.due(3).is_some());
    }

    #[test]
    fn lists_are_as_long_as_packets() {
        let signer = |max_bytes| {
            let (key, first_group) = (SecretKey::from_seed(&[5; 32]), GroupNumber(7));
            DigestLists::new(DigestSigner { instance: INSTANCE, key, max_bytes, first_group })
        };
        assert!(signer(165).is_err());
        let mut all = signer(400).unwrap();
        all.add(0, window(0, 1_000));
        assert_eq!(all.lists.len(), 1_000 / 20);
        assert!(all.lists.iter().all(|list| list.bytes.len() <= 400));
    }
}
