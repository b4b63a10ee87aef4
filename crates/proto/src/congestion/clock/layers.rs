//! The clock of cumulative layers. Packets leave at the rate of all layers together, and the layers
//! alternate.
//!
//! RLC's bursts do not change that rate. Before a synchronization point of the levels up to `j`,
//! the layers up to `j` are sent at the rate of level `j + 1`: a receiver sees what it would see
//! after a step up. Then they pause until their average is right again. Layer `j + 1` yields its
//! packets during the burst and gets them back during the pause, so that receivers at level `j + 1`
//! and above see no difference.

use super::grid::{Emission, PacketGrid};
use crate::channel::ChannelId;
use crate::random::SplitMix64;
use crate::time::Instant;
use fontana_wire::{Cci, FlidCci, FlidSl, Rlc, RlcCci, SyncSpacing};
use std::ops::Range;

#[derive(Clone, Debug)]
pub(super) struct LayerClock {
    grid: PacketGrid,
    start: Instant,
    marking: Marking,
    layers: Vec<Layer>,
    /// Sum of the layers' rates in this phase.
    total: i128,
    phase: TimedPhase,
    /// Layer of the next packet.
    next: usize,
}

#[derive(Clone, Debug)]
struct Layer {
    bytes_per_second: u64,
    /// Rate of this layer and all below.
    cumulative: u64,
    /// Rate in this phase.
    rate: i128,
    /// Credit of the layer, in bytes per second times packets. It grows by the layer's rate with
    /// every packet, and falls by the rate of all layers with every packet of its own. The sum over
    /// all layers is zero.
    credit: i128,
    sequence: u32,
    /// Number of the last synchronization point that was marked.
    sync_point: u64,
}

/// Content of the CCI besides the sequence number.
#[derive(Clone, Debug)]
pub(super) enum Marking {
    Number,
    Rlc {
        cycle_nanos: u64,
        burst_nanos: u64,
        spacing: SyncSpacing,
    },
    Flid {
        slot_nanos: u64,
        /// For each layer, the fraction of slots with a trigger, times 2^32.
        shares: Vec<u64>,
    },
}

/// Phase of RLC's sender between two synchronization points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Even,
    /// The layers up to this one are sent at the rate of the next level.
    Burst(usize),
    /// The layers up to this one pause.
    Relaxation(usize),
}

/// A phase and its time, in nanoseconds since the start. Most packets are in the phase of the
/// packet before.
#[derive(Clone, Debug)]
struct TimedPhase {
    phase: Phase,
    time: Range<u64>,
}

impl Marking {
    pub(super) fn rlc(rlc: &Rlc) -> Self {
        Self::Rlc {
            cycle_nanos: u64::from(rlc.cycle_milliseconds) * 1_000_000,
            burst_nanos: u64::from(rlc.burst_milliseconds) * 1_000_000,
            spacing: rlc.spacing,
        }
    }

    /// The marking of FLID-SL. The fraction of slots in which receivers may step up from layer `i`
    /// is 20 packets over the packets of the level in a slot, at most 1. Receivers then step down
    /// at the same loss rate as TCP (MCL).
    pub(super) fn flid(flid: &FlidSl, cumulative: &[u64], packet_bytes: u16) -> Self {
        let slot = u128::from(flid.slot_milliseconds);
        let share = |&rate: &u64| {
            let twenty = (20 * u128::from(packet_bytes) * slot) << 32;
            u64::try_from(twenty / 1000 / u128::from(rate.max(1))).unwrap_or(u64::MAX)
        };
        let shares = cumulative.iter().map(share).collect();
        Self::Flid { slot_nanos: u64::from(flid.slot_milliseconds) * 1_000_000, shares }
    }
}

impl LayerClock {
    /// `cumulative` holds the rate of each layer and all below, in bytes per second.
    pub(super) fn new(
        cumulative: &[u64],
        packet_bytes: u16,
        start: Instant,
        seed: u64,
        marking: Marking,
    ) -> Self {
        let mut below = 0;
        let mut layers = Vec::with_capacity(cumulative.len());
        for (index, &cumulative) in cumulative.iter().enumerate() {
            let mut random = SplitMix64::new(seed, index as u64);
            layers.push(Layer {
                bytes_per_second: cumulative.saturating_sub(below),
                cumulative,
                rate: 0,
                credit: 0,
                sequence: random.next_u64() as u32,
                sync_point: 0,
            });
            below = cumulative;
        }
        let grid = PacketGrid::new(start, below, packet_bytes);
        // Ends before it begins: the first packet enters its phase.
        let phase = TimedPhase { phase: Phase::Even, time: 0..0 };
        let mut clock = Self { grid, start, marking, layers, total: 0, phase, next: 0 };
        clock.choose();
        clock
    }

    pub(super) fn channel_count(&self) -> usize {
        self.layers.len()
    }

    pub(super) fn peek(&self) -> Emission {
        let at = self.grid.at();
        Emission { at, channel: ChannelId(self.next as u8), cci: self.cci(at) }
    }

    pub(super) fn advance(&mut self) {
        let sync_point = self.sync_point_of(self.next, self.grid.at());
        if let Some(layer) = self.layers.get_mut(self.next) {
            layer.sequence = layer.sequence.wrapping_add(1);
            layer.sync_point = sync_point;
        }
        self.grid.advance();
        self.choose();
    }

    pub(super) fn skip_to(&mut self, now: Instant) {
        let _ = self.grid.skip_to(now);
    }

