//! What an earlier run left, as the protocol takes it.

use fontana_proto::{BlockId, Kept, KeptBlock};
use fontana_wire::Toi;

/// The contents of a journal.
pub(super) fn for_protocol(journal: fontana_store::Kept) -> Kept {
    Kept {
        session_packets: journal.packets,
        committed: journal.committed.into_iter().map(Toi::from).collect(),
        blocks: journal
            .blocks
            .into_iter()
            .map(|((toi, sbn), block)| KeptBlock {
                block: BlockId { toi: Toi::from(toi), sbn },
                whole: block.whole,
                in_place: block.in_place,
                spooled: block.spooled,
            })
            .collect(),
    }
}
