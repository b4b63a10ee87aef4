//! Symbols that wait in memory until their block is verified: those that arrive after the block was
//! solved, and those of sources that are doubted.
//!
//! If the block turns out to be corrupt, they help to find its wrong symbols. A sender that sends
//! everything once does not send others.

use super::sessions::EarlySymbol;
use super::sources::SourceId;
use crate::counter::Counter;
use crate::endpoint::BlockId;
use fontana_fec::{EncodingId, Esi};
use std::collections::BTreeMap;
use std::ops::Bound;

/// The symbols of blocks that are not verified yet. The reception bounds their cost together with
/// that of the [`EarlySymbol`]s.
#[derive(Debug, Default)]
pub(super) struct UnverifiedSymbols(BTreeMap<BlockId, BTreeMap<SymbolKey, Unverified>>);

/// A symbol of one source: others may have sent a wrong one under its id.
type SymbolKey = (SourceId, Esi);

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
    pub(super) fn insert(
        &mut self,
        block: BlockId,
        esi: Esi,
        source: SourceId,
        symbol: Unverified,
    ) -> usize {
        let cost = EarlySymbol::cost_of(symbol.bytes.len());
        let symbols = self.0.entry(block).or_default();
        if symbols.contains_key(&(source, esi)) {
            return 0;
        }
        symbols.insert((source, esi), symbol);
        cost
    }

    /// Takes the first symbol of a block that is `usable`, and its cost. If a symbol of a source is
    /// not, those of it with higher numbers are not either.
    pub(super) fn pop(
        &mut self,
        block: BlockId,
        usable: impl Fn(SourceId, Esi) -> bool,
    ) -> Option<(Esi, SourceId, Unverified, usize)> {
        let symbols = self.0.get_mut(&block)?;
        let mut key = *symbols.keys().next()?;
        while !usable(key.0, key.1) {
            let after = (Bound::Excluded((key.0, Esi(u32::MAX))), Bound::Unbounded);
            key = *symbols.range(after).next()?.0;
        }
        let symbol = symbols.remove(&key)?;
        if symbols.is_empty() {
            self.0.remove(&block);
        }
        let cost = EarlySymbol::cost_of(symbol.bytes.len());
        Some((key.1, key.0, symbol, cost))
    }

    /// Drops the symbols of all blocks that are not `wanted`. Returns their cost.
    pub(super) fn retain(&mut self, wanted: impl Fn(BlockId) -> bool) -> usize {
        let cost_of = |symbol: &Unverified| EarlySymbol::cost_of(symbol.bytes.len());
        let mut cost = 0_usize;
        self.0.retain(|&block, symbols| {
            let is_wanted = wanted(block);
            if !is_wanted {
                cost.count(symbols.values().map(cost_of).sum());
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

    const SOURCE: SourceId = SourceId::new(1);

    fn block(sbn: u32) -> BlockId {
        BlockId { toi: Toi(1), sbn: Sbn(sbn) }
    }

    fn symbol(length: usize) -> Unverified {
        Unverified { encoding_id: EncodingId::RAPTORQ, bytes: vec![1; length] }
    }

    #[test]
    fn what_is_inserted_costs_as_much_as_what_is_taken() {
        let mut symbols = UnverifiedSymbols::default();
        let cost = symbols.insert(block(0), Esi(7), SOURCE, symbol(10));
        assert!(cost > 10);
        assert_eq!(symbols.insert(block(0), Esi(7), SOURCE, symbol(20)), 0, "the first one stays");
        let other = symbols.insert(block(1), Esi(7), SOURCE, symbol(20));
        assert!(symbols.pop(block(2), |_, _| true).is_none());
        let (esi, source, first, taken) = symbols.pop(block(0), |_, _| true).unwrap();
        assert_eq!((esi, source, first.bytes.len(), taken), (Esi(7), SOURCE, 10, cost));
        assert!(symbols.pop(block(0), |_, _| true).is_none());
        assert_eq!(symbols.retain(|block| block.sbn == Sbn(1)), 0);
        assert_eq!(symbols.retain(|_| false), other);
        assert!(symbols.is_empty());
    }

    #[test]
    fn symbols_of_each_source_are_kept() {
        let mut symbols = UnverifiedSymbols::default();
        let other = SourceId::new(2);
        assert!(symbols.insert(block(0), Esi(7), SOURCE, symbol(10)) > 0);
        assert!(symbols.insert(block(0), Esi(7), other, symbol(10)) > 0);
        let (_, source, ..) = symbols.pop(block(0), |source, _| source == other).unwrap();
        assert_eq!(source, other);
        assert!(symbols.pop(block(0), |source, _| source == other).is_none());
        assert!(!symbols.is_empty());
    }
}
