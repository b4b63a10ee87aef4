//! Streams on the receiving side: fragments are opened as the index lists them and let go of as
//! they are handed over, so that as much is held as the window allows, however long the stream is.
//!
//! A stream is named by the key that signs its heads and by the instance that sends it: whoever
//! shows a head of the same two sessions it. Versions only grow, so a head that somebody has kept and
//! repeats changes nothing.

use super::collector::Collector;
use super::standing::Standing;
use super::{Chosen, Phase, Receiver};
use crate::endpoint::SessionKey;
use crate::event::{ReceiverEvent, ReceiverOutput, Rejection, StreamBreak, Verified};
use crate::job::{Opening, ReceiveJob};
use fontana_fec::{Esi, Sbn};
use fontana_wire::{
    InstanceId, PlacedFragment, PublicKey, SessionHead, StreamIndex, StreamState, Toi,
    UnverifiedHead, stream_index_hash,
};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// The stream that was accepted.
#[derive(Debug)]
pub(super) struct Stream {
    key: PublicKey,
    instance: InstanceId,
    version: u64,
    state: StreamState,
    /// First fragment that is still on the air.
    listed_from: u32,
    /// First fragment that was not opened yet, and bytes before it.
    next: u32,
    length: u64,
    /// Fragments that were opened and not handed over yet, and their places in the stream.
    open: BTreeMap<u32, Range<u64>>,
    slot_length: u32,
    slot_count: u32,
}

/// How far ahead of the index symbols are kept for fragments that it has not listed yet: a sender
/// has two fragments under way at a time.
const FRAGMENTS_AHEAD: u32 = 4;
/// Slots, at most: the disk's bound is the window, this one is the memory's.
const MAX_SLOTS: u64 = 1024;

impl Stream {
    fn new(key: PublicKey, index: &StreamIndex, instance: InstanceId, window: u64) -> Self {
        let slot_length = index.max_length();
        Self {
            key,
            instance,
            version: 0,
            state: StreamState::Open,
            listed_from: 0,
            next: 0,
            length: 0,
            open: BTreeMap::new(),
            slot_length,
            slot_count: (window / u64::from(slot_length.max(1))).clamp(1, MAX_SLOTS) as u32,
        }
    }

    /// Whether nothing will follow what was opened.
    pub(super) fn has_ended(&self) -> bool {
        self.state == StreamState::Ended
    }

    /// Whether symbols of the object are of no use: its fragment was handed over, or is so far away
    /// that it is none.
    pub(super) fn is_useless(&self, toi: Toi) -> bool {
        StreamIndex::number(toi).is_none_or(|number| {
            let past = number < self.next && !self.open.contains_key(&number);
            past || number >= self.next.saturating_add(FRAGMENTS_AHEAD)
        })
    }

    /// The byte that the next fragment to be handed over begins with.
    fn reached(&self) -> u64 {
        self.open.values().next().map_or(self.length, |range| range.start)
    }
}

impl Receiver {
    /// Whether these bytes can be of no use to the stream that is received: its own head of a
    /// version that it had. Whoever repeats those uses up no checks of signatures.
    pub(super) fn is_old_stream_head(&self, symbol: &[u8]) -> bool {
        let claimed = UnverifiedHead::claimed_version(symbol);
        matches!((&self.stream, claimed), (Some(stream), Some(claimed))
            if claimed.instance == stream.instance && claimed.manifest_version <= stream.version)
    }

    /// A head of a stream that may be trusted as far as is expected: it is signed in any case.
    pub(super) fn check_stream_head(
        &self,
        unverified: UnverifiedHead,
    ) -> Result<SessionHead, Rejection> {
        let expectation = &self.config.expectation;
        if expectation.manifest.is_some() {
            return Err(Rejection::OtherManifest);
        }
        let accepted = self.stream.as_ref().map(|stream| stream.key);
        let key = expectation.publisher.or(accepted).or(unverified.claimed_signer());
        let key = key.ok_or(Rejection::WrongKey)?;
        unverified.verify(&key).map_err(|_| Rejection::WrongKey)
    }

