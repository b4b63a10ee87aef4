//! The rate limit of a sender.

use crate::time::Instant;
use std::time::Duration;

/// A token bucket: in any window of length `w`, at most `rate * w + burst` bytes pass.
///
/// The state is one time stamp (the generic cell rate algorithm of ITU-T I.371): the time at which
/// the bucket is full again. The cost of a packet is rounded up to whole nanoseconds, so that
/// rounding can only make the sender slower.
#[derive(Clone, Debug)]
pub struct Pacer {
    rate_bytes_per_second: u64,
    burst: Duration,
    full_at: Instant,
    /// Cost of the packet that was rejected last.
    refused: Duration,
}

impl Pacer {
    /// Window whose bytes may leave back to back: long enough to keep the rate if the sender wakes
    /// up a millisecond late, short enough for the queue of any switch.
    pub const BURST_WINDOW: Duration = Duration::from_millis(2);

    /// A full bucket. The burst is two packets or [`BURST_WINDOW`](Self::BURST_WINDOW), whichever
    /// is larger. A rate of 0 is taken as 1.
    pub fn new(rate_bytes_per_second: u64, max_packet_bytes: u32) -> Self {
        let rate = rate_bytes_per_second.max(1);
        let two_packets = cost(2 * u64::from(max_packet_bytes), rate);
        Self {
            rate_bytes_per_second: rate,
            burst: two_packets.max(Self::BURST_WINDOW),
            full_at: Instant::ZERO,
            refused: Duration::ZERO,
        }
    }

    /// Takes `bytes` out of the bucket if it contains them.
    pub fn take(&mut self, now: Instant, bytes: u32) -> bool {
        let cost = cost(u64::from(bytes), self.rate_bytes_per_second);
        let full_at = self.full_at.max(now) + cost;
        let fits = full_at <= now + self.burst;
        if fits {
            self.full_at = full_at;
        } else {
            self.refused = cost;
        }
        fits
    }

    /// When a sender that found the bucket empty should try again: when a quarter of it is full, so
    /// that packets leave in GSO batches rather than one by one. The other three quarters allow for
    /// waking up 1.5 ms late; what overflows is lost. If a packet is more than a quarter of the
    /// bucket, the time at which it fits: earlier, the sender would only try again and again.
    pub fn next_wake(&self) -> Instant {
        self.full_at + self.refused.max(self.burst / 4) - self.burst
    }
}

fn cost(bytes: u64, rate_bytes_per_second: u64) -> Duration {
    let nanos = (u128::from(bytes) * 1_000_000_000).div_ceil(u128::from(rate_bytes_per_second));
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The rate rule (`docs/tuning.md`) in every window of a greedy run with random wake-ups.
        #[test]
        fn no_window_exceeds_rate_times_window_plus_burst(
            rate in 1_000_u64..2_000_000_000,
            packet in 64_u32..9_000,
            gaps in proptest::collection::vec(0_u64..5_000_000, 1..60),
        ) {
            let mut pacer = Pacer::new(rate, packet);
            let burst = u128::from(rate) * 2 / 1000;
            let burst = burst.max(2 * u128::from(packet)) + 1;
            let (mut now, mut sent) = (Instant::ZERO, Vec::new());
            for gap in gaps {
                now = now + Duration::from_nanos(gap);
                while sent.len() < 5_000 && pacer.take(now, packet) {
                    sent.push(now);
                }
            }
            for (i, &from) in sent.iter().enumerate() {
                let last = sent.len() - 1;
                for j in [i, (i + 7).min(last), last] {
                    let bytes = (j - i + 1) as u128 * u128::from(packet);
                    let window = u128::from(sent[j].as_nanos() - from.as_nanos());
                    // One packet's rounding to whole nanoseconds is part of the allowance.
                    let allowed = u128::from(rate) * window / 1_000_000_000 + burst;
                    prop_assert!(bytes <= allowed, "{bytes} bytes in {window} ns, {allowed} allowed");
                }
            }
        }
    }

    #[test]
    fn a_steady_sender_reaches_its_rate() {
        let mut pacer = Pacer::new(12_500_000, 1_392);
        let (mut now, mut bytes) = (Instant::ZERO, 0_u64);
        while now < Instant::from_nanos(1_000_000_000) {
            while pacer.take(now, 1_392) {
                bytes += 1_392;
            }
            now = now.max(pacer.next_wake()).max(now + Duration::from_nanos(1));
        }
        assert!((12_300_000..12_540_000).contains(&bytes), "{bytes}");
    }

    #[test]
    fn a_sender_that_wakes_at_next_wake_can_send_the_packet() {
        for (rate, packet) in [(1_000, 1_392), (1_000_000, 1_392), (12_500_000, 1_392)] {
            let mut pacer = Pacer::new(rate, packet);
            let mut now = Instant::from_nanos(1_000_000_000_000);
            for _ in 0..100 {
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
