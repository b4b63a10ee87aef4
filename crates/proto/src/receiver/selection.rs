//! Receiving a part: objects of the accepted manifest that nobody here wants.
//!
//! The driver knows names and the user's wishes, this endpoint knows objects. So the driver chooses
//! while it makes room ([`ReceiveJob::Open`](crate::ReceiveJob::Open)) and says which objects it
//! has no use for.

use super::Receiver;
use super::transfer::{ObjectState, Transfer};
use fontana_wire::Toi;

impl Receiver {
    /// Leaves objects of the accepted manifest out: nothing of them is received, and they count
    /// neither in [`source_symbols`](Self::source_symbols) nor, packet by packet, in what the
    /// reception inefficiency counts. To be called before
    /// [`ReceiveJob::Open`](crate::ReceiveJob::Open) is answered; an object that is open already is
    /// not left out any more.
    pub fn leave_out(&mut self, objects: impl IntoIterator<Item = Toi>) {
        for toi in objects {
            self.transfer.leave_out(toi);
        }
    }
}

impl Transfer {
    fn leave_out(&mut self, toi: Toi) {
        let is_opening = |o: &super::transfer::Object| o.state == ObjectState::Opening;
        if !self.objects.get(&toi).is_some_and(is_opening) {
            return;
        }
        if let Some(object) = self.objects.remove(&toi) {
            self.unheard -= object.unheard();
            self.source_symbols -= object.layout.total_source_symbols();
            self.symbols_wanted = self.symbols_wanted.saturating_sub(object.symbols_wanted());
            self.left_out.insert(toi);
        }
    }
}
