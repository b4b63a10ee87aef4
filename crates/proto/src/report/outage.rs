//! Outages of a path: a link that is down, a port that is replugged, a radio that changes its
//! channel. Nothing arrives for a while, and everything that was sent meanwhile is lost.
//!
//! That says nothing of the rate that the path carries. A path that is full passes packets all the
//! time, as many as it can.

use crate::time::Instant;
use std::time::Duration;

/// Shortest time without a packet that is an outage.
const LEAST: Duration = Duration::from_millis(100);
/// The same in intervals of packets: a slow path passes few.
const LEAST_INTERVALS: u32 = 16;
/// Packets that are lost in an outage, at least: otherwise the sender has sent none.
const LEAST_LOST: u64 = 8;
/// Packets after it that show its losses: a jump of the numbers is to be confirmed by a second one.
const SHOWN_BY: u8 = 2;
/// Packets that the mean interval is of.
const AVERAGED: u32 = 64;

/// Finds outages among the packets of a session.
#[derive(Debug, Default)]
pub(super) struct Outages {
    /// When the last packet arrived.
    latest: Instant,
    /// Mean time between packets, once there are enough.
    interval: Duration,
    packets: u32,
    /// After a silence: the packets that may show its losses, how many these are at least, and how
    /// many were found.
    silence: Option<(u8, u64, u64)>,
}

impl Outages {
    /// A packet has arrived, with which so many are known to be lost. Whether an outage has ended.
    #[inline]
    pub(super) fn on_packet(&mut self, now: Instant, lost: u64) -> bool {
        let gap = now.saturating_since(self.latest);
        self.latest = now;
        let is_silence = gap >= LEAST
            && self.packets >= AVERAGED
            && gap >= self.interval.saturating_mul(LEAST_INTERVALS);
        if is_silence {
            // Half of what would have arrived.
            let least = gap.as_nanos() / self.interval.as_nanos().max(1) / 2;
            let least = u64::try_from(least).unwrap_or(u64::MAX).max(LEAST_LOST);
            self.silence = Some((SHOWN_BY, least, 0));
        } else {
            self.packets = self.packets.saturating_add(1).min(AVERAGED);
            self.interval = (self.interval * (self.packets - 1) + gap) / self.packets;
        }
        let Some((packets, least, found)) = self.silence.take() else { return false };
        let found = found.saturating_add(lost);
        if found < least && packets > 1 {
            self.silence = Some((packets - 1, least, found));
        }
        found >= least
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets in order: the time before each in milliseconds, and how many were lost before it.
    fn found(packets: &[(u64, u64)]) -> Vec<usize> {
        let (mut outages, mut now) = (Outages::default(), Instant::ZERO);
        let found = packets.iter().enumerate().filter(|(_, (after, lost))| {
            now = now + Duration::from_millis(*after);
            outages.on_packet(now, *lost)
        });
        found.map(|(at, _)| at).collect()
    }

    fn after_a_hundred(interval: u64, lost: u64, then: &[(u64, u64)]) -> Vec<usize> {
        found(&[&[(interval, lost); 100][..], then].concat())
    }

    #[test]
    fn a_silence_with_losses_is_an_outage() {
        assert_eq!(after_a_hundred(1, 0, &[(300, 300), (1, 0)]), [100]);
        assert_eq!(after_a_hundred(1, 0, &[(300, 0), (1, 300), (1, 0)]), [101], "confirmed");
        assert_eq!(after_a_hundred(1, 1, &[(300, 300), (1, 1), (300, 300)]), [100, 102]);
        // Packets arrive in groups, as by a radio whose hosts sleep.
        let groups = [[(0, 0); 99].as_slice(), &[(100, 0)]].concat().repeat(3);
        assert_eq!(after_a_hundred(1, 0, &groups), [0; 0]);
        let lossy = [[(0, 1); 99].as_slice(), &[(100, 9)]].concat().repeat(3);
        assert_eq!(after_a_hundred(1, 0, &lossy), [0; 0]);
    }

    #[test]
    fn what_is_lost_while_packets_arrive_is_none() {
        assert_eq!(after_a_hundred(1, 50, &[(99, 5_000), (1, 50)]), [0; 0]);
        assert_eq!(after_a_hundred(1, 0, &[(300, 0), (1, 1), (1, 0)]), [0; 0], "a pause");
        assert_eq!(after_a_hundred(1, 0, &[(300, 0), (200, 0), (1, 50)]), [0; 0], "later");
        assert_eq!(after_a_hundred(50, 10, &[(200, 40), (50, 10)]), [0; 0], "a slow path");
        assert_eq!(found(&[(300, 300), (300, 300), (300, 300)]), [0; 0], "the start");
    }
}
