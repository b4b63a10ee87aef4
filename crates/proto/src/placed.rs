//! Received symbols, and the places where they are stored.

use crate::endpoint::BlockId;
use fontana_fec::Esi;

/// The place of a received symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SymbolPlace {
    /// The final place of a source symbol in the object.
    InPlace,
    /// A slot in the block's part of the repair file, for a repair symbol.
    RepairSlot(u32),
}

impl SymbolPlace {
    /// The place of the symbol that is `count` symbols behind this one in a run.
    pub fn after(self, count: u32) -> Self {
        match self {
            Self::InPlace => Self::InPlace,
            Self::RepairSlot(slot) => Self::RepairSlot(slot.saturating_add(count)),
        }
    }
}

/// Consecutive symbols of a block that are stored together.
///
/// Symbols that arrive one after the other form a run if their ESIs, their places and their
/// positions in the slab follow each other. Copied symbols need no positions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedRun {
    /// The symbols' block.
    pub block: BlockId,
    /// The first symbol.
    pub first: Esi,
    /// Number of symbols, at least 1.
    pub count: u32,
    /// The place of the first symbol. Those of the others follow it.
    pub to: SymbolPlace,
    /// The bytes of all symbols.
    pub bytes: SymbolBytes,
}

/// The bytes of the symbols of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SymbolBytes {
    /// In the slab of the batch that was handled last.
    InSlab(SlabSymbols),
    /// Copied from their slab, one symbol after the other. All have one size.
    Saved(Vec<u8>),
}

/// Symbols of one size at equal distances in a slab.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlabSymbols {
    /// The first byte of the first symbol.
    pub start: u32,
    /// Bytes of each symbol.
    pub size: u32,
    /// Bytes from the start of a symbol to the start of the next one.
    pub stride: u32,
}

impl SlabSymbols {
    /// One symbol.
    pub const fn one(start: u32, size: u32) -> Self {
        Self { start, size, stride: size }
    }
}

/// Bytes of a run of copied symbols, at most: of one write, or of few.
const COPIED_RUN: usize = 64 << 10;

impl PlacedRun {
    /// Appends symbols that follow the last one. False if they do not follow it, and nothing has
    /// changed.
    #[inline]
    pub fn append(&mut self, next: &Self) -> bool {
        let (SymbolBytes::InSlab(own), SymbolBytes::InSlab(other)) = (&mut self.bytes, &next.bytes)
        else {
            return self.append_copied(next);
        };
        let Some(distance) = other.start.checked_sub(own.start) else { return false };
        let stride = if self.count == 1 { distance } else { own.stride };
        let follows = self.block == next.block
            && self.first.0.checked_add(self.count) == Some(next.first.0)
            && self.to.after(self.count) == next.to
            && own.size == other.size
            && stride >= own.size
            && stride.checked_mul(self.count) == Some(distance)
            && (next.count == 1 || other.stride == stride);
        if follows {
            own.stride = stride;
            self.count += next.count;
        }
        follows
    }

    /// Appends copied symbols: early ones come all at once, and many small files share a run.
    fn append_copied(&mut self, next: &Self) -> bool {
        let follows = self.block == next.block
            && self.first.0.checked_add(self.count) == Some(next.first.0)
            && self.to.after(self.count) == next.to
            && self.symbol_size() == next.symbol_size();
        let (SymbolBytes::Saved(own), SymbolBytes::Saved(other)) = (&mut self.bytes, &next.bytes)
        else {
            return false;
        };
        let follows = follows && own.len().saturating_add(other.len()) <= COPIED_RUN;
        if follows {
            own.extend_from_slice(other);
            self.count = self.count.saturating_add(next.count);
        }
        follows
    }

    /// Each symbol and its place.
    pub fn ids(&self) -> impl Iterator<Item = (Esi, SymbolPlace)> + use<> {
        let (first, to) = (self.first, self.to);
        (0..self.count).map(move |index| (Esi(first.0.saturating_add(index)), to.after(index)))
    }

    /// Bytes of each symbol.
    pub fn symbol_size(&self) -> usize {
        match &self.bytes {
            SymbolBytes::InSlab(symbols) => symbols.size as usize,
            SymbolBytes::Saved(bytes) => bytes.len() / self.count.max(1) as usize,
        }
    }

    /// The bytes of each symbol; `slab` is that of the batch that was handled last. `None` for a
    /// symbol outside the slab.
    pub fn symbols<'a>(&'a self, slab: &'a [u8]) -> impl Iterator<Item = Option<&'a [u8]>> {
        let size = self.symbol_size();
        let (bytes, start, stride) = match &self.bytes {
            SymbolBytes::InSlab(at) => (slab, at.start as usize, at.stride as usize),
            SymbolBytes::Saved(bytes) => (&bytes[..], 0, size),
        };
        (0..self.count as usize).map(move |index| {
            let from = start + index * stride;
            bytes.get(from..from + size)
        })
    }

