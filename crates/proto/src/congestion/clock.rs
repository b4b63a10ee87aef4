//! The clock of a sender: time, channel and CCI of every packet.
//!
//! [`ChannelClock::peek`] returns the next packet, [`advance`](ChannelClock::advance) moves on to
//! the packet after it, and [`skip_to`](ChannelClock::skip_to) sets the time, so that a sender that
//! wakes late does not send all overdue packets in one burst. Packets have one size on the wire and
//! leave evenly spaced at the rate of the session: what one channel gains, another loses. A clone
//! is independent: a sender plans ahead with one.

use crate::time::Instant;
use fontana_wire::{CongestionControl, CongestionError, FlidSl, Rlc};
use layers::{LayerClock, Marking};
use webrc::WaveClock;

mod grid;
mod layers;
mod webrc;

pub use grid::Emission;

/// The endless sequence of packets of a session, with their times.
#[derive(Clone, Debug)]
pub struct ChannelClock(Scheme);

#[derive(Clone, Debug)]
enum Scheme {
    Layers(LayerClock),
    Waves(WaveClock),
}

impl ChannelClock {
    /// The clock of a session that starts at `start` and whose packets have `packet_bytes` on the
    /// wire, IP and UDP headers included. `rate_bytes_per_second` is the rate of a session at a
    /// [fixed rate](CongestionControl::FixedRate); other schemes contain their rates. The first
    /// sequence numbers follow from `seed`.
    ///
    /// # Errors
    /// [`CongestionError`] if the parameters are invalid.
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

    /// Number of channels.
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

    /// Moves on after the packet of [`peek`](Self::peek) was sent or skipped.
    pub fn advance(&mut self) {
        match &mut self.0 {
            Scheme::Layers(clock) => clock.advance(),
            Scheme::Waves(clock) => clock.advance(),
        }
    }

    /// Sets the time. Packets that are overdue by more than a burst are dropped, and the others
    /// move later by the same amount. A burst is two packets, or as many as the rate allows in 2 ms
    /// if these are more.
    pub fn skip_to(&mut self, now: Instant) {
        match &mut self.0 {
            Scheme::Layers(clock) => clock.skip_to(now),
            Scheme::Waves(clock) => clock.skip_to(now),
        }
    }
}

#[cfg(test)]
mod tests;
