//! Invariants of every run, whatever its network does.

use crate::topology::NodeId;
use fontana_proto::{ChannelId, Instant, Pacer};
use std::time::Duration;

/// An invariant that was violated: a bug of Fontana. The run has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// More bytes than [`RateCap`] allows.
    #[error("node {} sent {excess_bytes} bytes too many at {} ns", .node.0, .at.as_nanos())]
    Rate {
        /// The sender.
        node: NodeId,
        /// When.
        at: Instant,
        /// Bytes beyond the cap.
        excess_bytes: u64,
    },
    /// A host that only receives sent something.
    #[error("receiver {} sent a packet at {} ns", .node.0, .at.as_nanos())]
    ReceiverSent {
        /// The receiver.
        node: NodeId,
        /// When.
        at: Instant,
    },
    /// A host left a channel that it had not joined.
    #[error("node {} left channel {} without having joined it, at {} ns", .node.0, .channel.0, .at.as_nanos())]
    LeftUnjoined {
        /// The host.
        node: NodeId,
        /// The channel.
        channel: ChannelId,
        /// When.
        at: Instant,
    },
    /// A packet arrived that no host had sent, or before it was sent.
    #[error("packet {number} came to node {} from nowhere at {} ns", .node.0, .at.as_nanos())]
    FromNowhere {
        /// The receiver.
        node: NodeId,
        /// The packet's number.
        number: u64,
        /// When.
        at: Instant,
    },
    /// An endpoint has one timeout after the other at the same time.
    #[error("node {} makes no progress at {} ns", .node.0, .at.as_nanos())]
    Livelock {
        /// The host.
        node: NodeId,
        /// When.
        at: Instant,
    },
    /// A job that is invalid, or on an object or block that does not exist.
    #[error("node {} asked for a job that makes no sense, at {} ns: {reason}", .node.0, .at.as_nanos())]
    Job {
        /// The host.
        node: NodeId,
        /// When.
        at: Instant,
        /// Why it is invalid.
        reason: &'static str,
    },
    /// A queue of a link is longer than its limit.
    #[error("the queue of link {link} is longer than its limit at {} ns", .at.as_nanos())]
    LinkQueue {
        /// The link's number.
        link: u32,
        /// When.
        at: Instant,
    },
    /// More events are scheduled than the run allows.
    #[error("{events} events wait at {} ns, more than the run allows", .at.as_nanos())]
    Events {
        /// Number of scheduled events.
        events: usize,
        /// When.
        at: Instant,
    },
}

/// Rate limit of a sender (`docs/tuning.md`, Rate): in any window `w` at most
/// `min(1.25 * cap * (w + peak_window), cap * (w + 100 ms))` and a burst, which is two packets or
/// 2 ms of the cap, whichever is larger. Without a peak window, `cap * w` and the burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateCap {
    /// Bytes on the wire per second, headers included.
    pub bytes_per_second: u64,
    /// Bytes of its longest packet, headers included.
    pub max_packet_bytes: u32,
    /// Window in which a late sender may catch up; zero: it may not.
    pub peak_window: Duration,
}

/// Checks a sender's packets against its cap: two leaky buckets, exact in integers.
#[derive(Clone, Debug)]
pub(crate) struct RateRule {
    cap: RateCap,
    /// Bytes in the bucket that leaks at the cap, times 10^9.
    average: u128,
    /// Bytes in the bucket that leaks at 1.25 times the cap, times 4 * 10^9.
    peak: u128,
    last: Instant,
}

const NANOS: u128 = 1_000_000_000;

impl RateRule {
    pub(crate) fn new(cap: RateCap) -> Self {
        Self { cap, average: 0, peak: 0, last: Instant::ZERO }
    }

    /// Counts a packet. Returns by how many bytes it exceeds the cap; `None` if it does not.
    pub(crate) fn excess(&mut self, now: Instant, bytes: u32) -> Option<u64> {
        let rate = u128::from(self.cap.bytes_per_second);
        let burst = (2 * u128::from(self.cap.max_packet_bytes) * NANOS).max(rate * NANOS / 500);
        // Times are rounded to nanoseconds at both ends of a window.
        let burst = burst + 2 * rate;
        let (peak_window, bytes) = (self.cap.peak_window.as_nanos(), u128::from(bytes) * NANOS);
        let debt = if peak_window == 0 { 0 } else { Pacer::DEBT.as_nanos() };
        let passed = now.saturating_since(self.last).as_nanos() * rate;
        self.last = self.last.max(now);
        self.average = self.average.saturating_sub(passed) + bytes;
        self.peak = self.peak.saturating_sub(5 * passed) + 4 * bytes;
        let over_average = self.average.saturating_sub(burst + debt * rate);
        let over_peak = self.peak.saturating_sub(4 * burst + 5 * peak_window * rate) / 4;
        let excess = over_average.max(over_peak);
        (excess > 0).then(|| excess.div_ceil(NANOS) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_rule_knows_the_last_byte_that_may_go() {
        let peak_window = Duration::ZERO;
        let cap = RateCap { bytes_per_second: 1_000_000, max_packet_bytes: 1_500, peak_window };
        let mut rule = RateRule::new(cap);
        assert_eq!(rule.excess(Instant::from_nanos(5), 1_500), None);
        assert_eq!(rule.excess(Instant::from_nanos(5), 1_500), None);
        assert_eq!(rule.excess(Instant::from_nanos(5), 1), Some(1));
        let mut rule = RateRule::new(cap);
        assert_eq!(rule.excess(Instant::ZERO, 3_000), None);
        assert_eq!(rule.excess(Instant::from_nanos(1_500_000), 1_500), None);
        assert_eq!(rule.excess(Instant::from_nanos(2_900_000), 1_500), Some(100));
    }

    #[test]
    fn a_fast_sender_may_burst_for_two_milliseconds() {
        let peak_window = Duration::ZERO;
        let cap = RateCap { bytes_per_second: 100_000_000, max_packet_bytes: 1_500, peak_window };
        let mut rule = RateRule::new(cap);
        for _ in 0..133 {
            assert_eq!(rule.excess(Instant::ZERO, 1_500), None);
        }
        assert_eq!(rule.excess(Instant::ZERO, 1_500), Some(1_000));
    }

    #[test]
    fn a_late_sender_may_catch_up_within_the_peak_window_and_the_debt() {
        let peak_window = Duration::from_millis(20);
        let cap = RateCap { bytes_per_second: 1_000_000, max_packet_bytes: 1_000, peak_window };
        let at = |milliseconds: u64| Instant::from_nanos(milliseconds * 1_000_000);
        let mut rule = RateRule::new(cap);
        // 25 ms of the cap, and the burst.
        assert_eq!(rule.excess(at(500), 27_000), None);
        assert_eq!(rule.excess(at(500), 1), Some(1));
        let mut rule = RateRule::new(cap);
        // 1.25 times the cap, until 100 ms of the cap are made up for.
        assert_eq!(rule.excess(at(500), 27_000), None);
        for tick in 1..=300 {
            assert_eq!(rule.excess(at(500 + tick), 1_250), None, "{tick}");
        }
        assert_eq!(rule.excess(at(801), 1_250), Some(250));
    }
}
