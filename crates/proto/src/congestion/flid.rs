//! The receiver of FLID-SL (Byers and others: "FLID-DL: congestion control for layered multicast",
//! 2000; static layers as in MCL). At the end of a slot it steps down if a packet was lost in the
//! slot. Otherwise it steps up if the slot had the trigger of the highest layer.

use super::control::{Level, Membership, PacketSeen, SubscriptionControl};
use super::slots::SlotClock;
use super::steps::Steps;
use crate::sequence::SequenceTracker;
use crate::time::Instant;
use fontana_wire::{FlidCci, FlidSl};
use std::time::Duration;

/// Number of slots after a step down in which a receiver does not act (MCL).
const DEAF_SLOTS: u32 = 9;

/// Subscription control of FLID-SL.
#[derive(Clone, Debug)]
pub(super) struct FlidControl {
    steps: Steps,
    slot: Duration,
    slots: SlotClock,
    lost: u64,
    triggered: bool,
    /// True if the receiver did not receive the slot from its beginning.
    partial: bool,
}

impl FlidControl {
    /// A control that has joined the lowest layer. `rates` are those of the permitted levels.
    pub(super) fn new(flid: &FlidSl, rates: Vec<u64>, now: Instant) -> Self {
        let length = Duration::from_millis(flid.slot_milliseconds.into());
        Self {
            steps: Steps::new(rates, now),
            slot: length,
            slots: SlotClock::new(length, FlidCci::SLOTS),
            lost: 0,
            triggered: false,
            partial: true,
        }
    }

    fn down(&mut self, now: Instant) {
        self.steps.down(now, self.slot * DEAF_SLOTS);
    }

    fn on_slot_end(&mut self, now: Instant, has_gap: bool) {
        let partial = std::mem::take(&mut self.partial);
        let (lost, triggered) = (std::mem::take(&mut self.lost), self.triggered);
        self.triggered = false;
        if self.steps.is_deaf(now) {
            return;
        }
        if lost > 0 {
            self.down(now);
        } else if triggered && !partial && !has_gap {
            self.steps.up(now);
        }
    }
}

impl SubscriptionControl for FlidControl {
    fn on_packet(&mut self, now: Instant, packet: &PacketSeen) {
        let Some(cci) = FlidCci::parse(packet.cci) else { return };
        let Some(lost) = self.steps.on_packet(now, packet, cci.layer) else { return };
        if self.slots.on_packet(now, cci.slot) > 0 {
            self.on_slot_end(now, packet.has_gap);
        }
        self.lost += lost;
        self.triggered |=
            cci.trigger && cci.layer == self.steps.top() && self.slots.current() == Some(cci.slot);
    }

    fn on_timeout(&mut self, now: Instant, sequence: &mut SequenceTracker) {
        let Some(lost) = self.steps.on_timeout(now, sequence) else { return };
        self.lost += lost;
        if self.steps.has_silent_layer(now) {
            self.down(now);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        Some(self.steps.poll_timeout())
    }

    fn poll_membership(&mut self) -> Option<Membership> {
        self.steps.prefix.poll_membership()
    }

    fn level(&self) -> Level {
        self.steps.level()
    }
}
