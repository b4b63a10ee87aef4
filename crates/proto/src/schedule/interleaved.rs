//! Even progress: [`TransmissionSchedule::Interleaved`](super::TransmissionSchedule::Interleaved).

use super::{BlockShape, Ledger, Turn};
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// The block's turn whose share is sent least.
#[derive(Clone, Debug)]
pub(super) struct Interleaved {
    heap: BinaryHeap<Reverse<Position>>,
}

impl Interleaved {
    pub(super) fn new(blocks: &[BlockShape], grain: u32) -> Self {
        let with_symbols = blocks.iter().enumerate().filter(|(_, shape)| shape.source_symbols > 0);
        let position = |(block, shape): (usize, &BlockShape)| {
            let k = shape.source_symbols;
            let grain = u64::from(grain.clamp(1, k));
            Reverse(Position { i: 0, grain, weight: weight(k), block })
        };
        Self { heap: with_symbols.map(position).collect() }
    }

    pub(super) fn next(&mut self, ledger: &mut Ledger) -> Option<Turn> {
        loop {
            let Reverse(position) = self.heap.pop()?;
            let Position { i, block, .. } = position;
            if ledger.spend(block) {
                self.heap.push(Reverse(Position { i: i + 1, ..position }));
                return Some(Turn { block, i });
            }
        }
    }
}

/// A block's next symbol. The grain that it belongs to is due when the share of a pass that ends
/// in the grain's middle is over; a grain that has begun goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Position {
    i: u64,
    grain: u64,
    /// Symbols of the block in one pass.
    weight: u64,
    block: usize,
}

/// Symbols that count as one pass of a block.
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
