//! The rate limit of a sender.

use crate::time::Instant;
use std::time::Duration;

/// A rate limit with bounded catching up: in any window of length `w`, at most
/// `min(1.25 * rate * (w + peak_window), rate * (w + DEBT)) + burst` bytes pass; without a peak
/// window at most `rate * w + burst`.
///
/// The state is two time stamps, each that of a token bucket (the generic cell rate algorithm of
/// ITU-T I.371).
///
/// - The *average* is the time at which all packets so far are paid for at the rate. If the sender
///   is late, it stays in the past: a debt, which is paid back by sending faster. A debt of more
///   than [`DEBT`](Self::DEBT) is forgotten.
/// - The *peak* limits how fast. It advances at 1.25 times the rate and remains at most the peak
///   window in the past, so that after a pause several GSO batches leave together. A limit of 1.25
///   times the rate between batches would not do: on a busy host each wake-up is late, so that each
///   would send one batch, late.
///
/// A sender with nothing to send incurs no debt ([`rest`](Self::rest)).
/// The costs of packets are rounded up to whole nanoseconds, so that rounding can only make the
/// sender slower.
#[derive(Clone, Debug)]
pub struct Pacer {
    rate_bytes_per_second: u64,
    burst: Duration,
    /// Time of the burst at the peak rate.
    peak_burst: Duration,
    peak_window: Duration,
    average: Instant,
    peak: Instant,
    /// Nothing has been sent since the beginning, or since the sender had nothing to send.
    is_resting: bool,
    /// Cost of the packet that was rejected last.
    refused: Duration,
}

/// The peak rate in rates: numerator and denominator.
const PEAK: (u32, u32) = (5, 4);

impl Pacer {
    /// Window whose bytes may leave back to back from a sender that is on time: short enough for
    /// the queue of any switch, long enough for GSO batches.
    pub const BURST_WINDOW: Duration = Duration::from_millis(2);

    /// Default of the peak window: pauses of a busy host last some milliseconds. After 8 ms, 10 ms
    /// of the rate leave back to back. A window of 100 ms loses packets in the receive buffers of
    /// hosts at 300 Mbit/s.
    pub const PEAK_WINDOW: Duration = Duration::from_millis(20);

    /// Most lost time that is made up for.
    pub const DEBT: Duration = Duration::from_millis(100);

    /// A pacer without a peak window, which never exceeds the rate to catch up. The burst is two
    /// packets or [`BURST_WINDOW`](Self::BURST_WINDOW), whichever is larger. A rate of 0 is taken
    /// as 1.
    pub fn new(rate_bytes_per_second: u64, max_packet_bytes: u32) -> Self {
        let rate = rate_bytes_per_second.max(1);
        let burst = cost(2 * u64::from(max_packet_bytes), rate).max(Self::BURST_WINDOW);
        let (numerator, denominator) = PEAK;
        Self {
            rate_bytes_per_second: rate,
            burst,
            // Rounded down, as costs are rounded up.
            peak_burst: burst * denominator / numerator,
            peak_window: Duration::ZERO,
            average: Instant::ZERO,
            peak: Instant::ZERO,
            is_resting: true,
            refused: Duration::ZERO,
        }
    }

    /// Sets the peak window; zero: lost time is lost.
    #[must_use]
    pub fn with_peak_window(self, peak_window: Duration) -> Self {
        Self { peak_window, ..self }
    }

    /// Sets another rate. The bytes of a burst that are not paid for yet remain so many bytes: a
    /// rate that falls opens no second burst. A debt remains a time.
    pub fn set_rate(&mut self, now: Instant, rate_bytes_per_second: u64, max_packet_bytes: u32) {
        let Self { peak_window, average, peak, is_resting, rate_bytes_per_second: before, .. } =
            *self;
        let pacer = Self::new(rate_bytes_per_second, max_packet_bytes);
        let rate = pacer.rate_bytes_per_second;
        let repriced = |paid: Instant| {
            let bytes_before = paid.saturating_since(now).as_nanos() * u128::from(before);
            let ahead = u64::try_from(bytes_before.div_ceil(u128::from(rate)));
            paid.min(now) + Duration::from_nanos(ahead.unwrap_or(u64::MAX))
        };
        let (average, peak) = (repriced(average), repriced(peak));
        *self = Self { average, peak, is_resting, ..pacer.with_peak_window(peak_window) };
    }