    /// Takes a head of a stream, `signer`'s.
    pub(super) fn take_stream_head(
        &mut self,
        session: SessionKey,
        symbol: &[u8],
        head: SessionHead,
        signer: PublicKey,
    ) {
        let Some(state) = self.sessions.get_mut(&session) else { return };
        let known = state.head.as_ref().filter(|_| state.signer == Some(signer));
        if known.is_some_and(|known| {
            known.instance == head.instance && known.manifest_version >= head.manifest_version
        }) {
            return;
        }
        match (&self.stream, self.chosen) {
            (Some(stream), _) if stream.instance != head.instance => {
                return self.tell_rejection(session, Rejection::OtherManifest);
            }
            (None, Some(_)) => return self.reject(session, Rejection::OtherManifest),
            (Some(_), _) => state.standing = Standing::Accepted,
            (None, None) => {}
        }
        state.set_head(symbol, head, self.config.limits.manifest.bytes as u64);
        state.signer = Some(signer);
        if state.collector.is_none() {
            self.reject(session, Rejection::BadManifest);
        }
    }

    /// A symbol of an index.
    pub(super) fn on_index_symbol(
        &mut self,
        session: SessionKey,
        sbn: Sbn,
        esi: Esi,
        symbol: &[u8],
    ) {
        let Some(state) = self.sessions.get_mut(&session) else { return };
        let (Some(head), Some(collector)) = (state.head.clone(), &mut state.collector) else {
            return;
        };
        let Some(bytes) = collector.push(sbn, esi, symbol) else { return };
        if stream_index_hash(&bytes) != head.manifest.hash {
            // A symbol was forged, or is of another version: begin again.
            state.collector = Collector::new(collector.oti(), u64::MAX);
            return;
        }
        state.collector = None;
        match StreamIndex::parse(&bytes) {
            Ok(index) if index.version == head.manifest_version => match self.chosen {
                Some(Chosen::Stream(_)) => self.take_index(&index),
                Some(_) => {}
                None => self.offer_stream(session, Arc::new(index)),
            },
            _ => self.reject(session, Rejection::BadManifest),
        }
    }

    fn offer_stream(&mut self, session: SessionKey, index: Arc<StreamIndex>) {
        let Some(state) = self.sessions.get_mut(&session) else { return };
        let is_new = state.stream.replace(Arc::clone(&index)).is_none();
        state.standing = Standing::Offered;
        if is_new {
            let index = Arc::clone(&index);
            self.outputs
                .push_back(ReceiverOutput::Event(ReceiverEvent::StreamOffered { session, index }));
        }
        if self.config.acceptance == super::Acceptance::Automatic {
            self.choose_stream(session, &index);
        }
    }

    /// Begins to receive a stream that is on offer.
    pub(super) fn choose_stream(&mut self, session: SessionKey, index: &Arc<StreamIndex>) {
        let Some(state) = self.sessions.get(&session) else { return };
        let (Some(head), Some(key)) = (state.head.clone(), state.signer) else { return };
        let signed = self.config.expectation.publisher.is_some();
        let verified = if signed { Verified::Signed } else { Verified::Digest };
        let window = self.config.limits.max_stream_window_bytes;
        self.stream = Some(Stream::new(key, index, head.instance, window));
        self.chosen = Some(Chosen::Stream(verified));
        self.transfer.decode_at_once();
        let mut others = Vec::new();
        for (other, state) in self.sessions.iter_mut() {
            let instance = state.head.as_ref().map(|head| head.instance);
            if state.signer == Some(key) && instance == Some(head.instance) {
                state.standing = Standing::Accepted;
            } else if state.head.is_some() {
                others.push(other);
            }
        }
        for other in others {
            self.reject(other, Rejection::OtherManifest);
        }
        let index = Arc::clone(index);
        let event =
            ReceiverEvent::StreamAccepted { session, index: Arc::clone(&index), key, verified };
        self.outputs.push_back(ReceiverOutput::Event(event));
        self.take_index(&index);
    }

