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
use std::sync::{Arc, OnceLock};

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

    /// The direct plan, if it is faster, `budget` allows it, and the first repair symbols suffice.
    fn solve_directly(&self, budget: Work) -> Option<Plan> {
        let instructions = InstructionSet::best();
        let (count, k) = (self.received.lost_count(), self.received.source_symbols());
        let affordable = direct::work(&self.params, count) <= budget;
        let has_repair = self.received.repair().len() >= count;
        if !affordable || !direct::is_faster(instructions, count) || !has_repair {
            return None;
        }
        let (lost, repair) = (self.received.lost(), || self.received.repair().take(count));
        let direct = DirectPlan::new(instructions, &self.full, k, &lost, repair())?;
        Some(Recovery::directly(k, lost, repair(), direct))
    }

    /// Internal symbol ids of all known symbols: source, padding and repair symbols, ascending.
    fn isis(&self) -> Vec<u32> {
        let k = self.received.source_symbols();
        let source = self.received.source().map(|esi| esi.0);
        let repair = self.received.repair().map(|esi| isi_of(&self.params, k, esi));
        source.chain(k..self.params.k_prime).chain(repair).collect()
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
        match self.symbols_wanted() {
            0 => {}
            wanted => return Progress::Wanting(wanted),
        }
        let k = self.received.source_symbols();
        let found = if self.received.has_all_source() {
            Recovery::of_source(k, OnceLock::new())
        } else if let Some(plan) = self.solve_directly(budget) {
            plan
        } else {
            match plan(&self.params, &self.isis(), budget) {
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
