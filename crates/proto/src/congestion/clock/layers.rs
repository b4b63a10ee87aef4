//! Cumulative layers: packets leave at the rate of all of them, and take turns between the layers.

use super::{Comb, Emission};
use crate::{ChannelId, Instant, SplitMix64};
use fontana_wire::Cci;

#[derive(Clone, Debug)]
pub(super) struct LayerClock {
    comb: Comb,
    layers: Vec<Layer>,
    /// Of the packet that is due.
    next: usize,
}

#[derive(Clone, Debug)]
struct Layer {
    bytes_per_second: u64,
    /// What it is owed, in bytes per second and turn: grows by its rate with every packet, and falls
    /// by that of all layers with every packet of its own. Those of all layers add up to nothing.
    credit: i128,
    sequence: u32,
}

impl LayerClock {
    /// `cumulative`: bytes per second of each layer and all below.
    pub(super) fn new(cumulative: &[u64], packet_bytes: u16, start: Instant, seed: u64) -> Self {
        let mut below = 0;
        let mut layers = Vec::with_capacity(cumulative.len());
        for (index, &rate) in cumulative.iter().enumerate() {
            let mut random = SplitMix64::new(seed, index as u64);
            let bytes_per_second = rate.saturating_sub(below);
            layers.push(Layer { bytes_per_second, credit: 0, sequence: random.next_u64() as u32 });
            below = rate;
        }
        let mut clock = Self { comb: Comb::new(start, below, packet_bytes), layers, next: 0 };
        clock.choose();
        clock
    }

    pub(super) fn channel_count(&self) -> usize {
        self.layers.len()
    }

    pub(super) fn peek(&self) -> Emission {
        let sequence = self.layers.get(self.next).map_or(0, |layer| layer.sequence);
        Emission {
            at: self.comb.at(),
            channel: ChannelId(self.next as u8),
            cci: Cci::from_u32(sequence),
        }
    }

    pub(super) fn advance(&mut self) {
        if let Some(layer) = self.layers.get_mut(self.next) {
            layer.sequence = layer.sequence.wrapping_add(1);
        }
        self.comb.advance();
        self.choose();
    }

    pub(super) fn skip_to(&mut self, now: Instant) {
        self.comb.skip_to(now);
    }

    /// Gives the next packet to the layer that is owed most.
    fn choose(&mut self) {
        let mut total = 0;
        let (mut next, mut most) = (0, i128::MIN);
        for (index, layer) in self.layers.iter_mut().enumerate() {
            layer.credit += i128::from(layer.bytes_per_second);
            total += i128::from(layer.bytes_per_second);
            if layer.credit > most {
                (next, most) = (index, layer.credit);
            }
        }
        if let Some(layer) = self.layers.get_mut(next) {
            layer.credit -= total;
        }
        self.next = next;
    }
}
