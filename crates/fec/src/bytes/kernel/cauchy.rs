//! Sums with the factors of a Cauchy matrix: `outputs[t] = b_t * sum over r of a_r inputs[r] /
//! (x_t + x_r)` in GF(256), for points `x` that all differ. One number of operations serves all
//! numbers of inputs and outputs. In GF(2^16) the points lie in the smallest subspace that has
//! them.
//!
//! Let `f` be the polynomial of degree below 256 whose value at `x_r` is `v_r`, and 0 at all other
//! elements of the field. Then the sum of `v_r / (x + x_r)` over all `x_r` but `x` is `f'(x)`: the
//! Lagrange polynomial of `x_r` is `(x^256 + x) / (x + x_r)`, because the product of all elements
//! but 0 is 1. So the sums are an interpolation, a derivative and an evaluation at all elements.
//! Both transforms are the additive FFT of S.-J. Lin, W.-H. Chung and Y. S. Han ("Novel polynomial
//! basis and its application to Reed-Solomon erasure codes", FOCS 2014), here on the elements and
//! the polynomials of [`cantor_basis`](crate::field::cantor_basis).
//!
//! A position is an element's bits in that basis. In the polynomial basis, coefficient `i` belongs
//! to the product of the `s_j` of the bits `j` of `i`. All `s_j` have the derivative 1, so the
//! derivative moves coefficients from `i` to `i` without one of its bits. Eight layers of
//! butterflies with distances 1, 2, ... 128 interpolate, and the same layers backwards evaluate.
//! The upper four layers act on equal positions of the 16 parts of 16 positions, with the same
//! factors for each. So they commute with the derivative by the lower four bits:
//!
//! 1. Each part is interpolated in registers.
//! 2. Position by position, the 16 parts are interpolated, differentiated by the upper four bits,
//!    and evaluated again. The derivative of step 1 by the lower four bits is added.
//! 3. Each part is evaluated in registers.
//!
//! This runs in place on one lane at a time: its 256 positions fit half of a first-level cache.
//! Parts without inputs are skipped in step 1, parts without outputs in step 3. Larger subspaces
//! have passes over four layers between steps 1 and 2, and back between steps 2 and 3. The
//! reference in the tests sums octet by octet.

use super::product::{Inputs, Outputs, Rows, Symbols};
use super::tree::{
    Four, LaneField, Octets, One, PAIR_PART, PART, Part, Tree, Two, Values, evaluate, interpolate,
};
use super::{Lane, LaneKernel, POLYNOMIAL, ProductTable};
use crate::bytes::line::Line;
use crate::field::cantor_basis::{ELEMENTS, POINTS, POSITIONS};
use crate::field::gf256::{inverse, mul};
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::marker::PhantomData;

/// The inputs of sums: their points and factors. Constants are `C`, octets or 16 bits.
pub(crate) struct CauchyInputs<C = u8> {
    /// For each position, the row of its input and the factor; factor 0 if it has none.
    sources: Vec<Source<C>>,
    /// For each part of as many positions as are in registers together, whether it has an input.
    parts: Box<[bool]>,
    rows: usize,
}

#[derive(Clone, Copy, Default)]
struct Source<C> {
    row: u16,
    factor: C,
}

/// The outputs of sums: their points and factors.
pub(crate) struct CauchyOutputs<C = u8> {
    /// By position.
    targets: Vec<Target<C>>,
}

#[derive(Clone, Copy)]
struct Target<C> {
    position: u16,
    /// The number of the output.
    row: u32,
    factor: C,
}

/// A point of the field, and the factor of its symbol.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CauchyPoint<C = u8> {
    pub(crate) point: C,
    pub(crate) factor: C,
}

impl<C: Copy + Default + PartialEq> CauchyInputs<C> {
    /// The inputs in the order of their rows, each with its position among `positions`, a multiple
    /// of `part`, and its factor. The positions differ.
    fn at(positions: usize, part: usize, inputs: impl Iterator<Item = (usize, C)>) -> Self {
        let mut sources = vec![Source::default(); positions];
        let mut parts = vec![false; positions / part].into_boxed_slice();
        let mut rows = 0;
        for (position, factor) in inputs {
            sources[position] = Source { row: rows as u16, factor };
            parts[position / part] = true;
            rows += 1;
        }
        Self { sources, parts, rows }
    }

