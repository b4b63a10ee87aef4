//! Execution of programs on bytes.

use super::hdpc::{self, Symbols};
use super::program::Program;
use super::tuple::Tuple;
use crate::bytes::kernel::{InstructionSet, Kernel, Lane, Row};
use crate::bytes::line::Line;
use crate::bytes::stripes::Stripes;
use crate::codes::shared::csr::Lists;

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

/// Pivots between a fetch of an input and its use. In the order of the pivots inputs are scattered,
/// and those of a block larger than the caches are in none of them.
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
        let mut ahead = program.pivots.iter().skip(AHEAD);
        for (slot, solved, _) in program.pivots.iter() {
            if let Some((slot, _, _)) = ahead.next() {
                Row::<V, N>::prefetch(&slots[slot]);
            }
            Row::<V, N>::load(&slots[slot]).add_all(y, solved).store(&mut y[slot]);
        }
        let dense_rows = &program.dense_rows;
        for ((&slot, solved), d) in
            dense_rows.slots.iter().zip(dense_rows.solved.iter()).zip(&mut *d)
        {
            Row::<V, N>::load(&slots[slot as usize]).add_all(y, solved).store(d);
        }
        if !program.free.is_empty() {
            // The columns from `W` on are inactive.
            let lt_slots = &program.slots[..params.w as usize];
            let y = Symbols { rows: y.as_flattened(), slots: lt_slots };
            hdpc::multiply::<V, N>(&program.hdpc_pairs, &y, g);
        }

        // Steps 4 to 6.
        for (&slot, rows) in dense_rows.slots.iter().zip(dense_rows.rows.iter()) {
            Row::<V, N>::zero().add_all(d, rows).store(&mut slots[slot as usize]);
        }
        for free in &program.free {
            let mut sum = Row::<V, N>::zero();
            for (&factor, g) in free.hdpc_factors.iter().zip(&*g) {
                sum = sum.add_product(V::factor(factor), Row::load(g));
            }
            for (&factor, &slot) in free.dense_factors.iter().zip(&dense_rows.slots) {
                sum = sum.add_product(V::factor(factor), Row::load(&slots[slot as usize]));
            }
            sum.store(&mut slots[free.slot as usize]);
        }
        for (&slot, free) in dense_rows.slots.iter().zip(dense_rows.free.iter()) {
            let slot = slot as usize;
            Row::<V, N>::load(&slots[slot]).add_all(slots, free).store(&mut slots[slot]);
        }

        // Step 7.
        for (slot, _, terms) in program.pivots.iter() {
            Row::<V, N>::load(&slots[slot]).add_all(slots, terms).store(&mut slots[slot]);
        }
    }
}

impl Program {
    /// For each encoding symbol, given by its internal symbol id, the slots whose sum it is.
    pub(crate) fn sums(&self, isis: impl ExactSizeIterator<Item = u32>) -> Lists {
        /// Neighbors of an average symbol, rounded up.
        const TYPICAL_NEIGHBORS: usize = 8;
        let mut sums = Lists::with_capacity(isis.len(), isis.len() * TYPICAL_NEIGHBORS);
        for isi in isis {
            let tuple = Tuple::new(&self.params, isi);
            let slot = |column: u32| self.slots[column as usize];
            sums.push_with(|slots| {
                slots.extend(tuple.lt(&self.params).map(slot));
                slots.extend(tuple.pi(&self.params).map(slot));
            });
        }
        sums
    }
}
