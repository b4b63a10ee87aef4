//! The orders of even progress:
//! [`TransmissionSchedule::Interleaved`](super::TransmissionSchedule::Interleaved) and
//! [`TransmissionSchedule::Runs`](super::TransmissionSchedule::Runs).

use super::turn::{BlockShape, Quota, RunLength, Turn};
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

/// On each channel, the next turn is that of the block of which the channel has sent the least
/// share. Each channel has an order of its own: channels take turns in a short cycle, and so do
/// blocks of equal length, so with one order a channel could repeat the same few blocks. No channel
/// sends a symbol that another one has sent.
#[derive(Clone, Debug)]
pub(super) struct Interleaved {
    channels: Vec<BinaryHeap<Reverse<Position>>>,
    /// Number of turns of each block, on all channels.
    sent: Vec<u64>,
}

impl Interleaved {
    /// `grain`: the number of symbols of a block in one turn.
    pub(super) fn new(blocks: &[BlockShape], grain: RunLength, channel_count: usize) -> Self {
        let with_symbols = blocks.iter().enumerate().filter(|(_, shape)| shape.source_symbols > 0);
        let position = |(block, shape): (usize, &BlockShape)| {
            let k = shape.source_symbols;
            Reverse(Position { i: 0, grain: grain.of(k.into()), weight: weight(k), block })
        };
        let heap: BinaryHeap<_> = with_symbols.map(position).collect();
        Self { channels: vec![heap; channel_count.max(1)], sent: vec![0; blocks.len()] }
    }

    pub(super) fn channel_count(&self) -> usize {
        self.channels.len()
    }

    pub(super) fn next(&mut self, queue: usize, quota: &mut Quota) -> Option<Turn> {
        let heap = self.channels.get_mut(queue)?;
        loop {
            // The same block usually stays on top: its grain continues.
            let mut top = heap.peek_mut()?;
            let block = top.0.block;
            if quota.spend(block) {
                top.0.i += 1;
                let sent = self.sent.get_mut(block)?;
                *sent += 1;
                return Some(Turn { block, i: *sent - 1 });
            }
            PeekMut::pop(top);
        }
    }
}

/// Position of a block on a channel. A grain is due when the share of a pass that ends in its
/// middle is over. A grain that has begun continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) i: u64,
    pub(super) grain: u64,
    /// Number of symbols of the block in one pass.
    pub(super) weight: u64,
    pub(super) block: usize,
}

/// Number of symbols that count as one pass of a block.
pub(super) fn weight(source_symbols: u32) -> u64 {
    u64::from(source_symbols) + u64::from(source_symbols.isqrt()) + 1
}

impl Position {
    /// Twice the number of symbols before the middle of the grain.
    fn middle(&self) -> u128 {
        u128::from(2 * (self.i / self.grain) + 1) * u128::from(self.grain)
    }
}

impl Ord for Position {
    fn cmp(&self, other: &Self) -> Ordering {
        let scaled = |a: &Self, b: &Self| a.middle() * u128::from(b.weight);
        scaled(self, other).cmp(&scaled(other, self)).then(self.block.cmp(&other.block))
    }
}

impl PartialOrd for Position {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
