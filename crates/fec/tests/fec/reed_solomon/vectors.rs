//! Repair symbols of other implementations.

use crate::block::{execute, symbol};
use crate::reed_solomon::reference::product;
use crate::reed_solomon::{scheme, with_limits};
use fontana_fec::Esi;
use fontana_fec::codes::reed_solomon::ReedSolomonCode;

const VECTORS: &str = include_str!("../../data/rfc5510_vectors.txt");

fn hex(text: &str) -> Vec<u8> {
    let digits = |i: usize| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap();
    (0..text.len() / 2).map(digits).collect()
}

#[test]
fn repair_symbols_are_those_of_deployed_codecs() {
    let (mut shape, mut compared) = ((0, 0), 0);
    for line in VECTORS.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        match *words.as_slice() {
            ["CODEC", "rs8", _, k, _, length, ..] => {
                let number = |word: &str| word.split_once('=').unwrap().1.parse().unwrap();
                shape = (number(k), number(length));
            }
            ["E", index, expected] => {
                let (k, length) = shape;
                let byte = |i: usize| (i * i + 7 * i + (i >> 8)) as u8;
                for code in [ReedSolomonCode::Rfc5510, ReedSolomonCode::SmallBlock] {
                    let plan = scheme(code).source_plan(k as u32).unwrap();
                    let encoder = execute(&plan, length, |esi, out| {
                        let from = esi.0 as usize * length;
                        out.iter_mut().zip(from..).for_each(|(out, i)| *out = byte(i));
                    });
                    let esi = Esi(k as u32 + index.parse::<u32>().unwrap());
                    assert_eq!(symbol(&encoder, esi), hex(expected), "k = {k}, {esi:?}");
                    compared += 1;
                }
            }
            _ => assert!(line.starts_with('#'), "{line}"),
        }
    }
    assert_eq!(compared, 2 * 29);
}

/// A Cauchy block of 4 symbols with `c_y = y + 1`: computed by hand from `1 / (x + y)`, so that the
/// code does not change.
#[test]
fn cauchy_symbols_do_not_change() {
    let code = with_limits(ReedSolomonCode::Cauchy, 4, 8);
    let plan = code.source_plan(4).unwrap();
    let encoder = execute(&plan, 1, |esi, out| out[0] = esi.0 as u8 + 1);
    let inverse = |a: u8| (1..=255).find(|&b| product(a, b) == 1).unwrap();
    for x in 4..8 {
        let sum = (0..4).fold(0, |sum, y| sum ^ product(inverse(x ^ y), y + 1));
        assert_eq!(symbol(&encoder, Esi(x.into())), [sum], "{x}");
    }
}
