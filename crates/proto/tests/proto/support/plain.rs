//! What tests of reports share.

use fontana_wire::{PacketSeal, SealNonce, TAG_BYTES};

/// The clock of all hosts at the start, in unix milliseconds.
pub(crate) const CLOCK: u64 = 1_795_424_455_000;

/// No cipher: the group has no key.
pub(crate) enum Plain {}

impl PacketSeal for Plain {
    fn seal(&self, _: SealNonce, _: &[u8], _: &mut [u8]) -> [u8; TAG_BYTES] {
        match *self {}
    }

    fn open(&self, _: SealNonce, _: &[u8], _: &mut [u8], _: [u8; TAG_BYTES]) -> bool {
        match *self {}
    }
}
