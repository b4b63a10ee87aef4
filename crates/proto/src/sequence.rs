//! Lost packets of a session, from the sequence numbers of its channels.

use crate::channel::ChannelId;
use crate::time::Instant;
use fontana_wire::{Cci, Numbering};
use gaps::Gaps;
use span::Span;
use std::time::Duration;

mod gaps;
mod losses;
mod span;

pub(crate) use gaps::LOST_AFTER;
pub use losses::{ChannelLoss, Losses};

/// Time for which a packet that this host dropped excuses a gap. In this time every channel except
/// the slowest receives a packet that shows the gap.
const EXCUSED_FOR: Duration = Duration::from_secs(2);

/// The only count of a session's lost packets. It handles each packet once, for the statistics, the
/// congestion control and the circuit breaker.
///
/// The statistics and the controls need different numbers:
///
/// | | statistics: [`channels`](Self::channels) | controls: [`Losses`] |
/// |---|---|---|
/// | a loss is | a packet that was sent and has not arrived | a gap that three later packets or 500 ms have confirmed |
/// | time | at any time, the total so far | once for each loss, when it is detected |
/// | a late packet | reduces the total | has no effect after its loss is detected |
/// | a packet that this host dropped | is lost | is excused: it indicates no congestion |
/// | a jump ahead | is a gap up to 1/4 of the modulus; more is a sender that starts again | is a gap up to 1/2: a control must not miss an outage |
/// | a jump back | is a sender that starts again if it is longer than 1/4; otherwise reordering | is a sender that starts again after eight packets: one late or forged packet must not hide losses |
///
/// Neither counts a gap of more than 2^23 packets. A channel remembers at most 32 missing packets.
///
/// Any host can send packets in the session's name. A jump ahead of more packets than the channel
/// can have sent since its last one therefore counts only when three packets continue it, and none
/// continues the run before it.
#[derive(Clone, Debug, Default)]
pub struct SequenceTracker {
    numbering: Numbering,
    /// By channel, up to the highest that had a packet: 256 at most.
    channels: Vec<Channel>,
    /// Number of missing packets of all channels.
    missing: usize,
    /// Number of packets that this host dropped and that no gap has shown yet, and time of the last
    /// drop.
    excused: u64,
    excused_at: Instant,
    /// Number of losses that were detected.
    detected: u64,
    latest: Instant,
}

/// Sequence numbers of a channel.
#[derive(Clone, Debug, Default)]
struct Channel {
    span: Span,
    gaps: Gaps,
}

impl SequenceTracker {
    /// A tracker for packets with this numbering.
    pub fn new(numbering: Numbering) -> Self {
        Self { numbering, ..Self::default() }
    }

    /// Changes the numbering when the head is known. If the new one differs, all that was counted
    /// is forgotten.
    pub(crate) fn set_numbering(&mut self, numbering: Numbering) {
        if self.numbering != numbering {
            *self = Self::new(numbering);
        }
    }

    /// Forgets all that was counted.
    pub(crate) fn restart(&mut self) {
        *self = Self::new(self.numbering);
    }

    /// Handles a packet of a joined channel. This host dropped `dropped_before` datagrams before
    /// it. Returns the losses of the channel that are now detected.
    #[inline]
    pub fn on_packet(
        &mut self,
        now: Instant,
        channel: ChannelId,
        cci: Cci,
        dropped_before: u64,
    ) -> Losses {
        let Some(number) = self.numbering.sequence(channel.0, cci) else {
            return Losses::default();
        };
        self.latest = now;
        if dropped_before > 0 {
            self.excuse(now, dropped_before);
        }
        let index = usize::from(channel.0);
        if self.channels.len() <= index {
            self.channels.resize(index + 1, Channel::default());
        }
        let Some(Channel { span, gaps }) = self.channels.get_mut(index) else {
            return Losses::default();
        };
        if gaps.on_next(now, number) {
            span.on_number(number);
            return Losses::default();
        }
        let Some(confirmed) = gaps.screen(now, number, self.excused) else {
            return Losses::default();
        };
        span.on_number(number);
        span.on_confirmed(confirmed);
        self.missing -= gaps.missing();
        let mut lost = gaps.on_number(now, number);
        self.missing += gaps.missing();
        lost.packets = lost.packets.saturating_sub(confirmed);
        self.detect(now, lost)
    }

    /// Returns the losses that are detected by the passage of time.
    pub fn expire(&mut self, now: Instant) -> Losses {
        if self.missing == 0 {
            return Losses::default();
        }
        let lost = self.channels.iter_mut().map(|channel| channel.gaps.expire(now));
        let lost = lost.fold(Losses::default(), Losses::and);
        self.missing = self.channels.iter().map(|channel| channel.gaps.missing()).sum();
        self.detect(now, lost)
    }

    /// Handles a join. The packets that were sent while the channel was not joined are not lost.
    pub fn on_join(&mut self, channel: ChannelId) {
        if let Some(channel) = self.channels.get_mut(usize::from(channel.0)) {
            channel.span.interrupt();
        }
        self.forget_gaps(channel);
    }

    /// Handles a leave. Packets that are missing are not losses.
    pub fn on_leave(&mut self, channel: ChannelId) {
        self.forget_gaps(channel);
    }

    /// Forgets all gaps when another control begins, which does not react to earlier ones.
    pub(crate) fn forget_all_gaps(&mut self) {
        self.channels.iter_mut().for_each(|channel| channel.gaps = Gaps::default());
        (self.missing, self.excused) = (0, 0);
    }

    /// True if a packet is missing and may still be late.
    pub const fn has_gap(&self) -> bool {
        self.missing > 0
    }

    /// Number of losses that were detected so far.
    pub const fn detected(&self) -> u64 {
        self.detected
    }

    /// When the last packet arrived.
    pub(crate) const fn latest(&self) -> Instant {
        self.latest
    }

    /// Packets of all channels that have not arrived, and were sent before one that has.
    pub(crate) fn lost(&self) -> u64 {
        self.channels().map(|channel| channel.lost).sum()
    }

    /// Totals of each channel, from channel 0 on.
    pub fn channels(&self) -> impl Iterator<Item = ChannelLoss> + '_ {
        self.channels.iter().map(|channel| channel.span.loss())
    }

    fn forget_gaps(&mut self, channel: ChannelId) {
        if let Some(channel) = self.channels.get_mut(usize::from(channel.0)) {
            self.missing -= channel.gaps.missing();
            channel.gaps = Gaps::default();
        }
    }

    /// Excuses as many losses as this host dropped packets.
    fn excuse(&mut self, now: Instant, dropped: u64) {
        self.forget_old_excuses(now);
        self.excused = self.excused.saturating_add(dropped);
        self.excused_at = now;
    }

    fn forget_old_excuses(&mut self, now: Instant) {
        if self.excused > 0 && now.saturating_since(self.excused_at) > EXCUSED_FOR {
            self.excused = 0;
        }
    }

    /// The losses without those that this host caused.
    fn detect(&mut self, now: Instant, lost: Losses) -> Losses {
        if lost.packets == 0 {
            return lost;
        }
        self.forget_old_excuses(now);
        let excused = self.excused.min(lost.packets);
        self.excused -= excused;
        let lost = Losses { packets: lost.packets - excused, ..lost };
        self.detected = self.detected.saturating_add(lost.packets);
        lost
    }
}

#[cfg(test)]
mod tests;
