//! Detection of lost packets from the sequence numbers of each channel.

use super::control::PacketSeen;
use crate::time::Instant;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Number of later packets of the channel after which a missing packet is lost. TCP waits for as
/// many duplicate acknowledgments (RFC 5681, section 3.2; RFC 4654, section 5.1).
const LATER_PACKETS: u8 = 3;
/// Time after which a missing packet is lost even if no packet follows it (MCL).
pub(super) const LOST_AFTER: Duration = Duration::from_millis(500);
/// Largest number of missing packets of a channel that may be reordered. A longer gap is a loss.
const MAX_MISSING: usize = 32;
/// Number of consecutive packets with old sequence numbers after which the channel counts as
/// restarted.
const RESTART: u8 = 8;
/// Time for which a packet that this host dropped excuses a gap. In this time every channel except
/// the slowest receives a packet that shows the gap.
const EXCUSED_FOR: Duration = Duration::from_secs(2);

/// Modulus of sequence numbers of 16 bits.
pub(super) const MODULUS: u64 = 1 << 16;

/// Sequence numbers of all channels.
#[derive(Clone, Debug, Default)]
pub(super) struct Sequences {
    channels: BTreeMap<u8, Sequence>,
    /// Number of packets that this host dropped and that no gap has shown yet, and time of the last
    /// drop.
    excused: u64,
    excused_at: Instant,
}

/// A number of lost packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Losses {
    pub(super) packets: u64,
    /// Time at which the last of them should have arrived.
    pub(super) at: Instant,
    /// Time between packets of the channel, which is the uncertainty of `at`.
    pub(super) space: Duration,
}

impl Losses {
    fn and(self, other: Self) -> Self {
        let last = if self.at >= other.at { self } else { other };
        Self { packets: self.packets.saturating_add(other.packets), ..last }
    }
}

#[derive(Clone, Debug)]
struct Sequence {
    /// Modulus of the sequence numbers.
    modulus: u64,
    highest: u32,
    /// Time at which the highest number arrived.
    highest_at: Instant,
    missing: VecDeque<Missing>,
    from_behind: u8,
}

#[derive(Clone, Copy, Debug)]
struct Missing {
    number: u32,
    /// Time at which it should have arrived.
    due: Instant,
    space: Duration,
    since: Instant,
    later: u8,
}

impl Sequences {
    /// Handles a packet with this sequence number on its channel; such numbers are modulo
    /// `modulus`. Returns the packets that are found to be lost.
    pub(super) fn on_packet(
        &mut self,
        now: Instant,
        packet: &PacketSeen,
        number: u32,
        modulus: u64,
    ) -> Losses {
        if packet.dropped_before > 0 {
            self.excused = self.excused.saturating_add(packet.dropped_before);
            self.excused_at = now;
        }
        let sequence = self.channels.entry(packet.channel.0).or_insert_with(|| Sequence {
            modulus: modulus.max(2),
            highest: number,
            highest_at: now,
            missing: VecDeque::new(),
            from_behind: 0,
        });
        let lost = sequence.on_number(now, number).and(sequence.expire(now));
        self.blamed(now, lost)
    }

    /// Handles the passage of time. Returns the packets that are found to be lost.
    pub(super) fn expire(&mut self, now: Instant) -> Losses {
        let lost = self.channels.values_mut().map(|sequence| sequence.expire(now));
        let lost = lost.fold(Losses::default(), Losses::and);
        self.blamed(now, lost)
    }

    /// True if a packet is missing and may still be late.
    pub(super) fn has_gap(&self) -> bool {
        self.channels.values().any(|sequence| !sequence.missing.is_empty())
    }

    /// Forgets a channel after a leave. After the next join its numbers are arbitrary.
    pub(super) fn forget(&mut self, channel: u8) {
        self.channels.remove(&channel);
    }

    /// The losses without those that this host caused.
    fn blamed(&mut self, now: Instant, lost: Losses) -> Losses {
        if now.saturating_since(self.excused_at) > EXCUSED_FOR {
            self.excused = 0;
        }
        let excused = self.excused.min(lost.packets);
        self.excused -= excused;
        Losses { packets: lost.packets - excused, ..lost }
    }
}

impl Sequence {
    fn on_number(&mut self, now: Instant, number: u32) -> Losses {
        let modulus = self.modulus;
        let ahead = (u64::from(number) + modulus - u64::from(self.highest) % modulus) % modulus;
        if ahead == 0 {
            return Losses::default();
        }
        if ahead > modulus / 2 {
            self.on_number_from_behind(now, number);
            return Losses::default();
        }
        self.from_behind = 0;
        let mut lost = Losses::default();
        for missing in &mut self.missing {
            missing.later = missing.later.saturating_add(1);
        }
        let gap = ahead - 1;
        // The missing packets were evenly spaced (RFC 5348, section 5.2).
        let (last, space) = (self.highest_at, now.saturating_since(self.highest_at) / ahead as u32);
        let due = |step: u64| last + space * step as u32;
        if gap as usize > MAX_MISSING - self.missing.len().min(MAX_MISSING) {
            lost = Losses { packets: gap, at: due(gap), space };
        } else {
            for step in 1..ahead {
                let number = ((u64::from(self.highest) + step) % modulus) as u32;
                self.missing.push_back(Missing {
                    number,
                    due: due(step),
                    space,
                    since: now,
                    later: 1,
                });
            }
        }
        (self.highest, self.highest_at) = (number, now);
        lost
    }

