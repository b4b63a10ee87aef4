//! The receiving endpoint: finds sessions, accepts the content of one, and collects symbols until
//! the content is complete.
//!
//! A session is named by its sender's address and its TSI; `SessionState` is what the receiver
//! knows of it. `Reception` is the accepted content: its `Catalog` reads control packets, its
//! `Transfer` turns symbols into verified objects. All sessions that carry the accepted content add
//! up. Symbols that arrive before their object is open wait, in memory of a fixed size.
//!
//! A receiver sends nothing, unless it [reports](Receiver::with_reports) to its sender or
//! [shares](Receiver::with_site) with others of its site.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use crate::channel::ChannelId;
use crate::congestion::PacketSeen;
use crate::counter::Counter;
use crate::datagram::{Datagram, DatagramBatch, Ecn, Port};
use crate::endpoint::{BlockId, Endpoint, SessionKey};
use crate::event::{ReceiverEvent, ReceiverOutput, Rejection, TableStatus};
use crate::job::{ReceiveDone, ReceiveJob};
use crate::sequence::{ChannelLoss, Losses, SequenceTracker};
use crate::time::Instant;
use catalog::Discovery;
use channels::{Channels, Precedence};
use fontana_fec::{EncodingId, PlanCache};
use fontana_wire::{Hash, Header, InstanceId, Manifest, Packet, Payload, Toi};
use reception::{Arrival, Reception, Surroundings};
use reporting::Reports;
use sessions::{Announced, SessionIndex, SessionState, Sessions, Standing};
use site::Site;
use std::sync::Arc;
use std::time::Duration;

mod catalog;
mod channels;
mod collector;
mod config;
mod digests;
mod lacking;
mod newer;
mod pulled;
mod reception;
mod reporting;
mod sessions;
mod shared;
mod site;
mod sources;
mod staying;
mod suspicion;
mod symbols;
mod transfer;
mod unverified;

pub use channels::Subscription;
pub use config::{
    Acceptance, DecodePolicy, Expectation, MetadataMode, ReceiverConfig, ReceiverLimits,
    ReceiverStats,
};
pub use site::SiteConfig;
pub use staying::{Ending, ReceiverPhase};
pub use transfer::{ObjectProgress, repair_slots};

/// Receives the content of one session, and of all sessions that carry the same.
#[derive(Debug)]
pub struct Receiver {
    config: ReceiverConfig,
    sessions: Sessions,
    reception: Reception,
    channels: Channels,
    stats: ReceiverStats,
    silence: Silence,
    /// The time of the last packet, if it closed the accepted session (flag A).
    closing: Option<Instant>,
    /// `None`: it does not report.
    reports: Option<Box<Reports>>,
    /// `None`: it does not share.
    site: Option<Box<Site>>,
    /// How and when the reception has ended, for its driver.
    ending: Option<(Instant, Ending)>,
    /// When a receiver that sends was polled last.
    polled_at: Instant,
}

/// The Source Packet Indicator of the PSI bits (RFC 5775, section 2.1). Only codes with two forms
/// of the FEC Payload ID use it; FLUTE has none, and ROUTE sets it in every source packet.
const SOURCE_PACKET: u8 = 2;

/// Time from a packet that closes a session (RFC 5651, section 5.1, flag A) to the end of the
/// session. A packet of the session without the flag revokes it: the packets may be reordered, a
/// sender may close a session that it left unfinished before, and any host can forge the flag.
const CLOSES_AFTER: Duration = Duration::from_secs(2);

/// Since when no packet has arrived that shows a sender of wanted content.
#[derive(Clone, Copy, Debug, Default)]
struct Silence {
    /// `None` before the first call.
    since: Option<Instant>,
    /// Number of such packets.
    packets: u64,
}

impl Silence {
    fn end(&mut self, now: Instant) {
        self.since = Some(now);
        self.packets.count(1);
    }
}

