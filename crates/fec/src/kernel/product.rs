//! Matrix times symbols: `outputs[i] += sum over j of coefficients[i][j] * inputs[j]` in GF(256).
//!
//! A product of `m` outputs and `n` inputs has `m * n` multiplications for each byte, and done pair
//! by pair each of them would read and write an output. Here a tile of several outputs stays in
//! registers while the inputs pass by: what is read is one input for several outputs, and what is
//! written is nothing until the tile is done. The shape of the tile is the instruction set's
//! ([`Lane::ACCUMULATORS`]); the sum octet by octet is the reference in the tests.

use super::{Kernel, Lane, Row};
use crate::stripes::Line;

/// Inputs that pass by at a time: 64 rows of at most 320 bytes and the outputs of a tile fit the
/// first-level cache (32 KB at least), so all tiles but the first read from there.
const INPUT_ROWS: usize = 64;

/// A matrix over GF(256), one column after the other: a tile finds its factors for an input in one
/// place.
#[derive(Clone, Copy)]
pub(crate) struct Coefficients<'a> {
    rows: usize,
    bytes: &'a [u8],
}

impl<'a> Coefficients<'a> {
    /// `bytes` holds one column of `rows` octets after the other.
    pub(crate) fn new(rows: usize, bytes: &'a [u8]) -> Self {
        debug_assert!(bytes.len().is_multiple_of(rows.max(1)), "whole columns");
        Self { rows, bytes }
    }

    /// One column for each input.
    pub(crate) fn columns(self) -> usize {
        self.bytes.len() / self.rows.max(1)
    }

    /// Of column `j` the rows from `first` on.
    #[inline(always)]
    fn column<const G: usize>(self, j: usize, first: usize) -> &'a [u8; G] {
        const { assert!(G > 0) };
        self.bytes[j * self.rows + first..].first_chunk().unwrap_or(&[0; G])
    }
}

/// Adds the product to `outputs`, one row for each row of `coefficients`. `input` gives the row for
/// each of its columns.
#[inline(always)]
pub(crate) fn multiply_add<'a, V: Lane, const N: usize>(
    coefficients: Coefficients<'_>,
    input: impl Fn(usize) -> &'a [Line; N] + Copy,
    outputs: &mut [[Line; N]],
) {
    for from in (0..coefficients.columns()).step_by(INPUT_ROWS) {
        let to = coefficients.columns().min(from + INPUT_ROWS);
        let pass = Pass { coefficients, from, to, input };
        match V::ACCUMULATORS {
            Accumulators::TwentyFive => match N {
                1 => pass.run::<V, N, 8, 1>(outputs),
                2 => pass.run::<V, N, 8, 2>(outputs),
                3 => pass.run::<V, N, 8, 3>(outputs),
                4 => pass.run::<V, N, 6, 4>(outputs),
                _ => pass.run::<V, N, 5, 5>(outputs),
            },
            Accumulators::Six => pass.run::<V, N, 6, 1>(outputs),
            Accumulators::Four => pass.run::<V, N, 4, 1>(outputs),
        }
    }
}

/// How many lanes of sums an instruction set has registers for, beside what is being added.
#[derive(Clone, Copy)]
pub(crate) enum Accumulators {
    /// Of 32 registers.
    TwentyFive,
    /// Of 16 registers of half a lane.
    Six,
    /// Of the same, where an operand takes twice the room.
    Four,
}

/// Some columns of the coefficients.
#[derive(Clone, Copy)]
struct Pass<'a, F> {
    coefficients: Coefficients<'a>,
    from: usize,
    to: usize,
    input: F,
}

impl<'a, F> Pass<'_, F> {
    /// Tiles of `G` outputs and `M` lanes, and smaller ones for the last outputs.
    #[inline(always)]
    fn run<V: Lane, const N: usize, const G: usize, const M: usize>(self, outputs: &mut [[Line; N]])
    where
        F: Fn(usize) -> &'a [Line; N] + Copy,
    {
        let (tiles, rest) = outputs.as_chunks_mut::<G>();
        let mut first = 0;
        for tile in tiles {
            self.tile::<V, N, G, M>(first, tile);
            first += G;
        }
        let (pairs, rest) = rest.as_chunks_mut::<2>();
        for pair in pairs {
            self.tile::<V, N, 2, M>(first, pair);
            first += 2;
        }
        if let [last] = rest {
            self.tile::<V, N, 1, M>(first, std::array::from_mut(last));
        }
    }

