//! Symbols that arrive after their block was solved and before it is verified.
//!
//! If the block turns out to be corrupt, they help to find its wrong symbols. A sender that sends
//! everything once does not send others.

use super::sessions::EarlySymbol;
use crate::endpoint::BlockId;
use fontana_fec::{EncodingId, Esi};
use std::collections::BTreeMap;

/// The symbols of blocks that are not verified yet. The reception bounds their cost together with
/// that of the [`EarlySymbol`]s.
#[derive(Debug, Default)]
pub(super) struct UnverifiedSymbols(BTreeMap<BlockId, BTreeMap<Esi, Unverified>>);

/// A symbol without its id.
#[derive(Debug)]
pub(super) struct Unverified {
    pub(super) encoding_id: EncodingId,
    pub(super) bytes: Vec<u8>,
}

impl UnverifiedSymbols {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a symbol unless it is there. Returns its cost.
    pub(super) fn insert(&mut self, block: BlockId, esi: Esi, symbol: Unverified) -> usize {
        let cost = EarlySymbol::cost_of(symbol.bytes.len());
        let symbols = self.0.entry(block).or_default();
        if symbols.contains_key(&esi) {
            return 0;
        }
        symbols.insert(esi, symbol);
        cost
    }

    /// Takes the first symbol of a block, and its cost.
    pub(super) fn pop(&mut self, block: BlockId) -> Option<(Esi, Unverified, usize)> {
        let symbols = self.0.get_mut(&block)?;
        let first = symbols.pop_first();
        if symbols.is_empty() {
            self.0.remove(&block);
        }
        let (esi, symbol) = first?;
        let cost = EarlySymbol::cost_of(symbol.bytes.len());
        Some((esi, symbol, cost))
    }

    /// Drops the symbols of all blocks that are not `wanted`. Returns their cost.
    pub(super) fn retain(&mut self, wanted: impl Fn(BlockId) -> bool) -> usize {
        let cost_of = |symbol: &Unverified| EarlySymbol::cost_of(symbol.bytes.len());
        let mut cost = 0;
        self.0.retain(|&block, symbols| {
            let is_wanted = wanted(block);
            if !is_wanted {
                cost += symbols.values().map(cost_of).sum::<usize>();
            }
            is_wanted
        });
        cost
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fontana_fec::Sbn;
    use fontana_wire::Toi;

    fn block(sbn: u32) -> BlockId {
        BlockId { toi: Toi(1), sbn: Sbn(sbn) }
    }

    fn symbol(length: usize) -> Unverified {
        Unverified { encoding_id: EncodingId::RAPTORQ, bytes: vec![1; length] }
    }

    #[test]
    fn what_is_inserted_costs_as_much_as_what_is_taken() {
        let mut symbols = UnverifiedSymbols::default();
        let cost = symbols.insert(block(0), Esi(7), symbol(10));
        assert!(cost > 10);
        assert_eq!(symbols.insert(block(0), Esi(7), symbol(20)), 0, "the first one stays");
        let other = symbols.insert(block(1), Esi(7), symbol(20));
        assert!(symbols.pop(block(2)).is_none());
        let (esi, first, taken) = symbols.pop(block(0)).unwrap();
        assert_eq!((esi, first.bytes.len(), taken), (Esi(7), 10, cost));
        assert!(symbols.pop(block(0)).is_none());
        assert_eq!(symbols.retain(|block| block.sbn == Sbn(1)), 0);
        assert_eq!(symbols.retain(|_| false), other);
        assert!(symbols.is_empty());
    }
}
