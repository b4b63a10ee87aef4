//! The available symbols of a Reed-Solomon block: any `k` suffice.

use super::ReedSolomonCode;
use crate::codes::shared::linear16::Linear16;
use crate::decode::{EsiError, IdDecoder, Novelty, Progress, Work};
use crate::ids::Esi;
use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

/// Ids of the available symbols; those after the `k`-th are not stored.
pub(super) struct ReedSolomonDecoder {
    code: ReedSolomonCode,
    /// `n`: encoding symbols of the block.
    encoding_symbols: u32,
    /// One flag for each source symbol.
    source: Vec<bool>,
    repair: BTreeSet<u32>,
    wanted: u32,
}

impl ReedSolomonDecoder {
    /// The numbers must be within the code's limits.
    pub(super) fn new(code: ReedSolomonCode, source_symbols: u32, encoding_symbols: u32) -> Self {
        let source = vec![false; source_symbols as usize];
        let repair = BTreeSet::new();
        Self { code, encoding_symbols, source, repair, wanted: source_symbols }
    }

    /// The work to compute the weights and the matrix.
    fn work_for(code: ReedSolomonCode, source_symbols: u32, lost: usize) -> Work {
        if code == ReedSolomonCode::Cauchy16 {
            return Linear16::work(source_symbols, lost);
        }
        let (k, l) = (u64::from(source_symbols), lost as u64);
        Work((k + l) * 2 * l + k * l)
    }

    /// An upper bound for all choices of ids.
    pub(super) fn work(code: ReedSolomonCode, source_symbols: u32) -> Work {
        Self::work_for(code, source_symbols, source_symbols as usize)
    }
}

impl IdDecoder for ReedSolomonDecoder {
    fn push(&mut self, esi: Esi) -> Result<Novelty, EsiError> {
        if esi.0 >= self.encoding_symbols {
            return Err(EsiError { esi, encoding_symbols: self.encoding_symbols });
        }
        let fresh = self.wanted > 0
            && match self.source.get_mut(esi.0 as usize) {
                Some(here) => !core::mem::replace(here, true),
                None => self.repair.insert(esi.0),
            };
        self.wanted -= u32::from(fresh);
        Ok(if fresh { Novelty::Fresh } else { Novelty::Duplicate })
    }

    fn symbols_wanted(&self) -> u32 {
        self.wanted
    }

    fn solve(&mut self, budget: Work) -> Progress {
        if self.wanted > 0 {
            return Progress::Wanting(self.wanted);
        }
        let lost: Vec<u32> =
            (0..).zip(&self.source).filter_map(|(esi, &here)| (!here).then_some(esi)).collect();
        let k = self.source.len() as u32;
        if budget < Self::work_for(self.code, k, lost.len()) {
            return Progress::OutOfBudget;
        }
        let repair: Vec<u32> = self.repair.iter().copied().collect();
        Progress::Solved(Arc::new(self.code.plan(k, lost, &repair)))
    }
}
