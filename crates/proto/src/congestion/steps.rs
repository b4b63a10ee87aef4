//! What RLC and FLID-SL have in common: one layer up or down at a time, and deaf after a step down,
//! until the leave has taken effect.

use super::control::{Level, PacketSeen};
use super::fixed::Prefix;
use super::sequence::{LOST_AFTER, MODULUS, Sequences};
use crate::time::Instant;
use std::time::Duration;

/// A layer that has brought nothing for so long, while a lower one comes, is as bad as a loss: the
/// router does not know of the join, or the queue drops just this layer, as queues do whose input is
/// regular. Longer than anybody takes to graft a branch.
const SILENCE: Duration = Duration::from_secs(10);
/// Bytes that a slow layer brings in the least time after which it is silent: five packets.
const SILENT_BYTES: u64 = 7500;

/// A level, and what is known of its channels.
#[derive(Clone, Debug)]
pub(super) struct Steps {
    pub(super) prefix: Prefix,
    /// Bytes per second of each level.
    rates: Vec<u64>,
    pub(super) sequences: Sequences,
    deaf_until: Instant,
    /// When to look again for what does not come.
    next_check: Instant,
    /// When each of the joined layers was last heard, or joined.
    last_received: Vec<Instant>,
}

impl Steps {
    pub(super) fn new(rates: Vec<u64>, now: Instant) -> Self {
        Self {
            prefix: Prefix::new(1, 1),
            rates,
            sequences: Sequences::default(),
            deaf_until: now,
            next_check: now + LOST_AFTER,
            last_received: vec![now],
        }
    }

    pub(super) fn top(&self) -> u8 {
        self.prefix.wanted - 1
    }

    /// A packet of a joined layer; a layer that is left and still comes counts for nothing. Returns
    /// losses, of which a mark is one, or `None` if it is none of ours.
    pub(super) fn on_packet(
        &mut self,
        now: Instant,
        packet: &PacketSeen,
        layer: u8,
        number: u16,
    ) -> Option<u64> {
        if layer != packet.channel.0 || layer > self.top() {
            return None;
        }
        if let Some(last) = self.last_received.get_mut(usize::from(layer)) {
            *last = now;
        }
        let lost = self.sequences.on_packet(now, packet, number.into(), MODULUS).packets;
        Some(lost + u64::from(packet.congestion_experienced))
    }

    pub(super) fn poll_timeout(&self) -> Instant {
        self.next_check
    }

    /// Losses that no packet has shown, if it is time to look for them.
    pub(super) fn on_timeout(&mut self, now: Instant) -> Option<u64> {
        if now < self.next_check {
            return None;
        }
        self.next_check = now + LOST_AFTER;
        Some(self.sequences.expire(now).packets)
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
            self.sequences.forget(self.prefix.wanted);
            self.last_received.pop();
        }
        // Whoever is silent has until then to speak.
        self.last_received.fill(now + deaf);
        self.deaf_until = now + deaf;
    }

    /// Whether a layer does not come although a lower one does, and that should be heard.
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
