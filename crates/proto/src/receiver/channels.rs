//! Which channels a receiver is joined to.
//!
//! It begins on channel 0, which carries the head and the manifest. A trusted head declares the
//! congestion control of its session, and the control made from it decides from then on. It sees
//! the packets of that session only: each mirror on the same channels numbers its own packets, and
//! all share one path, so one of them measures it.

use crate::channel::{ChannelId, ChannelSet};
use crate::congestion::{
    FirstChannel, FixedChannels, Membership, PacketSeen, SubscriptionControl, SubscriptionError,
    SubscriptionLimits, subscribe,
};
use crate::counter::Counter;
use crate::endpoint::SessionKey;
use crate::event::{ReceiverEvent, ReceiverOutput};
use crate::sequence::SequenceTracker;
use crate::time::Instant;
use fontana_wire::SessionHead;
use std::collections::VecDeque;
use std::time::Duration;

/// What decides which channels a receiver is joined to.
#[derive(Debug)]
pub enum Subscription {
    /// The session: its head declares its congestion control. Channel 0 alone until then.
    Declared(SubscriptionLimits),
    /// This control, from the beginning and whatever the head says.
    Given(Box<dyn SubscriptionControl>),
}

/// Which session declares the congestion control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Precedence {
    /// This one, unless another one has.
    First,
    /// This one.
    Replacing,
}

/// After so long without a packet of the session whose control is followed, or before its first
/// content, another session that carries the same replaces it: twice the longest interval between
/// packets of a base channel of WEBRC.
const DESERTED: Duration = Duration::from_secs(3);

/// The channels of a receiver.
#[derive(Debug)]
pub(super) struct Channels {
    control: Box<dyn SubscriptionControl>,
    /// `None`: the control was given.
    limits: Option<SubscriptionLimits>,
    /// The session whose head declared the control.
    session: Option<SessionKey>,
    /// When its last packet arrived, or before that the first one of another session.
    received_at: Option<Instant>,
    /// Whether that session has sent content; if not, since when others send symbols of use.
    has_content: bool,
    useless_since: Option<Instant>,
    joined: ChannelSet,
    /// Changes that follow from another control.
    pending: VecDeque<Membership>,
    /// When channel 0 was joined first, and how long after that its first packet arrived.
    base_joined_at: Instant,
    base_received_after: Option<Duration>,
    now: Instant,
    reported: Report,
}

/// The level that was reported last, and the bytes that arrived since.
#[derive(Debug)]
struct Report {
    channels: usize,
    at: Instant,
    bytes: u64,
}

impl Channels {
    pub(super) fn new(subscription: Subscription) -> Self {
        let (control, limits): (Box<dyn SubscriptionControl>, _) = match subscription {
            Subscription::Declared(limits) => (Box::new(FixedChannels::new(1)), Some(limits)),
            Subscription::Given(control) => (control, None),
        };
        Self {
            control,
            limits,
            session: None,
            received_at: None,
            has_content: false,
            useless_since: None,
            joined: ChannelSet::default(),
            pending: VecDeque::new(),
            base_joined_at: Instant::ZERO,
            base_received_after: None,
            now: Instant::ZERO,
            reported: Report { channels: 1, at: Instant::ZERO, bytes: 0 },
        }
    }

    /// Takes the congestion control that a trusted head declares.
    ///
    /// # Errors
    /// [`SubscriptionError`] if the session has nothing for a receiver of these limits.
    pub(super) fn declare(
        &mut self,
        session: SessionKey,
        head: &SessionHead,
        precedence: Precedence,
        sequence: &mut SequenceTracker,
    ) -> Result<(), SubscriptionError> {
        let Some(limits) = self.limits else { return Ok(()) };
        if self.session == Some(session)
            || (self.session.is_some() && precedence == Precedence::First)
        {
            return Ok(());
        }
        let first = FirstChannel { now: self.now, first_packet_after: self.base_received_after };
        let control = subscribe(&head.congestion_control, &limits, first)?;
        self.decide_by(control);
        // The new control does not react to earlier gaps.
        sequence.forget_all_gaps();
        (self.session, self.received_at) = (Some(session), None);
        (self.has_content, self.useless_since) = (false, None);
        Ok(())
    }

