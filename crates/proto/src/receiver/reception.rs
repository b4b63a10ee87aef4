//! The reception of accepted content: applies what a catalog discovers, and says when reception is
//! complete.

mod early;

use super::catalog::{Break, Catalog, Content, Context, Discovery, Finding};
use super::channels::{Channels, Precedence};
use super::config::{Acceptance, ReceiverConfig, ReceiverStats};
use super::digests::SymbolDigests;
use super::newer::NewerVersion;
use super::sessions::{
    Announced, ContentId, Metadata, SessionIndex, SessionState, Sessions, Standing,
};
use super::sources::SourceId;
use super::suspicion::IDLE;
use super::transfer::{Incoming, SymbolContent, Taken, Transfer};
use super::unverified::UnverifiedSymbols;
use crate::counter::Counter;
use crate::endpoint::{BlockId, SessionKey};
use crate::event::{ObjectFailure, ReceiverEvent, ReceiverOutput, Rejection};
use crate::job::{ReceiveDone, ReceiveJob, Scope};
use crate::time::Instant;
use fontana_fec::{EncodingId, Esi};
use fontana_wire::{Hash, Manifest, Packet, Payload, SymbolDigest, Toi};
use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;

/// What was accepted, and what has arrived of it.
#[derive(Debug)]
pub(super) struct Reception {
    pub(super) catalog: Catalog,
    accepted: Option<ContentId>,
    /// `None` for content without.
    accepted_version: Option<u64>,
    /// The newest version that was announced; at first the accepted one, or 0 for content without.
    newest_version: u64,
    /// Present from the announcement of a newer version until it supersedes the accepted one.
    newer: Option<NewerVersion>,
    pub(super) transfer: Transfer,
    phase: Phase,
    /// [`ReceiverConfig::stays_until_verified`].
    stays_until_verified: bool,
    /// Whether the channels are joined.
    is_joined: bool,
    digests: SymbolDigests,
    pub(super) unverified: UnverifiedSymbols,
    /// Since when no symbol of use has arrived, if blocks may be searched for wrong symbols then.
    idle_since: Option<Instant>,
    /// Cost of the early symbols of all sessions, and of the unverified ones.
    pub(super) early_cost: usize,
    /// Rejections that were reported: each is reported once.
    rejections: BTreeSet<(SessionKey, Rejection)>,
    pub(super) outputs: VecDeque<ReceiverOutput>,
    /// That all announced content is received, and more may be announced, was reported.
    is_waiting_reported: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Listening,
    /// No more packets are needed; jobs are running.
    ReceptionComplete,
    /// Everything is committed but what [`ReceiveJob::Finish`] does.
    Finishing,
    /// Nothing is left to do.
    Ended,
}

/// The most rejections that are remembered.
const MAX_REJECTIONS: usize = 256;

/// The parts of a receiver that a discovery may change beside the reception.
pub(super) struct Surroundings<'a> {
    pub(super) config: &'a ReceiverConfig,
    pub(super) sessions: &'a mut Sessions,
    pub(super) channels: &'a mut Channels,
    pub(super) stats: &'a mut ReceiverStats,
}

/// The symbols of a packet, in the slab of a batch.
pub(super) struct Arrival<'a> {
    pub(super) block: BlockId,
    /// The first symbol.
    pub(super) esi: Esi,
    pub(super) encoding_id: EncodingId,
    pub(super) symbol: &'a [u8],
    pub(super) source: SourceId,
    /// The place in the slab.
    pub(super) range: Range<u32>,
}

impl Reception {
    pub(super) fn new(config: &ReceiverConfig) -> Self {
        Self {
            catalog: Catalog::new(config.metadata),
            accepted: None,
            accepted_version: None,
            newest_version: 0,
            newer: None,
            transfer: Transfer::new(config.policy, &config.limits),
            phase: Phase::Listening,
            stays_until_verified: config.stays_until_verified,
            is_joined: true,
            digests: SymbolDigests::default(),
            unverified: UnverifiedSymbols::default(),
            idle_since: None,
            early_cost: 0,
            rejections: BTreeSet::new(),
            outputs: VecDeque::new(),
            is_waiting_reported: false,
        }
    }

