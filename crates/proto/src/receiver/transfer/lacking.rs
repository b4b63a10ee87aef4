//! What the blocks of a transfer lack: symbols, or particular symbols of a code that repeats them.

use super::Transfer;
use super::block::Block;
use super::object::ObjectState;
use crate::endpoint::BlockId;
use crate::lacking::Lacking;
use fontana_fec::{EncodingId, Esi, Sbn};
use fontana_wire::{BlockNeed, RepairRequest, SymbolMap};

/// The symbols of a block that count as lacking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::receiver) enum Surplus {
    /// Those with which it is almost certainly recovered.
    Sure,
    /// Those without which it cannot be recovered, as far as is known.
    None,
}

impl Transfer {
    /// The first `most` blocks that lack symbols, with no more symbols than `asked` says: those of
    /// which it says 0 are left out.
    pub(in crate::receiver) fn lacking(
        &self,
        most: usize,
        surplus: Surplus,
        asked: impl Fn(BlockId) -> u32,
    ) -> Lacking {
        let mut lacking = Lacking::default();
        for (&object_toi, object) in &self.objects {
            lacking.may_lack_more |= object.state == ObjectState::Opening;
            let Ok(toi) = u32::try_from(object_toi.0) else { continue };
            if object.state != ObjectState::Receiving || object.missing() == 0 {
                continue;
            }
            let asked = |sbn| asked(BlockId { toi: object_toi, sbn: Sbn(sbn) });
            let is_asked = |sbn| asked(sbn) > 0;
            if object.layout.encoding_id() == EncodingId::NO_CODE {
                let blocks = (0..).zip(&object.blocks).filter(|&(sbn, _)| is_asked(sbn));
                lacking.may_lack_more |= !self.map(toi, blocks, &mut lacking.maps);
                continue;
            }
            for (sbn, block) in (0..).zip(&object.blocks).filter(|&(sbn, _)| is_asked(sbn)) {
                let symbols = match surplus {
                    Surplus::Sure => block.symbols_lacking(),
                    Surplus::None => block.symbols_wanted(),
                };
                let need = BlockNeed { toi, sbn, symbols: symbols.min(asked(sbn)) };
                if block.has_enough() {
                    continue;
                }
                // What arrives of a block without a decoder is lost.
                if symbols > 0 && lacking.blocks.len() < most && self.has_room_for(block) {
                    lacking.blocks.push(need);
                } else {
                    lacking.may_lack_more = true;
                }
            }
        }
        lacking
    }

    /// Adds the symbols that the blocks of an object lack. False if they do not fit into a request.
    fn map<'a>(
        &self,
        toi: u32,
        blocks: impl Iterator<Item = (u32, &'a Block)>,
        maps: &mut Vec<SymbolMap>,
    ) -> bool {
        for (sbn, block) in blocks.filter(|(_, block)| !block.has_enough()) {
            if !self.has_room_for(block) {
                return false;
            }
            let mut from = 0;
            while let Some(run) = block.missing_source(Esi(from)) {
                for esi in run.clone() {
                    let last = maps.last_mut().filter(|last| (last.toi, last.sbn) == (toi, sbn));
                    if last.is_some_and(|last| last.add(esi)) {
                        continue;
                    }
                    if maps.len() >= RepairRequest::MAX_MAPS {
                        return false;
                    }
                    maps.push(SymbolMap::new(toi, sbn, esi));
                }
                from = run.end;
            }
        }
        true
    }
}
