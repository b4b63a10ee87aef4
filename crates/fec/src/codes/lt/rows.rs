//! From an encoding symbol's number to the source symbols that it is the sum of.

use super::{Degrees, LtCode, MAX_SOURCE_SYMBOLS};
use crate::codes::shared::splitmix::SplitMix64;
use crate::ids::Esi;
use crate::limits::BlockLengthError;
use std::sync::Arc;

/// Draws the sums of an [`LtCode`] for blocks of one length.
///
/// Symbol `e` has the stream of random numbers that is member `e` of the family of the code's seed.
/// Its first number gives the degree, each other one a source symbol: `number * k >> 32`, and the
/// next number if that one is there already.
#[derive(Clone, Debug)]
pub struct Rows {
    seed: u64,
    source_symbols: u32,
    degrees: Arc<Degrees>,
    row: Vec<u32>,
    /// What a heavy row has already: one bit for each source symbol, all zero between rows. Empty
    /// before the first one.
    seen: Vec<u64>,
}

/// Up to this degree a new term is compared with each one before; beyond, bits are faster.
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

    /// `source_symbols` is within the code's limits.
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

    /// How many source symbols encoding symbol `esi` is the sum of.
    pub fn degree(&self, esi: Esi) -> u32 {
        if esi.0 < self.source_symbols {
            return 1;
        }
        self.degrees.degree(SplitMix64::member(self.seed, esi.0).next_u32())
    }

    /// The source symbols that encoding symbol `esi` is the sum of, distinct, in the order they
    /// were drawn.
    #[inline]
    pub fn row(&mut self, esi: Esi) -> &[u32] {
        self.row.clear();
        if esi.0 < self.source_symbols {
            self.row.push(esi.0);
            return &self.row;
        }
        let mut random = SplitMix64::member(self.seed, esi.0);
        let degree = self.degrees.degree(random.next_u32());
        // Draws that repeat a term are few: the expected number of draws is at most k (1 + ln k),
        // and 25 k more are needed with probability e^-25.
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