    /// The session is refused or removed. Another one may declare the control.
    pub(super) fn withdraw(&mut self, session: SessionKey) {
        if self.session == Some(session) {
            (self.session, self.has_content) = (None, false);
            self.decide_by(Box::new(FixedChannels::new(1)));
        }
    }

    /// Replaces the control. Channel 0 stays joined, or is joined again: it carries the heads.
    fn decide_by(&mut self, control: Box<dyn SubscriptionControl>) {
        self.control = control;
        let upper = self.joined.iter().rev().filter(|&channel| channel != ChannelId::BASE);
        self.pending.extend(upper.map(Membership::Leave));
        self.pending.push_back(Membership::Join(ChannelId::BASE));
    }

    /// The session whose head declared the control.
    pub(super) fn session(&self) -> Option<SessionKey> {
        self.session
    }

    pub(super) fn is_joined(&self, channel: ChannelId) -> bool {
        self.joined.contains(channel)
    }

    /// The joined channels, the highest first: the order in which to leave.
    pub(super) fn joined(&self) -> impl DoubleEndedIterator<Item = ChannelId> + '_ {
        self.joined.iter().rev()
    }

    pub(super) fn on_packet(
        &mut self,
        now: Instant,
        session: SessionKey,
        bytes: usize,
        packet: &PacketSeen,
    ) {
        self.now = now;
        self.reported.bytes.count(bytes as u64);
        if packet.channel == ChannelId::BASE && self.is_joined(ChannelId::BASE) {
            let after = now.saturating_since(self.base_joined_at);
            self.base_received_after.get_or_insert(after);
        }
        self.received_at.get_or_insert(now);
        if self.session.is_none_or(|own| own == session) {
            self.received_at = Some(now);
            self.control.on_packet(now, packet);
        }
    }

    /// Whether the session that declared the control has been silent for long.
    pub(super) fn are_deserted(&self, now: Instant) -> bool {
        let silent = |received_at| now.saturating_since(received_at) >= DESERTED;
        self.session.is_some() && self.received_at.is_some_and(silent)
    }

    /// Handles symbols of content. Whether their session should declare the control: they are of
    /// use, and the session that has declared it only repeats a head, or has left the table.
    #[inline]
    pub(super) fn on_content(
        &mut self,
        now: Instant,
        session: SessionKey,
        are_useful: bool,
    ) -> bool {
        if self.session == Some(session) {
            self.has_content = true;
        }
        if self.has_content || !are_useful {
            return false;
        }
        let since = *self.useless_since.get_or_insert(now);
        match self.session {
            Some(_) => now.saturating_since(since) >= DESERTED,
            None => self.limits.is_some(),
        }
    }

    /// Handles the control's time. `sequence` is that of the session whose control it is.
    pub(super) fn on_timeout(&mut self, now: Instant, sequence: &mut SequenceTracker) {
        self.now = now;
        self.control.on_timeout(now, sequence);
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.control.poll_timeout()
    }

    /// The next channel to join or leave, or the level that follows.
    pub(super) fn poll_output(&mut self, now: Instant) -> Option<ReceiverOutput> {
        self.now = now;
        while let Some(membership) =
            self.pending.pop_front().or_else(|| self.control.poll_membership())
        {
            match membership {
                Membership::Join(channel) if self.joined.insert(channel) => {
                    if channel == ChannelId::BASE && self.base_received_after.is_none() {
                        self.base_joined_at = now;
                    }
                    return Some(ReceiverOutput::Join(channel));
                }
                Membership::Leave(channel) if self.joined.remove(channel) => {
                    return Some(ReceiverOutput::Leave(channel));
                }
                _ => {}
            }
        }
        (self.joined.len() != self.reported.channels && self.session.is_some())
            .then(|| ReceiverOutput::Event(self.report_level(now)))
    }

    fn report_level(&mut self, now: Instant) -> ReceiverEvent {
        let nanos = now.saturating_since(self.reported.at).as_nanos();
        let per_second = u128::from(self.reported.bytes).saturating_mul(1_000_000_000);
        let rate = per_second.checked_div(nanos).unwrap_or(0);
        self.reported = Report { channels: self.joined.len(), at: now, bytes: 0 };
        ReceiverEvent::Level {
            // A channel is a u8.
            channels: self.reported.channels as u16,
            rate_bytes_per_second: self.control.level().rate_bytes_per_second,
            received_bytes_per_second: u64::try_from(rate).unwrap_or(u64::MAX),
        }
    }
}
