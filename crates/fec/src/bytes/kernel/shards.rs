//! Products and sums whose inputs and outputs are slices of their own: the shards of a group. They
//! are read where they are if each is read once.

use super::cauchy::{CauchyPoints, CauchyWork};
use super::product::{Inputs, Outputs, Rows, multiply_lanes};
use super::tree::PairMatrices;
use super::{CauchyInputs, CauchyOutputs, Coefficients, Lane, LaneKernel, ProductTable, Row};
use crate::bytes::line::{LINE, Line, MAX_STRIPE_LINES};
use crate::field::gf65536::Field;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

/// Shards of equal size.
pub(crate) struct Shards<'s, 'b> {
    pub(crate) inputs: &'s [&'b [u8]],
    pub(crate) outputs: &'s mut [&'b mut [u8]],
    /// Bytes of a shard, a multiple of [`LINE`].
    pub(crate) size: usize,
}

/// Bytes of a shard up to which shards that follow each other in memory seldom evict each other.
pub(super) const SMALL: usize = 4096;

/// Some columns of shards, whole lines.
pub(super) struct Columns<S> {
    pub(super) shards: S,
    pub(super) columns: Range<usize>,
}

impl<S> Columns<S> {
    /// The byte range of `M` lanes of a shard.
    #[inline(always)]
    fn range<const M: usize>(&self, lane: usize) -> Range<usize> {
        let start = self.columns.start + lane * M * LINE;
        start..start + M * LINE
    }
}

impl<S> Columns<S> {
    /// Prefetches as many columns of a shard after these: a few lines of many shards are too short
    /// for the processor to expect more.
    #[inline(always)]
    fn prefetch_next<V: Lane>(&self, shard: &[u8]) {
        let next = shard.get(self.columns.end..).unwrap_or_default().as_chunks().0;
        next.iter().take(self.columns.len() / LINE).for_each(V::prefetch);
    }
}

impl Inputs for Columns<&[&[u8]]> {
    #[inline(always)]
    fn lanes(&self) -> usize {
        self.columns.len() / LINE
    }

    #[inline(always)]
    fn load<V: Lane, const M: usize>(&self, row: usize, lane: usize) -> Row<V, M> {
        Row::load_bytes(&self.shards[row][self.range::<M>(lane)])
    }
}

impl Outputs for Columns<&mut [&mut [u8]]> {
    #[inline(always)]
    fn count(&self) -> usize {
        self.shards.len()
    }

    #[inline(always)]
    fn load<V: Lane, const M: usize>(&self, row: usize, lane: usize) -> Row<V, M> {
        Row::load_bytes(&self.shards[row][self.range::<M>(lane)])
    }

    #[inline(always)]
    fn store<V: Lane, const M: usize>(&mut self, row: usize, lane: usize, sum: Row<V, M>) {
        let range = self.range::<M>(lane);
        sum.store_bytes(&mut self.shards[row][range]);
    }
}

/// Copies of columns of shards, one after the other. Shards at equal distances in memory would
/// evict each other from the caches, and each line of theirs would be fetched alone.
pub(super) struct Block {
    lines: Vec<Line>,
    shards: usize,
    /// Most lines of a shard.
    most: usize,
    /// Lines of a value.
    unit: usize,
}

impl Block {
    /// Memory for [`MAX_STRIPE_LINES`] of this number of shards.
    pub(super) fn of_stripes(shards: usize) -> Self {
        Self::of_lines(shards, MAX_STRIPE_LINES, 1)
    }

    /// Memory for columns of inputs and outputs of `size` bytes, for values of 1 or 2 lines. Of
    /// large shards they fit half of a second-level cache (256 KB at least): the longer a run of
    /// lines is, the more of it the processor fetches ahead.
    pub(super) fn pair(inputs: usize, outputs: usize, unit: usize, size: usize) -> (Self, Self) {
        const BYTES: usize = 128 << 10;
        const LEAST: usize = 4;
        let fit = BYTES / LINE / (inputs + outputs).max(1);
        let most = if size <= SMALL { LEAST } else { fit.clamp(LEAST, 32).next_multiple_of(2) };
        (Self::of_lines(inputs, most, unit), Self::of_lines(outputs, most, unit))
    }

    fn of_lines(shards: usize, most: usize, unit: usize) -> Self {
        Self { lines: vec![Line::ZERO; shards * most], shards, most, unit }
    }

    /// The columns of shards of `size` bytes, as many at a time as there is memory for.
    pub(super) fn columns(&self, size: usize) -> impl Iterator<Item = Range<usize>> + use<> {
        let block = self.most * LINE;
        (0..size).step_by(block).map(move |start| start..size.min(start + block))
    }

    /// Whole values of this number of columns.
    fn lanes(&self, columns: usize) -> usize {
        (columns / LINE).next_multiple_of(self.unit)
    }

    /// The copies of so many columns, as they are.
    pub(super) fn rows(&mut self, columns: usize) -> Rows<&mut [Line]> {
        let lanes = self.lanes(columns);
        Rows { lines: &mut self.lines[..self.shards * lanes], lanes }
    }

