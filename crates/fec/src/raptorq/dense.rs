//! The dense end of the elimination: the inactive columns.
//!
//! By the pivots' rows each pivot column is a sum of inactive ones plus what is known; put into the
//! left-over sparse rows, that gives binary equations in the inactive columns only, which solve all
//! but a few of them. The last ones, *free* here, are left to the HDPC rows and GF(256).
//!
//! Everything binary is packed, 64 columns to a word.

use super::matrix::Matrix;
use super::params::Params;
use super::peeling::{Peeling, Place};
use super::planner::{Budget, Stop};
use super::tuple::rand;
use crate::gf256::{alpha_power, inverse, mul};

/// How the inactive columns follow from the left-over rows and the HDPC rows.
pub(super) struct DenseSolution {
    /// One for each inactive column that a left-over row solves.
    pub(super) rows: Vec<SolvedRow>,
    /// The others.
    pub(super) free: Vec<SolvedFree>,
    /// See [`hdpc_pairs`]; empty if no column is free.
    pub(super) hdpc_pairs: Vec<[u8; 2]>,
}

/// One left-over row, and the inactive column solved by it.
pub(super) struct SolvedRow {
    /// The matrix row.
    pub(super) row: u32,
    /// Index of the inactive column.
    pub(super) inactive: u32,
    /// Indices of the solved rows that have to be summed.
    pub(super) rows: Vec<u32>,
    /// Indices of the free columns that have to be added.
    pub(super) free: Vec<u32>,
}

/// A free column.
pub(super) struct SolvedFree {
    /// Index of the inactive column.
    pub(super) inactive: u32,
    /// Factors of the `H` HDPC rows.
    pub(super) hdpc_factors: Vec<u8>,
    /// Factors of the solved rows' columns, as they are while the free columns are zero.
    pub(super) dense_factors: Vec<u8>,
}

/// Solves for the inactive columns.
pub(super) fn solve(
    params: &Params,
    matrix: &Matrix,
    peeling: &Peeling,
    budget: &mut Budget,
) -> Result<DenseSolution, Stop> {
    let pivots = PivotBits::new(matrix, peeling, budget)?;
    let mut basis = Basis::new(peeling.inactive.len());
    for &row in &peeling.left_over {
        if basis.is_full() {
            break;
        }
        basis.insert(
            row,
            |bits, budget| pivots.add_row(matrix.row(row as usize), peeling, bits, budget),
            budget,
        )?;
    }
    let free = basis.free_columns();
    // Each HDPC row can solve one column at most, and each further symbol too.
    if free.len() > params.h as usize {
        return Err(Stop::Wanting(free.len() as u32 - params.h));
    }
    basis.reduce(budget)?;
    let (solved_free, hdpc_pairs) = if free.is_empty() {
        (Vec::new(), Vec::new())
    } else {
        let hdpc_pairs = hdpc_pairs(params);
        let hdpc = hdpc_rows(params, peeling, &pivots, &hdpc_pairs, budget)?;
        (solve_free(params, &basis, &free, &hdpc)?, hdpc_pairs)
    };
    Ok(DenseSolution { rows: basis.into_rows(&free), free: solved_free, hdpc_pairs })
}

fn xor_into(to: &mut [u64], from: &[u64]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to ^= from;
    }
}

fn flip(bits: &mut [u64], index: u32) {
    bits[index as usize / 64] ^= 1 << (index % 64);
}

fn is_set(bits: &[u64], index: u32) -> bool {
    bits[index as usize / 64] >> (index % 64) & 1 == 1
}

/// Indices of the ones, ascending.
fn ones(bits: &[u64]) -> impl Iterator<Item = u32> {
    (0..).step_by(64).zip(bits).flat_map(|(base, &word)| {
        std::iter::successors(Some(word), |word| Some(word & word.wrapping_sub(1)))
            .take_while(|&word| word != 0)
            .map(move |word| base + word.trailing_zeros())
    })
}

/// For each pivot the inactive columns that it depends on.
struct PivotBits {
    words: usize,
    bits: Vec<u64>,
}

