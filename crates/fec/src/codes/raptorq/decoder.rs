//! The available symbols of a RaptorQ block, and whether they suffice.

use super::direct::{self, DirectPlan};
use super::full::FullBlock;
use super::params::Params;
use super::planner::{Planned, plan};
use super::recovery::Recovery;
use super::{ENCODING_SYMBOLS, isi_of};
use crate::bytes::kernel::InstructionSet;
use crate::codes::shared::received::ReceivedIds;
use crate::decode::{EsiError, IdDecoder, Novelty, Progress, Work};
use crate::ids::Esi;
use crate::plan::Plan;
use crate::sync::OnceLock;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// Symbols beyond `K` up to which repair symbols are stored: see [`ReceivedIds`]. Of random symbols
/// a dozen more than `K` are never needed, because each makes a failure a hundred times rarer; some
/// more avoid the work of the HDPC rows.
const SURPLUS: usize = 64;

/// The available symbols, and the state that blocks of this length share.
pub(crate) struct RaptorQDecoder {
    params: Params,
    received: ReceivedIds,
    full: Arc<FullBlock>,
}

impl RaptorQDecoder {
    /// `source_symbols` must be within the code's limits, and `full` must cover it.
    pub(crate) fn new(source_symbols: u32, full: Arc<FullBlock>) -> Self {
        let received = ReceivedIds::new(source_symbols, SURPLUS);
        Self { params: *full.params(), received, full }
    }

    /// The plan for few lost symbols from as many repair symbols, the first ones, if those suffice
    /// and `budget` allows a direct plan.
    ///
    /// The direct plan is used if it is faster, which depends on the processor. On which symbols
    /// the result depends must not: one of them may be forged.
    fn solve_from_first(&self, instructions: InstructionSet, budget: Work) -> Option<Plan> {
        let (count, k) = (self.received.lost_count(), self.received.source_symbols());
        let affordable = direct::work(&self.params, count) <= budget;
        let has_repair = self.received.repair().len() >= count;
        if !affordable || !direct::is_for(count) || !has_repair {
            return None;
        }
        let (lost, repair) = (self.received.lost(), || self.received.repair().take(count));
        if !direct::is_faster(instructions, count) {
            match plan(&self.params, &self.isis(repair()), budget) {
                Planned::Solved(program) => return Some(Recovery::by_program(k, lost, *program)),
                Planned::Wanting(_) => return None,
                Planned::OutOfBudget => {}
            }
        }
        let direct = DirectPlan::new(instructions, &self.full, k, &lost, repair())?;
        Some(Recovery::directly(k, lost, repair(), direct))
    }

    /// Internal symbol ids of the known source symbols, the padding and these repair symbols.
    fn isis(&self, repair: impl Iterator<Item = Esi>) -> Vec<u32> {
        let k = self.received.source_symbols();
        let source = self.received.source().map(|esi| esi.0);
        let repair = repair.map(|esi| isi_of(&self.params, k, esi));
        source.chain(k..self.params.k_prime).chain(repair).collect()
    }

    /// [`IdDecoder::solve`] for these instructions.
    fn solve_for(&mut self, instructions: InstructionSet, budget: Work) -> Progress {
        match self.symbols_wanted() {
            0 => {}
            wanted => return Progress::Wanting(wanted),
        }
        let k = self.received.source_symbols();
        let found = if self.received.has_all_source() {
            Recovery::of_source(k, OnceLock::new())
        } else if let Some(plan) = self.solve_from_first(instructions, budget) {
            plan
        } else {
            match plan(&self.params, &self.isis(self.received.repair()), budget) {
                Planned::Solved(program) => Recovery::by_program(k, self.received.lost(), *program),
                Planned::Wanting(lack) => {
                    self.received.on_lack(lack);
                    return Progress::Wanting(lack);
                }
                Planned::OutOfBudget => {
                    self.received.on_out_of_budget();
                    return Progress::OutOfBudget;
                }
            }
        };
        self.received.on_solved();
        Progress::Solved(Arc::new(found))
    }
}

impl IdDecoder for RaptorQDecoder {
    fn push(&mut self, esi: Esi) -> Result<Novelty, EsiError> {
        if esi.0 >= ENCODING_SYMBOLS {
            return Err(EsiError { esi, encoding_symbols: ENCODING_SYMBOLS });
        }
        Ok(self.received.push(esi))
    }

    fn symbols_wanted(&self) -> u32 {
        self.received.symbols_wanted()
    }

    fn solve(&mut self, budget: Work) -> Progress {
        self.solve_for(InstructionSet::best(), budget)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The inputs of the plan for a block of `k` symbols without the first `lost`, with `repair`
    /// repair symbols.
    fn inputs(instructions: InstructionSet, k: u32, lost: u32, repair: u32) -> Vec<Esi> {
        let full = Arc::new(FullBlock::new(Params::covering(k)));
        let mut decoder = RaptorQDecoder::new(k, full);
        for esi in (lost..k + repair).map(Esi) {
            decoder.push(esi).unwrap();
        }
        match decoder.solve_for(instructions, Work::UNBOUNDED) {
            Progress::Solved(plan) => {
                let mut inputs = plan.inputs().to_vec();
                inputs.sort();
                inputs
            }
            other => panic!("{lost} of {k} lost, {repair} repair symbols: {other:?}"),
        }
    }

    #[test]
    fn the_symbols_of_a_plan_do_not_depend_on_the_processor() {
        for (k, lost) in [(10, 1), (100, 10), (500, 15), (500, 50), (500, 122), (500, 200)] {
            let expected = inputs(InstructionSet::best(), k, lost, lost + 8);
            for instructions in InstructionSet::available() {
                let found = inputs(instructions, k, lost, lost + 8);
                assert!(found == expected, "{instructions:?}, {lost} of {k} lost");
            }
            if direct::is_for(lost as usize) {
                assert_eq!(expected.len() as u32, k, "as many repair symbols as are lost");
            }
        }
    }
}
