//! The slots of a block's repair symbols: places on the disk.

use fontana_fec::{Esi, FecScheme, Locator};

/// Symbols stored for a block while a worker has its decoder, which takes milliseconds.
pub(super) const MEANWHILE_SYMBOLS: usize = 1024;

/// Stands for no symbol: no code has so many.
const EMPTY: Esi = Esi(u32::MAX);

/// Slots for the repair symbols of a block of `source_symbols`: as many as its decoder can use, a
/// few in excess, some that arrive twice while a worker has the decoder, and those by which wrong
/// symbols are found.
pub fn repair_slots(scheme: FecScheme, source_symbols: u32) -> u32 {
    scheme
        .block_profile(source_symbols)
        .max_repair_symbols
        .saturating_add((2 * MEANWHILE_SYMBOLS) as u32)
        .saturating_add(Locator::MAX_SURPLUS as u32)
}

/// The repair symbols of a block that were placed, by their slots.
#[derive(Debug)]
pub(super) struct RepairSlots {
    /// The symbol of each slot up to the last one that was used.
    symbols: Vec<Esi>,
    /// Of these slots: those that have no symbol.
    empty: Vec<u32>,
    /// Number of slots.
    count: u32,
}

impl RepairSlots {
    /// So many slots, all of them empty.
    pub(super) fn new(count: u32) -> Self {
        Self { symbols: Vec::new(), empty: Vec::new(), count }
    }

    /// Whether no slot was used since the last [`clear`](Self::clear).
    #[inline]
    pub(super) fn are_unused(&self) -> bool {
        self.symbols.is_empty()
    }

    /// Whether every slot has a symbol.
    #[inline]
    pub(super) fn are_full(&self) -> bool {
        self.symbols.len() >= self.count as usize && self.empty.is_empty()
    }

    /// The number of slots.
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// The symbols, in the order of their slots, as jobs name them.
    pub(super) fn list(&self) -> Vec<Esi> {
        self.symbols.clone()
    }

    /// The symbols.
    pub(super) fn symbols(&self) -> impl Iterator<Item = Esi> {
        self.symbols.iter().copied().filter(|&esi| esi != EMPTY)
    }

    /// Gives a symbol a slot. They must not be [full](Self::are_full).
    pub(super) fn place(&mut self, esi: Esi) -> u32 {
        if let Some(slot) = self.empty.pop()
            && let Some(entry) = self.symbols.get_mut(slot as usize)
        {
            *entry = esi;
            return slot;
        }
        let slot = self.symbols.len() as u32;
        self.symbols.push(esi);
        slot
    }

    /// Restores a symbol that an earlier run has placed. Slots before it are empty until they are
    /// restored.
    pub(super) fn restore(&mut self, slot: u32, esi: Esi) {
        let before = self.symbols.len() as u32;
        if slot >= before {
            self.empty.extend(before..slot);
            self.symbols.resize(slot as usize, EMPTY);
            self.symbols.push(esi);
        } else if let Some(entry) = self.symbols.get_mut(slot as usize) {
            self.empty.retain(|&empty| empty != slot);
            *entry = esi;
        }
    }

    /// Empties a slot.
    pub(super) fn free(&mut self, slot: u32) {
        if let Some(entry) = self.symbols.get_mut(slot as usize)
            && *entry != EMPTY
        {
            *entry = EMPTY;
            self.empty.push(slot);
        }
    }

    /// Empties the slots of these symbols, which are sorted.
    pub(super) fn remove(&mut self, wrong: &[Esi]) {
        for (slot, entry) in (0..).zip(&mut self.symbols) {
            if wrong.binary_search(entry).is_ok() {
                *entry = EMPTY;
                self.empty.push(slot);
            }
        }
    }

    /// Empties all slots.
    pub(super) fn clear(&mut self) {
        (self.symbols, self.empty) = (Vec::new(), Vec::new());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbols(slots: &RepairSlots) -> Vec<u32> {
        slots.symbols().map(|esi| esi.0).collect()
    }

    #[test]
    fn slots_that_were_emptied_are_used_again() {
        let mut slots = RepairSlots::new(3);
        assert!(slots.are_unused());
        assert_eq!([20, 21, 22].map(|esi| slots.place(Esi(esi))), [0, 1, 2]);
        assert!(slots.are_full());
        slots.remove(&[Esi(5), Esi(21)]);
        slots.free(2);
        slots.free(2);
        assert!(!slots.are_full() && !slots.are_unused());
        assert_eq!(slots.list(), [Esi(20), EMPTY, EMPTY]);
        assert_eq!([23, 24].map(|esi| slots.place(Esi(esi))), [2, 1]);
        assert_eq!((symbols(&slots), slots.are_full()), (vec![20, 24, 23], true));
        slots.clear();
        assert!(slots.are_unused() && !slots.are_full());
    }

    #[test]
    fn slots_between_those_that_are_restored_are_empty() {
        let mut slots = RepairSlots::new(9);
        slots.restore(2, Esi(22));
        slots.restore(0, Esi(20));
        slots.restore(4, Esi(24));
        assert_eq!(slots.list(), [Esi(20), EMPTY, Esi(22), EMPTY, Esi(24)]);
        assert_eq!([30, 31, 32].map(|esi| slots.place(Esi(esi))), [3, 1, 5]);
        assert_eq!(symbols(&slots), [20, 31, 22, 30, 24, 32]);
    }
}