    fn on_number_from_behind(&mut self, now: Instant, number: u32) {
        if let Some(at) = self.missing.iter().position(|missing| missing.number == number) {
            self.missing.remove(at);
            return;
        }
        self.from_behind += 1;
        if self.from_behind >= RESTART {
            (self.highest, self.highest_at, self.from_behind) = (number, now, 0);
            self.missing.clear();
        }
    }

    /// Removes packets that have been missing for too long, and returns them as losses.
    fn expire(&mut self, now: Instant) -> Losses {
        let mut lost = Losses::default();
        self.missing.retain(|missing| {
            let may_come =
                missing.later < LATER_PACKETS && now.saturating_since(missing.since) < LOST_AFTER;
            if !may_come {
                lost = lost.and(Losses { packets: 1, at: missing.due, space: missing.space });
            }
            may_come
        });
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::ChannelId;
    use fontana_wire::Cci;

    fn seen(dropped_before: u64) -> PacketSeen {
        PacketSeen {
            channel: ChannelId(0),
            cci: Cci::default(),
            congestion_experienced: false,
            dropped_before,
        }
    }

    /// Number of losses after packets with these numbers, one millisecond apart.
    fn lost(numbers: impl IntoIterator<Item = u32>) -> u64 {
        let (mut sequences, mut now, mut lost) = (Sequences::default(), Instant::ZERO, 0);
        for number in numbers {
            now = now + Duration::from_millis(1);
            lost += sequences.on_packet(now, &seen(0), number, MODULUS).packets;
        }
        lost
    }

    #[test]
    fn a_missing_packet_is_lost_with_the_third_that_follows() {
        assert_eq!(lost([1, 2, 4, 5]), 0);
        assert_eq!(lost([1, 2, 4, 5, 6]), 1);
        assert_eq!(lost([1, 2, 4, 5, 3, 6, 7]), 0, "reordered");
        assert_eq!(lost([65_534, 0, 1, 2]), 1, "around the end of the numbers");
        assert_eq!(lost([1, 1, 2, 2, 3]), 0, "duplicated");
    }

    #[test]
    fn a_missing_packet_is_lost_after_half_a_second() {
        let mut sequences = Sequences::default();
        for number in [1, 3] {
            let lost = sequences.on_packet(Instant::ZERO, &seen(0), number, MODULUS);
            assert_eq!(lost.packets, 0);
        }
        assert!(sequences.has_gap());
        let half = Instant::ZERO + LOST_AFTER;
        assert_eq!(sequences.expire(Instant::from_nanos(half.as_nanos() - 1)).packets, 0);
        assert_eq!(sequences.expire(half).packets, 1);
        assert!(!sequences.has_gap());
    }

    #[test]
    fn a_loss_is_dated_by_when_it_was_due() {
        let ms = |ms: u64| Instant::ZERO + Duration::from_millis(ms);
        let mut sequences = Sequences::default();
        let mut on = |at, number| sequences.on_packet(ms(at), &seen(0), number, MODULUS);
        assert_eq!(on(0, 0), Losses::default());
        // 1 and 2 were due at 100 and 200 ms.
        for (at, number) in [(300, 3), (310, 4)] {
            assert_eq!(on(at, number), Losses::default());
        }
        assert_eq!(
            on(320, 5),
            Losses { packets: 2, at: ms(200), space: Duration::from_millis(100) }
        );
        // 6 to 104 were due every 10 ms, and more are missing than can be late.
        assert_eq!(
            on(1320, 105),
            Losses { packets: 99, at: ms(320 + 990), space: Duration::from_millis(10) }
        );
    }

    #[test]
    fn a_long_gap_is_lost_at_once_and_costs_no_memory() {
        assert_eq!(lost([0, 33]), 0);
        assert_eq!(lost([0, 34]), 33);
        assert_eq!(lost([0, 20_000]), 19_999);
    }

    #[test]
    fn a_channel_that_starts_again_from_behind_is_followed_and_blamed_for_nothing() {
        assert_eq!(lost((40_000..40_010).chain(39_000..39_100)), 0);
        let with_a_loss = (40_000..40_010).chain(39_000..39_100).chain(39_101..39_110);
        assert_eq!(lost(with_a_loss), 1);
    }

    #[test]
    fn what_this_host_dropped_is_no_congestion() {
        let mut sequences = Sequences::default();
        let mut on = |number, dropped| {
            let seen = seen(dropped);
            sequences.on_packet(Instant::from_nanos(1), &seen, number, MODULUS).packets
        };
        assert_eq!((on(0, 0), on(50, 40)), (0, 9));
    }

    #[test]
    fn memory_is_bounded_whatever_the_numbers() {
        let mut sequences = Sequences::default();
        let mut random = crate::random::SplitMix64::new(1, 1);
        for i in 0..20_000 {
            let number = random.below(1 << 16);
            sequences.on_packet(Instant::from_nanos(i), &seen(u64::MAX), number, MODULUS);
            assert!(sequences.channels.values().all(|s| s.missing.len() <= MAX_MISSING));
        }
    }
}
