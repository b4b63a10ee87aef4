//! The dense part of the elimination: the inactive columns.
//!
//! By the pivots' rows, each pivot column is a sum of inactive columns and known values.
//! Substituted into the left-over sparse rows, this gives binary equations in the inactive columns
//! only, which solve most of them. The HDPC rows solve the remaining ones, called *free* here, over
//! GF(256).
//!
//! Everything binary is packed, 64 columns to a word.

use super::hdpc::{self, BitRows, Coefficients};
use super::matrix::Matrix;
use super::params::Params;
use super::peeling::{Peeling, Place};
use super::program::Pivots;
use crate::codes::shared::csr::Lists;
use crate::codes::shared::equations::{Basis, Budget, Stop, flip, is_set, ones, xor_into};
use crate::field::gf256::{self, mul};
use alloc::vec;
use alloc::vec::Vec;

/// The solution of the inactive columns by the left-over rows and the HDPC rows.
pub(super) struct DenseSolution {
    /// The inactive columns that left-over rows solve.
    pub(super) rows: SolvedRows,
    /// The other inactive columns.
    pub(super) free: Vec<SolvedFree>,
    /// See [`hdpc::pairs`]; empty if no column is free.
    pub(super) hdpc_pairs: Vec<[u8; 2]>,
}

/// Some left-over rows, and the inactive column that each solves.
pub(super) struct SolvedRows {
    /// The matrix row, and the index of the inactive column.
    pub(super) solved: Vec<(u32, u32)>,
    /// For each, the indices of those of these rows that are summed.
    pub(super) rows: Lists,
    /// For each, the indices of the free columns that are added.
    pub(super) free: Lists,
}

/// A free column.
pub(super) struct SolvedFree {
    /// Index of the inactive column.
    pub(super) inactive: u32,
    /// Factors of the `H` HDPC rows.
    pub(super) hdpc_factors: Vec<u8>,
    /// Factors of the solved rows' columns, computed with zeros for the free columns.
    pub(super) dense_factors: Vec<u8>,
}

/// Solves for the inactive columns.
pub(super) fn solve(
    params: &Params,
    matrix: &Matrix,
    peeling: &Peeling,
    pivots: &Pivots,
    budget: &mut Budget,
) -> Result<DenseSolution, Stop> {
    let columns = ColumnBits::new(params, peeling, pivots, budget)?;
    let mut basis = Basis::new(peeling.inactive.len());
    for &row in &peeling.left_over {
        if basis.is_full() {
            break;
        }
        let terms = matrix.row(row as usize);
        budget.spend(terms.len() * columns.words)?;
        basis.insert(row, |bits| columns.add_row(terms, bits), budget)?;
    }
    let free = basis.free_columns();
    // Each HDPC row can solve one column at most, and so can each further symbol.
    if free.len() > params.h as usize {
        return Err(Stop::Wanting(free.len() as u32 - params.h));
    }
    basis.reduce(budget)?;
    let (solved_free, hdpc_pairs) = if free.is_empty() {
        (Vec::new(), Vec::new())
    } else {
        let pairs = hdpc::pairs(params);
        (solve_free(params, peeling, &columns, &basis, &free, &pairs, budget)?, pairs)
    };
    Ok(DenseSolution { rows: solved_rows(&basis, &free), free: solved_free, hdpc_pairs })
}

/// For each column, the inactive columns that it depends on; an inactive one depends on itself.
struct ColumnBits {
    words: usize,
    bits: Vec<u64>,
}

impl ColumnBits {
    fn new(
        params: &Params,
        peeling: &Peeling,
        pivots: &Pivots,
        budget: &mut Budget,
    ) -> Result<Self, Stop> {
        let words = peeling.inactive.len().div_ceil(64);
        let columns = params.l as usize;
        // Spent before anything is allocated: the words of each column, and the sums of each pivot.
        budget.spend(words.saturating_mul(columns + pivots.weight()))?;
        let mut this = Self { words, bits: vec![0; words * columns] };
        for (index, &column) in (0..).zip(&peeling.inactive) {
            flip(&mut this.bits[column as usize * words..][..words], index);
        }
        let mut sum = vec![0; words];
        for (column, _, others) in pivots.iter() {
            sum.fill(0);
            this.add_row(others, &mut sum);
            this.bits[column * words..][..words].copy_from_slice(&sum);
        }
        Ok(this)
    }

    /// Adds a row of the matrix, in terms of inactive columns, to `bits`.
    fn add_row(&self, columns: &[u32], bits: &mut [u64]) {
        for &column in columns {
            xor_into(bits, &self.bits[column as usize * self.words..][..self.words]);
        }
    }
}

