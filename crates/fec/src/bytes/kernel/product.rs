//! Matrix times symbols: `outputs[i] = sum over j of coefficients[i][j] * inputs[j]` in GF(256).
//!
//! A product of `m` outputs and `n` inputs takes `m * n` multiplications for each byte. Computed
//! pair by pair, each multiplication would read and write an output. Here a tile of several outputs
//! stays in registers while the inputs are read, so an input is read once for several outputs, and
//! an output is written once per tile. [`Lane::ACCUMULATORS`] gives the shape of the tile. The
//! reference in the tests sums octet by octet.

use super::{Lane, LaneKernel, POLYNOMIAL, ProductTable, Row};
use crate::bytes::line::{LINE, Line};
use core::ops::Range;

/// Inputs per pass. 64 rows of at most 320 bytes and the outputs of a tile fit the first-level
/// cache (32 KB at least), so all tiles but the first read from it.
const INPUT_ROWS: usize = 64;

/// A coefficient: an element of GF(256), or a bit matrix.
pub(crate) trait Coefficient<V: Lane>: Copy {
    /// The factor of octets in the form of `table`; a bit matrix does not depend on it.
    fn factor(self, table: &ProductTable) -> V::Factor;
}

impl<V: Lane> Coefficient<V> for u8 {
    #[inline(always)]
    fn factor(self, table: &ProductTable) -> V::Factor {
        V::factor_of(table, self)
    }
}

/// A matrix, column after column: the factors of a tile for one input are contiguous.
#[derive(Clone, Copy)]
pub(crate) struct Coefficients<'a, C = u8> {
    /// Coefficients in a column.
    stride: usize,
    /// The first row of a column that is used, and the number of rows.
    first: usize,
    rows: usize,
    bytes: &'a [C],
    /// The form of the octets that are multiplied.
    table: &'static ProductTable,
}

impl<'a, C: Copy> Coefficients<'a, C> {
    /// `bytes` holds one column of `rows` coefficients after the other.
    pub(crate) fn new(rows: usize, bytes: &'a [C]) -> Self {
        debug_assert!(bytes.len().is_multiple_of(rows.max(1)), "whole columns");
        Self { stride: rows, first: 0, rows, bytes, table: &POLYNOMIAL }
    }

    /// The same coefficients, of octets in the form of `table`.
    pub(crate) fn of_form(self, table: &'static ProductTable) -> Self {
        Self { table, ..self }
    }

    /// A part of the rows; rows that do not exist are dropped.
    pub(crate) fn rows(self, rows: Range<usize>) -> Self {
        debug_assert!(rows.end <= self.rows);
        Self { first: self.first + rows.start, rows: rows.len(), ..self }
    }

    /// The number of columns: one for each input.
    pub(crate) fn columns(self) -> usize {
        self.bytes.len() / self.stride.max(1)
    }

    /// The `G` rows from `first` on of column `j`.
    #[inline(always)]
    fn column<const G: usize>(self, j: usize, first: usize) -> Option<&'a [C; G]> {
        const { assert!(G > 0) };
        self.bytes[j * self.stride + self.first + first..].first_chunk()
    }
}

/// The source of products.
pub(super) trait Inputs {
    /// Lanes of a row.
    fn lanes(&self) -> usize;
    /// `M` lanes of input `row`, from lane `lane * M` on. Always inlined, like all code on lanes.
    fn load<V: Lane, const M: usize>(&self, row: usize, lane: usize) -> Row<V, M>;
}

/// The destination of products.
pub(crate) trait Outputs {
    /// The number of outputs.
    fn count(&self) -> usize;
    /// `M` lanes of output `row`, from lane `lane * M` on. Always inlined, like all code on lanes.
    fn load<V: Lane, const M: usize>(&self, row: usize, lane: usize) -> Row<V, M>;
    /// Replaces what [`load`](Self::load) reads.
    fn store<V: Lane, const M: usize>(&mut self, row: usize, lane: usize, sum: Row<V, M>);
}

/// Rows of a stripe, one after the other.
pub(crate) struct Rows<L> {
    pub(crate) lines: L,
    /// Lanes of a row.
    pub(crate) lanes: usize,
}

impl Rows<&[Line]> {
    /// `M` lanes of a row, from lane `lane * M` on; `M` divides the number of lanes.
    #[inline(always)]
    fn chunk<const M: usize>(&self, row: usize, lane: usize) -> &[Line; M] {
        const { assert!(M > 0) };
        &self.lines.as_chunks::<M>().0[row * (self.lanes / M) + lane]
    }
}

