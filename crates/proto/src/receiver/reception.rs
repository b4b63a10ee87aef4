//! The reception of accepted content: applies what a catalog discovers, and says when reception is
//! complete.

mod acceptance;
mod early;
mod jobs;
mod spill;
mod superseded;
mod symbols;

use super::catalog::{Break, Catalog, Context, Discovery};
use super::channels::Channels;
use super::config::{ReceiverConfig, ReceiverStats};
use super::digests::SymbolDigests;
use super::newer::NewerVersion;
use super::sessions::{Announced, ContentId, SessionState, Sessions, Standing};
use super::sources::SourceId;
use super::suspicion::IDLE;
use super::transfer::{Surplus, Transfer};
use super::unverified::UnverifiedSymbols;
use crate::endpoint::{BlockId, SessionKey};
use crate::event::{ReceiverEvent, ReceiverOutput, Rejection};
use crate::job::ReceiveJob;
use crate::time::Instant;
use fontana_fec::{EncodingId, Esi};
use fontana_wire::{InstanceId, Packet, Payload, Toi};
use spill::SpillFile;
use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;
use std::time::Duration;

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
    /// Since when symbols of doubted receivers that share wait, and no symbol of use has arrived.
    held_since: Option<Instant>,
    /// Cost of the early symbols of all sessions, and of the unverified ones.
    pub(super) early_cost: usize,
    /// Early symbols beyond that.
    spill: SpillFile,
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

/// Time without a symbol of use after which those of doubted receivers that share are used: others
/// were asked meanwhile, and had time to answer.
const HELD_FOR_OTHERS: Duration = Duration::from_secs(5);

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
            held_since: None,
            early_cost: 0,
            spill: SpillFile::default(),
            rejections: BTreeSet::new(),
            outputs: VecDeque::new(),
            is_waiting_reported: false,
        }
    }

    pub(super) fn has_accepted(&self) -> bool {
        self.accepted.is_some()
    }

    /// The symbols of a block that count as lacking.
    pub(super) fn surplus(&self) -> Surplus {
        if self.catalog.is_stream() { Surplus::None } else { Surplus::Sure }
    }

    /// The run of the sender of the accepted stream.
    pub(super) fn stream_instance(&self) -> Option<InstanceId> {
        self.catalog.stream_instance()
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

    /// The object that packets of this TOI are of.
    pub(super) fn object_of(&self, toi: Toi) -> Toi {
        self.catalog.object_of(toi)
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
    pub(super) fn on_object(
        &mut self,
        config: &ReceiverConfig,
        now: Instant,
        session: &mut SessionState,
        toi: Toi,
        packet: &Packet<'_>,
        payload: &Payload<'_>,
    ) -> Discovery {
        let (accepted, transfer) = (self.accepted.as_ref(), &self.transfer);
        let accepted_version = self.accepted_version;
        let cx = Context { config, now, accepted, accepted_version, transfer };
        self.catalog.on_object(&cx, session, toi, packet, payload)
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
        if let Some(since) = &mut self.held_since {
            *since = now;
        }
    }

    /// Others have sent a symbol. Blocks that lack symbols for a search do not wait for ever.
    pub(super) fn await_idle(&mut self, now: Instant) {
        if self.transfer.has_suspects() {
            self.idle_since.get_or_insert(now);
        }
    }

    /// When blocks are searched for wrong symbols although they want more.
    #[inline]
    pub(super) fn idle_at(&self) -> Option<Instant> {
        let idle = self.idle_since.map(|since| since + IDLE);
        let held = self.held_since.map(|since| since + HELD_FOR_OTHERS);
        idle.into_iter().chain(held).min()
    }

    /// Uses symbols of doubted sources, and searches blocks for wrong symbols, if no symbol of use
    /// has arrived for a while.
    pub(super) fn check_idle(&mut self, now: Instant, stats: &mut ReceiverStats) {
        let idle_since = self.idle_since.take_if(|since| *since + IDLE <= now);
        let held_since = self.held_since.take_if(|since| *since + HELD_FOR_OTHERS <= now);
        if idle_since.is_none() && held_since.is_none() {
            return;
        }
        if held_since.is_none() && self.transfer.waits_for_shared() {
            self.held_since = self.held_since.or(idle_since);
        } else {
            for block in self.transfer.stop_holding() {
                self.use_unverified(block, stats);
            }
        }
        self.transfer.on_idle(&mut self.outputs);
    }

    /// Ends the reception if the rest of the content can no longer be received.
    fn check_catalog(&mut self, around: &Surroundings<'_>) {
        if self.phase == Phase::Ended {
            return;
        }
        let accepted = around.sessions.iter().filter(|s| s.standing == Standing::Accepted);
        let lost = accepted.flat_map(|session| session.sequence.channels());
        let lost = lost.fold(0_u64, |sum, channel| sum.saturating_add(channel.lost));
        let Some(Break { at, reason }) = self.catalog.check(&self.transfer, lost) else { return };
        self.leave(around.channels);
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
            // A block turned out to be corrupt, or the bytes of an object to be wrong.
            Phase::ReceptionComplete
                if !self.transfer.is_received() || !self.catalog.is_final() =>
            {
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
