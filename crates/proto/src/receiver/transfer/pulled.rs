//! What pulled symbols need beside those of packets.

use super::block::Block;
use super::object::ObjectState;
use super::{Need, Transfer};
use crate::endpoint::BlockId;
use crate::event::ReceiverOutput;
use crate::job::{BlockOutcome, ReceiveJob};
use fontana_fec::{EncodingId, Esi, Padding};
use fontana_wire::Toi;
use std::collections::VecDeque;
use std::ops::Range;

impl Transfer {
    /// Whether only pulled symbols of the block are of use.
    #[inline]
    pub(in crate::receiver) fn is_reserved(&self, block: BlockId) -> bool {
        !self.reserved.is_empty() && self.reserved.contains(&block)
    }

    /// Whether an object is open, and not complete.
    pub(in crate::receiver) fn is_receiving(&self, toi: Toi) -> bool {
        self.objects.get(&toi).is_some_and(|object| object.state == ObjectState::Receiving)
    }

    /// The symbol size and the code of an object.
    pub(in crate::receiver) fn symbols_of(&self, toi: Toi) -> Option<(u16, EncodingId)> {
        let layout = &self.objects.get(&toi)?.layout;
        Some((layout.oti().symbol_size, layout.encoding_id()))
    }

    /// Bytes of a symbol of a block: less than others if it is the last one and its code sends it
    /// without padding.
    pub(in crate::receiver) fn symbol_size(&self, id: BlockId, esi: Esi) -> Option<u16> {
        let layout = &self.objects.get(&id.toi)?.layout;
        let (oti, size) = (layout.oti(), layout.oti().symbol_size);
        let is_last = id.sbn.0.checked_add(1) == Some(layout.block_count())
            && layout.source_symbols(id.sbn)? == esi.0.checked_add(1)?;
        let rest = oti.transfer_length.checked_rem(size.into()).unwrap_or(0) as u16;
        let is_short = is_last && rest > 0 && oti.scheme.profile().padding == Padding::Omitted;
        Some(if is_short { rest } else { size })
    }

    /// The first run of source symbols from `from` on that a block lacks, if it needs more, and
    /// there is memory for its decoder.
    pub(in crate::receiver) fn missing_source(&self, id: BlockId, from: Esi) -> Option<Range<u32>> {
        self.block_in_need(id)?.missing_source(from)
    }

    fn block_in_need(&self, id: BlockId) -> Option<&Block> {
        let block = self.objects.get(&id.toi)?.blocks.get(id.sbn.0 as usize)?;
        (self.need(id) == Need::More && self.has_room_for(block)).then_some(block)
    }

    /// Symbols that a block needs, if there is memory for its decoder.
    pub(in crate::receiver) fn block_symbols_wanted(&self, id: BlockId) -> u32 {
        self.block_in_need(id).map_or(0, Block::symbols_wanted)
    }

    /// The first run of repair symbols of a range that a block has not received.
    pub(in crate::receiver) fn missing_repair(
        &self,
        id: BlockId,
        esis: Range<u32>,
    ) -> Option<Range<u32>> {
        self.block_in_need(id)?.missing_repair(esis)
    }

    /// Whether a corrupt block waits until its wrong symbols are found.
    pub(in crate::receiver) fn is_suspect(&self, id: BlockId) -> bool {
        let object = self.objects.get(&id.toi);
        let block = object.and_then(|object| object.blocks.get(id.sbn.0 as usize));
        block.is_some_and(Block::is_suspect)
    }

    /// Drops all symbols of a block, and reserves it for pulled ones.
    pub(in crate::receiver) fn refetch(
        &mut self,
        id: BlockId,
        out: &mut VecDeque<ReceiverOutput>,
    ) -> bool {
        if !self.is_receiving(id.toi) || self.change_block(id, Block::refetch) != Some(true) {
            return false;
        }
        self.suspects.remove(&id);
        self.reserved.insert(id);
        let outcome = BlockOutcome::Corrupt;
        out.push_back(ReceiverOutput::Job(ReceiveJob::Settle { block: id, outcome }));
        true
    }

    /// Drops pulled symbols of these runs of a corrupt block. False if it has none of them, or a
    /// job on it is under way.
    pub(in crate::receiver) fn drop_pulled(
        &mut self,
        id: BlockId,
        runs: &[Range<u32>],
        out: &mut VecDeque<ReceiverOutput>,
    ) -> bool {
        let sequel = self.change_block(id, |block| block.drop_pulled(runs)).flatten();
        let is_dropped = sequel.is_some();
        if let Some(sequel) = sequel {
            self.follow_up(id, sequel, out);
        }
        is_dropped
    }

    /// Lets a reserved block take symbols of packets again. False if it is not reserved.
    pub(in crate::receiver) fn release(&mut self, id: BlockId) -> bool {
        self.reserved.remove(&id)
    }
}
