//! Where the symbols of a block are on the disk.

use fontana_fec::Esi;
use fontana_proto::SymbolPlace;
use std::collections::BTreeMap;

/// The places of received symbols, of which `repair` are in the slots of the block, in order.
pub(super) fn places(repair: &[Esi]) -> impl Fn(Esi) -> SymbolPlace + use<> {
    let slots: BTreeMap<Esi, u32> = repair.iter().copied().zip(0..).collect();
    move |esi| slots.get(&esi).map_or(SymbolPlace::InPlace, |&s| SymbolPlace::RepairSlot(s))
}