    /// The number of positions.
    pub(super) fn positions(&self) -> usize {
        self.sources.len()
    }
}

impl CauchyInputs<u16> {
    /// The inputs in the order of their rows, with different points below `positions`, a power of
    /// two. The points are positions, and so are the factors.
    pub(crate) fn in_subspace(
        positions: usize,
        inputs: impl Iterator<Item = CauchyPoint<u16>>,
    ) -> Self {
        let input = |CauchyPoint { point, factor }| (usize::from(point), factor);
        Self::at(positions.max(PAIR_PART), PAIR_PART, inputs.map(input))
    }
}

impl CauchyInputs {
    /// The inputs in the order of their rows, at most 255, with different points.
    pub(crate) fn new(inputs: impl Iterator<Item = CauchyPoint>) -> Self {
        let position = |point: u8| usize::from(POSITIONS[usize::from(point)]);
        let inputs = inputs.map(|CauchyPoint { point, factor }| (position(point), factor));
        let inputs = Self::at(POINTS, PART, inputs);
        debug_assert!(inputs.rows < POINTS, "the points differ, and one is an output's");
        inputs
    }

    /// The matrix whose products with the inputs are the `outputs`, column by column.
    pub(crate) fn factors(&self, outputs: &CauchyOutputs) -> Vec<u8> {
        let count = outputs.targets.len();
        let mut factors = vec![0; self.rows * count];
        for (position, source) in self.sources.iter().enumerate().filter(|(_, s)| s.factor != 0) {
            for target in &outputs.targets {
                let sum = ELEMENTS[position] ^ ELEMENTS[usize::from(target.position)];
                factors[usize::from(source.row) * count + target.row as usize] =
                    mul(mul(source.factor, target.factor), inverse(sum));
            }
        }
        factors
    }
}

impl<C> CauchyOutputs<C> {
    /// The outputs in their order, each with its position and its factor.
    fn at(outputs: impl Iterator<Item = (u16, C)>) -> Self {
        let target = |(row, (position, factor))| Target { position, row, factor };
        let mut targets: Vec<Target<C>> = (0..).zip(outputs).map(target).collect();
        targets.sort_unstable_by_key(|target| (target.position, target.row));
        Self { targets }
    }
}

impl CauchyOutputs<u16> {
    /// The outputs in their order. None has the point of an input.
    pub(crate) fn in_subspace(outputs: impl Iterator<Item = CauchyPoint<u16>>) -> Self {
        Self::at(outputs.map(|CauchyPoint { point, factor }| (point, factor)))
    }
}

impl CauchyOutputs {
    /// The outputs in their order. None has the point of an input.
    pub(crate) fn new(outputs: impl Iterator<Item = CauchyPoint>) -> Self {
        let position = |point: u8| u16::from(POSITIONS[usize::from(point)]);
        Self::at(outputs.map(|CauchyPoint { point, factor }| (position(point), factor)))
    }
}

/// What a step computes, for the lane at work: 16 KB for 256 positions, to be used again for the
/// next stripe.
pub(crate) struct CauchyWork(Vec<Line>);

impl CauchyWork {
    pub(crate) fn new() -> Self {
        Self::of_lines(POINTS)
    }

    pub(super) fn of_lines(lines: usize) -> Self {
        Self(vec![Line::ZERO; lines])
    }
}

/// Sums of rows of one stripe.
#[derive(Clone, Copy)]
pub(crate) struct CauchySums<'a> {
    pub(crate) inputs: &'a CauchyInputs,
    pub(crate) outputs: &'a CauchyOutputs,
    /// Lanes of a row of the stripe.
    pub(crate) lanes: usize,
    /// The rows of the inputs, one after another.
    pub(crate) rows: &'a [Line],
}

