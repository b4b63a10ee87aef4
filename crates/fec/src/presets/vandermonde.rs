//! The matrix of `gf_gen_rs_matrix` (ISA-L): parity shard `r` is the sum of `alpha^(r j)` times
//! data shard `j`. Not every square part of this matrix has an inverse, so plans are made by
//! elimination.

use super::Counts;
use crate::codes::shared::basis::Basis;
use crate::codes::shared::linear::{Generator, Linear, Recovery};
use crate::field::gf256::{ORDER, alpha_power, mul};
use crate::ids::Esi;
use crate::plan::Plan;
use alloc::vec::Vec;

/// The factor of data shard `data` in parity shard `parity`, counted from 0.
fn factor(parity: u32, data: u32) -> u8 {
    alpha_power((parity * data % ORDER) as usize)
}

/// The plan that replaces data shards `lost`, ascending, by the first `available` parity shards,
/// ascending, whose factors are independent. `None` if these are too few.
pub(super) fn plan(counts: Counts, lost: Vec<u32>, available: &[u32]) -> Option<Plan> {
    let k = counts.data;
    let mut basis = Basis::new(lost.len());
    let mut independent =
        |parity: &&u32| basis.push(lost.iter().map(|&data| factor(*parity - k, data)).collect());
    let repair: Vec<u32> = available.iter().filter(&mut independent).copied().collect();
    let inverse = basis.inverse()?;
    let mut factors = Vec::with_capacity(k as usize * lost.len());
    for data in 0..k {
        let own = lost.binary_search(&data);
        factors.extend(inverse.iter().map(|row| match own {
            // The row of a lost shard holds a parity shard.
            Ok(number) => row[number],
            // What an available shard has contributed to the parity shards is subtracted.
            Err(_) => {
                row.iter().zip(&repair).fold(0, |sum, (&inverse, &parity)| {
                    sum ^ mul(inverse, factor(parity - k, data))
                })
            }
        }));
    }
    let received = (0..k).filter(|data| lost.binary_search(data).is_err());
    let inputs = received.chain(repair).map(Esi).collect();
    let recovery = Recovery::Factors(factors);
    Some(Linear::plan(ParityFactors(counts), k, inputs, lost, recovery))
}

/// The factors of all parity shards of a group.
struct ParityFactors(Counts);

impl Generator for ParityFactors {
    fn factors(&self, source_symbols: u32, esis: &[Esi]) -> Vec<u8> {
        let of = |data: u32, esi: &Esi| match esi.0 < self.0.all {
            true => factor(esi.0 - source_symbols, data),
            false => 0,
        };
        (0..source_symbols).flat_map(|data| esis.iter().map(move |esi| of(data, esi))).collect()
    }
}
