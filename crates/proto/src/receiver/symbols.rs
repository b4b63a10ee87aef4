//! The symbols of a packet's payload: one, or a run of consecutive symbols of a block (RFC 5053,
//! section 5.3.2; RFC 6330, section 4.4.2).

use fontana_fec::{Esi, ObjectLayout, Sbn, SymbolPiece};
use std::ops::Range;

/// Whether a symbol of `bytes` bytes can be `esi` of `sbn`: a whole symbol, or a source symbol at
/// the end of the object without its padding (RFC 5445, section 3.2.1; RFC 6330, section 4.4.2).
pub(super) fn symbol_fits(layout: &ObjectLayout, sbn: Sbn, esi: Esi, bytes: usize) -> bool {
    if !layout.contains(sbn, esi) {
        return false;
    }
    if bytes == usize::from(layout.oti().symbol_size) {
        return true;
    }
    // The object ends in its last pieces, of the last sub-blocks: the bytes of a symbol that are in
    // the object are followed by all of its padding.
    let in_object = |p: SymbolPiece| p.in_object.end.saturating_sub(p.in_object.start) as usize;
    bytes > 0 && layout.symbol_pieces(sbn, esi).map(in_object).sum::<usize>() == bytes
}

/// Whether a payload of `bytes` bytes can be symbols of an object: one, or several from `esi` on.
pub(super) fn payload_fits(layout: &ObjectLayout, sbn: Sbn, esi: Esi, bytes: usize) -> bool {
    symbol_fits(layout, sbn, esi, bytes) || SymbolRun::new(layout, sbn, esi, bytes).is_some()
}

/// Most symbols of a packet that a receiver takes: it bounds the work for a packet. RFC 5053 and
/// RFC 6330 recommend at most 10 (sections 6.2 and 4.3).
const MAX_SYMBOLS: usize = 256;

/// Several symbols in one payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SymbolRun {
    first: Esi,
    /// Bytes of a symbol. The last one may be shorter.
    symbol_size: usize,
    /// Bytes of all.
    bytes: usize,
}

impl SymbolRun {
    /// The symbols from `first` on of block `sbn` in a payload of `bytes` bytes. `None` if the
    /// payload does not consist of two to [`MAX_SYMBOLS`] symbols of the block.
    pub(super) fn new(layout: &ObjectLayout, sbn: Sbn, first: Esi, bytes: usize) -> Option<Self> {
        let symbol_size = usize::from(layout.oti().symbol_size);
        let count = bytes.div_ceil(symbol_size);
        if !(2..=MAX_SYMBOLS).contains(&count) {
            return None;
        }
        let before_last = count.saturating_sub(1);
        let last = Esi(first.0.checked_add(before_last as u32)?);
        // If the block has the last one, it has those before.
        let run = Self { first, symbol_size, bytes };
        let rest = bytes.saturating_sub(before_last.saturating_mul(symbol_size));
        symbol_fits(layout, sbn, last, rest).then_some(run)
    }

    /// The symbols, and their places in the payload.
    pub(super) fn symbols(self) -> impl Iterator<Item = (Esi, Range<usize>)> {
        let Self { first, symbol_size, bytes } = self;
        let starts = (0..bytes).step_by(symbol_size);
        let ends = move |at: usize| bytes.min(at.saturating_add(symbol_size));
        // The run has its last symbol, so that none of these is above it.
        let esis = (0_u32..).map(move |at| Esi(first.0.saturating_add(at)));
        esis.zip(starts.map(move |at| at..ends(at)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fontana_fec::codes::no_code::NoCode;
    use fontana_fec::codes::raptor::Raptor;
    use fontana_fec::{FecScheme, Oti};

    fn layout(transfer_length: u64, scheme: FecScheme) -> ObjectLayout {
        Oti { transfer_length, symbol_size: 10, scheme }.layout().unwrap()
    }

    /// 20 source symbols, the last one of 3 bytes.
    fn raptor() -> ObjectLayout {
        let code = Raptor { source_blocks: 1, sub_blocks: 1, alignment: 1 };
        layout(193, FecScheme::Raptor(code))
    }

    fn run(layout: &ObjectLayout, esi: u32, bytes: usize) -> Option<Vec<(u32, Range<usize>)>> {
        let run = SymbolRun::new(layout, Sbn(0), Esi(esi), bytes)?;
        Some(run.symbols().map(|(esi, range)| (esi.0, range)).collect())
    }

    #[test]
    fn a_payload_is_a_run_of_symbols_from_the_esi_on() {
        assert_eq!(run(&raptor(), 5, 20), Some(vec![(5, 0..10), (6, 10..20)]));
        // From source to repair symbols.
        assert_eq!(run(&raptor(), 19, 30), Some(vec![(19, 0..10), (20, 10..20), (21, 20..30)]));
        let last = run(&raptor(), 65_534, 20).unwrap();
        assert_eq!(last, [(65_534, 0..10), (65_535, 10..20)]);
    }

    #[test]
    fn the_last_source_symbol_of_the_object_may_lack_its_padding() {
        assert_eq!(run(&raptor(), 18, 13), Some(vec![(18, 0..10), (19, 10..13)]));
        assert_eq!(run(&raptor(), 18, 12), None);
        assert_eq!(run(&raptor(), 17, 13), None);
        assert_eq!(run(&raptor(), 19, 13), None);
    }

    /// 20 source symbols of two sub-blocks of 6 and 4 bytes each, and an object that lacks 7 bytes
    /// of the second one: the last symbol has none of it, and the one before lacks 3 bytes.
    #[test]
    fn symbols_of_sub_blocks_may_lack_their_padding() {
        let code = Raptor { source_blocks: 1, sub_blocks: 2, alignment: 2 };
        let layout = layout(193, FecScheme::Raptor(code));
        let fits = |esi, bytes| symbol_fits(&layout, Sbn(0), Esi(esi), bytes);
        for (esi, bytes) in [(17, 10), (18, 7), (18, 10), (19, 6), (19, 10), (20, 10)] {
            assert!(fits(esi, bytes), "{esi}, {bytes} bytes");
        }
        for (esi, bytes) in [(17, 7), (18, 6), (18, 8), (19, 3), (19, 7), (20, 6), (20, 0)] {
            assert!(!fits(esi, bytes), "{esi}, {bytes} bytes");
        }
    }

    #[test]
    fn payloads_that_are_no_run_of_the_block_are_refused() {
        for (esi, bytes) in [(0, 0), (0, 10), (0, 15), (65_535, 20), (u32::MAX, 20)] {
            assert_eq!(run(&raptor(), esi, bytes), None, "{esi}, {bytes} bytes");
        }
        assert_eq!(SymbolRun::new(&raptor(), Sbn(1), Esi(0), 20), None);
        // Without repair symbols, a run ends with the block.
        let no_code = layout(193, FecScheme::NoCode(NoCode { max_source_block_length: 10 }));
        assert!(run(&no_code, 8, 20).is_some());
        assert_eq!(run(&no_code, 9, 20), None);
    }

    #[test]
    fn the_number_of_symbols_is_bounded() {
        assert_eq!(run(&raptor(), 20, 2_560).map(|run| run.len()), Some(256));
        assert_eq!(run(&raptor(), 20, 2_570), None);
    }
}
