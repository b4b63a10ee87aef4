//! The clock of WEBRC (RFC 3738, section 3.1): a base channel, and waves that begin one per slot
//! and decay.
//!
//! In slot `s` the waves on channels `s` to `s + N - 1`, modulo `T`, are active; the wave on
//! channel `s + j` has `j` slots left after this one. Base channel and waves have a known number of
//! packets in each slot, each with a known time. The wave in its first slot gets the remainder of
//! the session's rate, so that the total is constant. The RFC permits this for the first two slots
//! of a wave.
//!
//! The sequence numbers of a wave have no gap even if the sender was late in the wave's first slot
//! and skipped packets, because a late sender is not congestion. In this case only, the last number
//! is not 65535 as the RFC requires. Each wave skips its own overdue packets, so that every
//! receiver has the same share of what a late sender skips. The base channel skips nothing within
//! its slot, because all receivers derive the time from it.

use super::grid::{Emission, PacketGrid};
use crate::channel::ChannelId;
use crate::congestion::waves::Waves;
use crate::time::Instant;
use fontana_wire::{CongestionError, Webrc, WebrcCci};
use std::collections::VecDeque;
use std::time::Duration;

#[derive(Clone, Debug)]
pub(super) struct WaveClock {
    grid: PacketGrid,
    start: Instant,
    waves: Waves,
    /// Number of slots since the start.
    slot: u64,
    base: SlotShare,
    /// Active waves by number of slots left; the last one is in its first slot.
    active: VecDeque<SlotShare>,
    next: Next,
}

/// Packets that one channel still has to send in the slot.
#[derive(Clone, Copy, Debug)]
struct SlotShare {
    /// Sequence number of its next packet.
    sequence: u16,
    /// Number of packets in this slot.
    quota: u64,
    /// Number of packets of the wave after this slot.
    later: u64,
    due: Instant,
}

#[derive(Clone, Copy, Debug)]
enum Next {
    Base,
    /// Index by number of slots left.
    Wave(usize),
}

impl WaveClock {
    pub(super) fn new(
        webrc: &Webrc,
        packet_bytes: u16,
        start: Instant,
    ) -> Result<Self, CongestionError> {
        let waves = Waves::new(webrc);
        // There are too many waves if all of them except the newest exceed the session's rate.
        let (whole, most) = (waves.rate_of(waves.count - 1), waves.session_rate());
        if whole > most {
            let what = "the packets per second of a session without its highest wave";
            let (actual, most) = (whole.ceil() as u64, most as u64);
            return Err(CongestionError::Range { what, actual, least: 1, most });
        }
        let none = SlotShare { sequence: 0, quota: 0, later: 0, due: start };
        let mut clock = Self {
            grid: PacketGrid::new(start, webrc.rate_bytes_per_second.into(), packet_bytes),
            start,
            active: (0..waves.count).map(|to_go| waves.share(to_go, start)).collect(),
            waves,
            slot: 0,
            base: none,
            next: Next::Base,
        };
        clock.enter_slot();
        clock.choose();
        Ok(clock)
    }

    /// Number of channels: the base channel and those of the waves.
    pub(super) fn channel_count(&self) -> usize {
        1 + usize::from(self.waves.channels)
    }

    pub(super) fn peek(&self) -> Emission {
        let channels = u64::from(self.waves.channels);
        let slot = (self.slot % channels) as u8;
        let (channel, share) = match self.next {
            Next::Base => (self.waves.channels, Some(&self.base)),
            Next::Wave(to_go) => {
                (((self.slot + to_go as u64) % channels) as u8, self.active.get(to_go))
            }
        };
        let sequence = share.map_or(0, |share| share.sequence);
        let id = if channel == self.waves.channels { 0 } else { channel.saturating_add(1) };
        Emission {
            at: self.grid.at(),
            channel: ChannelId(id),
            cci: WebrcCci { slot, channel, sequence }.emit(),
        }
    }

    pub(super) fn advance(&mut self) {
        match self.next {
            Next::Base => {
                let sent = self.waves.base_packets - self.base.quota + 1;
                let sequence = u32::from(self.base.sequence) + 1;
                self.base.sequence = (sequence % self.waves.base_modulus) as u16;
                self.base.quota = self.base.quota.saturating_sub(1);
                self.base.due = self.slot_start() + self.waves.base_due(sent);
            }
            Next::Wave(to_go) => {
                let end = self.slot_end() + self.waves.slot * to_go as u32;
                if let Some(share) = self.active.get_mut(to_go) {
                    share.sequence = share.sequence.wrapping_add(1);
                    share.quota = share.quota.saturating_sub(1);
                    share.due = end - self.waves.before_end(share.quota + share.later);
                }
            }
        }
        self.grid.advance();
        self.settle();
    }

