//! Parity of Leopard's codes. With `m` a power of two, the data shards are the values of
//! polynomials of degree below `m`: shards `c m` to `(c + 1) m - 1` those of polynomial `c` at the
//! positions from `(c + 1) m` on. Parity shard `p` is the value of the sum of all polynomials at
//! position `p`. The last polynomial has zeros in the place of missing shards.

use super::product::{Inputs, Outputs};
use super::shards::{Block, Columns, SMALL, Shards};
use super::tree::{self, LaneField, Octets, PairMatrices, Take, Tree, Values};
use super::{Lane, LaneKernel, ProductTable};
use crate::bytes::line::Line;
use crate::field::gf65536::Field;
use alloc::vec;
use core::marker::PhantomData;

/// The number of positions `m`, and the shards: data, and at most `m` parity shards.
pub(crate) struct Shift<'a, 'b> {
    pub(crate) positions: usize,
    pub(crate) shards: Shards<'a, 'b>,
}

/// [`Shift`] over GF(256).
pub(crate) struct OctetShift<'a, 'b> {
    /// The form of the octets.
    pub(crate) table: &'static ProductTable,
    pub(crate) shift: Shift<'a, 'b>,
}

impl LaneKernel for OctetShift<'_, '_> {
    #[inline(always)]
    fn run<V: Lane>(self) {
        self.shift.run::<V, _>(Octets(self.table));
    }
}

/// [`Shift`] over GF(2^16). Shards are whole lines, of 32 lower octets of elements and their 32
/// upper ones.
pub(crate) struct PairShift<'a, 'b> {
    pub(crate) field: &'a Field,
    pub(crate) shift: Shift<'a, 'b>,
}

impl LaneKernel for PairShift<'_, '_> {
    #[inline(always)]
    fn run<V: Lane>(self) {
        let Shift { positions, shards } = &self.shift;
        let all = positions + shards.inputs.len().next_multiple_of(*positions);
        let matrices = PairMatrices::<V>::new(self.field, all);
        self.shift.run::<V, _>(matrices.field());
    }
}

impl Shift<'_, '_> {
    #[inline(always)]
    fn run<V: Lane, F: LaneField<V>>(self, field: F) {
        let Self { positions, shards: Shards { inputs, outputs, size } } = self;
        let mut work = vec![Line::ZERO; 2 * positions * F::LINES];
        let (sum, addend) = work.split_at_mut(positions * F::LINES);
        if F::LINES == 1 && size <= SMALL {
            let inputs = Columns { shards: inputs, columns: 0..size };
            let mut parity = Columns { shards: outputs, columns: 0..size };
            for at in 0..inputs.lanes() {
                shift::<V, F>(field, &inputs, inputs.shards.len(), at, [sum, addend], &mut parity);
            }
            return;
        }
        let (mut from, mut to) = Block::pair(inputs.len(), outputs.len(), F::LINES, size);
        for columns in from.columns(size) {
            let rows = from.copy::<V>(inputs, columns.clone());
            let mut parity = to.rows(columns.len());
            for at in 0..rows.lanes() / F::LINES {
                shift::<V, F>(field, &rows, inputs.len(), at, [sum, addend], &mut parity);
            }
            to.copy_back::<V>(outputs, columns);
        }
    }
}

/// Computes value `at` of the outputs from that of the `count` inputs.
#[inline(always)]
fn shift<V: Lane, F: LaneField<V>>(
    field: F,
    inputs: &impl Inputs,
    count: usize,
    at: usize,
    [sum, addend]: [&mut [Line]; 2],
    outputs: &mut impl Outputs,
) {
    let positions = sum.len() / F::LINES;
    interpolate::<V, F>(field, inputs, count, at, 0, sum);
    for first in (positions..count).step_by(positions) {
        interpolate::<V, F>(field, inputs, count, at, first, addend);
        for (sum, addend) in sum.iter_mut().zip(&*addend) {
            V::load(&sum.0).xor(V::load(&addend.0)).store(&mut sum.0);
        }
    }
    evaluate::<V, F>(field, at, sum, outputs);
}

/// Computes the coefficients of the polynomial whose values are value `at` of the `count` inputs
/// from `first` on.
#[inline(always)]
fn interpolate<V: Lane, F: LaneField<V>>(
    field: F,
    inputs: &impl Inputs,
    count: usize,
    at: usize,
    first: usize,
    lines: &mut [Line],
) {
    let (positions, part) = (lines.len() / F::LINES, F::Part::LEN);
    let values = Available { _field: (field, PhantomData), inputs, count, at };
    let position = positions + first;
    if positions < part {
        for row in 0..positions {
            F::store(values.value(first + row), lines, row);
        }
        return tree::interpolate::<V, F>(field, lines, position, 1, positions);
    }
    for (number, lines) in lines.chunks_exact_mut(part * F::LINES).enumerate() {
        let start = number * part;
        if first + start < count {
            let values = F::Part::gather(first + start, &values);
            values.interpolate::<false>(field, position + start).store(lines, 0, 1);
        } else {
            lines.fill(Line::ZERO);
        }
    }
    tree::interpolate::<V, F>(field, lines, position, part, positions);
}

/// Stores the values of a polynomial at the positions of the outputs.
#[inline(always)]
fn evaluate<V: Lane, F: LaneField<V>>(
    field: F,
    at: usize,
    lines: &mut [Line],
    outputs: &mut impl Outputs,
) {
    let count = outputs.count();
    let mut parity = Parity { _field: (field, PhantomData), outputs, count, at };
    let (positions, part) = (lines.len() / F::LINES, F::Part::LEN);
    if positions < part {
        tree::evaluate::<V, F>(field, lines, 1, positions);
        for row in 0..positions {
            parity.take(row, F::load(lines, row));
        }
        return;
    }
    tree::evaluate::<V, F>(field, lines, part, positions);
    for (number, lines) in lines.chunks_exact(part * F::LINES).enumerate() {
        let start = number * part;
        if start < count {
            let values = F::Part::load(lines, 0, 1).evaluate::<false>(field, start);
            values.scatter(start, &mut parity);
        }
    }
}

/// The inputs, and zeros after them.
struct Available<'a, F, I> {
    _field: F,
    inputs: &'a I,
    count: usize,
    at: usize,
}

impl<V: Lane, F: LaneField<V>, I: Inputs> Values<F::Value>
    for Available<'_, (F, PhantomData<V>), I>
{
    #[inline(always)]
    fn value(&self, row: usize) -> F::Value {
        if row < self.count { F::read(self.inputs, row, self.at) } else { F::zero() }
    }
}

/// The outputs; values after them are dropped.
struct Parity<'a, F, O> {
    _field: F,
    outputs: &'a mut O,
    count: usize,
    at: usize,
}

impl<V: Lane, F: LaneField<V>, O: Outputs> Take<F::Value> for Parity<'_, (F, PhantomData<V>), O> {
    #[inline(always)]
    fn take(&mut self, row: usize, value: F::Value) {
        if row < self.count {
            F::write(value, self.outputs, row, self.at);
        }
    }
}
