//! A TCP flow with CUBIC (RFC 9438) that has always more to send, as a model: a window of packets,
//! which each acknowledgement and each loss changes.

use fontana_proto::Instant;
use std::collections::VecDeque;
use std::time::Duration;

/// RFC 9438, sections 4.1 and 4.6.
const C: f64 = 0.4;
const BETA: f64 = 0.7;
/// Packets of the first window (RFC 6928).
const FIRST: f64 = 10.0;

pub(crate) struct Cubic {
    starts_at: Instant,
    /// From a packet's departure from the queue to the arrival of its acknowledgement.
    delay: Duration,
    window: f64,
    /// The window before the last loss.
    most: f64,
    is_slow_start: bool,
    /// When the window was reduced last.
    reduced_at: Instant,
    in_flight: u32,
    /// When acknowledgements arrive, and duplicate ones that tell of a loss.
    acknowledged: VecDeque<Instant>,
    lost: VecDeque<Instant>,
    /// Packets that have left the queue.
    pub(crate) delivered: u64,
}

impl Cubic {
    pub(crate) fn new(starts_at: Instant, delay: Duration) -> Self {
        Self {
            starts_at,
            delay,
            window: FIRST,
            most: 0.0,
            is_slow_start: true,
            reduced_at: Instant::ZERO,
            in_flight: 0,
            acknowledged: VecDeque::new(),
            lost: VecDeque::new(),
            delivered: 0,
        }
    }

    /// Packets that it sends now. `queued`: how long a packet waits in the queue.
    pub(crate) fn send(&mut self, now: Instant, queued: Duration) -> u32 {
        let round_trip = self.delay + queued;
        while self.acknowledged.front().is_some_and(|&at| at <= now) {
            self.acknowledged.pop_front();
            self.in_flight -= 1;
            self.grow(now, round_trip);
        }
        while self.lost.front().is_some_and(|&at| at <= now) {
            self.lost.pop_front();
            self.in_flight -= 1;
            if now >= self.reduced_at + round_trip {
                self.most = self.window;
                self.window = (BETA * self.window).max(2.0);
                (self.is_slow_start, self.reduced_at) = (false, now);
            }
        }
        if now < self.starts_at {
            return 0;
        }
        let more = (self.window as u32).saturating_sub(self.in_flight);
        self.in_flight += more;
        more
    }

    fn grow(&mut self, now: Instant, round_trip: Duration) {
        if self.is_slow_start {
            self.window += 1.0;
            return;
        }
        let since = now.saturating_since(self.reduced_at).as_secs_f64();
        let trip = round_trip.as_secs_f64().max(1e-4);
        let k = (self.most * (1.0 - BETA) / C).cbrt();
        let cubic = self.most + C * (since + trip - k).powi(3);
        // As Reno would (section 4.3).
        let friendly = BETA * self.most + 3.0 * (1.0 - BETA) / (1.0 + BETA) * since / trip;
        let target = cubic.clamp(self.window, 1.5 * self.window).max(friendly);
        self.window += ((target - self.window) / self.window).max(0.0);
    }

    /// One of its packets has left the queue.
    pub(crate) fn deliver(&mut self, now: Instant) {
        self.delivered += 1;
        self.acknowledged.push_back(now + self.delay);
    }

    /// One was dropped at the end of the queue: the acknowledgements of those before it arrive
    /// first.
    pub(crate) fn drop(&mut self, now: Instant, queued: Duration) {
        self.lost.push_back(now + self.delay + queued);
    }
}