    /// Pays for a packet of `bytes` if it may leave now.
    pub fn take(&mut self, now: Instant, bytes: u32) -> bool {
        let cost = cost(u64::from(bytes), self.rate_bytes_per_second);
        let catches_up = !self.peak_window.is_zero() && !self.is_resting;
        let debt = if catches_up { Self::DEBT } else { Duration::ZERO };
        let average = self.average.max(now - debt) + cost;
        let peak = self.peak.max(now - self.peak_window) + at_peak(cost);
        let fits = average <= now + self.burst
            && (self.peak_window.is_zero() || peak <= now + self.peak_burst);
        if fits {
            (self.average, self.peak) = (average, peak);
            self.is_resting = false;
        } else {
            self.refused = cost;
        }
        fits
    }

    /// Notes that the sender has nothing to send: the time until its next packet is no debt.
    pub fn rest(&mut self) {
        self.is_resting = true;
    }

    /// When a sender whose packet was refused should try again: when a quarter of the burst may
    /// leave, so that packets leave in GSO batches rather than one by one. If a packet is more than
    /// that, the time at which it may leave: earlier, the sender would only try again and again.
    pub fn next_wake(&self) -> Instant {
        let room = self.refused.max(self.burst / 4);
        let average = self.average + room - self.burst;
        if self.peak_window.is_zero() {
            return average;
        }
        average.max(self.peak + at_peak(room) - self.peak_burst)
    }
}

