//! The common part of RLC and FLID-SL: steps of one layer, and the deaf time after a step down, in
//! which the leave takes effect.

use super::control::{Level, PacketSeen};
use super::fixed::Prefix;
use crate::sequence::{LOST_AFTER, SequenceTracker};
use crate::time::Instant;
use std::time::Duration;

/// Time after which a layer without packets counts as a loss, if a lower layer has some. Either the
/// router does not know of the join, or a queue with regular input drops just this layer. It is
/// longer than any network takes to graft a branch.
const SILENCE: Duration = Duration::from_secs(10);
/// Least number of bytes that a slow layer sends in the time after which it counts as silent: five
/// packets.
const SILENT_BYTES: u64 = 7500;

/// Level of a receiver, and state of its channels.
#[derive(Clone, Debug)]
pub(super) struct Steps {
    pub(super) prefix: Prefix,
    /// Rate of each level in bytes per second.
    rates: Vec<u64>,
    deaf_until: Instant,
    /// Time of the next check for losses that no packet shows.
    next_check: Instant,
    /// Time of the last packet, or of the join, for each joined layer.
    last_received: Vec<Instant>,
}

impl Steps {
    pub(super) fn new(rates: Vec<u64>, now: Instant) -> Self {
        Self {
            prefix: Prefix::new(1, 1),
            rates,
            deaf_until: now,
            next_check: now + LOST_AFTER,
            last_received: vec![now],
        }
    }

    pub(super) fn top(&self) -> u8 {
        self.prefix.wanted - 1
    }

    /// Handles a packet. Returns the number of losses, including one for a mark, or `None` if the
    /// packet is not of a joined layer. Packets that arrive after a leave are ignored.
    pub(super) fn on_packet(
        &mut self,
        now: Instant,
        packet: &PacketSeen,
        layer: u8,
    ) -> Option<u64> {
        if layer != packet.channel.0 || layer > self.top() {
            return None;
        }
        if let Some(last) = self.last_received.get_mut(usize::from(layer)) {
            *last = now;
        }
        Some(packet.lost.packets + u64::from(packet.congestion_experienced))
    }

    pub(super) fn poll_timeout(&self) -> Instant {
        self.next_check
    }

    /// Number of losses that no packet has shown; `None` before the time of the check.
    pub(super) fn on_timeout(
        &mut self,
        now: Instant,
        sequence: &mut SequenceTracker,
    ) -> Option<u64> {
        if now < self.next_check {
            return None;
        }
        self.next_check = now + LOST_AFTER;
        Some(sequence.expire(now).packets)
    }

    pub(super) fn is_deaf(&self, now: Instant) -> bool {
        now < self.deaf_until
    }

    pub(super) fn up(&mut self, now: Instant) {
        if usize::from(self.prefix.wanted) < self.rates.len() {
            self.prefix.wanted += 1;
            self.last_received.push(now);
        }
    }

    pub(super) fn down(&mut self, now: Instant, deaf: Duration) {
        if self.prefix.wanted > 1 {
            self.prefix.wanted -= 1;
            self.last_received.pop();
        }
        // Silent layers get the deaf time, too.
        self.last_received.fill(now + deaf);
        self.deaf_until = now + deaf;
    }

    /// True if a layer is silent although a lower one is not.
    pub(super) fn has_silent_layer(&self, now: Instant) -> bool {
        if self.is_deaf(now) {
            return false;
        }
        let level = |layer: usize| self.rates.get(layer).copied().unwrap_or(0);
        let silent = |layer: usize| {
            let rate = level(layer) - layer.checked_sub(1).map_or(0, level);
            let nanos = u128::from(SILENT_BYTES) * 1_000_000_000 / u128::from(rate.max(1));
            let longest = SILENCE.max(Duration::from_nanos(nanos as u64));
            self.last_received.get(layer).is_some_and(|&last| now.saturating_since(last) > longest)
        };
        (1..self.last_received.len())
            .any(|layer| silent(layer) && (0..layer).any(|below| !silent(below)))
    }

    pub(super) fn level(&self) -> Level {
        let rate = self.rates.get(usize::from(self.top())).copied();
        Level { channels: self.prefix.wanted, rate_bytes_per_second: rate }
    }
}
