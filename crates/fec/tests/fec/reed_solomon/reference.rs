//! A slow decoder: the generator matrix, which the encoder gives for unit vectors, and Gauss-Jordan
//! elimination on the rows that arrived.

use crate::block::{Block, Random, execute, symbol};
use crate::reed_solomon::{CODES, scheme};
use fontana_fec::{Esi, FecScheme, Intermediate, Progress};
use std::sync::LazyLock;

static INVERSE: LazyLock<[u8; 256]> = LazyLock::new(|| {
    std::array::from_fn(|a| (1..=255).find(|&b| product(a as u8, b) == 1).unwrap_or(0))
});

/// Polynomials over GF(2), modulo x^8 + x^4 + x^3 + x^2 + 1.
pub(crate) fn product(a: u8, b: u8) -> u8 {
    (0..8).rev().fold(0, |sum, bit| {
        let doubled = (sum << 1) ^ if sum & 0x80 != 0 { 0x1D } else { 0 };
        doubled ^ if b >> bit & 1 == 1 { a } else { 0 }
    })
}

/// Row `esi` of the generator matrix: column `j` of the symbol if source symbol `j` is the unit
/// vector.
pub(crate) fn generator(scheme: FecScheme, k: u32) -> Intermediate {
    let plan = scheme.source_plan(k).unwrap();
    execute(&plan, k as usize, |esi, out| out[esi.0 as usize] = 1)
}

/// The source symbols, one after another, from equations `(factors, symbol)`; `None` if the
/// equations do not determine them.
pub(crate) fn solve(mut equations: Vec<(Vec<u8>, Vec<u8>)>, k: usize) -> Option<Vec<u8>> {
    for column in 0..k {
        let pivot = (column..equations.len()).find(|&row| equations[row].0[column] != 0)?;
        equations.swap(column, pivot);
        let scale = INVERSE[equations[column].0[column] as usize];
        let (factors, symbol) = &mut equations[column];
        factors.iter_mut().chain(symbol).for_each(|byte| *byte = product(*byte, scale));
        let (factors, symbol) = equations[column].clone();
        for (row, (other, other_symbol)) in equations.iter_mut().enumerate() {
            let factor = other[column];
            if row != column && factor != 0 {
                let from = factors.iter().chain(&symbol);
                let to = other.iter_mut().chain(other_symbol);
                to.zip(from).for_each(|(to, &from)| *to ^= product(factor, from));
            }
        }
    }
    Some(equations.into_iter().take(k).flat_map(|(_, symbol)| symbol).collect())
}

#[test]
fn any_bytes_give_the_solution_of_elimination() {
    const WIDTH: usize = 3;
    let mut random = Random(5);
    for round in 0..60 {
        let code = CODES[round % CODES.len()];
        let k = random.below(40) + 1;
        let n = k + random.below(40);
        let scheme = scheme(code);
        let mut decoder = scheme.decoder(k).unwrap();
        while decoder.symbols_wanted() > 0 {
            decoder.push(Esi(random.below(n))).unwrap();
        }
        let Progress::Solved(plan) = decoder.solve(scheme.block_profile(k).work) else {
            panic!("k suffice")
        };
        // Random bytes, not a codeword: the solution is unique.
        let received: Vec<(Esi, Vec<u8>)> =
            plan.inputs().iter().map(|&esi| (esi, random.bytes(WIDTH))).collect();
        let of = |esi: Esi| &received.iter().find(|(other, _)| *other == esi).unwrap().1;
        let decoded = execute(&plan, WIDTH, |esi, out| out.copy_from_slice(of(esi)));

        let generator = generator(scheme, k);
        let equations =
            received.iter().map(|(esi, bytes)| (symbol(&generator, *esi), bytes.clone()));
        let solution = solve(equations.collect(), k as usize).unwrap();
        Block::new(solution, WIDTH).assert_recovered(&decoded);
        // These symbols are encoding symbols of the decoded block.
        received.iter().for_each(|(esi, bytes)| assert_eq!(&symbol(&decoded, *esi), bytes));
    }
}
