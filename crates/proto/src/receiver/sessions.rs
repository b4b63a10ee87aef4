//! One session as it is heard: where it stands, and what was kept of it before it was known.

use super::collector::Collector;
use super::flute::Tables;
use super::standing::Standing;
use crate::endpoint::BlockId;
use crate::endpoint::SessionKey;
use crate::sequence::SequenceTracker;
use crate::time::Instant;
use fontana_fec::{EncodingId, Esi};
use fontana_wire::{Hash, Manifest, PublicKey, SessionHead, StreamIndex};
use std::collections::VecDeque;
use std::sync::Arc;

/// What a receiver knows of one session on its channels.
#[derive(Debug)]
pub(super) struct SessionState {
    pub(super) standing: Standing,
    pub(super) sequence: SequenceTracker,
    /// Packets until everything had been heard, and those of them that carried control objects.
    pub(super) packets: u64,
    pub(super) control_packets: u64,
    /// Of these packets: symbols of objects that are left out.
    pub(super) left_out: u64,
    pub(super) last_heard: Instant,
    /// The head as it arrived, so that its repetitions cost a comparison.
    head_bytes: Vec<u8>,
    /// The head that was refused last, for the same reason.
    pub(super) refused_head: Vec<u8>,
    pub(super) head: Option<Arc<SessionHead>>,
    pub(super) manifest: Option<(Hash, Arc<Manifest>)>,
    /// Who signed the head, if it is a stream's, and the index that is on offer.
    pub(super) signer: Option<PublicKey>,
    pub(super) stream: Option<Arc<StreamIndex>>,
    pub(super) collector: Option<Collector>,
    pub(super) spool: VecDeque<Spooled>,
    pub(super) tables: Tables,
}

/// What is heard of each session. There are few, and a packet is nearly always of the one that the
/// packet before was of: that one is found by one comparison.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    /// In the order of their keys.
    sessions: Vec<(SessionKey, Box<SessionState>)>,
    /// Where one was found last.
    last: usize,
}

impl Sessions {
    fn position(&self, session: &SessionKey) -> Result<usize, usize> {
        match self.sessions.get(self.last) {
            Some((last, _)) if last == session => Ok(self.last),
            _ => self.sessions.binary_search_by(|(key, _)| key.cmp(session)),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.sessions.len()
    }

    pub(super) fn contains(&self, session: &SessionKey) -> bool {
        self.position(session).is_ok()
    }

    pub(super) fn get(&self, session: &SessionKey) -> Option<&SessionState> {
        let (_, state) = self.sessions.get(self.position(session).ok()?)?;
        Some(state)
    }

    pub(super) fn get_mut(&mut self, session: &SessionKey) -> Option<&mut SessionState> {
        self.last = self.position(session).ok()?;
        let (_, state) = self.sessions.get_mut(self.last)?;
        Some(state)
    }

    /// Begins to hear a session, if that is a new one.
    pub(super) fn begin(&mut self, now: Instant, session: SessionKey) {
        if let Err(at) = self.position(&session) {
            self.sessions.insert(at, (session, Box::new(SessionState::new(now))));
        }
    }

    pub(super) fn remove(&mut self, session: &SessionKey) -> Option<Box<SessionState>> {
        let at = self.position(session).ok()?;
        Some(self.sessions.remove(at).1)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (SessionKey, &SessionState)> {
        self.sessions.iter().map(|(key, state)| (*key, &**state))
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (SessionKey, &mut SessionState)> {
        self.sessions.iter_mut().map(|(key, state)| (*key, &mut **state))
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &SessionState> {
        self.iter().map(|(_, state)| state)
    }

    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut SessionState> {
        self.iter_mut().map(|(_, state)| state)
    }
}

/// A symbol that arrived before it was known where it goes.
#[derive(Debug)]
pub(super) struct Spooled {
    pub(super) block: BlockId,
    pub(super) esi: Esi,
    pub(super) encoding_id: EncodingId,
    pub(super) bytes: Vec<u8>,
}

impl Spooled {
    /// What it counts against the limit: its bytes and about what it takes to hold them.
    pub(super) fn cost(&self) -> usize {
        self.bytes.len() + 128
    }
}

impl SessionState {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            standing: Standing::Unknown,
            sequence: SequenceTracker::default(),
            packets: 0,
            control_packets: 0,
            left_out: 0,
            last_heard: now,
            head_bytes: Vec::new(),
            refused_head: Vec::new(),
            head: None,
            manifest: None,
            signer: None,
            stream: None,
            collector: None,
            spool: VecDeque::new(),
            tables: Tables::default(),
        }
    }

    /// Whether it is what is being received or, as long as nothing `is_chosen`, may turn out to be.
    /// What strangers send in the session's name counts for nothing.
    pub(super) fn is_wanted(&self, is_chosen: bool) -> bool {
        if is_chosen {
            self.standing == Standing::Accepted
        } else {
            self.standing != Standing::Refused
        }
    }

    /// Whether these bytes are the head that was taken or refused last.
    pub(super) fn knows_head(&self, bytes: &[u8]) -> bool {
        self.head.is_some() && self.head_bytes == bytes || self.refused_head == bytes
    }

    /// Takes a head. What was collected of another manifest is dropped.
    pub(super) fn set_head(&mut self, bytes: &[u8], head: SessionHead, max_manifest_bytes: u64) {
        let same = self.head.as_ref().is_some_and(|old| old.manifest == head.manifest);
        self.head_bytes = bytes.to_vec();
        if !same {
            if self.manifest.as_ref().is_none_or(|(hash, _)| *hash != head.manifest.hash) {
                self.manifest = None;
            }
            self.collector = Collector::new(head.manifest.oti, max_manifest_bytes);
        }
        self.head = Some(Arc::new(head));
    }
}
