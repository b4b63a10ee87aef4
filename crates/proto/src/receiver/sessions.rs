//! Sessions on the joined channels, and what the receiver knows of each.

use super::digests::DigestSigner;
use super::sources::SourceId;
use crate::counter::Counter;
use crate::endpoint::SessionKey;
use crate::sequence::SequenceTracker;
use crate::time::Instant;
use fontana_wire::{DigestKey, Hash, InstanceId, PublicKey, SessionHead};
use std::net::IpAddr;
use std::time::Duration;

mod early;
mod heads;
mod spilled;
mod tables;

pub(super) use early::{EarlySymbol, EarlySymbols};
pub(super) use heads::{Candidates, HeadState, Metadata};
pub(super) use spilled::{CHUNK_BYTES, Chunk, SpilledSymbols, records};
pub(super) use tables::{InBand, Table, TableCollector};

/// Sessions that may stay in a full table although they have only repeated a head, which is public.
/// A sender that has just started is one of them until its first symbol is placed.
const MAX_REPEATERS: usize = 4;
/// Sessions that stay in a full table for [`KEPT_FOR`] from their first head on: the first ones, a
/// quarter of the table at most. So no rate at which others repeat the head of a sender displaces
/// it before its first symbol is placed. Others take the places of each other, the latest first:
/// those that were there before the sender do not keep it out.
const MAX_NEW: usize = 4;
/// Time for which a session that carries wanted content keeps its place in a full table, from its
/// first head and from each symbol of use. Longer than a sender pauses.
const KEPT_FOR: Duration = Duration::from_secs(2);

/// Content of a session. Sessions of equal content add up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ContentId {
    /// A manifest, by its hash.
    Manifest(Hash),
    /// A stream, by the key that signs it and the sender's run.
    Stream(PublicKey, InstanceId),
    /// A session without an identity of its own: plain FLUTE or FCAST.
    Session(SessionKey),
}

/// What a receiver wants of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// Its content is not known yet.
    Unknown,
    /// Its content is known; the application has not accepted it yet.
    Offered,
    /// It carries the accepted content.
    Accepted,
    /// It carries other content.
    Refused,
}

/// What a session has announced, by kind.
#[derive(Debug)]
pub(super) enum Announced {
    /// Objects announce themselves: FCAST.
    Nothing,
    /// A session of Fontana.
    Head(Box<HeadState>),
    /// A plain FLUTE session.
    Tables(TableCollector),
}

/// Packets of a session that arrived before reception was complete.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SessionCounters {
    pub(super) packets: u64,
    /// Of these: control objects.
    pub(super) control: u64,
    /// Of these: symbols of deselected objects.
    pub(super) deselected: u64,
}

/// What a receiver knows of one session.
#[derive(Debug)]
pub(super) struct SessionState {
    pub(super) key: SessionKey,
    /// Its number in the order in which sessions were added.
    number: u64,
    pub(super) standing: Standing,
    /// A packet with a number has arrived that only sessions of Fontana have.
    pub(super) is_of_fontana: bool,
    /// It was last refused because its version is not newer than expected.
    pub(super) is_old_version: bool,
    /// `None`: not known yet.
    pub(super) content: Option<ContentId>,
    pub(super) announced: Announced,
    /// Keys of lists of digests that heads of the publisher certify, the last
    /// [`MAX_DIGEST_SIGNERS`]. Any host can repeat older heads in the session's name, so that none
    /// replaces the others.
    pub(super) digest_signers: Vec<DigestSigner>,
    pub(super) early: EarlySymbols,
    /// Early symbols that the driver has in a file.
    pub(super) spilled: SpilledSymbols,
    pub(super) sequence: SequenceTracker,
    pub(super) counters: SessionCounters,
    pub(super) first_received: Instant,
    pub(super) last_received: Instant,
    /// Time of the first head that was taken.
    head_since: Option<Instant>,
    /// Time of the last symbol of use: of a manifest before content is accepted, then of content.
    pub(super) useful_at: Option<Instant>,
    /// The source of the last symbol of content.
    pub(super) symbols_from: Option<SourceId>,
}

/// Runs of a sender whose lists of digests a session may have.
const MAX_DIGEST_SIGNERS: usize = 4;

/// Why a session leaves a full table, in the order in which they leave. Of one reason, the earliest
/// leaves first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Removal {
    /// It is one of more than [`MAX_REPEATERS`] that have only repeated a head. With the time of
    /// its first packet.
    Repeater(Instant),
    /// Its content is not known or not wanted. With the time of its last packet.
    Unwanted { has_content: bool, last_received: Instant },
    /// The source of its symbols is [doubted](super::sources). With the time of its first packet.
    Doubted(Instant),
    /// It carries wanted content, and has brought no symbol of use for [`KEPT_FOR`]. With the time
    /// of the last one.
    Useless(Instant),
}

