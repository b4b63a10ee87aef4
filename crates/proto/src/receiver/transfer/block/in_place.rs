//! Which source symbols of a block are in their places: none of them is written again, and mirrors
//! are asked for the others.

use super::Block;
use fontana_fec::Esi;
use std::ops::Range;

/// The source symbols of a block that are in their places: a bit for each, up to the last one.
#[derive(Debug, Default)]
pub(super) struct PlacedSource(Vec<u64>);

/// The word of a symbol, and its bit there.
fn place_of(Esi(esi): Esi) -> (usize, u64) {
    ((esi / u64::BITS) as usize, 1_u64.wrapping_shl(esi))
}

impl PlacedSource {
    pub(super) fn insert(&mut self, esi: Esi) {
        let (at, bit) = place_of(esi);
        if at >= self.0.len() {
            self.0.resize(at.saturating_add(1), 0);
        }
        if let Some(word) = self.0.get_mut(at) {
            *word |= bit;
        }
    }

    pub(super) fn remove(&mut self, esi: Esi) {
        let (at, bit) = place_of(esi);
        if let Some(word) = self.0.get_mut(at) {
            *word &= !bit;
        }
    }

    pub(super) fn contains(&self, esi: Esi) -> bool {
        let (at, bit) = place_of(esi);
        self.0.get(at).is_some_and(|word| word & bit != 0)
    }

    /// The first symbol of a range that is in its place, or is not; the end if there is none.
    fn first(&self, range: Range<u32>, is_placed: bool) -> u32 {
        let mut at = range.start;
        while at < range.end {
            let word = self.0.get((at / u64::BITS) as usize).copied().unwrap_or(0);
            let word = if is_placed { word } else { !word };
            let rest = word.wrapping_shr(at);
            if rest != 0 {
                return at.saturating_add(rest.trailing_zeros()).min(range.end);
            }
            at = (at / u64::BITS).saturating_add(1).saturating_mul(u64::BITS);
        }
        range.end
    }

    /// The first run of symbols of a range that are not in their places.
    fn missing(&self, range: Range<u32>) -> Option<Range<u32>> {
        let start = self.first(range.clone(), false);
        let end = self.first(start..range.end, true);
        (start < end).then_some(start..end)
    }
}

impl Block {
    /// The first run of source symbols from `from` on that it lacks. `None` if it has them.
    pub(in crate::receiver::transfer) fn missing_source(&self, from: Esi) -> Option<Range<u32>> {
        self.in_place.missing(from.0..self.source_symbols)
    }

    /// Whether a source symbol is in its place.
    pub(in crate::receiver::transfer) fn has_in_place(&self, esi: Esi) -> bool {
        esi.0 < self.source_symbols && self.in_place.contains(esi)
    }

    /// The first run of repair symbols of a range that it has not received.
    pub(in crate::receiver::transfer) fn missing_repair(
        &self,
        esis: Range<u32>,
    ) -> Option<Range<u32>> {
        let mut present: Vec<u32> =
            self.repair.symbols().map(|esi| esi.0).filter(|esi| esis.contains(esi)).collect();
        present.sort_unstable();
        present.dedup();
        let mut present = present.into_iter().peekable();
        let mut start = esis.start;
        while present.next_if_eq(&start).is_some() {
            start = start.saturating_add(1);
        }
        let end = present.next().unwrap_or(esis.end);
        (start < end).then_some(start..end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_lies_between_the_symbols_in_their_places() {
        let mut placed = PlacedSource::default();
        assert_eq!(placed.missing(0..200), Some(0..200));
        (0..64).chain(70..128).chain([130, 199]).for_each(|esi| placed.insert(Esi(esi)));
        let missing = |from| placed.missing(from..200);
        assert_eq!([0, 66, 70].map(missing), [Some(64..70), Some(66..70), Some(128..130)]);
        assert_eq!([131, 199, 200].map(missing), [Some(131..199), None, None]);
        assert!(
            placed.contains(Esi(63)) && !placed.contains(Esi(64)) && !placed.contains(Esi(900))
        );
        placed.remove(Esi(63));
        placed.remove(Esi(900));
        assert_eq!(placed.missing(0..200), Some(63..70));
    }
}
