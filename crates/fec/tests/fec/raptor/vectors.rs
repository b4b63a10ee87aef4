//! Equality with the vectors in `tests/data/vectors_raptor10.txt`, and with the source symbols of
//! any block.

use crate::block::{Block, execute, symbol};
use crate::raptor::RAPTOR;
use fontana_fec::{Esi, Progress, Work};

fn unhex(text: &str) -> Vec<u8> {
    let digit = |c: u8| (c as char).to_digit(16).unwrap() as u8;
    text.as_bytes().as_chunks().0.iter().map(|&[a, b]| digit(a) << 4 | digit(b)).collect()
}

/// A published block.
struct Published {
    block: Block,
    /// Some of its encoding symbols.
    symbols: Vec<(Esi, Vec<u8>)>,
}

fn blocks() -> Vec<Published> {
    let mut blocks: Vec<Published> = Vec::new();
    for line in include_str!("../../data/vectors_raptor10.txt").lines() {
        match *line.split(' ').collect::<Vec<_>>().as_slice() {
            ["BLOCK", k, width] => {
                let number = |word: &str| word[2..].parse::<usize>().unwrap();
                let (k, width) = (number(k), number(width));
                let byte = |i: usize| (i * i + 7 * i + (i >> 8)) as u8;
                let block = Block::new((0..k * width).map(byte).collect(), width);
                blocks.push(Published { block, symbols: Vec::new() });
            }
            ["R", esi, bytes] => {
                let symbols = &mut blocks.last_mut().unwrap().symbols;
                symbols.push((Esi(esi.parse().unwrap()), unhex(bytes)));
            }
            _ => {}
        }
    }
    blocks
}

#[test]
fn blocks_encode_to_the_published_symbols() {
    let mut checked = 0;
    for Published { block, symbols } in blocks() {
        let encoder = block.encoder_of(RAPTOR);
        block.assert_recovered(&encoder);
        for (esi, bytes) in symbols {
            assert_eq!(symbol(&encoder, esi), bytes, "K = {}, {esi:?}", block.k);
            checked += 1;
        }
    }
    assert_eq!(checked, 96);
}

/// The published repair symbols replace as many source symbols, or as many as they determine.
#[test]
fn published_repair_symbols_decode_to_the_block() {
    for Published { block, symbols } in blocks() {
        let published = |esi: Esi| symbols.iter().find(|&&(of, _)| of == esi);
        let repair = symbols.iter().map(|&(esi, _)| esi).filter(|esi| esi.0 >= block.k);
        let lost = repair.clone().count() as u32 - 8;
        let mut decoder = RAPTOR.decoder(block.k).unwrap();
        for esi in (lost..block.k).map(Esi).chain(repair) {
            decoder.push(esi).unwrap();
        }
        let Progress::Solved(plan) = decoder.solve(Work::UNBOUNDED) else {
            panic!("K = {}: 8 symbols more than needed", block.k)
        };
        assert_eq!(plan.lost(), (0..lost.min(block.k)).map(Esi).collect::<Vec<_>>());
        let load = |esi: Esi, out: &mut [u8]| {
            let bytes = published(esi).map_or_else(|| block.symbol(esi), |(_, bytes)| bytes);
            out.copy_from_slice(bytes);
        };
        block.assert_recovered(&execute(&plan, block.width, load));
    }
}

/// The systematic indices are chosen so that a block's own source symbols always determine its
/// intermediate symbols (RFC 5053, section 5.7). The program relies on it.
#[test]
fn blocks_of_many_lengths_encode_systematically() {
    let lengths = (1..200).chain((200..8_192).step_by(113)).chain([8_191, 8_192]);
    for k in lengths {
        let block = Block::random(k, 1, k.into());
        block.assert_recovered(&block.encoder_of(RAPTOR));
    }
}

/// As above, for each of the 8 189 lengths.
#[test]
#[ignore = "takes minutes"]
fn blocks_of_all_lengths_encode_systematically() {
    for k in 4..=8_192 {
        let block = Block::random(k, 1, k.into());
        block.assert_recovered(&block.encoder_of(RAPTOR));
    }
}
