//! What the blocks of a transfer have for other receivers.

use super::Transfer;
use super::block::Block;
use super::object::ObjectState;
use crate::endpoint::BlockId;
use crate::share::BlockHolding;
use fontana_fec::{Esi, FecScheme, Sbn};
use std::collections::BTreeSet;
use std::ops::Bound;

impl Transfer {
    /// The blocks after one, or all, that lack symbols, each with their number.
    pub(in crate::receiver) fn blocks_lacking(
        &self,
        after: Option<BlockId>,
    ) -> impl Iterator<Item = (BlockId, u32)> {
        let first = after.map_or(Bound::Unbounded, |after| Bound::Included(after.toi));
        let receiving = self
            .objects
            .range((first, Bound::Unbounded))
            .filter(|(_, object)| object.state == ObjectState::Receiving && object.missing() > 0);
        let blocks = receiving.flat_map(|(&toi, object)| {
            (0..)
                .map(Sbn)
                .zip(&object.blocks)
                .map(move |(sbn, block)| (BlockId { toi, sbn }, block))
        });
        let blocks = blocks.filter(move |&(id, _)| after.is_none_or(|after| id > after));
        let needs = blocks.filter(|(_, block)| self.has_room_for(block));
        let needs = needs.map(|(id, block)| (id, block.symbols_to_ask()));
        needs.filter(|&(_, lacking)| lacking > 0)
    }

    /// What it has of a block.
    pub(in crate::receiver) fn holding(&self, id: BlockId) -> Option<BlockHolding> {
        let object = self.objects.get(&id.toi)?;
        let block = object.blocks.get(id.sbn.0 as usize)?;
        let is_done = matches!(object.state, ObjectState::Committing | ObjectState::Done);
        if !is_done && object.state != ObjectState::Receiving {
            return None;
        }
        let oti = object.layout.oti();
        let source_symbols = object.layout.source_symbols(id.sbn)?;
        let profile = oti.scheme.block_profile(source_symbols);
        let has_block = is_done || block.is_verified();
        Some(BlockHolding {
            has_block,
            is_sound: has_block || block.is_sound(),
            was_corrupt: !has_block && block.was_corrupt_by_others(),
            lacking: if has_block { 0 } else { block.symbols_to_ask() },
            source_symbols,
            encoding_symbols: profile.encoding_symbols,
            symbol_size: oti.symbol_size,
            makes_fresh: matches!(oti.scheme, FecScheme::RaptorQ(code) if code.sub_blocks == 1),
        })
    }

    fn sound_block(&self, id: BlockId) -> Option<&Block> {
        let block = self.objects.get(&id.toi)?.blocks.get(id.sbn.0 as usize)?;
        block.is_sound().then_some(block)
    }

    /// Those of these symbols that were received, in their order.
    pub(in crate::receiver) fn held(&self, id: BlockId, esis: &[Esi]) -> Vec<Esi> {
        let Some(block) = self.sound_block(id) else { return Vec::new() };
        let repair: BTreeSet<Esi> = block.repair_symbols().collect();
        let is_held = |esi: &Esi| {
            (block.has_in_place(*esi) || repair.contains(esi))
                && block.may_share(*esi, &self.sources)
        };
        esis.iter().copied().filter(is_held).collect()
    }

    /// The repair symbols of a block that were received, around which others are named. None of
    /// those that other receivers have sent of a corrupt block.
    pub(in crate::receiver) fn repair_symbols(&self, id: BlockId) -> Vec<Esi> {
        let Some(block) = self.sound_block(id) else { return Vec::new() };
        let is_corrupt = block.was_corrupt_by_others();
        let is_named = |&esi: &Esi| !is_corrupt || block.may_share(esi, &self.sources);
        block.repair_symbols().filter(is_named).collect()
    }

    /// The same, in the order of their slots, as jobs name them.
    pub(in crate::receiver) fn repair_in_slots(&self, id: BlockId) -> Vec<Esi> {
        self.sound_block(id).map_or_else(Vec::new, Block::repair_in_slots)
    }
}