impl PivotBits {
    fn new(matrix: &Matrix, peeling: &Peeling, budget: &mut Budget) -> Result<Self, Stop> {
        let words = peeling.inactive.len().div_ceil(64);
        // Before anything is allocated.
        budget.spend(words * peeling.pivots.len())?;
        let mut pivots = Self { words, bits: vec![0; words * peeling.pivots.len()] };
        for (index, &(row, column)) in peeling.pivots.iter().enumerate() {
            let (before, this) = pivots.bits.split_at_mut(index * words);
            let others = matrix.row(row as usize).iter().filter(|&&other| other != column);
            add_terms(words, before, others, peeling, &mut this[..words], budget)?;
        }
        Ok(pivots)
    }

    fn of(&self, pivot: u32) -> &[u64] {
        &self.bits[pivot as usize * self.words..][..self.words]
    }

    /// Adds a row of the matrix, in terms of inactive columns, to `bits`.
    fn add_row(
        &self,
        columns: &[u32],
        peeling: &Peeling,
        bits: &mut [u64],
        budget: &mut Budget,
    ) -> Result<(), Stop> {
        add_terms(self.words, &self.bits, columns.iter(), peeling, bits, budget)
    }
}

/// Adds what `columns` are in terms of inactive columns to `bits`; `pivots` holds that of pivots.
fn add_terms<'a>(
    words: usize,
    pivots: &[u64],
    columns: impl Iterator<Item = &'a u32>,
    peeling: &Peeling,
    bits: &mut [u64],
    budget: &mut Budget,
) -> Result<(), Stop> {
    let mut added = 0;
    for &column in columns {
        match peeling.places[column as usize] {
            Place::Inactive(index) => flip(bits, index),
            Place::Pivot(index) => {
                xor_into(bits, &pivots[index as usize * words..][..words]);
                added += words;
            }
            Place::Active => debug_assert!(false, "peeling leaves no column active"),
        }
    }
    budget.spend(added)
}

/// Independent binary equations in the inactive columns, in echelon form, each with the way it came
/// about.
struct Basis {
    columns: usize,
    /// Words for the inactive columns; as many again say which inserted rows were summed.
    words: usize,
    bits: Vec<u64>,
    /// For each equation its matrix row and its leading column.
    rows: Vec<(u32, u32)>,
    /// For each column the equation that leads with it.
    leaders: Vec<Option<u32>>,
}

impl Basis {
    fn new(columns: usize) -> Self {
        let words = columns.div_ceil(64);
        Self { columns, words, bits: Vec::new(), rows: Vec::new(), leaders: vec![None; columns] }
    }

    fn is_full(&self) -> bool {
        self.rows.len() == self.columns
    }

    fn equation(&self, index: usize) -> &[u64] {
        &self.bits[index * 2 * self.words..][..2 * self.words]
    }

    /// Adds the equation that `fill` writes, if it is independent of those before.
    fn insert(
        &mut self,
        row: u32,
        fill: impl FnOnce(&mut [u64], &mut Budget) -> Result<(), Stop>,
        budget: &mut Budget,
    ) -> Result<(), Stop> {
        let words = self.words;
        let start = self.bits.len();
        budget.spend(2 * words)?;
        self.bits.resize(start + 2 * words, 0);
        let (before, this) = self.bits.split_at_mut(start);
        fill(&mut this[..words], budget)?;
        let mut word = 0;
        while word < words {
            if this[word] == 0 {
                word += 1;
                continue;
            }
            let column = word as u32 * 64 + this[word].trailing_zeros();
            let Some(leader) = self.leaders[column as usize] else {
                let index = self.rows.len() as u32;
                self.leaders[column as usize] = Some(index);
                self.rows.push((row, column));
                flip(&mut this[words..], index);
                return Ok(());
            };
            let leader = &before[leader as usize * 2 * words..][..2 * words];
            budget.spend(2 * words - word)?;
            xor_into(&mut this[word..], &leader[word..]);
        }
        self.bits.truncate(start);
        Ok(())
    }