    pub(super) fn has_accepted(&self) -> bool {
        self.accepted.is_some()
    }

    /// Whether packets are still needed.
    pub(super) fn is_listening(&self) -> bool {
        self.phase == Phase::Listening
    }

    /// Whether a packet can change the phase. After the reception is complete, only jobs do, unless
    /// the packet has shown more content.
    #[inline]
    pub(super) fn may_complete(&self) -> bool {
        self.phase == Phase::Listening || !self.transfer.is_received()
    }

    /// Whether all announced content is received, and more may be announced.
    pub(super) fn waits_for_announcements(&self) -> bool {
        self.phase == Phase::Listening
            && self.accepted.is_some()
            && self.transfer.is_received()
            && self.catalog.is_open_ended()
    }

    /// Completes the reception if it only waits for announcements. False if it does not.
    pub(super) fn conclude(&mut self, channels: &Channels) -> bool {
        let waits = self.waits_for_announcements();
        if waits {
            self.catalog.conclude();
            self.update_phase(channels);
        }
        waits
    }

    /// Whether flag A of a packet may end the accepted session.
    pub(super) fn heeds_close(&self) -> bool {
        self.catalog.heeds_close()
    }

    /// The sender has closed the accepted session.
    pub(super) fn on_session_closed(&mut self, channels: &Channels) {
        if self.phase == Phase::Listening {
            let is_complete = self.waits_for_announcements();
            let event = ReceiverEvent::SessionClosed { is_complete };
            self.outputs.push_back(ReceiverOutput::Event(event));
            self.conclude(channels);
        }
    }

    /// Whether the CCI of packets holds sequence numbers.
    pub(super) fn numbers_packets(&self) -> bool {
        self.catalog.numbers_packets()
    }

    /// Whether packets of this TOI hold symbols of control objects.
    pub(super) fn is_control(&self, toi: Toi) -> bool {
        self.catalog.is_control(toi)
    }

    /// The number under which an object was opened.
    pub(super) fn first_toi(&self, toi: Toi) -> Toi {
        self.catalog.first_toi(toi)
    }

    /// Whether symbols of this object belong to the accepted content, or may turn out to.
    pub(super) fn expects(&self, toi: Toi) -> bool {
        let is_listed = self.accepted.is_some() && matches!(self.catalog, Catalog::Manifest(_));
        !is_listed || self.transfer.contains(toi)
    }

    /// What a session has announced before its first packet is read.
    pub(super) fn nothing_announced(&self) -> Announced {
        self.catalog.nothing_announced()
    }

    pub(super) fn queue(&mut self, output: ReceiverOutput) {
        self.outputs.push_back(output);
    }

    #[inline]
    pub(super) fn poll_output(&mut self, now: Instant) -> Option<ReceiverOutput> {
        if let Some(newer) = &mut self.newer {
            newer.begin(now);
        }
        let output = self.outputs.pop_front()?;
        if self.outputs.is_empty() {
            // Starts again at the beginning of the buffer, which is in the cache.
            self.outputs.clear();
        }
        Some(output)
    }

    /// A packet with a symbol of a control object.
    pub(super) fn on_control(
        &mut self,
        config: &ReceiverConfig,
        now: Instant,
        session: &mut SessionState,
        packet: &Packet<'_>,
        payload: &Payload<'_>,
    ) -> Discovery {
        let (accepted, transfer) = (self.accepted.as_ref(), &self.transfer);
        let accepted_version = self.accepted_version;
        let cx = Context { config, now, accepted, accepted_version, transfer };
        self.catalog.on_control(&cx, session, packet, payload)
    }

