//! The symbols of content, from a packet to their places.

use super::{Arrival, Phase, Reception};
use crate::counter::Counter;
use crate::receiver::config::{ReceiverConfig, ReceiverStats};
use crate::receiver::sessions::{SessionState, Standing};
use crate::receiver::transfer::{Incoming, SymbolContent, Taken};
use crate::time::Instant;
use fontana_wire::SymbolDigest;

impl Reception {
    /// Takes the symbols of a packet: to their places, or to the early symbols until their object
    /// is open.
    #[inline]
    pub(in crate::receiver) fn take(
        &mut self,
        config: &ReceiverConfig,
        now: Instant,
        session: &mut SessionState,
        arrival: Arrival<'_>,
        stats: &mut ReceiverStats,
    ) {
        let Arrival { block, esi, encoding_id, symbol, source, ref range } = arrival;
        if self.transfer.is_reserved(block) {
            stats.late.count(1);
            return;
        }
        let digest = || SymbolDigest::of(block.toi, block.sbn, esi, symbol);
        let signers = &session.digest_signers;
        if !signers.is_empty() && !self.digests.admits(signers, digest) {
            stats.unannounced.count(u64::from(self.phase == Phase::Listening));
            return;
        }
        if session.standing == Standing::Accepted && self.transfer.is_open(block.toi) {
            let incoming = Incoming { block, esi, encoding_id, source };
            let content = SymbolContent::InSlab { bytes: symbol, start: range.start };
            let taken = self.transfer.take(&incoming, content, &mut self.outputs);
            if taken == Taken::Invalid
                && let Some(run) = self.transfer.symbol_run(block, esi, encoding_id, symbol.len())
            {
                for (esi, at) in run.symbols() {
                    let incoming = Incoming { esi, ..incoming };
                    let start = range.start.saturating_add(at.start as u32);
                    let bytes = symbol.get(at).unwrap_or_default();
                    let content = SymbolContent::InSlab { bytes, start };
                    let taken = self.transfer.take(&incoming, content, &mut self.outputs);
                    self.count(taken, session, stats);
                    if taken == Taken::Unverified {
                        self.store_unverified(config, now, &incoming, bytes, stats);
                    }
                }
                return;
            }
            self.count(taken, session, stats);
            if taken == Taken::Unverified {
                self.store_unverified(config, now, &incoming, symbol, stats);
            }
            return;
        }
        if self.catalog.is_useless(block.toi) {
            stats.late.count(1);
            return;
        }
        if !self.expects(block.toi) {
            // Junk, or an object that only another version has.
            let is_counted =
                session.standing == Standing::Accepted && self.phase == Phase::Listening;
            stats.invalid.count(u64::from(is_counted));
            return;
        }
        self.store_early(config, session, &arrival, stats);
    }

    /// Counts a symbol. One after the reception is complete may be of use, but does not count.
    #[inline]
    fn count(&self, taken: Taken, session: &mut SessionState, stats: &mut ReceiverStats) {
        if self.phase == Phase::Listening {
            stats.count(taken);
            session.counters.deselected.count(u64::from(taken == Taken::Deselected));
        }
    }
}

impl ReceiverStats {
    pub(super) fn count(&mut self, taken: Taken) {
        match taken {
            Taken::Fresh => self.fresh.count(1),
            Taken::Duplicate | Taken::Disputed => self.duplicates.count(1),
            Taken::Late | Taken::Unverified => self.late.count(1),
            Taken::Invalid => self.invalid.count(1),
            Taken::NoRoom => self.without_room.count(1),
            // Counted with their session.
            Taken::Deselected => {}
        }
    }
}
