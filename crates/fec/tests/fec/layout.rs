//! The geometry of objects, against the formulas of the RFCs.

use fontana_fec::codes::no_code::NoCode;
use fontana_fec::codes::raptorq::RaptorQ;
use fontana_fec::codes::reed_solomon::{ReedSolomon, ReedSolomonCode};
use fontana_fec::{Esi, FecScheme, ObjectLayout, Oti, OtiError, Sbn, SymbolPiece};
use proptest::prelude::*;

fn no_code(transfer_length: u64, symbol_size: u16, max_source_block_length: u32) -> Oti {
    Oti {
        transfer_length,
        symbol_size,
        scheme: FecScheme::NoCode(NoCode { max_source_block_length }),
    }
}

fn raptorq(transfer_length: u64, symbol_size: u16, (z, n, al): (u8, u16, u8)) -> Oti {
    let scheme = FecScheme::RaptorQ(RaptorQ { source_blocks: z, sub_blocks: n, alignment: al });
    Oti { transfer_length, symbol_size, scheme }
}

fn reed_solomon(transfer_length: u64, symbol_size: u16, b: u16, max_n: u16) -> Oti {
    let scheme = FecScheme::ReedSolomon(ReedSolomon {
        code: ReedSolomonCode::Rfc5510,
        max_source_block_length: b,
        max_encoding_symbols: max_n,
    });
    Oti { transfer_length, symbol_size, scheme }
}

/// Lengths of the source blocks.
fn lengths(layout: &ObjectLayout) -> Vec<u32> {
    (0..layout.block_count()).map(|sbn| layout.source_symbols(Sbn(sbn)).unwrap()).collect()
}

#[test]
fn blocks_are_those_of_rfc_5052() {
    // T = 11 symbols in N = 3 blocks of at most 4: A_large = 4, A_small = 3, I = 2.
    let layout = no_code(105, 10, 4).layout().unwrap();
    assert_eq!(lengths(&layout), [4, 4, 3]);
    assert_eq!(layout.block_range(Sbn(0)), Some(0..40));
    assert_eq!(layout.block_range(Sbn(1)), Some(40..80));
    assert_eq!(layout.block_range(Sbn(2)), Some(80..105));
    assert_eq!(layout.block_range(Sbn(3)), None);
    assert_eq!(layout.source_symbols(Sbn(3)), None);
    assert_eq!((layout.total_source_symbols(), layout.max_source_symbols()), (11, 4));
    // The last symbol is 105 - 100 bytes long.
    let pieces: Vec<_> = layout.symbol_pieces(Sbn(2), Esi(2)).collect();
    assert_eq!(pieces, [SymbolPiece { in_object: 100..105, in_symbol: 0..10 }]);
    assert_eq!(layout.symbol_pieces(Sbn(2), Esi(3)).count(), 0);
    assert_eq!(layout.symbol_pieces(Sbn(3), Esi(0)).count(), 0);
}

#[test]
fn sub_blocks_are_those_of_rfc_6330() {
    // Kt = 7 symbols of 20 bytes in Z = 2 blocks: 4 and 3. T/Al = 5 units in N = 2 sub-blocks: 3
    // and 2 units, 12 and 8 bytes.
    let layout = raptorq(140, 20, (2, 2, 4)).layout().unwrap();
    assert_eq!(lengths(&layout), [4, 3]);
    let pieces: Vec<_> = layout.symbol_pieces(Sbn(1), Esi(2)).collect();
    let start = 80;
    assert_eq!(
        pieces,
        [
            SymbolPiece { in_object: start + 24..start + 36, in_symbol: 0..12 },
            SymbolPiece { in_object: start + 36 + 16..start + 36 + 24, in_symbol: 12..20 },
        ]
    );
}

#[test]
fn pieces_beyond_the_end_of_the_object_are_left_out() {
    // One block of 2 symbols of 8 bytes in 2 sub-blocks of 4; the object ends in the second
    // symbol's first sub-symbol... of the second sub-block.
    let layout = raptorq(9, 8, (1, 2, 4)).layout().unwrap();
    let pieces = |esi| layout.symbol_pieces(Sbn(0), Esi(esi)).collect::<Vec<_>>();
    let piece = |in_object, in_symbol| SymbolPiece { in_object, in_symbol };
    assert_eq!(pieces(0), [piece(0..4, 0..4), piece(8..9, 4..8)]);
    assert_eq!(pieces(1), [piece(4..8, 0..4)]);
}