/// [`CauchySums`] that replace rows of a stripe.
pub(crate) struct CauchyRows<'a> {
    pub(crate) sums: CauchySums<'a>,
    pub(crate) work: &'a mut CauchyWork,
    pub(crate) outputs: &'a mut [Line],
}

impl LaneKernel for CauchyRows<'_> {
    #[inline(always)]
    fn run<V: Lane>(self) {
        let mut outputs = Rows { lines: self.outputs, lanes: self.sums.lanes };
        self.sums.run::<V>(self.work, &mut outputs);
    }
}

/// [`CauchySums`] that replace columns of symbols.
pub(crate) struct CauchyOut<'a> {
    pub(crate) sums: CauchySums<'a>,
    pub(crate) work: &'a mut CauchyWork,
    pub(crate) outputs: Symbols<'a>,
}

impl LaneKernel for CauchyOut<'_> {
    #[inline(always)]
    fn run<V: Lane>(mut self) {
        self.sums.run::<V>(self.work, &mut self.outputs);
    }
}

impl CauchySums<'_> {
    #[inline(always)]
    fn run<V: Lane>(self, work: &mut CauchyWork, outputs: &mut impl Outputs) {
        let rows = Rows { lines: self.rows, lanes: self.lanes };
        let points = CauchyPoints { inputs: self.inputs, outputs: self.outputs };
        points.sum_octets::<V>(&POLYNOMIAL, &rows, work, outputs);
    }
}

/// The points of sums.
#[derive(Clone, Copy)]
pub(super) struct CauchyPoints<'a, C> {
    pub(super) inputs: &'a CauchyInputs<C>,
    pub(super) outputs: &'a CauchyOutputs<C>,
}

impl CauchyPoints<'_, u8> {
    /// Sums of octets in the form of `table`, at the 256 elements of the field.
    #[inline(always)]
    pub(super) fn sum_octets<V: Lane>(
        self,
        table: &ProductTable,
        inputs: &impl Inputs,
        work: &mut CauchyWork,
        outputs: &mut impl Outputs,
    ) {
        let field = Octets(table);
        let Some(lines) = work.0.first_chunk_mut::<POINTS>() else { return };
        for lane in 0..inputs.lanes() {
            self.interpolate_parts::<V, _>(field, inputs, lane, lines);
            sum_over_parts::<V, _, Part<V>>(field, lines, PART);
            self.evaluate_parts::<V, _>(field, lane, lines, outputs);
        }
    }
}

