//! Sums with the factors of a Cauchy matrix: `outputs[t] = b_t * sum over r of a_r inputs[r] /
//! (x_t + x_r)` in GF(256), for points `x` that all differ. One number of operations serves all
//! numbers of inputs and outputs.
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
//! Parts without inputs are skipped in step 1, parts without outputs in step 3. The reference in
//! the tests sums octet by octet.

use super::product::{Outputs, Rows, Symbols};
use super::{Lane, LaneKernel, Row};
use crate::bytes::line::Line;
use crate::field::cantor_basis::{ELEMENTS, POINTS, POSITIONS};
use crate::field::gf256::{inverse, mul};
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

/// Positions whose values are in registers together.
const PART: usize = 16;

/// The inputs of sums: their points and factors.
pub(crate) struct CauchyInputs {
    /// For each position, the row of its input and the factor; factor 0 if it has none.
    sources: Box<[Source; POINTS]>,
    /// Bit `i`: part `i` has an input.
    parts: u16,
    rows: usize,
}

#[derive(Clone, Copy)]
struct Source {
    row: u8,
    factor: u8,
}

/// The outputs of sums: their points and factors.
pub(crate) struct CauchyOutputs {
    /// By position.
    targets: Vec<Target>,
}

#[derive(Clone, Copy)]
struct Target {
    position: u8,
    /// The number of the output.
    row: u32,
    factor: u8,
}

/// A point of the field, and the factor of its symbol.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CauchyPoint {
    pub(crate) point: u8,
    pub(crate) factor: u8,
}