fn cost(bytes: u64, rate_bytes_per_second: u64) -> Duration {
    let nanos = (u128::from(bytes) * 1_000_000_000).div_ceil(u128::from(rate_bytes_per_second));
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// The cost at the peak rate of a packet with this cost at the rate.
fn at_peak(cost: Duration) -> Duration {
    let (numerator, denominator) = PEAK;
    let nanos = u64::try_from(cost.as_nanos()).unwrap_or(u64::MAX);
    let nanos = nanos.saturating_mul(denominator.into()).div_ceil(numerator.into());
    Duration::from_nanos(nanos)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The rate rule (`docs/tuning.md`) in every window of a greedy run with random pauses, of
        /// which some are rests, and with other rates, of which none exceeds the first.
        #[test]
        fn no_window_exceeds_what_the_rate_rule_allows(
            rate in 1_000_u64..2_000_000_000,
            packet in 64_u32..9_000,
            peak_window in prop_oneof![Just(0_u64), 1_u64..100_000_000],
            gaps in proptest::collection::vec(
                (
                    prop_oneof![0_u64..5_000_000, 0_u64..300_000_000],
                    proptest::bool::ANY,
                    proptest::option::of(1_u64..=1_000),
                ),
                1..60,
            ),
        ) {
            let mut pacer =
                Pacer::new(rate, packet).with_peak_window(Duration::from_nanos(peak_window));
            let burst = u128::from(rate) * 2 / 1000;
            let burst = burst.max(2 * u128::from(packet)) + 1;
            let (mut now, mut sent) = (Instant::ZERO, Vec::new());
            for (gap, rests, permille) in gaps {
                now = now + Duration::from_nanos(gap);
                if let Some(permille) = permille {
                    pacer.set_rate(now, rate * permille / 1_000, packet);
                }
                if rests {
                    pacer.rest();
                }
                while sent.len() < 5_000 && pacer.take(now, packet) {
                    sent.push(now);
                }
            }
            for (i, &from) in sent.iter().enumerate() {
                let last = sent.len() - 1;
                for j in [i, (i + 7).min(last), (i + 70).min(last), last] {
                    let bytes = (j - i + 1) as u128 * u128::from(packet);
                    let window = u128::from(sent[j].as_nanos() - from.as_nanos());
                    // One packet's rounding to whole nanoseconds is part of the allowance.
                    let allowed = allowance(rate, window, peak_window.into()) + burst;
                    prop_assert!(bytes <= allowed, "{bytes} bytes in {window} ns, {allowed} allowed");
                }
            }
        }
    }

    /// Bytes that the rate rule allows in a window beyond the burst.
    fn allowance(rate: u64, window_nanos: u128, peak_window_nanos: u128) -> u128 {
        let bytes = |nanos: u128| u128::from(rate) * nanos / 1_000_000_000;
        if peak_window_nanos == 0 {
            return bytes(window_nanos);
        }
        let peak = bytes(5 * (window_nanos + peak_window_nanos)) / 4;
        peak.min(bytes(window_nanos + 100_000_000))
    }

    /// Bytes that a greedy sender sends that sleeps until the next wake-up and wakes up late, by
    /// the times that `lateness` returns.
    fn greedy(pacer: &mut Pacer, span: Duration, lateness: impl Fn(u64) -> Duration) -> u64 {
        let (mut now, mut bytes, mut wakes) = (Instant::ZERO, 0, 0);
        while now < Instant::ZERO + span {
            while pacer.take(now, 1_392) {
                bytes += 1_392;
            }
            wakes += 1;
            now = (pacer.next_wake() + lateness(wakes)).max(now + Duration::from_nanos(1));
        }
        bytes
    }

    const SECOND: Duration = Duration::from_secs(1);
    const fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    #[test]
    fn a_sender_on_time_reaches_its_rate() {
        for peak_window in [Duration::ZERO, Pacer::PEAK_WINDOW] {
            let mut pacer = Pacer::new(12_500_000, 1_392).with_peak_window(peak_window);
            let bytes = greedy(&mut pacer, SECOND, |_| Duration::ZERO);
            assert!((12_300_000..12_540_000).contains(&bytes), "{bytes}");
        }
    }

    #[test]
    fn a_sender_that_always_wakes_late_reaches_its_rate_with_a_peak_window_only() {
        // As beside busy loops: each wake-up is 4 to 16 ms late.
        let late = |wake: u64| ms(4 + 3 * (wake % 5));
        let bytes = greedy(&mut Pacer::new(12_500_000, 1_392), SECOND, late);
        assert!(bytes < 4_000_000, "{bytes}");
        let mut pacer = Pacer::new(12_500_000, 1_392).with_peak_window(Pacer::PEAK_WINDOW);
        let bytes = greedy(&mut pacer, SECOND, late);
        assert!((12_200_000..12_540_000).contains(&bytes), "{bytes}");
    }

    /// Bytes that leave at `now` from a greedy sender.
    fn at_once(pacer: &mut Pacer, now: Instant) -> u64 {
        let mut bytes = 0;
        while pacer.take(now, 1_000) {
            bytes += 1_000;
        }
        bytes
    }

    #[test]
    fn a_burst_after_a_pause_is_bounded_and_a_longer_debt_is_paid_back_later() {
        // 1 MB/s: a packet per millisecond, and a burst of 2 kB.
        let mut pacer = Pacer::new(1_000_000, 1_000).with_peak_window(Pacer::PEAK_WINDOW);
        let start = Instant::ZERO + SECOND;
        assert_eq!(at_once(&mut pacer, start), 2_000);
        assert_eq!(at_once(&mut pacer, start + ms(8)), 8_000);
        // 25 ms of the rate, and the burst.
        assert_eq!(at_once(&mut pacer, start + ms(68)), 27_000);
        // Then at 1.25 times the rate until nothing is owed.
        assert_eq!(at_once(&mut pacer, start + ms(72)), 5_000);
        let mut sent = 42_000;
        for tick in 73..400 {
            sent += at_once(&mut pacer, start + ms(tick));
        }
        assert_eq!(sent, 401_000);
    }

    #[test]
    fn more_debt_than_a_tenth_of_a_second_is_forgotten() {
        let mut pacer = Pacer::new(1_000_000, 1_000).with_peak_window(Pacer::PEAK_WINDOW);
        assert_eq!(at_once(&mut pacer, Instant::ZERO), 2_000);
        let start = Instant::ZERO + SECOND;
        let sent: u64 = (0..1_000).map(|tick| at_once(&mut pacer, start + ms(tick))).sum();
        // The debt, the second, and the burst.
        assert_eq!(sent, 100_000 + 999_000 + 2_000);
    }

    #[test]
    fn the_beginning_and_a_rest_incur_no_debt() {
        let mut pacer = Pacer::new(1_000_000, 1_000).with_peak_window(Pacer::PEAK_WINDOW);
        for second in 1..4 {
            assert_eq!(at_once(&mut pacer, Instant::from_nanos(second * 1_000_000_000)), 2_000);
            pacer.rest();
        }
    }

    #[test]
    fn a_sender_that_wakes_at_next_wake_can_send_the_packet() {
        for (rate, packet) in [(1_000, 1_392), (1_000_000, 1_392), (12_500_000, 1_392)] {
            let mut pacer = Pacer::new(rate, packet).with_peak_window(Pacer::PEAK_WINDOW);
            let mut now = Instant::from_nanos(1_000_000_000_000);
            for turn in 0..100 {
                if turn == 50 {
                    // The peak limits what follows.
                    now = now + SECOND;
                }
                while pacer.take(now, packet) {}
                let wake = pacer.next_wake();
                assert!(wake > now, "{rate}: at {now:?} again");
                now = wake;
                assert!(pacer.take(now, packet), "{rate}: nothing at {now:?}");
            }
        }
    }

    #[test]
    fn a_packet_larger_than_a_millisecond_still_passes() {
        let mut pacer = Pacer::new(1_000, 1_392);
        assert!(pacer.take(Instant::ZERO, 1_392));
        assert!(pacer.take(Instant::ZERO, 1_392));
        assert!(!pacer.take(Instant::ZERO, 1_392));
        assert!(pacer.take(Instant::from_nanos(1_392_000_000), 1_392));
    }
}
