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
///
/// Two things are ours. Each filter takes out of the old as much as it puts in of the new: with the
/// RFC's update rules `Z` loses `1 - 0.7^(G Y)` of itself, 0.357 for an event, and gains 0.3, so that losses
/// as regular as those of a full queue are taken for 1/0.84 as many. The guess with which it
/// begins counts as one event, not as all that ever were.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LossEstimate {
    /// Packets since the last loss event began.
    since_event: f64,
    /// Packets before it, in this stretch of time.
    before_event: f64,
    /// Loss events in this stretch of time.
    events: f64,
    /// Packets per loss event, until this stretch of time.
    interval: f64,
    /// Loss events that it is the average of.
    interval_events: f64,
}

impl LossEstimate {
    /// Nothing is known but that it may be about this probability.
    pub(super) fn starting_at(probability: f64) -> Self {
        Self { interval: 1.0 / probability, interval_events: 1.0, ..Self::default() }
    }

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
        let share = gain * self.events;
        self.interval = self.interval_with(share, gain * self.before_event);
        self.interval_events += share;
        self.before_event *= 1.0 - gain;
        self.events *= 1.0 - gain;
    }

    /// `LOSSP`: loss events per packet.
    pub(super) fn probability(&self) -> f64 {
        let Self { since_event, before_event, events, .. } = *self;
        let with_events = self.interval_with(events, before_event);
        // What it would be were the next packet lost.
        let with_next = self.interval_with(events + 1.0, before_event + since_event + 1.0);
        1.0 / with_events.max(with_next).max(1.0)
    }

    /// `interval`, if so many events with so many packets had taken their shares of it.
    fn interval_with(&self, events: f64, packets: f64) -> f64 {
        if events <= 0.0 {
            return self.interval;
        }
        let weight = |events: f64| -(events * (1.0 - DELTA).ln()).exp_m1();
        let fresh = weight(events) / weight(self.interval_events + events);
        self.interval + fresh * (packets / events - self.interval)
    }
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
    fn one_loss_in_so_many_packets_is_one_in_so_many() {
        for period in [30, 100, 3000] {
            let mut estimate = LossEstimate::starting_at(0.5);
            for packet in 0..100 * period {
                estimate.on_packets(1.0);
                if packet % period == period - 1 {
                    estimate.on_event();
                }
                if packet % 50 == 49 {
                    estimate.on_epoch(20);
                }
            }
            let loss = estimate.probability() * f64::from(period);
            assert!((loss - 1.0).abs() < 0.01, "{period}: {loss}");
        }
    }

    #[test]
    fn the_guess_at_the_beginning_counts_as_one_event() {
        let mut estimate = LossEstimate::starting_at(0.5);
        estimate.on_packets(100.0);
        estimate.on_event();
        // Two events, the later one with a weight of 1, the earlier one of 0.7.
        let interval = 1.0 / estimate.probability();
        assert!((interval - (100.0 + 0.7 * 2.0) / 1.7).abs() < 1e-9, "{interval}");
    }

    #[test]
    fn a_longer_stretch_without_loss_makes_the_estimate_better_at_once() {
        let mut estimate = LossEstimate::starting_at(0.05);
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
