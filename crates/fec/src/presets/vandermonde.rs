//! The matrix of `gf_gen_rs_matrix` (ISA-L): parity shard `r` is the sum of `alpha^(r j)` times
//! data shard `j`. Not every square part of this matrix has an inverse, so plans are made by
//! elimination.

use super::Counts;
use super::program::{Program, ShardPlan, split};
use crate::bytes::kernel::POLYNOMIAL;
use crate::codes::reed_solomon::available;
use crate::codes::shared::basis::Basis;
use crate::field::gf256::{ORDER, alpha_power, mul};
use alloc::vec::Vec;

/// The factor of data shard `data` in parity shard `parity`, counted from 0.
fn factor(parity: u32, data: u32) -> u8 {
    alpha_power((parity * data % ORDER) as usize)
}

/// The plan of the `missing` shards, ascending. It reads the first parity shards whose factors of
/// the lost data shards are independent. `None` if these are too few.
pub(super) fn recovery(counts: Counts, missing: &[u32]) -> Option<ShardPlan> {
    let k = counts.data;
    let (lost, parity) = split(counts, missing);
    let mut basis = Basis::new(lost.len());
    let mut independent =
        |parity: &u32| basis.push(lost.iter().map(|&data| factor(*parity - k, data)).collect());
    let repair: Vec<u32> = parity.into_iter().filter(&mut independent).collect();
    let inverse = basis.inverse()?;
    let mut factors = Vec::with_capacity(k as usize * missing.len());
    for data in 0..k {
        let own = lost.binary_search(&data);
        // The factors of this input in the lost data shards.
        let recovered: Vec<u8> = match own {
            // It is a parity shard.
            Ok(number) => inverse.iter().map(|row| row[number]).collect(),
            // What an available shard has contributed to the parity shards is subtracted.
            Err(_) => {
                let contribution = |row: &&[u8]| {
                    row.iter().zip(&repair).fold(0, |sum, (&inverse, &parity)| {
                        sum ^ mul(inverse, factor(parity - k, data))
                    })
                };
                inverse.iter().map(contribution).collect()
            }
        };
        factors.extend_from_slice(&recovered);
        for &parity in &missing[lost.len()..] {
            let direct = if own.is_err() { factor(parity - k, data) } else { 0 };
            let sum = lost.iter().zip(&recovered).fold(direct, |sum, (&lost, &recovered)| {
                sum ^ mul(factor(parity - k, lost), recovered)
            });
            factors.push(sum);
        }
    }
    let program = Program::Matrix(factors, &POLYNOMIAL);
    Some(ShardPlan { inputs: available(k, lost, &repair), outputs: missing.to_vec(), program })
}
