//! Loss event rate and round trip of WEBRC's receiver, and the rate of TCP at these values (RFC
//! 3738, sections 3.2.2.1 to 3.2.2.3).

use std::time::Duration;

/// `Nu`
const NU: f64 = 0.3;
/// `Delta`
const DELTA: f64 = 0.3;
/// `Alpha`
const ALPHA: f64 = 0.25;
/// Shortest round trip in seconds. Shorter times measure the delay of hosts, not of the network.
const LEAST_ROUND_TRIP: f64 = 0.001;

/// Factor of CUBIC's mean window, which is this many packets times `(round trip / loss)^(3/4)`: `(C
/// (3 + beta) / (4 (1 - beta)))^(1/4)` with C = 0.4 and beta = 0.7, the constants of RFC 9438.
const CUBIC_WINDOW: f64 = 1.054;

/// Moving average of the loss event rate (`W`, `X`, `Y`, `Z`).
///
/// Two rules are not in the RFC. First, each filter removes as much of the old value as it adds of
/// the new. With the RFC's rules, `Z` loses `1 - 0.7^(G Y)` of itself, 0.357 for an event, and
/// gains 0.3; losses as regular as those of a full queue then count as 1/0.84 as many. Second, the
/// initial guess counts as one event, not as the whole history.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LossEstimate {
    /// Packets since the last loss event began.
    since_event: f64,
    /// Packets before it, in the current filter period.
    before_event: f64,
    /// Loss events in the current filter period.
    events: f64,
    /// Average packets per loss event, until the current filter period.
    interval: f64,
    /// Weight of this average in loss events.
    interval_events: f64,
}

impl LossEstimate {
    /// An estimate whose only information is this guess.
    pub(super) fn starting_at(probability: f64) -> Self {
        Self { interval: 1.0 / probability, interval_events: 1.0, ..Self::default() }
    }

    /// Adds packets that arrived or should have arrived.
    pub(super) fn on_packets(&mut self, count: f64) {
        self.since_event += count;
    }

    /// Begins a loss event.
    pub(super) fn on_event(&mut self) {
        self.before_event += self.since_event;
        self.since_event = 0.0;
        self.events += 1.0;
    }

    /// Ends one epoch of `epochs_per_slot` in a slot.
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
        // The estimate if the next packet were lost.
        let with_next = self.interval_with(events + 1.0, before_event + since_event + 1.0);
        1.0 / with_events.max(with_next).max(1.0)
    }

    /// `interval` after so many more events with so many packets.
    fn interval_with(&self, events: f64, packets: f64) -> f64 {
        if events <= 0.0 {
            return self.interval;
        }
        let weight = |events: f64| -(events * (1.0 - DELTA).ln()).exp_m1();
        let fresh = weight(events) / weight(self.interval_events + events);
        self.interval + fresh * (packets / events - self.interval)
    }
}

/// Moving average of the time that joins take, which is the reaction time of the receiver (`ARTT`,
/// `V`).
#[derive(Clone, Copy, Debug)]
pub(super) struct RoundTrip {
    average: f64,
    /// Mean of the squares.
    square: f64,
    samples: i32,
    /// `P`: least fraction of the average that remains after a sample.
    decay: f64,
}

impl RoundTrip {
    /// An average that begins with the time that the base channel took.
    pub(super) fn new(first: Duration, decay: f64) -> Self {
        let average = first.as_secs_f64().max(LEAST_ROUND_TRIP);
        Self { average, square: average * average, samples: 0, decay }
    }

    /// Adds the sample of a wave that took `delay`, of which `wait` seconds are the mean space
    /// between its packets.
    pub(super) fn on_join(&mut self, delay: Duration, wait: f64) {
        let sample = delay.as_secs_f64() - wait;
        self.samples = self.samples.saturating_add(1);
        let omega = (ALPHA * self.average * self.average / self.square).clamp(0.001, 0.999);
        let rho = omega / (1.0 - (1.0 - omega).powi(self.samples + 1));
        self.square = (1.0 - rho) * self.square + rho * sample * sample;
        let least = (self.decay * self.average).max(LEAST_ROUND_TRIP);
        self.average = ((1.0 - rho) * self.average + rho * sample).max(least);
        // After samples near zero, the next one must not determine the average.
        self.square = self.square.max(self.average * self.average / 4.0);
    }

    /// Average in seconds.
    pub(super) const fn average(&self) -> f64 {
        self.average
    }

    /// Time in seconds after which a join has failed.
    pub(super) fn join_timeout(&self) -> f64 {
        (2.0 * self.square / self.average).max(10.0 * self.average)
    }
}

/// `REQN`: rate of TCP in packets per second at this loss event rate and round trip.
///
/// The RFC's equation is that of Reno, the TCP of 2004. At long round trips and low loss rates
/// CUBIC has a larger window, which is used instead. The cost of timeouts is the same.
pub(super) fn rate_at(loss: f64, round_trip: f64) -> f64 {
    // Both are round trips per packet: of Reno (RFC 3738), and of CUBIC (RFC 9438, section 5.1).
    let reno = 0.816 * loss.sqrt();
    let root = (loss / round_trip).sqrt();
    let cubic = root * root.sqrt() / CUBIC_WINDOW;
    let timeouts = 7.35 * loss * loss.sqrt() * (1.0 + 32.0 * loss * loss);
    1.0 / (round_trip * (reno.min(cubic) + timeouts))
}

/// The loss event rate at which TCP has this rate.
pub(super) fn loss_at(rate: f64, round_trip: f64) -> f64 {
    // One loss in 10^12 packets is about one per day at 100 Gbit/s. The equation decreases up to a
    // loss rate of 1.
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
        // In a local network Reno's window is larger at the same loss rate.
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
        // Two events: the later one has a weight of 1, the earlier one of 0.7.
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
    fn samples_below_zero_keep_the_average_above_its_minimum() {
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
