//! The additive FFT of S.-J. Lin, W.-H. Chung and Y. S. Han ("Novel polynomial basis and its
//! application to Reed-Solomon erasure codes", FOCS 2014) on lanes, over the elements of a Cantor
//! basis ([`cantor_basis`](crate::field::cantor_basis)), which are numbered by their *positions*.
//!
//! From values to coefficients ([`Tree::interpolate`]) there is a layer of butterflies for each bit
//! of a position, from distance 1 on. Back ([`Tree::evaluate`]) they run in reverse. Up to four
//! layers of octets are computed in registers, two of 16-bit elements. A pass loads, computes and
//! stores all values once.

use super::product::{Inputs, Outputs};
use super::{Lane, ProductTable, Row};
use crate::bytes::line::Line;
use crate::field::cantor_basis::{ELEMENTS, POINTS};
use crate::field::gf65536::Field;
use alloc::vec::Vec;

/// Positions whose octets are in registers together.
pub(super) const PART: usize = 16;

/// Positions whose 16-bit elements are.
pub(super) const PAIR_PART: usize = 4;

/// Arithmetic on lanes of elements of a field.
pub(super) trait LaneField<V: Lane>: Copy {
    /// A constant in memory.
    type Constant: Copy;
    /// A constant that values are multiplied by.
    type Factor: Copy;
    /// Elements in registers.
    type Value: Copy;
    /// Values that are in registers together.
    type Part: Tree<V, Self>;
    /// Lines of a value.
    const LINES: usize;

    fn factor(self, constant: Self::Constant) -> Self::Factor;
    /// The element at an even position.
    fn element(self, position: usize) -> Self::Factor;
    fn zero() -> Self::Value;
    fn add(a: Self::Value, b: Self::Value) -> Self::Value;
    fn product(value: Self::Value, factor: Self::Factor) -> Self::Value;
    /// Value `at` of `lines`.
    fn load(lines: &[Line], at: usize) -> Self::Value;
    /// The inverse of [`load`](Self::load).
    fn store(value: Self::Value, lines: &mut [Line], at: usize);
    /// Value `at` of an input.
    fn read(inputs: &impl Inputs, row: usize, at: usize) -> Self::Value;
    /// Replaces value `at` of an output.
    fn write(value: Self::Value, outputs: &mut impl Outputs, row: usize, at: usize);
}

/// GF(256), 64 elements in a lane.
#[derive(Clone, Copy)]
pub(super) struct Octets<'t>(pub(super) &'t ProductTable);

impl<V: Lane> LaneField<V> for Octets<'_> {
    type Constant = u8;
    type Factor = V::Factor;
    type Value = V;
    type Part = Part<V>;
    const LINES: usize = 1;

    #[inline(always)]
    fn factor(self, constant: u8) -> V::Factor {
        V::factor_of(self.0, constant)
    }

    #[inline(always)]
    fn element(self, position: usize) -> V::Factor {
        V::factor_of(self.0, ELEMENTS[position % POINTS])
    }

    #[inline(always)]
    fn zero() -> V {
        V::zero()
    }

    #[inline(always)]
    fn add(a: V, b: V) -> V {
        a.xor(b)
    }

    #[inline(always)]
    fn product(value: V, factor: V::Factor) -> V {
        value.times(factor)
    }

    #[inline(always)]
    fn load(lines: &[Line], at: usize) -> V {
        V::load(&lines[at].0)
    }

    #[inline(always)]
    fn store(value: V, lines: &mut [Line], at: usize) {
        value.store(&mut lines[at].0);
    }

    #[inline(always)]
    fn read(inputs: &impl Inputs, row: usize, at: usize) -> V {
        let Row([value]) = inputs.load::<V, 1>(row, at);
        value
    }

    #[inline(always)]
    fn write(value: V, outputs: &mut impl Outputs, row: usize, at: usize) {
        outputs.store::<V, 1>(row, at, Row([value]));
    }
}