#[test]
fn an_empty_object_has_no_blocks() {
    for oti in [no_code(0, 1400, 64), raptorq(0, 1400, (1, 1, 4)), raptorq(0, 1400, (255, 1, 4))] {
        let layout = oti.layout().unwrap();
        assert_eq!((layout.block_count(), layout.total_source_symbols()), (0, 0));
        assert_eq!(layout.max_source_symbols(), 0);
        assert_eq!(layout.source_symbols(Sbn(0)), None);
        assert_eq!(layout.block_range(Sbn(0)), None);
        assert!(!layout.contains(Sbn(0), Esi(0)));
    }
}

#[test]
fn ids_beyond_the_code_are_refused() {
    let layout = no_code(100, 10, 10).layout().unwrap();
    assert!(layout.contains(Sbn(0), Esi(9)) && !layout.contains(Sbn(0), Esi(10)));
    assert!(!layout.contains(Sbn(1), Esi(0)));
    let layout = raptorq(100, 10, (2, 1, 1)).layout().unwrap();
    assert!(layout.contains(Sbn(1), Esi((1 << 24) - 1)));
    assert!(!layout.contains(Sbn(1), Esi(1 << 24)));
    assert!(!layout.contains(Sbn(2), Esi(0)));
    let layout = reed_solomon(100, 10, 5, 12).layout().unwrap();
    assert!(layout.contains(Sbn(1), Esi(11)) && !layout.contains(Sbn(1), Esi(12)));
    assert!(!layout.contains(Sbn(2), Esi(0)));
}

#[test]
fn impossible_parameters_are_refused_with_the_reason() {
    let zero = OtiError::Zero;
    let cases = [
        (no_code(1, 0, 1), OtiError::SymbolSize),
        (raptorq(1, 0, (1, 1, 1)), OtiError::SymbolSize),
        (no_code(1, 1, 0), zero("the maximum source block length")),
        (raptorq(1, 4, (0, 1, 4)), zero("the number of source blocks")),
        (raptorq(1, 4, (1, 0, 4)), zero("the number of sub-blocks")),
        (raptorq(1, 4, (1, 1, 0)), zero("the symbol alignment")),
        (
            raptorq(1, 6, (1, 1, 4)),
            OtiError::Alignment { symbol_size: 6, sub_blocks: 1, alignment: 4 },
        ),
        (
            raptorq(1, 8, (1, 3, 4)),
            OtiError::Alignment { symbol_size: 8, sub_blocks: 3, alignment: 4 },
        ),
        (reed_solomon(1, 0, 1, 1), OtiError::SymbolSize),
        (reed_solomon(1, 1, 0, 1), zero("the maximum source block length")),
        (reed_solomon(1, 1, 20, 256), OtiError::EncodingSymbols { actual: 256, limit: 255 }),
        (reed_solomon(1, 1, 21, 20), OtiError::BlockLength { actual: 21, limit: 20 }),
        (
            reed_solomon((1 << 24) * 20 + 1, 1, 20, 20),
            OtiError::BlockCount { actual: (1 << 24) + 1, limit: 1 << 24 },
        ),
        (
            reed_solomon(1 << 48, u16::MAX, 255, 255),
            OtiError::TransferLength { actual: 1 << 48, limit: (1 << 48) - 1 },
        ),
        (raptorq(2, 1, (3, 1, 1)), OtiError::BlockCount { actual: 3, limit: 2 }),
        (raptorq(56_404, 1, (1, 1, 1)), OtiError::BlockLength { actual: 56_404, limit: 56_403 }),
        (no_code(65_537, 1, u32::MAX), OtiError::BlockLength { actual: 65_537, limit: 65_536 }),
        (no_code(65_537, 1, 1), OtiError::BlockCount { actual: 65_537, limit: 65_536 }),
        (
            raptorq(946_270_874_881, u16::MAX, (255, 1, 1)),
            OtiError::TransferLength { actual: 946_270_874_881, limit: 946_270_874_880 },
        ),
        (
            no_code(1 << 48, u16::MAX, 65_536),
            OtiError::TransferLength { actual: 1 << 48, limit: (1 << 48) - 1 },
        ),
    ];
    for (oti, error) in cases {
        assert_eq!(oti.layout(), Err(error), "{oti:?}");
    }
}