impl Receiver {
    /// A receiver that has not joined a channel yet.
    pub fn new(config: ReceiverConfig, subscription: Subscription) -> Self {
        Self {
            sessions: Sessions::default(),
            reception: Reception::new(&config),
            channels: Channels::new(subscription),
            stats: ReceiverStats::default(),
            silence: Silence::default(),
            closing: None,
            reports: None,
            site: None,
            ending: None,
            polled_at: Instant::ZERO,
            config,
        }
    }

    /// Whether packets of the session are still needed.
    pub fn is_listening(&self) -> bool {
        self.ending.is_none() && self.reception.is_listening()
    }

    fn wanted_sessions(&self) -> impl Iterator<Item = &SessionState> {
        let is_accepted = self.reception.has_accepted();
        self.sessions.iter().filter(move |session| session.is_wanted(is_accepted))
    }

    /// Counters so far.
    pub fn stats(&self) -> ReceiverStats {
        let mut stats = self.stats;
        stats.session_packets = self.session_packets();
        for session in self.wanted_sessions() {
            let counters = session.counters;
            stats.deselected.count(counters.deselected);
            stats.control_packets.count(counters.control);
            if !session.has_contributed() {
                continue;
            }
            for channel in session.sequence.channels() {
                stats.expected.count(channel.expected);
                stats.lost.count(channel.lost);
            }
        }
        stats
    }

    /// [`ReceiverStats::session_packets`], which a driver needs more often than the others.
    #[inline]
    pub fn session_packets(&self) -> u64 {
        let sessions = self.wanted_sessions().map(|session| session.counters);
        let packets = sessions.map(|own| own.packets.saturating_sub(own.deselected));
        packets.fold(self.stats.session_packets, u64::saturating_add)
    }

    /// Packets that show that a sender of wanted content is there: symbols that fit the content,
    /// newly announced content, and the other packets of sessions that have brought symbols of use.
    /// Runs of symbols that are pulled count as well.
    /// Any host can send other packets in a session's name, or repeat its head. A driver that
    /// waits only while something is sent looks at this number.
    pub fn relevant_packets(&self) -> u64 {
        self.silence.packets
    }

