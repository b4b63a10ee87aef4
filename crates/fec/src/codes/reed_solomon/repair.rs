//! The factors of a block's repair symbols.

use super::{MAX_ENCODING_SYMBOLS, ReedSolomonCode};
use crate::bytes::kernel::Coefficients;
use crate::codes::shared::linear::Generator;
use crate::ids::Esi;
use std::sync::OnceLock;

/// The factors of all repair symbols of a block.
pub(super) struct RepairFactors {
    code: ReedSolomonCode,
    /// At most 16 KB, made when a repair symbol is first requested.
    made: OnceLock<Vec<u8>>,
}

impl RepairFactors {
    /// `code` must be one over GF(256).
    pub(super) fn new(code: ReedSolomonCode) -> Self {
        Self { code, made: OnceLock::new() }
    }

    /// The factors, column by column.
    fn all(&self, source_symbols: u32) -> &[u8] {
        self.made.get_or_init(|| {
            let targets: Vec<u32> = (source_symbols..MAX_ENCODING_SYMBOLS).collect();
            self.code.interpolation(source_symbols, &[], &[], &targets)
        })
    }
}

impl Generator for RepairFactors {
    fn factors(&self, source_symbols: u32, esis: &[Esi]) -> Vec<u8> {
        let k = source_symbols;
        let mut factors = Vec::with_capacity(esis.len() * k as usize);
        for column in self.all(k).chunks_exact(repair_symbols(k).max(1)) {
            let factor = |esi: &Esi| column.get((esi.0 - k) as usize);
            factors.extend(esis.iter().map(|esi| factor(esi).copied().unwrap_or(0)));
        }
        factors.resize(esis.len() * k as usize, 0);
        factors
    }

    /// The factors of consecutive repair symbols, which senders request.
    fn ready_factors(&self, source_symbols: u32, esis: &[Esi]) -> Option<Coefficients<'_>> {
        let k = source_symbols;
        let first = esis.first()?.0 - k;
        let range = first as usize..first as usize + esis.len();
        let rows = repair_symbols(k);
        if range.end > rows || !esis.iter().map(|esi| esi.0).eq((k + first..).take(range.len())) {
            return None;
        }
        Some(Coefficients::new(rows, self.all(k)).rows(range))
    }
}

/// Repair symbols of a block.
fn repair_symbols(source_symbols: u32) -> usize {
    MAX_ENCODING_SYMBOLS.saturating_sub(source_symbols) as usize
}
