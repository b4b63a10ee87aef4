//! The receiver of RLC (Vicisano, Rizzo, Crowcroft: "TCP-like congestion control for layered
//! multicast data transfer", 1998). It steps up only at a synchronization point of the highest
//! layer, if no packet was lost since the previous one. It steps down after a loss, except one that
//! a burst causes.

use super::control::{Level, Membership, PacketSeen, SubscriptionControl};
use super::steps::Steps;
use crate::sequence::SequenceTracker;
use crate::time::Instant;
use fontana_wire::{Rlc, RlcCci, SyncSpacing};
use std::collections::VecDeque;
use std::time::Duration;

/// Tolerated losses among the last packets.
#[derive(Clone, Copy, Debug)]
struct Tolerance {
    losses: u64,
    packets: usize,
}

impl Tolerance {
    /// The rule of the paper: every loss counts.
    const NONE: Self = Self { losses: 0, packets: 1 };
    /// The rule of MCL.
    const MCL: Self = Self { losses: 1, packets: 20 };
}

/// Subscription control of RLC.
#[derive(Clone, Debug)]
pub(super) struct RlcControl {
    steps: Steps,
    deaf: Duration,
    burst: Duration,
    tolerance: Tolerance,
    /// Losses detected at each of the last packets.
    recent: VecDeque<u64>,
    lost_since_sync_point: u64,
    /// Time until which losses are attributed to a burst.
    burst_until: Instant,
    /// True if the receiver has not received the whole period since the last synchronization point.
    skip: bool,
}

impl RlcControl {
    /// A control that has joined the lowest layer. `rates` are those of the permitted levels.
    pub(super) fn new(rlc: &Rlc, rates: Vec<u64>, now: Instant) -> Self {
        Self {
            steps: Steps::new(rates, now),
            deaf: Duration::from_millis(rlc.deaf_milliseconds.into()),
            burst: Duration::from_millis(rlc.burst_milliseconds.into()),
            tolerance: match rlc.spacing {
                SyncSpacing::Nested => Tolerance::NONE,
                SyncSpacing::Mcl => Tolerance::MCL,
            },
            recent: VecDeque::new(),
            lost_since_sync_point: 0,
            burst_until: now,
            skip: true,
        }
    }

    fn down(&mut self, now: Instant) {
        self.steps.down(now, self.deaf);
        self.recent.clear();
        self.skip = true;
    }

    fn on_losses(&mut self, now: Instant, lost: u64) {
        self.lost_since_sync_point += lost;
        if self.steps.is_deaf(now) {
            return;
        }
        let in_burst = now < self.burst_until;
        self.recent.push_back(if in_burst { 0 } else { lost });
        if self.recent.len() > self.tolerance.packets {
            self.recent.pop_front();
        }
        if self.recent.iter().sum::<u64>() > self.tolerance.losses {
            self.down(now);
        }
    }

    fn on_sync_point(&mut self, now: Instant, has_gap: bool) {
        let clean = self.lost_since_sync_point == 0 && !has_gap;
        self.lost_since_sync_point = 0;
        if self.steps.is_deaf(now) {
            return;
        }
        if !std::mem::take(&mut self.skip) && clean {
            self.steps.up(now);
        }
    }
}

impl SubscriptionControl for RlcControl {
    fn on_packet(&mut self, now: Instant, packet: &PacketSeen) {
        let Some(cci) = RlcCci::parse(packet.cci) else { return };
        let Some(lost) = self.steps.on_packet(now, packet, cci.layer) else { return };
        let is_top = cci.layer == self.steps.top();
        // The queue that a burst fills causes losses until the pause after the burst is over. The
        // pause is about as long as the burst.
        if is_top && cci.burst {
            self.burst_until = now + self.burst * 2;
        }
        self.on_losses(now, lost);
        if is_top && cci.sync_point && cci.layer == self.steps.top() {
            self.on_sync_point(now, packet.has_gap);
        }
    }

    fn on_timeout(&mut self, now: Instant, sequence: &mut SequenceTracker) {
        let Some(lost) = self.steps.on_timeout(now, sequence) else { return };
        if lost > 0 {
            self.on_losses(now, lost);
        }
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
