//! What an earlier run left, as the protocol takes it.

use fontana_proto::{BlockId, Saved, SavedBlock};
use fontana_store::Kept;
use fontana_wire::Toi;

/// The contents of a journal.
pub(super) fn for_protocol(journal: Kept) -> Saved {
    Saved {
        session_packets: journal.packets,
        committed: journal.committed.into_iter().map(Toi::from).collect(),
        blocks: journal
            .blocks
            .into_iter()
            .map(|((toi, sbn), block)| SavedBlock {
                block: BlockId { toi: Toi::from(toi), sbn },
                is_complete: block.whole,
                in_place: block.in_place,
                repair: block.spooled,
            })
            .collect(),
    }
}
