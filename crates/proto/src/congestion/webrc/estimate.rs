//! Loss and round trip of WEBRC's receiver, and the rate that TCP would have with them (RFC 3738,
//! sections 3.2.2.1 to 3.2.2.3).

use std::time::Duration;

/// `Nu`
const NU: f64 = 0.3;
/// `Delta`
const DELTA: f64 = 0.3;
/// `Alpha`
const ALPHA: f64 = 0.25;
/// Less is not measured: joins are answered by processors, not by wires.
const LEAST_ROUND_TRIP: f64 = 0.001;

/// CUBIC's mean window is so many packets times `(round trip / loss)^(3/4)`: `(C (3 + beta) / (4 (1 -
/// beta)))^(1/4)` with C = 0.4 and beta = 0.7, which are the constants of RFC 9438.
const CUBIC_WINDOW: f64 = 1.054;

/// The average loss event rate, forgetting with a filter of its own (`W`, `X`, `Y`, `Z`).
#[derive(Clone, Debug, Default)]
pub(super) struct LossEstimate {
    /// Packets since the last loss event began.
    since_event: f64,
    /// Packets before it, in this stretch of time.
    before_event: f64,
    /// Loss events in this stretch of time.
    events: f64,
    /// Packets per loss event, until this stretch of time.
    interval: f64,
}

impl LossEstimate {
    /// Packets that came or should have come.
    pub(super) fn on_packets(&mut self, count: f64) {
        self.since_event += count;
    }

    /// A loss event begins.
    pub(super) fn on_event(&mut self) {
        self.before_event += self.since_event;
        self.since_event = 0.0;
        self.events += 1.0;
    }

    /// One of so many epochs of a slot is over.
    pub(super) fn on_epoch(&mut self, epochs_per_slot: u32) {
        let gain = NU / f64::from(epochs_per_slot);
        let events = gain * self.events;
        self.interval = mix(self.interval, events, gain * self.before_event / (events + 1.0));
        self.before_event *= 1.0 - gain;
        self.events *= 1.0 - gain;
    }

    /// `LOSSP`: loss events per packet.
    pub(super) fn probability(&self) -> f64 {
        let Self { since_event, before_event, events, interval } = *self;
        let with_events = mix(interval, events, before_event / (events + 1.0));
        let all = before_event + since_event + 1.0;
        let with_next = mix(interval, events + 1.0, all / (events + 2.0));
        1.0 / with_events.max(with_next).max(1.0)
    }

    /// Starts again at this probability.
    pub(super) fn reset(&mut self, probability: f64) {
        *self = Self { interval: 1.0 / probability, ..Self::default() };
    }
}

/// `interval`, of which `events` events have taken their shares for `recent`.
fn mix(interval: f64, events: f64, recent: f64) -> f64 {
    let kept = (1.0 - DELTA).powf(events);
    interval * kept + recent * (1.0 - kept * (1.0 - DELTA))
}

/// How long joins take, which is the time in which this receiver acts (`ARTT`, `V`).
#[derive(Clone, Copy, Debug)]
pub(super) struct RoundTrip {
    average: f64,
    /// Mean of the squares.
    square: f64,
    samples: i32,
    /// `P`: a sample takes no more of the average than this leaves.
    decay: f64,
}

impl RoundTrip {
    /// What the base channel took.
    pub(super) fn new(first: Duration, decay: f64) -> Self {
        let average = first.as_secs_f64().max(LEAST_ROUND_TRIP);
        Self { average, square: average * average, samples: 0, decay }
    }

    /// A wave took `delay`, of which on average `wait` seconds are the space between its packets.
    pub(super) fn on_join(&mut self, delay: Duration, wait: f64) {
        let sample = delay.as_secs_f64() - wait;
        self.samples = self.samples.saturating_add(1);
        let omega = (ALPHA * self.average * self.average / self.square).clamp(0.001, 0.999);
        let rho = omega / (1.0 - (1.0 - omega).powi(self.samples + 1));
        self.square = (1.0 - rho) * self.square + rho * sample * sample;
        let least = (self.decay * self.average).max(LEAST_ROUND_TRIP);
        self.average = ((1.0 - rho) * self.average + rho * sample).max(least);
        // Samples near zero must not make the next one count for all.
        self.square = self.square.max(self.average * self.average / 4.0);
    }

    /// Seconds.
    pub(super) const fn average(&self) -> f64 {
        self.average
    }

