//! When a sender's next packet leaves, on which channel, and what its CCI says.
//!
//! [`ChannelClock::peek`] says it, [`advance`](ChannelClock::advance) goes on to the packet after it,
//! and [`skip_to`](ChannelClock::skip_to) tells the clock the time, so that a sender that woke late
//! does not send in one train what it has missed. Packets have the same size on the wire and leave
//! evenly spaced, at the rate of the session, whatever the channels do to each other: what one
//! channel gains, another loses. A clone goes its own way: a sender lays its rounds out with one.

use crate::endpoint::ChannelId;
use crate::pacer::Pacer;
use crate::time::Instant;
use fontana_wire::{Cci, CongestionControl, CongestionError, FlidSl, Rlc};
use layers::{LayerClock, Marking};
use std::time::Duration;
use webrc::WaveClock;

mod layers;
mod webrc;

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

/// The pace of a session, without end.
#[derive(Clone, Debug)]
pub struct ChannelClock(Scheme);

#[derive(Clone, Debug)]
enum Scheme {
    Layers(LayerClock),
    Waves(WaveClock),
}

impl ChannelClock {
    /// The clock of a session that starts at `start` and whose packets have `packet_bytes` on the
    /// wire, IP and UDP headers included. `rate_bytes_per_second` is that of a session at a
    /// [fixed rate](CongestionControl::FixedRate); others say their rates themselves. Numbers of
    /// packets start at places that follow from `seed`.
    ///
    /// # Errors
    /// [`CongestionError`] if the parameters are none that a session could have.
    pub fn new(
        control: &CongestionControl,
        rate_bytes_per_second: u64,
        packet_bytes: u16,
        start: Instant,
        seed: u64,
    ) -> Result<Self, CongestionError> {
        let control = control.clone().checked()?;
        let layered = |rates: &[u64], marking| {
            Scheme::Layers(LayerClock::new(rates, packet_bytes, start, seed, marking))
        };
        let rates: Vec<u64> = match &control {
            CongestionControl::FixedRate => vec![rate_bytes_per_second.max(1)],
            CongestionControl::FixedLayers(layers)
            | CongestionControl::Rlc(Rlc { layers, .. })
            | CongestionControl::FlidSl(FlidSl { layers, .. }) => layers.cumulative().collect(),
            CongestionControl::Webrc(_) => Vec::new(),
        };
        Ok(Self(match &control {
            CongestionControl::FixedRate | CongestionControl::FixedLayers(_) => {
                layered(&rates, Marking::Number)
            }
            CongestionControl::Rlc(rlc) => layered(&rates, Marking::rlc(rlc)),
            CongestionControl::FlidSl(flid) => {
                layered(&rates, Marking::flid(flid, &rates, packet_bytes))
            }
            CongestionControl::Webrc(webrc) => {
                Scheme::Waves(WaveClock::new(webrc, packet_bytes, start)?)
            }
        }))
    }

    /// Channels that take turns.
    pub fn channel_count(&self) -> usize {
        match &self.0 {
            Scheme::Layers(clock) => clock.channel_count(),
            Scheme::Waves(clock) => clock.channel_count(),
        }
    }

    /// The next packet.
    pub fn peek(&self) -> Emission {
        match &self.0 {
            Scheme::Layers(clock) => clock.peek(),
            Scheme::Waves(clock) => clock.peek(),
        }
    }

    /// The packet that [`peek`](Self::peek) speaks of has left, or was left out.
    pub fn advance(&mut self) {
        match &mut self.0 {
            Scheme::Layers(clock) => clock.advance(),
            Scheme::Waves(clock) => clock.advance(),
        }
    }

    /// It is `now`: what is overdue by more than a burst is late for good, and the rest is put off
    /// by as much. A burst is two packets, or what the rate allows in 2 ms if that is more.
    pub fn skip_to(&mut self, now: Instant) {
        match &mut self.0 {
            Scheme::Layers(clock) => clock.skip_to(now),
            Scheme::Waves(clock) => clock.skip_to(now),
        }
    }
}

/// Evenly spaced moments at which a packet may leave, as exact as nanoseconds are.
#[derive(Clone, Debug)]
struct Comb {
    origin: Instant,
    ticks: u64,
    rate_bytes_per_second: u64,
    packet_bytes: u64,
}

impl Comb {
    fn new(start: Instant, rate_bytes_per_second: u64, packet_bytes: u16) -> Self {
        let rate_bytes_per_second = rate_bytes_per_second.max(1);
        let packet_bytes = u64::from(packet_bytes.max(1));
        Self { origin: start, ticks: 0, rate_bytes_per_second, packet_bytes }
    }

    /// The moment of the current tick: rounded up, so that rounding makes nobody faster.
    fn at(&self) -> Instant {
        self.origin + self.time_of(self.ticks)
    }

    fn time_of(&self, ticks: u64) -> Duration {
        let bytes = u128::from(ticks) * u128::from(self.packet_bytes);
        let nanos = (bytes * 1_000_000_000).div_ceil(self.rate_bytes_per_second.into());
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    fn advance(&mut self) {
        self.ticks += 1;
    }

    /// Ticks from the current one on that come before `end`.
    fn ticks_before(&self, end: Instant) -> u64 {
        let Some(nanos) = end.as_nanos().checked_sub(self.origin.as_nanos() + 1) else {
            return 0;
        };
        let bytes = u128::from(nanos) * u128::from(self.rate_bytes_per_second) / 1_000_000_000;
        let last = u64::try_from(bytes / u128::from(self.packet_bytes)).unwrap_or(u64::MAX);
        (last + 1).saturating_sub(self.ticks)
    }

    /// Leaves out what is overdue by more than a burst, of which the packet that is due is a part. True
    /// if that was anything.
    fn skip_to(&mut self, now: Instant) -> bool {
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

#[cfg(test)]
mod tests;