impl SessionState {
    fn new(now: Instant, key: SessionKey, number: u64, announced: Announced) -> Self {
        Self {
            key,
            number,
            standing: Standing::Unknown,
            is_of_fontana: false,
            is_old_version: false,
            content: None,
            announced,
            digest_signers: Vec::new(),
            early: EarlySymbols::default(),
            spilled: SpilledSymbols::default(),
            sequence: SequenceTracker::default(),
            counters: SessionCounters::default(),
            first_received: now,
            last_received: now,
            head_since: None,
            useful_at: None,
            symbols_from: None,
        }
    }

    /// Whether it has brought symbols that are of use, or may turn out to be.
    pub(super) fn has_contributed(&self) -> bool {
        self.useful_at.is_some() || !self.early.is_empty()
    }

    /// Whether its head is all that the session has brought: a stranger can repeat it.
    fn is_repeater(&self) -> bool {
        self.content.is_some() && self.standing != Standing::Refused && !self.has_contributed()
    }

    /// Its place among the sessions that may be senders that have just started, if it is one.
    /// Several heads may arrive at the same time.
    fn rank_if_new(&self, now: Instant) -> Option<(Instant, u64)> {
        let is_useful = self.standing == Standing::Accepted && self.useful_at.is_some();
        let since = self.head_since.filter(|_| self.standing != Standing::Refused && !is_useful)?;
        (now.saturating_since(since) < KEPT_FOR).then_some((since, self.number))
    }

    /// Why it may leave a full table, if it is not one of the first new ones. `None`: it may not.
    fn removal(&self, now: Instant, too_many_repeaters: bool, is_doubted: bool) -> Option<Removal> {
        if too_many_repeaters && self.is_repeater() {
            return Some(Removal::Repeater(self.first_received));
        }
        match self.standing {
            Standing::Unknown | Standing::Refused => Some(Removal::Unwanted {
                has_content: self.content.is_some(),
                last_received: self.last_received,
            }),
            Standing::Offered | Standing::Accepted if is_doubted => {
                Some(Removal::Doubted(self.first_received))
            }
            Standing::Offered | Standing::Accepted => {
                let useful_at = self.useful_at.unwrap_or(self.first_received);
                let is_kept = now.saturating_since(useful_at) < KEPT_FOR;
                (!is_kept).then_some(Removal::Useless(useful_at))
            }
        }
    }

    /// Whether the session carries the accepted content or, before any `is_accepted`, may turn out
    /// to. Packets that others send in its name do not count.
    pub(super) fn is_wanted(&self, is_accepted: bool) -> bool {
        match self.standing {
            Standing::Accepted => true,
            Standing::Refused => false,
            Standing::Unknown | Standing::Offered => !is_accepted,
        }
    }

    /// Notes the key of lists of digests in a head that the publisher has signed.
    pub(super) fn note_digest_signer(&mut self, head: &SessionHead) {
        let Some(DigestKey(key)) = DigestKey::of(&head.records) else { return };
        let signer = DigestSigner { instance: head.instance, key };
        if !self.digest_signers.contains(&signer) {
            if self.digest_signers.len() >= MAX_DIGEST_SIGNERS {
                self.digest_signers.remove(0);
            }
            self.digest_signers.push(signer);
        }
    }

    /// Takes a head: a manifest's, or a stream's with its signer.
    pub(super) fn take_head(
        &mut self,
        now: Instant,
        bytes: &[u8],
        head: SessionHead,
        signer: Option<PublicKey>,
        max_metadata_bytes: u64,
    ) {
        let Announced::Head(state) = &mut self.announced else { return };
        self.head_since.get_or_insert(now);
        self.content = Some(match signer {
            None => ContentId::Manifest(head.manifest.hash),
            Some(signer) => ContentId::Stream(signer, head.instance),
        });
        state.take(now, bytes, head, signer, max_metadata_bytes);
    }

    /// Takes the head of a newer version than the accepted one. The session stays accepted.
    pub(super) fn take_newer_head(
        &mut self,
        now: Instant,
        bytes: &[u8],
        head: SessionHead,
        max_manifest_bytes: u64,
    ) {
        if let Some(state) = self.head_state() {
            state.take(now, bytes, head, None, max_manifest_bytes);
        }
    }

    /// The manifest that its last head names; of other sessions, their content.
    pub(super) fn announced_content(&self) -> Option<ContentId> {
        match &self.announced {
            Announced::Head(state) if state.signer().is_none() => {
                state.head().map(|head| ContentId::Manifest(head.manifest.hash))
            }
            _ => self.content,
        }
    }

