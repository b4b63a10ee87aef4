//! The receiving endpoint: hears sessions, chooses, and collects symbols until it has everything.
//!
//! A session is named by its sender's address and its TSI; `SessionState` is what the receiver
//! knows of it. Its head names the manifest that it carries. Once a manifest is complete and
//! accepted, all sessions that carry it add up. Symbols that arrive earlier wait in a buffer of
//! fixed size. A plain FLUTE session has no head: its file delivery table replaces the manifest. In
//! an FCAST session, the objects' own headers do.
//!
//! Receivers send nothing.

use crate::channel::ChannelId;
use crate::congestion::PacketSeen;
use crate::datagram::{Datagram, DatagramBatch, Ecn};
use crate::endpoint::{BlockId, Endpoint, SessionKey};
use crate::event::{ObjectFailure, Offer, ReceiverEvent, ReceiverOutput, Rejection, Verified};
use crate::job::{Committed, Opening, ReceiveDone, ReceiveJob, Scope, SymbolBytes};
use crate::sequence::{ChannelLoss, Losses, SequenceTracker};
use crate::time::Instant;
use channels::Channels;
use collector::Collector;
use fcast::Carousel;
use fontana_fec::{EncodingId, Esi, PlanCache, Sbn};
use fontana_wire::{ContentKind, Hash, Manifest, Packet, Toi, manifest_hash};
use sessions::{SessionState, Sessions, Spooled};
use standing::Standing;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use stream::Stream;
use transfer::{Taken, Transfer};

mod channels;
mod collector;
mod config;
mod fcast;
mod flute;
mod head;
mod selection;
mod sessions;
mod standing;
mod stream;
mod transfer;

pub use channels::Subscription;
pub use config::{
    Acceptance, DecodePolicy, Expectation, MetadataMode, ReceiverConfig, ReceiverLimits,
    ReceiverStats,
};
pub use transfer::{ObjectProgress, repair_slots};

/// Hears sessions and receives one of them.
#[derive(Debug)]
pub struct Receiver {
    config: ReceiverConfig,
    channels: Channels,
    sessions: Sessions,
    /// The manifest that was accepted, or the plain FLUTE or FCAST session that was chosen.
    chosen: Option<Chosen>,
    /// What is known of the stream that was chosen.
    stream: Option<Stream>,
    /// What is known of the FCAST session that was chosen.
    carousel: Carousel,
    /// The newest version that was heard of since: the chosen one's, at first.
    newest_version: u64,
    transfer: Transfer,
    phase: Phase,
    spool_bytes: usize,
    rejections: BTreeSet<(SessionKey, u8)>,
    head_checks: (u64, u32),
    outputs: VecDeque<ReceiverOutput>,
    last_heard: Instant,
    ever_heard: bool,
    started: bool,
    stats: ReceiverStats,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chosen {
    Manifest(Hash, Verified),
    Stream(Verified),
    Flute(SessionKey),
    Fcast(SessionKey),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Listening,
    /// Everything has been heard; jobs are still running.
    ReceptionComplete,
    /// Everything is committed but what [`ReceiveJob::Finish`] does.
    Finishing,
    /// Nothing is left to do.
    Ended,
}

/// Sessions whose refusal is remembered, so that it is told once.
const MAX_REJECTIONS: usize = 256;

impl Receiver {
    /// A receiver that has not joined anything yet.
    pub fn new(config: ReceiverConfig, subscription: Subscription) -> Self {
        let limits = &config.limits;
        let transfer = Transfer::new(config.policy, limits);
        Self {
            config,
            channels: Channels::new(subscription),
            sessions: Sessions::default(),
            chosen: None,
            stream: None,
            carousel: Carousel::default(),
            newest_version: 0,
            transfer,
            phase: Phase::Listening,
            spool_bytes: 0,
            rejections: BTreeSet::new(),
            head_checks: (0, 0),
            outputs: VecDeque::new(),
            last_heard: Instant::ZERO,
            ever_heard: false,
            started: false,
            stats: ReceiverStats::default(),
        }
    }

    /// Counters so far.
    pub fn stats(&self) -> ReceiverStats {
        let mut stats = self.stats;
        for state in self.sessions.values().filter(|state| state.is_wanted(self.chosen.is_some())) {
            stats.session_packets += state.packets.saturating_sub(state.left_out);
            stats.left_out += state.left_out;
            stats.control_packets += state.control_packets;
            for channel in state.sequence.channels() {
                stats.expected += channel.expected;
                stats.lost += channel.lost;
            }
        }
        stats
    }