#[test]
fn the_largest_parameters_are_accepted() {
    for oti in [
        raptorq(56_403, 1, (1, 1, 1)),
        raptorq(56_403 * 255 * 65_535, 65_535, (255, 1, 1)),
        raptorq(8, 8, (1, 2, 4)),
        no_code(65_536, 1, u32::MAX),
        no_code(65_536, 1, 1),
        no_code(65_536 * 65_535, 65_535, 1),
        reed_solomon((1 << 24) * 255, 1, 255, 255),
        reed_solomon((1 << 24) * 255 * 65_535, u16::MAX, 255, 255),
    ] {
        assert!(oti.layout().is_ok(), "{oti:?}");
    }
}

fn any_oti() -> impl Strategy<Value = Oti> {
    let no_code = (0..3000_u64, 1..50_u16, 1..50_u32).prop_map(|(f, t, b)| no_code(f, t, b));
    let raptorq = (0..3000_u64, 1..12_u16, 1..9_u8, 1..9_u8, 1..9_u16)
        .prop_map(|(f, units, al, z, n)| raptorq(f, units * u16::from(al), (z, n, al)));
    let reed_solomon = (0..3000_u64, 1..50_u16, 1..256_u16, 0..256_u16)
        .prop_map(|(f, t, b, spare)| reed_solomon(f, t, b, (b + spare).min(255)));
    prop_oneof![no_code, raptorq, reed_solomon]
}

proptest! {
    /// Every byte of the object is in exactly one piece of one source symbol of its block.
    #[test]
    fn pieces_tile_the_object(oti in any_oti()) {
        let Ok(layout) = oti.layout() else { return Ok(()) };
        let mut covered = vec![0; oti.transfer_length as usize];
        let mut symbols = 0;
        for sbn in (0..layout.block_count()).map(Sbn) {
            let block = layout.block_range(sbn).unwrap();
            for esi in (0..layout.source_symbols(sbn).unwrap()).map(Esi) {
                symbols += 1;
                let mut at = 0;
                for SymbolPiece { in_object, in_symbol } in layout.symbol_pieces(sbn, esi) {
                    prop_assert!(in_symbol.start >= at && in_symbol.end <= usize::from(oti.symbol_size));
                    at = in_symbol.end;
                    prop_assert!(!in_object.is_empty());
                    prop_assert!(in_object.start >= block.start && in_object.end <= block.end);
                    let length = (in_object.end - in_object.start) as usize;
                    prop_assert!(length == in_symbol.len() || in_object.end == oti.transfer_length);
                    in_object.for_each(|byte| covered[byte as usize] += 1);
                }
            }
        }
        prop_assert_eq!(symbols, layout.total_source_symbols());
        prop_assert!(covered.iter().all(|&times| times == 1));
    }

    /// Blocks differ by at most one symbol, the long ones first, and lie one after the other.
    #[test]
    fn blocks_partition_the_object(oti in any_oti()) {
        let Ok(layout) = oti.layout() else { return Ok(()) };
        let lengths = lengths(&layout);
        prop_assert!(lengths.is_sorted_by(|a, b| a >= b));
        if let (Some(first), Some(last)) = (lengths.first(), lengths.last()) {
            prop_assert!(first - last <= 1);
            prop_assert_eq!(*first, layout.max_source_symbols());
        }
        let mut end = 0;
        for sbn in (0..layout.block_count()).map(Sbn) {
            let range = layout.block_range(sbn).unwrap();
            prop_assert_eq!(range.start, end);
            end = range.end;
        }
        prop_assert_eq!(end, oti.transfer_length);
    }

    /// Any parameters of a packet give an answer, not a panic.
    #[test]
    fn hostile_parameters_are_answered(
        f in prop_oneof![any::<u64>(), 0..1_u64 << 48, 0..1000_u64],
        t: u16, z: u8, n: u16, al: u8, b: u32, sbn: u32, esi: u32,
    ) {
        for oti in [no_code(f, t, b), raptorq(f, t, (z, n, al)), reed_solomon(f, t, n, b as u16)] {
            let Ok(layout) = oti.layout() else { continue };
            let (sbn, esi) = (Sbn(sbn % (layout.block_count() + 2)), Esi(esi % (1 << 17)));
            let k = layout.source_symbols(sbn);
            prop_assert_eq!(layout.block_range(sbn).is_some(), k.is_some());
            let first = layout.symbol_pieces(sbn, esi).next();
            prop_assert!(first.is_none() || k.is_some_and(|k| esi.0 < k));
            if let Some(piece) = layout.symbol_pieces(sbn, esi).last() {
                prop_assert!(piece.in_object.end <= f);
            }
        }
    }
}
