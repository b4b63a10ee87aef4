//! Streams: the index lists fragments, which are opened as it lists them and forgotten as they are
//! delivered. The window bounds the memory, however long the stream is.
//!
//! The key that signs the heads and the sender's run identify a stream: sessions with heads of both
//! add up. Versions only grow, so a repeated old head changes nothing.

use super::discovery::{Content, Context, Discovery, Finding, NewObject};
use super::head::{HeadChecks, HeadOrigin, TrustedHead};
use crate::event::{ReceiverEvent, Rejection, StreamBreak, Verified};
use crate::job::Opening;
use crate::receiver::config::ReceiverLimits;
use crate::receiver::sessions::{Candidates, ContentId, Metadata, SessionState, Standing};
use crate::receiver::transfer::Transfer;
use fontana_wire::{
    ContentKind, InstanceId, Packet, Payload, PlacedFragment, PublicKey, SessionHead, StreamIndex,
    StreamState, Toi, UnverifiedHead, stream_index_hash,
};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// The stream that was accepted.
#[derive(Debug)]
pub(in crate::receiver) struct StreamCatalog {
    checks: HeadChecks,
    key: PublicKey,
    instance: InstanceId,
    /// The version of the index that was applied last; 0 is none.
    version: u64,
    state: StreamState,
    /// The first fragment that the sender still sends.
    listed_from: u32,
    /// The first fragment that was not opened yet.
    next: u32,
    /// Bytes before `next`.
    length: u64,
    /// Fragments that were opened and not delivered yet, and their places in the stream.
    open: BTreeMap<u32, Range<u64>>,
    slots: Slots,
    /// Why an index could not be applied.
    broken: Option<Break>,
}

/// Where fragments are stored until they are delivered.
#[derive(Clone, Copy, Debug)]
struct Slots {
    count: u32,
    /// Bytes in each.
    length: u32,
}

/// The end of a stream before its time.
#[derive(Clone, Copy, Debug)]
pub(in crate::receiver) struct Break {
    /// The first byte that is missing.
    pub(in crate::receiver) at: u64,
    pub(in crate::receiver) reason: StreamBreak,
}

/// Fragments beyond the index whose symbols are stored: a sender sends two fragments at a time.
const FRAGMENTS_AHEAD: u32 = 4;
/// The most slots. The window bounds the bytes on disk, and this the memory.
const MAX_SLOTS: u64 = 1024;

impl StreamCatalog {
    /// The stream of a session, and what is accepted with its index. `None` if the session has not
    /// shown a stream's head.
    pub(super) fn accept(
        checks: HeadChecks,
        limits: &ReceiverLimits,
        session: &mut SessionState,
        index: &Arc<StreamIndex>,
        verified: Verified,
    ) -> Option<(Self, Content)> {
        let state = session.head_state()?;
        let (instance, key) = (state.head()?.instance, state.signer()?);
        let length = index.max_length();
        let count = limits.max_stream_window_bytes.checked_div(length.into()).unwrap_or(0);
        let mut catalog = Self {
            checks,
            key,
            instance,
            version: 0,
            state: StreamState::Open,
            listed_from: 0,
            next: 0,
            length: 0,
            open: BTreeMap::new(),
            slots: Slots { count: count.clamp(1, MAX_SLOTS) as u32, length },
            broken: None,
        };
        let event = ReceiverEvent::StreamAccepted {
            session: session.key,
            index: Arc::clone(index),
            key,
            verified,
        };
        let content = Content {
            id: ContentId::Stream(key, instance),
            version: None,
            event: Some(event),
            findings: catalog.apply(index, limits.max_transfer_bytes),
        };
        Some((catalog, content))
    }

    pub(super) fn on_control(
        &mut self,
        cx: &Context<'_>,
        session: &mut SessionState,
        packet: &Packet<'_>,
        payload: &Payload<'_>,
    ) -> Discovery {
        match packet.header.toi {
            Some(Toi::HEAD) => self.on_head(cx, session, payload.symbol),
            Some(Toi::MANIFEST) => match on_index_symbol(session, payload) {
                Some(Ok(index)) => {
                    Discovery::Objects(self.apply(&index, cx.config.limits.max_transfer_bytes))
                }
                Some(Err(reason)) => Discovery::Refused(reason),
                None => Discovery::Nothing,
            },
            _ => Discovery::Nothing,
        }
    }

