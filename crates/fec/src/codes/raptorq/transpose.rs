//! Transposed programs: the contribution of each input to certain symbols.
//!
//! Encoding symbols are linear in the inputs of a block's program: `symbols = E * P * inputs`,
//! where `E` are their rows of the code's matrix and `P` is the program. Their coefficients `E * P`
//! are, column by column, `P` transposed times `E` transposed. A straight-line program is
//! transposed by running its steps in reverse order, each reversed: what was added to a row is
//! added from it. Each row has one octet per symbol, so the coefficients of a hundred symbols cost
//! as much as a block of symbols of 128 bytes.

use super::hdpc;
use super::program::Program;
use super::tuple::neighbors;
use crate::bytes::kernel::{InstructionSet, Kernel, Lane, Row};
use crate::bytes::line::Line;
use crate::bytes::octets::OctetRows;
use alloc::vec;

impl Program {
    /// How the encoding symbols with internal symbol ids `isis` are combined from this program's
    /// inputs: a row for each input, in order, with one octet for each of the symbols. `isis` are
    /// at most as many as a row of a stripe has bytes.
    pub(super) fn coefficients(&self, instructions: InstructionSet, isis: &[u32]) -> OctetRows {
        let mut rows = OctetRows::new(self.params.l as usize, isis.len());
        for (at, &isi) in isis.iter().enumerate() {
            for column in neighbors(&self.params, isi) {
                *rows.octet_mut(self.slots[column as usize] as usize, at) ^= 1;
            }
        }
        self.run_transposed(instructions, rows)
    }

    /// Runs the program backwards on the contributions of the intermediate symbols, by slot.
    /// Returns those of this program's inputs, in order.
    pub(super) fn run_transposed(
        &self,
        instructions: InstructionSet,
        mut rows: OctetRows,
    ) -> OctetRows {
        let mut scratch = vec![Line::ZERO; self.scratch_rows() * rows.lines];
        let slots = &mut rows.octets;
        instructions
            .dispatch(rows.lines, RunTransposed { program: self, slots, scratch: &mut scratch });
        rows.truncate(self.inputs.len());
        rows
    }
}

/// A transposed program on one stripe.
struct RunTransposed<'a> {
    program: &'a Program,
    slots: &'a mut [Line],
    scratch: &'a mut [Line],
}

impl Kernel for RunTransposed<'_> {
    #[inline(always)]
    fn run<V: Lane, const N: usize>(self) {
        let program = self.program;
        let params = &program.params;
        let slots = self.slots.as_chunks_mut::<N>().0;
        let (y, rest) = self.scratch.as_chunks_mut::<N>().0.split_at_mut(params.l as usize);
        let (g, d) = rest.split_at_mut(params.h as usize);
        for row in y.iter_mut().chain(&mut *g).chain(&mut *d) {
            *row = [Line::ZERO; N];
        }

        // Step 7: a slot holds the contribution of its intermediate symbol; after its pivot is
        // processed, that of its input.
        for (slot, _, terms) in program.pivots.iter().rev() {
            Row::<V, N>::load(&slots[slot]).add_to_all(slots, terms);
        }

        // Steps 6 to 4.
        let dense_rows = &program.dense_rows;
        for (&slot, free) in dense_rows.slots.iter().zip(dense_rows.free.iter()) {
            Row::<V, N>::load(&slots[slot as usize]).add_to_all(slots, free);
        }
        for free in &program.free {
            let sum = Row::<V, N>::load(&slots[free.slot as usize]);
            for (&factor, g) in free.hdpc_factors.iter().zip(&mut *g) {
                Row::<V, N>::load(g).add_product(V::factor(factor), sum).store(g);
            }
            for (&factor, &slot) in free.dense_factors.iter().zip(&dense_rows.slots) {
                let z = &mut slots[slot as usize];
                Row::<V, N>::load(z).add_product(V::factor(factor), sum).store(z);
            }
        }
        for (&slot, rows) in dense_rows.slots.iter().zip(dense_rows.rows.iter()) {
            Row::<V, N>::load(&slots[slot as usize]).add_to_all(d, rows);
        }

        // Steps 3 to 1.
        if !program.free.is_empty() {
            let lt_slots = &program.slots[..params.w as usize];
            hdpc::multiply_transposed::<V, N>(&program.hdpc_pairs, g, lt_slots, y);
        }
        for ((&slot, solved), d) in dense_rows.slots.iter().zip(dense_rows.solved.iter()).zip(&*d) {
            slots[slot as usize] = *d;
            Row::<V, N>::load(d).add_to_all(y, solved);
        }
        for (slot, solved, _) in program.pivots.iter().rev() {
            let row = Row::<V, N>::load(&y[slot]);
            row.add_to_all(y, solved);
            row.add(&slots[slot]).store(&mut slots[slot]);
        }
    }
}
