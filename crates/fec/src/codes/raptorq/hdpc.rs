//! The HDPC rows of the matrix: dense, over GF(256), and never stored (RFC 6330, section 5.3.3.3).
//!
//! Left of the identity, column `j` of the HDPC matrix is `alpha` times column `j + 1`, plus 1 in
//! two pseudo-random rows; the last column is 1, `alpha`, `alpha^2`, ... So a running sum
//! `sum = alpha * sum + v[j]`, added to the two rows of each `j`, multiplies a vector `v` by the
//! whole matrix. The executor does this with symbols, the planner with the pivots' dependence on
//! inactive columns, one byte per coefficient.

use super::params::Params;
use super::tuple::rand;
use crate::bytes::kernel::{InstructionSet, Kernel, Lane, Row};
use crate::bytes::line::{LINE, Line};
use crate::bytes::stripes::{Scratch, Stripes};
use crate::field::gf256::alpha_power;
use alloc::vec;
use alloc::vec::Vec;

/// The two HDPC rows that have a one of their own in column `j`, for all columns but the last.
pub(super) fn pairs(params: &Params) -> Vec<[u8; 2]> {
    (1..params.k_prime + params.s)
        .map(|j| {
            let a = rand(j, 6, params.h);
            let b = (a + rand(j, 7, params.h - 1) + 1) % params.h;
            [a as u8, b as u8]
        })
        .collect()
}

/// The vector that is multiplied by the HDPC matrix.
pub(super) trait Vector {
    /// `sum + v[j]`. Always inlined, like all code on lanes.
    fn add_to<V: Lane, const N: usize>(&self, j: usize, sum: Row<V, N>) -> Row<V, N>;
}

/// Multiplies `vector` by the HDPC matrix; one row of `products` for each of its rows.
#[inline(always)]
pub(super) fn multiply<V: Lane, const N: usize>(
    pairs: &[[u8; 2]],
    vector: &impl Vector,
    products: &mut [[Line; N]],
) {
    products.fill([Line::ZERO; N]);
    let mut sum = Row::<V, N>::zero();
    for (j, &[a, b]) in pairs.iter().enumerate() {
        sum = vector.add_to(j, sum.double());
        for row in [a, b] {
            let product = &mut products[row as usize];
            sum.add(product).store(product);
        }
    }
    sum = vector.add_to(pairs.len(), sum.double());
    for (i, product) in products.iter_mut().enumerate() {
        let factor = V::factor(alpha_power(i));
        Row::<V, N>::load(product).add_product(factor, sum).store(product);
    }
}

/// Transposed [`multiply`] for some columns: adds the contribution of the rows `products` to the
/// columns of `slots`, each in the row of `vector` that its slot names.
#[inline(always)]
pub(super) fn multiply_transposed<V: Lane, const N: usize>(
    pairs: &[[u8; 2]],
    products: &[[Line; N]],
    slots: &[u32],
    vector: &mut [[Line; N]],
) {
    let mut sum = Row::<V, N>::zero();
    for (i, product) in products.iter().enumerate() {
        sum = sum.add_product(V::factor(alpha_power(i)), Row::load(product));
    }
    // The last column comes first.
    for j in (0..=pairs.len()).rev() {
        if let Some(&[a, b]) = pairs.get(j) {
            sum = sum.double().add(&products[a as usize]).add(&products[b as usize]);
        }
        if let Some(&slot) = slots.get(j) {
            let row = &mut vector[slot as usize];
            sum.add(row).store(row);
        }
    }
}

/// Symbols of some columns; the other columns are zero.
pub(super) struct Symbols<'a> {
    /// Row after row.
    pub(super) rows: &'a [Line],
    /// For each column, its row.
    pub(super) slots: &'a [u32],
}

impl Vector for Symbols<'_> {
    #[inline(always)]
    fn add_to<V: Lane, const N: usize>(&self, j: usize, sum: Row<V, N>) -> Row<V, N> {
        match self.slots.get(j) {
            Some(&slot) => sum.add(&self.rows.as_chunks::<N>().0[slot as usize]),
            None => sum,
        }
    }
}

/// One row of bits for each column. The bits are coefficients.
#[derive(Clone, Copy)]
pub(super) struct BitRows<'a> {
    /// Words in a row.
    pub(super) words: usize,
    pub(super) bits: &'a [u64],
}

/// The words of some [`BitRows`] from `start` on.
struct BitColumns<'a> {
    rows: BitRows<'a>,
    start: usize,
}

impl Vector for BitColumns<'_> {
    #[inline(always)]
    fn add_to<V: Lane, const N: usize>(&self, j: usize, sum: Row<V, N>) -> Row<V, N> {
        sum.add_bits(&self.rows.bits[j * self.rows.words + self.start..][..N])
    }
}

/// A few rows of GF(256) coefficients.
pub(super) struct Coefficients(Stripes);

impl Coefficients {
    /// The HDPC matrix, left of its identity, times `vector`: `H` rows.
    pub(super) fn hdpc(params: &Params, pairs: &[[u8; 2]], vector: BitRows<'_>) -> Self {
        let (rows, width) = (params.h as usize, vector.words * LINE);
        let mut products = Stripes::new(Scratch::default(), rows, width);
        for index in 0..products.count() {
            let lines = products.lines(index);
            let start = products.bytes(index).start / LINE;
            let vector = BitColumns { rows: vector, start };
            let products = products.stripe_mut(index);
            InstructionSet::best().dispatch(lines, MultiplyBits { pairs, vector, products });
        }
        Self(products)
    }

    /// Row `i` is the sum of these rows, times row `i` of `factors`.
    pub(super) fn combine(&self, factors: &[Vec<u8>]) -> Self {
        let mut sums = Stripes::new(Scratch::default(), factors.len(), self.0.width());
        for index in 0..sums.count() {
            let kernel =
                CombineRows { rows: self.0.stripe(index), factors, sums: sums.stripe_mut(index) };
            InstructionSet::best().dispatch(self.0.lines(index), kernel);
        }
        Self(sums)
    }

    /// The coefficients of row `row`.
    pub(super) fn row(&self, row: usize) -> Vec<u8> {
        let mut out = vec![0; self.0.width()];
        self.0.read_row(row, &mut out);
        out
    }
}

struct MultiplyBits<'a> {
    pairs: &'a [[u8; 2]],
    vector: BitColumns<'a>,
    products: &'a mut [Line],
}

impl Kernel for MultiplyBits<'_> {
    #[inline(always)]
    fn run<V: Lane, const N: usize>(self) {
        multiply::<V, N>(self.pairs, &self.vector, self.products.as_chunks_mut::<N>().0);
    }
}

struct CombineRows<'a> {
    rows: &'a [Line],
    factors: &'a [Vec<u8>],
    sums: &'a mut [Line],
}

impl Kernel for CombineRows<'_> {
    #[inline(always)]
    fn run<V: Lane, const N: usize>(self) {
        let rows = self.rows.as_chunks::<N>().0;
        for (factors, to) in self.factors.iter().zip(self.sums.as_chunks_mut::<N>().0) {
            let mut sum = Row::<V, N>::zero();
            for (&factor, row) in factors.iter().zip(rows) {
                sum = sum.add_product(V::factor(factor), Row::load(row));
            }
            sum.store(to);
        }
    }
}