    /// Outputs `first..first + G`, `M` lanes at a time. `M` divides `N`.
    #[inline(always)]
    fn tile<V: Lane, const N: usize, const G: usize, const M: usize>(
        self,
        first: usize,
        outputs: &mut [[Line; N]; G],
    ) where
        F: Fn(usize) -> &'a [Line; N] + Copy,
    {
        for lane in 0..N / M {
            let mut sums = [Row::<V, M>::zero(); G];
            for (sum, output) in sums.iter_mut().zip(&*outputs) {
                *sum = Row::load(&output.as_chunks::<M>().0[lane]);
            }
            for j in self.from..self.to {
                let input = self.operands::<V, N, M>(j, lane);
                let factors = self.coefficients.column::<G>(j, first);
                for (sum, &factor) in sums.iter_mut().zip(factors) {
                    let factor = V::factor(factor);
                    for (sum, &input) in sum.0.iter_mut().zip(&input) {
                        *sum = sum.xor(V::product(input, factor));
                    }
                }
            }
            for (sum, output) in sums.into_iter().zip(&mut *outputs) {
                sum.store(&mut output.as_chunks_mut::<M>().0[lane]);
            }
        }
    }
}

impl<'a, F> Pass<'_, F> {
    /// `M` lanes of an input.
    #[inline(always)]
    fn operands<V: Lane, const N: usize, const M: usize>(
        &self,
        j: usize,
        lane: usize,
    ) -> [V::Operand; M]
    where
        F: Fn(usize) -> &'a [Line; N] + Copy,
    {
        let row = &(self.input)(j).as_chunks::<M>().0[lane];
        let mut operands = [V::zero().operand(); M];
        for (operand, line) in operands.iter_mut().zip(row) {
            *operand = V::load(&line.0).operand();
        }
        operands
    }
}

/// [`multiply_add`] on rows of a number of lanes that is known at run time only.
pub(crate) struct MultiplyAdd<'a> {
    pub(crate) coefficients: Coefficients<'a>,
    /// One row of lines after the other.
    pub(crate) inputs: &'a [Line],
    pub(crate) outputs: &'a mut [Line],
}

impl Kernel for MultiplyAdd<'_> {
    #[inline(always)]
    fn run<V: Lane, const N: usize>(self) {
        let inputs = self.inputs.as_chunks::<N>().0;
        let outputs = self.outputs.as_chunks_mut::<N>().0;
        multiply_add::<V, N>(self.coefficients, |j| &inputs[j], outputs);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gf256::mul;
    use crate::kernel::InstructionSet;
    use crate::stripes::{LINE, MAX_STRIPE_LINES};

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
        // Both ends of every tile, and of the inputs that pass by at a time.
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
                    let outputs_at = &mut outputs;
                    let kernel = MultiplyAdd { coefficients, inputs: &inputs, outputs: outputs_at };
                    instructions.dispatch(lanes, kernel);
                    let same = outputs.iter().zip(&expected).all(|(a, b)| a.0 == b.0);
                    assert!(same, "{instructions:?}: {m} outputs, {n} inputs, {lanes} lanes");
                }
            }
        }
    }

    /// `cargo test -p fontana-fec --release -- --ignored --nocapture products_per_second`
    #[test]
    #[ignore = "a measurement"]
    #[allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a measurement")]
    fn products_per_second() {
        for (m, n) in [(32, 32), (16, 32), (48, 1_000), (48, 10_000)] {
            for lanes in 1..=MAX_STRIPE_LINES {
                let bytes = octets(m * n, m);
                let coefficients = Coefficients::new(m, &bytes);
                let (inputs, mut outputs) = (lines(n * lanes, n), lines(m * lanes, 77));
                for instructions in InstructionSet::available() {
                    let mut best = f64::MAX;
                    let runs = 40_000_000 / (m * n * lanes * LINE) + 1;
                    for _ in 0..15 {
                        let start = std::time::Instant::now();
                        for _ in 0..runs {
                            let kernel = MultiplyAdd {
                                coefficients,
                                inputs: &inputs,
                                outputs: &mut outputs,
                            };
                            instructions.dispatch(lanes, kernel);
                        }
                        best = best.min(start.elapsed().as_secs_f64() / runs as f64);
                    }
                    let rate = (m * n * lanes * LINE) as f64 / best / 1e9;
                    println!("{m} x {n}, {lanes} lanes, {instructions:?}: {rate:.0} GB/s");
                }
            }
        }
    }
}