    /// Seconds after which a join has failed.
    pub(super) fn join_timeout(&self) -> f64 {
        (2.0 * self.square / self.average).max(10.0 * self.average)
    }
}

/// `REQN`: packets per second of TCP at this loss event rate and round trip.
///
/// The RFC's equation knows the TCP of 2004, Reno. Where long round trips and few losses leave room,
/// today's, CUBIC, has a larger window, and that is taken instead. What timeouts cost is the same.
pub(super) fn rate_at(loss: f64, round_trip: f64) -> f64 {
    // Both are round trips per packet: of Reno (RFC 3738), and of CUBIC (RFC 9438, section 5.1).
    let reno = 0.816 * loss.sqrt();
    let root = (loss / round_trip).sqrt();
    let cubic = root * root.sqrt() / CUBIC_WINDOW;
    let timeouts = 7.35 * loss * loss.sqrt() * (1.0 + 32.0 * loss * loss);
    1.0 / (round_trip * (reno.min(cubic) + timeouts))
}

/// The loss event rate at which TCP would have this rate.
pub(super) fn loss_at(rate: f64, round_trip: f64) -> f64 {
    // One loss in 10^12 packets is a day at 100 Gbit/s; the equation falls all the way to 1.
    let (mut low, mut high) = (1e-12_f64, 1.0_f64);
    for _ in 0..60 {
        let middle = (low * high).sqrt();
        if rate_at(middle, round_trip) > rate {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_that_of_the_equation() {
        // 0.1 (0.816 + 7.35 x 0.01 (1 + 32 x 0.0001)) = 0.0889735; 100 ms.
        assert!((rate_at(0.01, 0.1) - 112.39).abs() < 0.01);
        // At a loss rate of 1 it is 1 / (0.816 + 7.35 x 33) packets per round trip.
        assert!((rate_at(1.0, 1.0) - 0.004_109).abs() < 1e-6);
    }

    #[test]
    fn the_rate_is_that_of_cubic_where_it_has_the_larger_window() {
        // One loss in 20 000 packets, round trips of 80.4 ms: 267.5 packets, where Reno has 173.2.
        let window = rate_at(1.0 / 20_000.0, 0.0804) * 0.0804;
        assert!((window / 267.5 - 1.0).abs() < 0.001, "{window}");
        // In a local network Reno's is larger at the same loss.
        let window = rate_at(1.0 / 20_000.0, 0.001) * 0.001;
        assert!((window / 173.2 - 1.0).abs() < 0.001, "{window}");
    }

    #[test]
    fn loss_and_rate_are_inverse() {
        for loss in [1e-6, 1e-3, 0.02, 0.3] {
            let back = loss_at(rate_at(loss, 0.05), 0.05);
            assert!((back / loss - 1.0).abs() < 1e-6, "{loss} {back}");
        }
    }

    #[test]
    fn one_loss_in_a_hundred_packets_is_one_per_cent() {
        let mut estimate = LossEstimate::default();
        estimate.reset(0.5);
        for packet in 0..20_000 {
            estimate.on_packets(1.0);
            if packet % 100 == 99 {
                estimate.on_event();
            }
            if packet % 50 == 49 {
                estimate.on_epoch(20);
            }
        }
        let loss = estimate.probability();
        assert!((0.008..0.0125).contains(&loss), "{loss}");
    }

    #[test]
    fn a_longer_stretch_without_loss_makes_the_estimate_better_at_once() {
        let mut estimate = LossEstimate::default();
        estimate.reset(0.05);
        let before = estimate.probability();
        estimate.on_packets(1000.0);
        assert!(estimate.probability() < before / 2.0);
    }

    #[test]
    fn samples_below_zero_do_not_make_time_run_backwards() {
        let mut round_trip = RoundTrip::new(Duration::from_millis(100), 0.75);
        for _ in 0..1000 {
            round_trip.on_join(Duration::ZERO, 0.5);
            assert!(round_trip.average() >= LEAST_ROUND_TRIP && round_trip.join_timeout() >= 0.01);
        }
    }

    #[test]
    fn the_round_trip_follows_what_joins_take() {
        let mut round_trip = RoundTrip::new(Duration::from_millis(500), 0.75);
        for _ in 0..50 {
            round_trip.on_join(Duration::from_millis(180), 0.1);
        }
        assert!((0.07..0.09).contains(&round_trip.average()), "{}", round_trip.average());
    }
}
