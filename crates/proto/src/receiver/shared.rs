//! What a receiver has for others of its site, and what it takes from them ([`crate::share`]).

use super::Receiver;
use super::sources::SHARED_PORT;
use super::transfer::{Incoming, SymbolContent, Taken};
use crate::endpoint::BlockId;
use crate::share::{BlockHolding, HeardSymbol, Holdings, Peer, Sharer, Trust};
use crate::time::Instant;
use fontana_fec::{Esi, Sbn};
use fontana_wire::{MissingSymbols, ShareBody, ShareMessage, Toi};
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;

/// Where a message of another receiver comes from, and where it lies.
#[derive(Clone, Copy, Debug)]
pub(super) struct ShareOrigin {
    /// The address that it came from, if that is true: any host can send in the name of another. It
    /// is a source, whatever the port: a host has many ports.
    pub(super) from: IpAddr,
    /// Its end in the slab. The symbol, if it has one, lies before it.
    pub(super) end: u32,
}

impl Receiver {
    /// Handles a message of another receiver of this content: its symbol, and what `sharer`
    /// concludes. `slab` is that of the batch that the driver polls with next. A symbol that the
    /// code of its block does not have is dropped.
    pub(super) fn handle_share(
        &mut self,
        now: Instant,
        sharer: &mut Sharer,
        origin: ShareOrigin,
        message: &ShareMessage<'_>,
        slab: &[u8],
    ) {
        let ShareOrigin { from, end } = origin;
        let block = BlockId { toi: Toi::from(message.block.toi), sbn: Sbn(message.block.sbn) };
        if sharer.is_own(message.member) {
            return;
        }
        match &message.body {
            ShareBody::Request(request) => {
                let peer = Peer { member: message.member, address: from };
                sharer.on_request(now, peer, block, request, self);
            }
            ShareBody::Symbol(symbol) => {
                let esi = Esi(symbol.esi);
                let holding = Holdings::block(self, block).filter(|it| it.has_symbol(esi));
                let Some(BlockHolding { symbol_size, was_corrupt, .. }) = holding else { return };
                let bytes = end.saturating_sub(symbol.bytes.len() as u32)..end;
                let taken = match sharer.takes(now, block) {
                    true => self.take_shared(now, from, (block, esi), bytes, slab),
                    false => Taken::Late,
                };
                let heard = HeardSymbol {
                    block,
                    esi,
                    symbol_size,
                    has_block: symbol.has_block,
                    is_fresh: taken == Taken::Fresh,
                    // Any host may have sent the symbols of a corrupt block, in any name.
                    trust: match self.trust(from) {
                        Trust::Proven | Trust::Unknown if was_corrupt => Trust::Doubted,
                        trust => trust,
                    },
                    to: symbol.to,
                    echo_us: symbol.echo_us,
                };
                sharer.on_symbol(now, message.member, &heard);
            }
        }
    }

    /// Takes a symbol that another receiver has sent.
    fn take_shared(
        &mut self,
        now: Instant,
        from: IpAddr,
        (block, esi): (BlockId, Esi),
        bytes: Range<u32>,
        slab: &[u8],
    ) -> Taken {
        let Self { config, reception, stats, .. } = self;
        let Some((_, encoding_id)) = reception.transfer.symbols_of(block.toi) else {
            return Taken::Invalid;
        };
        if reception.transfer.is_reserved(block) {
            return Taken::Late;
        }
        let sources = &mut reception.transfer.sources;
        sources.forget(now);
        let source = sources.find(SocketAddr::new(from, SHARED_PORT));
        let symbol = slab.get(bytes.start as usize..bytes.end as usize).unwrap_or_default();
        let incoming = Incoming { block, esi, encoding_id, source };
        let content = SymbolContent::InSlab { bytes: symbol, start: bytes.start };
        let taken = reception.transfer.take(&incoming, content, &mut reception.outputs);
        match taken {
            Taken::Fresh => {
                self.silence.end(now);
                reception.on_fresh(now, 1);
            }
            Taken::Unverified => {
                reception.store_unverified(config, now, &incoming, symbol, stats);
            }
            _ => {}
        }
        reception.await_idle(now);
        if reception.may_complete() {
            reception.update_phase(&self.channels);
        }
        taken
    }