    /// A list of symbol digests.
    pub(super) fn on_digests(&mut self, now: Instant, session: &SessionState, payload: &[u8]) {
        if self.phase == Phase::Listening && session.standing != Standing::Refused {
            self.digests.on_list(now, &session.digest_signers, payload);
        }
    }

    /// A packet with a symbol of the object `toi`: what its header says of the object.
    #[inline]
    pub(super) fn on_fti(
        &mut self,
        config: &ReceiverConfig,
        now: Instant,
        session: &mut SessionState,
        toi: Toi,
        packet: &Packet<'_>,
    ) -> Discovery {
        let (accepted, transfer) = (self.accepted.as_ref(), &self.transfer);
        let accepted_version = self.accepted_version;
        let cx = Context { config, now, accepted, accepted_version, transfer };
        self.catalog.on_fti(&cx, session, toi, packet)
    }

    /// Applies what a packet of a session has shown.
    pub(super) fn apply(
        &mut self,
        around: &mut Surroundings<'_>,
        now: Instant,
        at: SessionIndex,
        discovery: Discovery,
    ) {
        let Some(session) = around.sessions.get_mut(at) else { return };
        match discovery {
            Discovery::Nothing => {}
            Discovery::Malformed => around.stats.malformed.count(1),
            Discovery::Head(event) => {
                self.place_early(around.config, now, session, around.stats);
                if event.is_some() {
                    self.offer(around, at, event);
                }
                if let Some(session) = around.sessions.get_mut(at) {
                    self.follow(session, around.channels, Precedence::First);
                }
            }
            Discovery::Offered(event) => self.offer(around, at, event),
            Discovery::Content(content) => self.accept(around, Some(at), *content),
            Discovery::Objects(findings) => self.open(around, findings),
            Discovery::Refused(reason) => self.refuse(session, around.channels, reason),
            Discovery::Ignored(reason) => self.report_rejection(session.key, reason),
            Discovery::OtherManifest { version } => {
                self.refuse(session, around.channels, Rejection::OtherManifest);
                self.announce_newer(around.config, session.key, version);
            }
            Discovery::NewerVersion { version } => {
                self.follow(session, around.channels, Precedence::First);
                self.announce_newer(around.config, session.key, version);
            }
        }
    }

    /// Reports an offer, and accepts it if the configuration says so.
    fn offer(
        &mut self,
        around: &mut Surroundings<'_>,
        at: SessionIndex,
        event: Option<ReceiverEvent>,
    ) {
        self.outputs.extend(event.map(ReceiverOutput::Event));
        if around.config.acceptance == Acceptance::Automatic {
            self.accept_offer(around, at);
        }
    }

    /// Accepts the content that a session has on offer. False if there is none, or other content
    /// was accepted.
    pub(super) fn accept_offer(&mut self, around: &mut Surroundings<'_>, at: SessionIndex) -> bool {
        if self.accepted.is_some() {
            return false;
        }
        let session = around.sessions.get_mut(at);
        let content = session.and_then(|session| self.catalog.accept(around.config, session));
        let Some(content) = content else { return false };
        self.accept(around, Some(at), content);
        true
    }

    /// Accepts content: sessions that carry the same add up, those that carry other content are
    /// refused, and its objects are opened.
    /// `at`: the session that has announced it, if one has.
    pub(super) fn accept(
        &mut self,
        around: &mut Surroundings<'_>,
        at: Option<SessionIndex>,
        content: Content,
    ) {
        let Content { id, version, event, findings } = content;
        self.accepted = Some(id);
        self.transfer.set_policy(self.catalog.decode_policy(around.config.policy));
        for session in around.sessions.iter_mut() {
            if session.content == Some(id) {
                session.standing = Standing::Accepted;
                // From here on symbols of content are of use.
                session.useful_at = None;
            } else if session.content.is_some() {
                self.refuse(session, around.channels, Rejection::OtherManifest);
            }
        }
        if let Some(session) = at.and_then(|at| around.sessions.get_mut(at)) {
            self.follow(session, around.channels, Precedence::Replacing);
        }
        self.outputs.extend(event.map(ReceiverOutput::Event));
        self.open(around, findings);
        for session in around.sessions.iter_mut() {
            let cost = session.early.discard(|toi| !self.expects(toi));
            self.early_cost.discount(cost);
        }
        if let Some(version) = version {
            (self.accepted_version, self.newest_version) = (Some(version), version);
            let versions = around.sessions.iter().filter_map(|s| Some((s.version()?, s.key)));
            if let Some((version, key)) = versions.max() {
                self.announce_newer(around.config, key, version);
            }
        }
    }

