//! Dense linear codes over GF(256) on bytes: the common part of Reed-Solomon codes and dispersal.

use crate::bytes::kernel::{
    Before, CauchyInputs, CauchyOut, CauchyOutputs, CauchyRows, CauchySums, CauchyWork,
    Coefficients, InstructionSet, MultiplyOut, MultiplyRows, Symbols,
};
use crate::bytes::line::Line;
use crate::bytes::octets::OctetRows;
use crate::bytes::stripes::Stripes;
use crate::bytes::stripes::loading::LoadError;
use crate::ids::Esi;
use crate::plan::{self, Plan, PlanIds, Program, Rows, Run, Weighted};
use alloc::borrow::Cow;
use alloc::vec::Vec;

/// Recovers the source symbols of a block, and computes encoding symbols from them.
pub(crate) struct Linear<G> {
    generator: G,
    source_symbols: u32,
    /// Rows that hold another symbol than the source symbol of their number.
    replaced: Vec<u32>,
    recovery: Recovery,
}

/// How the source symbols of replaced rows are computed from all rows.
pub(crate) enum Recovery {
    /// By these factors, column by column.
    Factors(Vec<u8>),
    /// By sums with the factors of a Cauchy matrix.
    Sums(CauchyInputs, CauchyOutputs),
}

impl Recovery {
    /// Of no rows.
    pub(crate) const NONE: Self = Self::Factors(Vec::new());

    /// The factors, column by column.
    fn factors(&self) -> Cow<'_, [u8]> {
        match self {
            Self::Factors(factors) => Cow::Borrowed(factors),
            Self::Sums(inputs, outputs) => Cow::Owned(inputs.factors(outputs)),
        }
    }
}

/// Computes the factors of encoding symbols in terms of source symbols.
pub(crate) trait Generator: Send + Sync + 'static {
    /// The factors of these symbols, none of which is a source symbol: one row for each, column by
    /// column. Zeros for symbols that the code does not have.
    fn factors(&self, source_symbols: u32, esis: &[Esi]) -> Vec<u8>;

    /// The same factors, if they are stored in this form.
    fn ready_factors(&self, _source_symbols: u32, _esis: &[Esi]) -> Option<Coefficients<'_>> {
        None
    }

    /// The same symbols as sums with the factors of a Cauchy matrix, if that is faster.
    fn sums(&self, _source_symbols: u32, _esis: &[Esi]) -> Option<(&CauchyInputs, CauchyOutputs)> {
        None
    }
}

impl<G: Generator> Linear<G> {
    /// The plan that reads `inputs`: all source symbols but `replaced`, and as many others, which
    /// are in the rows of those. `recovery` computes the replaced symbols.
    pub(crate) fn plan(
        generator: G,
        source_symbols: u32,
        inputs: Vec<Esi>,
        replaced: Vec<u32>,
        recovery: Recovery,
    ) -> Plan {
        let lost = replaced.iter().copied().map(Esi).collect();
        let ids = PlanIds { source_symbols, inputs, lost };
        Plan::new(ids, Self { generator, source_symbols, replaced, recovery })
    }

    /// The rows of the inputs, in the order of their ESIs: source symbols first.
    fn input_rows(&self) -> impl Iterator<Item = usize> {
        let own = |row: &u32| self.replaced.binary_search(row).is_err();
        let rows = (0..self.source_symbols).filter(own).chain(self.replaced.iter().copied());
        rows.map(|row| row as usize)
    }

    /// Computes the source symbol of each row that holds another symbol.
    fn run(&self, instructions: InstructionSet, symbols: &mut Stripes) {
        if self.replaced.is_empty() {
            return;
        }
        match &self.recovery {
            Recovery::Factors(factors) => {
                let coefficients = Coefficients::new(self.replaced.len(), factors);
                self.replace(symbols, |lanes, inputs, outputs| {
                    let before = Before::Replaced;
                    instructions.run(MultiplyRows { coefficients, lanes, inputs, outputs, before });
                });
            }
            Recovery::Sums(inputs, outputs) => {
                let mut work = CauchyWork::new();
                self.replace(symbols, |lanes, rows, recovered| {
                    let sums = CauchySums { inputs, outputs, lanes, rows };
                    let kernel = CauchyRows { sums, work: &mut work, outputs: recovered };
                    instructions.run(kernel);
                });
            }
        }
    }

    /// Replaces rows, stripe by stripe, by what `recover` computes from the lanes of a row and all
    /// rows.
    fn replace(&self, symbols: &mut Stripes, mut recover: impl FnMut(usize, &[Line], &mut [Line])) {
        for index in 0..symbols.count() {
            let lanes = symbols.lines(index);
            let (rows, scratch) = symbols.stripe_and_scratch(index, self.replaced.len());
            recover(lanes, rows, scratch);
            for (&row, recovered) in self.replaced.iter().zip(scratch.chunks_exact(lanes)) {
                copy(&mut rows[row as usize * lanes..][..lanes], recovered);
            }
        }
    }

