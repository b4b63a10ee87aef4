//! What the blocks of a reception lack: what a receiver may request of a sender that repairs on
//! demand.

use super::Receiver;
use crate::endpoint::BlockId;
use crate::lacking::Lacking;
use crate::time::Instant;

impl Receiver {
    /// The first `most` blocks that lack symbols. Of a block of a code whose surplus is bounded,
    /// the symbols with which it is almost certainly recovered are counted, so that one request is
    /// enough. Of a stream's fragment, of which more can be requested soon, those with which it is
    /// likely recovered. Looks at every block.
    pub fn lacking(&self, most: usize) -> Lacking {
        self.lacking_of(most, |_| u32::MAX)
    }

    /// The same, without what others of its site bring.
    pub(super) fn lacking_of_sender(&self, now: Instant, most: usize) -> Lacking {
        let site = self.site.as_ref();
        self.lacking_of(most, |block| site.map_or(u32::MAX, |site| site.asks_sender(now, block)))
    }

    /// Of each block at most so many symbols.
    fn lacking_of(&self, most: usize, symbols: impl Fn(BlockId) -> u32) -> Lacking {
        if !self.reception.is_listening() {
            return Lacking::default();
        }
        let surplus = self.reception.surplus();
        let mut lacking = self.reception.transfer.lacking(most, surplus, symbols);
        lacking.may_lack_more |= !self.reception.has_accepted();
        lacking
    }
}