    fn trust(&self, address: IpAddr) -> Trust {
        let sources = &self.reception.transfer.sources;
        let address = SocketAddr::new(address, SHARED_PORT);
        match sources.is_doubted_at(address) {
            false if sources.is_proven(address) => Trust::Proven,
            false => Trust::Unknown,
            true if sources.has_others_that_share() => Trust::DoubtedBesideOthers,
            true => Trust::Doubted,
        }
    }

    /// No member has what a block lacks. If it is searched for wrong symbols, those that others
    /// have sent of it are dropped, so that it can be asked for again.
    pub(super) fn drop_shared(&mut self, block: BlockId) {
        let reception = &mut self.reception;
        reception.transfer.drop_shared(block, &mut reception.outputs);
        reception.use_unverified(block, &mut self.stats);
        reception.update_phase(&self.channels);
    }

    /// The repair symbols of a block that were placed, in the order of their slots.
    pub(super) fn repair_in_slots(&self, block: BlockId) -> Vec<Esi> {
        self.reception.transfer.repair_in_slots(block)
    }
}

impl Holdings for Receiver {
    fn lacking(&self, after: Option<BlockId>, most: usize) -> Vec<(BlockId, u32)> {
        match self.reception.is_listening() {
            true => self.reception.transfer.blocks_lacking(after).take(most).collect(),
            false => Vec::new(),
        }
    }

    fn block(&self, block: BlockId) -> Option<BlockHolding> {
        self.reception.transfer.holding(block)
    }

    fn missing(&self, block: BlockId, esis: Range<u32>) -> Vec<u32> {
        within_a_map(esis, |rest| {
            self.missing_source(block, Esi(rest.start)).or_else(|| {
                // Those beyond the source symbols.
                let k = self.reception.transfer.holding(block)?.source_symbols;
                self.missing_repair(block, rest.start.max(k)..rest.end.max(k))
            })
        })
    }

    fn repair_span(&self, block: BlockId) -> Option<Range<u32>> {
        let repair = self.reception.transfer.repair_symbols(block);
        let (first, last) = (repair.iter().min()?, repair.iter().max()?);
        Some(first.0..last.0.saturating_add(1))
    }

    fn session_symbols(&self) -> u64 {
        self.stats.fresh
    }

    fn held(&self, block: BlockId, esis: &[Esi]) -> Vec<Esi> {
        self.reception.transfer.held(block, esis)
    }

    fn is_proven(&self, address: IpAddr) -> bool {
        self.reception.transfer.sources.is_proven(SocketAddr::new(address, SHARED_PORT))
    }
}

/// The numbers of the runs that `next` finds in a range, as far as one map names them: the numbers
/// of repair symbols may be billions apart.
fn within_a_map(esis: Range<u32>, next: impl Fn(&Range<u32>) -> Option<Range<u32>>) -> Vec<u32> {
    let (mut missing, mut rest) = (Vec::new(), esis);
    while !rest.is_empty() {
        let Some(run) = next(&rest).filter(|run| run.start < rest.end) else { break };
        let first = missing.first().copied().unwrap_or(run.start);
        rest.end = rest.end.min(first.saturating_add(MissingSymbols::MAX_SPAN));
        missing.extend(run.start..run.end.min(rest.end));
        rest.start = run.end;
    }
    missing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_numbers_are_listed_than_a_map_names() {
        let all = |rest: &Range<u32>| Some(rest.clone());
        let span = MissingSymbols::MAX_SPAN;
        assert_eq!(within_a_map(7..u32::MAX, all), (7..7 + span).collect::<Vec<_>>());
        assert_eq!(within_a_map(u32::MAX - 2..u32::MAX, all), [u32::MAX - 2, u32::MAX - 1]);
        // Every second number, in runs of one.
        let odd = |rest: &Range<u32>| Some((rest.start | 1)..(rest.start | 1) + 1);
        let listed = within_a_map(2..u32::MAX, odd);
        assert_eq!((listed.len(), listed[0]), (span as usize / 2, 3));
        assert_eq!(
            MissingSymbols::of(listed.clone()).unwrap().symbols().last(),
            listed.last().copied()
        );
        assert!(within_a_map(5..5, all).is_empty() && within_a_map(5..9, |_| None).is_empty());
    }
}
