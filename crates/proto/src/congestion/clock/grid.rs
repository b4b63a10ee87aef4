//! The departure times of a session's packets.

use crate::endpoint::ChannelId;
use crate::pacer::Pacer;
use crate::time::Instant;
use fontana_wire::Cci;
use std::time::Duration;

/// A packet that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Emission {
    /// When it may leave.
    pub at: Instant,
    /// Where to.
    pub channel: ChannelId,
    /// What its header says.
    pub cci: Cci,
}

/// Evenly spaced moments at which a packet may leave, as exact as nanoseconds are.
#[derive(Clone, Debug)]
pub(super) struct PacketGrid {
    origin: Instant,
    ticks: u64,
    rate_bytes_per_second: u64,
    packet_bytes: u64,
}

impl PacketGrid {
    pub(super) fn new(start: Instant, rate_bytes_per_second: u64, packet_bytes: u16) -> Self {
        let rate_bytes_per_second = rate_bytes_per_second.max(1);
        let packet_bytes = u64::from(packet_bytes.max(1));
        Self { origin: start, ticks: 0, rate_bytes_per_second, packet_bytes }
    }

    /// The moment of the current tick: rounded up, so that rounding makes nobody faster.
    pub(super) fn at(&self) -> Instant {
        self.origin + self.time_of(self.ticks)
    }

    fn time_of(&self, ticks: u64) -> Duration {
        let bytes = u128::from(ticks) * u128::from(self.packet_bytes);
        let nanos = (bytes * 1_000_000_000).div_ceil(self.rate_bytes_per_second.into());
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    pub(super) fn advance(&mut self) {
        self.ticks += 1;
    }

    /// Ticks from the current one on that come before `end`.
    pub(super) fn ticks_before(&self, end: Instant) -> u64 {
        let Some(nanos) = end.as_nanos().checked_sub(self.origin.as_nanos() + 1) else {
            return 0;
        };
        let bytes = u128::from(nanos) * u128::from(self.rate_bytes_per_second) / 1_000_000_000;
        let last = u64::try_from(bytes / u128::from(self.packet_bytes)).unwrap_or(u64::MAX);
        (last + 1).saturating_sub(self.ticks)
    }

    /// Leaves out what is overdue by more than a burst, of which the packet that is due is a part. True
    /// if that was anything.
    pub(super) fn skip_to(&mut self, now: Instant) -> bool {
        let packet = self.time_of(1);
        let slack = Pacer::BURST_WINDOW.saturating_sub(packet).max(packet);
        let earliest = now - slack;
        let is_late = self.at() < earliest;
        if is_late {
            (self.origin, self.ticks) = (earliest, 0);
        }
        is_late
    }
}
