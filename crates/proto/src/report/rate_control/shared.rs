//! The rate beside other traffic in the same queue. It grows with the cube of the time, like that
//! of a CUBIC flow (RFC 9438) once it is above the last one, but slower and from a lower rate: the
//! other flow has the larger part.

use crate::time::Instant;
use std::time::Duration;

/// Part of what arrives that is sent when the queue is full. CUBIC sends 0.7 (section 4.6).
const REDUCED: f64 = 0.5;
/// Packets in a round trip, per second cubed, by which the rate grows. CUBIC has 0.4 (section 4.1).
const GROWTH: f64 = 0.1;
/// Bounds of a round trip: with a shorter one CUBIC grows as fast as Reno.
const ROUND_TRIP: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(10)..=Duration::from_secs(1);

/// How the rate grows since the queue was full.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shared {
    /// The reduced rate, in bytes per second.
    from: f64,
    /// When the queue was full.
    at: Instant,
    /// Bytes per second, per second cubed.
    growth: f64,
}

impl Shared {
    /// The queue is full at `now`. `arrives`: bytes per second.
    pub(super) fn new(now: Instant, arrives: f64, packet_bytes: u32, round_trip: Duration) -> Self {
        let round_trip = round_trip.clamp(*ROUND_TRIP.start(), *ROUND_TRIP.end());
        let growth = GROWTH * f64::from(packet_bytes) / round_trip.as_secs_f64();
        Self { from: REDUCED * arrives, at: now, growth }
    }

    /// The rate before.
    pub(super) fn before(&self) -> f64 {
        self.from / REDUCED
    }

    /// The rate does not grow for a while.
    pub(super) fn pause(&mut self, time: Duration) {
        self.at = self.at + time;
    }

    /// Bytes per second.
    pub(super) fn rate(&self, now: Instant) -> f64 {
        let since = now.saturating_since(self.at).as_secs_f64();
        self.from + self.growth * since.powi(3)
    }
}
