//! The symbols that a mirror has sent, on their way to the receiver.

use crate::web::records::Records;
use fontana_fec::Esi;
use fontana_proto::pull::PulledRun;
use fontana_proto::{BlockId, Instant, Receiver};
use std::ops::Range;

/// Where the symbols of one mirror go.
pub(super) struct Sink<'a> {
    pub(super) receiver: &'a mut Receiver,
    pub(super) records: &'a mut Records,
    /// The number of the mirror.
    pub(super) mirror: usize,
    /// Bytes that the receiver had no use for.
    pub(super) useless: u64,
}

impl Sink<'_> {
    /// Gives the receiver consecutive symbols of a block, of `size` bytes each: these `bytes` of a
    /// slab. The last one may be shorter. Returns whether it had use for any.
    pub(super) fn take(
        &mut self,
        now: Instant,
        (block, first): (BlockId, Esi),
        size: u32,
        slab: &[u8],
        bytes: Range<u32>,
    ) -> bool {
        let pulled = PulledRun { block, first, bytes: bytes.clone() };
        let result = self.receiver.handle_pulled(now, &pulled, slab);
        self.useless += result.useless * u64::from(size);
        let is_of_use = !result.fresh.is_empty();
        // Symbols that packets have brought are requested again with what lies around them.
        for esis in result.fresh {
            let at = |esi: u32| (bytes.start + (esi - first.0) * size).min(bytes.end) as usize;
            let symbols = slab.get(at(esis.start)..at(esis.end)).unwrap_or_default();
            self.records.add(block, self.mirror, esis, symbols);
        }
        is_of_use
    }
}