    fn encode_repair(
        &self,
        instructions: InstructionSet,
        symbols: &Stripes,
        esis: &[Esi],
        out: &mut [u8],
    ) {
        if let Some((inputs, outputs)) = self.generator.sums(self.source_symbols, esis) {
            let mut work = CauchyWork::new();
            for index in 0..symbols.count() {
                let (lanes, rows) = (symbols.lines(index), symbols.stripe(index));
                let sums = CauchySums { inputs, outputs: &outputs, lanes, rows };
                let outputs = columns(symbols, index, out);
                instructions.run(CauchyOut { sums, work: &mut work, outputs });
            }
            return;
        }
        let gathered;
        let coefficients = match self.generator.ready_factors(self.source_symbols, esis) {
            Some(coefficients) => coefficients,
            None => {
                gathered = self.generator.factors(self.source_symbols, esis);
                Coefficients::new(esis.len(), &gathered)
            }
        };
        for index in 0..symbols.count() {
            let outputs = columns(symbols, index, out);
            let (lanes, inputs) = (symbols.lines(index), symbols.stripe(index));
            instructions.run(MultiplyOut { coefficients, lanes, inputs, outputs });
        }
    }
}

impl<G: Generator> Program for Linear<G> {
    fn memory(&self, ids: &PlanIds, width: usize) -> usize {
        let rows = self.source_symbols as usize;
        plan::memory(rows, self.replaced.len(), ids.inputs.len(), width)
    }

    fn execute(&self, ids: &PlanIds, run: Run<'_>) -> Result<Stripes, LoadError> {
        let instructions = run.instructions;
        let inputs = ids.inputs.iter().copied().map(Some).zip(self.input_rows());
        let mut symbols = run.load(self.source_symbols as usize, inputs)?;
        self.run(instructions, &mut symbols);
        Ok(symbols)
    }

    fn write_symbols(&self, _ids: &PlanIds, symbols: Rows<'_>, esis: &[Esi], out: &mut [u8]) {
        let Rows { instructions, width, symbols } = symbols;
        let mut rest = (esis, out);
        // Runs of source symbols, and of others.
        while let [first, ..] = *rest.0 {
            let is_source = |esi: &Esi| esi.0 < self.source_symbols;
            let same = rest.0.iter().take_while(|esi| is_source(esi) == is_source(&first)).count();
            let (esis, others) = rest.0.split_at(same);
            let (out, others_out) = rest.1.split_at_mut(same * width);
            rest = (others, others_out);
            if is_source(&first) {
                for (esi, out) in esis.iter().zip(out.chunks_exact_mut(width.max(1))) {
                    symbols.read_row(esi.0 as usize, out);
                }
            } else {
                self.encode_repair(instructions, symbols, esis, out);
            }
        }
    }

    fn contributions(&self, _ids: &PlanIds, sums: Weighted<'_>) -> Option<OctetRows> {
        let source = self.source_contributions(sums);
        let mut rows = source.select(0..self.source_symbols as usize);
        for &row in &self.replaced {
            rows.row_mut(row as usize).fill(Line::ZERO);
        }
        let (factors, count) = (self.recovery.factors(), self.replaced.len());
        for (number, &replaced) in self.replaced.iter().enumerate() {
            let weights = source.row(replaced as usize);
            for (row, factors) in factors.chunks_exact(count).enumerate() {
                rows.add(sums.instructions, row, factors[number], weights);
            }
        }
        Some(rows.select(self.input_rows()))
    }
}

impl<G: Generator> Linear<G> {
    /// What each source symbol contributes to sums of encoding symbols.
    fn source_contributions(&self, sums: Weighted<'_>) -> OctetRows {
        let Weighted { instructions, esis, weights } = sums;
        let mut rows = OctetRows::of_lines(self.source_symbols as usize, weights.lines);
        let is_source = |esi: &Esi| esi.0 < self.source_symbols;
        let repair: Vec<Esi> = esis.iter().copied().filter(|esi| !is_source(esi)).collect();
        let factors = self.generator.factors(self.source_symbols, &repair);
        let mut number = 0;
        for (index, esi) in esis.iter().enumerate() {
            if is_source(esi) {
                rows.add(instructions, esi.0 as usize, 1, weights.row(index));
                continue;
            }
            for (source, factors) in factors.chunks_exact(repair.len()).enumerate() {
                rows.add(instructions, source, factors[number], weights.row(index));
            }
            number += 1;
        }
        rows
    }
}

/// The columns of stripe `index` of the symbols in `out`.
fn columns<'a>(symbols: &Stripes, index: usize, out: &'a mut [u8]) -> Symbols<'a> {
    Symbols { bytes: out, width: symbols.width(), columns: symbols.bytes(index) }
}

fn copy(to: &mut [Line], from: &[Line]) {
    for (to, from) in to.iter_mut().zip(from) {
        to.0 = from.0;
    }
}