    /// Opens what an index lists anew, and sees whether anything was lost.
    fn take_index(&mut self, index: &StreamIndex) {
        let Some(stream) = self.stream.as_mut().filter(|stream| stream.version < index.version)
        else {
            return;
        };
        let reason = match (index.state, stream.version) {
            (StreamState::Broken, _) => StreamBreak::BySender,
            (_, 0) => StreamBreak::Late,
            _ => StreamBreak::Lost,
        };
        stream.version = index.version;
        stream.listed_from = index.first;
        if index.first > stream.next {
            let at = stream.reached();
            return self.break_off(at, reason);
        }
        for placed in index.placed().skip((stream.next - index.first) as usize) {
            let PlacedFragment { number, range, fragment } = placed;
            if range.start != stream.length {
                let at = stream.length;
                return self.break_off(at, StreamBreak::Lost);
            }
            if range.end > self.config.limits.max_transfer_bytes {
                return self.break_off(range.start, StreamBreak::TooLarge);
            }
            if stream.open.len() >= stream.slot_count as usize {
                let at = stream.reached();
                return self.break_off(at, StreamBreak::Behind);
            }
            let Ok(layout) = index.oti(fragment.length).layout() else { continue };
            let toi = StreamIndex::toi(number);
            self.transfer.insert(toi, layout, Some(vec![fragment.hash]));
            stream.open.insert(number, range.clone());
            (stream.next, stream.length) = (number + 1, range.end);
            let (slot_length, slot_count) = (stream.slot_length, stream.slot_count);
            let slot = number % slot_count;
            self.outputs.push_back(ReceiverOutput::Job(ReceiveJob::Open(Opening::Fragment {
                number,
                layout,
                slot,
                slot_count,
                slot_length,
            })));
        }
        stream.state = index.state;
        self.drop_useless();
        self.settle_stream();
    }

    /// Forgets spooled symbols that no fragment will want.
    fn drop_useless(&mut self) {
        let Some(stream) = &self.stream else { return };
        for state in self.sessions.values_mut() {
            let before: usize = state.spool.iter().map(super::Spooled::cost).sum();
            state.spool.retain(|spooled| !stream.is_useless(spooled.block.toi));
            let after: usize = state.spool.iter().map(super::Spooled::cost).sum();
            self.spool_bytes -= before - after;
        }
    }

    /// A fragment was handed over.
    pub(super) fn on_fragment_committed(&mut self, toi: Toi) {
        let Some(number) = StreamIndex::number(toi) else { return };
        let Some(range) = self.stream.as_mut().and_then(|stream| stream.open.remove(&number))
        else {
            return;
        };
        self.transfer.remove(toi);
        self.outputs
            .push_back(ReceiverOutput::Event(ReceiverEvent::FragmentDone { number, range }));
        self.settle_stream();
    }

    /// Gives the stream up if a fragment of it was, or is lost; or if its sender has, and what it
    /// had sent was handed over.
    pub(super) fn settle_stream(&mut self) {
        let Some(stream) = &self.stream else { return };
        let at = stream.reached();
        let mut gone = stream.open.range(..stream.listed_from);
        let lost = gone.find(|&(&number, _)| self.transfer.is_collecting(StreamIndex::toi(number)));
        if self.transfer.has_failed() {
            self.break_off(at, StreamBreak::Failed);
        } else if let Some((_, range)) = lost {
            let broken = stream.state == StreamState::Broken;
            let reason = if broken { StreamBreak::BySender } else { StreamBreak::Lost };
            self.break_off(range.start, reason);
        } else if stream.state == StreamState::Broken && stream.open.is_empty() {
            self.break_off(at, StreamBreak::BySender);
        }
    }

    fn break_off(&mut self, at: u64, reason: StreamBreak) {
        if self.phase == Phase::Ended {
            return;
        }
        if self.phase == Phase::Listening {
            self.outputs.extend(self.channels.joined().map(ReceiverOutput::Leave));
        }
        self.phase = Phase::Ended;
        self.outputs.push_back(ReceiverOutput::Event(ReceiverEvent::StreamBroken { at, reason }));
    }
}