    /// Opens the objects that a catalog has found, and refuses those that cannot be received.
    fn open(&mut self, around: &mut Surroundings<'_>, findings: Vec<Finding>) {
        for finding in findings {
            match finding {
                Finding::Open { objects, event, opening } => {
                    self.is_waiting_reported = false;
                    for object in objects {
                        self.transfer.insert(object.toi, object.layout, object.block_hashes);
                    }
                    self.outputs.extend(event.map(ReceiverOutput::Event));
                    self.outputs
                        .push_back(ReceiverOutput::Job(ReceiveJob::Open(Box::new(opening))));
                }
                Finding::Warn(warning) => {
                    let event = ReceiverEvent::TableWarning(warning);
                    self.outputs.push_back(ReceiverOutput::Event(event));
                }
                // Each refusal is remembered, so that it is reported once: as many as objects may
                // be accepted.
                Finding::Refuse { toi, content_location, reason } => {
                    if self.transfer.refuse(toi, around.config.limits.max_files) {
                        let event = ReceiverEvent::FileRefused { toi, content_location, reason };
                        self.outputs.push_back(ReceiverOutput::Event(event));
                    }
                }
            }
        }
        for session in around.sessions.iter_mut() {
            let cost = self.catalog.discard_useless(&mut session.early);
            self.early_cost.discount(cost);
        }
        self.check_catalog(around.channels);
    }

    /// Lets a session with a trusted head declare its congestion control.
    pub(super) fn follow(
        &mut self,
        session: &mut SessionState,
        channels: &mut Channels,
        precedence: Precedence,
    ) {
        let Announced::Head(state) = &session.announced else { return };
        let Some(head) = state.declaration() else { return };
        if session.standing == Standing::Refused {
            return;
        }
        let sequence = &mut session.sequence;
        sequence.set_numbering(head.congestion_control.numbering());
        if channels.declare(session.key, head, precedence, sequence).is_err() {
            self.refuse(session, channels, Rejection::TooFast);
        }
    }

    fn refuse(&mut self, session: &mut SessionState, channels: &mut Channels, reason: Rejection) {
        session.standing = Standing::Refused;
        session.is_old_version = reason == Rejection::OldVersion;
        self.forget(session, channels);
        self.report_rejection(session.key, reason);
    }

    /// Frees what a session holds that is refused or removed.
    pub(super) fn forget(&mut self, session: &mut SessionState, channels: &mut Channels) {
        let cost = session.early.discard(|_| true);
        self.early_cost.discount(cost);
        channels.withdraw(session.key);
    }

    pub(super) fn report_rejection(&mut self, session: SessionKey, reason: Rejection) {
        if self.rejections.len() < MAX_REJECTIONS && self.rejections.insert((session, reason)) {
            let event = ReceiverEvent::Rejected { session, reason };
            self.outputs.push_back(ReceiverOutput::Event(event));
        }
    }

    /// Records a version that is newer than the accepted one and those that were announced, if it
    /// is the expected publisher's.
    fn announce_newer(&mut self, config: &ReceiverConfig, session: SessionKey, version: u64) {
        if config.expectation.publisher.is_none() || self.newest_version >= version {
            return;
        }
        self.newest_version = version;
        match &mut self.newer {
            Some(newer) => newer.announce(session, version),
            None => {
                let wanted = self.transfer.symbols_wanted();
                self.newer = Some(NewerVersion::new(session, version, wanted));
            }
        }
    }

