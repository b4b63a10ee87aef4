//! The source blocks of the objects that a session sends.

use super::SendObject;
use super::outlet::header_size;
use super::rounds::Block;
use crate::endpoint::BlockId;
use crate::random::SplitMix64;
use crate::schedule::{BlockShape, SymbolStream, likely_symbols, share};
use fontana_fec::{Esi, FecScheme, Padding, Sbn};
use fontana_wire::{SessionSeal, Tsi};
use std::collections::BTreeSet;

/// Makes the blocks of the objects of a session, also of those that are added later.
#[derive(Debug)]
pub(super) struct BlockFactory {
    pub(super) tsi: Tsi,
    pub(super) seed: u64,
    /// Symbols are sent in the order of their numbers, as in the schedules of the FCAST paper.
    pub(super) by_number: bool,
    /// The last source symbol of an object has no padding, if its code allows that.
    pub(super) omit_padding: bool,
    /// Where the source pass begins; without one, where blocks without repair symbols begin: in
    /// parts of 2^32.
    pub(super) start: u32,
    /// Packets carry the OTI of their object.
    pub(super) fti_in_packets: bool,
    pub(super) seal: Option<SessionSeal>,
    /// The number of objects of the session.
    pub(super) objects: u32,
    /// The blocks that are sent before all others.
    pub(super) first: BTreeSet<BlockId>,
    /// Symbols of a block per thousand source symbols; `None`: no limit.
    pub(super) limit_permille: Option<u32>,
    /// [`SenderConfig::opening_permille`](super::SenderConfig::opening_permille).
    pub(super) opening_permille: u32,
}

impl BlockFactory {
    pub(super) fn blocks(&mut self, objects: &[SendObject]) -> Vec<Block> {
        let mut blocks = Vec::new();
        for object in objects {
            let oti = object.layout.oti();
            let fti = self.fti_in_packets.then_some(oti);
            let encoding_id = oti.scheme.profile().encoding_id;
            let header_size = header_size(self.tsi, object.toi, encoding_id, fti, self.seal);
            for sbn in (0..object.layout.block_count()).map(Sbn) {
                let id = BlockId { toi: object.toi, sbn };
                let stream = (object.toi.0 as u64) << 32 | u64::from(sbn.0);
                let mut random = SplitMix64::new(self.seed, stream);
                let k = object.layout.source_symbols(sbn).unwrap_or(0);
                let stream = SymbolStream::new(oti.scheme, k, &mut random);
                let stream = match object.source_pass {
                    true => stream.with_pass_start(self.start),
                    false => stream.without_source_pass(self.start),
                };
                let (code, profile) = (oti.scheme.profile(), oti.scheme.block_profile(k));
                blocks.push(Block {
                    id,
                    shape: BlockShape {
                        object: self.objects,
                        source_symbols: k,
                        encoding_symbols: (!code.is_rateless).then_some(profile.symbols_per_cycle),
                    },
                    encoding_id,
                    stream: if self.by_number { stream.plain() } else { stream },
                    start: 0,
                    sent: 0,
                    planned: 0,
                    repaired: 0,
                    first: if self.first.contains(&id) { self.first(oti.scheme, k) } else { 0 },
                    opening: if object.source_pass || profile.max_repair_symbols == 0 {
                        0
                    } else {
                        share(k, self.opening_permille)
                    },
                    symbol_size: oti.symbol_size,
                    last_symbol_size: if self.omit_padding && code.padding != Padding::Sent {
                        object.layout.unpadded_symbol_size(id.sbn, Esi(k.saturating_sub(1)))
                    } else {
                        oti.symbol_size
                    },
                    fti,
                    header_size,
                });
            }
            self.objects += 1;
        }
        blocks
    }

    /// Symbols of the first phase of a block of `k` source symbols.
    fn first(&self, scheme: FecScheme, k: u32) -> u64 {
        let symbols = likely_symbols(scheme, k);
        self.limit_permille.map_or(symbols, |limit| symbols.min(share(k, limit)))
    }
}