impl<C: Copy + PartialEq> CauchyPoints<'_, C> {
    /// Sums at as many positions as `work` and the inputs have.
    #[inline(always)]
    pub(super) fn sum<V: Lane, F: LaneField<V, Constant = C>>(
        self,
        field: F,
        inputs: &impl Inputs,
        work: &mut CauchyWork,
        outputs: &mut impl Outputs,
    ) {
        let lines = work.0.as_mut_slice();
        // The layers of step 2 are those above, two at most.
        let (least, all) = (F::Part::LEN, lines.len() / F::LINES);
        let upper = (all / least).ilog2().min(2 - (all / least).ilog2() % 2);
        let stride = all >> upper;
        for lane in 0..inputs.lanes() / F::LINES {
            self.interpolate_parts::<V, F>(field, inputs, lane, lines);
            interpolate::<V, F>(field, lines, 0, least, stride);
            match upper {
                0 => sum_over_parts::<V, F, One<F::Value>>(field, lines, stride),
                1 => sum_over_parts::<V, F, Two<F::Value>>(field, lines, stride),
                _ => sum_over_parts::<V, F, Four<F::Value>>(field, lines, stride),
            }
            evaluate::<V, F>(field, lines, least, stride);
            self.evaluate_parts::<V, F>(field, lane, lines, outputs);
        }
    }

    /// Step 1.
    #[inline(always)]
    fn interpolate_parts<V: Lane, F: LaneField<V, Constant = C>>(
        &self,
        field: F,
        inputs: &impl Inputs,
        lane: usize,
        lines: &mut [Line],
    ) {
        let part = F::Part::LEN;
        let parts = self.inputs.sources.chunks_exact(part).zip(&self.inputs.parts);
        for ((number, lines), (sources, &has_input)) in
            lines.chunks_exact_mut(part * F::LINES).enumerate().zip(parts)
        {
            if has_input {
                let values = F::Part::gather(
                    0,
                    &Weighted { field: (field, PhantomData), sources, inputs, lane },
                );
                values.interpolate::<false>(field, number * part).store(lines, 0, 1);
            } else {
                lines.fill(Line::ZERO);
            }
        }
    }

    /// Step 3.
    #[inline(always)]
    fn evaluate_parts<V: Lane, F: LaneField<V, Constant = C>>(
        &self,
        field: F,
        lane: usize,
        all_lines: &mut [Line],
        outputs: &mut impl Outputs,
    ) {
        let part = F::Part::LEN;
        let mut rest = self.outputs.targets.as_slice();
        while let Some(first) = rest.first() {
            let start = usize::from(first.position) / part * part;
            let is_in_part = |target: &&Target<C>| usize::from(target.position) < start + part;
            let (targets, others) = rest.split_at(rest.iter().take_while(is_in_part).count());
            rest = others;
            let lines = start * F::LINES..(start + part) * F::LINES;
            let Some(lines) = all_lines.get_mut(lines) else { continue };
            let derivative = F::Part::load(lines, 0, 1);
            derivative.evaluate::<false>(field, start).store(lines, 0, 1);
            for target in targets {
                let value = F::load(lines, usize::from(target.position) % part);
                let sum = F::product(value, field.factor(target.factor));
                F::write(sum, outputs, target.row as usize, lane);
            }
        }
    }
}

/// The inputs of a part, times their factors.
struct Weighted<'a, F, C, I> {
    field: F,
    sources: &'a [Source<C>],
    inputs: &'a I,
    lane: usize,
}

impl<V, F, I> Values<F::Value> for Weighted<'_, (F, PhantomData<V>), F::Constant, I>
where
    V: Lane,
    F: LaneField<V>,
    I: Inputs,
{
    #[inline(always)]
    fn value(&self, at: usize) -> F::Value {
        let Source { row, factor } = self.sources[at];
        let value = F::read(self.inputs, usize::from(row), self.lane);
        F::product(value, self.field.0.factor(factor))
    }
}

