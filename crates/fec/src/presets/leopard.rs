//! Leopard's codes: Reed-Solomon on the points of a Cantor basis.
//!
//! Let `m` be the number of parity shards, rounded up to a power of two. Parity shards have the
//! positions from 0 on, data shards those from `m` on. Positions without a shard up to a power of
//! two `n` hold zeros, but those from the number of parity shards to `m`, which are never known.
//! The shards are the values of a polynomial of degree below `n - m`.
//!
//! The elements of shards are in the Cantor basis, too: an element is stored as its position. Over
//! GF(2^16), 64 bytes hold the lower octets of 32 elements, then their upper octets.
//!
//! | | |
//! |---|---|
//! | source | [Leopard-RS](https://github.com/catid/leopard); S.-J. Lin, T. Y. Al-Naffouri, Y. S. Han, W.-H. Chung, "Novel Polynomial Basis with Fast Fourier Transform and Its Application to Reed-Solomon Erasure Codes", IEEE Transactions on Information Theory 62, 2016 |

use super::Counts;
use super::program::{Program, ShardPlan};
use crate::bytes::kernel::{CauchyInputs, CauchyOutputs, CauchyPoint};
use crate::codes::reed_solomon::Points;
use crate::field::gf65536::{ORDER, leopard_field};
use alloc::vec::Vec;

/// `m`.
pub(super) fn positions(counts: Counts) -> usize {
    counts.parity().next_power_of_two() as usize
}

/// The points over GF(2^8).
pub(super) fn points(counts: Counts) -> Points {
    Points::Subspace { source_symbols: counts.data, log_m: positions(counts).ilog2() }
}

/// Transforms of `m` positions, if they encode faster than a matrix.
pub(super) fn octet_encoder(counts: Counts) -> Option<Program> {
    /// Fewest positions of a transform over octets: those that registers hold.
    const LEAST: usize = 16;
    /// Product of the numbers of data and parity shards from which transforms are faster: see
    /// `docs/benchmarks.md`.
    const TRANSFORMS_FROM: u32 = 500;
    let is_faster = counts.data * counts.parity() >= TRANSFORMS_FROM;
    let positions = positions(counts);
    (positions >= LEAST && is_faster).then_some(Program::OctetShift(positions))
}

/// The plan over GF(2^16) of the `missing` shards, ascending, from all others.
pub(super) fn pair_recovery(counts: Counts, missing: &[u32]) -> ShardPlan {
    let (field, m) = (leopard_field(), positions(counts) as u32);
    let position = |shard: u32| match shard.checked_sub(counts.data) {
        Some(parity) => parity,
        None => m + shard,
    };
    let all = (m + counts.data).next_power_of_two() as usize;
    let unknown = missing.iter().map(|&shard| position(shard)).chain(counts.parity()..m);
    // The weight of a point is the inverse of the product of its distances to the unknown ones.
    let log_weights = field.log_products_below(all, &[], &unknown.collect::<Vec<u32>>());
    let point = |shard: &u32, is_input: bool| {
        let point = position(*shard);
        let log = log_weights[point as usize];
        let factor = field.alpha_power(if is_input { ORDER - log } else { log });
        CauchyPoint { point: point as u16, factor }
    };
    let is_available = |shard: &u32| missing.binary_search(shard).is_err();
    let inputs: Vec<u32> = (0..counts.all).filter(is_available).collect();
    let program = Program::PairSums(
        CauchyInputs::in_subspace(all, inputs.iter().map(|shard| point(shard, true))),
        CauchyOutputs::in_subspace(missing.iter().map(|shard| point(shard, false))),
    );
    ShardPlan { inputs, outputs: missing.to_vec(), program }
}

#[cfg(test)]
mod tests {
    use crate::field::gf65536::{ORDER, leopard_field};
    use crate::presets::{Preset, ShardCode};
    use alloc::vec;
    use alloc::vec::Vec;

    /// Element `at` of a shard.
    fn element(shard: &[u8], at: usize) -> u16 {
        u16::from_le_bytes([shard[at], shard[at + 32]])
    }

    /// Lagrange interpolation, element by element: the weight of a data shard is the inverse of the
    /// value of the polynomial whose zeros are the first `m` positions.
    #[test]
    fn parity_is_that_of_the_definition() {
        let field = leopard_field();
        for (data, parity) in [(1, 1), (3, 2), (2, 4), (9, 5), (40, 17), (70, 33)] {
            let m: usize = usize::next_power_of_two(parity);
            let shard = |i: usize| (0..64).map(|at| ((at + i * 61) * 7919 % 257) as u8).collect();
            let shards: Vec<Vec<u8>> = (0..data).map(shard).collect();
            let made = ShardCode::new(Preset::Leopard16, data, parity).unwrap();
            let made = made.encode(&shards).unwrap();
            for (position, made) in made.iter().enumerate() {
                let mut sums = vec![0; 32];
                for (source, shard) in (m..).zip(&shards) {
                    let distance = field.log((source ^ position) as u16);
                    let factor = field.log((source / m) as u16) + ORDER - distance;
                    for (at, sum) in sums.iter_mut().enumerate() {
                        *sum ^= match element(shard, at) {
                            0 => 0,
                            element => field.alpha_power((field.log(element) + factor) % ORDER),
                        };
                    }
                }
                let made: Vec<u16> = (0..32).map(|at| element(made, at)).collect();
                assert_eq!(made, sums, "{data} + {parity}, {position}");
            }
        }
    }
}