    /// The columns that no equation leads with.
    fn free_columns(&self) -> Vec<u32> {
        let free = |(column, leader): (u32, &Option<u32>)| leader.is_none().then_some(column);
        (0..).zip(&self.leaders).filter_map(free).collect()
    }

    /// Solves: leaves in each equation its leading column and free columns only.
    fn reduce(&mut self, budget: &mut Budget) -> Result<(), Stop> {
        let words = self.words;
        let mut sum = vec![0; 2 * words];
        for index in self.leaders.iter().rev().flatten().map(|&index| index as usize) {
            let (_, lead) = self.rows[index];
            sum.copy_from_slice(self.equation(index));
            // Equations that lead with a later column are reduced already: adding one changes no
            // other leading column.
            for column in ones(&self.equation(index)[..words]).filter(|&column| column != lead) {
                if let Some(leader) = self.leaders[column as usize] {
                    budget.spend(2 * words)?;
                    xor_into(&mut sum, self.equation(leader as usize));
                }
            }
            self.bits[index * 2 * words..][..2 * words].copy_from_slice(&sum);
        }
        Ok(())
    }

    /// The reduced equations as lists.
    fn into_rows(self, free: &[u32]) -> Vec<SolvedRow> {
        (self.rows.iter().enumerate())
            .map(|(index, &(row, inactive))| {
                let (columns, summed) = self.equation(index).split_at(self.words);
                SolvedRow {
                    row,
                    inactive,
                    rows: ones(summed).collect(),
                    free: (0..)
                        .zip(free)
                        .filter_map(|(i, &column)| is_set(columns, column).then_some(i))
                        .collect(),
                }
            })
            .collect()
    }
}

/// The two HDPC rows that have a one in column `j` of the matrix `MT`, for all columns but the last
/// (RFC 6330, section 5.3.3.3).
fn hdpc_pairs(params: &Params) -> Vec<[u8; 2]> {
    (1..params.k_prime + params.s)
        .map(|j| {
            let a = rand(j, 6, params.h);
            let b = (a + rand(j, 7, params.h - 1) + 1) % params.h;
            [a as u8, b as u8]
        })
        .collect()
}

/// A row over GF(256), in eight bit planes: addition and multiplication by `alpha` are then word
/// operations. The planes are in a ring, so that multiplication moves none of them.
#[derive(Clone)]
struct Planes {
    words: usize,
    /// Where the plane of bit 0 is.
    first: usize,
    bits: Vec<u64>,
}

impl Planes {
    fn zero(words: usize) -> Self {
        Self { words, first: 0, bits: vec![0; 8 * words] }
    }

    fn plane(&self, bit: usize) -> &[u64] {
        &self.bits[(self.first + bit) % 8 * self.words..][..self.words]
    }

    fn plane_mut(&mut self, bit: usize) -> &mut [u64] {
        &mut self.bits[(self.first + bit) % 8 * self.words..][..self.words]
    }

    /// Multiplies by `alpha`: what leaves bit 7 enters bits 0, 2, 3 and 4.
    fn double(&mut self) {
        self.first = (self.first + 7) % 8;
        for word in 0..self.words {
            let carry = self.bits[self.first * self.words + word];
            for bit in [2, 3, 4] {
                self.bits[(self.first + bit) % 8 * self.words + word] ^= carry;
            }
        }
    }

    fn add(&mut self, other: &Self) {
        for bit in 0..8 {
            xor_into(self.plane_mut(bit), other.plane(bit));
        }
    }

    /// The element in column `column`.
    fn at(&self, column: u32) -> u8 {
        (0..8).map(|bit| u8::from(is_set(self.plane(bit), column)) << bit).sum()
    }
}

