//! The direct plan for a few lost symbols: each one is a combination of the available symbols.
//!
//! If a block lacks only `l` source symbols, it is enough to solve for those. The full block, which
//! is the same for all blocks of equal length, gives the coefficients of the source symbols in `l`
//! repair symbols. After the available symbols are subtracted, the repair symbols are `l` equations
//! in the lost ones: a small dense system. On bytes this is one dense product, which reads every
//! symbol once and needs little memory. The general plan accesses all intermediate symbols twice.
//! The direct plan takes `l` multiplications per byte, so it is faster only for few losses.

use super::full::FullBlock;
use super::{Params, isi_of};
use crate::bytes::kernel::{Before, Coefficients, InstructionSet, Kernel, Lane, MultiplyRows, Row};
use crate::bytes::line::{LINE, Line, MAX_STRIPE_LINES};
use crate::bytes::octets::OctetRows;
use crate::bytes::stripes::Stripes;
use crate::bytes::stripes::loading::LoadError;
use crate::decode::Work;
use crate::field::gf256;
use crate::ids::Esi;
use crate::plan::Run;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

/// A plan that computes lost source symbols from the others and as many repair symbols.
pub(crate) struct DirectPlan {
    /// `l`: the number of lost symbols, of repair symbols that replace them, and of equations.
    lost: usize,
    /// For each available symbol, source symbols first, its coefficient in each equation.
    coefficients: Vec<u8>,
    /// For each equation its coefficient in each lost symbol.
    inverse: Vec<u8>,
}

/// Available symbols that are added at a time. Measured, with half as many it takes 6 % longer.
const BATCH: usize = 64;

/// Lines of a stripe. Of AVX-512's registers, 4 lines leave the most to sums, and the fewest
/// unused.
const STRIPE_LINES: usize = 4;

/// Most lost symbols: a row of the system, and of the identity beside it, fit one row of a stripe.
const MOST_LOST: usize = MAX_STRIPE_LINES * LINE / 2;

/// Rows that are read in the time that the general plan takes for a source symbol: 20, and the rest
/// for planning, which the direct plan avoids. Measured, both take equally long at this value or a
/// little above.
const GENERAL_READS: usize = 28;

/// True if there is a direct plan for so many lost symbols on every processor.
pub(super) fn is_for(lost: usize) -> bool {
    let fastest = GENERAL_READS * InstructionSet::MOST_PRODUCTS_PER_SUM_OF_8 / 8;
    lost <= MOST_LOST.min(fastest)
}

/// True if the direct plan is faster than the general one, for a number that [`is_for`] allows.
pub(super) fn is_faster(instructions: InstructionSet, lost: usize) -> bool {
    lost <= GENERAL_READS * instructions.products_per_sum_of_8() / 8
}

/// The work to make a direct plan, beside the full block's program.
pub(super) fn work(params: &Params, lost: usize) -> Work {
    /// Rows that a program reads for each column.
    const READS: u64 = 20;
    /// Units per line of 64 octets: the instruction sets for which this is faster for more than a
    /// few losses process at least half a line at a time.
    const UNITS: u64 = 2;
    // The number of losses is not limited here: a `usize` of 32 bits cannot hold its square.
    let (lines, lost) = (lost.div_ceil(LINE) as u64, lost as u64);
    Work(UNITS * lines * (READS * u64::from(params.l) + 2 * lost * lost))
}

impl DirectPlan {
    /// The plan for source symbols `lost` if all others are available, with the repair symbols
    /// `repair`, one for each. `None` if these repair symbols do not suffice.
    pub(crate) fn new(
        instructions: InstructionSet,
        full: &FullBlock,
        source_symbols: u32,
        lost: &[Esi],
        repair: impl Iterator<Item = Esi>,
    ) -> Option<Self> {
        let isis: Vec<u32> = repair.map(|esi| isi_of(full.params(), source_symbols, esi)).collect();
        debug_assert!(isis.len() == lost.len() && (1..=MOST_LOST).contains(&lost.len()));
        let count = lost.len();
        let rows = full.rows(instructions, &isis);
        let octet = |row: usize, at: usize| rows[row][lost[at].0 as usize];
        let inverse = inverse(instructions, count, octet)?;
        let mut next_lost = lost.iter().map(|esi| esi.0).peekable();
        let available: Vec<u32> =
            (0..source_symbols).filter(|&esi| next_lost.next_if_eq(&esi).is_none()).collect();
        let mut coefficients = vec![0; source_symbols as usize * count];
        // As much of both at a time as the second-level cache holds.
        let pieces = coefficients.chunks_mut(BATCH * count).zip(available.chunks(BATCH));
        for (out, esis) in pieces {
            for (at, row) in rows.iter().enumerate() {
                let column = out.iter_mut().skip(at).step_by(count);
                column.zip(esis).for_each(|(out, &esi)| *out = row[esi as usize]);
            }
        }
        // Each repair symbol is in its own equation.
        (0..count).for_each(|i| coefficients[available.len() * count + i * (count + 1)] = 1);
        Some(Self { lost: count, coefficients, inverse })
    }

