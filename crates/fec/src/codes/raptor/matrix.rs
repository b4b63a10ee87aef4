//! The rows of the code's matrix (RFC 5053, section 5.4.2.4): `S` LDPC rows, `H` Half rows, then a
//! row for each available symbol.

use super::params::Params;
use super::triple::neighbors;
use crate::codes::shared::csr::Lists;
use alloc::vec;
use alloc::vec::Vec;

/// Terms of an average row of a symbol, rounded up.
pub(super) const TYPICAL_TERMS: usize = 5;

/// The columns of each row: row `S + H + i` is that of `esis[i]`, which is below 2^16.
pub(super) fn matrix(params: &Params, esis: &[u32]) -> Lists {
    let constraints = constraints(params);
    let terms = constraints.iter().map(Vec::len).sum::<usize>() + esis.len() * TYPICAL_TERMS;
    let mut rows = Lists::with_capacity(constraints.len() + esis.len(), terms);
    for row in constraints {
        rows.push(row);
    }
    for &esi in esis {
        rows.push(neighbors(params, esi));
    }
    rows
}

/// The LDPC rows and the Half rows (RFC 5053, section 5.4.2.3).
fn constraints(params: &Params) -> Vec<Vec<u32>> {
    let &Params { k, s, h, .. } = params;
    let mut rows = vec![Vec::new(); (s + h) as usize];
    for i in 0..k {
        let a = 1 + i / s % (s - 1);
        for step in 0..3 {
            rows[((i + step * a) % s) as usize].push(i);
        }
    }
    // `m[j]`: the numbers of the Gray sequence with half of their bits set.
    let gray = (0..1_u32 << h).map(|i| i ^ i >> 1);
    let half = gray.filter(|number| number.count_ones() == h.div_ceil(2));
    for (column, number) in (0..k + s).zip(half) {
        for row in (0..h).filter(|row| number >> row & 1 == 1) {
            rows[(s + row) as usize].push(column);
        }
    }
    for (row, column) in rows.iter_mut().zip(k..) {
        row.push(column);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_is_in_its_number_of_constraints() {
        for k in [4, 10, 100, 1_024, 8_192] {
            let params = Params::new(k).unwrap();
            let rows = constraints(&params);
            let mut ldpc = vec![0; params.l as usize];
            let mut half = vec![0; params.l as usize];
            for (index, row) in rows.iter().enumerate() {
                let of = if index < params.s as usize { &mut ldpc } else { &mut half };
                row.iter().for_each(|&column| of[column as usize] += 1);
            }
            let (k, s) = (k as usize, params.s as usize);
            assert!(ldpc[..k].iter().all(|&count| count == 3), "K = {k}");
            assert!(ldpc[k..k + s].iter().all(|&count| count == 1), "K = {k}");
            assert!(half[..k + s].iter().all(|&count| count == params.h.div_ceil(2)), "K = {k}");
            assert!(half[k + s..].iter().all(|&count| count == 1), "K = {k}");
        }
    }
}
