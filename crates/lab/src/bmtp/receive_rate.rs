//! What a receiver reports of the last measurement interval: how many packets it received and
//! missed (section 5).

use fontana_proto::Instant;
use std::time::Duration;

/// Parts of the measurement interval. Packets are counted in each, and not recorded one by one: a
/// simulation has a hundred thousand receivers.
const PARTS: u64 = 20;
/// The parts of a whole interval, and the current one.
const COUNTED: usize = PARTS as usize + 1;

/// Packets that were received and missed in the last measurement interval.
#[derive(Clone, Debug)]
pub(super) struct ReceiveRate {
    began: Instant,
    part_length: Duration,
    /// Number of the current part, from 0.
    part: u64,
    /// The last parts; each is at its number modulo their count.
    parts: [Part; COUNTED],
    /// One more than the highest packet number.
    next_packet: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Part {
    received: u32,
    /// [`ReceiveRate::next_packet`] when it began.
    first_packet: u64,
}

/// What was counted, and in what time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PacketCounts {
    pub(super) interval_ms: u32,
    pub(super) received: u64,
    pub(super) lost: u64,
}

impl ReceiveRate {
    /// Begins with the first packet, which is not counted yet.
    pub(super) fn new(now: Instant, interval: Duration, first_packet: u64) -> Self {
        Self {
            began: now,
            part_length: (interval / PARTS as u32).max(Duration::from_nanos(1)),
            part: 0,
            parts: [Part { received: 0, first_packet }; COUNTED],
            next_packet: first_packet,
        }
    }

    /// A packet arrives.
    pub(super) fn receive(&mut self, now: Instant, packet: u64) {
        self.advance(now);
        if let Some(part) = self.parts.get_mut(place(self.part)) {
            part.received = part.received.saturating_add(1);
        }
        self.next_packet = self.next_packet.max(packet.saturating_add(1));
    }

    /// The counts of the last measurement interval, and of the current part of the next one; `None`
    /// until the receiver has listened for an interval. A packet that arrives late is lost until
    /// then.
    pub(super) fn counts(&mut self, now: Instant) -> Option<PacketCounts> {
        self.advance(now);
        let first = self.part.checked_sub(PARTS)?;
        let received = self.parts.iter().map(|part| u64::from(part.received)).sum();
        let sent = self.next_packet.saturating_sub(self.parts.get(place(first))?.first_packet);
        let from = u128::from(first) * self.part_length.as_nanos();
        let passed = now.saturating_since(self.began).as_nanos().saturating_sub(from);
        let interval_ms = u32::try_from(passed / 1_000_000).unwrap_or(u32::MAX);
        Some(PacketCounts { interval_ms, received, lost: sent.saturating_sub(received) })
    }

    fn advance(&mut self, now: Instant) {
        let passed = now.saturating_since(self.began).as_nanos();
        let part = u64::try_from(passed / self.part_length.as_nanos()).unwrap_or(u64::MAX);
        // Parts before these are forgotten anyway.
        let from = (self.part + 1).max(part.saturating_sub(COUNTED as u64));
        for new in from..=part {
            if let Some(place) = self.parts.get_mut(place(new)) {
                *place = Part { received: 0, first_packet: self.next_packet };
            }
        }
        self.part = self.part.max(part);
    }
}

fn place(part: u64) -> usize {
    (part % COUNTED as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_secs(20);

    fn at(milliseconds: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(milliseconds)
    }

    #[test]
    fn nothing_is_reported_before_a_whole_interval() {
        let mut rate = ReceiveRate::new(at(500), INTERVAL, 0);
        rate.receive(at(500), 0);
        assert_eq!(rate.counts(at(20_499)), None);
        let counts = PacketCounts { interval_ms: 20_000, received: 1, lost: 0 };
        assert_eq!(rate.counts(at(20_500)), Some(counts));
    }

    #[test]
    fn the_counts_are_those_of_the_last_interval() {
        let mut rate = ReceiveRate::new(at(0), INTERVAL, 100);
        // 40 a second, of which one in ten is lost, and then none.
        for packet in (0..2_000).filter(|packet| packet % 10 != 3 || *packet >= 1_000) {
            rate.receive(at(25 * packet), 100 + packet);
        }
        let counts = PacketCounts { interval_ms: 20_975, received: 840, lost: 0 };
        assert_eq!(rate.counts(at(49_975)), Some(counts));
        let mut rate = ReceiveRate::new(at(0), INTERVAL, 100);
        for packet in (0..1_000).filter(|packet| packet % 10 != 3) {
            rate.receive(at(25 * packet), 100 + packet);
        }
        let counts = PacketCounts { interval_ms: 20_000, received: 720, lost: 80 };
        assert_eq!(rate.counts(at(25_000)), Some(counts));
    }

    #[test]
    fn a_packet_that_comes_late_is_no_longer_lost() {
        let mut rate = ReceiveRate::new(at(0), INTERVAL, 0);
        for packet in [0, 1, 3, 4] {
            rate.receive(at(15_000), packet);
        }
        assert_eq!(rate.counts(at(20_000)).map(|counts| counts.lost), Some(1));
        rate.receive(at(20_000), 2);
        assert_eq!(rate.counts(at(20_000)).map(|counts| counts.lost), Some(0));
    }

    #[test]
    fn a_pause_of_many_intervals_leaves_nothing() {
        let mut rate = ReceiveRate::new(at(0), INTERVAL, 0);
        rate.receive(at(0), 0);
        let counts = rate.counts(at(1_000_000_000)).unwrap();
        assert_eq!((counts.received, counts.lost), (0, 0));
        rate.receive(at(1_000_000_000), u64::MAX);
        assert!(rate.counts(at(1_000_000_500)).unwrap().lost > u64::from(u32::MAX));
    }
}
