//! A slow reference of both codes: every encoding symbol in terms of source symbols, and rank by
//! Gaussian elimination over GF(2). LT's rows are drawn by separate code.

use crate::block::Random;
use fontana_fec::FecScheme;
use fontana_fec::codes::lt::Lt;
use fontana_fec::codes::tornado::Tornado;
use fontana_fec::study::lt::Degrees;

/// A sum of source symbols, one bit for each.
type Sum = Vec<bool>;

/// The source symbols whose sum encoding symbol `esi` of a block of `k` is.
pub(crate) fn sum(scheme: FecScheme, k: u32, esi: u32) -> Sum {
    let mut sum = vec![false; k as usize];
    if esi < k {
        sum[esi as usize] = true;
        return sum;
    }
    match scheme {
        FecScheme::Tornado(Tornado { code, .. }) => {
            for &term in code.graph(k).unwrap().terms(esi - k) {
                let part = self::sum(scheme, k, term);
                sum.iter_mut().zip(part).for_each(|(sum, part)| *sum ^= part);
            }
        }
        FecScheme::Lt(Lt { code, .. }) => {
            let golden = 0x9E37_79B9_7F4A_7C15_u64;
            let key = Random(code.seed.wrapping_add(golden.wrapping_mul(esi.into()))).next();
            let mut random = Random(key);
            let number = (random.next() >> 32) as u32;
            let thresholds = Degrees::new(code, k).unwrap().thresholds().to_vec();
            let below = |&&threshold: &&u64| threshold <= u64::from(number);
            let degree = thresholds.iter().filter(below).count() + 1;
            while sum.iter().filter(|&&bit| bit).count() < degree {
                sum[random.below(k) as usize] = true;
            }
        }
        other => panic!("{other:?}"),
    }
    sum
}

/// The rank of the symbols `esis` of a block of `k`.
pub(crate) fn rank(scheme: FecScheme, k: u32, esis: &[u32]) -> usize {
    let mut rows: Vec<Sum> = esis.iter().map(|&esi| sum(scheme, k, esi)).collect();
    let mut rank = 0;
    for column in 0..k as usize {
        let Some(pivot) = (rank..rows.len()).find(|&row| rows[row][column]) else { continue };
        rows.swap(rank, pivot);
        let (above, below) = rows.split_at_mut(rank + 1);
        for row in below.iter_mut().filter(|row| row[column]) {
            row.iter_mut().zip(&above[rank]).for_each(|(bit, &p)| *bit ^= p);
        }
        rank += 1;
    }
    rank
}
