//! Symbols that arrive before the receiver knows where they go.

use crate::counter::Counter;
use crate::endpoint::BlockId;
use crate::receiver::sources::SourceId;
use fontana_fec::{EncodingId, Esi};
use fontana_wire::Toi;
use std::collections::VecDeque;

/// A symbol of an object that is not open yet.
#[derive(Debug)]
pub(in crate::receiver) struct EarlySymbol {
    pub(in crate::receiver) block: BlockId,
    pub(in crate::receiver) esi: Esi,
    pub(in crate::receiver) encoding_id: EncodingId,
    pub(in crate::receiver) source: SourceId,
    pub(in crate::receiver) bytes: Vec<u8>,
}

/// The early symbols of one session, in the order of arrival.
#[derive(Debug, Default)]
pub(in crate::receiver) struct EarlySymbols(VecDeque<EarlySymbol>);

/// Memory that a symbol takes beside its bytes, about.
const OVERHEAD: usize = 128;

impl EarlySymbol {
    /// What a symbol of `length` bytes counts against
    /// [`ReceiverLimits::max_early_bytes`](crate::receiver::ReceiverLimits::max_early_bytes).
    pub(in crate::receiver) fn cost_of(length: usize) -> usize {
        length.saturating_add(OVERHEAD)
    }

    fn cost(&self) -> usize {
        Self::cost_of(self.bytes.len())
    }
}

impl EarlySymbols {
    pub(in crate::receiver) fn push(&mut self, symbol: EarlySymbol) {
        self.0.push_back(symbol);
    }

    pub(in crate::receiver) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes the symbols of all objects that `is_placeable`. Returns them and their cost.
    pub(in crate::receiver) fn take(
        &mut self,
        is_placeable: impl Fn(Toi) -> bool,
    ) -> (VecDeque<EarlySymbol>, usize) {
        let (placeable, waiting): (VecDeque<_>, VecDeque<_>) = std::mem::take(&mut self.0)
            .into_iter()
            .partition(|symbol| is_placeable(symbol.block.toi));
        self.0 = waiting;
        let cost = placeable.iter().map(EarlySymbol::cost).sum();
        (placeable, cost)
    }

    /// Drops the symbols of all objects that `is_useless`. Returns their cost.
    pub(in crate::receiver) fn discard(&mut self, is_useless: impl Fn(Toi) -> bool) -> usize {
        let mut cost = 0;
        self.0.retain(|symbol| {
            let is_dropped = is_useless(symbol.block.toi);
            cost.count(if is_dropped { symbol.cost() } else { 0 });
            !is_dropped
        });
        cost
    }
}