/// The HDPC rows in terms of inactive columns: one vector of coefficients for each row. The
/// recurrence is that of the executor, see there.
fn hdpc_rows(
    params: &Params,
    peeling: &Peeling,
    pivots: &PivotBits,
    pairs: &[[u8; 2]],
    budget: &mut Budget,
) -> Result<Vec<Vec<u8>>, Stop> {
    /// Planes touched by a step: four of the sum, and all of two rows.
    const PLANES: usize = 4 + 2 * 8;
    let words = pivots.words;
    budget.spend(PLANES * words * (pairs.len() + 1))?;
    let mut rows = vec![Planes::zero(words); params.h as usize];
    let mut sum = Planes::zero(words);
    for (column, place) in peeling.places[..=pairs.len()].iter().enumerate() {
        sum.double();
        match *place {
            Place::Inactive(index) => flip(sum.plane_mut(0), index),
            Place::Pivot(index) => xor_into(sum.plane_mut(0), pivots.of(index)),
            Place::Active => debug_assert!(false, "peeling leaves no column active"),
        }
        for &row in pairs.get(column).into_iter().flatten() {
            rows[row as usize].add(&sum);
        }
    }
    let inactive = peeling.inactive.len() as u32;
    let mut coefficients: Vec<Vec<u8>> =
        rows.iter().map(|row| (0..inactive).map(|column| row.at(column)).collect()).collect();
    let last: Vec<u8> = (0..inactive).map(|column| sum.at(column)).collect();
    for (i, row) in coefficients.iter_mut().enumerate() {
        for (coefficient, &last) in row.iter_mut().zip(&last) {
            *coefficient ^= mul(alpha_power(i), last);
        }
        // The identity on the last H columns.
        let column = params.k_prime + params.s + i as u32;
        if let Place::Inactive(index) = peeling.places[column as usize] {
            row[index as usize] ^= 1;
        }
    }
    Ok(coefficients)
}

/// Solves the HDPC rows for the free columns, by Gauss-Jordan elimination.
fn solve_free(
    params: &Params,
    basis: &Basis,
    free: &[u32],
    hdpc: &[Vec<u8>],
) -> Result<Vec<SolvedFree>, Stop> {
    let (h, f) = (params.h as usize, free.len());
    // Row i: coefficients of the free columns, once the other columns are replaced by their
    // equations; then row i of the identity.
    let mut system: Vec<Vec<u8>> = (hdpc.iter().enumerate())
        .map(|(i, row)| {
            let mut extended: Vec<u8> = free.iter().map(|&column| row[column as usize]).collect();
            for (index, &(_, lead)) in basis.rows.iter().enumerate() {
                let columns = basis.equation(index);
                for (coefficient, &column) in extended.iter_mut().zip(free) {
                    if is_set(columns, column) {
                        *coefficient ^= row[lead as usize];
                    }
                }
            }
            extended.extend((0..h).map(|j| u8::from(j == i)));
            extended
        })
        .collect();
    let mut rank = 0;
    for column in 0..f {
        let Some(pivot) = (rank..h).find(|&i| system[i][column] != 0) else { continue };
        system.swap(rank, pivot);
        let scale = inverse(system[rank][column]);
        system[rank].iter_mut().for_each(|value| *value = mul(*value, scale));
        let pivot_row = system[rank].clone();
        for (_, row) in system.iter_mut().enumerate().filter(|&(i, _)| i != rank) {
            let factor = row[column];
            row.iter_mut().zip(&pivot_row).for_each(|(value, &p)| *value ^= mul(factor, p));
        }
        rank += 1;
    }
    if rank < f {
        return Err(Stop::Wanting((f - rank) as u32));
    }
    let solved = (free.iter().zip(&system))
        .map(|(&inactive, row)| {
            let hdpc_factors = row[f..].to_vec();
            let dense_factors = (basis.rows.iter())
                .map(|&(_, lead)| {
                    let products =
                        hdpc_factors.iter().zip(hdpc).map(|(&q, row)| mul(q, row[lead as usize]));
                    products.fold(0, |sum, product| sum ^ product)
                })
                .collect();
            SolvedFree { inactive, hdpc_factors, dense_factors }
        })
        .collect();
    Ok(solved)
}
