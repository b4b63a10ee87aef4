//! Detection of lost packets from the gaps in the sequence numbers of a channel.

use super::losses::Losses;
use super::span::LARGEST_GAP;
use crate::time::Instant;
use fontana_wire::SequenceNumber;
use std::collections::VecDeque;
use std::time::Duration;

/// Number of later packets of the channel after which a missing packet is lost. TCP waits for as
/// many duplicate acknowledgments (RFC 5681, section 3.2; RFC 4654, section 5.1).
const LATER_PACKETS: u8 = 3;
/// Time after which a missing packet is lost even if no packet follows it (MCL).
pub(crate) const LOST_AFTER: Duration = Duration::from_millis(500);
/// Largest number of missing packets of a channel that may be reordered. A longer gap is a loss.
pub(super) const MAX_MISSING: usize = 32;
/// Number of consecutive packets with old sequence numbers after which the channel counts as
/// restarted.
const RESTART: u8 = 8;

/// Factor by which a channel may be faster than on average, before a jump ahead counts as more than
/// its sender can have sent.
const FASTER: u128 = 4;
/// Number of packets from which the average rate is computed. A jump from the first packet counts:
/// a receiver that joins a channel in an outage must not miss it.
const MEASURED: u64 = 4;

/// Missing packets of a channel.
#[derive(Clone, Debug, Default)]
pub(super) struct Gaps {
    /// `None` before the first packet.
    highest: Option<Highest>,
    /// Time of the first packet, and number of packets that were sent from it to the highest.
    first_at: Instant,
    advanced: u64,
    /// A jump ahead that is not taken yet.
    jump: Option<Jump>,
    missing: VecDeque<Missing>,
    /// Number of consecutive packets that were not ahead and not missing.
    from_behind: u8,
}

/// The highest number, and the time at which it arrived.
#[derive(Clone, Copy, Debug)]
struct Highest {
    number: u32,
    at: Instant,
}

/// Packets that continue a jump ahead.
#[derive(Clone, Copy, Debug)]
struct Jump {
    /// The last number.
    number: u32,
    packets: u64,
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

impl Gaps {
    /// Number of packets that are missing and may still be late.
    pub(super) fn missing(&self) -> usize {
        self.missing.len()
    }

    /// Handles a packet if it is the next one and none is missing, as most are.
    #[inline]
    pub(super) fn on_next(&mut self, now: Instant, number: SequenceNumber) -> bool {
        let is_next = self.missing.is_empty()
            && self.highest.is_some_and(|highest| number.follows(highest.number));
        if is_next {
            self.highest = Some(Highest { number: number.value, at: now });
            self.advanced += 1;
            self.jump = None;
            self.from_behind = 0;
        }
        is_next
    }

    /// Screens a packet that is not the next one. `None`: it jumps further ahead than the sender
    /// can have sent since the last packet, and is ignored until [`LATER_PACKETS`] continue the
    /// jump without a packet of the old run between them. One packet can be forged or damaged.
    /// Otherwise the number of packets that were ignored and that this one confirms.
    ///
    /// `excused` packets were dropped by this host.
    pub(super) fn screen(
        &mut self,
        now: Instant,
        number: SequenceNumber,
        excused: u64,
    ) -> Option<u64> {
        let Some(highest) = self.highest else { return Some(0) };
        let ahead = u64::try_from(number.steps_from(highest.number)).unwrap_or(0);
        if ahead > LARGEST_GAP || ahead.saturating_sub(excused) <= MAX_MISSING as u64 + 1 {
            return Some(0);
        }
        let (age, elapsed) =
            (highest.at.saturating_since(self.first_at), now.saturating_since(highest.at));
        let can_be_sent = FASTER * u128::from(self.advanced) * elapsed.as_nanos();
        let is_measured = self.advanced >= MEASURED;
        if self.advanced == 0 || (is_measured && u128::from(ahead) * age.as_nanos() <= can_be_sent)
        {
            return Some(0);
        }
        let continues =
            |jump: &Jump| (1..=MAX_MISSING as i64).contains(&number.steps_from(jump.number));
        let packets = self.jump.filter(continues).map_or(0, |jump| jump.packets);
        if packets >= u64::from(LATER_PACKETS) {
            return Some(packets);
        }
        self.jump = Some(Jump { number: number.value, packets: packets + 1 });
        None
    }

    /// Handles a packet. Returns the packets that are found to be lost.
    pub(super) fn on_number(&mut self, now: Instant, number: SequenceNumber) -> Losses {
        let Some(highest) = self.highest else {
            self.highest = Some(Highest { number: number.value, at: now });
            (self.first_at, self.advanced) = (now, 0);
            return Losses::default();
        };
        let step = number.steps_from(highest.number);
        let lost = match u64::try_from(step) {
            Ok(0) => Losses::default(),
            Ok(ahead) if ahead <= LARGEST_GAP => self.on_step(now, number, highest, ahead),
            _ => {
                self.on_number_from_behind(now, number.value);
                Losses::default()
            }
        };
        lost.and(self.expire(now))
    }

    /// Handles a packet whose number is `ahead` steps higher than the highest.
    fn on_step(
        &mut self,
        now: Instant,
        number: SequenceNumber,
        highest: Highest,
        ahead: u64,
    ) -> Losses {
        self.from_behind = 0;
        if self.advanced == 0 && ahead > MAX_MISSING as u64 {
            // It does not show the rate.
            (self.first_at, self.advanced) = (now, 1);
        } else {
            self.advanced += ahead;
        }
        self.jump = None;
        for missing in &mut self.missing {
            missing.later = missing.later.saturating_add(1);
        }
        self.highest = Some(Highest { number: number.value, at: now });
        let gap = ahead - 1;
        // The missing packets were evenly spaced (RFC 5348, section 5.2).
        let space = now.saturating_since(highest.at) / ahead as u32;
        let due = |step: u64| highest.at + space * step as u32;
        if gap as usize > MAX_MISSING - self.missing.len().min(MAX_MISSING) {
            return Losses { packets: gap, at: due(gap), space };
        }
        self.missing.extend((1..ahead).map(|step| Missing {
            number: ((u64::from(highest.number) + step) % number.modulus) as u32,
            due: due(step),
            space,
            since: now,
            later: 1,
        }));
        Losses::default()
    }

    fn on_number_from_behind(&mut self, now: Instant, number: u32) {
        if let Some(at) = self.missing.iter().position(|missing| missing.number == number) {
            self.missing.remove(at);
            return;
        }
        self.from_behind += 1;
        if self.from_behind >= RESTART {
            let highest = Some(Highest { number, at: now });
            *self = Self { highest, first_at: now, advanced: 1, ..Self::default() };
        }
    }

    /// Removes packets that have been missing for too long, and returns them as losses.
    pub(super) fn expire(&mut self, now: Instant) -> Losses {
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
