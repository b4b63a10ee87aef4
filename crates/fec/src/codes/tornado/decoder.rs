//! The available symbols of a Tornado block, and whether they suffice.

use super::recovery::Recovery;
use super::{Graph, Peeler, Peeling};
use crate::decode::{EsiError, IdDecoder, Novelty, Progress, Work};
use crate::ids::Esi;
use crate::plan::{Plan, PlanIds};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

/// Peels as symbols arrive; an attempt to [`solve`](IdDecoder::solve) keeps the results of earlier
/// ones.
pub(crate) struct TornadoDecoder {
    peeler: Peeler,
    /// For each encoding symbol, whether it was pushed.
    available: Vec<bool>,
    /// Pushed symbols, and the number of those that the peeler has processed.
    pushed: Vec<u32>,
    peeled: usize,
}

impl TornadoDecoder {
    pub(crate) fn new(graph: Arc<Graph>) -> Self {
        let available = vec![false; graph.encoding_symbols() as usize];
        let peeler = Peeler::new(graph, Peeling::Joint);
        Self { peeler, available, pushed: Vec::new(), peeled: 0 }
    }

    fn source_symbols(&self) -> usize {
        self.peeler.graph().source_symbols() as usize
    }

    /// The plan, if the source symbols are available or recovered.
    fn plan(&self) -> Plan {
        let k = self.source_symbols();
        let lost =
            (0..).zip(&self.available[..k]).filter_map(|(esi, &here)| (!here).then_some(Esi(esi)));
        let lost: Vec<Esi> = lost.collect();
        let graph = Arc::clone(self.peeler.graph());
        let (recovery, inputs) = Recovery::of_lost(graph, &self.available, self.peeler.steps());
        Plan::new(PlanIds { source_symbols: k as u32, inputs, lost }, recovery)
    }
}

impl IdDecoder for TornadoDecoder {
    fn push(&mut self, esi: Esi) -> Result<Novelty, EsiError> {
        let encoding_symbols = self.available.len() as u32;
        let here =
            self.available.get_mut(esi.0 as usize).ok_or(EsiError { esi, encoding_symbols })?;
        if *here || self.peeler.is_complete() {
            return Ok(Novelty::Duplicate);
        }
        *here = true;
        self.pushed.push(esi.0);
        Ok(Novelty::Fresh)
    }

    fn symbols_wanted(&self) -> u32 {
        if self.peeler.is_complete() {
            return 0;
        }
        let k = self.source_symbols();
        // Where `k` or more do not suffice, one more may.
        let all_tried = self.peeled == self.pushed.len() && self.peeler.is_idle();
        k.saturating_sub(self.pushed.len()).max(usize::from(all_tried)) as u32
    }

    fn solve(&mut self, budget: Work) -> Progress {
        match self.symbols_wanted() {
            0 => {}
            wanted => return Progress::Wanting(wanted),
        }
        let mut budget = budget.0;
        while !self.peeler.is_complete() {
            if !self.peeler.advance(&mut budget) {
                return Progress::OutOfBudget;
            }
            let Some(&esi) = self.pushed.get(self.peeled) else {
                return if self.peeler.is_complete() { break } else { Progress::Wanting(1) };
            };
            self.peeled += 1;
            self.peeler.learn(esi);
        }
        Progress::Solved(Arc::new(self.plan()))
    }
}
