//! The memoryless order: [`TransmissionSchedule::Random`](super::TransmissionSchedule::Random).

use super::turn::{BlockShape, Quota, Turn};
use crate::random::SplitMix64;

/// Blocks drawn in proportion to their length.
#[derive(Clone, Debug)]
pub(super) struct Random {
    /// For each block, the number of source symbols of all blocks up to and including it.
    up_to: Vec<u64>,
    /// Number of encoding symbols of each block, from which one is drawn; `None` for a rateless
    /// code, whose next symbol is taken.
    encoding_symbols: Vec<Option<u32>>,
    sent: Vec<u64>,
    random: SplitMix64,
}

impl Random {
    pub(super) fn new(blocks: &[BlockShape], random: SplitMix64) -> Self {
        let mut total = 0;
        let up_to = blocks.iter().map(|shape| {
            total += u64::from(shape.source_symbols);
            total
        });
        Self {
            up_to: up_to.collect(),
            encoding_symbols: blocks.iter().map(|shape| shape.encoding_symbols).collect(),
            sent: vec![0; blocks.len()],
            random,
        }
    }

    pub(super) fn next(&mut self, quota: &mut Quota) -> Option<Turn> {
        if quota.is_over() {
            return None;
        }
        let total = self.up_to.last().copied()?;
        let drawn = ((u128::from(self.random.next_u64()) * u128::from(total)) >> 64) as u64;
        let first = self.up_to.partition_point(|&up_to| up_to <= drawn);
        // If a block has no turn left, the next one that has takes it.
        let count = self.up_to.len();
        let block = (0..count).map(|n| (first + n) % count).find(|&block| quota.spend(block))?;
        let sent = self.sent.get_mut(block)?;
        let i = match self.encoding_symbols.get(block)? {
            Some(n) => u64::from(self.random.below(*n)),
            None => *sent,
        };
        *sent += 1;
        Some(Turn { block, i })
    }
}