    /// Packets of the wanted sessions on each channel, from channel 0 on.
    pub fn channel_loss(&self) -> Vec<ChannelLoss> {
        let mut channels: Vec<ChannelLoss> = Vec::new();
        for state in self.sessions.values().filter(|state| state.is_wanted(self.chosen.is_some())) {
            for (index, channel) in state.sequence.channels().enumerate() {
                match channels.get_mut(index) {
                    Some(sum) => {
                        sum.expected += channel.expected;
                        sum.lost += channel.lost;
                    }
                    None => channels.push(channel),
                }
            }
        }
        channels
    }

    /// Channels that are joined.
    pub fn joined_channels(&self) -> impl Iterator<Item = ChannelId> + '_ {
        self.channels.joined().rev()
    }

    /// `k`: source symbols of everything that was accepted.
    pub fn source_symbols(&self) -> u64 {
        self.transfer.source_symbols()
    }

    /// Symbols that are still missing, as far as is known.
    pub fn symbols_wanted(&self) -> u64 {
        self.transfer.symbols_wanted()
    }

    /// Uses the plans that receivers of the same content share, instead of making its own. To be
    /// told before anything is received.
    pub fn share_plans(&mut self, plans: Arc<PlanCache>) {
        self.transfer.share_plans(plans);
    }

    /// How an accepted object is getting on.
    pub fn object_progress(&self, toi: Toi) -> Option<ObjectProgress> {
        self.transfer.progress(toi)
    }

    /// Accepts a session that was [offered](ReceiverEvent::Offered). False if it is not on offer
    /// any more.
    pub fn accept(&mut self, session: SessionKey) -> bool {
        let Some(state) = self.sessions.get(&session).filter(|_| self.chosen.is_none()) else {
            return false;
        };
        if let Some(index) = state.stream.clone() {
            self.choose_stream(session, &index);
            return true;
        }
        match state.manifest.clone() {
            Some((hash, manifest)) => {
                self.choose(session, hash, manifest);
                true
            }
            _ => false,
        }
    }

    fn reject(&mut self, session: SessionKey, reason: Rejection) {
        if let Some(state) = self.sessions.get_mut(&session) {
            state.standing = Standing::Refused;
            self.spool_bytes -= state.spool.iter().map(Spooled::cost).sum::<usize>();
            state.spool.clear();
            self.channels.withdraw(session);
        }
        self.tell_rejection(session, reason);
    }

    fn tell_rejection(&mut self, session: SessionKey, reason: Rejection) {
        if self.rejections.len() < MAX_REJECTIONS && self.rejections.insert((session, reason as u8))
        {
            self.outputs
                .push_back(ReceiverOutput::Event(ReceiverEvent::Rejected { session, reason }));
        }
    }

    /// The state of a session, if there is room for it.
    fn state(&mut self, now: Instant, session: SessionKey) -> Option<&mut SessionState> {
        if self.sessions.len() >= self.config.limits.max_sessions
            && !self.sessions.contains(&session)
        {
            // Make room at the cost of the session that matters least and was silent longest.
            let (victim, _) = self
                .sessions
                .iter()
                .filter(|(_, f)| matches!(f.standing, Standing::Unknown | Standing::Refused))
                .min_by_key(|(_, f)| (f.head.is_some(), f.last_heard))?;
            if let Some(gone) = self.sessions.remove(&victim) {
                self.channels.withdraw(victim);
                self.spool_bytes -= gone.spool.iter().map(Spooled::cost).sum::<usize>();
            }
        }
        self.sessions.begin(now, session);
        self.sessions.get_mut(&session)
    }

    fn on_manifest_symbol(&mut self, session: SessionKey, sbn: Sbn, esi: Esi, symbol: &[u8]) {
        let Some(state) = self.sessions.get_mut(&session) else { return };
        let (Some(head), Some(collector)) = (state.head.clone(), &mut state.collector) else {
            return;
        };
        if head.kind == ContentKind::StreamIndex {
            return self.on_index_symbol(session, sbn, esi, symbol);
        }
        if state.manifest.is_some() || self.chosen.is_some() {
            return;
        }
        let Some(bytes) = collector.push(sbn, esi, symbol) else { return };
        let expected = head.manifest.hash;
        if manifest_hash(&bytes) != expected {
            // A symbol was forged: begin again.
            state.collector = Collector::new(collector.oti(), u64::MAX);
            return;
        }
        state.collector = None;
        match Manifest::parse(&bytes, &self.config.limits.manifest) {
            Ok(manifest) => self.offer(session, expected, Arc::new(manifest)),
            Err(_) => self.reject(session, Rejection::BadManifest),
        }
    }

