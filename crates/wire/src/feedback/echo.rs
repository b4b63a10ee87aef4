//! The roll call that a report or a request answers.

use crate::bytes::Reader;

/// The roll call that a receiver has received last, and when: from it a sender computes the
/// round-trip time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RollCallEcho {
    /// Serial number of the roll call.
    pub serial: u64,
    /// Microseconds from its arrival until the datagram was sent, or [`UNKNOWN`](Self::UNKNOWN).
    pub held_us: u32,
}

impl RollCallEcho {
    /// The roll call has waited at the receiver's host for no one knows how long.
    pub const UNKNOWN: u32 = u32::MAX;

    pub(crate) fn emit(self, out: &mut Vec<u8>) {
        out.extend(self.serial.to_be_bytes());
        out.extend(self.held_us.to_be_bytes());
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Option<Self> {
        Some(Self { serial: reader.u64()?, held_us: reader.u32()? })
    }
}
