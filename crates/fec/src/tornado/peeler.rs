//! Peeling on ids alone.

use super::Graph;
use crate::{Esi, EsiError};
use std::sync::Arc;

/// Which way the sums are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peeling {
    /// The paper's: a check that is known recovers the last symbol it is the sum of. Symbols are
    /// recovered from right to left only.
    OneDirectional,
    /// Also, a first check whose symbols are all known is thereby known itself, and helps the last
    /// checks to recover others.
    Joint,
}

/// Recovers symbols as others arrive: one block of one receiver, on ids.
#[derive(Clone, Debug)]
pub struct Peeler {
    graph: Arc<Graph>,
    peeling: Peeling,
    /// For each symbol, whether it is at hand or recovered.
    known: Vec<bool>,
    checks: Vec<Check>,
    /// As [`checks`](Self::checks) before anything is known.
    untouched: Vec<Check>,
    recovered: usize,
    /// Symbols that are known and not yet taken out of their checks.
    fresh: Vec<u32>,
}

/// What is still unknown of a check and the symbols that it is the sum of.
#[derive(Clone, Copy, Debug)]
struct Check {
    /// How many symbols.
    missing: u32,
    /// Exclusive or of their ESIs: the ESI itself when there is one.
    sum: u32,
}

impl Peeler {
    /// Nothing is at hand yet.
    pub fn new(graph: Arc<Graph>, peeling: Peeling) -> Self {
        let (k, n) = (graph.source_symbols(), graph.encoding_symbols());
        let check = |index| {
            let terms: &[u32] = graph.terms(index);
            let sum = terms.iter().fold(k + index, |sum, term| sum ^ term);
            Check { missing: terms.len() as u32 + 1, sum }
        };
        let untouched: Vec<Check> = (0..n - k).map(check).collect();
        let checks = untouched.clone();
        let known = vec![false; n as usize];
        Self { graph, peeling, known, checks, untouched, recovered: 0, fresh: Vec::new() }
    }

    /// Forgets all symbols, in the memory that there is.
    pub fn reset(&mut self) {
        self.known.fill(false);
        self.checks.copy_from_slice(&self.untouched);
        self.recovered = 0;
    }

    /// Notes that encoding symbol `esi` is at hand, and what follows from it. Returns how many source
    /// symbols are known.
    ///
    /// # Errors
    /// [`EsiError`] if the block has no such symbol; nothing has changed then.
    pub fn push(&mut self, esi: Esi) -> Result<usize, EsiError> {
        let encoding_symbols = self.known.len() as u32;
        if esi.0 >= encoding_symbols {
            return Err(EsiError { esi, encoding_symbols });
        }
        self.learn(esi.0);
        if !self.fresh.is_empty() {
            let graph = Arc::clone(&self.graph);
            while let Some(symbol) = self.fresh.pop() {
                self.take_out(&graph, symbol);
            }
        }
        Ok(self.recovered)
    }

    /// Source symbols that are known.
    pub fn recovered(&self) -> usize {
        self.recovered
    }

    /// True if all source symbols are known.
    pub fn is_complete(&self) -> bool {
        self.recovered == self.graph.source_symbols() as usize
    }

    /// True if symbol `esi` is at hand or recovered.
    pub fn knows(&self, esi: Esi) -> bool {
        self.known.get(esi.0 as usize).is_some_and(|&known| known)
    }

    /// The graph that it works on.
    pub fn graph(&self) -> &Arc<Graph> {
        &self.graph
    }

    fn learn(&mut self, symbol: u32) {
        if !std::mem::replace(&mut self.known[symbol as usize], true) {
            self.recovered += usize::from(symbol < self.graph.source_symbols());
            self.fresh.push(symbol);
        }
    }

    /// Takes a known symbol out of the checks that it is part of, and out of itself if it is one.
    fn take_out(&mut self, graph: &Graph, symbol: u32) {
        for &check in graph.checks_of(symbol) {
            self.reduce(graph, check, symbol);
        }
        if let Some(own) = symbol.checked_sub(graph.source_symbols()) {
            self.reduce(graph, own, symbol);
        }
    }

    #[inline(always)]
    fn reduce(&mut self, graph: &Graph, index: u32, symbol: u32) {
        let check = &mut self.checks[index as usize];
        check.missing -= 1;
        check.sum ^= symbol;
        if check.missing == 1 {
            let last = check.sum;
            // If it is the check itself, that helps to recover others only with joint peeling.
            if last != graph.source_symbols() + index || self.peeling == Peeling::Joint {
                self.learn(last);
            }
        }
    }
}