    /// Offers a session whose manifest is there, if it is not too large.
    fn offer(&mut self, session: SessionKey, expected: Hash, manifest: Arc<Manifest>) {
        let Some(state) = self.sessions.get_mut(&session) else { return };
        let Some(head) = state.head.clone() else { return };
        state.collector = None;
        // What decides which of two is newer must not be two numbers.
        if manifest.version() != head.manifest_version {
            return self.reject(session, Rejection::BadManifest);
        }
        let limits = &self.config.limits;
        if manifest.transfer_length() > limits.max_transfer_bytes
            || !manifest.objects().iter().all(|object| limits.have_room_to_decode(object.oti))
        {
            return self.reject(session, Rejection::TooLarge);
        }
        state.manifest = Some((expected, Arc::clone(&manifest)));
        state.standing = Standing::Offered;
        let offer = Offer { session, head, manifest: Arc::clone(&manifest) };
        self.outputs.push_back(ReceiverOutput::Event(ReceiverEvent::Offered(offer)));
        if self.config.acceptance == Acceptance::Automatic {
            self.choose(session, expected, manifest);
        }
    }

    fn choose(&mut self, session: SessionKey, hash: Hash, manifest: Arc<Manifest>) {
        let signed = self.config.expectation.publisher.is_some();
        let verified = if signed { Verified::Signed } else { Verified::Digest };
        self.chosen = Some(Chosen::Manifest(hash, verified));
        self.newest_version = manifest.version();
        for object in manifest.objects() {
            if let Ok(layout) = object.oti.layout() {
                let hashes = object.block_hashes.clone();
                self.transfer.insert(Toi::from(object.toi), layout, Some(hashes));
            }
        }
        let carries =
            |state: &SessionState| state.head.as_ref().is_some_and(|h| h.manifest.hash == hash);
        let mut others = Vec::new();
        for (key, state) in self.sessions.iter_mut() {
            if carries(state) {
                state.standing = Standing::Accepted;
                state.collector = None;
            } else if state.head.is_some() {
                others.push(key);
            }
        }
        for other in others {
            self.reject(other, Rejection::OtherManifest);
        }
        self.follow(session, true);
        let newest = self
            .sessions
            .iter()
            .filter_map(|(key, state)| Some((state.head.as_ref()?.manifest_version, key)));
        let newest = newest.max();
        let opening = Opening::Manifest(Arc::clone(&manifest));
        self.outputs.push_back(ReceiverOutput::Event(ReceiverEvent::Accepted {
            session,
            manifest,
            hash,
            verified,
        }));
        self.outputs.push_back(ReceiverOutput::Job(ReceiveJob::Open(opening)));
        if let Some((version, session)) = newest {
            self.tell_if_newer(session, version);
        }
    }

    /// Tells of a newer version than any that was heard of since the choice, if it is the
    /// publisher's.
    fn tell_if_newer(&mut self, session: SessionKey, version: u64) {
        if self.config.expectation.publisher.is_some() && self.newest_version < version {
            self.newest_version = version;
            self.outputs
                .push_back(ReceiverOutput::Event(ReceiverEvent::Superseded { session, version }));
        }
    }

