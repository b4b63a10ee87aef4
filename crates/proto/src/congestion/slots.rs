//! The sender's slot, from the numbers that packets name, of which some may be forged.
//!
//! Slots are equally long, so the time says which slot comes when. A packet is believed if its slot
//! is the one that is due, or the next one at most half a slot early: the time that a packet takes
//! varies. When the first slot began is not known; three packets show the second one. Other packets
//! are late, forged, or of a sender that has started again. They found *rivals*, which packets
//! confirm in the same way. A rival with three packets is believed when it
//! has more of them than what was believed before: an attacker has to send more packets than the
//! sender. Packets count half after a slot, and less after more.

use crate::time::Instant;
use std::time::Duration;

/// Rivals that are remembered. Between two packets of a sender that has started again, an attacker
/// can send so many with other slots.
const MAX_RIVALS: usize = 16;
/// Packets of a rival that is believed.
const CONFIRMED: u32 = 3;

/// The sender's slot.
#[derive(Clone, Debug)]
pub(super) struct SlotClock {
    length_nanos: u64,
    /// Slots are numbered modulo this.
    modulus: u8,
    /// `None` before the first packet.
    believed: Option<Phase>,
    rivals: Vec<Phase>,
    /// When packets count half.
    halved_at: Instant,
}

/// A slot, and when it began.
#[derive(Clone, Copy, Debug)]
struct Phase {
    slot: u8,
    /// The slot began at this time, or up to a slot earlier if that is not known exactly.
    began: Instant,
    /// Whether a packet has shown when a slot begins.
    is_exact: bool,
    /// Packets that confirm it.
    packets: u32,
}

impl Phase {
    fn new(now: Instant, slot: u8) -> Self {
        Self { slot, began: now, is_exact: false, packets: 1 }
    }

    /// Takes a packet that confirms the phase. Returns the number of slots that have passed since
    /// the last one, modulo `modulus`; `None` if it does not confirm it.
    fn confirm(&mut self, now: Instant, slot: u8, length: u64, modulus: u8) -> Option<u8> {
        let elapsed = now.saturating_since(self.began).as_nanos() as u64;
        let (passed, within) = (elapsed / length, elapsed % length);
        let ahead = |from: u64| {
            let from = (u64::from(self.slot) + from) % u64::from(modulus);
            (u64::from(slot) + u64::from(modulus) - from) % u64::from(modulus)
        };
        let passed = match ahead(passed) {
            0 => passed,
            1 if self.is_exact && within >= length / 2 => passed + 1,
            _ => return None,
        };
        self.packets = self.packets.saturating_add(1);
        if passed > 0 {
            self.began = self.began + Duration::from_nanos(passed.saturating_mul(length));
            // The first packet of a slot shows when it began.
            self.is_exact |= within < length / 8;
            self.slot = slot;
        }
        Some((passed % u64::from(modulus)) as u8)
    }
}

impl SlotClock {
    /// Slots of this length, with numbers below `modulus`.
    pub(super) fn new(length: Duration, modulus: u8) -> Self {
        Self {
            length_nanos: (length.as_nanos() as u64).max(1),
            modulus: modulus.max(1),
            believed: None,
            rivals: Vec::new(),
            halved_at: Instant::ZERO,
        }
    }

    /// The slot of the last packets that were believed.
    pub(super) fn current(&self) -> Option<u8> {
        self.believed.map(|phase| phase.slot)
    }

    /// Forgets the slot, to begin with that of the next packet.
    pub(super) fn reset(&mut self) {
        self.believed = None;
        self.rivals.clear();
    }

    /// Takes the slot that a packet names, which is below the modulus. Returns the number of slots
    /// that have ended, modulo the number of slots.
    pub(super) fn on_packet(&mut self, now: Instant, slot: u8) -> u8 {
        let (length, modulus) = (self.length_nanos, self.modulus);
        self.halve(now);
        let Some(believed) = &mut self.believed else {
            self.believed = Some(Phase::new(now, slot));
            return 0;
        };
        if let Some(passed) = believed.confirm(now, slot, length, modulus) {
            return passed;
        }
        let confirmed =
            self.rivals.iter_mut().position(|r| r.confirm(now, slot, length, modulus).is_some());
        let Some(rival) = confirmed.and_then(|at| self.rivals.get(at)).copied() else {
            self.add_rival(now, slot);
            return 0;
        };
        let before = believed.slot;
        let ended = (u16::from(slot) + u16::from(modulus) - u16::from(before)) % u16::from(modulus);
        // The first slot was received from some time on: the next one comes sooner.
        let is_next = ended == 1 && !believed.is_exact;
        if rival.packets < CONFIRMED || (rival.packets <= believed.packets && !is_next) {
            return 0;
        }
        *believed = Phase { is_exact: is_next, ..rival };
        self.rivals.clear();
        ended as u8
    }