    fn on_head(
        &mut self,
        cx: &Context<'_>,
        session: &mut SessionState,
        symbol: &[u8],
    ) -> Discovery {
        // Repeated old heads of this stream use up no checks of signatures.
        let claimed = UnverifiedHead::claimed_version(symbol);
        if claimed
            .is_some_and(|c| c.instance == self.instance && c.manifest_version <= self.version)
        {
            return Discovery::Nothing;
        }
        let is_accepted = session.standing == Standing::Accepted;
        let origin = HeadOrigin { source: session.key.source, is_stream: is_accepted };
        let Some(state) = session.head_state() else { return Discovery::Nothing };
        match self.checks.check(cx, origin, state, Some(self.key), symbol) {
            // Any host can write a head of a manifest in the stream's name.
            Ok(TrustedHead { signer: None, .. }) if is_accepted => {
                Discovery::Ignored(Rejection::OtherManifest)
            }
            Ok(TrustedHead { head, signer: None }) => {
                let version = head.manifest_version;
                let limit = cx.config.limits.manifest.bytes as u64;
                session.take_head(cx.now, symbol, head, None, limit);
                Discovery::OtherManifest { version }
            }
            Ok(TrustedHead { head, signer: Some(signer) }) => {
                if state.is_old_stream_head(&head, signer) {
                    return Discovery::Nothing;
                }
                if head.instance != self.instance {
                    return Discovery::Ignored(Rejection::OtherManifest);
                }
                self.checks.uncount(head.manifest_version);
                session.standing = Standing::Accepted;
                take_head(cx, session, symbol, head, signer)
            }
            Err(discovery) => discovery,
        }
    }

    /// Applies a newer index: the fragments that it adds.
    fn apply(&mut self, index: &StreamIndex, max_transfer_bytes: u64) -> Vec<Finding> {
        let mut findings = Vec::new();
        if self.version >= index.version {
            return findings;
        }
        let reason = match (index.state, self.version) {
            (StreamState::Broken, _) => StreamBreak::BySender,
            (_, 0) => StreamBreak::Late,
            _ => StreamBreak::Lost,
        };
        self.version = index.version;
        self.listed_from = index.first;
        if index.first > self.next {
            self.broken = Some(Break { at: self.delivered_to(), reason });
            return findings;
        }
        for placed in index.placed().skip(self.next.saturating_sub(index.first) as usize) {
            let PlacedFragment { number, range, fragment } = placed;
            let broken = if range.start != self.length {
                Some((self.length, StreamBreak::Lost))
            } else if fragment.length > self.slots.length {
                // It would overwrite the next slot, whose fragment may wait to be delivered.
                Some((range.start, StreamBreak::Failed))
            } else if range.end > max_transfer_bytes {
                Some((range.start, StreamBreak::TooLarge))
            } else if self.open.len() >= self.slots.count as usize {
                Some((self.delivered_to(), StreamBreak::Behind))
            } else {
                None
            };
            if let Some((at, reason)) = broken {
                self.broken = Some(Break { at, reason });
                return findings;
            }
            let Ok(layout) = index.oti(fragment.length).layout() else { continue };
            let object = NewObject {
                toi: StreamIndex::toi(number),
                layout,
                block_hashes: Some(vec![fragment.hash]),
            };
            (self.next, self.length) = (number.saturating_add(1), range.end);
            self.open.insert(number, range);
            let opening = Opening::Fragment {
                number,
                layout,
                slot: number.checked_rem(self.slots.count).unwrap_or(0),
                slot_count: self.slots.count,
                slot_length: self.slots.length,
            };
            findings.push(Finding::open(object, None, opening));
        }
        self.state = index.state;
        findings
    }

    /// The run of the sender.
    pub(super) fn instance(&self) -> InstanceId {
        self.instance
    }