impl Inputs for Rows<&[Line]> {
    #[inline(always)]
    fn lanes(&self) -> usize {
        self.lanes
    }

    #[inline(always)]
    fn load<V: Lane, const M: usize>(&self, row: usize, lane: usize) -> Row<V, M> {
        Row::load(self.chunk(row, lane))
    }
}

impl Outputs for Rows<&mut [Line]> {
    #[inline(always)]
    fn count(&self) -> usize {
        self.lines.len() / self.lanes.max(1)
    }

    #[inline(always)]
    fn load<V: Lane, const M: usize>(&self, row: usize, lane: usize) -> Row<V, M> {
        let rows = Rows { lines: &*self.lines, lanes: self.lanes };
        Row::load(rows.chunk(row, lane))
    }

    #[inline(always)]
    fn store<V: Lane, const M: usize>(&mut self, row: usize, lane: usize, sum: Row<V, M>) {
        sum.store(&mut self.lines.as_chunks_mut::<M>().0[row * (self.lanes / M) + lane]);
    }
}

/// Some columns of symbols that are contiguous in memory.
pub(crate) struct Symbols<'a> {
    pub(crate) bytes: &'a mut [u8],
    /// Bytes of a symbol.
    pub(crate) width: usize,
    /// The columns: as many as a row has bytes, or fewer at the end of the symbols.
    pub(crate) columns: Range<usize>,
}

impl Symbols<'_> {
    /// The byte range of `lanes` lanes of a symbol.
    #[inline(always)]
    fn range(&self, row: usize, lane: usize, lanes: usize) -> Range<usize> {
        let start = (self.columns.start + lane * lanes * LINE).min(self.columns.end);
        let end = (start + lanes * LINE).min(self.columns.end);
        row * self.width + start..row * self.width + end
    }
}

impl Outputs for Symbols<'_> {
    #[inline(always)]
    fn count(&self) -> usize {
        self.bytes.len().checked_div(self.width).unwrap_or(0)
    }

    #[inline(always)]
    fn load<V: Lane, const M: usize>(&self, row: usize, lane: usize) -> Row<V, M> {
        Row::load_bytes(&self.bytes[self.range(row, lane, M)])
    }

    #[inline(always)]
    fn store<V: Lane, const M: usize>(&mut self, row: usize, lane: usize, sum: Row<V, M>) {
        let range = self.range(row, lane, M);
        sum.store_bytes(&mut self.bytes[range]);
    }
}

/// The treatment of the previous bytes of the outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Before {
    /// The product is added to them.
    Added,
    /// The product replaces them.
    Replaced,
}

/// Multiplies. `coefficients` has one row for each output, and one column for each row of `inputs`,
/// which has the lanes of the outputs.
///
/// Only some numbers of lanes have a tile of their own, because each one costs compile time.
#[inline(always)]
pub(crate) fn multiply<V: Lane>(
    coefficients: Coefficients<'_, impl Coefficient<V>>,
    inputs: &impl Inputs,
    outputs: &mut impl Outputs,
    before: Before,
) {
    in_passes(coefficients, inputs, outputs, before, |pass, outputs| match V::ACCUMULATORS {
        // 32 registers, one per lane.
        25 => match inputs.lanes() {
            1 => pass.run::<V, 8, 1>(outputs),
            2 => pass.run::<V, 8, 2>(outputs),
            3 => pass.run::<V, 8, 3>(outputs),
            4 => pass.run::<V, 6, 4>(outputs),
            5 => pass.run::<V, 5, 5>(outputs),
            lanes => debug_assert!(false, "rows of {lanes} lanes"),
        },
        6 => pass.run::<V, 6, 1>(outputs),
        _ => pass.run::<V, 4, 1>(outputs),
    });
}

/// [`multiply`] of any number of lanes, which replaces the outputs. `M`, which is 1 or 5 and
/// divides the number of lanes, are computed together if registers suffice.
#[inline(always)]
pub(super) fn multiply_lanes<V: Lane, const M: usize>(
    coefficients: Coefficients<'_>,
    inputs: &impl Inputs,
    outputs: &mut impl Outputs,
) {
    in_passes(coefficients, inputs, outputs, Before::Replaced, |pass, outputs| {
        // Groups with four parity shards are common.
        let is_four = outputs.count() == 4;
        match (V::ACCUMULATORS, M) {
            (25, 5) if is_four => pass.tile::<V, 4, 5>(0, outputs),
            (25, 5) => pass.run::<V, 5, 5>(outputs),
            (25, _) => pass.run::<V, 8, 1>(outputs),
            (6, _) => pass.run::<V, 6, 1>(outputs),
            _ => pass.run::<V, 4, 1>(outputs),
        }
    });
}

