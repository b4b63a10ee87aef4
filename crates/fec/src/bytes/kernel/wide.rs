//! Sums of products with factors from GF(2^16).
//!
//! A row of elements is two rows of octets, its *planes*: the upper octets of all elements, then
//! the lower ones. Multiplication by a constant is linear in the sixteen bits of an element: four
//! matrices of 8 x 8 bits map two planes to two planes. [`multiply`] computes such products, with
//! bit matrices instead of octets. The matrices of all factors would take 32 bytes or more for each
//! factor, so they are made for some inputs and outputs at a time.

use super::product::{Coefficient, Rows, multiply};
use super::{Before, Coefficients, Lane, LaneKernel, ProductTable};
use crate::bytes::line::LINE;
use crate::bytes::stripes::Stripes;
use crate::field::gf65536::Field;
use alloc::vec;

/// Lanes of a row of a stripe. With few lanes, more outputs fit the registers. Rows that are not a
/// multiple of it are padded.
const LANES: usize = 2;

/// Bytes of a row of a stripe; the size of a plane is a multiple of it.
pub(crate) const WIDE_ROW: usize = LANES * LINE;

/// Inputs and outputs whose factors are made at a time: their bit matrices (32 or 128 KB) fit the
/// second-level cache.
const INPUTS: usize = 64;
const OUTPUTS: usize = 16;

/// Replaces each row of elements in `outputs` by a sum of products of those in `inputs`. Both have
/// stripes of [`WIDE_ROW`] bytes, and the same width.
pub(crate) struct MultiplyWide<'a, F> {
    pub(crate) field: &'a Field,
    /// The factor of an output and an input.
    pub(crate) factor: F,
    pub(crate) inputs: &'a Stripes,
    pub(crate) outputs: &'a mut Stripes,
}

impl<F: Fn(usize, usize) -> u16> LaneKernel for MultiplyWide<'_, F> {
    #[inline(always)]
    fn run<V: Lane>(self) {
        let (inputs, outputs) = (self.inputs.rows() / 2, self.outputs.rows() / 2);
        let mut matrices = vec![Matrix::<V>(V::matrix(0)); 2 * INPUTS.min(inputs) * 2 * OUTPUTS];
        for first_output in (0..outputs).step_by(OUTPUTS) {
            let some_outputs = first_output..outputs.min(first_output + OUTPUTS);
            for first_input in (0..inputs).step_by(INPUTS) {
                let some_inputs = first_input..inputs.min(first_input + INPUTS);
                let used = 2 * some_inputs.len() * 2 * OUTPUTS;
                // The columns of the upper and of the lower plane of an input.
                let columns = matrices.chunks_exact_mut(4 * OUTPUTS);
                for (input, columns) in some_inputs.zip(columns) {
                    let (upper, lower) = columns.split_at_mut(2 * OUTPUTS);
                    let rows = upper.as_chunks_mut().0.iter_mut().zip(lower.as_chunks_mut().0);
                    for (output, (upper, lower)) in some_outputs.clone().zip(rows) {
                        let [a, b, c, d] = self.field.matrices((self.factor)(output, input));
                        *upper = [Matrix(V::matrix(a)), Matrix(V::matrix(c))];
                        *lower = [Matrix(V::matrix(b)), Matrix(V::matrix(d))];
                    }
                }
                let coefficients = Coefficients::new(2 * OUTPUTS, &matrices[..used]);
                let coefficients = coefficients.rows(0..2 * some_outputs.len());
                let before = if first_input == 0 { Before::Replaced } else { Before::Added };
                for index in 0..self.inputs.count() {
                    let lines = &self.inputs.stripe(index)[2 * first_input * LANES..];
                    let to = 2 * some_outputs.start * LANES..2 * some_outputs.end * LANES;
                    let to = &mut self.outputs.stripe_mut(index)[to];
                    let mut outputs = Rows { lines: to, lanes: LANES };
                    let inputs = Rows { lines, lanes: LANES };
                    multiply(coefficients, &inputs, &mut outputs, before);
                }
            }
        }
    }
}

/// A matrix that a lane converts into a factor.
struct Matrix<V: Lane>(V::Matrix);

impl<V: Lane> Clone for Matrix<V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<V: Lane> Copy for Matrix<V> {}

impl<V: Lane> Coefficient<V> for Matrix<V> {
    #[inline(always)]
    fn factor(self, _table: &ProductTable) -> V::Factor {
        V::matrix_factor(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::kernel::InstructionSet;
    use crate::bytes::stripes::Scratch;
    use crate::field::gf65536::field;

    /// Elements without a period that is a power of two, zeros among them.
    fn element(row: usize, column: usize) -> u16 {
        ((row * 61 + column + 1) * 7919 % 65_537) as u16
    }

    fn stripes(rows: usize) -> Stripes {
        let mut stripes = Stripes::narrow(Scratch::default(), 2 * rows, 2 * WIDE_ROW, LANES);
        for row in 0..rows {
            for plane in 0..2 {
                let octet = |column| element(row, column).to_be_bytes()[plane];
                let octets: Vec<u8> = (0..2 * WIDE_ROW).map(octet).collect();
                stripes.write_row(2 * row + plane, &octets);
            }
        }
        stripes
    }

    #[test]
    fn every_instruction_set_agrees_with_elements() {
        let field = field();
        let product = |a: u16, b: u16| match (a, b) {
            (0, _) | (_, 0) => 0,
            _ => field.alpha_power(field.log(a) + field.log(b)),
        };
        let factor = |output: usize, input: usize| element(output + 1000, input);
        // Both ends of what is multiplied at a time.
        let shapes = [(1, 1), (3, INPUTS), (OUTPUTS, INPUTS + 1), (2 * OUTPUTS + 1, 2 * INPUTS)];
        for (m, n) in shapes {
            let inputs = stripes(n);
            for instructions in InstructionSet::available() {
                let mut outputs = stripes(m);
                let kernel = MultiplyWide { field, factor, inputs: &inputs, outputs: &mut outputs };
                instructions.run(kernel);
                for output in 0..m {
                    let mut planes = [vec![0; 2 * WIDE_ROW], vec![0; 2 * WIDE_ROW]];
                    for (plane, octets) in planes.iter_mut().enumerate() {
                        outputs.read_row(2 * output + plane, octets);
                    }
                    let octets = planes[0].iter().zip(&planes[1]);
                    for (column, (&upper, &lower)) in octets.enumerate() {
                        let sum = (0..n).fold(0, |sum, input| {
                            sum ^ product(factor(output, input), element(input, column))
                        });
                        let actual = u16::from_be_bytes([upper, lower]);
                        assert_eq!(actual, sum, "{instructions:?}, {m} of {n}");
                    }
                }
            }
        }
    }
}
