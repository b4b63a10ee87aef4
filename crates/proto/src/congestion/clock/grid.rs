//! The evenly spaced departure times of a session's packets.

use crate::channel::ChannelId;
use crate::pacer::Pacer;
use crate::time::Instant;
use fontana_wire::Cci;
use std::time::Duration;

/// Time, channel and CCI of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Emission {
    /// Earliest time of departure.
    pub at: Instant,
    /// Channel to send it on.
    pub channel: ChannelId,
    /// CCI of its header.
    pub cci: Cci,
}

/// Evenly spaced times, exact to the nanosecond.
#[derive(Clone, Debug)]
pub(super) struct PacketGrid {
    origin: Instant,
    ticks: u64,
    rate_bytes_per_second: u64,
    packet_bytes: u64,
    /// Time of the current tick.
    at: Instant,
    /// Time by which a packet may be late.
    slack: Duration,
}

impl PacketGrid {
    pub(super) fn new(start: Instant, rate_bytes_per_second: u64, packet_bytes: u16) -> Self {
        let rate_bytes_per_second = rate_bytes_per_second.max(1);
        let packet_bytes = u64::from(packet_bytes.max(1));
        let packet = time_of(1, rate_bytes_per_second, packet_bytes);
        let slack = Pacer::BURST_WINDOW.saturating_sub(packet).max(packet);
        Self { origin: start, ticks: 0, rate_bytes_per_second, packet_bytes, at: start, slack }
    }

    /// Time of the current tick. It is rounded up, so that rounding never raises the rate.
    pub(super) fn at(&self) -> Instant {
        self.at
    }

    pub(super) fn advance(&mut self) {
        self.ticks += 1;
        let time = time_of(self.ticks, self.rate_bytes_per_second, self.packet_bytes);
        self.at = self.origin + time;
    }

    /// Number of ticks from the current one to the last one before `end`.
    pub(super) fn ticks_before(&self, end: Instant) -> u64 {
        let Some(nanos) = end.as_nanos().checked_sub(self.origin.as_nanos() + 1) else {
            return 0;
        };
        let bytes = u128::from(nanos) * u128::from(self.rate_bytes_per_second) / 1_000_000_000;
        let last = u64::try_from(bytes / u128::from(self.packet_bytes)).unwrap_or(u64::MAX);
        (last + 1).saturating_sub(self.ticks)
    }

    /// Skips the ticks that are overdue by more than a burst, which includes the current packet.
    /// True if it skipped any.
    pub(super) fn skip_to(&mut self, now: Instant) -> bool {
        let earliest = now - self.slack;
        let is_late = self.at < earliest;
        if is_late {
            (self.origin, self.ticks, self.at) = (earliest, 0, earliest);
        }
        is_late
    }
}

/// Time of a number of packets at a rate, rounded up.
fn time_of(ticks: u64, rate_bytes_per_second: u64, packet_bytes: u64) -> Duration {
    let bytes = u128::from(ticks) * u128::from(packet_bytes);
    let nanos = (bytes * 1_000_000_000).div_ceil(rate_bytes_per_second.into());
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}