    /// Packets of the wanted sessions on each channel, from channel 0 on: of those that have
    /// brought symbols, because any host can repeat a head with numbers of its choice.
    pub fn channel_loss(&self) -> Vec<ChannelLoss> {
        let mut channels: Vec<ChannelLoss> = Vec::new();
        for session in self.wanted_sessions().filter(|session| session.has_contributed()) {
            for (index, channel) in session.sequence.channels().enumerate() {
                match channels.get_mut(index) {
                    Some(sum) => {
                        sum.expected.count(channel.expected);
                        sum.lost.count(channel.lost);
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
        self.reception.transfer.source_symbols()
    }

    /// The run of the sender of the accepted stream; `None` if none was accepted.
    pub fn stream_instance(&self) -> Option<InstanceId> {
        self.reception.stream_instance()
    }

    /// Symbols that are still missing, as far as is known.
    pub fn symbols_wanted(&self) -> u64 {
        self.reception.transfer.symbols_wanted()
    }

    /// Uses the plans that receivers of the same content share, instead of making its own. To be
    /// called before anything is received.
    pub fn share_plans(&mut self, plans: Arc<PlanCache>) {
        self.reception.transfer.share_plans(plans);
    }

    /// Progress of an accepted object.
    pub fn object_progress(&self, toi: Toi) -> Option<ObjectProgress> {
        self.reception.transfer.progress(toi)
    }

    /// A corrupt block whose wrong symbols were not found yet.
    pub fn suspect_block(&self) -> Option<BlockId> {
        self.reception.transfer.first_suspect()
    }

    /// Accepts a session that was [offered](ReceiverEvent::Offered). False if it is not on offer
    /// any more.
    pub fn accept(&mut self, session: SessionKey) -> bool {
        let Some(at) = self.sessions.find(session) else { return false };
        let (mut around, reception) = self.parts();
        reception.accept_offer(&mut around, at)
    }

    /// How much was received of the file delivery tables of plain FLUTE sessions: of the session of
    /// which most was received.
    pub fn table_status(&self) -> TableStatus {
        let status = |session: &SessionState| match &session.announced {
            Announced::Tables(tables) => tables.status(),
            Announced::Nothing | Announced::Head(_) => TableStatus::None,
        };
        self.sessions.iter().map(status).max().unwrap_or_default()
    }

    /// Whether everything that was announced is received, and the session does not say whether it
    /// will announce more: plain FLUTE whose tables lack `Complete`.
    pub fn waits_for_announcements(&self) -> bool {
        self.reception.waits_for_announcements()
    }

    /// Completes the reception if it only [waits for
    /// announcements](Self::waits_for_announcements): the driver has waited long enough. False if
    /// anything that was announced is missing.
    pub fn conclude(&mut self) -> bool {
        self.reception.conclude(&self.channels)
    }

    /// The manifest of the newest version that the accepted session has announced beyond the
    /// accepted one, and its hash, which was checked. `None` if it is not complete.
    pub fn newer_manifest(&self) -> Option<(Hash, Arc<Manifest>)> {
        self.reception.newer_manifest(&self.sessions)
    }

    /// Receives what later tables of plain FLUTE announce until the driver
    /// [concludes](Self::conclude) the session: neither `Complete` nor flag A of a packet ends it.
    /// To be called before anything is received.
    pub fn watch_tables(&mut self) {
        self.reception.catalog.watch();
    }

    /// Reports files of plain FLUTE that the tables do not name any more, once those that named
    /// them have expired: [`ReceiveJob::Expire`]. To be called before anything is received.
    pub fn delete_expired(&mut self) {
        self.reception.catalog.delete_expired();
    }

    /// Deselects objects of the accepted manifest, or of the tables of plain FLUTE: nothing of them
    /// is received, and they count neither in [`source_symbols`](Self::source_symbols) nor in
    /// [`session_packets`](ReceiverStats::session_packets). To be called before
    /// [`ReceiveJob::Open`] is answered: objects that are open stay selected.
    ///
    /// The driver knows names and the user's selection, and this endpoint knows objects.
    pub fn deselect(&mut self, objects: impl IntoIterator<Item = Toi>) {
        for toi in objects {
            if self.reception.catalog.deselect(toi) {
                self.reception.transfer.withdraw(toi);
            } else {
                self.reception.transfer.deselect(toi);
            }
        }
    }

    fn parts(&mut self) -> (Surroundings<'_>, &mut Reception) {
        let Self { config, sessions, channels, stats, .. } = self;
        (Surroundings { config, sessions, channels, stats }, &mut self.reception)
    }

    /// Makes room for a new session. `None` if there is none.
    fn admit(
        &mut self,
        now: Instant,
        key: SessionKey,
        header: &Header<'_>,
    ) -> Option<SessionIndex> {
        let Self { config, sessions, .. } = self;
        // Each address of the ticket has a place.
        let expected = &config.expectation.sources;
        if sessions.len() >= config.limits.max_sessions.max(expected.len()) {
            let is_reserved = expected.contains(&key.source) && !sessions.has_source(key.source);
            let transfer = &self.reception.transfer;
            let is_doubted = |session: &SessionState| {
                session.symbols_from.is_some_and(|source| transfer.sources.is_doubted(source))
            };
            let removed = match sessions.remove_least(now, is_doubted) {
                None if is_reserved => sessions.remove_least_of_shared_source(),
                removed => removed,
            };
            let mut removed = removed?;
            self.reception.forget(&mut removed, &mut self.channels);
        }
        let mut announced = self.reception.nothing_announced();
        if let Announced::Tables(tables) = &mut announced
            && header.psi & SOURCE_PACKET != 0
        {
            tables.note(TableStatus::Route);
        }
        Some(self.sessions.insert(now, key, announced))
    }

    fn handle_datagram(&mut self, now: Instant, batch: &DatagramBatch<'_>, datagram: &Datagram) {
        match datagram.port {
            Port::Channel(channel) => {
                let bytes = batch.bytes(&datagram.payload).unwrap_or_default();
                if self.ending.is_none() {
                    self.handle_packet(now, datagram, channel, bytes);
                }
                if let Some(reports) = &mut self.reports {
                    reports.look_at(bytes);
                }
            }
            Port::Site => self.handle_site(now, batch, datagram),
            Port::Feedback => {}
        }
    }

    fn handle_packet(
        &mut self,
        now: Instant,
        datagram: &Datagram,
        channel: ChannelId,
        bytes: &[u8],
    ) {
        self.stats.datagrams.count(1);
        self.stats.payload_bytes.count(bytes.len() as u64);
        self.stats.local_drops.count(datagram.dropped_before);
        let Ok(packet) = Packet::parse(bytes) else {
            self.stats.malformed.count(1);
            return;
        };
        if packet.header.extensions.are_of_encrypted() {
            self.stats.encrypted.count(1);
            return;
        }
        let key = SessionKey { source: datagram.from.ip(), tsi: packet.header.tsi };
        if !self.config.expectation.includes(key) {
            self.stats.foreign.count(1);
            self.reception.report_rejection(key, Rejection::OtherSession);
            return;
        }
        let header = &packet.header;
        let Some(at) = self.sessions.find(key).or_else(|| self.admit(now, key, header)) else {
            self.stats.foreign.count(1);
            return;
        };
        let Some(session) = self.sessions.get_mut(at) else { return };
        session.last_received = now;
        if session.standing == Standing::Refused {
            if session.is_old_version {
                // The publisher is received; it has nothing newer to send.
                self.silence.end(now);
            }
            if packet.header.toi != Some(Toi::HEAD) {
                self.stats.foreign.count(1);
                return;
            }
        }
        let cci = packet.header.cci;
        let mut lost = Losses::default();
        // Of a refused session only heads come this far: the numbers between them are not lost.
        if self.reception.is_listening() && session.standing != Standing::Refused {
            session.counters.packets.count(1);
            // Packets that still arrive on a channel after a leave do not show which ones are lost.
            if self.reception.numbers_packets() && self.channels.is_joined(channel) {
                let missing = self.reports.as_ref().map_or(0, |_| session.sequence.lost());
                lost = session.sequence.on_packet(now, channel, cci, datagram.dropped_before);
                if let Some(reports) = &mut self.reports {
                    let more = session.sequence.lost().saturating_sub(missing);
                    reports.reporter.handle_packet(now, more);
                }
            }
            let is_control = |toi| {
                matches!(toi, Toi::FDT | Toi::HEAD | Toi::MANIFEST)
                    || (matches!(toi, Toi::DIGESTS | Toi::ROLL_CALL)
                        && self.reception.is_control(toi))
            };
            session.counters.control.count(u64::from(packet.header.toi.is_some_and(is_control)));
        }
        let has_gap = session.sequence.has_gap();
        if session.is_wanted(self.reception.has_accepted()) {
            if !self.reception.numbers_packets() {
                // Nothing distinguishes the packets of plain FLUTE and FCAST from junk.
                self.silence.end(now);
            }
            let closes = packet.header.close_session;
            if closes || self.closing.is_some() {
                let is_heeded = session.standing == Standing::Accepted
                    && self.reception.heeds_close()
                    && closes;
                self.closing = is_heeded.then_some(now);
            }
            let seen = PacketSeen {
                channel,
                cci,
                congestion_experienced: datagram.ecn == Ecn::CongestionExperienced,
                lost,
                has_gap,
            };
            self.channels.on_packet(now, key, bytes.len(), &seen);
            if self.channels.are_deserted(now) {
                self.reception.follow(session, &mut self.channels, Precedence::Replacing);
            }
        }
        let Some(toi) = packet.header.toi else { return };
        match packet.payload(EncodingId(packet.header.codepoint)) {
            Ok(Some(payload)) => self.on_payload(now, at, datagram, &packet, (toi, &payload)),
            Ok(None) => {}
            Err(_) => {
                self.stats.invalid.count(1);
                if let Announced::Tables(tables) = &mut session.announced
                    && toi == Toi::FDT
                {
                    tables.note(TableStatus::UnknownCode(packet.header.codepoint));
                }
            }
        }
    }

    /// The symbols of a control object or of content.
    #[inline]
    fn on_payload(
        &mut self,
        now: Instant,
        at: SessionIndex,
        datagram: &Datagram,
        packet: &Packet<'_>,
        (toi, payload): (Toi, &Payload<'_>),
    ) {
        let Self { config, sessions, reception, .. } = self;
        let Some(session) = sessions.get_mut(at) else { return };
        let is_control = reception.is_control(toi);
        if is_control && toi == Toi::DIGESTS {
            return reception.on_digests(now, session, payload.symbol);
        }
        let (invalid, deselected) = (self.stats.invalid, session.counters.deselected);
        let sent = toi;
        let toi = reception.object_of(sent);
        let discovery = if is_control {
            if toi == Toi::MANIFEST && !reception.has_accepted() && session.is_collecting() {
                session.useful_at = Some(now);
            }
            reception.on_control(config, now, session, packet, payload)
        } else {
            reception.on_object(config, now, session, toi, packet, payload)
        };
        let mut is_relevant =
            is_control && (session.has_contributed() || discovery.announces_content());
        if !matches!(discovery, Discovery::Nothing) {
            let (mut around, reception) = self.parts();
            reception.apply(&mut around, now, at, discovery);
        }
        // A collection may have begun.
        let toi = self.reception.object_of(sent);
        if !is_control && let Some(session) = self.sessions.get_mut(at) {
            let (symbol, end) = (payload.symbol, datagram.payload.end);
            let arrival = Arrival {
                block: BlockId { toi, sbn: payload.sbn },
                esi: payload.esi,
                encoding_id: EncodingId(packet.header.codepoint),
                symbol,
                source: self.reception.transfer.sources.find(datagram.from),
                // Symbols are the end of their packet.
                range: end.saturating_sub(symbol.len() as u32)..end,
            };
            session.symbols_from = Some(arrival.source);
            let fresh = self.stats.fresh;
            self.reception.take(&self.config, now, session, arrival, &mut self.stats);
            is_relevant = session.content.is_some()
                && self.reception.expects(toi)
                && self.stats.invalid == invalid
                && session.counters.deselected == deselected;
            let is_fresh = self.stats.fresh > fresh;
            if is_fresh {
                session.useful_at = Some(now);
                self.reception.on_fresh(now, self.stats.fresh.saturating_sub(fresh));
            }
            if self.channels.on_content(now, session.key, is_fresh) {
                let (channels, precedence) = (&mut self.channels, Precedence::Replacing);
                self.reception.follow(session, channels, precedence);
            }
        }
        if is_relevant
            && let Some(session) = self.sessions.get_mut(at)
            && session.is_wanted(self.reception.has_accepted())
        {
            self.silence.end(now);
        }
        if self.reception.may_complete() {
            self.reception.update_phase(&self.channels);
        }
    }

    /// Joins and leaves the channels that the control has decided on.
    fn queue_memberships(&mut self, now: Instant) {
        while let Some(output) = self.poll_membership(now) {
            self.reception.queue(output);
        }
    }

    /// The next change of channels, or the level that follows from it.
    fn poll_membership(&mut self, now: Instant) -> Option<ReceiverOutput> {
        if !self.reception.is_listening() {
            return None;
        }
        let output = self.channels.poll_output(now)?;
        for session in self.sessions.iter_mut() {
            match output {
                ReceiverOutput::Join(channel) => session.sequence.on_join(channel),
                ReceiverOutput::Leave(channel) => session.sequence.on_leave(channel),
                _ => {}
            }
        }
        Some(output)
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
            // The outputs of a datagram precede the next one, as if each were a batch.
            self.queue_memberships(now);
            self.handle_datagram(now, batch, datagram);
        }
    }

    fn handle_done(&mut self, now: Instant, done: ReceiveDone) {
        match done {
            ReceiveDone::Called(call) => self.handle_called(now, call),
            ReceiveDone::Sealed { to, datagram } => {
                if let Some(reports) = &mut self.reports {
                    reports.handle_sealed(to, datagram);
                }
            }
            ReceiveDone::Read { block, batch, is_read } => {
                if let Some(site) = &mut self.site {
                    site.handle_read(now, block, batch, is_read);
                }
            }
            done if self.ending.is_none() => {
                let (mut around, reception) = self.parts();
                reception.on_done(&mut around, now, done);
            }
            _ => {}
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.reception_timeout().is_none_or(|due| now < due) {
            return;
        }
        // A control that no session has declared needs no losses.
        let mut unknown = SequenceTracker::default();
        let declared = self.channels.session().and_then(|key| self.sessions.find(key));
        let declared = declared.and_then(|at| self.sessions.get_mut(at));
        let sequence = declared.map_or(&mut unknown, |session| &mut session.sequence);
        self.channels.on_timeout(now, sequence);
        if self.closing.is_some_and(|since| since + CLOSES_AFTER <= now) {
            self.closing = None;
            self.reception.on_session_closed(&self.channels);
        }
        let (mut around, reception) = self.parts();
        reception.check_superseded(&mut around, now);
        reception.check_idle(now, around.stats);
        let since = self.silence.since.unwrap_or(Instant::ZERO);
        if self.reception.is_listening() && now.saturating_since(since) >= self.config.silence_after
        {
            self.silence.since = Some(now);
            let ever_since_start = self.silence.packets == 0;
            let event = ReceiverEvent::Silence { ever_since_start };
            self.reception.queue(ReceiverOutput::Event(event));
            for channel in self.channels.joined().rev() {
                self.reception.queue(ReceiverOutput::Leave(channel));
                self.reception.queue(ReceiverOutput::Join(channel));
            }
        }
    }

    #[inline]
    fn poll_output(&mut self, now: Instant, header: &mut Vec<u8>) -> Option<ReceiverOutput> {
        self.silence.since.get_or_insert(now);
        if self.reports.is_none() && self.site.is_none() {
            return self.poll_reception(now);
        }
        self.poll_beside(now, header)
    }

    #[inline]
    fn poll_timeout(&self) -> Option<Instant> {
        let reception = self.reception_timeout();
        if self.reports.is_none() && self.site.is_none() {
            return reception;
        }
        reception.into_iter().chain(self.timeout_beside()).min()
    }
}

impl Receiver {
    #[inline]
    fn poll_reception(&mut self, now: Instant) -> Option<ReceiverOutput> {
        self.reception.poll_output(now).or_else(|| self.poll_membership(now))
    }

    /// The timeout of the reception alone.
    #[inline]
    fn reception_timeout(&self) -> Option<Instant> {
        self.is_listening().then(|| {
            let silence = self.silence.since.unwrap_or(Instant::ZERO) + self.config.silence_after;
            let closes = self.closing.map(|since| since + CLOSES_AFTER);
            let superseded = self.reception.superseded_at(&self.config);
            let idle = self.reception.idle_at();
            let others = [self.channels.poll_timeout(), closes, superseded, idle];
            others.into_iter().flatten().fold(silence, Instant::min)
        })
    }
}
