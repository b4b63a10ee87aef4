//! When a sender's next packet leaves, on which channel, and what its CCI says.
//!
//! [`ChannelClock::peek`] says it, [`advance`](ChannelClock::advance) goes on to the packet after it,
//! and [`skip_to`](ChannelClock::skip_to) tells the clock the time, so that a sender that woke late
//! does not send in one train what it has missed. Packets have the same size on the wire and leave
//! evenly spaced, at the rate of the session, whatever the channels do to each other: what one
//! channel gains, another loses. A clone goes its own way: a sender lays its rounds out with one.

use crate::time::Instant;
use fontana_wire::{CongestionControl, CongestionError, FlidSl, Rlc};
use layers::{LayerClock, Marking};
use webrc::WaveClock;

mod grid;
mod layers;
mod webrc;

pub use grid::Emission;

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

#[cfg(test)]
mod tests;