    /// `count` symbols of use have arrived.
    #[inline]
    pub(super) fn on_fresh(&mut self, now: Instant, count: u64) {
        if let Some(newer) = &mut self.newer {
            newer.on_fresh(now, count);
        }
        if self.transfer.has_suspects() || self.transfer.holds_symbols() {
            self.idle_since = Some(now);
        }
    }

    /// When blocks are searched for wrong symbols although they want more.
    #[inline]
    pub(super) fn idle_at(&self) -> Option<Instant> {
        self.idle_since.map(|since| since + IDLE)
    }

    /// Uses symbols of doubted sources, and searches blocks for wrong symbols, if no symbol of use
    /// has arrived for a while.
    pub(super) fn check_idle(&mut self, now: Instant, stats: &mut ReceiverStats) {
        if self.idle_at().is_some_and(|due| due <= now) {
            self.idle_since = None;
            for block in self.transfer.stop_holding() {
                self.use_unverified(block, stats);
            }
            self.transfer.on_idle(&mut self.outputs);
        }
    }

    /// When a newer version supersedes the accepted one, if no symbol of use arrives before.
    #[inline]
    pub(super) fn superseded_at(&self, config: &ReceiverConfig) -> Option<Instant> {
        self.newer.as_ref().and_then(|newer| newer.due(config.superseded_after))
    }

    /// Gives up the accepted version if a newer one is sent and symbols of use have ceased. Content
    /// that is received is committed first.
    pub(super) fn check_superseded(&mut self, around: &mut Surroundings<'_>, now: Instant) {
        let is_due = self.superseded_at(around.config).is_some_and(|due| due <= now);
        if self.phase != Phase::Listening || !is_due {
            return;
        }
        let Some(newer) = &mut self.newer else { return };
        if !newer.is_exhausted() && self.transfer.awaits_jobs() {
            newer.extend(now);
            return;
        }
        let event = newer.event();
        self.newer = None;
        let accepted = self.accepted;
        for session in around.sessions.iter_mut() {
            let is_accepted = session.standing == Standing::Accepted;
            if is_accepted && session.announced_content() != accepted {
                self.refuse(session, around.channels, Rejection::OtherManifest);
            }
        }
        self.outputs.push_back(ReceiverOutput::Event(event));
    }

    /// The newest manifest beyond the accepted one that is complete.
    pub(super) fn newer_manifest(&self, sessions: &Sessions) -> Option<(Hash, Arc<Manifest>)> {
        let accepted = self.accepted?;
        let manifests = sessions.iter().filter_map(|session| match session.metadata()? {
            Metadata::Manifest(hash, manifest) => {
                let is_newer = self.accepted_version.is_some_and(|v| v < manifest.version());
                let is_other = ContentId::Manifest(*hash) != accepted;
                (is_newer && is_other).then(|| (*hash, Arc::clone(manifest)))
            }
            Metadata::Index(_) => None,
        });
        manifests.max_by_key(|(_, manifest)| manifest.version())
    }

