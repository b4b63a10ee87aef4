//! Programs and symbols on bytes.

use super::hdpc::{self, Symbols};
use super::program::Program;
use super::tuple::for_each_neighbor;
use crate::kernel::{InstructionSet, Kernel, Lane, Row};
use crate::stripes::{LINE, Line, Stripes};

impl Program {
    /// Turns the inputs into the intermediate symbols, in place.
    pub(crate) fn run(&self, instructions: InstructionSet, symbols: &mut Stripes) {
        for &row in &self.empty {
            symbols.clear_row(row as usize);
        }
        for index in 0..symbols.count() {
            let lines = symbols.lines(index);
            let (slots, scratch) = symbols.stripe_and_scratch(index, self.scratch_rows());
            instructions.dispatch(lines, RunStripe { program: self, slots, scratch });
        }
    }
}

/// Inputs are fetched this many pivots before their turn: in the order of the pivots they lie all
/// over memory, and of a block larger than the caches none is in them.
const AHEAD: usize = 16;

/// A program on one stripe.
struct RunStripe<'a> {
    program: &'a Program,
    slots: &'a mut [Line],
    scratch: &'a mut [Line],
}

impl Kernel for RunStripe<'_> {
    #[inline(always)]
    fn run<V: Lane, const N: usize>(self) {
        let program = self.program;
        let params = &program.params;
        let slots = self.slots.as_chunks_mut::<N>().0;
        let (y, rest) = self.scratch.as_chunks_mut::<N>().0.split_at_mut(params.l as usize);
        let (g, d) = rest.split_at_mut(params.h as usize);

        // Steps 1 to 3.
        for &slot in &program.inactive_lt {
            y[slot as usize] = [Line::ZERO; N];
        }
        let mut ahead = program.pivots.columns().skip(AHEAD);
        for (slot, solved, _) in program.pivots.iter() {
            if let Some(slot) = ahead.next() {
                Row::<V, N>::prefetch(&slots[slot]);
            }
            Row::<V, N>::load(&slots[slot]).add_all(y, solved).store(&mut y[slot]);
        }
        for (row, d) in program.dense_rows.iter().zip(d.iter_mut()) {
            Row::<V, N>::load(&slots[row.slot as usize]).add_all(y, &row.solved).store(d);
        }
        if !program.free.is_empty() {
            // The columns from `W` on are inactive.
            let lt_slots = &program.slots[..params.w as usize];
            let y = Symbols { rows: y.as_flattened(), slots: lt_slots };
            hdpc::multiply::<V, N>(&program.hdpc_pairs, &y, g);
        }

        // Steps 4 to 6.
        for row in &program.dense_rows {
            Row::<V, N>::zero().add_all(d, &row.rows).store(&mut slots[row.slot as usize]);
        }
        for free in &program.free {
            let mut sum = Row::<V, N>::zero();
            for (&factor, g) in free.hdpc_factors.iter().zip(&*g) {
                sum = sum.add_product(V::factor(factor), Row::load(g));
            }
            for (&factor, row) in free.dense_factors.iter().zip(&program.dense_rows) {
                sum = sum.add_product(V::factor(factor), Row::load(&slots[row.slot as usize]));
            }
            sum.store(&mut slots[free.slot as usize]);
        }
        for row in &program.dense_rows {
            let slot = row.slot as usize;
            Row::<V, N>::load(&slots[slot]).add_all(slots, &row.free).store(&mut slots[slot]);
        }

        // Step 7.
        for (slot, _, terms) in program.pivots.iter() {
            Row::<V, N>::load(&slots[slot]).add_all(slots, terms).store(&mut slots[slot]);
        }
    }
}

impl Program {
    /// Writes encoding symbols, given by internal symbol ids, one after the other into `out`.
    pub(crate) fn encode(
        &self,
        instructions: InstructionSet,
        intermediate: &Stripes,
        isis: impl ExactSizeIterator<Item = u32>,
        out: &mut [u8],
    ) {
        /// Neighbors of an average symbol, and a little more.
        const TYPICAL_NEIGHBORS: usize = 8;
        let mut neighbors = Vec::with_capacity(isis.len() * TYPICAL_NEIGHBORS);
        let mut ends = Vec::with_capacity(isis.len());
        for isi in isis {
            for_each_neighbor(&self.params, isi, |column| {
                neighbors.push(self.slots[column as usize]);
            });
            ends.push(neighbors.len());
        }
        for index in 0..intermediate.count() {
            let kernel = EncodeStripe {
                slots: intermediate.stripe(index),
                neighbors: &neighbors,
                ends: &ends,
                width: intermediate.width(),
                bytes: intermediate.bytes(index),
                out,
            };
            instructions.dispatch(intermediate.lines(index), kernel);
        }
    }
}

/// The columns of encoding symbols that one stripe holds.
struct EncodeStripe<'a> {
    slots: &'a [Line],
    /// Slots of the neighbors of one symbol after the other, and where each symbol's end.
    neighbors: &'a [u32],
    ends: &'a [usize],
    /// Bytes of a symbol.
    width: usize,
    /// Bytes of a symbol that are written here.
    bytes: std::ops::Range<usize>,
    out: &'a mut [u8],
}

impl Kernel for EncodeStripe<'_> {
    #[inline(always)]
    fn run<V: Lane, const N: usize>(self) {
        debug_assert!(self.bytes.len() <= N * LINE);
        let slots = self.slots.as_chunks::<N>().0;
        let mut start = 0;
        for (&end, out) in self.ends.iter().zip(self.out.chunks_exact_mut(self.width)) {
            let neighbors = &self.neighbors[start..end];
            start = end;
            Row::<V, N>::zero().add_all(slots, neighbors).store_bytes(&mut out[self.bytes.clone()]);
        }
    }
}
