//! Programs of sums, for the codes that need no multiplication.
//!
//! A program works on the rows of a block (*slots*) and optionally on *scratch* rows, which exist
//! for one stripe at a time. Each step replaces a row by a sum of rows.

use crate::bytes::kernel::{InstructionSet, Kernel, Lane, Row};
use crate::bytes::line::{LINE, Line};
use crate::bytes::octets::OctetRows;
use crate::bytes::stripes::Stripes;
use crate::codes::shared::csr::Lists;
use alloc::vec;
use alloc::vec::Vec;

/// A straight-line program of steps `row = sum of rows`.
#[derive(Debug, Default)]
pub struct XorProgram {
    steps: Vec<Step>,
    terms: Vec<u32>,
    scratch_rows: usize,
}

/// One step. Its terms follow those of the previous step.
#[derive(Clone, Copy, Debug)]
struct Step {
    row: u32,
    is_scratch: bool,
    /// Slots among the terms; the other terms are scratch rows.
    slots: u32,
    terms: u32,
}

impl XorProgram {
    /// An empty program with room for `steps` steps of `terms` terms in all.
    pub fn with_capacity(steps: usize, terms: usize) -> Self {
        Self { steps: Vec::with_capacity(steps), terms: Vec::with_capacity(terms), scratch_rows: 0 }
    }

    /// Scratch rows that the program uses.
    pub(crate) fn scratch_rows(&self) -> usize {
        self.scratch_rows
    }

    /// Replaces slot `slot` by the sum of these slots. If it is among them, its previous value
    /// counts.
    pub fn set_slot(&mut self, slot: u32, slots: impl IntoIterator<Item = u32>) {
        self.push(slot, false, slots, []);
    }

    /// Replaces slot `slot` by the sum of these slots and scratch rows.
    pub(crate) fn set_slot_with(
        &mut self,
        slot: u32,
        slots: impl IntoIterator<Item = u32>,
        scratch: impl IntoIterator<Item = u32>,
    ) {
        self.push(slot, false, slots, scratch);
    }

    /// Replaces scratch row `row` by the sum of these slots and scratch rows.
    pub(crate) fn set_scratch(
        &mut self,
        row: u32,
        slots: impl IntoIterator<Item = u32>,
        scratch: impl IntoIterator<Item = u32>,
    ) {
        self.scratch_rows = self.scratch_rows.max(row as usize + 1);
        self.push(row, true, slots, scratch);
    }

    fn push(
        &mut self,
        row: u32,
        is_scratch: bool,
        slots: impl IntoIterator<Item = u32>,
        scratch: impl IntoIterator<Item = u32>,
    ) {
        let start = self.terms.len();
        self.terms.extend(slots);
        let slots = (self.terms.len() - start) as u32;
        self.terms.extend(scratch);
        let terms = (self.terms.len() - start) as u32;
        self.steps.push(Step { row, is_scratch, slots, terms });
    }

    /// Removes all steps, and keeps the allocated memory.
    pub fn clear(&mut self) {
        self.steps.clear();
        self.terms.clear();
        self.scratch_rows = 0;
    }

    /// Runs on the rows of `symbols`, in place, with the best instruction set of the processor.
    ///
    /// # Panics
    /// If a step names a row that `symbols` does not have.
    pub fn execute(&self, symbols: &mut Stripes) {
        self.run(InstructionSet::best(), symbols);
    }

    /// Runs on the rows of `symbols`, in place.
    pub(crate) fn run(&self, instructions: InstructionSet, symbols: &mut Stripes) {
        for index in 0..symbols.count() {
            let lines = symbols.lines(index);
            let (slots, scratch) = symbols.stripe_and_scratch(index, self.scratch_rows);
            instructions.dispatch(lines, RunStripe { program: self, slots, scratch });
        }
    }
}

impl XorProgram {
    /// Runs backwards: from what each slot contributes to some sums after the program, computes
    /// what it contributes before the program.
    pub(crate) fn run_transposed(&self, instructions: InstructionSet, rows: &mut OctetRows) {
        let mut scratch = vec![Line::ZERO; self.scratch_rows * rows.lines];
        let (lines, slots) = (rows.lines, rows.octets.as_mut_slice());
        let kernel = RunTransposed { program: self, slots, scratch: &mut scratch };
        instructions.dispatch(lines, kernel);
    }
}

/// A program, backwards, on one stripe.
struct RunTransposed<'a> {
    program: &'a XorProgram,
    slots: &'a mut [Line],
    scratch: &'a mut [Line],
}

