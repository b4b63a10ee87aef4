//! What a receiver has for others of its site, and what it takes from them ([`crate::share`]).

use super::Receiver;
use crate::endpoint::BlockId;
use crate::pull::{Pulled, PulledRun};
use crate::share::{BlockHolding, Holdings};
use crate::time::Instant;
use fontana_fec::Esi;
use std::net::SocketAddr;
use std::ops::Range;

impl Receiver {
    /// Takes symbols of an open object that another receiver has sent. As
    /// [`handle_pulled`](Self::handle_pulled), but the symbols are those of a source, which is
    /// remembered if they turn out to be wrong.
    pub fn handle_shared(
        &mut self,
        now: Instant,
        from: SocketAddr,
        run: &PulledRun,
        slab: &[u8],
    ) -> Pulled {
        let source = self.reception.transfer.sources.find(from);
        self.take_from(now, source, run, slab)
    }

    /// Whether symbols of this source were wrong, and not enough of them right since.
    pub fn distrusts(&self, from: SocketAddr) -> bool {
        self.reception.transfer.sources.distrusts(from)
    }

    /// The repair symbols of a block that were placed, in the order of their slots.
    pub fn repair_in_slots(&self, block: BlockId) -> Vec<Esi> {
        self.reception.transfer.repair_in_slots(block)
    }
}

impl Holdings for Receiver {
    fn lacking(&self, most: usize) -> Vec<(BlockId, u32)> {
        match self.reception.is_listening() {
            true => self.reception.transfer.blocks_lacking().take(most).collect(),
            false => Vec::new(),
        }
    }

    fn block(&self, block: BlockId) -> Option<BlockHolding> {
        self.reception.transfer.holding(block)
    }

    fn missing(&self, block: BlockId, esis: Range<u32>) -> Vec<u32> {
        let mut missing = Vec::new();
        let mut rest = esis;
        while !rest.is_empty() {
            let run = self.missing_source(block, Esi(rest.start)).or_else(|| {
                // Those beyond the source symbols.
                let k = self.reception.transfer.holding(block)?.source_symbols;
                self.missing_repair(block, rest.start.max(k)..rest.end.max(k))
            });
            let Some(run) = run.filter(|run| run.start < rest.end) else { break };
            missing.extend(run.start..run.end.min(rest.end));
            rest.start = run.end;
        }
        missing
    }

    fn repair_span(&self, block: BlockId) -> Option<Range<u32>> {
        let repair = self.reception.transfer.repair_symbols(block);
        let (first, last) = (repair.iter().min()?, repair.iter().max()?);
        Some(first.0..last.0.saturating_add(1))
    }

    fn held(&self, block: BlockId, esis: &[Esi]) -> Vec<Esi> {
        self.reception.transfer.held(block, esis)
    }
}