    /// Rows of memory that this takes.
    pub(crate) fn rows(&self) -> usize {
        BATCH + 2 * self.lost
    }

    /// Computes the lost symbols from the available symbols, `inputs`.
    pub(crate) fn run(&self, inputs: &[Esi], run: Run<'_>) -> Result<Stripes, LoadError> {
        let Run { instructions, width, scratch, source } = run;
        let mut symbols = Stripes::narrow(scratch, self.rows(), width, STRIPE_LINES);
        (BATCH..self.rows()).for_each(|row| symbols.clear_row(row));
        let batches = inputs.chunks(BATCH).zip(self.coefficients.chunks(BATCH * self.lost));
        for (esis, coefficients) in batches {
            let mut rows = esis.iter().copied().map(Some).zip(0..);
            source.load(instructions, &mut symbols, &mut rows)?;
            self.add(instructions, &mut symbols, coefficients, 0..BATCH);
        }
        self.add(instructions, &mut symbols, &self.inverse, BATCH..BATCH + self.lost);
        Ok(symbols)
    }

    /// Adds rows `from`, times `coefficients`, to the rows after them.
    fn add(
        &self,
        instructions: InstructionSet,
        symbols: &mut Stripes,
        coefficients: &[u8],
        from: Range<usize>,
    ) {
        for index in 0..symbols.count() {
            let lanes = symbols.lines(index);
            let rows = &mut symbols.stripe_mut(index)[from.start * lanes..];
            let (inputs, rest) = rows.split_at_mut(from.len() * lanes);
            let outputs = &mut rest[..self.lost * lanes];
            let coefficients = Coefficients::new(self.lost, coefficients);
            let before = Before::Added;
            instructions.run(MultiplyRows { coefficients, lanes, inputs, outputs, before });
        }
    }

    /// The row of lost symbol number `index` in the result of [`run`](Self::run).
    pub(crate) fn row(&self, index: usize) -> usize {
        BATCH + self.lost + index
    }
}

/// The inverse of a matrix of `count` rows and columns, [`MOST_LOST`] at most, with elements
/// `octet(row, column)`, column by column. `None` if the matrix is singular.
fn inverse(
    instructions: InstructionSet,
    count: usize,
    octet: impl Fn(usize, usize) -> u8,
) -> Option<Vec<u8>> {
    // Row i: row i of the transposed matrix, then row i of the identity. Inverse and transposition
    // commute: row i of the result is column i of the inverse.
    let mut rows = OctetRows::new(count, 2 * count);
    for row in 0..count {
        (0..count).for_each(|at| *rows.octet_mut(row, at) = octet(at, row));
        *rows.octet_mut(row, count + row) = 1;
    }
    let mut is_regular = true;
    let kernel = Eliminate { rows: &mut rows.octets, is_regular: &mut is_regular };
    instructions.dispatch((2 * count).div_ceil(LINE), kernel);
    let mut inverse = Vec::with_capacity(count * count);
    (0..count).for_each(|row| rows.append(row, count, count, &mut inverse));
    is_regular.then_some(inverse)
}

/// Gauss-Jordan elimination of a square matrix with more columns beside it.
struct Eliminate<'a> {
    rows: &'a mut [Line],
    /// Set to false if the matrix is singular.
    is_regular: &'a mut bool,
}