    /// The same with a copy of the bytes, for the time after the batch. Symbols outside the slab
    /// are zeros.
    pub fn saved(self, slab: &[u8]) -> Self {
        if matches!(self.bytes, SymbolBytes::Saved(_)) {
            return self;
        }
        let size = self.symbol_size();
        let mut bytes = Vec::with_capacity(size * self.count as usize);
        for symbol in self.symbols(slab) {
            let end = bytes.len() + size;
            bytes.extend_from_slice(symbol.unwrap_or_default());
            bytes.resize(end, 0);
        }
        Self { bytes: SymbolBytes::Saved(bytes), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fontana_fec::Sbn;
    use fontana_wire::Toi;

    const BLOCK: BlockId = BlockId { toi: Toi(1), sbn: Sbn(2) };

    fn run(first: u32, to: SymbolPlace, start: u32, size: u32) -> PlacedRun {
        let bytes = SymbolBytes::InSlab(SlabSymbols::one(start, size));
        PlacedRun { block: BLOCK, first: Esi(first), count: 1, to, bytes }
    }

    #[test]
    fn symbols_at_equal_distances_form_a_run() {
        let mut joined = run(7, SymbolPlace::RepairSlot(3), 2, 4);
        assert!(joined.append(&run(8, SymbolPlace::RepairSlot(4), 12, 4)));
        assert!(joined.append(&run(9, SymbolPlace::RepairSlot(5), 22, 4)));
        assert_eq!(joined.count, 3);
        let ids: Vec<_> = joined.ids().map(|(esi, to)| (esi.0, to)).collect();
        let slot = SymbolPlace::RepairSlot;
        assert_eq!(ids, [(7, slot(3)), (8, slot(4)), (9, slot(5))]);
        let slab: Vec<u8> = (0..25).collect();
        let symbols: Vec<_> = joined.symbols(&slab).collect();
        assert_eq!(symbols, [Some(&slab[2..6]), Some(&slab[12..16]), None]);
        let saved = joined.saved(&slab);
        assert_eq!(saved.bytes, SymbolBytes::Saved(vec![2, 3, 4, 5, 12, 13, 14, 15, 0, 0, 0, 0]));
        assert_eq!(saved.symbols(&[]).nth(1), Some(Some(&[12, 13, 14, 15][..])));
    }

    #[test]
    fn symbols_that_do_not_follow_start_a_run_of_their_own() {
        let place = SymbolPlace::InPlace;
        let mut two = run(0, place, 10, 4);
        assert!(two.append(&run(1, place, 20, 4)));
        for other in [
            run(3, place, 30, 4),                      // another ESI
            run(2, SymbolPlace::RepairSlot(0), 30, 4), // another place
            run(2, place, 31, 4),                      // another distance
            run(2, place, 30, 3),                      // another size
            run(2, place, 0, 4),                       // before
            PlacedRun { block: BlockId { toi: Toi(2), ..BLOCK }, ..run(2, place, 30, 4) },
            run(2, place, 30, 4).saved(&[0; 40]),
        ] {
            assert!(!two.append(&other), "{other:?}");
        }
        assert_eq!(two.count, 2);
        // Symbols never overlap.
        assert!(!run(0, place, 10, 4).append(&run(1, place, 13, 4)));
        assert!(!run(u32::MAX, place, 10, 4).append(&run(0, place, 14, 4)));
    }

    #[test]
    fn copied_symbols_form_a_run_until_it_is_one_write() {
        let slab = vec![5; COPIED_RUN + 1];
        let size = COPIED_RUN as u32 / 2;
        let one = |esi, size| run(esi, SymbolPlace::InPlace, 0, size).saved(&slab);
        let mut two = one(7, size);
        assert!(two.append(&one(8, size)));
        assert_eq!((two.count, two.symbols(&[]).flatten().count()), (2, 2));
        assert_eq!(two.bytes, SymbolBytes::Saved(vec![5; COPIED_RUN]));
        assert!(!two.append(&one(9, size)), "more than one write");
        let elsewhere = run(8, SymbolPlace::RepairSlot(0), 0, 4).saved(&slab);
        let in_slab = run(8, SymbolPlace::InPlace, 4, 4);
        for other in [one(9, 4), one(8, 3), elsewhere, in_slab] {
            assert!(!one(7, 4).append(&other), "{other:?}");
        }
    }
}
