//! What one client gets of the fresh symbols of an object, in which order.

use super::symbols::FreshSymbols;
use crate::error::Error;
use bytes::Bytes;
use fontana_wire::FreshRequest;
use std::sync::Arc;

/// The symbols of one answer.
pub(super) struct Draw {
    symbols: Arc<FreshSymbols>,
    toi: u32,
    blocks: Vec<DrawnBlock>,
    /// The block to look at first.
    at: usize,
}

/// Why a request has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoDraw {
    /// The object or one of the blocks does not exist.
    NotThere,
    /// A number is beyond all symbols that were computed: it is that of another server, or of this
    /// one before it was started again.
    NotReached,
}

struct DrawnBlock {
    sbn: u32,
    /// The number of the next symbol.
    next: u32,
    /// Symbols to be sent; `None` if there is no end.
    left: Option<u32>,
    /// The present pass over the blocks, of an answer without end, has visited it.
    is_visited: bool,
}

impl Draw {
    /// The answer to a request.
    ///
    /// # Errors
    /// [`NoDraw`]
    pub(super) fn new(
        symbols: &Arc<FreshSymbols>,
        toi: u32,
        request: &FreshRequest,
    ) -> Result<Self, NoDraw> {
        let count = symbols.block_count(toi).ok_or(NoDraw::NotThere)?;
        let block = |sbn, next, left| DrawnBlock { sbn, next, left, is_visited: false };
        let blocks: Vec<_> = if request.blocks.is_empty() {
            (0..count).map(|sbn| block(sbn, request.start, None)).collect()
        } else {
            let shares = request.blocks.iter();
            shares.map(|share| block(share.sbn.0, share.start, Some(share.count))).collect()
        };
        if blocks.is_empty() || blocks.iter().any(|block| block.sbn >= count) {
            return Err(NoDraw::NotThere);
        }
        if blocks.iter().any(|block| !symbols.has_reached(toi, block.sbn, block.next)) {
            return Err(NoDraw::NotReached);
        }
        Ok(Self { symbols: Arc::clone(symbols), toi, blocks, at: 0 })
    }

    /// The next symbols, as frames. `None` after the last one.
    pub(super) async fn next(&mut self) -> Option<Result<Bytes, Arc<Error>>> {
        let index = self.choose()?;
        let block = self.blocks.get_mut(index)?;
        let run = match self.symbols.run(self.toi, block.sbn, block.next).await {
            Ok(run) => run,
            Err(error) => return Some(Err(error)),
        };
        let symbols = (run.frames.len() / run.frame_size) as u32;
        // The run may be a later one, or end before the number if that is not computed yet.
        let skipped = block.next.saturating_sub(run.first);
        let skipped = if skipped < symbols { skipped } else { 0 };
        let count = block.left.unwrap_or(symbols).min(symbols - skipped);
        block.next = run.first + skipped + count;
        block.left = block.left.map(|left| left - count);
        block.is_visited = true;
        let range = skipped as usize * run.frame_size..(skipped + count) as usize * run.frame_size;
        Some(Ok(run.frames.slice(range)))
    }

    /// The block that is next: one of which symbols are computed already, which need no worker. If
    /// there is none: one block after the other if their counts are given, so that each is complete
    /// as early as possible, and in passes over all blocks if not. So clients of different rates
    /// share what is computed.
    fn choose(&mut self) -> Option<usize> {
        if self.blocks.iter().all(|block| block.is_visited) {
            self.blocks.iter_mut().for_each(|block| block.is_visited = false);
        }
        let (before, after) = (0..self.at, self.at..self.blocks.len());
        let is_open = |block: &DrawnBlock| match block.left {
            Some(left) => left > 0,
            None => !block.is_visited,
        };
        let in_order = after.chain(before);
        let open: Vec<usize> =
            in_order.filter(|&index| self.blocks.get(index).is_some_and(is_open)).collect();
        let is_cached = |&index: &usize| {
            let block = self.blocks.get(index)?;
            self.symbols.has_cached(self.toi, block.sbn, block.next).then_some(index)
        };
        let chosen = open.iter().find_map(is_cached).or(open.first().copied())?;
        let is_counted = self.blocks.get(chosen).is_some_and(|block| block.left.is_some());
        if !is_counted {
            self.at = chosen + 1;
        }
        Some(chosen)
    }
}