/// The bit matrices of the products with elements of GF(2^16).
pub(super) struct PairMatrices<V: Lane> {
    /// Of each upper and each lower octet.
    octets: [Vec<[V::Matrix; 4]>; 2],
    /// Of the elements at the even positions: butterflies need no others.
    even: Vec<[V::Matrix; 4]>,
}

impl<V: Lane> PairMatrices<V> {
    /// For transforms of positions below `positions`.
    pub(super) fn new(field: &Field, positions: usize) -> Self {
        let octets = field.octet_matrices().map(|matrices| -> Vec<[V::Matrix; 4]> {
            matrices.iter().map(|matrices| matrices.map(V::matrix)).collect()
        });
        let [upper, lower] = &octets;
        let even = upper.iter().flat_map(|a| lower.iter().step_by(2).map(move |b| sum::<V>(a, b)));
        let even = even.take(positions.div_ceil(2)).collect();
        Self { octets, even }
    }

    pub(super) fn field(&self) -> Pairs<'_, V> {
        let [upper, lower] = self.octets.each_ref().map(Vec::as_slice);
        Pairs { upper, lower, even: &self.even }
    }
}

#[inline(always)]
fn sum<V: Lane>(a: &[V::Matrix; 4], b: &[V::Matrix; 4]) -> [V::Matrix; 4] {
    core::array::from_fn(|i| V::matrix_sum(a[i], b[i]))
}

/// GF(2^16), 32 elements in a line: their lower octets, then their upper ones. A value has the
/// lower octets of two lines, and their upper ones. Positions and constants are elements in the
/// form of the field's tables.
#[derive(Clone, Copy)]
pub(super) struct Pairs<'m, V: Lane> {
    upper: &'m [[V::Matrix; 4]],
    lower: &'m [[V::Matrix; 4]],
    even: &'m [[V::Matrix; 4]],
}

impl<V: Lane> LaneField<V> for Pairs<'_, V> {
    type Constant = u16;
    /// From the upper octets to the upper ones, from the lower to the upper ones, from the upper to
    /// the lower ones, and from the lower to the lower ones.
    type Factor = [V::Factor; 4];
    type Value = [V; 2];
    type Part = Four<[V; 2]>;
    const LINES: usize = 2;

    #[inline(always)]
    fn factor(self, constant: u16) -> [V::Factor; 4] {
        let [upper, lower] = constant.to_be_bytes();
        let (a, b) = (&self.upper[usize::from(upper)], &self.lower[usize::from(lower)]);
        sum::<V>(a, b).map(V::matrix_factor)
    }

    #[inline(always)]
    fn element(self, position: usize) -> [V::Factor; 4] {
        self.even[position / 2].map(V::matrix_factor)
    }

    #[inline(always)]
    fn zero() -> [V; 2] {
        [V::zero(); 2]
    }

    #[inline(always)]
    fn add(a: [V; 2], b: [V; 2]) -> [V; 2] {
        [a[0].xor(b[0]), a[1].xor(b[1])]
    }

    #[inline(always)]
    fn product([lower, upper]: [V; 2], factor: [V::Factor; 4]) -> [V; 2] {
        let (lower, upper) = (lower.operand(), upper.operand());
        [
            V::product(upper, factor[2]).xor(V::product(lower, factor[3])),
            V::product(upper, factor[0]).xor(V::product(lower, factor[1])),
        ]
    }

    #[inline(always)]
    fn load(lines: &[Line], at: usize) -> [V; 2] {
        let [lower, upper] = &lines.as_chunks::<2>().0[at];
        [V::load(&lower.0), V::load(&upper.0)]
    }

    #[inline(always)]
    fn store(value: [V; 2], lines: &mut [Line], at: usize) {
        for (plane, line) in value.into_iter().zip(&mut lines.as_chunks_mut::<2>().0[at]) {
            plane.store(&mut line.0);
        }
    }

    #[inline(always)]
    fn read(inputs: &impl Inputs, row: usize, at: usize) -> [V; 2] {
        let Row(lanes) = inputs.load::<V, 2>(row, at);
        V::exchange(lanes)
    }

    #[inline(always)]
    fn write(value: [V; 2], outputs: &mut impl Outputs, row: usize, at: usize) {
        outputs.store::<V, 2>(row, at, Row(V::exchange(value)));
    }
}