/// Calls `run` for some inputs at a time.
#[inline(always)]
fn in_passes<'a, C: Copy, I: Inputs, O: Outputs>(
    coefficients: Coefficients<'a, C>,
    inputs: &'a I,
    outputs: &mut O,
    mut before: Before,
    mut run: impl FnMut(Pass<'a, C, I>, &mut O),
) {
    debug_assert_eq!(coefficients.rows, outputs.count());
    let mut from = 0;
    loop {
        let to = coefficients.columns().min(from + INPUT_ROWS);
        run(Pass { coefficients, from, to, inputs, before }, outputs);
        (from, before) = (to, Before::Added);
        if to == coefficients.columns() {
            break;
        }
    }
}

/// Some columns of the coefficients.
struct Pass<'a, C, I> {
    coefficients: Coefficients<'a, C>,
    from: usize,
    to: usize,
    inputs: &'a I,
    before: Before,
}

impl<C: Copy, I: Inputs> Pass<'_, C, I> {
    /// Tiles of `G` outputs and `M` lanes, and smaller ones for the last outputs.
    #[inline(always)]
    fn run<V: Lane, const G: usize, const M: usize>(&self, outputs: &mut impl Outputs)
    where
        C: Coefficient<V>,
    {
        let count = outputs.count();
        let mut first = 0;
        while first + G <= count {
            self.tile::<V, G, M>(first, outputs);
            first += G;
        }
        while first + 2 <= count {
            self.tile::<V, 2, M>(first, outputs);
            first += 2;
        }
        if first < count {
            self.tile::<V, 1, M>(first, outputs);
        }
    }

    /// Outputs `first..first + G`, `M` lanes at a time. `M` divides the number of lanes.
    #[inline(always)]
    fn tile<V: Lane, const G: usize, const M: usize>(
        &self,
        first: usize,
        outputs: &mut impl Outputs,
    ) where
        C: Coefficient<V>,
    {
        for lane in 0..self.inputs.lanes() / M {
            let mut sums = [Row::<V, M>::zero(); G];
            if self.before == Before::Added {
                for (row, sum) in (first..).zip(&mut sums) {
                    *sum = outputs.load(row, lane);
                }
            }
            for j in self.from..self.to {
                let input = self.operands::<V, M>(j, lane);
                // Every input and output has a factor.
                let Some(factors) = self.coefficients.column::<G>(j, first) else { continue };
                for (sum, &factor) in sums.iter_mut().zip(factors) {
                    let factor = factor.factor(self.coefficients.table);
                    for (sum, &input) in sum.0.iter_mut().zip(&input) {
                        *sum = sum.xor(V::product(input, factor));
                    }
                }
            }
            for (row, sum) in (first..).zip(sums) {
                outputs.store(row, lane, sum);
            }
        }
    }

    /// `M` lanes of an input.
    #[inline(always)]
    fn operands<V: Lane, const M: usize>(&self, j: usize, lane: usize) -> [V::Operand; M] {
        let mut operands = [V::zero().operand(); M];
        for (operand, lane) in operands.iter_mut().zip(self.inputs.load::<V, M>(j, lane).0) {
            *operand = lane.operand();
        }
        operands
    }
}

/// [`multiply`] from a stripe to a stripe.
pub(crate) struct MultiplyRows<'a> {
    pub(crate) coefficients: Coefficients<'a>,
    /// Lanes of a row of both, 1 to [`MAX_STRIPE_LINES`](crate::bytes::stripes::MAX_STRIPE_LINES).
    pub(crate) lanes: usize,
    /// Row after row.
    pub(crate) inputs: &'a [Line],
    pub(crate) outputs: &'a mut [Line],
    pub(crate) before: Before,
}

impl LaneKernel for MultiplyRows<'_> {
    #[inline(always)]
    fn run<V: Lane>(self) {
        let lanes = self.lanes;
        let inputs = Rows { lines: self.inputs, lanes };
        let mut outputs = Rows { lines: self.outputs, lanes };
        multiply::<V>(self.coefficients, &inputs, &mut outputs, self.before);
    }
}

