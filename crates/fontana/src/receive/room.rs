//! The room on the disk for repair symbols. The space of the files is reserved before the
//! reception. Repair symbols are stored beside them until their blocks are verified: as many as the
//! blocks lack source symbols, which is not known before.

use super::object::Opened;
use crate::event::LittleRoom;
use fontana_fec::ObjectLayout;
use fontana_proto::SavedBlock;
use std::collections::{BTreeMap, BTreeSet};

/// The room on the disk, if it is less than what repair symbols may take.
pub(super) fn shortage(opened: &Opened) -> Option<LittleRoom> {
    let mut blocks: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for block in &opened.saved.blocks {
        blocks.entry(block.block.toi).or_default().push(block);
    }
    let committed: BTreeSet<_> = opened.saved.committed.iter().collect();
    let received = opened.objects.iter().filter(|object| !committed.contains(&object.toi));
    let wanted = received.map(|object| {
        let saved = blocks.get(&object.toi).map_or(&[][..], Vec::as_slice);
        repair_bytes(object.object.staged.layout(), saved)
    });
    let wanted = wanted.fold(0, u64::saturating_add);
    let free = opened.objects.first()?.object.staged.staging().room_left()?;
    (free < wanted).then_some(LittleRoom { free, wanted })
}

/// The most bytes of repair symbols that an object may need beside those of an earlier run.
fn repair_bytes(layout: &ObjectLayout, saved: &[&SavedBlock]) -> u64 {
    let oti = layout.oti();
    let longest = layout.max_source_symbols();
    let sent = oti.scheme.block_profile(longest).symbols_per_cycle;
    let most = u64::from(sent.saturating_sub(longest)) * u64::from(layout.block_count());
    let of_block = |block: &&SavedBlock| match block.is_complete {
        true => u64::from(layout.source_symbols(block.block.sbn).unwrap_or(0)),
        false => (block.in_place.len() + block.repair.len()) as u64,
    };
    let missing =
        saved.iter().map(of_block).fold(layout.total_source_symbols(), u64::saturating_sub);
    missing.min(most) * u64::from(oti.symbol_size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fontana_fec::codes::no_code::NoCode;
    use fontana_fec::codes::raptorq::RaptorQ;
    use fontana_fec::{Esi, FecScheme, Oti, Sbn};
    use fontana_proto::BlockId;
    use fontana_wire::Toi;

    #[test]
    fn repair_symbols_may_take_the_place_of_all_source_symbols_that_are_missing() {
        let layout = |scheme| {
            let oti = Oti { transfer_length: 100 * 1000, symbol_size: 1000, scheme };
            oti.layout().unwrap()
        };
        let block = |sbn, is_complete| SavedBlock {
            block: BlockId { toi: Toi(1), sbn: Sbn(sbn) },
            is_complete,
            in_place: vec![Esi(0), Esi(3)],
            repair: vec![(Esi(40), 0)],
        };
        let (whole, part) = (block(0, true), block(2, false));
        let raptorq = RaptorQ { source_blocks: 4, sub_blocks: 1, alignment: 4 };
        let raptorq = layout(FecScheme::RaptorQ(raptorq));
        assert_eq!(repair_bytes(&raptorq, &[]), 100_000);
        assert_eq!(repair_bytes(&raptorq, &[&whole, &part]), (100 - 25 - 3) * 1000);
        let none = layout(FecScheme::NoCode(NoCode { max_source_block_length: 25 }));
        assert_eq!(repair_bytes(&none, &[]), 0);
    }
}