    /// Takes the symbols of a packet: to their places, or to the early symbols until their object
    /// is open.
    #[inline]
    pub(super) fn take(
        &mut self,
        config: &ReceiverConfig,
        now: Instant,
        session: &mut SessionState,
        arrival: Arrival<'_>,
        stats: &mut ReceiverStats,
    ) {
        let Arrival { block, esi, encoding_id, symbol, source, ref range } = arrival;
        if self.transfer.is_reserved(block) {
            stats.late.count(1);
            return;
        }
        let digest = || SymbolDigest::of(block.toi, block.sbn, esi, symbol);
        if !session.digest_signers.is_empty() && !self.digests.admits(digest) {
            stats.unannounced.count(u64::from(self.phase == Phase::Listening));
            return;
        }
        if session.standing == Standing::Accepted && self.transfer.is_open(block.toi) {
            let incoming = Incoming { block, esi, encoding_id, source };
            let content = SymbolContent::InSlab { bytes: symbol, start: range.start };
            let taken = self.transfer.take(&incoming, content, &mut self.outputs);
            if taken == Taken::Invalid
                && let Some(run) = self.transfer.symbol_run(block, esi, encoding_id, symbol.len())
            {
                for (esi, at) in run.symbols() {
                    let incoming = Incoming { esi, ..incoming };
                    let start = range.start.saturating_add(at.start as u32);
                    let bytes = symbol.get(at).unwrap_or_default();
                    let content = SymbolContent::InSlab { bytes, start };
                    let taken = self.transfer.take(&incoming, content, &mut self.outputs);
                    self.count(taken, session, stats);
                    if taken == Taken::Unverified {
                        self.store_unverified(config, now, &incoming, bytes, stats);
                    }
                }
                return;
            }
            self.count(taken, session, stats);
            if taken == Taken::Unverified {
                self.store_unverified(config, now, &incoming, symbol, stats);
            }
            return;
        }
        if self.catalog.is_useless(block.toi) {
            stats.late.count(1);
            return;
        }
        if !self.expects(block.toi) {
            // Junk, or an object that only another version has.
            let is_counted =
                session.standing == Standing::Accepted && self.phase == Phase::Listening;
            stats.invalid.count(u64::from(is_counted));
            return;
        }
        if !self.store_early(config, session, &arrival) {
            stats.without_room.count(1);
        }
    }

    /// Counts a symbol. One after the reception is complete may be of use, but does not count.
    #[inline]
    fn count(&self, taken: Taken, session: &mut SessionState, stats: &mut ReceiverStats) {
        if self.phase == Phase::Listening {
            stats.count(taken);
            session.counters.deselected.count(u64::from(taken == Taken::Deselected));
        }
    }

    pub(super) fn on_done(
        &mut self,
        around: &mut Surroundings<'_>,
        now: Instant,
        done: ReceiveDone,
    ) {
        let out = &mut self.outputs;
        match done {
            ReceiveDone::Opened { scope, saved } => {
                let opened = match scope {
                    Scope::Session => self.transfer.opening(),
                    Scope::Object(toi) => vec![toi],
                };
                around.stats.session_packets.count(saved.session_packets);
                let verified = self.catalog.verified(around.config);
                let symbols = self.transfer.restore(&saved, verified, out);
                if symbols > 0 {
                    out.push_back(ReceiverOutput::Event(ReceiverEvent::Resumed { symbols }));
                }
                for toi in opened {
                    self.transfer.on_opened(toi, out);
                }
                for session in around.sessions.iter_mut() {
                    self.place_early(around.config, now, session, around.stats);
                }
            }
            ReceiveDone::Solved { block, decoder, progress } => {
                self.transfer.on_solved(block, decoder, progress, out);
                self.use_unverified(block, around.stats);
            }
            ReceiveDone::Recovered { block, hash } => {
                let is_corrupt = self.transfer.on_recovered(block, hash, out);
                around.stats.corrupt_blocks.count(u64::from(is_corrupt));
                if let Some(newer) = self.newer.as_mut().filter(|_| is_corrupt) {
                    newer.on_corrupt();
                }
                self.use_unverified(block, around.stats);
            }
            ReceiveDone::Located { block, location } => {
                self.transfer.on_located(block, location, out);
                self.use_unverified(block, around.stats);
                // The last symbols may have arrived during the search.
                if self.transfer.has_suspects() {
                    self.idle_since = Some(now);
                }
            }
            ReceiveDone::Chosen { block, chosen } => {
                self.transfer.on_chosen(block, chosen.as_deref(), out);
                self.use_unverified(block, around.stats);
            }
            ReceiveDone::Committed(committed) => {
                self.catalog.on_committed(around.config, committed, &mut self.transfer, out);
            }
            ReceiveDone::Finished => {
                self.phase = Phase::Ended;
                out.push_back(ReceiverOutput::Event(ReceiverEvent::Complete));
            }
            // The files on disk are right, but the end of the session failed.
            ReceiveDone::Failed { scope: Scope::Session, error }
                if self.phase == Phase::Finishing =>
            {
                self.phase = Phase::Ended;
                let error = Some(error);
                out.push_back(ReceiverOutput::Event(ReceiverEvent::GivenUp { error }));
            }
            ReceiveDone::Failed { scope: Scope::Session, error } => {
                self.transfer.fail_all(&error, out);
                self.drop_unverified();
            }
            ReceiveDone::Failed { scope: Scope::Object(toi), error } => {
                self.transfer.fail(toi, ObjectFailure::Job(error), out);
                self.drop_unverified();
            }
        }
        self.check_catalog(around.channels);
        self.update_phase(around.channels);
    }

