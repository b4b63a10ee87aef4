//! The order of one block after the other:
//! [`TransmissionSchedule::Sequential`](super::TransmissionSchedule::Sequential).

use super::turn::{BlockShape, Quota, Turn, share};

/// Visits to the blocks in their order, repeated.
#[derive(Clone, Debug)]
pub(super) struct Sequential {
    /// Number of turns of each block in a visit.
    visits: Vec<u64>,
    cycle: u64,
    block: usize,
    in_visit: u64,
}

impl Sequential {
    pub(super) fn new(blocks: &[BlockShape], repair_permille: u32) -> Self {
        let permille = repair_permille.saturating_add(1000);
        let visits = blocks.iter().map(|shape| share(shape.source_symbols, permille)).collect();
        Self { visits, cycle: 0, block: 0, in_visit: 0 }
    }

    pub(super) fn next(&mut self, quota: &mut Quota) -> Option<Turn> {
        // If a cycle has no turn, there is none.
        for _ in 0..=self.visits.len() {
            let (block, visit) = (self.block, *self.visits.get(self.block)?);
            if self.in_visit < visit && quota.spend(block) {
                let i = self.cycle * visit + self.in_visit;
                self.in_visit += 1;
                return Some(Turn { block, i });
            }
            self.in_visit = 0;
            self.block += 1;
            if self.block == self.visits.len() {
                (self.block, self.cycle) = (0, self.cycle + 1);
            }
        }
        None
    }
}
