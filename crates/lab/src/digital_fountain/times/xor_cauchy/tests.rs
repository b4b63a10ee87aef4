//! The code of exclusive ors.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use super::{XorCauchy, XorCauchyError};
use fontana_proto::SplitMix64;

/// Repair symbols and the ones of their matrices, computed by a slow program written for that
/// purpose.
const VECTORS: &str = include_str!("vectors.txt");

#[test]
fn repair_symbols_and_their_cost_are_those_of_the_vectors() {
    let (mut shape, mut compared) = ((0, 0, 0), 0);
    for line in VECTORS.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        match *words.as_slice() {
            ["CASE", k, l, length] => {
                let number = |word: &str| word.split_once('=').unwrap().1.parse().unwrap();
                shape = (number(k), number(l), number(length));
            }
            ["xor", index, expected, ones] => {
                let (k, l, width) = shape;
                let byte = |i: usize| (i * i + 7 * i + (i >> 8)) as u8;
                let source: Vec<u8> = (0..k * width).map(byte).collect();
                let mut repair = vec![0xAA; l * width];
                let code = XorCauchy::new(k as u32, l as u32, 8).unwrap();
                code.encode(&source, width, &mut repair).unwrap();
                let index: usize = index.parse().unwrap();
                let hex: String = repair[index * width..][..width]
                    .iter()
                    .map(|byte| format!("{byte:02x}"))
                    .collect();
                assert_eq!(hex, expected, "k = {k}, symbol {index}");
                // The vectors tell the ones of a row of elements, which is a symbol's.
                let ones: u64 = ones.split_once('=').unwrap().1.parse().unwrap();
                assert_eq!(code.encoding_xors(), l as u64 * ones, "k = {k}");
                compared += 1;
            }
            _ => assert!(line.starts_with('#'), "{line}"),
        }
    }
    assert_eq!(compared, 6);
}

#[test]
fn any_repair_symbols_stand_in_for_any_lost_ones() {
    let mut random = SplitMix64::new(3, 0);
    for bits in 2..=16 {
        let n = (1_u32 << bits).min(40);
        let (k, width) = (n / 2, 3 * bits as usize);
        let code = XorCauchy::new(k, n - k, bits).unwrap();
        let source: Vec<u8> = (0..k as usize * width).map(|_| random.next_u64() as u8).collect();
        let mut repair = vec![0; (n - k) as usize * width];
        code.encode(&source, width, &mut repair).unwrap();
        for _ in 0..10 {
            let mut lost: Vec<u32> = (0..k).filter(|_| random.below(2) == 0).collect();
            let mut stand_ins: Vec<u32> = (k..n).filter(|_| random.below(2) == 0).collect();
            let count = lost.len().min(stand_ins.len());
            lost.truncate(count);
            stand_ins.truncate(count);
            let mut at_hand = source.clone();
            for (&lost, &esi) in lost.iter().zip(&stand_ins) {
                let from = (esi - k) as usize * width;
                at_hand[lost as usize * width..][..width]
                    .copy_from_slice(&repair[from..from + width]);
            }
            let product = code.recovery(&lost, &stand_ins).unwrap();
            let mut recovered = vec![0xAA; count * width];
            product.run(&at_hand, width, &mut recovered).unwrap();
            for (&lost, recovered) in lost.iter().zip(recovered.chunks(width)) {
                assert_eq!(recovered, &source[lost as usize * width..][..width], "{bits} bits");
            }
            assert!(product.xors() >= (count * k as usize * bits as usize) as u64);
        }
    }
}

/// Digital Fountain paper, section IV: k (n - k) A / 2 with symbols of A = 16 bits. The elements of
/// a Cauchy matrix are not quite random.
#[test]
fn an_element_costs_half_of_its_bits_in_symbols() {
    let code = XorCauchy::new(500, 500, 16).unwrap();
    let symbols = code.encoding_xors() as f64 / 16.0;
    let expected = 500.0 * 500.0 * 8.0;
    assert!((symbols / expected - 1.0).abs() < 0.02, "{symbols} instead of {expected}");
}

#[test]
fn what_does_not_fit_is_refused() {
    assert!(XorCauchy::new(128, 128, 8).is_ok());
    let field = |symbols, bits| Some(XorCauchyError::Field { symbols, bits });
    assert_eq!(XorCauchy::new(128, 129, 8).err(), field(257, 8));
    assert_eq!(XorCauchy::new(1, 1, 1).err(), field(2, 1));
    assert_eq!(XorCauchy::new(u32::MAX, 1, 16).err(), field(1 << 32, 16));
    let code = XorCauchy::new(4, 4, 8).unwrap();
    for (lost, repair) in [
        (&[0][..], &[][..]),
        (&[4], &[4]),
        (&[0], &[3]),
        (&[0], &[8]),
        (&[1, 0], &[4, 5]),
        (&[0, 1], &[4, 4]),
    ] {
        assert!(code.recovery(lost, repair).is_err(), "{lost:?} {repair:?}");
    }
    let product = code.recovery(&[0], &[4]).unwrap();
    for (inputs, width, outputs) in [(32, 8, 7), (31, 8, 8), (36, 9, 9), (0, 0, 0)] {
        let refused = product.run(&vec![0; inputs], width, &mut vec![0; outputs]);
        assert!(matches!(refused, Err(XorCauchyError::Size { .. })), "{inputs} {width} {outputs}");
    }
}
