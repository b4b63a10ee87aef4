//! A roll call as a packet's content.

use fontana_proto::{ControlObject, control_oti};
use fontana_wire::{RollCall, SecretKey, Toi};

/// Signs roll calls, and makes them control objects of one symbol.
#[derive(Clone, Debug)]
pub(super) struct CallSigner {
    pub(super) key: SecretKey,
    pub(super) symbol_size: u16,
}

impl CallSigner {
    /// `None` only if the roll call is longer than a symbol, which its capacity prevents.
    pub(super) fn object(&self, call: &RollCall) -> Option<ControlObject> {
        let bytes = call.emit(&self.key);
        let oti = control_oti(bytes.len(), self.symbol_size);
        ControlObject::new(Toi::ROLL_CALL, oti, &bytes, None, 1).ok()
    }
}