/// The reduced equations as lists.
fn solved_rows(basis: &Basis, free: &[u32]) -> SolvedRows {
    let count = basis.rows.len();
    // About half of the possible entries are used.
    let mut rows = Lists::with_capacity(count, count * count / 2);
    let mut of_free = Lists::with_capacity(count, count * free.len() / 2);
    for index in 0..count {
        rows.push(ones(basis.history(index)));
        let columns = basis.equation(index);
        let is_added = |(i, &column): (u32, &u32)| is_set(columns, column).then_some(i);
        of_free.push((0..).zip(free).filter_map(is_added));
    }
    SolvedRows { solved: basis.rows.clone(), rows, free: of_free }
}

/// Most HDPC rows of a block: the largest `H` of RFC 6330, table 2.
const MAX_HDPC_ROWS: usize = 16;

/// The coefficients of one column in each HDPC row.
type HdpcColumn = [u8; MAX_HDPC_ROWS];

fn add(to: &mut HdpcColumn, from: &HdpcColumn) {
    for (to, from) in to.iter_mut().zip(from) {
        *to ^= from;
    }
}

/// Solves the HDPC rows for the free columns.
fn solve_free(
    params: &Params,
    peeling: &Peeling,
    columns: &ColumnBits,
    basis: &Basis,
    free: &[u32],
    pairs: &[[u8; 2]],
    budget: &mut Budget,
) -> Result<Vec<SolvedFree>, Stop> {
    /// Words of the dense part that a step of the HDPC recurrence counts as: eight bit planes of
    /// the sum, and of two rows.
    const STEP: usize = 3 * 8;
    budget.spend(STEP * columns.words * (pairs.len() + 1))?;
    let h = params.h as usize;
    let bits = BitRows { words: columns.words, bits: &columns.bits };
    let hdpc = Coefficients::hdpc(params, pairs, bits);

    // By inactive column, with the identity on the last `H` columns.
    let mut hdpc_columns = vec![[0; MAX_HDPC_ROWS]; peeling.inactive.len()];
    for i in 0..h {
        for (column, coefficient) in hdpc_columns.iter_mut().zip(hdpc.row(i)) {
            column[i] = coefficient;
        }
        if let Place::Inactive(index) = peeling.places[(params.l - params.h) as usize + i] {
            hdpc_columns[index as usize][i] ^= 1;
        }
    }

    // The free columns, after the other ones are replaced by their equations.
    let mut system: Vec<HdpcColumn> =
        free.iter().map(|&column| hdpc_columns[column as usize]).collect();
    for (index, &(_, lead)) in basis.rows.iter().enumerate() {
        let equation = basis.equation(index);
        for (sum, &column) in system.iter_mut().zip(free) {
            if is_set(equation, column) {
                add(sum, &hdpc_columns[lead as usize]);
            }
        }
    }
    let inverse = left_inverse(&system, h).map_err(|lack| Stop::Wanting(lack as u32))?;

    // The contribution of the equations.
    let products = hdpc.combine(&inverse);
    let solved = (free.iter().zip(inverse).enumerate())
        .map(|(i, (&inactive, hdpc_factors))| {
            let products = products.row(i);
            let dense_factors = (basis.rows.iter())
                .map(|&(_, lead)| {
                    let identity = peeling.inactive[lead as usize];
                    let identity = identity.checked_sub(params.l - params.h);
                    products[lead as usize] ^ identity.map_or(0, |row| hdpc_factors[row as usize])
                })
                .collect();
            SolvedFree { inactive, hdpc_factors, dense_factors }
        })
        .collect();
    Ok(solved)
}

/// A matrix whose product with that of the given columns, of `h` rows, is the identity. It has one
/// row for each column. Computed by Gauss-Jordan elimination.
///
/// # Errors
/// The rank that is lacking.
fn left_inverse(columns: &[HdpcColumn], h: usize) -> Result<Vec<Vec<u8>>, usize> {
    let f = columns.len();
    // Row i: row i of the matrix, followed by row i of the identity.
    let mut system: Vec<Vec<u8>> = (0..h)
        .map(|i| {
            let coefficients = columns.iter().map(|column| column[i]);
            coefficients.chain((0..h).map(|j| u8::from(j == i))).collect()
        })
        .collect();
    let mut rank = 0;
    for column in 0..f {
        let Some(pivot) = (rank..h).find(|&i| system[i][column] != 0) else { continue };
        system.swap(rank, pivot);
        let scale = gf256::inverse(system[rank][column]);
        system[rank].iter_mut().for_each(|value| *value = mul(*value, scale));
        let pivot_row = system[rank].clone();
        for (_, row) in system.iter_mut().enumerate().filter(|&(i, _)| i != rank) {
            let factor = row[column];
            row.iter_mut().zip(&pivot_row).for_each(|(value, &p)| *value ^= mul(factor, p));
        }
        rank += 1;
    }
    if rank < f {
        return Err(f - rank);
    }
    Ok(system.into_iter().take(f).map(|mut row| row.split_off(f)).collect())
}