/// Computes some layers of `lines`: those of distance `stride` on. The first line has position
/// `first`, which is not 0.
#[inline(always)]
fn interpolate_pass<V: Lane, F: LaneField<V>, T: Tree<V, F>>(
    field: F,
    lines: &mut [Line],
    first: usize,
    stride: usize,
) {
    for (number, block) in lines.chunks_exact_mut(T::LEN * stride * F::LINES).enumerate() {
        let position = first / stride + number * T::LEN;
        for at in 0..stride {
            let values = T::load(block, at, stride);
            values.interpolate::<false>(field, position).store(block, at, stride);
        }
    }
}

/// The inverse of [`interpolate_pass`], for the positions from 0 on.
#[inline(always)]
fn evaluate_pass<V: Lane, F: LaneField<V>, T: Tree<V, F>>(
    field: F,
    lines: &mut [Line],
    stride: usize,
) {
    for (number, block) in lines.chunks_exact_mut(T::LEN * stride * F::LINES).enumerate() {
        for at in 0..stride {
            let values = T::load(block, at, stride);
            values.evaluate::<false>(field, number * T::LEN).store(block, at, stride);
        }
    }
}

/// Computes all layers from distance `from` to half of distance `to` of `lines`, two at a time.
/// The first line has position `first`.
#[inline(always)]
pub(super) fn interpolate<V: Lane, F: LaneField<V>>(
    field: F,
    lines: &mut [Line],
    first: usize,
    from: usize,
    to: usize,
) {
    let mut stride = from;
    while 4 * stride <= to {
        interpolate_pass::<V, F, Four<F::Value>>(field, lines, first, stride);
        stride *= 4;
    }
    if stride < to {
        interpolate_pass::<V, F, Two<F::Value>>(field, lines, first, stride);
    }
}

/// The inverse of [`interpolate`], for the positions from 0 on.
#[inline(always)]
pub(super) fn evaluate<V: Lane, F: LaneField<V>>(
    field: F,
    lines: &mut [Line],
    from: usize,
    to: usize,
) {
    let mut stride = to;
    if (to / from.max(1)).ilog2() % 2 == 1 {
        stride /= 2;
        evaluate_pass::<V, F, Two<F::Value>>(field, lines, stride);
    }
    while stride > from {
        stride /= 4;
        evaluate_pass::<V, F, Four<F::Value>>(field, lines, stride);
    }
}

/// Two values or coefficients, four, eight, and those of a part of octets.
pub(super) type Two<T> = [One<T>; 2];
pub(super) type Four<T> = [Two<T>; 2];
type Eight<T> = [Four<T>; 2];
pub(super) type Part<T> = [Eight<T>; 2];

/// Values by their numbers. A trait, because closures are not always inlined.
pub(super) trait Values<T> {
    fn value(&self, at: usize) -> T;
}

/// What is done with values. Inlining is required as for all code on lanes.
pub(super) trait Take<T> {
    fn take(&mut self, at: usize, value: T);
}

/// `2^j` values or coefficients. The recursion is one of types, so that it leaves no loop and no
/// index, and everything stays in registers.
pub(super) trait Tree<V: Lane, F: LaneField<V>>: Copy {
    /// `2^j`.
    const LEN: usize;

    /// The values with the numbers from `at` on.
    fn gather(at: usize, values: &impl Values<F::Value>) -> Self;
    /// The inverse of [`gather`](Self::gather).
    fn scatter(self, at: usize, to: &mut impl Take<F::Value>);
    /// Every `stride`-th value from `at` on.
    fn load(lines: &[Line], at: usize, stride: usize) -> Self;
    /// The inverse of [`load`](Self::load).
    fn store(self, lines: &mut [Line], at: usize, stride: usize);
    fn add(self, other: Self) -> Self;
    fn add_product(self, other: Self, factor: F::Factor) -> Self;
    /// From the values at the positions from `first` on to coefficients. `FIRST` if `first` is 0,
    /// where the first factor of each layer is 0.
    fn interpolate<const FIRST: bool>(self, field: F, first: usize) -> Self;
    /// The inverse of [`interpolate`](Self::interpolate).
    fn evaluate<const FIRST: bool>(self, field: F, first: usize) -> Self;
    /// From coefficients to coefficients.
    fn differentiate(self) -> Self;
}