    /// A packet of content: to its place, or to the spool while that is not known.
    fn on_content(
        &mut self,
        session: SessionKey,
        packet: &Packet<'_>,
        (block, esi): (BlockId, Esi),
        datagram: &Datagram,
        symbol: &[u8],
    ) {
        let encoding_id = EncodingId(packet.header.codepoint);
        let block = BlockId { toi: self.carousel.first_toi(block.toi), ..block };
        match self.config.metadata {
            MetadataMode::Manifest => {}
            MetadataMode::Flute => self.on_file_fti(session, block.toi, packet),
            MetadataMode::Fcast => self.on_compound_fti(session, block.toi, packet),
        }
        let Some(state) = self.sessions.get_mut(&session) else { return };
        if state.standing == Standing::Accepted && self.transfer.is_open(block.toi) {
            // A symbol is the end of its packet.
            let end = datagram.payload.end;
            let bytes = SymbolBytes::InSlab(end - symbol.len() as u32..end);
            let out = &mut self.outputs;
            let taken = self.transfer.take(block, esi, encoding_id, symbol.len(), bytes, out);
            // What still comes when enough was heard may be of use, but counts for nothing.
            if self.phase == Phase::Listening {
                self.stats.count(taken);
                state.left_out += u64::from(taken == Taken::LeftOut);
            }
            return;
        }
        if !self.carousel.may_have(block.toi)
            || self.stream.as_ref().is_some_and(|stream| stream.is_useless(block.toi))
        {
            self.stats.late += 1;
            return;
        }
        let spooled = Spooled { block, esi, encoding_id, bytes: symbol.to_vec() };
        if self.spool_bytes + spooled.cost() > self.config.limits.max_spool_bytes {
            self.stats.unspooled += 1;
        } else {
            self.spool_bytes += spooled.cost();
            state.spool.push_back(spooled);
        }
    }

    /// Takes out of the spools what can be placed by now.
    fn replay(&mut self) {
        for state in self.sessions.values_mut().filter(|f| f.standing == Standing::Accepted) {
            let mut waiting = VecDeque::new();
            for spooled in std::mem::take(&mut state.spool) {
                if !self.transfer.is_open(spooled.block.toi) {
                    waiting.push_back(spooled);
                    continue;
                }
                self.spool_bytes -= spooled.cost();
                let Spooled { block, esi, encoding_id, bytes } = spooled;
                let length = bytes.len();
                let bytes = SymbolBytes::Saved(bytes);
                let out = &mut self.outputs;
                let taken = self.transfer.take(block, esi, encoding_id, length, bytes, out);
                self.stats.count(taken);
                state.left_out += u64::from(taken == Taken::LeftOut);
            }
            state.spool = waiting;
        }
    }

    /// After anything that may have completed something: leave, come back, or finish.
    fn update_phase(&mut self) {
        let settled = match self.chosen {
            None => false,
            Some(Chosen::Manifest(..)) => true,
            Some(Chosen::Stream(_)) => self.stream.as_ref().is_some_and(Stream::has_ended),
            Some(Chosen::Flute(session)) => self.tables_are_settled(session),
            Some(Chosen::Fcast(_)) => self.carousel_is_settled(),
        };
        match self.phase {
            Phase::Listening if settled && self.transfer.heard_enough() => {
                self.phase = Phase::ReceptionComplete;
                self.outputs.extend(self.channels.joined().map(ReceiverOutput::Leave));
                self.outputs.push_back(ReceiverOutput::Event(ReceiverEvent::ReceptionComplete));
                self.transfer.solve_deferred(&mut self.outputs);
            }
            // A block turned out wrong after the channels had been left.
            Phase::ReceptionComplete if !self.transfer.heard_enough() => {
                self.phase = Phase::Listening;
                self.outputs.extend(self.channels.joined().rev().map(ReceiverOutput::Join));
            }
            _ => {}
        }
        if self.phase == Phase::ReceptionComplete && self.transfer.all_settled() {
            if self.transfer.all_committed() {
                self.phase = Phase::Finishing;
                self.outputs.push_back(ReceiverOutput::Job(ReceiveJob::Finish));
            } else {
                self.phase = Phase::Ended;
                self.outputs
                    .push_back(ReceiverOutput::Event(ReceiverEvent::GivenUp { error: None }));
            }
        }
    }