impl Kernel for Eliminate<'_> {
    #[inline(always)]
    fn run<V: Lane, const N: usize>(self) {
        let rows = self.rows.as_chunks_mut::<N>().0;
        for column in 0..rows.len() {
            let octet = |row: &[Line; N]| row[column / LINE].0[column % LINE];
            let Some(pivot) = (column..rows.len()).find(|&row| octet(&rows[row]) != 0) else {
                *self.is_regular = false;
                return;
            };
            rows.swap(column, pivot);
            let scale = V::factor(gf256::inverse(octet(&rows[column])));
            let pivot = Row::<V, N>::zero().add_product(scale, Row::load(&rows[column]));
            pivot.store(&mut rows[column]);
            for (index, row) in rows.iter_mut().enumerate() {
                let factor = octet(row);
                if index != column && factor != 0 {
                    Row::<V, N>::load(row).add_product(V::factor(factor), pivot).store(row);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::stripes::Scratch;
    use crate::bytes::xor_program::write_sums;
    use crate::field::gf256::mul;

    /// Pseudo-random octets.
    fn octets(count: usize, seed: u32) -> Vec<u8> {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        (0..count).map(|_| next()).collect()
    }

    #[test]
    fn a_matrix_times_its_inverse_is_the_identity() {
        for instructions in InstructionSet::available() {
            for n in [1, 2, 31, 32, 33, 64, 65, MOST_LOST] {
                let matrix = octets(n * n, n as u32);
                let Some(inverse) = inverse(instructions, n, |i, j| matrix[j * n + i]) else {
                    panic!("a random matrix of {n} columns")
                };
                for (j, column) in inverse.chunks(n).enumerate() {
                    for i in 0..n {
                        let products = (0..n).map(|m| mul(matrix[m * n + i], column[m]));
                        let sum = products.fold(0, |sum, product| sum ^ product);
                        assert_eq!(sum, u8::from(i == j), "{instructions:?}, {n}: ({i}, {j})");
                    }
                }
            }
        }
    }

    #[test]
    fn a_singular_matrix_has_no_inverse() {
        let n = 40;
        for instructions in InstructionSet::available() {
            let mut matrix = octets(n * n, 1);
            let twice: Vec<u8> = matrix[..n].iter().map(|&octet| mul(octet, 2)).collect();
            matrix[7 * n..8 * n].copy_from_slice(&twice);
            let found = inverse(instructions, n, |i, j| matrix[j * n + i]);
            assert!(found.is_none(), "{instructions:?}");
        }
    }

    /// Runs the program forwards on unit vectors.
    #[test]
    fn coefficients_are_those_of_the_program() {
        for k in [10, 101] {
            let params = Params::covering(k);
            let block = FullBlock::new(params);
            let full = block.program();
            let inputs = params.k_prime as usize;
            let isis = [params.k_prime, params.k_prime + 1, 3, 1_000_000, 0];
            let mut symbols = Stripes::new(Scratch::default(), params.l as usize, inputs);
            for (input, (_, row)) in full.inputs().enumerate() {
                let mut unit = vec![0; inputs];
                unit[input] = 1;
                symbols.write_row(row, &unit);
            }
            full.run(InstructionSet::best(), &mut symbols);
            let mut rows = vec![0; isis.len() * inputs];
            let sums = full.sums(isis.iter().copied());
            write_sums(InstructionSet::best(), &symbols, &sums, &mut rows);
            for instructions in InstructionSet::available() {
                let mut columns = full.coefficients(instructions, &isis);
                for input in 0..inputs {
                    for i in 0..isis.len() {
                        let coefficient = *columns.octet_mut(input, i);
                        let expected = rows[i * inputs + input];
                        assert_eq!(coefficient, expected, "{instructions:?}, K' = {inputs}");
                    }
                }
            }
        }
    }

    /// A direct plan exists if and only if the general one does.
    #[test]
    fn repair_symbols_suffice_if_the_matrix_has_full_rank() {
        use crate::codes::raptorq::planner::{Planned, plan};
        let params = Params::covering(10);
        let full = FullBlock::new(params);
        let mut failures = 0;
        for set in 0..3_000 {
            let kept = set % 5;
            let lost: Vec<Esi> = (kept..10).map(Esi).collect();
            let first = 10 + 97 * set;
            let repair = || (first..).map(Esi).take(lost.len());
            let isis: Vec<u32> = (0..kept).chain(repair().map(|esi| esi.0)).collect();
            let is_solved = matches!(plan(&params, &isis, Work::UNBOUNDED), Planned::Solved(_));
            let direct = DirectPlan::new(InstructionSet::best(), &full, 10, &lost, repair());
            assert_eq!(direct.is_some(), is_solved, "{isis:?}");
            failures += u32::from(!is_solved);
        }
        assert!(failures > 5, "{failures} sets that do not suffice");
    }
}
