//! The factors of a block's repair symbols.

use super::{Points, prefers_sums};
use crate::bytes::kernel::{CauchyInputs, CauchyOutputs, CauchyPoint, Coefficients};
use crate::codes::shared::linear::Generator;
use crate::field::gf256::alpha_power;
use crate::ids::Esi;
use crate::sync::OnceLock;
use alloc::vec::Vec;

/// The factors of all repair symbols of a block.
pub(super) struct RepairFactors {
    code: Points,
    /// `n`: ESIs from this on do not exist.
    encoding_symbols: u32,
    /// At most 16 KB, made when few repair symbols are first requested.
    made: OnceLock<Vec<u8>>,
    /// Made when many repair symbols are first requested.
    sums: OnceLock<RepairSums>,
}

/// The repair symbols of a block as sums over all points.
struct RepairSums {
    inputs: CauchyInputs,
    /// The points of the repair symbols, by ESI from `k` on.
    points: Vec<CauchyPoint>,
}

impl RepairFactors {
    pub(super) fn new(code: Points, encoding_symbols: u32) -> Self {
        Self { code, encoding_symbols, made: OnceLock::new(), sums: OnceLock::new() }
    }

    /// Repair symbols of a block.
    fn repair_symbols(&self, source_symbols: u32) -> usize {
        self.encoding_symbols.saturating_sub(source_symbols) as usize
    }

    /// The factors, column by column.
    fn all(&self, source_symbols: u32) -> &[u8] {
        self.made.get_or_init(|| {
            let targets: Vec<u32> = (source_symbols..self.encoding_symbols).collect();
            self.code.interpolation(source_symbols, &[], &[], &targets)
        })
    }
}

impl RepairSums {
    fn new(code: Points, source_symbols: u32, encoding_symbols: u32) -> Self {
        let log_weight = code.log_weights(source_symbols, &[], &[]);
        let point = |esi| {
            let factor = alpha_power(log_weight(esi) as usize);
            CauchyPoint { point: code.point(esi), factor }
        };
        Self {
            inputs: code.inputs(source_symbols, &[], &[], &log_weight),
            points: (source_symbols..encoding_symbols).map(point).collect(),
        }
    }
}

impl Generator for RepairFactors {
    fn factors(&self, source_symbols: u32, esis: &[Esi]) -> Vec<u8> {
        let k = source_symbols;
        let mut factors = Vec::with_capacity(esis.len() * k as usize);
        for column in self.all(k).chunks_exact(self.repair_symbols(k).max(1)) {
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
        let rows = self.repair_symbols(k);
        if range.end > rows || !esis.iter().map(|esi| esi.0).eq((k + first..).take(range.len())) {
            return None;
        }
        Some(Coefficients::new(rows, self.all(k)).rows(range))
    }

    fn sums(&self, source_symbols: u32, esis: &[Esi]) -> Option<(&CauchyInputs, CauchyOutputs)> {
        let exists = |esi: &Esi| esi.0 < self.encoding_symbols;
        if !prefers_sums(source_symbols as usize, esis.len()) || !esis.iter().all(exists) {
            return None;
        }
        let RepairSums { inputs, points } = self
            .sums
            .get_or_init(|| RepairSums::new(self.code, source_symbols, self.encoding_symbols));
        let point = |esi: &Esi| points[(esi.0 - source_symbols) as usize];
        Some((inputs, CauchyOutputs::new(esis.iter().map(point))))
    }
}