impl Kernel for RunTransposed<'_> {
    #[inline(always)]
    fn run<V: Lane, const N: usize>(self) {
        let slots = self.slots.as_chunks_mut::<N>().0;
        let scratch = self.scratch.as_chunks_mut::<N>().0;
        let mut rest = self.program.terms.as_slice();
        for step in self.program.steps.iter().rev() {
            let (before, terms) = rest.split_at(rest.len() - step.terms as usize);
            rest = before;
            let (of_slots, of_scratch) = terms.split_at(step.slots as usize);
            let rows = if step.is_scratch { &mut *scratch } else { &mut *slots };
            // The step replaces the row: what it held before contributes only as a term.
            let row = &mut rows[step.row as usize];
            let sum = Row::<V, N>::load(row);
            *row = [Line::ZERO; N];
            sum.add_to_all(slots, of_slots);
            sum.add_to_all(scratch, of_scratch);
        }
    }
}

/// A program on one stripe.
struct RunStripe<'a> {
    program: &'a XorProgram,
    slots: &'a mut [Line],
    scratch: &'a mut [Line],
}

impl Kernel for RunStripe<'_> {
    #[inline(always)]
    fn run<V: Lane, const N: usize>(self) {
        let slots = self.slots.as_chunks_mut::<N>().0;
        let scratch = self.scratch.as_chunks_mut::<N>().0;
        let mut rest = self.program.terms.as_slice();
        let mut ahead = Ahead::new(self.program);
        for step in &self.program.steps {
            for &slot in ahead.next_slots() {
                Row::<V, N>::prefetch(&slots[slot as usize]);
            }
            let (terms, after) = rest.split_at(step.terms as usize);
            rest = after;
            let (of_slots, of_scratch) = terms.split_at(step.slots as usize);
            let sum = Row::<V, N>::zero().add_all(slots, of_slots).add_all(scratch, of_scratch);
            let rows = if step.is_scratch { &mut *scratch } else { &mut *slots };
            sum.store(&mut rows[step.row as usize]);
        }
    }
}

/// Steps between a fetch and its sum. Rows are scattered, and those of a block larger than the
/// caches are worth fetching: a sum takes some tens of nanoseconds, a memory access about a
/// hundred.
const AHEAD: usize = 4;
/// Slots of a step that are fetched. The processor itself prefetches the rest of a long sum.
const MOST_AHEAD: usize = 16;

/// The slots of the steps to fetch.
struct Ahead<'a> {
    steps: core::slice::Iter<'a, Step>,
    terms: &'a [u32],
}

impl<'a> Ahead<'a> {
    fn new(program: &'a XorProgram) -> Self {
        let (before, after) = program.steps.split_at(AHEAD.min(program.steps.len()));
        let skipped: usize = before.iter().map(|step| step.terms as usize).sum();
        Self { steps: after.iter(), terms: &program.terms[skipped..] }
    }

    /// The slots of the next step to fetch.
    #[inline(always)]
    fn next_slots(&mut self) -> &'a [u32] {
        let Some(step) = self.steps.next() else { return &[] };
        let (terms, after) = self.terms.split_at(step.terms as usize);
        self.terms = after;
        &terms[..(step.slots as usize).min(MOST_AHEAD)]
    }
}

/// Writes sums of rows, each a list of rows, one after another into `out`.
pub(crate) fn write_sums(
    instructions: InstructionSet,
    symbols: &Stripes,
    sums: &Lists,
    out: &mut [u8],
) {
    for index in 0..symbols.count() {
        let (width, bytes) = (symbols.width(), symbols.bytes(index));
        let kernel = SumStripe { rows: symbols.stripe(index), sums, width, bytes, out };
        instructions.dispatch(symbols.lines(index), kernel);
    }
}

/// The columns of sums that one stripe holds.
struct SumStripe<'a> {
    rows: &'a [Line],
    sums: &'a Lists,
    /// Bytes of a sum.
    width: usize,
    /// Bytes of a sum that are written here.
    bytes: core::ops::Range<usize>,
    out: &'a mut [u8],
}

impl Kernel for SumStripe<'_> {
    #[inline(always)]
    fn run<V: Lane, const N: usize>(self) {
        debug_assert!(self.bytes.len() <= N * LINE);
        let rows = self.rows.as_chunks::<N>().0;
        let mut ahead = self.sums.iter().skip(AHEAD);
        for (terms, out) in self.sums.iter().zip(self.out.chunks_exact_mut(self.width)) {
            for &row in ahead.next().into_iter().flatten().take(MOST_AHEAD) {
                Row::<V, N>::prefetch(&rows[row as usize]);
            }
            Row::<V, N>::zero().add_all(rows, terms).store_bytes(&mut out[self.bytes.clone()]);
        }
    }
}
