//! The available symbols of an LT block, and whether they suffice.

use super::elimination::{self, Eliminated};
use super::recovery::Recovery;
use super::{LtCode, Peeler, Profile};
use crate::codes::shared::equations::Budget;
use crate::decode::{EsiError, IdDecoder, Novelty, Progress, Work};
use crate::ids::Esi;
use crate::plan::{Plan, PlanIds};
use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// Peels as symbols arrive; an attempt to [`solve`](Decoder::solve) keeps the results of earlier
/// peeling. Where peeling ends, [`Profile::Strict`] continues by elimination.
pub(super) struct LtDecoder {
    profile: Profile,
    peeler: Peeler,
    available: BTreeSet<u32>,
    /// Symbols that the peeler has not processed.
    waiting: Vec<Esi>,
    /// The number of available symbols when the last attempt failed, and how many were lacking.
    shown: (usize, u32),
    plan: Option<Arc<Plan>>,
}

/// Symbols that a decoder stores. Peeling needs twice as many as the block has once in ten thousand
/// blocks of a thousand. Short blocks need more, and take little memory.
pub(super) const fn symbols_kept(source_symbols: u32) -> u32 {
    3 * source_symbols + 1024
}

/// Terms that a decoder stores for each source symbol, and for a thousand more. No efficient code
/// has half as many on average; a hostile one may have a million.
const MAX_MEAN_TERMS: usize = 64;

impl LtCode {
    /// See [`BlockProfile::decoder_memory`](crate::BlockProfile::decoder_memory).
    pub(super) fn decoder_memory(self, source_symbols: u32) -> u64 {
        /// A term, and as much again where a list has just grown.
        const TERM: u64 = 16;
        /// Other state of a symbol.
        const SYMBOL: u64 = 64;
        /// The look-up table of degrees, and their thresholds.
        const TABLE: u64 = 16 << 10;
        const THRESHOLD: u64 = 8;
        // A little more than the mean degrees of efficient codes: 17 and 31 for a million symbols.
        let terms = match self.profile {
            Profile::Fast => 18,
            Profile::Strict => 32,
        };
        let k = u64::from(source_symbols);
        TABLE + THRESHOLD * k.min(self.spike.into()) + (SYMBOL + TERM * terms) * k
    }

    /// A bound of the work to peel a block that honest symbols do not reach, plus the work of
    /// elimination at `k` symbols: see the tests.
    pub(super) fn work(self, source_symbols: u32) -> Work {
        let k = u64::from(source_symbols);
        let peeling = 2 * MAX_MEAN_TERMS as u64 * k + 10_000;
        let dense = match self.profile {
            Profile::Fast => 0,
            Profile::Strict => elimination::work(source_symbols),
        };
        Work(peeling + dense)
    }
}

impl LtDecoder {
    /// `source_symbols` must be within the code's limits.
    pub(super) fn new(code: LtCode, source_symbols: u32) -> Self {
        Self {
            profile: code.profile,
            peeler: Peeler::within(code, source_symbols),
            available: BTreeSet::new(),
            waiting: Vec::new(),
            shown: (0, 0),
            plan: None,
        }
    }

    fn source_symbols(&self) -> u32 {
        self.peeler.source_symbols()
    }

    /// Gives all symbols to the peeler, those of low degree first: when it processes a symbol of
    /// high degree, most of its terms are known and cost nothing. False if the budget was
    /// exhausted.
    fn peel(&mut self, budget: &mut u64) -> bool {
        let max_links = MAX_MEAN_TERMS * (self.source_symbols() as usize + 1024);
        let rows = self.peeler.rows();
        self.waiting.sort_by_cached_key(|&esi| core::cmp::Reverse(rows.degree(esi)));
        while !self.peeler.is_complete() {
            if !self.peeler.advance(budget) || *budget == 0 {
                return false;
            }
            let Some(esi) = self.waiting.pop() else { break };
            if self.peeler.links() < max_links {
                let terms = self.peeler.insert(esi);
                *budget = budget.saturating_sub(terms as u64);
            }
        }
        true
    }

    fn found(&mut self, recovery: Recovery, inputs: Vec<Esi>) -> Progress {
        let k = self.source_symbols();
        let lost = (0..k).filter(|esi| !self.available.contains(esi)).map(Esi).collect();
        let plan = Arc::new(Plan::new(PlanIds { source_symbols: k, inputs, lost }, recovery));
        self.plan = Some(Arc::clone(&plan));
        Progress::Solved(plan)
    }
}

impl IdDecoder for LtDecoder {
    fn push(&mut self, esi: Esi) -> Result<Novelty, EsiError> {
        if esi.0 == u32::MAX {
            return Err(EsiError { esi, encoding_symbols: u32::MAX });
        }
        let has_room = self.available.len() < symbols_kept(self.source_symbols()) as usize;
        if self.plan.is_some() || self.peeler.is_complete() || !has_room {
            return Ok(Novelty::Duplicate);
        }
        if !self.available.insert(esi.0) {
            return Ok(Novelty::Duplicate);
        }
        self.waiting.push(esi);
        Ok(Novelty::Fresh)
    }

    fn symbols_wanted(&self) -> u32 {
        if self.plan.is_some() || self.peeler.is_complete() {
            return 0;
        }
        let available = self.available.len();
        let missing = (self.source_symbols() as usize).saturating_sub(available);
        let (then, lack) = self.shown;
        missing.max((lack as usize).saturating_sub(available - then)) as u32
    }

    fn solve(&mut self, budget: Work) -> Progress {
        if let Some(plan) = &self.plan {
            return Progress::Solved(Arc::clone(plan));
        }
        match self.symbols_wanted() {
            0 => {}
            wanted => return Progress::Wanting(wanted),
        }
        let mut budget = budget.0;
        if !self.peel(&mut budget) {
            return Progress::OutOfBudget;
        }
        if self.peeler.is_complete() {
            let (recovery, inputs) = Recovery::peeled(&mut self.peeler);
            return self.found(recovery, inputs);
        }
        let outcome = match self.profile {
            Profile::Fast => Eliminated::Wanting(1),
            Profile::Strict => elimination::eliminate(&mut self.peeler, Budget(budget)),
        };
        match outcome {
            Eliminated::Solved(solution) => {
                let (recovery, inputs) = Recovery::eliminated(&mut self.peeler, &solution);
                self.found(recovery, inputs)
            }
            Eliminated::Wanting(lack) => {
                self.shown = (self.available.len(), lack);
                Progress::Wanting(lack)
            }
            Eliminated::OutOfBudget => Progress::OutOfBudget,
        }
    }
}