/// Step 2, on trees of equal positions of the parts of `stride` positions.
#[inline(always)]
fn sum_over_parts<V: Lane, F: LaneField<V>, T: Tree<V, F>>(
    field: F,
    lines: &mut [Line],
    stride: usize,
) {
    for at in 0..stride {
        let values = T::load(lines, at, stride);
        let derivative = values.interpolate::<true>(field, 0).differentiate();
        let mut derivative = derivative.evaluate::<true>(field, 0);
        // Larger positions still have the coefficients of the layers before.
        let mut bit = 1;
        while bit < stride {
            if at & bit == 0 {
                derivative = derivative.add(T::load(lines, at | bit, stride));
            }
            bit *= 2;
        }
        derivative.store(lines, at, stride);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::kernel::InstructionSet;
    use crate::bytes::line::{LINE, MAX_STRIPE_LINES};

    fn lines(count: usize, seed: usize) -> Vec<Line> {
        let octet = |i: usize| ((i + seed) * 7919 % 65_537 % 251) as u8;
        let line = |line: usize| Line(std::array::from_fn(|at| octet(line * LINE + at)));
        (0..count).map(line).collect()
    }

    /// `inputs` and `outputs` points in an order without a pattern, with factors that are not 0.
    fn points(inputs: usize, outputs: usize, seed: usize) -> (Vec<CauchyPoint>, Vec<CauchyPoint>) {
        let mut points: Vec<u8> = (0..=255).collect();
        points.sort_by_key(|&point| (usize::from(point) + seed) * 7919 % 509);
        let cauchy_point =
            |&point: &u8| CauchyPoint { point, factor: 1 + point.wrapping_mul(3) % 255 };
        let (first, rest) = points.split_at(inputs);
        let outputs = rest.iter().cycle().take(outputs);
        (first.iter().map(cauchy_point).collect(), outputs.map(cauchy_point).collect())
    }

    /// Output by output, input by input, octet by octet.
    fn reference(
        inputs: &[CauchyPoint],
        outputs: &[CauchyPoint],
        rows: &[Line],
        lanes: usize,
    ) -> Vec<Line> {
        let mut sums = vec![Line::ZERO; outputs.len() * lanes];
        for (output, sums) in outputs.iter().zip(sums.chunks_mut(lanes)) {
            for (input, row) in inputs.iter().zip(rows.chunks(lanes)) {
                let quotient = mul(input.factor, inverse(input.point ^ output.point));
                let factor = mul(quotient, output.factor);
                for (to, from) in sums.iter_mut().zip(row) {
                    to.0.iter_mut().zip(from.0).for_each(|(to, from)| *to ^= mul(factor, from));
                }
            }
        }
        sums
    }

    /// Both ends of each number, parts without inputs or outputs, and outputs that are repeated.
    const SHAPES: [(usize, usize); 9] =
        [(1, 1), (1, 255), (255, 1), (254, 2), (2, 3), (16, 16), (128, 127), (100, 156), (200, 70)];

    #[test]
    fn every_instruction_set_agrees_with_octets() {
        for (seed, (m, n)) in SHAPES.into_iter().enumerate() {
            let (inputs, outputs) = points(m, n, seed);
            let sources = CauchyInputs::new(inputs.iter().copied());
            let targets = CauchyOutputs::new(outputs.iter().copied());
            for lanes in [1, 3, MAX_STRIPE_LINES] {
                let rows = lines(m * lanes, n);
                let expected = reference(&inputs, &outputs, &rows, lanes);
                for instructions in InstructionSet::available() {
                    let mut out = lines(n * lanes, 77);
                    let sums =
                        CauchySums { inputs: &sources, outputs: &targets, lanes, rows: &rows };
                    let mut work = CauchyWork::new();
                    for _ in 0..2 {
                        let (work, outputs) = (&mut work, out.as_mut_slice());
                        instructions.run(CauchyRows { sums, work, outputs });
                        let same = out.iter().zip(&expected).all(|(a, b)| a.0 == b.0);
                        assert!(same, "{instructions:?}: {n} of {m}, {lanes} lanes");
                    }
                }
            }
        }
    }

    #[test]
    fn the_matrix_has_the_factors_of_the_sums() {
        for (seed, (m, n)) in SHAPES.into_iter().enumerate() {
            let (inputs, outputs) = points(m, n, seed);
            let sources = CauchyInputs::new(inputs.iter().copied());
            let factors = sources.factors(&CauchyOutputs::new(outputs.iter().copied()));
            for (input, column) in inputs.iter().zip(factors.chunks(n)) {
                for (output, &factor) in outputs.iter().zip(column) {
                    let product = mul(input.factor, output.factor);
                    assert_eq!(mul(factor, input.point ^ output.point), product, "{n} of {m}");
                }
            }
        }
    }

    #[test]
    fn symbols_may_end_at_any_byte() {
        let (m, n, lanes) = (128, 127, 2);
        let (inputs, outputs) = points(m, n, 1);
        let sources = CauchyInputs::new(inputs.iter().copied());
        let targets = CauchyOutputs::new(outputs.iter().copied());
        let rows = lines(m * lanes, 3);
        let expected = reference(&inputs, &outputs, &rows, lanes);
        for instructions in InstructionSet::available() {
            for end in (0..=lanes * LINE).step_by(13) {
                let width = end + 9;
                let mut out = vec![0xAA; n * width];
                let outputs = Symbols { bytes: &mut out, width, columns: 5..5 + end };
                let sums = CauchySums { inputs: &sources, outputs: &targets, lanes, rows: &rows };
                instructions.run(CauchyOut { sums, work: &mut CauchyWork::new(), outputs });
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