    fn handle_datagram(&mut self, now: Instant, batch: &DatagramBatch<'_>, datagram: &Datagram) {
        let bytes = batch.bytes(&datagram.payload).unwrap_or_default();
        self.stats.datagrams += 1;
        self.stats.payload_bytes += bytes.len() as u64;
        self.stats.local_drops += datagram.dropped_before;
        let Ok(packet) = Packet::parse(bytes) else {
            self.stats.malformed += 1;
            return;
        };
        let session = SessionKey { source: datagram.from.ip(), tsi: packet.header.tsi };
        let Expectation { tsi, sources, .. } = &self.config.expectation;
        if tsi.is_some_and(|tsi| tsi != session.tsi)
            || !(sources.is_empty() || sources.contains(&session.source))
        {
            self.stats.foreign += 1;
            return self.reject(session, Rejection::OtherSession);
        }
        let mode = self.config.metadata;
        let (listening, is_chosen) = (self.phase == Phase::Listening, self.chosen.is_some());
        // Packets that still arrive on a channel after a leave do not show which ones are lost.
        let numbered = mode == MetadataMode::Manifest && self.channels.is_joined(datagram.channel);
        let Some(state) = self.state(now, session) else {
            self.stats.foreign += 1;
            return;
        };
        state.last_heard = now;
        if state.standing == Standing::Refused && packet.header.toi != Some(Toi::HEAD) {
            self.stats.foreign += 1;
            return;
        }
        let (channel, cci) = (datagram.channel, packet.header.cci);
        let mut lost = Losses::default();
        if listening {
            state.packets += 1;
            if numbered {
                lost = state.sequence.on_packet(now, channel, cci, datagram.dropped_before);
            }
            let is_control = |toi| matches!(toi, Toi::FDT | Toi::HEAD | Toi::MANIFEST);
            state.control_packets += u64::from(packet.header.toi.is_some_and(is_control));
        }
        let has_gap = state.sequence.has_gap();
        if state.is_wanted(is_chosen) {
            (self.last_heard, self.ever_heard) = (now, true);
            let seen = PacketSeen {
                channel,
                cci,
                congestion_experienced: datagram.ecn == Ecn::CongestionExperienced,
                lost,
                has_gap,
            };
            self.channels.on_packet(now, session, bytes.len(), &seen);
            if self.channels.are_deserted(now) {
                self.follow(session, true);
            }
        }
        let Some(toi) = packet.header.toi else { return };
        let payload = match packet.payload(EncodingId(packet.header.codepoint)) {
            Ok(Some(payload)) => payload,
            Ok(None) => return,
            Err(_) => {
                self.stats.invalid += 1;
                return;
            }
        };
        let (sbn, esi, symbol) = (payload.sbn, payload.esi, payload.symbol);
        match toi {
            toi if mode == MetadataMode::Fcast => {
                let id = (BlockId { toi, sbn }, esi);
                self.on_content(session, &packet, id, datagram, symbol);
            }
            Toi::HEAD => self.on_head(now, session, symbol),
            Toi::MANIFEST => self.on_manifest_symbol(session, sbn, esi, symbol),
            Toi::FDT if mode == MetadataMode::Flute => {
                self.on_table_symbol(session, &packet, &payload);
            }
            Toi::FDT => {}
            toi => {
                let id = (BlockId { toi, sbn }, esi);
                self.on_content(session, &packet, id, datagram, symbol);
            }
        }
        self.update_phase();
    }

    /// Joins and leaves the channels that the control has decided on.
    fn queue_memberships(&mut self, now: Instant) {
        while let Some(output) = self.poll_membership(now) {
            self.outputs.push_back(output);
        }
    }

    /// The next change of channels, or what it has led to.
    fn poll_membership(&mut self, now: Instant) -> Option<ReceiverOutput> {
        if self.phase != Phase::Listening {
            return None;
        }
        let output = self.channels.poll_output(now)?;
        for state in self.sessions.values_mut() {
            match output {
                ReceiverOutput::Join(channel) => state.sequence.on_join(channel),
                ReceiverOutput::Leave(channel) => state.sequence.on_leave(channel),
                _ => {}
            }
        }
        Some(output)
    }
}

impl ReceiverStats {
    fn count(&mut self, taken: Taken) {
        match taken {
            Taken::Fresh => self.fresh += 1,
            Taken::Duplicate => self.duplicates += 1,
            Taken::Late => self.late += 1,
            Taken::Invalid => self.invalid += 1,
            Taken::NoRoom => self.unspooled += 1,
            // Counted with their session.
            Taken::LeftOut => {}
        }
    }
}

impl Endpoint for Receiver {
    type Job = ReceiveJob;
    type Done = ReceiveDone;
    type Event = ReceiverEvent;

    #[inline]
    fn handle_datagrams(&mut self, now: Instant, batch: &DatagramBatch<'_>) {
        let mut datagrams = batch.datagrams.iter();
        let Some(first) = datagrams.next() else { return };
        self.handle_datagram(now, batch, first);
        for datagram in datagrams {
            // What the one before has led to comes before this one, as in a batch of its own.
            self.queue_memberships(now);
            self.handle_datagram(now, batch, datagram);
        }
    }

