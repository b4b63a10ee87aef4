//! What the files of a session ask for together, against the receiver's limits.

use crate::counter::Counter;
use crate::event::FileRefusal;
use crate::receiver::config::ReceiverLimits;
use fontana_fec::{ObjectLayout, Oti};

/// Sums over the files that are being received.
#[derive(Debug, Default)]
pub(super) struct Demand {
    files: usize,
    bytes: u64,
    blocks: u64,
}

impl Demand {
    pub(super) fn files(&self) -> usize {
        self.files
    }

    /// A file of this geometry is complete, or dropped: it counts no more.
    pub(super) fn leave(&mut self, layout: &ObjectLayout) {
        self.files.discount(1);
        self.bytes.discount(layout.oti().transfer_length);
        self.blocks.discount(layout.block_count().into());
    }

    /// The geometry of one more file, if the limits allow it.
    pub(super) fn admit(
        &mut self,
        oti: Oti,
        limits: &ReceiverLimits,
    ) -> Result<ObjectLayout, FileRefusal> {
        let layout = oti.layout()?;
        let demand = Self {
            files: self.files.saturating_add(1),
            bytes: self.bytes.saturating_add(oti.transfer_length),
            blocks: self.blocks.saturating_add(layout.block_count().into()),
        };
        for (is_too_much, what) in [
            (demand.files > limits.max_files, "files"),
            (demand.bytes > limits.max_transfer_bytes, "bytes"),
            (demand.blocks > limits.max_blocks, "source blocks"),
            (!limits.have_room_to_decode(oti), "bytes of memory to decode a block"),
        ] {
            if is_too_much {
                return Err(FileRefusal::Limit(what));
            }
        }
        *self = demand;
        Ok(layout)
    }
}
