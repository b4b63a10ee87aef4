//! Blocks that are solved before their first repair symbols are due.
//!
//! In an even order, all blocks end their source symbols at the same time, and then all need repair
//! symbols: within one planning window, every block has to be solved. So workers that have nothing
//! to prepare solve blocks during the last part of the source pass, evenly, and no earlier than the
//! rate makes it useful. Of several workers, one only prepares batches.
//!
//! In the same way, and evenly in the first pass, they check blocks against a manifest that a
//! sender has taken over without reading the files.
//!
//! With repair on demand, no block is solved before a receiver has reported losses: without losses
//! no repair symbol is sent.

use crate::content::BlockVerifier;
use fontana_fec::Sbn;
use fontana_store::{ObjectEncoder, SourceError};
use fontana_wire::Toi;
use std::collections::VecDeque;
use std::sync::Arc;

/// A block to be solved.
pub(super) struct UnsolvedBlock {
    encoder: Arc<ObjectEncoder>,
    sbn: Sbn,
}

impl UnsolvedBlock {
    /// Solves and stores the block, if there is room. Solving takes at most `budget` bytes.
    pub(super) fn solve(&self, budget: usize) {
        // The first visit of the block meets the same error, and reports it.
        if let Err(error) = self.encoder.solve_ahead(self.sbn, budget) {
            tracing::debug!(%error, sbn = self.sbn.0, "a block was not solved ahead");
        }
    }
}

/// A block that was not read since its manifest was made.
pub(super) struct UnreadBlock {
    verifier: Arc<BlockVerifier>,
    toi: Toi,
    sbn: Sbn,
}

/// The result of the comparison of a block with its hash.
pub(super) struct CheckedBlock {
    pub(super) toi: Toi,
    pub(super) result: Result<(), SourceError>,
}

impl UnreadBlock {
    /// Compares the block with its hash.
    pub(super) fn check(&self) -> CheckedBlock {
        CheckedBlock { toi: self.toi, result: self.verifier.check(self.sbn) }
    }
}

/// What workers do that have nothing to prepare.
pub(super) enum SpareJob {
    Solve(UnsolvedBlock),
    Check(UnreadBlock),
}

/// The blocks that were not read since their manifest was made. They are checked evenly, in as many
/// symbols as they have: their files are read then in any case.
pub(super) struct CheckAhead {
    blocks: VecDeque<UnreadBlock>,
    total: u64,
    /// Blocks that are handed out, and of which no result has come.
    begun: u64,
    /// Symbols of all objects, and those that are prepared.
    symbols: u64,
    prepared: u64,
}

impl CheckAhead {
    pub(super) fn new<'v>(
        verifiers: impl Iterator<Item = (Toi, &'v Arc<BlockVerifier>)>,
        symbols: u64,
    ) -> Self {
        let blocks: VecDeque<_> = verifiers
            .flat_map(|(toi, verifier)| {
                let block = move |sbn| UnreadBlock { verifier: Arc::clone(verifier), toi, sbn };
                verifier.unread_blocks().map(block)
            })
            .collect();
        Self { total: blocks.len() as u64, blocks, begun: 0, symbols: symbols.max(1), prepared: 0 }
    }

    /// The blocks that are to be checked now that so many further symbols are prepared: the first
    /// one at once.
    pub(super) fn advance(&mut self, symbols: u64) -> impl Iterator<Item = UnreadBlock> {
        self.prepared = (self.prepared + symbols).min(self.symbols);
        let before = self.total - self.blocks.len() as u64;
        let more = self.due().saturating_sub(before).min(self.blocks.len() as u64);
        self.begun += more;
        self.blocks.drain(..more as usize)
    }

    /// A block that was handed out is checked.
    pub(super) fn finish(&mut self) {
        self.begun -= 1;
    }

    /// Whether all blocks that were handed out are checked.
    pub(super) fn is_idle(&self) -> bool {
        self.begun == 0
    }

    /// Blocks that are due, begun or not.
    fn due(&self) -> u64 {
        let share = u128::from(self.total) * u128::from(self.prepared);
        share.div_ceil(self.symbols.into()) as u64
    }
}

/// The blocks of a session that are not solved yet, in their order.
pub(super) struct SolveAhead {
    blocks: VecDeque<UnsolvedBlock>,
    shares: Shares,
    /// Number of blocks that are due and not handed out.
    due: usize,
    /// They are due only if receivers lose packets.
    waits_for_losses: bool,
}

