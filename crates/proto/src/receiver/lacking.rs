//! What the blocks of a reception lack: what a receiver may request of a sender that repairs on
//! demand.

use super::Receiver;
use crate::lacking::Lacking;

impl Receiver {
    /// The first `most` blocks that lack symbols. Of a block of a code whose surplus is bounded,
    /// the symbols with which it is almost certainly recovered are counted, so that one request is
    /// enough. Of a stream's fragment, of which more can be requested soon, those with which it is
    /// likely recovered. Looks at every block.
    pub fn lacking(&self, most: usize) -> Lacking {
        if !self.reception.is_listening() {
            return Lacking::default();
        }
        let mut lacking = self.reception.transfer.lacking(most, self.reception.surplus());
        lacking.may_lack_more |= !self.reception.has_accepted();
        lacking
    }
}
