//! The available symbols of a RaptorQ block, and whether they suffice.

use super::direct::{self, DirectPlan};
use super::full::FullBlock;
use super::params::Params;
use super::planner::{Planned, plan};
use super::recovery::Recovery;
use super::{ENCODING_SYMBOLS, isi_of};
use crate::bytes::kernel::InstructionSet;
use crate::decode::{EsiError, IdDecoder, Novelty, Progress, Work};
use crate::ids::Esi;
use crate::plan::Plan;
use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

/// Repair symbols that are stored beyond `K`. A decoder stores repair symbols while fewer than
/// `K + SURPLUS` symbols are available. Of random symbols a dozen more than `K` are never needed,
/// because each makes a failure a hundred times rarer; some more avoid the work of the HDPC rows.
/// If ids chosen by an attacker do not suffice, each failed attempt adds the number of lacking
/// symbols and another surplus, up to `2 K + SURPLUS`. Source symbols always suffice in the end,
/// and are always stored, so there are at most `3 K + SURPLUS` symbols.
const SURPLUS: usize = 64;

/// Ids of the available symbols, as sets: a plan depends on which symbols arrived, not on their
/// order.
pub(crate) struct RaptorQDecoder {
    params: Params,
    /// One flag for each source symbol.
    source: Vec<bool>,
    source_count: usize,
    /// ESIs of repair symbols.
    repair: BTreeSet<u32>,
    /// Number of available symbols up to which repair symbols are stored: see [`SURPLUS`].
    room: usize,
    /// The number of available symbols when the last attempt failed, and the rank that was lacking.
    shown: (usize, u32),
    solved: bool,
    full: Arc<FullBlock>,
}

impl RaptorQDecoder {
    /// `source_symbols` must be within the code's limits, and `full` must cover it.
    pub(crate) fn new(source_symbols: u32, full: Arc<FullBlock>) -> Self {
        Self {
            params: *full.params(),
            source: vec![false; source_symbols as usize],
            source_count: 0,
            repair: BTreeSet::new(),
            room: source_symbols as usize + SURPLUS,
            shown: (0, source_symbols),
            solved: false,
            full,
        }
    }

    fn available(&self) -> usize {
        self.source_count + self.repair.len()
    }

    /// Raises the limit after an attempt failed by `lack` symbols, or for too much work.
    fn make_room(&mut self, lack: u32) {
        let most = 2 * self.source.len() + SURPLUS;
        self.room = self.room.max(self.available() + lack as usize + SURPLUS).min(most);
    }

    fn lost(&self) -> Vec<Esi> {
        let source = (0..).zip(&self.source);
        source.filter_map(|(esi, &here)| (!here).then_some(Esi(esi))).collect()
    }

    /// The direct plan, if it is faster, `budget` allows it, and the first repair symbols suffice.
    fn solve_directly(&self, budget: Work) -> Option<Plan> {
        let count = self.source.len() - self.source_count;
        let instructions = InstructionSet::best();
        let affordable = direct::work(&self.params, count) <= budget;
        if !affordable || !direct::is_faster(instructions, count) || self.repair.len() < count {
            return None;
        }
        let k = self.source.len() as u32;
        let (lost, repair) = (self.lost(), || self.repair.iter().take(count).map(|&esi| Esi(esi)));
        let direct = DirectPlan::new(instructions, &self.full, k, &lost, repair())?;
        Some(Recovery::directly(k, lost, repair(), direct))
    }

    /// Internal symbol ids of all known symbols: source, padding and repair symbols, ascending.
    fn isis(&self) -> Vec<u32> {
        let source = (0..).zip(&self.source).filter_map(|(isi, &here)| here.then_some(isi));
        let k = self.source.len() as u32;
        let repair = self.repair.iter().map(|&esi| isi_of(&self.params, k, Esi(esi)));
        source.chain(k..self.params.k_prime).chain(repair).collect()
    }
}

impl IdDecoder for RaptorQDecoder {
    fn push(&mut self, esi: Esi) -> Result<Novelty, EsiError> {
        if esi.0 >= ENCODING_SYMBOLS {
            return Err(EsiError { esi, encoding_symbols: ENCODING_SYMBOLS });
        }
        if self.solved {
            return Ok(Novelty::Duplicate);
        }
        let room = self.available() < self.room;
        let fresh = match self.source.get_mut(esi.0 as usize) {
            Some(here) => {
                let fresh = !std::mem::replace(here, true);
                self.source_count += usize::from(fresh);
                fresh
            }
            None => room && self.repair.insert(esi.0),
        };
        Ok(if fresh { Novelty::Fresh } else { Novelty::Duplicate })
    }

    fn symbols_wanted(&self) -> u32 {
        if self.solved || self.source_count == self.source.len() {
            return 0;
        }
        let (then, lack) = self.shown;
        lack.saturating_sub((self.available() - then) as u32)
    }

    fn solve(&mut self, budget: Work) -> Progress {
        match self.symbols_wanted() {
            0 => {}
            wanted => return Progress::Wanting(wanted),
        }
        let k = self.source.len() as u32;
        let found = if self.source_count == self.source.len() {
            Recovery::of_source(k, OnceLock::new())
        } else if let Some(plan) = self.solve_directly(budget) {
            plan
        } else {
            match plan(&self.params, &self.isis(), budget) {
                Planned::Solved(program) => Recovery::by_program(k, self.lost(), *program),
                Planned::Wanting(lack) => {
                    self.shown = (self.available(), lack);
                    self.make_room(lack);
                    return Progress::Wanting(lack);
                }
                Planned::OutOfBudget => {
                    self.make_room(0);
                    return Progress::OutOfBudget;
                }
            }
        };
        self.solved = true;
        Progress::Solved(Arc::new(found))
    }
}