impl SolveAhead {
    /// The blocks of these objects, to be solved while the last `window` source symbols are
    /// prepared; 0: none.
    pub(super) fn new<'e>(
        encoders: impl Iterator<Item = &'e Arc<ObjectEncoder>>,
        window: u64,
    ) -> Self {
        let mut blocks = VecDeque::new();
        let mut source_symbols = 0;
        for encoder in encoders.take_while(|_| window > 0) {
            let layout = encoder.source().layout();
            source_symbols += layout.total_source_symbols();
            let scheme = layout.oti().scheme;
            for sbn in (0..layout.block_count()).map(Sbn) {
                let k = layout.source_symbols(sbn).unwrap_or(0);
                if scheme.block_profile(k).max_repair_symbols > 0 {
                    blocks.push_back(UnsolvedBlock { encoder: Arc::clone(encoder), sbn });
                }
            }
        }
        let shares = Shares { left: source_symbols, window, total: blocks.len(), begun: 0 };
        Self { blocks, shares, due: 0, waits_for_losses: false }
    }

    /// The same blocks. None of them is handed out before [`begin`](Self::begin) is called.
    pub(super) fn on_losses(self) -> Self {
        Self { waits_for_losses: true, ..self }
    }

    /// The blocks that are to be solved now that so many further source symbols are prepared.
    pub(super) fn advance(&mut self, source_symbols: u64) -> impl Iterator<Item = UnsolvedBlock> {
        self.due += self.shares.advance(source_symbols);
        self.take_due()
    }

    /// The blocks that are to be solved now that a receiver loses packets.
    pub(super) fn begin(&mut self) -> impl Iterator<Item = UnsolvedBlock> {
        self.waits_for_losses = false;
        self.take_due()
    }

    fn take_due(&mut self) -> impl Iterator<Item = UnsolvedBlock> {
        let due = if self.waits_for_losses { 0 } else { std::mem::take(&mut self.due) };
        self.blocks.drain(..due.min(self.blocks.len()))
    }
}

/// Which share of the blocks is due.
struct Shares {
    /// Source symbols that are not prepared yet.
    left: u64,
    /// Source symbols before the end of the pass from which on blocks are due.
    window: u64,
    total: usize,
    /// Blocks that were due before.
    begun: usize,
}

impl Shares {
    /// Number of blocks that became due.
    fn advance(&mut self, source_symbols: u64) -> usize {
        self.left = self.left.saturating_sub(source_symbols);
        let passed = self.window.saturating_sub(self.left);
        let share = u128::from(passed) * self.total as u128;
        let due = share.checked_div(self.window.into()).unwrap_or(0) as usize;
        let before = std::mem::replace(&mut self.begun, due);
        due - before
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fontana_fec::codes::raptorq::RaptorQ;
    use fontana_fec::{FecScheme, Oti, PlanCache};
    use fontana_store::{Extents, ObjectSource, SolvedStore, SourceFiles};

    fn due(window: u64, steps: &[u64]) -> Vec<usize> {
        let mut shares = Shares { left: 1000, window, total: 10, begun: 0 };
        steps.iter().map(|&step| shares.advance(step)).collect()
    }

    #[test]
    fn blocks_are_solved_evenly_before_the_end_of_the_source_pass() {
        assert_eq!(due(100, &[900, 10, 10, 35, 45]), [0, 1, 1, 3, 5]);
        assert_eq!(due(1000, &[100, 0, 900]), [1, 0, 9]);
        assert_eq!(due(100, &[1000, 5]), [10, 0]);
    }

    /// The blocks that are handed out with each 1 280 source symbols of 12 800 in ten blocks.
    fn handed_out(mut ahead: SolveAhead, begins_after: usize) -> Vec<usize> {
        let mut counts = Vec::new();
        for step in 0..10 {
            if step == begins_after {
                counts.push(ahead.begin().count());
            }
            counts.push(ahead.advance(1_280).count());
        }
        counts
    }

    #[test]
    fn with_repair_on_demand_blocks_wait_for_losses() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let transfer_length = 12_800 * 64;
        std::fs::write(&path, vec![7; transfer_length as usize]).unwrap();
        let mut files = SourceFiles::default();
        let extents = Extents::whole_file(files.add(&path).unwrap(), transfer_length);
        let scheme = FecScheme::RaptorQ(RaptorQ { source_blocks: 10, sub_blocks: 1, alignment: 4 });
        let layout = Oti { transfer_length, symbol_size: 64, scheme }.layout().unwrap();
        let source = Arc::new(ObjectSource::new(Arc::new(files), layout, extents).unwrap());
        let (plans, store) = (Arc::new(PlanCache::new(1)), SolvedStore::new(0));
        let encoder = Arc::new(ObjectEncoder::new(source, plans, store));
        let ahead = || SolveAhead::new(std::iter::once(&encoder), 6_400);
        assert_eq!(handed_out(ahead(), 9), [0, 0, 0, 0, 0, 2, 2, 2, 2, 0, 2]);
        assert_eq!(handed_out(ahead().on_losses(), 7), [0, 0, 0, 0, 0, 0, 0, 4, 2, 2, 2]);
        assert_eq!(handed_out(ahead().on_losses(), 99), [0; 10]);
    }

    #[test]
    fn blocks_that_were_not_read_are_checked_evenly_and_the_first_one_at_once() {
        let blocks = VecDeque::new();
        let mut checks = CheckAhead { blocks, total: 3, begun: 0, symbols: 10, prepared: 0 };
        let due = [1_u64, 3, 3, 5].map(|symbols| {
            checks.prepared = (checks.prepared + symbols).min(checks.symbols);
            checks.due()
        });
        assert_eq!(due, [1, 2, 3, 3]);
    }

    #[test]
    fn without_a_window_no_block_is_solved_ahead() {
        assert_eq!(due(0, &[500, 500, 500]), [0, 0, 0]);
    }
}