/// One value.
#[derive(Clone, Copy)]
pub(super) struct One<T>(T);

impl<V: Lane, F: LaneField<V>> Tree<V, F> for One<F::Value> {
    const LEN: usize = 1;

    #[inline(always)]
    fn gather(at: usize, values: &impl Values<F::Value>) -> Self {
        Self(values.value(at))
    }

    #[inline(always)]
    fn scatter(self, at: usize, to: &mut impl Take<F::Value>) {
        to.take(at, self.0);
    }

    #[inline(always)]
    fn load(lines: &[Line], at: usize, _stride: usize) -> Self {
        Self(F::load(lines, at))
    }

    #[inline(always)]
    fn store(self, lines: &mut [Line], at: usize, _stride: usize) {
        F::store(self.0, lines, at);
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self(F::add(self.0, other.0))
    }

    #[inline(always)]
    fn add_product(self, other: Self, factor: F::Factor) -> Self {
        Self(F::add(self.0, F::product(other.0, factor)))
    }

    #[inline(always)]
    fn interpolate<const FIRST: bool>(self, _field: F, _first: usize) -> Self {
        self
    }

    #[inline(always)]
    fn evaluate<const FIRST: bool>(self, _field: F, _first: usize) -> Self {
        self
    }

    #[inline(always)]
    fn differentiate(self) -> Self {
        Self(F::zero())
    }
}

/// A polynomial `a + s_j b`. In the first half of the positions `s_j` has the value of the first of
/// them, in the second half one more.
impl<V: Lane, F: LaneField<V>, T: Tree<V, F>> Tree<V, F> for [T; 2] {
    const LEN: usize = 2 * T::LEN;

    #[inline(always)]
    fn gather(at: usize, values: &impl Values<F::Value>) -> Self {
        [T::gather(at, values), T::gather(at + T::LEN, values)]
    }

    #[inline(always)]
    fn scatter(self, at: usize, to: &mut impl Take<F::Value>) {
        let [a, b] = self;
        a.scatter(at, to);
        b.scatter(at + T::LEN, to);
    }

    #[inline(always)]
    fn load(lines: &[Line], at: usize, stride: usize) -> Self {
        [T::load(lines, at, stride), T::load(lines, at + T::LEN * stride, stride)]
    }

    #[inline(always)]
    fn store(self, lines: &mut [Line], at: usize, stride: usize) {
        let [a, b] = self;
        a.store(lines, at, stride);
        b.store(lines, at + T::LEN * stride, stride);
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        [self[0].add(other[0]), self[1].add(other[1])]
    }

    #[inline(always)]
    fn add_product(self, other: Self, factor: F::Factor) -> Self {
        [self[0].add_product(other[0], factor), self[1].add_product(other[1], factor)]
    }

    #[inline(always)]
    fn interpolate<const FIRST: bool>(self, field: F, first: usize) -> Self {
        let a = self[0].interpolate::<FIRST>(field, first);
        let b = self[1].interpolate::<false>(field, first + T::LEN).add(a);
        if FIRST {
            return [a, b];
        }
        [a.add_product(b, field.element(first / T::LEN)), b]
    }

    #[inline(always)]
    fn evaluate<const FIRST: bool>(self, field: F, first: usize) -> Self {
        let [mut a, b] = self;
        if !FIRST {
            a = a.add_product(b, field.element(first / T::LEN));
        }
        let second = b.add(a).evaluate::<false>(field, first + T::LEN);
        [a.evaluate::<FIRST>(field, first), second]
    }

    #[inline(always)]
    fn differentiate(self) -> Self {
        let [a, b] = self;
        [a.differentiate().add(b), b.differentiate()]
    }
}
