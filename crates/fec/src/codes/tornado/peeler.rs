//! Peeling on ids alone.

use super::Graph;
use crate::decode::EsiError;
use crate::ids::Esi;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

/// The direction in which checks are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peeling {
    /// The paper's decoder: a known check recovers the last unknown symbol of its sum. Symbols are
    /// recovered from right to left only.
    OneDirectional,
    /// In addition, a first check whose terms are all known becomes known, and helps the last
    /// checks to recover others.
    Joint,
}

/// Recovers symbols as others arrive, on ids, for one block of one receiver.
#[derive(Clone, Debug)]
pub struct Peeler {
    graph: Arc<Graph>,
    peeling: Peeling,
    /// For each symbol, whether it is available or recovered.
    known: Vec<bool>,
    checks: Vec<Check>,
    recovered: usize,
    /// Symbols that are known and not yet removed from their checks.
    fresh: Vec<u32>,
    steps: Vec<Step>,
}

/// A recovered symbol that was not received, and the check that recovered it. In the order of
/// steps, all symbols that a step needs are available or were recovered earlier.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    /// ESI of the symbol.
    pub(super) symbol: u32,
    /// Index of the check; if it is the symbol itself, the symbol is the sum of its terms.
    pub(super) check: u32,
}

/// The unknown symbols among a check and its terms.
#[derive(Clone, Copy, Debug)]
struct Check {
    /// The number of unknown symbols.
    missing: u32,
    /// Exclusive or of their ESIs: the ESI itself if there is one.
    sum: u32,
}

impl Check {
    /// A check of which no symbol is known.
    fn untouched((missing, sum): (u32, u32)) -> Self {
        Self { missing, sum }
    }
}

impl Peeler {
    /// A peeler without symbols.
    pub fn new(graph: Arc<Graph>, peeling: Peeling) -> Self {
        let known = vec![false; graph.encoding_symbols() as usize];
        let checks = graph.checks().map(Check::untouched).collect();
        let (fresh, steps) = (Vec::new(), Vec::new());
        Self { graph, peeling, known, checks, recovered: 0, fresh, steps }
    }

    /// Removes all symbols, and keeps the allocated memory.
    pub fn reset(&mut self) {
        self.known.fill(false);
        let untouched = self.graph.checks().map(Check::untouched);
        self.checks.iter_mut().zip(untouched).for_each(|(check, untouched)| *check = untouched);
        self.recovered = 0;
        self.fresh.clear();
        self.steps.clear();
    }

    /// Adds encoding symbol `esi`, and recovers all symbols that follow. Returns the number of
    /// known source symbols.
    ///
    /// # Errors
    /// [`EsiError`] if the block has no such symbol; the state is unchanged.
    pub fn push(&mut self, esi: Esi) -> Result<usize, EsiError> {
        let encoding_symbols = self.known.len() as u32;
        if esi.0 >= encoding_symbols {
            return Err(EsiError { esi, encoding_symbols });
        }
        self.learn(esi.0);
        self.advance(&mut { u64::MAX });
        Ok(self.recovered)
    }

    /// The number of known source symbols.
    pub fn recovered(&self) -> usize {
        self.recovered
    }

    /// True if all source symbols are known.
    pub fn is_complete(&self) -> bool {
        self.recovered == self.graph.source_symbols() as usize
    }

    /// True if symbol `esi` is available or recovered.
    pub fn knows(&self, esi: Esi) -> bool {
        self.known.get(esi.0 as usize).is_some_and(|&known| known)
    }

    /// The graph that it works on.
    pub fn graph(&self) -> &Arc<Graph> {
        &self.graph
    }

    /// True if all that follows from the known symbols has been recovered.
    pub(super) fn is_idle(&self) -> bool {
        self.fresh.is_empty()
    }

    /// The recovered symbols, in order.
    pub(super) fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Marks symbol `symbol` as known, without processing it.
    pub(super) fn learn(&mut self, symbol: u32) -> bool {
        let is_new = !core::mem::replace(&mut self.known[symbol as usize], true);
        if is_new {
            self.recovered += usize::from(symbol < self.graph.source_symbols());
            self.fresh.push(symbol);
        }
        is_new
    }

    /// Recovers all that follows from the known symbols. Spends one unit of `budget` per edge.
    /// False if the budget was exhausted.
    pub(super) fn advance(&mut self, budget: &mut u64) -> bool {
        if self.fresh.is_empty() {
            return true;
        }
        let graph = Arc::clone(&self.graph);
        while let Some(symbol) = self.fresh.pop() {
            let checks = graph.checks_of(symbol);
            let Some(rest) = budget.checked_sub(checks.len() as u64 + 1) else {
                self.fresh.push(symbol);
                return false;
            };
            *budget = rest;
            for &check in checks {
                self.reduce(check, symbol);
            }
            if let Some(own) = symbol.checked_sub(graph.source_symbols()) {
                self.reduce(own, symbol);
            }
        }
        true
    }

    /// Removes a known symbol from a check: one of its terms, or the check itself.
    #[inline(always)]
    fn reduce(&mut self, index: u32, symbol: u32) {
        let check = &mut self.checks[index as usize];
        check.missing -= 1;
        check.sum ^= symbol;
        if check.missing == 1 {
            let last = check.sum;
            // If it is the check itself, that helps to recover others only with joint peeling.
            let is_own = last == self.graph.source_symbols() + index;
            if (!is_own || self.peeling == Peeling::Joint) && self.learn(last) {
                self.steps.push(Step { symbol: last, check: index });
            }
        }
    }
}