    fn cci(&self, at: Instant) -> Cci {
        let (index, elapsed) = (self.next, self.elapsed(at));
        let Some(layer) = self.layers.get(index) else { return Cci::default() };
        let (number, sequence) = (index as u8, layer.sequence as u16);
        match &self.marking {
            Marking::Number => Cci::from_u32(layer.sequence),
            Marking::Rlc { .. } => RlcCci {
                sync_point: self.sync_point_of(index, at) > layer.sync_point,
                burst: matches!(self.phase(elapsed), Phase::Burst(top) if index <= top),
                layer: number,
                sequence,
            }
            .emit(),
            Marking::Flid { slot_nanos, shares } => {
                let slot = elapsed / slot_nanos;
                // Van der Corput: a fraction s of the slots, spread as evenly as possible, and a
                // subset of those of every larger fraction. The highest layer has no trigger.
                let place = u64::from((slot as u32).reverse_bits());
                let share = shares.get(index).copied().unwrap_or(0);
                let trigger = index + 1 < self.layers.len() && place <= share;
                let slot = (slot % u64::from(FlidCci::SLOTS)) as u8;
                FlidCci { trigger, slot, layer: number, sequence }.emit()
            }
        }
    }

    fn elapsed(&self, at: Instant) -> u64 {
        at.saturating_since(self.start).as_nanos() as u64
    }

    /// Number of synchronization points of the layer so far.
    fn sync_point_of(&self, layer: usize, at: Instant) -> u64 {
        let Marking::Rlc { cycle_nanos, spacing, .. } = self.marking else { return 0 };
        if layer + 1 >= self.layers.len() {
            return 0;
        }
        self.elapsed(at) / cycle_nanos.saturating_mul(cycles_between(spacing, layer))
    }

    fn phase(&self, elapsed: u64) -> Phase {
        if self.phase.time.contains(&elapsed) {
            self.phase.phase
        } else {
            self.timed_phase(elapsed).phase
        }
    }

    fn timed_phase(&self, elapsed: u64) -> TimedPhase {
        let Marking::Rlc { cycle_nanos, burst_nanos, spacing } = self.marking else {
            return TimedPhase { phase: Phase::Even, time: 0..u64::MAX };
        };
        let start = elapsed - elapsed % cycle_nanos;
        let end = start.saturating_add(cycle_nanos);
        let cycle = elapsed / cycle_nanos + 1;
        let has_point = |&layer: &usize| cycle.is_multiple_of(cycles_between(spacing, layer));
        let tops = 0..self.layers.len().saturating_sub(1);
        let Some(top) = tops.rev().find(has_point) else {
            return TimedPhase { phase: Phase::Even, time: start..end };
        };
        let rate = |layer: usize| self.layers.get(layer).map_or(1, |l| l.cumulative.max(1));
        // Length of burst and pause together: the pause omits the packets that the burst has added.
        let both = |burst: u64| {
            let nanos = u128::from(burst) * u128::from(rate(top + 1)) / u128::from(rate(top));
            u64::try_from(nanos).unwrap_or(u64::MAX)
        };
        let whole = both(burst_nanos).min(cycle_nanos);
        let burst = u128::from(whole) * u128::from(rate(top)) / u128::from(rate(top + 1));
        let relaxation = whole - u64::try_from(burst).unwrap_or(0).min(whole);
        let (begins, pauses) = (end - whole, end - relaxation);
        let (phase, time) = match elapsed {
            elapsed if elapsed < begins => (Phase::Even, start..begins),
            elapsed if elapsed < pauses => (Phase::Burst(top), begins..pauses),
            _ => (Phase::Relaxation(top), pauses..end),
        };
        TimedPhase { phase, time }
    }

    /// Enters the phase of this time: its rates.
    fn enter_phase(&mut self, elapsed: u64) {
        self.phase = self.timed_phase(elapsed);
        let phase = self.phase.phase;
        let cumulative = |layer: usize| self.layers.get(layer).map_or(1, |l| l.cumulative);
        let (level, next_level) = match phase {
            Phase::Even => (1, 1),
            Phase::Burst(top) | Phase::Relaxation(top) => {
                (cumulative(top).max(1), cumulative(top + 1))
            }
        };
        self.total = 0;
        for (index, layer) in self.layers.iter_mut().enumerate() {
            let rate = i128::from(layer.bytes_per_second);
            layer.rate = match phase {
                Phase::Burst(top) if index <= top => {
                    rate * i128::from(next_level) / i128::from(level)
                }
                Phase::Burst(top) if index == top + 1 => 0,
                Phase::Relaxation(top) if index <= top => 0,
                Phase::Relaxation(top) if index == top + 1 => next_level.into(),
                _ => rate,
            };
            self.total += layer.rate;
        }
    }

    /// Gives the next packet to the layer with the largest credit, among those that are sent in
    /// this phase.
    fn choose(&mut self) {
        let elapsed = self.elapsed(self.grid.at());
        if !self.phase.time.contains(&elapsed) {
            self.enter_phase(elapsed);
        }
        let (mut next, mut most) = (0, i128::MIN);
        for (index, layer) in self.layers.iter_mut().enumerate() {
            layer.credit += layer.rate;
            if layer.rate > 0 && layer.credit > most {
                (next, most) = (index, layer.credit);
            }
        }
        if let Some(layer) = self.layers.get_mut(next) {
            layer.credit -= self.total;
        }
        self.next = next;
    }
}

/// Number of cycles between synchronization points of a layer.
fn cycles_between(spacing: SyncSpacing, layer: usize) -> u64 {
    // At most 2^40, which is practically never: 64 layers are allowed, and the shift must not
    // overflow.
    let power = |exponent: usize| 1_u64 << exponent.min(40);
    match spacing {
        SyncSpacing::Nested => power(layer),
        SyncSpacing::Mcl => power(layer + 1) - 1,
    }
}
