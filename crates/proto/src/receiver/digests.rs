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
//! **Further senders.** A sender is judged by its own lists: as long as [`LEAST_LISTS`] of it have
//! not come, [`PATIENCE`] symbols that are not announced are taken. It began a moment ago, or the
//! receiver has its key since then. Any host can repeat a head that certifies a key whose owner
//! sends no lists. So the patience is counted by key, for [`MAX_SENDERS`] keys in a reception.
//!
//! **Lost lists.** Each list is sent twice. A receiver that loses both copies sees up to 96
//! symbols in a row that are not announced. It knows from the numbers of the lists around it that
//! one is missing, and then counts only the first symbol of a row as evidence. Forged symbols come
//! between honest ones, so that they begin many rows.

use crate::random::SplitMix64;
use crate::time::Instant;
use announced::AnnouncedSymbols;
use budget::CheckBudget;
use fontana_wire::{DigestList, InstanceId, PublicKey, SymbolDigest};

mod announced;
mod budget;

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

/// Symbols of a sender that are taken before its lists have come: those of two lists. The next list
/// that is sent after the head is that of the next symbols, or one copy of it is lost.
const PATIENCE: u32 = 2 * DigestList::MAX_DIGESTS as u32;

/// Senders whose lists are held: [`ReceiverLimits`](super::config::ReceiverLimits) allow 16
/// sessions, of which attackers may have repeated some. Each takes 600 kB at most.
const MAX_SENDERS: usize = 8;

/// Signed digests of the accepted content's symbols.
#[derive(Debug)]
pub(super) struct SymbolDigests {
    senders: Vec<AnnouncedSymbols>,
    /// Senders whose lists have not come.
    awaited: Vec<AwaitedSender>,
    checks: CheckBudget,
    sampling: SplitMix64,
    /// Symbols to check, whatever the sample.
    close_look: u32,
    evidence: u32,
    /// Symbols for which only announced ones are taken.
    alarm: u32,
    was_announced: bool,
}

/// A sender whose lists have not come.
#[derive(Debug)]
struct AwaitedSender {
    signer: DigestSigner,
    /// Symbols that were taken although they are not announced.
    taken: u32,
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
            awaited: Vec::new(),
            checks: CheckBudget::default(),
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

    /// Whether to take a symbol of a session whose heads certify the keys of these `signers`.
    /// `digest` computes its digest.
    #[inline]
    pub(super) fn admits(
        &mut self,
        signers: &[DigestSigner],
        digest: impl FnOnce() -> SymbolDigest,
    ) -> bool {
        if self.senders.is_empty() {
            return true;
        }
        if self.alarm == 0 && self.close_look == 0 && self.sampling.below(SAMPLE) != 0 {
            return true;
        }
        self.judge(signers, digest())
    }

    fn judge(&mut self, signers: &[DigestSigner], digest: SymbolDigest) -> bool {
        let lists = self.senders.iter().map(|sender| sender.lists).max().unwrap_or(0);
        if lists < LEAST_LISTS {
            return true;
        }
        let is_announced = self.is_announced(digest);
        if !is_announced && self.awaits_lists(signers) {
            self.close_look = CLOSE_LOOK;
            return true;
        }
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

    /// Whether a symbol that is not announced is taken because the lists of its sender have not
    /// come. Counts it if so.
    fn awaits_lists(&mut self, signers: &[DigestSigner]) -> bool {
        let is_judged = |sender: &AnnouncedSymbols| {
            sender.lists >= LEAST_LISTS && signers.contains(&sender.signer)
        };
        let Some(&signer) = signers.last() else { return false };
        if self.senders.iter().any(is_judged) {
            return false;
        }
        if let Some(known) = self.awaited.iter_mut().find(|awaited| awaited.signer == signer) {
            known.taken = known.taken.saturating_add(1);
            return known.taken <= PATIENCE;
        }
        let has_room = self.awaited.len() < MAX_SENDERS;
        if has_room {
            self.awaited.push(AwaitedSender { signer, taken: 1 });
        }
        has_room
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

#[cfg(test)]
mod tests;
