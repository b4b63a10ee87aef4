//! Computation of the source symbols of an LT block from the available symbols.
//!
//! Each source symbol has a slot, which initially holds the encoding symbol that recovers it.
//! Inputs have slots in their order, so loading them accesses memory sequentially.

use super::{LtCode, Peeler, Rows};
use crate::bytes::octets::OctetRows;
use crate::bytes::stripes::Stripes;
use crate::bytes::stripes::loading::LoadError;
use crate::bytes::xor_program::{XorProgram, write_sums};
use crate::codes::shared::csr::Lists;
use crate::codes::shared::inactivation::Solution;
use crate::ids::Esi;
use crate::plan::{self, Plan, PlanIds, Program, Run, Weighted};
use alloc::vec;
use alloc::vec::Vec;

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
        let eliminated = solution.inputs().map(|(symbol, esi)| (symbol, Esi(esi)));
        let (slots, inputs) = assign_slots(k, peeled.chain(eliminated));
        let program = XorProgram::with_capacity(2 * k, 2 * peeler.links());
        let mut this = Self { rows: peeler.rows().clone(), program, slots };
        this.add_peeled(peeler);
        let Self { rows, program, slots } = &mut this;
        let terms = |esi, terms: &mut Vec<u32>| terms.extend_from_slice(rows.row(Esi(esi)));
        solution.append_to(program, slots, terms);
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

    fn contributions(&self, ids: &PlanIds, sums: Weighted<'_>) -> Option<OctetRows> {
        let mut rows = sums.of_rows(self.slots.len(), &self.sums(sums.esis));
        self.program.run_transposed(sums.instructions, &mut rows);
        rows.truncate(ids.inputs.len());
        Some(rows)
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