    /// Copies columns, and zeros after them up to a whole value.
    #[inline(always)]
    pub(super) fn copy<V: Lane>(
        &mut self,
        shards: &[&[u8]],
        columns: Range<usize>,
    ) -> Rows<&[Line]> {
        let lanes = self.lanes(columns.len());
        let columns = Columns { shards, columns };
        for (row, to) in self.lines.chunks_exact_mut(lanes).take(self.shards).enumerate() {
            columns.prefetch_next::<V>(shards[row]);
            for (lane, to) in to.iter_mut().enumerate() {
                if lane < columns.lanes() {
                    let Row([line]) = columns.load::<V, 1>(row, lane);
                    line.store(&mut to.0);
                } else {
                    *to = Line::ZERO;
                }
            }
        }
        Rows { lines: &self.lines[..self.shards * lanes], lanes }
    }

    /// The inverse of [`copy`](Self::copy).
    #[inline(always)]
    pub(super) fn copy_back<V: Lane>(&self, shards: &mut [&mut [u8]], columns: Range<usize>) {
        let lanes = self.lanes(columns.len());
        let count = columns.len() / LINE;
        let mut columns = Columns { shards, columns };
        for (row, from) in self.lines.chunks_exact(lanes).take(self.shards).enumerate() {
            columns.prefetch_next::<V>(&*columns.shards[row]);
            for (lane, line) in from.iter().take(count).enumerate() {
                columns.store::<V, 1>(row, lane, Row([V::load(&line.0)]));
            }
        }
    }
}

/// Replaces the outputs by the products of a matrix with the inputs.
pub(crate) struct ShardProducts<'a, 'b> {
    /// A row for each output, a column for each input.
    pub(crate) coefficients: Coefficients<'a>,
    pub(crate) shards: Shards<'a, 'b>,
}

impl LaneKernel for ShardProducts<'_, '_> {
    #[inline(always)]
    fn run<V: Lane>(self) {
        /// Outputs whose sums stay in registers together. With more, an input is read again, and
        /// shards at equal distances in memory would evict each other: they are copied first.
        const AT_ONCE: usize = 5;
        let Self { coefficients, shards: Shards { inputs, outputs, size } } = self;
        let is_copied = outputs.len() > AT_ONCE;
        let mut block = Block::of_stripes(if is_copied { inputs.len() } else { 0 });
        let wide = size - size % (MAX_STRIPE_LINES * LINE);
        for columns in block.columns(wide) {
            let mut outputs = Columns { shards: &mut *outputs, columns: columns.clone() };
            if is_copied {
                let rows = block.copy::<V>(inputs, columns);
                multiply_lanes::<V, MAX_STRIPE_LINES>(coefficients, &rows, &mut outputs);
            } else {
                let inputs = Columns { shards: inputs, columns };
                multiply_lanes::<V, MAX_STRIPE_LINES>(coefficients, &inputs, &mut outputs);
            }
        }
        let mut outputs = Columns { shards: outputs, columns: wide..size };
        let inputs = Columns { shards: inputs, columns: wide..size };
        multiply_lanes::<V, 1>(coefficients, &inputs, &mut outputs);
    }
}

/// Replaces the outputs by sums with the factors of a Cauchy matrix over GF(256).
pub(crate) struct ShardSums<'a, 'b> {
    /// The form of the octets.
    pub(crate) table: &'static ProductTable,
    pub(crate) inputs: &'a CauchyInputs,
    pub(crate) outputs: &'a CauchyOutputs,
    pub(crate) shards: Shards<'a, 'b>,
}

impl LaneKernel for ShardSums<'_, '_> {
    #[inline(always)]
    fn run<V: Lane>(self) {
        let Shards { inputs, outputs, size } = self.shards;
        let points = CauchyPoints { inputs: self.inputs, outputs: self.outputs };
        let mut work = CauchyWork::new();
        let (mut from, mut to) = Block::pair(inputs.len(), outputs.len(), 1, size);
        for columns in from.columns(size) {
            let rows = from.copy::<V>(inputs, columns.clone());
            points.sum_octets::<V>(self.table, &rows, &mut work, &mut to.rows(columns.len()));
            to.copy_back::<V>(outputs, columns);
        }
    }
}

/// Replaces the outputs by sums with the factors of a Cauchy matrix over GF(2^16). Shards are
/// whole lines, of 32 lower octets of elements and their 32 upper ones.
pub(crate) struct PairSums<'a, 'b> {
    pub(crate) field: &'a Field,
    pub(crate) inputs: &'a CauchyInputs<u16>,
    pub(crate) outputs: &'a CauchyOutputs<u16>,
    pub(crate) shards: Shards<'a, 'b>,
}

impl LaneKernel for PairSums<'_, '_> {
    #[inline(always)]
    fn run<V: Lane>(self) {
        let Shards { inputs, outputs, size } = self.shards;
        let points = CauchyPoints { inputs: self.inputs, outputs: self.outputs };
        let matrices = PairMatrices::<V>::new(self.field, self.inputs.positions());
        let mut work = CauchyWork::of_lines(2 * self.inputs.positions());
        let (mut from, mut to) = Block::pair(inputs.len(), outputs.len(), 2, size);
        for columns in from.columns(size) {
            let rows = from.copy::<V>(inputs, columns.clone());
            let mut sums = to.rows(columns.len());
            points.sum::<V, _>(matrices.field(), &rows, &mut work, &mut sums);
            to.copy_back::<V>(outputs, columns);
        }
    }
}
