//! What a receiver lacks.

use fontana_wire::{BlockNeed, SymbolMap};

/// What the blocks of a reception lack, for a [repair request](fontana_wire::RepairRequest).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lacking {
    /// Blocks that lack symbols, in ascending order, each once.
    pub blocks: Vec<BlockNeed>,
    /// The symbols that are lacking, in ascending order, of blocks whose symbols repeat. There are
    /// no `blocks` then.
    pub maps: Vec<SymbolMap>,
    /// It may lack more: the content is not known yet, or there are more blocks.
    pub may_lack_more: bool,
}

impl Lacking {
    /// True if nothing is lacking.
    pub fn is_nothing(&self) -> bool {
        self.blocks.is_empty() && self.maps.is_empty() && !self.may_lack_more
    }
}
