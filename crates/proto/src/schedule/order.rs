//! The order of the turns of a session's blocks, on each of its channels.

use super::cumulative::Cumulative;
use super::fcast::Lists;
use super::interleaved::Interleaved;
use super::kind::TransmissionSchedule;
use super::phase::Phase;
use super::random::Random;
use super::sequential::Sequential;
use super::turn::{BlockShape, Quota, RunLength, Turn};
use crate::random::SplitMix64;

/// Sequence of turns over a set of blocks: endless, or finite with a limit.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    first: Phase,
    opening: Phase,
    kind: Kind,
    quota: Quota,
    /// Symbols of a block in one turn of the first phase.
    visit_length: RunLength,
}

#[derive(Clone, Debug)]
enum Kind {
    Interleaved(Interleaved),
    Sequential(Sequential),
    Random(Random),
    Cumulative(Cumulative),
    Fcast(Lists),
}

impl Order {
    /// With `limit_permille`, a block of `k` source symbols gets `k * limit_permille / 1000` turns,
    /// rounded up. `seed` determines all random choices.
    pub(crate) fn new(
        schedule: TransmissionSchedule,
        blocks: &[BlockShape],
        layer_count: usize,
        limit_permille: Option<u32>,
        seed: u64,
    ) -> Self {
        let kind = match schedule {
            TransmissionSchedule::Interleaved { .. } | TransmissionSchedule::Runs { .. } => {
                let grain = schedule.visit_length();
                Some(Kind::Interleaved(Interleaved::new(blocks, grain, layer_count)))
            }
            TransmissionSchedule::Sequential { repair_permille } => {
                Some(Kind::Sequential(Sequential::new(blocks, repair_permille)))
            }
            TransmissionSchedule::Random => {
                Some(Kind::Random(Random::new(blocks, SplitMix64::new(seed, ORDER_STREAM))))
            }
            TransmissionSchedule::Cumulative => {
                Cumulative::new(blocks, layer_count).map(Kind::Cumulative)
            }
            TransmissionSchedule::Fcast(fcast) => {
                Lists::new(fcast, blocks, layer_count, seed ^ ORDER_STREAM).map(Kind::Fcast)
            }
        };
        Self {
            first: Phase::default(),
            opening: Phase::default(),
            kind: kind.unwrap_or_else(|| {
                Kind::Interleaved(Interleaved::new(blocks, RunLength::ONE, layer_count))
            }),
            quota: Quota::new(blocks, limit_permille),
            visit_length: schedule.visit_length(),
        }
    }

    /// The order after a first phase of `turns[block]` turns of each block, in which blocks take
    /// turns as evenly as the order permits.
    pub(crate) fn after_first_phase(self, turns: Vec<u64>) -> Self {
        Self { first: Phase::new(turns, self.visit_length), ..self }
    }

    /// The order with an opening, between the first phase and the schedule, in which one block
    /// after the other has `turns[block]` turns.
    pub(crate) fn with_opening(self, turns: Vec<u64>) -> Self {
        Self { opening: Phase::new(turns, RunLength::WHOLE), ..self }
    }

    /// True if all turns of the first phase were taken, also if there is none.
    pub(crate) fn is_first_phase_over(&self) -> bool {
        self.first.is_over()
    }

    /// Number of queues of the order: one per layer, or one if the order does not depend on the
    /// layer.
    pub(crate) fn queue_count(&self) -> usize {
        match &self.kind {
            Kind::Sequential(_) | Kind::Random(_) => 1,
            Kind::Interleaved(order) => order.channel_count(),
            Kind::Cumulative(order) => order.layer_count(),
            Kind::Fcast(order) => order.layer_count(),
        }
    }

    /// The next turn of a queue.
    pub(crate) fn turn(&mut self, queue: usize) -> Option<Turn> {
        let Self { first, opening, kind, quota, .. } = self;
        if let Some(turn) = first.next(quota) {
            return Some(turn);
        }
        if let Some(turn) = opening.next(quota) {
            return Some(first.continued(turn));
        }
        let turn = match kind {
            Kind::Interleaved(order) => order.next(queue, quota),
            Kind::Sequential(order) => order.next(quota),
            Kind::Random(order) => order.next(quota),
            Kind::Cumulative(order) => order.next(queue, quota),
            Kind::Fcast(order) => order.next(queue, quota),
        };
        turn.map(|turn| first.continued(opening.continued(turn)))
    }

    /// Number of a turn of a block that the order does not reach in so many turns of the block, nor
    /// any after it.
    pub(crate) fn beyond(&self, block: &BlockShape, turns: u64) -> u64 {
        match &self.kind {
            Kind::Fcast(order) => order.beyond(block, turns),
            // They number the turns of a block as they come.
            _ => turns,
        }
    }

    /// Removes a block from the order.
    pub(crate) fn withdraw(&mut self, block: usize) {
        self.first.withdraw(block);
        self.opening.withdraw(block);
        self.quota.close(block);
    }
}

/// Stream of the random generator for orders, different from those for blocks and channels.
const ORDER_STREAM: u64 = 0x6f72_6465_7200_0000;
