//! Symbols that are not placed when they arrive: their object is not open yet, or their block is
//! solved and not verified.

use super::{Arrival, Reception};
use crate::endpoint::BlockId;
use crate::placed::SymbolBytes;
use crate::receiver::config::{ReceiverConfig, ReceiverStats};
use crate::receiver::sessions::{EarlySymbol, SessionState, Standing};
use crate::receiver::transfer::{Need, Taken};
use crate::receiver::unverified::Unverified;
use fontana_fec::{EncodingId, Esi};
use fontana_wire::SymbolDigest;

impl Reception {
    /// Stores a symbol of an object that is not open yet. False if there is no room.
    pub(super) fn store_early(
        &mut self,
        config: &ReceiverConfig,
        session: &mut SessionState,
        arrival: &Arrival<'_>,
    ) -> bool {
        let &Arrival { block, esi, encoding_id, symbol, .. } = arrival;
        let cost = EarlySymbol::cost_of(symbol.len());
        let has_room = self.early_cost + cost <= config.limits.max_early_bytes;
        if has_room {
            self.early_cost += cost;
            session.early.push(EarlySymbol { block, esi, encoding_id, bytes: symbol.to_vec() });
        }
        has_room
    }

    /// Places the early symbols of a session whose objects are open by now.
    pub(super) fn place_early(
        &mut self,
        config: &ReceiverConfig,
        session: &mut SessionState,
        stats: &mut ReceiverStats,
    ) {
        if session.standing != Standing::Accepted {
            return;
        }
        let (symbols, cost) = session.early.take(|toi| self.transfer.is_open(toi));
        self.early_cost -= cost;
        let fresh = stats.fresh;
        let is_suspected =
            self.digests.takes_announced_only() && !session.digest_signers.is_empty();
        for EarlySymbol { block, esi, encoding_id, bytes } in symbols {
            // It arrived before the attack was noticed.
            let digest = || SymbolDigest::of(block.toi, block.sbn, esi, &bytes);
            if is_suspected && !self.digests.is_announced(digest()) {
                stats.unannounced += 1;
                continue;
            }
            let run = self.transfer.symbol_run(block, esi, encoding_id, bytes.len());
            let mut take = |esi, bytes: Vec<u8>| {
                // Of a block that is solved already, if it is not verified.
                let unverified =
                    (self.transfer.need(block) == Need::Unknown).then(|| bytes.clone());
                let (length, bytes) = (bytes.len(), SymbolBytes::Saved(bytes));
                let out = &mut self.outputs;
                let taken = self.transfer.take(block, esi, encoding_id, length, bytes, out);
                stats.count(taken);
                session.counters.deselected += u64::from(taken == Taken::Deselected);
                if let Some(symbol) = unverified.filter(|_| taken == Taken::Unverified) {
                    self.store_unverified(config, block, esi, encoding_id, &symbol);
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

    /// Stores a symbol of a block that is solved and not verified, if there is room.
    #[cold]
    pub(super) fn store_unverified(
        &mut self,
        config: &ReceiverConfig,
        block: BlockId,
        esi: Esi,
        encoding_id: EncodingId,
        symbol: &[u8],
    ) {
        let cost = EarlySymbol::cost_of(symbol.len());
        if self.early_cost + cost <= config.limits.max_early_bytes {
            let symbol = Unverified { encoding_id, bytes: symbol.to_vec() };
            self.early_cost += self.unverified.insert(block, esi, symbol);
        }
    }

    /// Takes the unverified symbols of a block if it needs more, and drops them if it needs none.
    pub(super) fn use_unverified(&mut self, block: BlockId, stats: &mut ReceiverStats) {
        if self.unverified.is_empty() {
            return;
        }
        loop {
            let need = self.transfer.need(block);
            if need == Need::Unknown {
                return;
            }
            let Some((esi, symbol, cost)) = self.unverified.pop(block) else { return };
            self.early_cost -= cost;
            if need == Need::Nothing {
                continue;
            }
            let Unverified { encoding_id, bytes } = symbol;
            let (length, bytes) = (bytes.len(), SymbolBytes::Saved(bytes));
            let out = &mut self.outputs;
            if self.transfer.take(block, esi, encoding_id, length, bytes, out) == Taken::Fresh {
                // It was counted as late when it arrived.
                stats.fresh += 1;
                stats.late = stats.late.saturating_sub(1);
            }
        }
    }

    /// Drops the unverified symbols of objects that were given up.
    pub(super) fn drop_unverified(&mut self) {
        let transfer = &self.transfer;
        self.early_cost -= self.unverified.retain(|block| transfer.need(block) != Need::Nothing);
    }
}
