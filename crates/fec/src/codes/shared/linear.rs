//! Dense linear codes over GF(256) on bytes: what Reed-Solomon codes and dispersal have in common.

use crate::bytes::kernel::{
    Before, Coefficients, InstructionSet, MultiplyOut, MultiplyRows, Symbols,
};
use crate::bytes::stripes::{Line, Stripes};
use crate::codes::dispersal::Dispersal;
use crate::codes::reed_solomon::{MAX_ENCODING_SYMBOLS, ReedSolomonCode};
use crate::ids::Esi;
use std::sync::OnceLock;

/// Recovers the source symbols of a block, and makes any encoding symbol of them.
pub(crate) struct Linear {
    generator: Generator,
    source_symbols: u32,
    /// Rows that hold another symbol than the source symbol of their number.
    replaced: Vec<u32>,
    /// The source symbols of these rows from what is in all rows, column by column.
    recovery: Vec<u8>,
}

/// How encoding symbols follow from source symbols.
pub(crate) enum Generator {
    ReedSolomon {
        code: ReedSolomonCode,
        /// The factors of all repair symbols (16 KB at most), once somebody asks for one.
        repair: OnceLock<Vec<u8>>,
    },
    Dispersal(Dispersal),
}

impl Linear {
    /// Source symbols `lost` are replaced by repair symbols; `recovery` is their
    /// [`interpolation`](ReedSolomonCode::interpolation).
    pub(crate) fn reed_solomon(
        code: ReedSolomonCode,
        source_symbols: u32,
        lost: Vec<u32>,
        recovery: Vec<u8>,
    ) -> Self {
        let generator = Generator::ReedSolomon { code, repair: OnceLock::new() };
        Self { generator, source_symbols, replaced: lost, recovery }
    }

    /// Source symbols `lost` are replaced by packets with other vectors; `recovery` has a row for
    /// each of them.
    pub(crate) fn dispersal(code: Dispersal, lost: Vec<u32>, recovery: Vec<u8>) -> Self {
        let generator = Generator::Dispersal(code);
        Self { generator, source_symbols: code.source_symbols(), replaced: lost, recovery }
    }

    /// The rows of the inputs, which come in the order of their ESIs: first the source symbols.
    pub(crate) fn input_rows(&self) -> impl Iterator<Item = usize> {
        let own = |row: &u32| self.replaced.binary_search(row).is_err();
        let rows = (0..self.source_symbols).filter(own).chain(self.replaced.iter().copied());
        rows.map(|row| row as usize)
    }

    /// Rows of one stripe that [`run`](Self::run) needs beside the source symbols.
    pub(crate) fn scratch_rows(&self) -> usize {
        self.replaced.len()
    }

    /// Puts the source symbol into each row that has another.
    pub(crate) fn run(&self, instructions: InstructionSet, symbols: &mut Stripes) {
        if self.replaced.is_empty() {
            return;
        }
        let coefficients = Coefficients::new(self.replaced.len(), &self.recovery);
        for index in 0..symbols.count() {
            let lines = symbols.lines(index);
            let (rows, scratch) = symbols.stripe_and_scratch(index, self.replaced.len());
            let kernel = MultiplyRows {
                coefficients,
                lanes: lines,
                inputs: rows,
                outputs: scratch,
                before: Before::Replaced,
            };
            instructions.run(kernel);
            for (&row, recovered) in self.replaced.iter().zip(scratch.chunks_exact(lines)) {
                copy(&mut rows[row as usize * lines..][..lines], recovered);
            }
        }
    }

    /// Writes encoding symbols, one after the other, into `out`.
    pub(crate) fn encode(
        &self,
        instructions: InstructionSet,
        symbols: &Stripes,
        esis: &[Esi],
        out: &mut [u8],
    ) {
        let width = symbols.width();
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

    fn encode_repair(
        &self,
        instructions: InstructionSet,
        symbols: &Stripes,
        esis: &[Esi],
        out: &mut [u8],
    ) {
        let gathered;
        let coefficients = match self.run_of_repair(esis) {
            Some(coefficients) => coefficients,
            None => {
                gathered = self.factors(esis);
                Coefficients::new(esis.len(), &gathered)
            }
        };
        for index in 0..symbols.count() {
            let outputs =
                Symbols { bytes: out, width: symbols.width(), columns: symbols.bytes(index) };
            let (lanes, inputs) = (symbols.lines(index), symbols.stripe(index));
            instructions.run(MultiplyOut { coefficients, lanes, inputs, outputs });
        }
    }

    /// The factors of repair symbols that follow one another, as senders ask for them: they are
    /// somewhere as they are.
    fn run_of_repair(&self, esis: &[Esi]) -> Option<Coefficients<'_>> {
        let Generator::ReedSolomon { code, repair } = &self.generator else { return None };
        let k = self.source_symbols;
        let first = esis.first()?.0 - k;
        let range = first as usize..first as usize + esis.len();
        let rows = repair_rows(k);
        if range.end > rows || !esis.iter().map(|esi| esi.0).eq((k + first..).take(range.len())) {
            return None;
        }
        Some(Coefficients::new(rows, all_repair(*code, k, repair)).rows(range))
    }

    /// The factors of these symbols: one row for each, column by column; zeros for those that the
    /// code does not have.
    fn factors(&self, esis: &[Esi]) -> Vec<u8> {
        let k = self.source_symbols;
        match &self.generator {
            Generator::ReedSolomon { code, repair } => {
                let mut factors = Vec::with_capacity(esis.len() * k as usize);
                for column in all_repair(*code, k, repair).chunks_exact(repair_rows(k).max(1)) {
                    let factor = |esi: &Esi| column.get((esi.0 - k) as usize);
                    factors.extend(esis.iter().map(|esi| factor(esi).copied().unwrap_or(0)));
                }
                factors.resize(esis.len() * k as usize, 0);
                factors
            }
            Generator::Dispersal(code) => {
                let vectors: Vec<Vec<u8>> = esis.iter().map(|&esi| code.vector(esi)).collect();
                (0..k as usize).flat_map(|j| vectors.iter().map(move |vector| vector[j])).collect()
            }
        }
    }
}

/// Repair symbols of a block.
fn repair_rows(source_symbols: u32) -> usize {
    MAX_ENCODING_SYMBOLS.saturating_sub(source_symbols) as usize
}

/// The factors of all of them.
fn all_repair(code: ReedSolomonCode, source_symbols: u32, made: &OnceLock<Vec<u8>>) -> &[u8] {
    made.get_or_init(|| {
        let targets: Vec<u32> = (source_symbols..MAX_ENCODING_SYMBOLS).collect();
        code.interpolation(source_symbols, &[], &[], &targets)
    })
}

fn copy(to: &mut [Line], from: &[Line]) {
    for (to, from) in to.iter_mut().zip(from) {
        to.0 = from.0;
    }
}