    /// Whether a fragment was listed.
    pub(super) fn has_begun(&self) -> bool {
        self.next > 0
    }

    /// Whether nothing follows the fragments that were opened.
    pub(super) fn has_ended(&self) -> bool {
        self.state == StreamState::Ended
    }

    /// Whether symbols of the object are of no use: its fragment was delivered, or is too far away
    /// to be one.
    pub(super) fn is_useless(&self, toi: Toi) -> bool {
        StreamIndex::number(toi).is_none_or(|number| {
            let is_past = number < self.next && !self.open.contains_key(&number);
            is_past || number >= self.next.saturating_add(FRAGMENTS_AHEAD)
        })
    }

    /// The byte at which the next fragment to be delivered begins.
    fn delivered_to(&self) -> u64 {
        self.open.values().next().map_or(self.length, |range| range.start)
    }

    /// A fragment was delivered. The event that reports it.
    pub(super) fn on_committed(
        &mut self,
        toi: Toi,
        transfer: &mut Transfer,
    ) -> Option<ReceiverEvent> {
        let number = StreamIndex::number(toi)?;
        let range = self.open.remove(&number)?;
        transfer.remove(toi);
        Some(ReceiverEvent::FragmentDone { number, range })
    }

    /// Why no more of the stream can be received: a fragment failed or is lost, or the sender broke
    /// the stream off and everything before was delivered.
    pub(super) fn check(&self, transfer: &Transfer, lost: u64) -> Option<Break> {
        if self.broken.is_some() {
            return self.broken;
        }
        let at = self.delivered_to();
        let is_broken = self.state == StreamState::Broken;
        let mut gone = self.open.range(..self.listed_from);
        if transfer.has_failed() {
            return Some(Break { at, reason: StreamBreak::Failed });
        }
        if let Some((&number, range)) =
            gone.find(|&(&number, _)| transfer.is_collecting(StreamIndex::toi(number)))
        {
            // What no loss explains was sent before the receiver came.
            let reason = match transfer.symbols_wanted_of(StreamIndex::toi(number)) {
                _ if is_broken => StreamBreak::BySender,
                wanted if wanted > lost => StreamBreak::Late,
                _ => StreamBreak::Lost,
            };
            return Some(Break { at: range.start, reason });
        }
        (is_broken && self.open.is_empty()).then_some(Break { at, reason: StreamBreak::BySender })
    }
}

/// Takes a newer head of a stream.
pub(super) fn take_head(
    cx: &Context<'_>,
    session: &mut SessionState,
    symbol: &[u8],
    head: SessionHead,
    signer: PublicKey,
) -> Discovery {
    let limit = cx.config.limits.manifest.bytes as u64;
    session.take_head(cx.now, symbol, head, Some(signer), limit);
    match session.head_state() {
        Some(state) if !state.is_collecting() => Discovery::Refused(Rejection::BadManifest),
        _ => Discovery::Nothing,
    }
}

/// Takes a symbol of an index. The index, when it is complete; or why the session is refused.
pub(super) fn on_index_symbol(
    session: &mut SessionState,
    payload: &Payload<'_>,
) -> Option<Result<StreamIndex, Rejection>> {
    let state = session.head_state()?;
    let version = state.head().filter(|head| head.kind == ContentKind::StreamIndex)?;
    let version = version.manifest_version;
    let bytes = state.push(Candidates::InForce, payload, stream_index_hash)?;
    let index = StreamIndex::parse(&bytes).ok().filter(|index| index.version == version);
    Some(index.ok_or(Rejection::BadManifest))
}

/// Puts the session of a complete index on offer; the first index is reported.
pub(super) fn offer(session: &mut SessionState, index: StreamIndex) -> Discovery {
    let (key, index) = (session.key, Arc::new(index));
    session.standing = Standing::Offered;
    let Some(state) = session.head_state() else { return Discovery::Nothing };
    let is_reported = matches!(state.metadata(), Some(Metadata::Index(_)));
    state.complete(Metadata::Index(Arc::clone(&index)));
    let event = ReceiverEvent::StreamOffered { session: key, index };
    Discovery::Offered((!is_reported).then_some(event))
}
