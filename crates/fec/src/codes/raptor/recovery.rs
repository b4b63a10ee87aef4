//! Computation of the intermediate symbols of a Raptor block from the available symbols.
//!
//! Each intermediate symbol has a slot. The slot of a column that an encoding symbol's row solves
//! holds that symbol first; the others, which constraints solve, hold zeros. Inputs have slots in
//! their order, so loading them accesses memory sequentially.

use super::ENCODING_SYMBOLS;
use super::matrix::{TYPICAL_TERMS, matrix};
use super::params::Params;
use super::triple::neighbors;
use crate::bytes::octets::OctetRows;
use crate::bytes::stripes::Stripes;
use crate::bytes::stripes::loading::LoadError;
use crate::bytes::xor_program::{XorProgram, write_sums};
use crate::codes::shared::csr::Lists;
use crate::codes::shared::equations::{Budget, Stop};
use crate::codes::shared::inactivation;
use crate::decode::Work;
use crate::ids::Esi;
use crate::plan::{self, Plan, PlanIds, Program, Rows, Run, Weighted};
use crate::sync::OnceLock;
use alloc::vec;
use alloc::vec::Vec;

/// The operations of a Raptor plan.
pub(super) struct Recovery {
    params: Params,
    /// Made when first executed, if every source symbol is available: a receiver does not need it
    /// then.
    solved: OnceLock<Solved>,
}

/// Slots, and the program that runs on them.
struct Solved {
    program: XorProgram,
    /// The slot of each intermediate symbol.
    slots: Vec<u32>,
}

impl Recovery {
    /// The plan of a block whose source symbols are all available.
    pub(super) fn of_source(params: Params) -> Plan {
        Plan::new(PlanIds::of_source(params.k), Self { params, solved: OnceLock::new() })
    }

    /// The plan of a block that lacks source symbols `lost`, from encoding symbols `esis`. Both are
    /// ascending.
    pub(super) fn of_lost(
        params: Params,
        lost: Vec<Esi>,
        esis: &[u32],
        budget: Work,
    ) -> Result<Plan, Stop> {
        let (solved, inputs) = Solved::new(&params, esis, &mut Budget(budget.0))?;
        let ids = PlanIds { source_symbols: params.k, inputs, lost };
        Ok(Plan::new(ids, Self { params, solved: OnceLock::from(solved) }))
    }

    fn solved(&self) -> &Solved {
        self.solved.get_or_init(|| {
            let esis: Vec<u32> = (0..self.params.k).collect();
            match Solved::new(&self.params, &esis, &mut Budget(Work::UNBOUNDED.0)) {
                Ok((solved, _)) => solved,
                // The systematic indices guarantee it (RFC 5053, section 5.7); a test tries them.
                Err(_) => unreachable!("the matrix of K = {} is singular", self.params.k),
            }
        })
    }
}

impl Solved {
    /// The computation of the intermediate symbols from encoding symbols `esis`, ascending, and
    /// those of them that it uses.
    fn new(params: &Params, esis: &[u32], budget: &mut Budget) -> Result<(Self, Vec<Esi>), Stop> {
        let rows = matrix(params, esis);
        budget.spend(rows.total())?;
        let solution = inactivation::solve(&rows, params.l, budget)?;

        // Slots: the inputs that are used, in their order, then the columns without an input.
        let constraints = params.s + params.h;
        let input = |&(_, row): &(u32, u32)| row >= constraints;
        let (mut of_inputs, others): (Vec<_>, Vec<_>) = solution.inputs().partition(input);
        of_inputs.sort_unstable_by_key(|&(_, row)| row);
        let mut slots = vec![0; params.l as usize];
        for (slot, (column, _)) in (0..).zip(of_inputs.iter().chain(&others)) {
            slots[*column as usize] = slot;
        }
        let inputs = of_inputs.iter().map(|(_, row)| Esi(esis[(row - constraints) as usize]));
        let inputs = inputs.collect();

        let mut program = XorProgram::with_capacity(2 * slots.len(), 2 * rows.total());
        let terms = |row, terms: &mut Vec<u32>| terms.extend_from_slice(rows.list(row as usize));
        solution.append_to(&mut program, &slots, terms);
        Ok((Self { program, slots }, inputs))
    }

    /// For each of these encoding symbols the slots whose sum it is; empty for those that do not
    /// exist.
    fn sums(&self, params: &Params, esis: &[Esi]) -> Lists {
        let mut sums = Lists::with_capacity(esis.len(), esis.len() * TYPICAL_TERMS);
        for &esi in esis {
            if esi.0 < ENCODING_SYMBOLS {
                sums.push(neighbors(params, esi.0).map(|column| self.slots[column as usize]));
            } else {
                sums.push([]);
            }
        }
        sums
    }
}

impl Program for Recovery {
    fn memory(&self, ids: &PlanIds, width: usize) -> usize {
        let Solved { program, slots } = self.solved();
        plan::memory(slots.len(), program.scratch_rows(), ids.inputs.len(), width)
    }

    fn execute(&self, ids: &PlanIds, run: Run<'_>) -> Result<Stripes, LoadError> {
        let (Solved { program, slots }, instructions) = (self.solved(), run.instructions);
        let inputs = ids.inputs.iter().copied().map(Some);
        let empty = core::iter::repeat_n(None, slots.len() - ids.inputs.len());
        let mut symbols = run.load(slots.len(), inputs.chain(empty).zip(0..))?;
        program.run(instructions, &mut symbols);
        Ok(symbols)
    }

    fn write_symbols(&self, _ids: &PlanIds, symbols: Rows<'_>, esis: &[Esi], out: &mut [u8]) {
        let sums = self.solved().sums(&self.params, esis);
        write_sums(symbols.instructions, symbols.symbols, &sums, out);
    }

    fn contributions(&self, ids: &PlanIds, sums: Weighted<'_>) -> Option<OctetRows> {
        let Solved { program, slots } = self.solved();
        let terms = self.solved().sums(&self.params, sums.esis);
        let mut rows = sums.of_rows(slots.len(), &terms);
        program.run_transposed(sums.instructions, &mut rows);
        rows.truncate(ids.inputs.len());
        Some(rows)
    }
}