impl CauchyInputs {
    /// The inputs in the order of their rows, at most 255, with different points.
    pub(crate) fn new(inputs: impl Iterator<Item = CauchyPoint>) -> Self {
        let mut sources = Box::new([Source { row: 0, factor: 0 }; POINTS]);
        let (mut parts, mut rows) = (0, 0);
        for CauchyPoint { point, factor } in inputs {
            let position = usize::from(POSITIONS[usize::from(point)]);
            sources[position] = Source { row: rows as u8, factor };
            parts |= 1 << (position / PART);
            rows += 1;
        }
        debug_assert!(rows < POINTS, "the points differ, and one is an output's");
        Self { sources, parts, rows }
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

impl CauchyOutputs {
    /// The outputs in their order. None has the point of an input.
    pub(crate) fn new(outputs: impl Iterator<Item = CauchyPoint>) -> Self {
        let target = |(row, CauchyPoint { point, factor }): (u32, CauchyPoint)| Target {
            position: POSITIONS[usize::from(point)],
            row,
            factor,
        };
        let mut targets: Vec<Target> = (0..).zip(outputs).map(target).collect();
        targets.sort_unstable_by_key(|target| (target.position, target.row));
        Self { targets }
    }
}

/// What a step computes, for the lane at work: 16 KB, to be used again for the next stripe.
pub(crate) struct CauchyWork([Line; POINTS]);

impl CauchyWork {
    pub(crate) fn new() -> Self {
        Self([Line::ZERO; POINTS])
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
        for lane in 0..self.lanes {
            self.interpolate_parts::<V>(lane, &mut work.0);
            sum_over_parts::<V>(&mut work.0);
            self.evaluate_parts::<V>(lane, &mut work.0, outputs);
        }
    }

    /// Step 1.
    #[inline(always)]
    fn interpolate_parts<V: Lane>(&self, lane: usize, lines: &mut [Line; POINTS]) {
        for (part, sources) in self.inputs.sources.as_chunks::<PART>().0.iter().enumerate() {
            if self.inputs.parts >> part & 1 == 1 {
                let values = Part::<V>::gather(sources, 0, self.rows, self.lanes, lane);
                values.interpolate::<false>(part * PART).store(lines, part * PART, 1);
            } else {
                lines[part * PART..(part + 1) * PART].fill(Line::ZERO);
            }
        }
    }

    /// Step 3.
    #[inline(always)]
    fn evaluate_parts<V: Lane>(
        &self,
        lane: usize,
        lines: &mut [Line; POINTS],
        outputs: &mut impl Outputs,
    ) {
        let mut rest = self.outputs.targets.as_slice();
        while let Some(first) = rest.first() {
            let part = usize::from(first.position) / PART;
            let is_in_part = |target: &&Target| usize::from(target.position) / PART == part;
            let (targets, others) = rest.split_at(rest.iter().take_while(is_in_part).count());
            rest = others;
            let derivative = Part::<V>::load(lines, part * PART, 1);
            derivative.evaluate::<false>(part * PART).store(lines, part * PART, 1);
            for target in targets {
                let value = V::load(&lines[usize::from(target.position)].0);
                let sum = value.times(V::factor(target.factor));
                outputs.store::<V, 1>(target.row as usize, lane, Row([sum]));
            }
        }
    }
}

/// Step 2.
#[inline(always)]
fn sum_over_parts<V: Lane>(lines: &mut [Line; POINTS]) {
    for at in 0..PART {
        let values = Part::<V>::load(lines, at, PART);
        let derivative = values.interpolate::<true>(0).differentiate();
        let mut derivative = derivative.evaluate::<true>(0);
        // Larger positions still have the coefficients of step 1.
        for bit in [1, 2, 4, 8] {
            if at & bit == 0 {
                derivative = derivative.add(Part::<V>::load(lines, at | bit, PART));
            }
        }
        derivative.store(lines, at, PART);
    }
}

/// The values or the coefficients of a part.
type Part<V> = [[[[One<V>; 2]; 2]; 2]; 2];

/// `2^j` values or coefficients. The recursion is one of types, so that it leaves no loop and no
/// index, and everything stays in registers.
trait Tree<V: Lane>: Copy {
    /// `2^j`.
    const LEN: usize;

    /// The inputs of `sources` from `at` on.
    fn gather(
        sources: &[Source; PART],
        at: usize,
        rows: &[Line],
        lanes: usize,
        lane: usize,
    ) -> Self;
    /// Every `stride`-th line from `at` on.
    fn load(lines: &[Line; POINTS], at: usize, stride: usize) -> Self;
    /// The inverse of [`load`](Self::load).
    fn store(self, lines: &mut [Line; POINTS], at: usize, stride: usize);
    fn add(self, other: Self) -> Self;
    fn add_product(self, other: Self, factor: V::Factor) -> Self;
    /// From the values at the positions from `first` on to coefficients. `FIRST` if `first` is 0,
    /// where the first factor of each layer is 0.
    fn interpolate<const FIRST: bool>(self, first: usize) -> Self;
    /// The inverse of [`interpolate`](Self::interpolate).
    fn evaluate<const FIRST: bool>(self, first: usize) -> Self;
    /// From coefficients to coefficients.
    fn differentiate(self) -> Self;
}

/// One value.
#[derive(Clone, Copy)]
struct One<V>(V);

impl<V: Lane> Tree<V> for One<V> {
    const LEN: usize = 1;

    #[inline(always)]
    fn gather(
        sources: &[Source; PART],
        at: usize,
        rows: &[Line],
        lanes: usize,
        lane: usize,
    ) -> Self {
        let Source { row, factor } = sources[at % PART];
        Self(V::load(&rows[usize::from(row) * lanes + lane].0).times(V::factor(factor)))
    }

    #[inline(always)]
    fn load(lines: &[Line; POINTS], at: usize, _stride: usize) -> Self {
        Self(V::load(&lines[at % POINTS].0))
    }

    #[inline(always)]
    fn store(self, lines: &mut [Line; POINTS], at: usize, _stride: usize) {
        self.0.store(&mut lines[at % POINTS].0);
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self(self.0.xor(other.0))
    }

    #[inline(always)]
    fn add_product(self, other: Self, factor: V::Factor) -> Self {
        Self(self.0.xor(other.0.times(factor)))
    }

    #[inline(always)]
    fn interpolate<const FIRST: bool>(self, _first: usize) -> Self {
        self
    }

    #[inline(always)]
    fn evaluate<const FIRST: bool>(self, _first: usize) -> Self {
        self
    }

    #[inline(always)]
    fn differentiate(self) -> Self {
        Self(V::zero())
    }
}

/// A polynomial `a + s_j b`. In the first half of the positions `s_j` has the value of the first of
/// them, in the second half one more.
impl<V: Lane, T: Tree<V>> Tree<V> for [T; 2] {
    const LEN: usize = 2 * T::LEN;

    #[inline(always)]
    fn gather(
        sources: &[Source; PART],
        at: usize,
        rows: &[Line],
        lanes: usize,
        lane: usize,
    ) -> Self {
        let first = T::gather(sources, at, rows, lanes, lane);
        [first, T::gather(sources, at + T::LEN, rows, lanes, lane)]
    }

    #[inline(always)]
    fn load(lines: &[Line; POINTS], at: usize, stride: usize) -> Self {
        [T::load(lines, at, stride), T::load(lines, at + T::LEN * stride, stride)]
    }

    #[inline(always)]
    fn store(self, lines: &mut [Line; POINTS], at: usize, stride: usize) {
        let [a, b] = self;
        a.store(lines, at, stride);
        b.store(lines, at + T::LEN * stride, stride);
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        [self[0].add(other[0]), self[1].add(other[1])]
    }

    #[inline(always)]
    fn add_product(self, other: Self, factor: V::Factor) -> Self {
        [self[0].add_product(other[0], factor), self[1].add_product(other[1], factor)]
    }

    #[inline(always)]
    fn interpolate<const FIRST: bool>(self, first: usize) -> Self {
        let a = self[0].interpolate::<FIRST>(first);
        let b = self[1].interpolate::<false>(first + T::LEN).add(a);
        if FIRST {
            return [a, b];
        }
        [a.add_product(b, V::factor(ELEMENTS[first / T::LEN % POINTS])), b]
    }

    #[inline(always)]
    fn evaluate<const FIRST: bool>(self, first: usize) -> Self {
        let [mut a, b] = self;
        if !FIRST {
            a = a.add_product(b, V::factor(ELEMENTS[first / T::LEN % POINTS]));
        }
        [a.evaluate::<FIRST>(first), b.add(a).evaluate::<false>(first + T::LEN)]
    }

    #[inline(always)]
    fn differentiate(self) -> Self {
        let [a, b] = self;
        [a.differentiate().add(b), b.differentiate()]
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