    /// The complete manifest or index that its last head names.
    pub(super) fn metadata(&self) -> Option<&Metadata> {
        match &self.announced {
            Announced::Head(state) => state.metadata(),
            Announced::Nothing | Announced::Tables(_) => None,
        }
    }

    /// Whether symbols of its manifest or index are of use.
    pub(super) fn is_collecting(&self) -> bool {
        matches!(&self.announced, Announced::Head(state) if state.is_collecting())
    }

    /// Its head state, if it is a session of Fontana.
    pub(super) fn head_state(&mut self) -> Option<&mut HeadState> {
        match &mut self.announced {
            Announced::Head(state) => Some(state),
            Announced::Nothing | Announced::Tables(_) => None,
        }
    }

    /// The version in its head.
    pub(super) fn version(&self) -> Option<u64> {
        match &self.announced {
            Announced::Head(state) => Some(state.head()?.manifest_version),
            Announced::Nothing | Announced::Tables(_) => None,
        }
    }
}

/// The sessions of a receiver, in the order of their keys. There are few, and most packets are of
/// the same session as the packet before: one comparison finds it.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    states: Vec<SessionState>,
    /// The session that was found last.
    last: usize,
    /// Sessions that were added so far.
    added: u64,
}

/// The place of a session among [`Sessions`], until one is inserted or removed.
#[derive(Clone, Copy, Debug)]
pub(super) struct SessionIndex(usize);

impl Sessions {
    fn position(&self, key: SessionKey) -> Result<usize, usize> {
        match self.states.get(self.last) {
            Some(last) if last.key == key => Ok(self.last),
            _ => self.states.binary_search_by(|state| state.key.cmp(&key)),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.states.len()
    }

    pub(super) fn find(&mut self, key: SessionKey) -> Option<SessionIndex> {
        self.last = self.position(key).ok()?;
        Some(SessionIndex(self.last))
    }

    /// Adds a session, unless it is there.
    pub(super) fn insert(
        &mut self,
        now: Instant,
        key: SessionKey,
        announced: Announced,
    ) -> SessionIndex {
        let at = self.position(key).unwrap_or_else(|at| {
            self.added.count(1);
            self.states.insert(at, SessionState::new(now, key, self.added, announced));
            at
        });
        self.last = at;
        SessionIndex(at)
    }

    /// Whether a session from this address is here.
    pub(super) fn has_source(&self, source: IpAddr) -> bool {
        self.states.iter().any(|state| state.key.source == source)
    }

    /// The sessions that keep their places because they are the first new ones.
    fn first_new(&self, now: Instant) -> Vec<usize> {
        let states = self.states.iter().enumerate();
        let mut new: Vec<_> =
            states.filter_map(|(at, state)| Some((state.rank_if_new(now)?, at))).collect();
        new.sort_unstable();
        new.truncate(MAX_NEW.min(self.states.len() / 4));
        new.into_iter().map(|(_, at)| at).collect()
    }

    /// Removes the session that matters least. `None` if each of them is one of the first new ones,
    /// or has brought a symbol of use within [`KEPT_FOR`], from a source that is not doubted.
    pub(super) fn remove_least(
        &mut self,
        now: Instant,
        is_doubted: impl Fn(&SessionState) -> bool,
    ) -> Option<SessionState> {
        let repeaters = self.states.iter().filter(|state| state.is_repeater()).count();
        let removal =
            |state: &SessionState| state.removal(now, repeaters > MAX_REPEATERS, is_doubted(state));
        let first_new = self.first_new(now);
        let others = self.states.iter().enumerate().filter(|(at, _)| !first_new.contains(at));
        let candidates = others.filter_map(|(at, state)| Some((removal(state)?, at)));
        let (_, at) = candidates.min()?;
        Some(self.states.remove(at))
    }

    /// Removes a session from an address that has several: the one that has been of use least
    /// recently. Makes room for an address that has none.
    pub(super) fn remove_least_of_shared_source(&mut self) -> Option<SessionState> {
        // The sessions of one address follow each other.
        let sources = self.states.chunk_by(|a, b| a.key.source == b.key.source);
        let shared = sources.filter(|of_source| of_source.len() > 1).flatten();
        let useful_at = |state: &&SessionState| state.useful_at.unwrap_or(state.first_received);
        let key = shared.min_by_key(useful_at)?.key;
        let at = self.position(key).ok()?;
        Some(self.states.remove(at))
    }

    pub(super) fn get_mut(&mut self, SessionIndex(at): SessionIndex) -> Option<&mut SessionState> {
        self.states.get_mut(at)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &SessionState> {
        self.states.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut SessionState> {
        self.states.iter_mut()
    }
}
