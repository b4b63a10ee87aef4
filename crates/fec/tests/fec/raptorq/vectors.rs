//! Equality with the vectors in `tests/data/vectors_raptorq.txt`, byte by byte.

use crate::block::{Block, execute, solve_at_last, symbol};
use fontana_fec::codes::raptorq::RaptorQ;
use fontana_fec::{Esi, FecScheme, ObjectLayout, Oti, PlanCache, Sbn};

const VECTORS: &str = include_str!("../../data/vectors_raptorq.txt");

fn unhex(text: &str) -> Vec<u8> {
    let digit = |c: u8| (c as char).to_digit(16).unwrap() as u8;
    text.as_bytes().as_chunks().0.iter().map(|&[a, b]| digit(a) << 4 | digit(b)).collect()
}

/// Lines of the vectors as words, without comments.
fn lines() -> impl Iterator<Item = Vec<&'static str>> {
    VECTORS
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split_whitespace().collect())
}

#[test]
fn blocks_encode_to_the_published_symbols() {
    let mut encoder = None;
    let mut checked = 0;
    for words in lines() {
        match *words.as_slice() {
            ["BLOCK", "ctr", width, k, _] => {
                let (width, k): (usize, usize) = (width.parse().unwrap(), k.parse().unwrap());
                let block = Block::new((0..width * k).map(|i| i as u8).collect(), width);
                encoder = Some(block.encoder());
            }
            ["R", esi, bytes] => {
                let esi = Esi(esi.parse().unwrap());
                assert_eq!(symbol(encoder.as_ref().unwrap(), esi), unhex(bytes), "{esi:?}");
                checked += 1;
            }
            _ => {}
        }
    }
    assert_eq!(checked, 81);
}

/// The source symbols of block `sbn` of the object, by the layout.
fn cut(layout: &ObjectLayout, sbn: Sbn, object: &[u8]) -> Block {
    let width = usize::from(layout.oti().symbol_size);
    let k = layout.source_symbols(sbn).unwrap();
    let mut bytes = vec![0; k as usize * width];
    for (esi, symbol) in (0..k).map(Esi).zip(bytes.chunks_exact_mut(width)) {
        for piece in layout.symbol_pieces(sbn, esi) {
            let from = &object[piece.in_object.start as usize..piece.in_object.end as usize];
            symbol[piece.in_symbol.start..][..from.len()].copy_from_slice(from);
        }
    }
    Block::new(bytes, width)
}

#[test]
fn objects_with_sub_blocks_encode_to_the_published_symbols() {
    let mut object: Option<(ObjectLayout, Vec<u8>)> = None;
    let mut checked = 0;
    for words in lines() {
        match *words.as_slice() {
            ["OBJ", f, t, z, n, al, _] => {
                let number = |word: &str| word.split('=').nth(1).unwrap().parse::<u64>().unwrap();
                let scheme = FecScheme::RaptorQ(RaptorQ {
                    source_blocks: number(z) as u8,
                    sub_blocks: number(n) as u16,
                    alignment: number(al) as u8,
                });
                let (transfer_length, symbol_size) = (number(f), number(t) as u16);
                let layout = Oti { transfer_length, symbol_size, scheme }.layout().unwrap();
                let byte = |i: u64| (i * i + 7 * i + (i >> 8)) as u8;
                object = Some((layout, (0..transfer_length).map(byte).collect()));
            }
            ["P", sbn, esi, bytes] => {
                let (layout, bytes_of_object) = object.as_ref().unwrap();
                let (sbn, esi) = (Sbn(sbn.parse().unwrap()), Esi(esi.parse().unwrap()));
                let block = cut(layout, sbn, bytes_of_object);
                if esi.0 < block.k {
                    assert_eq!(block.symbol(esi), unhex(bytes), "{sbn:?} {esi:?}");
                }
                assert_eq!(symbol(&block.encoder(), esi), unhex(bytes), "{sbn:?} {esi:?}");
                checked += 1;
            }
            _ => {}
        }
    }
    assert_eq!(checked, 122);
}

#[test]
fn published_repair_symbols_alone_decode_to_the_block() {
    // Of 15 and 1 source symbols: the padding symbols count as received.
    let width = 16;
    let block = Block::new((0..width).map(|i| i as u8).collect(), width);
    for words in
        lines().skip_while(|words| !words.starts_with(&["BLOCK", "ctr", "16", "1"])).skip(1)
    {
        let ["R", esi, bytes] = *words.as_slice() else { break };
        let esi = Esi(esi.parse().unwrap());
        let plan = solve_at_last(1, [esi]);
        assert_eq!(plan.inputs(), [esi]);
        assert_eq!(plan.lost(), [Esi(0)]);
        block.assert_recovered(&execute(&plan, width, |_, out| out.copy_from_slice(&unhex(bytes))));
    }
}

/// The systematic indices are chosen so that a block's own source symbols always determine its
/// intermediate symbols (RFC 6330, section 5.6). The program relies on it; this test tries each of
/// the 477 sizes.
#[test]
fn every_size_of_the_table_encodes_systematically() {
    let table = include_str!("../../data/rfc6330_systematic.csv");
    let mut sizes = 0;
    for line in table.lines().skip(1) {
        let k_prime: u32 = line.split(',').next().unwrap().parse().unwrap();
        let plan = PlanCache::new(1).source_plan(crate::block::RAPTORQ, k_prime).unwrap();
        // One byte per symbol suffices, at both ends of the table and for all small sizes.
        if k_prime <= 600 || k_prime == 56_403 {
            let block = Block::random(k_prime, 1, k_prime.into());
            let encoder = execute(&plan, 1, |esi, out| out.copy_from_slice(block.symbol(esi)));
            block.assert_recovered(&encoder);
        }
        sizes += 1;
    }
    assert_eq!(sizes, 477);
}
