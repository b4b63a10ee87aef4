//! Computation of the source symbols of an LT block from the available symbols.
//!
//! Each source symbol has a slot, which initially holds the encoding symbol that recovers it.
//! Inputs have slots in their order, so loading them accesses memory sequentially.

use super::elimination::Solution;
use super::{LtCode, Peeler, Rows};
use crate::bytes::stripes::Stripes;
use crate::bytes::stripes::loading::LoadError;
use crate::bytes::xor_program::{XorProgram, write_sums};
use crate::codes::shared::csr::Lists;
use crate::ids::Esi;
use crate::plan::{self, Plan, PlanIds, Program, Run};

/// Slots and the program that runs on them.
pub(super) struct Recovery {
    rows: Rows,
    program: XorProgram,
    /// The slot of each source symbol.
    slots: Vec<u32>,
}

impl Recovery {
    /// The plan of a block whose source symbols are all available.
    pub(super) fn of_source(code: LtCode, source_symbols: u32) -> Plan {
        let recovery = Self {
            rows: Rows::within(code, source_symbols),
            program: XorProgram::default(),
            slots: (0..source_symbols).collect(),
        };
        Plan::new(PlanIds::of_source(source_symbols), recovery)
    }

    /// The recovery of a block that peeling has solved, and the symbols to load.
    pub(super) fn peeled(peeler: &mut Peeler) -> (Self, Vec<Esi>) {
        let k = peeler.source_symbols() as usize;
        let pivots = peeler.steps().iter().map(|step| (step.symbol, step.esi));
        let (slots, inputs) = assign_slots(k, pivots);
        let program = XorProgram::with_capacity(k, peeler.links());
        let mut this = Self { rows: peeler.rows().clone(), program, slots };
        this.add_peeled(peeler);
        (this, inputs)
    }

    /// The recovery of a block that peeling and elimination have solved, and the symbols to load.
    pub(super) fn eliminated(peeler: &mut Peeler, solution: &Solution) -> (Self, Vec<Esi>) {
        let k = peeler.source_symbols() as usize;
        let peeled = peeler.steps().iter().map(|step| (step.symbol, step.esi));
        let pivots = solution.pivots.iter().map(|pivot| (pivot.symbol, pivot.esi));
        let dense = solution.dense.iter().map(|row| (row.symbol, row.esi));
        let (slots, inputs) = assign_slots(k, peeled.chain(pivots).chain(dense));
        let program = XorProgram::with_capacity(2 * k, 2 * peeler.links());
        let mut this = Self { rows: peeler.rows().clone(), program, slots };
        this.add_peeled(peeler);
        this.add_eliminated(solution);
        (this, inputs)
    }

    /// Adds the peeled symbols: each is the sum of its input and earlier symbols.
    fn add_peeled(&mut self, peeler: &Peeler) {
        for step in peeler.steps() {
            let terms = self.rows.row(step.esi);
            if terms.len() > 1 {
                let slots = terms.iter().map(|&term| self.slots[term as usize]);
                self.program.set_slot(self.slots[step.symbol as usize], slots);
            }
        }
    }

    /// Adds the eliminated symbols:
    ///
    /// 1. For every pivot, in order: `y`, its value if all inactive symbols were zero.
    /// 2. For every dense row: `d`, the sum of its input and such values.
    /// 3. For every inactive symbol: a sum of `d`.
    /// 4. For every pivot, in order: the sum of its input and its row's other symbols.
    fn add_eliminated(&mut self, solution: &Solution) {
        /// For symbols that are not pivots.
        const NONE: u32 = u32::MAX;
        let mut y_of = vec![NONE; self.slots.len()];
        let mut is_inactive = vec![false; self.slots.len()];
        for (y, pivot) in (0..).zip(&solution.pivots) {
            y_of[pivot.symbol as usize] = y;
        }
        for row in &solution.dense {
            is_inactive[row.symbol as usize] = true;
        }
        let d_start = solution.pivots.len() as u32;
        let pivots = (0..).zip(&solution.pivots).map(|(y, pivot)| (y, pivot.symbol, pivot.esi));
        let dense = (d_start..).zip(&solution.dense).map(|(d, row)| (d, row.symbol, row.esi));
        for (scratch, symbol, esi) in pivots.chain(dense) {
            let terms = self.rows.row(esi);
            let is_peeled = |term: u32| y_of[term as usize] == NONE && !is_inactive[term as usize];
            let peeled = terms.iter().copied().filter(|&term| is_peeled(term));
            let slots = std::iter::once(symbol).chain(peeled).map(|term| self.slots[term as usize]);
            let solved = terms.iter().map(|&term| y_of[term as usize]);
            let solved = solved.filter(|&y| y != NONE && y != scratch);
            self.program.set_scratch(scratch, slots, solved);
        }
        for row in &solution.dense {
            let slot = self.slots[row.symbol as usize];
            self.program.set_slot_with(slot, [], row.sum.iter().map(|d| d_start + d));
        }
        for pivot in &solution.pivots {
            let slots = self.rows.row(pivot.esi).iter().map(|&term| self.slots[term as usize]);
            self.program.set_slot(self.slots[pivot.symbol as usize], slots);
        }
    }

    /// For each of these encoding symbols the slots whose sum it is; empty for the one ESI that has
    /// no symbol.
    fn sums(&self, esis: &[Esi]) -> Lists {
        let mut rows = self.rows.clone();
        let mut sums = Lists::with_capacity(esis.len(), esis.len() * TYPICAL_TERMS);
        for &esi in esis {
            let terms = if esi.0 == u32::MAX { &[] } else { rows.row(esi) };
            sums.push(terms.iter().map(|&term| self.slots[term as usize]));
        }
        sums
    }
}

impl Program for Recovery {
    fn memory(&self, ids: &PlanIds, width: usize) -> usize {
        plan::memory(self.slots.len(), self.program.scratch_rows(), ids.inputs.len(), width)
    }

    fn execute(&self, ids: &PlanIds, run: Run<'_>) -> Result<Stripes, LoadError> {
        let instructions = run.instructions;
        let inputs = ids.inputs.iter().copied().map(Some).zip(0..);
        let mut symbols = run.load(self.slots.len(), inputs)?;
        self.program.run(instructions, &mut symbols);
        Ok(symbols)
    }

    fn write_symbols(&self, _ids: &PlanIds, symbols: plan::Rows<'_>, esis: &[Esi], out: &mut [u8]) {
        write_sums(symbols.instructions, symbols.symbols, &self.sums(esis), out);
    }
}

/// Terms of an average symbol, rounded up.
const TYPICAL_TERMS: usize = 16;

/// The slot of each of `k` source symbols, and the inputs in the order of their slots, which is
/// ascending.
fn assign_slots(k: usize, pivots: impl Iterator<Item = (u32, Esi)>) -> (Vec<u32>, Vec<Esi>) {
    let mut pivots: Vec<(Esi, u32)> = pivots.map(|(symbol, esi)| (esi, symbol)).collect();
    pivots.sort_unstable();
    let mut slots = vec![0; k];
    for (slot, &(_, symbol)) in (0..).zip(&pivots) {
        slots[symbol as usize] = slot;
    }
    (slots, pivots.into_iter().map(|(esi, _)| esi).collect())
}
