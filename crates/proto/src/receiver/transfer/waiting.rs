//! Symbols that wait: their sources are doubted, or their block is solved from those of another.

use super::block::Block;
use super::{Incoming, Need, Transfer};
use crate::endpoint::BlockId;
use crate::receiver::sources::SourceId;
use fontana_fec::Esi;

impl Transfer {
    /// Whether symbols of this source wait until the block has enough others, or none arrive.
    pub(in crate::receiver) fn holds_back(
        &self,
        block: BlockId,
        source: SourceId,
        esi: Esi,
    ) -> bool {
        let block = self.existing_block(block);
        block.is_some_and(|block| block.holds_back(source, esi, &self.sources))
    }

    fn existing_block(&self, block: BlockId) -> Option<&Block> {
        self.objects.get(&block.toi)?.blocks.get(block.sbn.0 as usize)
    }

    /// Whether [`take`](Self::take) may return [`Taken::Unverified`] for this symbol.
    pub(in crate::receiver) fn may_wait(&self, symbol: &Incoming) -> bool {
        self.need(symbol.block) == Need::Unknown
            || self.holds_back(symbol.block, symbol.source, symbol.esi)
    }

    /// Whether symbols of doubted sources wait.
    #[inline]
    pub(in crate::receiver) fn holds_symbols(&self) -> bool {
        !self.holding.is_empty()
    }

    /// Whether others that share are asked for the symbols that those of one wait for, which takes
    /// a while.
    pub(in crate::receiver) fn waits_for_shared(&self) -> bool {
        let mut blocks = self.holding.iter().filter_map(|&id| self.existing_block(id));
        self.sources.doubts_shared() || blocks.any(|block| block.leaves_out())
    }

    /// Blocks whose symbols of doubted sources are of use now, because no others arrive.
    pub(in crate::receiver) fn stop_holding(&mut self) -> Vec<BlockId> {
        let blocks: Vec<_> = std::mem::take(&mut self.holding).into_iter().collect();
        for &block in &blocks {
            self.change_block(block, Block::stop_holding);
        }
        blocks
    }

    /// A block that symbols have waited for until now.
    pub(in crate::receiver) fn take_usable(&mut self) -> Option<BlockId> {
        self.usable.take()
    }
}
