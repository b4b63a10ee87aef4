//! Symbols that are not placed when they arrive: their object is not open yet, their block is
//! solved and not verified, or their source is doubted.

use super::{Arrival, Reception};
use crate::counter::Counter;
use crate::endpoint::BlockId;
use crate::receiver::config::{ReceiverConfig, ReceiverStats};
use crate::receiver::sessions::{EarlySymbol, SessionState, Standing};
use crate::receiver::transfer::{Incoming, Need, SymbolContent, Taken};
use crate::receiver::unverified::Unverified;
use crate::time::Instant;
use fontana_wire::SymbolDigest;

impl Reception {
    /// Stores a symbol of an object that is not open yet, if there is room.
    pub(super) fn store_early(
        &mut self,
        config: &ReceiverConfig,
        session: &mut SessionState,
        arrival: &Arrival<'_>,
        stats: &mut ReceiverStats,
    ) {
        let &Arrival { block, esi, encoding_id, source, symbol, .. } = arrival;
        let cost = EarlySymbol::cost_of(symbol.len());
        if self.has_room_for(config, cost) {
            self.early_cost.count(cost);
            let bytes = symbol.to_vec();
            session.early.push(EarlySymbol { block, esi, encoding_id, source, bytes });
        } else if self.spill(config, session, arrival) {
            stats.spilled.count(1);
        } else {
            stats.without_room.count(1);
        }
    }

    /// Whether early and unverified symbols may cost so much more.
    fn has_room_for(&self, config: &ReceiverConfig, cost: usize) -> bool {
        self.early_cost.saturating_add(cost) <= config.limits.max_early_bytes
    }

    /// Places the early symbols of a session whose objects are open by now.
    pub(super) fn place_early(
        &mut self,
        config: &ReceiverConfig,
        now: Instant,
        session: &mut SessionState,
        stats: &mut ReceiverStats,
    ) {
        if session.standing != Standing::Accepted {
            return;
        }
        let (symbols, cost) = session.early.take(|toi| self.transfer.is_open(toi));
        self.early_cost.discount(cost);
        self.place_saved(config, now, session, symbols, stats);
        self.place_spilled(config, now, session, stats);
    }

    /// Places symbols of open objects that a session has brought before.
    pub(super) fn place_saved(
        &mut self,
        config: &ReceiverConfig,
        now: Instant,
        session: &mut SessionState,
        symbols: impl IntoIterator<Item = EarlySymbol>,
        stats: &mut ReceiverStats,
    ) {
        let fresh = stats.fresh;
        let is_suspected =
            self.digests.takes_announced_only() && !session.digest_signers.is_empty();
        for EarlySymbol { block, esi, encoding_id, source, bytes } in symbols {
            if self.transfer.is_reserved(block) {
                stats.late.count(1);
                continue;
            }
            // It arrived before the attack was noticed.
            let digest = || SymbolDigest::of(block.toi, block.sbn, esi, &bytes);
            if is_suspected && !self.digests.is_announced(digest()) {
                stats.unannounced.count(1);
                continue;
            }
            let run = self.transfer.symbol_run(block, esi, encoding_id, bytes.len());
            let mut take = |esi, bytes: Vec<u8>| {
                let symbol = Incoming { block, esi, encoding_id, source };
                // Of a block that is solved already, if it is not verified.
                let unverified = self.transfer.may_wait(&symbol).then(|| bytes.clone());
                let out = &mut self.outputs;
                let taken = self.transfer.take(&symbol, SymbolContent::Saved(bytes), out);
                stats.count(taken);
                if taken == Taken::Deselected {
                    session.counters.deselected.count(1);
                }
                if let Some(bytes) = unverified.filter(|_| taken == Taken::Unverified) {
                    self.store_unverified(config, now, &symbol, &bytes, stats);
                }
            };
            match run {
                None => take(esi, bytes),
                Some(run) => {
                    for (esi, at) in run.symbols() {
                        take(esi, bytes.get(at).unwrap_or_default().to_vec());
                    }
                }
            }
        }
        if stats.fresh > fresh {
            session.useful_at = Some(session.last_received);
        }
    }

    /// Stores a symbol that waits until its block is verified, or lacks other symbols, if there is
    /// room.
    #[cold]
    pub(in crate::receiver) fn store_unverified(
        &mut self,
        config: &ReceiverConfig,
        now: Instant,
        symbol: &Incoming,
        bytes: &[u8],
        stats: &mut ReceiverStats,
    ) {
        let &Incoming { block, esi, encoding_id, source } = symbol;
        if self.has_room_for(config, EarlySymbol::cost_of(bytes.len())) {
            let symbol = Unverified { encoding_id, bytes: bytes.to_vec() };
            let cost = self.unverified.insert(block, esi, source, symbol);
            self.early_cost.count(cost);
        }
        if self.transfer.holds_symbols() {
            self.idle_since.get_or_insert(now);
        }
        if let Some(block) = self.transfer.take_usable() {
            self.use_unverified(block, stats);
        }
    }

    /// Takes the unverified symbols of a block if it needs more, and drops them if it needs none.
    pub(in crate::receiver) fn use_unverified(
        &mut self,
        block: BlockId,
        stats: &mut ReceiverStats,
    ) {
        if self.unverified.is_empty() {
            return;
        }
        loop {
            let need = self.transfer.need(block);
            if need == Need::Unknown {
                return;
            }
            let transfer = &self.transfer;
            let is_held = |source, esi| transfer.holds_back(block, source, esi);
            let usable = |source, esi| need == Need::Nothing || !is_held(source, esi);
            let Some((esi, source, symbol, cost)) = self.unverified.pop(block, usable) else {
                return;
            };
            self.early_cost.discount(cost);
            if need == Need::Nothing {
                continue;
            }
            let Unverified { encoding_id, bytes } = symbol;
            let symbol = Incoming { block, esi, encoding_id, source };
            let out = &mut self.outputs;
            if self.transfer.take(&symbol, SymbolContent::Saved(bytes), out) == Taken::Fresh {
                // It was counted as late when it arrived.
                stats.fresh.count(1);
                stats.late.discount(1);
            }
        }
    }

    /// Drops the unverified symbols of objects that were given up.
    pub(super) fn drop_unverified(&mut self) {
        let transfer = &self.transfer;
        let dropped = self.unverified.retain(|block| transfer.need(block) != Need::Nothing);
        self.early_cost.discount(dropped);
    }
}
