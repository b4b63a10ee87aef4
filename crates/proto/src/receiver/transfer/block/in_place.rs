//! Which symbols of a block are in their places: what mirrors are asked for.

use super::Block;
use crate::pull::RangeSet;
use fontana_fec::Esi;
use std::ops::Range;

impl Block {
    /// The same, remembering which source symbols it has.
    pub(in crate::receiver::transfer) fn tracking_source(self) -> Self {
        Self { in_place: Some(RangeSet::default()), ..self }
    }

    pub(super) fn note_in_place(&mut self, esi: Esi) {
        if let Some(in_place) = &mut self.in_place {
            in_place.insert(esi.0.into()..u64::from(esi.0) + 1);
        }
    }

    /// The first run of source symbols from `from` on that it lacks. `None` if it has them, or does
    /// not know.
    pub(in crate::receiver::transfer) fn missing_source(&self, from: Esi) -> Option<Range<u32>> {
        let in_place = self.in_place.as_ref()?;
        let (mut start, end) = (u64::from(from.0), u64::from(self.source_symbols));
        let mut present = in_place.within(start..end).peekable();
        while let Some(run) = present.next_if(|run| run.start == start) {
            start = run.end;
        }
        let end = present.peek().map_or(end, |next| next.start);
        (start < end).then_some(start as u32..end as u32)
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
