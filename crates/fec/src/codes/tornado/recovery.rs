//! Computation of the symbols of a Tornado block from the available symbols.

use super::Graph;
use super::peeler::Step;
use crate::bytes::octets::OctetRows;
use crate::bytes::stripes::Stripes;
use crate::bytes::stripes::loading::LoadError;
use crate::bytes::xor_program::{XorProgram, write_sums};
use crate::codes::shared::csr::Lists;
use crate::ids::Esi;
use crate::plan::{self, Plan, PlanIds, Program, Rows, Run, Weighted};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

/// Rows and the program that runs on them: the source symbols first, then the first checks that are
/// needed. Last checks need no rows: an available one is loaded into the row of the symbol it
/// recovers.
pub(super) struct Recovery {
    graph: Arc<Graph>,
    program: XorProgram,
    /// The row that each input is loaded into.
    input_rows: Vec<u32>,
    /// For each first check its row, or [`NO_ROW`].
    first_rows: Vec<u32>,
    rows: usize,
}

const NO_ROW: u32 = u32::MAX;

impl Recovery {
    /// The plan of a block whose source symbols are all available: it sums up the first checks,
    /// which the last checks are sums of.
    pub(super) fn of_source(graph: Arc<Graph>) -> Plan {
        let (k, first_checks) = (graph.source_symbols(), graph.first_checks());
        let mut program = XorProgram::with_capacity(first_checks as usize, graph.edges());
        for check in 0..first_checks {
            program.set_slot(k + check, graph.terms(check).iter().copied());
        }
        let recovery = Self {
            program,
            input_rows: (0..k).collect(),
            first_rows: (k..k + first_checks).collect(),
            rows: (k + first_checks) as usize,
            graph,
        };
        Plan::new(PlanIds::of_source(k), recovery)
    }

    /// The recovery of all source symbols from the symbols `available`, a flag for each, in these
    /// steps. Also the symbols to load: available source symbols, and the checks that are used.
    pub(super) fn of_lost(
        graph: Arc<Graph>,
        available: &[bool],
        steps: &[Step],
    ) -> (Self, Vec<Esi>) {
        let k = graph.source_symbols();
        let is_at_hand = |symbol: u32| available[symbol as usize];

        // The symbols that are needed, from the last step to the first.
        let mut is_needed = vec![false; available.len()];
        is_needed[..k as usize].fill(true);
        let mut used = Vec::with_capacity(steps.len());
        for step in steps.iter().rev() {
            if is_needed[step.symbol as usize] && !is_at_hand(step.symbol) {
                // The terms of first checks are source symbols, all of which are needed.
                if step.check >= graph.first_checks() {
                    let terms = graph.terms(step.check).iter().copied();
                    terms.for_each(|term| is_needed[term as usize] = true);
                }
                // An available check needs no row of its own in this step.
                let own = k + step.check;
                is_needed[own as usize] |= own != step.symbol && !is_at_hand(own);
                used.push(*step);
            }
        }

        // An available check that only one step needs is loaded into the row of that step's sum.
        let mut row_of_check = vec![NO_ROW; (graph.encoding_symbols() - k) as usize];
        let mut rows = k;
        let first_checks = 0..graph.first_checks();
        for check in first_checks.clone().filter(|check| is_needed[(k + check) as usize]) {
            row_of_check[check as usize] = rows;
            rows += 1;
        }
        let first_rows = row_of_check[..first_checks.len()].to_vec();
        let mut program = XorProgram::with_capacity(used.len(), graph.edges());
        for step in used.iter().rev() {
            let row_of =
                |symbol: u32| symbol.checked_sub(k).map_or(symbol, |c| first_rows[c as usize]);
            let own = k + step.check;
            let row = row_of(step.symbol);
            let terms = graph.terms(step.check).iter();
            if own == step.symbol {
                program.set_slot(row, terms.map(|&term| row_of(term)));
                continue;
            }
            let check_row = &mut row_of_check[step.check as usize];
            if *check_row == NO_ROW {
                *check_row = row;
            }
            // The check replaces the symbol among its terms.
            let check_row = *check_row;
            let row_instead =
                |&term: &u32| if term == step.symbol { check_row } else { row_of(term) };
            program.set_slot(row, terms.map(row_instead));
        }

        let source = (0..k).map(|esi| (esi, esi));
        let checks = (k..).zip(row_of_check.iter().copied());
        let (inputs, input_rows) = source
            .chain(checks)
            .filter(|&(symbol, row)| row != NO_ROW && is_at_hand(symbol))
            .map(|(symbol, row)| (Esi(symbol), row))
            .unzip();
        (Self { graph, program, input_rows, first_rows, rows: rows as usize }, inputs)
    }

    /// For each of these encoding symbols the rows whose sum it is; empty for those that do not
    /// exist.
    fn sums(&self, esis: &[Esi]) -> Lists {
        let k = self.graph.source_symbols();
        let mut sums = Lists::with_capacity(esis.len(), esis.len() * TYPICAL_TERMS);
        for esi in esis {
            if esi.0 < k {
                sums.push([esi.0]);
            } else if esi.0 < self.graph.encoding_symbols() {
                sums.push_with(|terms| self.add_check(esi.0 - k, terms));
            } else {
                sums.push([]);
            }
        }
        sums
    }

    /// Appends rows whose sum is check `check`.
    fn add_check(&self, check: u32, rows: &mut Vec<u32>) {
        let k = self.graph.source_symbols();
        match self.first_rows.get(check as usize) {
            Some(&NO_ROW) => rows.extend(self.graph.terms(check)),
            Some(&row) => rows.push(row),
            // Every first check has a row, whose number is its ESI.
            None if self.rows == k as usize + self.first_rows.len() => {
                rows.extend_from_slice(self.graph.terms(check));
            }
            None => {
                for &first_check in self.graph.terms(check) {
                    self.add_check(first_check - k, rows);
                }
            }
        }
    }
}

impl Program for Recovery {
    fn memory(&self, ids: &PlanIds, width: usize) -> usize {
        plan::memory(self.rows, self.program.scratch_rows(), ids.inputs.len(), width)
    }

    fn execute(&self, ids: &PlanIds, run: Run<'_>) -> Result<Stripes, LoadError> {
        let instructions = run.instructions;
        let rows = self.input_rows.iter().map(|&row| row as usize);
        let mut symbols = run.load(self.rows, ids.inputs.iter().copied().map(Some).zip(rows))?;
        self.program.run(instructions, &mut symbols);
        Ok(symbols)
    }

    fn write_symbols(&self, _ids: &PlanIds, symbols: Rows<'_>, esis: &[Esi], out: &mut [u8]) {
        write_sums(symbols.instructions, symbols.symbols, &self.sums(esis), out);
    }

    fn contributions(&self, _ids: &PlanIds, sums: Weighted<'_>) -> Option<OctetRows> {
        let mut rows = sums.of_rows(self.rows, &self.sums(sums.esis));
        self.program.run_transposed(sums.instructions, &mut rows);
        Some(rows.select(self.input_rows.iter().map(|&row| row as usize)))
    }
}

/// Terms of an average check, rounded up.
const TYPICAL_TERMS: usize = 16;
