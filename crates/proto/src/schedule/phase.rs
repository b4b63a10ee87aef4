//! Phases before the schedule: each sends a number of symbols of some blocks.

use super::interleaved::Position;
use super::turn::{Quota, RunLength, Turn};
use fontana_fec::FecScheme;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The turns of a phase. All channels share them: the next turn is that of the block of which the
/// smallest share of its turns is over.
#[derive(Clone, Debug, Default)]
pub(super) struct Phase {
    /// Blocks with turns left.
    open: BinaryHeap<Reverse<Position>>,
    /// Number of turns of each block in the phase; empty if there is no phase.
    turns: Vec<u64>,
}

impl Phase {
    /// `turns[block]` turns for each block, in runs of `grain`.
    pub(super) fn new(turns: Vec<u64>, grain: RunLength) -> Self {
        let with_turns = turns.iter().enumerate().filter(|&(_, &turns)| turns > 0);
        let position = |(block, &weight): (usize, &u64)| {
            Reverse(Position { i: 0, grain: grain.of(weight), weight, block })
        };
        Self { open: with_turns.map(position).collect(), turns }
    }

    pub(super) fn next(&mut self, quota: &mut Quota) -> Option<Turn> {
        while let Some(Reverse(position)) = self.open.pop() {
            let Position { i, weight, block, .. } = position;
            if quota.spend(block) {
                if i + 1 < weight {
                    self.open.push(Reverse(Position { i: i + 1, ..position }));
                }
                return Some(Turn { block, i });
            }
        }
        None
    }

    /// A turn of the order that follows the phase: the block continues after its last turn.
    pub(super) fn continued(&self, turn: Turn) -> Turn {
        let before = self.turns.get(turn.block).copied().unwrap_or(0);
        Turn { i: turn.i + before, ..turn }
    }

    pub(super) fn withdraw(&mut self, block: usize) {
        self.open.retain(|Reverse(position)| position.block != block);
    }

    pub(super) fn is_over(&self) -> bool {
        self.open.is_empty()
    }
}

/// Number of symbols of a block of `k` source symbols with which most receivers recover it, if one
/// symbol in four is lost.
pub(crate) fn likely_symbols(scheme: FecScheme, k: u32) -> u64 {
    // Of a code whose surplus varies, only the decoder can tell how many symbols it needs.
    let surplus = scheme.profile().sure_surplus.unwrap_or_else(|| k.div_ceil(8));
    if k == 0 { 0 } else { sent_for(u64::from(k) + u64::from(surplus)) }
}

/// Number of symbols of which at least `needed` arrive with a probability of 99.8 %, if one in four
/// is lost.
///
/// Of `n` symbols, a mean of `3/4 n` arrives, with a standard deviation of `sqrt(3/16 n)`. The mean
/// exceeds `needed = m` by three standard deviations if `n = 4/3 m + 3/2 + sqrt(4 m + 9/4)`.
fn sent_for(needed: u64) -> u64 {
    (4 * needed).div_ceil(3) + 3 + (4 * needed + 2).isqrt()
}

#[cfg(test)]
mod tests {
    use super::super::turn::BlockShape;
    use super::*;

    /// The probability that at least `needed` of `sent` symbols arrive, if one in four is lost.
    fn arrives(needed: u64, sent: u64) -> f64 {
        let mut likelihood = vec![1.0];
        for _ in 0..sent {
            let mut next = vec![0.0; likelihood.len() + 1];
            for (arrived, p) in likelihood.iter().enumerate() {
                next[arrived] += p / 4.0;
                next[arrived + 1] += p * 3.0 / 4.0;
            }
            likelihood = next;
        }
        likelihood.iter().skip(needed as usize).sum()
    }

    #[test]
    fn enough_symbols_arrive_of_short_and_long_blocks() {
        for needed in (1..40).chain([100, 202, 500, 1_000]) {
            let sent = sent_for(needed);
            let likely = arrives(needed, sent);
            assert!(likely > 0.998, "{needed} of {sent}: {likely}");
            assert!(sent <= needed * 4 / 3 + needed.isqrt() * 2 + 6, "{needed}: {sent}");
        }
    }

    #[test]
    fn blocks_advance_evenly_and_then_the_phase_is_over() {
        let mut phase = Phase::new(vec![6, 0, 3], RunLength::ONE);
        let shape = |k| BlockShape { object: 0, source_symbols: k, encoding_symbols: None };
        let mut quota = Quota::new(&[shape(4), shape(9), shape(2)], None);
        let turns: Vec<_> = std::iter::from_fn(|| phase.next(&mut quota)).collect();
        let blocks: Vec<_> = turns.iter().map(|turn| turn.block).collect();
        assert_eq!(blocks, [0, 2, 0, 0, 2, 0, 0, 2, 0], "{turns:?}");
        assert!(phase.is_over());
        let after = |block| phase.continued(Turn { block, i: 1 }).i;
        assert_eq!([after(0), after(1), after(2)], [7, 1, 4]);
    }

    #[test]
    fn long_runs_are_one_block_after_the_other() {
        let mut phase = Phase::new(vec![3, 2], RunLength::WHOLE);
        let shape = |k| BlockShape { object: 0, source_symbols: k, encoding_symbols: None };
        let mut quota = Quota::new(&[shape(2), shape(1)], None);
        let blocks: Vec<_> =
            std::iter::from_fn(|| phase.next(&mut quota)).map(|turn| turn.block).collect();
        assert_eq!(blocks, [0, 0, 0, 1, 1]);
    }
}
