//! What the blocks of a transfer lack.

use super::Transfer;
use super::object::ObjectState;
use crate::lacking::Lacking;
use fontana_wire::BlockNeed;

impl Transfer {
    /// The first `most` blocks that lack symbols.
    pub(in crate::receiver) fn lacking(&self, most: usize) -> Lacking {
        let mut lacking = Lacking::default();
        for (toi, object) in &self.objects {
            lacking.may_lack_more |= object.state == ObjectState::Opening;
            let Ok(toi) = u32::try_from(toi.0) else { continue };
            if object.state != ObjectState::Receiving || object.missing() == 0 {
                continue;
            }
            for (sbn, block) in (0..).zip(&object.blocks) {
                let symbols = block.symbols_lacking();
                let need = BlockNeed { toi, sbn, symbols };
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
}
