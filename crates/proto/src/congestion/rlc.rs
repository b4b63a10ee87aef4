//! RLC's receiver (Vicisano, Rizzo, Crowcroft: "TCP-like congestion control for layered multicast data
//! transfer", 1998): a step up only at a synchronization point of the highest layer, if nothing was
//! lost since the one before; a step down for a loss that is not a burst's.

use super::control::{Level, Membership, PacketSeen, SubscriptionControl};
use super::steps::Steps;
use crate::time::Instant;
use fontana_wire::{Rlc, RlcCci, SyncSpacing};
use std::collections::VecDeque;
use std::time::Duration;

/// Losses that a receiver tolerates among its last packets.
#[derive(Clone, Copy, Debug)]
struct Tolerance {
    losses: u64,
    packets: usize,
}

impl Tolerance {
    /// Of the paper: every loss counts.
    const NONE: Self = Self { losses: 0, packets: 1 };
    /// Of MCL.
    const MCL: Self = Self { losses: 1, packets: 20 };
}

/// A receiver at some level.
#[derive(Clone, Debug)]
pub(super) struct RlcControl {
    steps: Steps,
    deaf: Duration,
    burst: Duration,
    tolerance: Tolerance,
    /// Losses at each of the last packets.
    recent: VecDeque<u64>,
    lost_since_sync_point: u64,
    /// Losses up to then are those of a burst.
    burst_until: Instant,
    /// What was heard since the last synchronization point is not the whole of a period.
    skip: bool,
}

impl RlcControl {
    /// Joined to the lowest layer; `rates` are those of the levels it may go to.
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

    fn on_sync_point(&mut self, now: Instant) {
        let clean = self.lost_since_sync_point == 0 && !self.steps.sequences.has_gap();
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
        let Some(lost) = self.steps.on_packet(now, packet, cci.layer, cci.sequence) else { return };
        let is_top = cci.layer == self.steps.top();
        // What a burst does to a queue shows until the pause after it, which is about as long, is
        // over.
        if is_top && cci.burst {
            self.burst_until = now + self.burst * 2;
        }
        self.on_losses(now, lost);
        if is_top && cci.sync_point && cci.layer == self.steps.top() {
            self.on_sync_point(now);
        }
    }

    fn on_timeout(&mut self, now: Instant) {
        let Some(lost) = self.steps.on_timeout(now) else { return };
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