    fn handle_done(&mut self, _now: Instant, done: ReceiveDone) {
        let out = &mut self.outputs;
        let verified = match self.chosen {
            Some(Chosen::Manifest(_, verified) | Chosen::Stream(verified)) => verified,
            Some(Chosen::Flute(_) | Chosen::Fcast(_)) | None => Verified::None,
        };
        match done {
            ReceiveDone::Opened { scope, saved } => {
                let opened = match scope {
                    Scope::Session => self.transfer.opening(),
                    Scope::Object(toi) => vec![toi],
                };
                self.stats.session_packets += saved.session_packets;
                let symbols = self.transfer.restore(&saved, verified, out);
                if symbols > 0 {
                    out.push_back(ReceiverOutput::Event(ReceiverEvent::Resumed { symbols }));
                }
                for toi in opened {
                    self.transfer.on_opened(toi, out);
                }
                self.replay();
            }
            ReceiveDone::Solved { block, decoder, progress } => {
                self.transfer.on_solved(block, decoder, progress, out);
            }
            ReceiveDone::Recovered { block, hash } => {
                let is_corrupt = self.transfer.on_recovered(block, hash, out);
                self.stats.poisoned_blocks += u64::from(is_corrupt);
            }
            ReceiveDone::Committed(Committed::Content { toi }) if self.stream.is_some() => {
                self.on_fragment_committed(toi);
            }
            ReceiveDone::Committed(Committed::Content { toi }) => {
                self.transfer.on_committed(toi, verified, out);
            }
            ReceiveDone::Committed(Committed::Descriptor { toi, instance }) => {
                self.on_carousel_read(toi, instance);
            }
            ReceiveDone::Finished => {
                self.phase = Phase::Ended;
                out.push_back(ReceiverOutput::Event(ReceiverEvent::Complete));
            }
            // What is on disk is right, but it could not be finished.
            ReceiveDone::Failed { scope: Scope::Session, error }
                if self.phase == Phase::Finishing =>
            {
                self.phase = Phase::Ended;
                let error = Some(error);
                out.push_back(ReceiverOutput::Event(ReceiverEvent::GivenUp { error }));
            }
            ReceiveDone::Failed { scope: Scope::Session, error } => {
                self.transfer.fail_all(&error, out);
            }
            ReceiveDone::Failed { scope: Scope::Object(toi), error } => {
                self.transfer.fail(toi, ObjectFailure::Job(error), out);
            }
        }
        self.settle_stream();
        self.update_phase();
    }

    fn handle_timeout(&mut self, now: Instant) {
        // A control that no session has declared needs no losses.
        let mut unknown = SequenceTracker::default();
        let declared = self.channels.session().and_then(|session| self.sessions.get_mut(&session));
        let sequence = declared.map_or(&mut unknown, |state| &mut state.sequence);
        self.channels.on_timeout(now, sequence);
        if self.phase == Phase::Listening
            && now.saturating_since(self.last_heard) >= self.config.silence_after
        {
            self.last_heard = now;
            let ever_since_start = !self.ever_heard;
            self.outputs
                .push_back(ReceiverOutput::Event(ReceiverEvent::Silence { ever_since_start }));
            for channel in self.channels.joined().rev() {
                self.outputs.push_back(ReceiverOutput::Leave(channel));
                self.outputs.push_back(ReceiverOutput::Join(channel));
            }
        }
    }

    #[inline]
    fn poll_output(&mut self, now: Instant, _header: &mut Vec<u8>) -> Option<ReceiverOutput> {
        if !self.started {
            (self.started, self.last_heard) = (true, now);
        }
        if let Some(output) = self.outputs.pop_front() {
            if self.outputs.is_empty() {
                // Starts again at the beginning of the buffer, which is in the cache.
                self.outputs.clear();
            }
            return Some(output);
        }
        self.poll_membership(now)
    }

    #[inline]
    fn poll_timeout(&self) -> Option<Instant> {
        (self.phase == Phase::Listening).then(|| {
            let silence = self.last_heard + self.config.silence_after;
            self.channels.poll_timeout().map_or(silence, |control| control.min(silence))
        })
    }
}
