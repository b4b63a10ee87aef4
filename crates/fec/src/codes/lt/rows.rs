//! From an ESI to the source symbols whose sum it is.

use super::{Degrees, LtCode, MAX_SOURCE_SYMBOLS};
use crate::codes::shared::splitmix::SplitMix64;
use crate::ids::Esi;
use crate::limits::BlockLengthError;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// Draws the sums of an [`LtCode`] for blocks of one length.
///
/// Symbol `e` uses member `e` of the family of random streams that the code's seed names. The first
/// number gives the degree. Each other number gives a source symbol, `number * k >> 32`; a repeated
/// symbol is skipped.
#[derive(Clone, Debug)]
pub struct Rows {
    seed: u64,
    source_symbols: u32,
    degrees: Arc<Degrees>,
    row: Vec<u32>,
    /// The source symbols in a row of high degree: one bit for each, all zero between rows. Empty
    /// before the first such row.
    seen: Vec<u64>,
}

/// Up to this degree a new term is compared with all earlier ones; beyond, bits are faster.
const LIGHT: u32 = 24;

impl Rows {
    /// The sums for blocks of `source_symbols`.
    ///
    /// # Errors
    /// [`BlockLengthError`] if that is not 1 to 2^20.
    pub fn new(code: LtCode, source_symbols: u32) -> Result<Self, BlockLengthError> {
        BlockLengthError::check(source_symbols, MAX_SOURCE_SYMBOLS)?;
        Ok(Self::within(code, source_symbols))
    }

    /// `source_symbols` must be within the code's limits.
    pub(super) fn within(code: LtCode, source_symbols: u32) -> Self {
        let degrees = Arc::new(Degrees::within(code, source_symbols));
        Self { seed: code.seed, source_symbols, degrees, row: Vec::new(), seen: Vec::new() }
    }

    /// `k`: source symbols of a block.
    pub fn source_symbols(&self) -> u32 {
        self.source_symbols
    }

    /// The distribution of degrees.
    pub fn degrees(&self) -> &Degrees {
        &self.degrees
    }

    /// The number of source symbols in the sum of encoding symbol `esi`.
    pub fn degree(&self, esi: Esi) -> u32 {
        if esi.0 < self.source_symbols {
            return 1;
        }
        self.degrees.degree(SplitMix64::member(self.seed, esi.0).next_u32())
    }

    /// The source symbols whose sum encoding symbol `esi` is: distinct, in the order of the draws.
    #[inline]
    pub fn row(&mut self, esi: Esi) -> &[u32] {
        self.row.clear();
        if esi.0 < self.source_symbols {
            self.row.push(esi.0);
            return &self.row;
        }
        let mut random = SplitMix64::member(self.seed, esi.0);
        let degree = self.degrees.degree(random.next_u32());
        // Few draws repeat a term: the expected number of draws is at most k (1 + ln k), and the
        // probability of 25 k more is e^-25.
        if degree <= LIGHT {
            while self.row.len() < degree as usize {
                let term = random.below(self.source_symbols);
                if !self.row.contains(&term) {
                    self.row.push(term);
                }
            }
        } else {
            self.seen.resize((self.source_symbols as usize).div_ceil(64), 0);
            while self.row.len() < degree as usize {
                let term = random.below(self.source_symbols);
                let (word, bit) = (&mut self.seen[term as usize / 64], 1 << (term % 64));
                if *word & bit == 0 {
                    *word |= bit;
                    self.row.push(term);
                }
            }
            for &term in &self.row {
                self.seen[term as usize / 64] = 0;
            }
        }
        &self.row
    }
}
