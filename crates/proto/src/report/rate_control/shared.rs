//! The rate beside other traffic in the same queue. It grows with the cube of the time, like that
//! of a CUBIC flow (RFC 9438) once it is above the last one, but slower and from a lower rate: the
//! other flow has the larger part.

use crate::time::Instant;
use std::time::Duration;

/// Part of what arrives that is sent when the queue is full. CUBIC sends 0.7 (section 4.6).
const REDUCED: f64 = 0.5;
/// Packets in a round trip, per second cubed, by which the rate grows. CUBIC has 0.4 (section 4.1).
const GROWTH: f64 = 0.1;
/// Parts of the most that has arrived: up to the first one a queue that stands is no reason to send
/// less, because a flow that never lets it become empty would take everything; up to the second
/// one the rate grows.
const KEPT: f64 = 0.25;
const PART: f64 = 0.4;
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
    /// The most that has arrived, in bytes per second.
    top: f64,
}

/// The rate that is kept beside a queue that stands, where so much has arrived.
pub(super) fn kept(top: f64) -> f64 {
    KEPT * top
}

impl Shared {
    /// The queue is full at `now`. `arrives` and `top`, the most that has: bytes per second.
    pub(super) fn new(
        now: Instant,
        arrives: f64,
        top: f64,
        packet_bytes: u32,
        round_trip: Duration,
    ) -> Self {
        let round_trip = round_trip.clamp(*ROUND_TRIP.start(), *ROUND_TRIP.end());
        let growth = GROWTH * f64::from(packet_bytes) / round_trip.as_secs_f64();
        Self { from: REDUCED * arrives, at: now, growth, top }
    }

    /// The rate before.
    pub(super) fn before(&self) -> f64 {
        self.from / REDUCED
    }

    /// The rate that grows no further beside other traffic.
    pub(super) fn part(&self) -> f64 {
        PART * self.top
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