    pub(super) fn skip_to(&mut self, now: Instant) {
        if self.grid.skip_to(now) {
            self.leave_out_overdue();
        }
        self.settle();
    }

    /// Skips packets of each wave that should have left before the current packet.
    fn leave_out_overdue(&mut self) {
        let (at, end) = (self.grid.at(), self.slot_end());
        for (to_go, share) in self.active.iter_mut().enumerate() {
            let end = end + self.waves.slot * to_go as u32;
            while share.quota > 0 && share.due < at {
                share.quota -= 1;
                share.due = end - self.waves.before_end(share.quota + share.later);
            }
        }
    }

    fn slot_start(&self) -> Instant {
        self.start + Duration::from_nanos(self.slot.saturating_mul(self.waves.slot_nanos()))
    }

    fn slot_end(&self) -> Instant {
        self.slot_start() + self.waves.slot
    }

    /// Enters the slot of the next packet, and chooses its channel.
    fn settle(&mut self) {
        let slot =
            self.grid.at().saturating_since(self.start).as_nanos() as u64 / self.waves.slot_nanos();
        let passed = slot.saturating_sub(self.slot);
        if passed > 0 {
            self.slot = slot;
            for _ in 0..passed.min(self.active.len() as u64) {
                self.active.pop_front();
            }
            while self.active.len() < self.waves.count {
                let to_go = self.active.len();
                self.active.push_back(self.waves.share(to_go, self.slot_end()));
            }
            self.enter_slot();
        }
        self.choose();
    }

    /// Distributes the packets of a slot over the channels.
    fn enter_slot(&mut self) {
        let (start, end) = (self.slot_start(), self.slot_end());
        let base_packets = self.waves.base_packets;
        let whole = u32::from(self.base.sequence).next_multiple_of(base_packets as u32);
        let sequence = (whole % self.waves.base_modulus) as u16;
        self.base = SlotShare { sequence, quota: base_packets, later: 0, due: start };
        let mut left = self.grid.ticks_before(end).saturating_sub(base_packets);
        let newest = self.active.len().saturating_sub(1);
        for (to_go, share) in self.active.iter_mut().enumerate() {
            share.later = self.waves.packets_in(to_go);
            share.quota = self.waves.packets_in(to_go + 1) - share.later;
            if to_go < newest {
                left = left.saturating_sub(share.quota);
            } else if share.sequence == 0 {
                // The wave begins: its sequence numbers end with 65535.
                share.quota = left;
                share.sequence = 0_u16.wrapping_sub((left + share.later) as u16);
            } else {
                share.quota = left;
            }
            let last = self.waves.slot * to_go as u32;
            share.due = end + last - self.waves.before_end(share.quota + share.later);
        }
    }

    /// Chooses the channel of the next packet: the base channel if its packet is due; else the wave
    /// whose packet is overdue longest; else the newest wave.
    fn choose(&mut self) {
        if self.base.quota > 0 && self.base.due <= self.grid.at() {
            self.next = Next::Base;
            return;
        }
        let newest = self.active.len().saturating_sub(1);
        let waves = self.active.iter().take(newest).enumerate();
        let earliest = waves
            .map(|(to_go, share)| (Next::Wave(to_go), share))
            .chain([(Next::Base, &self.base)])
            .filter(|(_, share)| share.quota > 0)
            .min_by_key(|(_, share)| share.due);
        let fresh = self.active.back().map_or(0, |share| share.quota);
        self.next = match earliest {
            Some((next, share)) if share.due <= self.grid.at() || fresh == 0 => next,
            _ => Next::Wave(newest),
        };
    }
}

impl Waves {
    /// A wave that has `to_go` slots left after this one.
    fn share(&self, to_go: usize, due: Instant) -> SlotShare {
        let newest = to_go + 1 == self.count;
        let left = if newest { 0 } else { self.packets_in(to_go + 1) };
        SlotShare { sequence: 0_u16.wrapping_sub(left as u16), quota: 0, later: 0, due }
    }
}