/// [`MultiplyRows`] from a stripe to symbols.
pub(crate) struct MultiplyOut<'a> {
    pub(crate) coefficients: Coefficients<'a>,
    /// As in [`MultiplyRows`].
    pub(crate) lanes: usize,
    /// Row after row.
    pub(crate) inputs: &'a [Line],
    pub(crate) outputs: Symbols<'a>,
}

impl LaneKernel for MultiplyOut<'_> {
    #[inline(always)]
    fn run<V: Lane>(mut self) {
        let inputs = Rows { lines: self.inputs, lanes: self.lanes };
        multiply::<V>(self.coefficients, &inputs, &mut self.outputs, Before::Replaced);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::kernel::InstructionSet;
    use crate::bytes::line::{LINE, MAX_STRIPE_LINES};
    use crate::field::gf256::mul;

    fn octets(count: usize, seed: usize) -> Vec<u8> {
        (0..count).map(|i| ((i + seed) * 7919 % 65_537 % 251) as u8).collect()
    }

    fn lines(count: usize, seed: usize) -> Vec<Line> {
        let bytes = octets(count * LINE, seed);
        bytes.as_chunks::<LINE>().0.iter().map(|&line| Line(line)).collect()
    }

    /// Output by output, input by input, octet by octet.
    fn reference(coefficients: Coefficients<'_>, inputs: &[Line], outputs: &mut [Line], n: usize) {
        for (i, output) in outputs.chunks_mut(n).enumerate() {
            for (j, input) in inputs.chunks(n).enumerate() {
                let factor = coefficients.bytes[j * coefficients.rows + i];
                for (to, from) in output.iter_mut().zip(input) {
                    to.0.iter_mut().zip(from.0).for_each(|(to, from)| *to ^= mul(factor, from));
                }
            }
        }
    }

    #[test]
    fn every_instruction_set_agrees_with_octets() {
        // Both ends of every tile, and of the inputs of a pass.
        let most = 2 * INPUT_ROWS + 1;
        let shapes = (0..18).map(|outputs| (outputs, 3)).chain(
            [0, 1, 2, INPUT_ROWS - 1, INPUT_ROWS, INPUT_ROWS + 1, most].map(|inputs| (7, inputs)),
        );
        for (m, n) in shapes {
            for lanes in 1..=MAX_STRIPE_LINES {
                let bytes = octets(m * n, m);
                let coefficients = Coefficients::new(m, &bytes);
                let inputs = lines(n * lanes, n);
                let before = lines(m * lanes, 77);
                let mut expected = before.clone();
                reference(coefficients, &inputs, &mut expected, lanes);
                for instructions in InstructionSet::available() {
                    let mut outputs = before.clone();
                    instructions.run(MultiplyRows {
                        coefficients,
                        lanes,
                        inputs: &inputs,
                        outputs: &mut outputs,
                        before: Before::Added,
                    });
                    let same = outputs.iter().zip(&expected).all(|(a, b)| a.0 == b.0);
                    assert!(same, "{instructions:?}: {m} outputs, {n} inputs, {lanes} lanes");
                }
            }
        }
    }

    #[test]
    fn symbols_may_end_at_any_byte_and_keep_what_is_beside_the_columns() {
        let (m, n, lanes) = (7, INPUT_ROWS + 1, 2);
        let bytes = octets(m * n, m);
        let coefficients = Coefficients::new(m, &bytes);
        let inputs = lines(n * lanes, n);
        let mut expected = vec![Line::ZERO; m * lanes];
        reference(coefficients, &inputs, &mut expected, lanes);
        for instructions in InstructionSet::available() {
            for end in (0..=lanes * LINE).step_by(13) {
                let width = end + 9;
                let mut out = vec![0xAA; m * width];
                let outputs = Symbols { bytes: &mut out, width, columns: 5..5 + end };
                let kernel = MultiplyOut { coefficients, lanes, inputs: &inputs, outputs };
                instructions.run(kernel);
                for (row, out) in out.chunks(width).enumerate() {
                    let expected = expected[row * lanes..][..lanes].iter().flat_map(|line| line.0);
                    let expected: Vec<u8> =
                        [0xAA; 5].into_iter().chain(expected.take(end)).chain([0xAA; 4]).collect();
                    assert_eq!(out, expected, "{instructions:?}, {end} bytes, row {row}");
                }
            }
        }
    }
}