    /// Ends the reception if the rest of the content can no longer be received.
    fn check_catalog(&mut self, channels: &Channels) {
        if self.phase == Phase::Ended {
            return;
        }
        let Some(Break { at, reason }) = self.catalog.check(&self.transfer) else { return };
        self.leave(channels);
        self.phase = Phase::Ended;
        self.outputs.push_back(ReceiverOutput::Event(ReceiverEvent::StreamBroken { at, reason }));
    }

    fn leave(&mut self, channels: &Channels) {
        if self.is_joined {
            self.is_joined = false;
            self.outputs.extend(channels.joined().map(ReceiverOutput::Leave));
        }
    }

    /// After anything that may have completed something: leave, come back, or finish.
    #[inline]
    pub(super) fn update_phase(&mut self, channels: &Channels) {
        match self.phase {
            Phase::Listening
                if self.accepted.is_some()
                    && self.transfer.is_received()
                    && self.catalog.is_final() =>
            {
                self.phase = Phase::ReceptionComplete;
                let stays = self.stays_until_verified && !self.transfer.is_deferred();
                if !stays || self.transfer.is_verified() {
                    self.leave(channels);
                }
                self.outputs.push_back(ReceiverOutput::Event(ReceiverEvent::ReceptionComplete));
                self.transfer.solve_deferred(&mut self.outputs);
            }
            Phase::Listening if !self.is_waiting_reported && self.waits_for_announcements() => {
                self.is_waiting_reported = true;
                let event = ReceiverEvent::AllAnnouncedReceived;
                self.outputs.push_back(ReceiverOutput::Event(event));
            }
            // A block turned out to be corrupt.
            Phase::ReceptionComplete if !self.transfer.is_received() => {
                self.phase = Phase::Listening;
                if !std::mem::replace(&mut self.is_joined, true) {
                    self.outputs.extend(channels.joined().rev().map(ReceiverOutput::Join));
                }
            }
            Phase::ReceptionComplete if self.is_joined && self.transfer.is_verified() => {
                self.leave(channels);
            }
            _ => {}
        }
        if self.phase == Phase::ReceptionComplete && self.transfer.all_settled() {
            if self.transfer.all_committed() {
                self.phase = Phase::Finishing;
                self.outputs.push_back(ReceiverOutput::Job(ReceiveJob::Finish));
            } else {
                self.phase = Phase::Ended;
                let event = ReceiverEvent::GivenUp { error: None };
                self.outputs.push_back(ReceiverOutput::Event(event));
            }
        }
    }
}

impl ReceiverStats {
    fn count(&mut self, taken: Taken) {
        match taken {
            Taken::Fresh => self.fresh.count(1),
            Taken::Duplicate | Taken::Disputed => self.duplicates.count(1),
            Taken::Late | Taken::Unverified => self.late.count(1),
            Taken::Invalid => self.invalid.count(1),
            Taken::NoRoom => self.without_room.count(1),
            // Counted with their session.
            Taken::Deselected => {}
        }
    }
}
