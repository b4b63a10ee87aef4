//! The ids of the received symbols of a block, for systematic codes that decode by elimination.

use crate::decode::Novelty;
use crate::ids::Esi;
use alloc::collections::BTreeSet;
use alloc::vec;
use alloc::vec::Vec;

/// Ids of the available symbols, as sets: a plan depends on which symbols arrived, not on their
/// order.
///
/// Repair symbols are stored while fewer than `k` symbols and a surplus are available. If ids
/// chosen by an attacker do not suffice, each failed attempt adds the number of lacking symbols and
/// another surplus, up to `2 k` and a surplus. Source symbols always suffice in the end, and are
/// always stored, so there are at most `3 k` symbols and a surplus.
pub(crate) struct ReceivedIds {
    /// One flag for each source symbol.
    source: Vec<bool>,
    source_count: usize,
    /// ESIs of repair symbols.
    repair: BTreeSet<u32>,
    surplus: usize,
    /// Number of available symbols up to which repair symbols are stored.
    room: usize,
    /// The number of available symbols when the last attempt failed, and the rank that was lacking.
    shown: (usize, u32),
    is_solved: bool,
}

impl ReceivedIds {
    /// No symbols of a block of `source_symbols`.
    pub(crate) fn new(source_symbols: u32, surplus: usize) -> Self {
        Self {
            source: vec![false; source_symbols as usize],
            source_count: 0,
            repair: BTreeSet::new(),
            surplus,
            room: source_symbols as usize + surplus,
            shown: (0, source_symbols),
            is_solved: false,
        }
    }

    /// Adds a symbol that the code has. After the block is solved, every symbol is a duplicate.
    pub(crate) fn push(&mut self, esi: Esi) -> Novelty {
        if self.is_solved {
            return Novelty::Duplicate;
        }
        let has_room = self.available() < self.room;
        let is_fresh = match self.source.get_mut(esi.0 as usize) {
            Some(is_here) => {
                let is_fresh = !core::mem::replace(is_here, true);
                self.source_count += usize::from(is_fresh);
                is_fresh
            }
            None => has_room && self.repair.insert(esi.0),
        };
        if is_fresh { Novelty::Fresh } else { Novelty::Duplicate }
    }

    /// `k`: source symbols of the block.
    pub(crate) fn source_symbols(&self) -> u32 {
        self.source.len() as u32
    }

    fn available(&self) -> usize {
        self.source_count + self.repair.len()
    }

    /// True if all source symbols are available.
    pub(crate) fn has_all_source(&self) -> bool {
        self.source_count == self.source.len()
    }

    /// Source symbols that are not available.
    pub(crate) fn lost_count(&self) -> usize {
        self.source.len() - self.source_count
    }

    /// The source symbols that are not available, ascending.
    pub(crate) fn lost(&self) -> Vec<Esi> {
        let source = (0..).zip(&self.source);
        source.filter_map(|(esi, &is_here)| (!is_here).then_some(Esi(esi))).collect()
    }

    /// The available source symbols, ascending.
    pub(crate) fn source(&self) -> impl Iterator<Item = Esi> {
        (0..).zip(&self.source).filter_map(|(esi, &is_here)| is_here.then_some(Esi(esi)))
    }

    /// The available repair symbols, ascending.
    pub(crate) fn repair(&self) -> impl ExactSizeIterator<Item = Esi> {
        self.repair.iter().map(|&esi| Esi(esi))
    }

    /// See [`IdDecoder::symbols_wanted`](crate::IdDecoder::symbols_wanted).
    pub(crate) fn symbols_wanted(&self) -> u32 {
        if self.is_solved || self.has_all_source() {
            return 0;
        }
        let (then, lack) = self.shown;
        lack.saturating_sub((self.available() - then) as u32)
    }

    /// An attempt succeeded: no more symbols are stored.
    pub(crate) fn on_solved(&mut self) {
        self.is_solved = true;
    }

    /// An attempt failed by `lack` symbols.
    pub(crate) fn on_lack(&mut self, lack: u32) {
        self.shown = (self.available(), lack);
        self.make_room(lack);
    }

    /// An attempt failed for too much work.
    pub(crate) fn on_out_of_budget(&mut self) {
        self.make_room(0);
    }

    fn make_room(&mut self, lack: u32) {
        let most = 2 * self.source.len() + self.surplus;
        self.room = self.room.max(self.available() + lack as usize + self.surplus).min(most);
    }
}