    fn add_rival(&mut self, now: Instant, slot: u8) {
        if self.rivals.len() >= MAX_RIVALS {
            // The earliest of those with the fewest packets.
            let least = self.rivals.iter().enumerate().min_by_key(|(_, rival)| rival.packets);
            let at = least.map_or(0, |(at, _)| at);
            self.rivals.remove(at);
        }
        self.rivals.push(Phase::new(now, slot));
    }

    fn halve(&mut self, now: Instant) {
        let slots = now.saturating_since(self.halved_at).as_nanos() as u64 / self.length_nanos;
        if slots == 0 {
            return;
        }
        self.halved_at = now;
        let halvings = slots.min(31) as u32;
        for phase in self.believed.iter_mut().chain(&mut self.rivals) {
            phase.packets >>= halvings;
        }
        self.rivals.retain(|rival| rival.packets > 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SplitMix64;

    const MODULUS: u8 = 128;

    fn clock() -> SlotClock {
        SlotClock::new(Duration::from_millis(1_000), MODULUS)
    }

    fn ms(milliseconds: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(milliseconds)
    }

    /// The slot of a sender whose slot 7 began at 300 ms.
    fn sent(milliseconds: u64) -> u8 {
        ((milliseconds + 6_700) / 1_000 % 128) as u8
    }

    #[test]
    fn the_slots_of_a_sender_are_followed_at_once() {
        let mut clock = clock();
        for at in (0..300_000).step_by(40) {
            let before = clock.current();
            let ended = clock.on_packet(ms(at), sent(at));
            // Three packets show the second slot.
            assert!((300..380).contains(&at) || clock.current() == Some(sent(at)), "{at}");
            assert_eq!(ended, before.map_or(0, |b| (clock.current().unwrap() + 128 - b) % 128));
        }
        // After an outage of any length.
        assert_eq!(
            clock.on_packet(ms(1_000_000), sent(1_000_000)),
            (sent(1_000_000) + 128 - sent(299_960)) % 128
        );
        assert_eq!(clock.current(), Some(sent(1_000_000)));
    }

    #[test]
    fn delays_that_vary_by_half_a_slot_do_not_matter() {
        let (mut clock, mut random) = (clock(), SplitMix64::new(1, 1));
        let (mut ends, mut last) = (0, 0);
        for at in (1_000..100_000).step_by(10) {
            let delay = u64::from(random.below(500));
            ends += u64::from(clock.on_packet(ms(at + delay), sent(at)));
            last = at;
        }
        assert_eq!(ends, u64::from(sent(last)) - u64::from(sent(1_000)));
    }

    #[test]
    fn a_packet_that_names_another_slot_is_not_believed() {
        for slot in (0..MODULUS).filter(|&slot| slot != 7 && slot != 8) {
            let mut clock = clock();
            for at in (300..1_300).step_by(40) {
                clock.on_packet(ms(at), 7);
            }
            assert_eq!(clock.on_packet(ms(1_290), slot), 0);
            assert_eq!(clock.on_packet(ms(1_310), 8), 1, "{slot}");
            // Nor is the next slot before half of this one has passed.
            assert_eq!(clock.on_packet(ms(1_320), 9), 0);
            assert_eq!((clock.on_packet(ms(1_330), 8), clock.current()), (0, Some(8)));
        }
    }

    #[test]
    fn a_sender_that_starts_again_is_followed() {
        for jump in [2, 5, 64, 126, 127] {
            let mut clock = clock();
            let slot = |at: u64| if at < 50_000 { sent(at) } else { (sent(at) + jump) % 128 };
            for at in (0..60_000).step_by(40) {
                clock.on_packet(ms(at), slot(at));
                assert!(
                    !(52_500..).contains(&at) || clock.current() == Some(slot(at)),
                    "{jump} {at}"
                );
            }
        }
    }

    #[test]
    fn a_first_packet_that_is_forged_is_corrected() {
        let mut clock = clock();
        clock.on_packet(ms(0), 99);
        for at in (10..3_000).step_by(40) {
            clock.on_packet(ms(at), sent(at));
        }
        assert_eq!(clock.current(), Some(sent(2_970)));
    }

    #[test]
    fn eight_random_slots_for_each_right_one_are_not_believed() {
        for seed in 0..20 {
            let (mut clock, mut random) = (clock(), SplitMix64::new(seed, 1));
            let mut wrong = 0;
            for at in (0..60_000).step_by(5) {
                let is_right = at % 45 == 0;
                let slot = if is_right { sent(at) } else { random.below(128) as u8 };
                clock.on_packet(ms(at), slot);
                // A random slot may be the next one, up to half a slot early.
                let is_near = [0, 1].map(|ahead| Some((sent(at) + ahead) % 128));
                wrong += u32::from(is_right && !is_near.contains(&clock.current()));
            }
            assert!(wrong < 40, "{wrong} of 1 333, seed {seed}");
        }
    }
}
