//! Information dispersal (Rabin, "Efficient dispersal of information for security, load balancing,
//! and fault tolerance", Journal of the ACM 36, 1989) with random vectors, as BMTP repairs losses.
//! Each packet is the sum of the group's `m` packets with random factors. Any `m` packets whose
//! vectors of factors are independent recover the group.
//!
//! ESIs below `m` are the packets of the group. The vector of every other ESI follows from the ESI
//! and a seed, so packets do not carry it. BMTP computes modulo 257, which has one value more than
//! an octet; this code uses GF(256). With probability 1/256 a random vector is useless to a
//! receiver that lacks one packet. With probability 1/255 at most, `m` random vectors are
//! dependent.
//!
//! | | |
//! |---|---|
//! | source | Rabin 1989 |
//! | tests, with elimination as the slow reference | `crates/fec/tests/fec/reed_solomon/dispersal.rs` |

use crate::codes::shared::basis::Basis;
use crate::codes::shared::linear::{Generator, Linear, Recovery};
use crate::codes::shared::splitmix::SplitMix64;
use crate::decode::{EsiError, IdDecoder, Novelty, Progress, Work};
use crate::ids::Esi;
use crate::limits::BlockLengthError;
use crate::plan::Plan;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

/// Longest group. Decoding takes `m^2` multiplications for each packet on ids, and again for each
/// byte position.
pub const MAX_SOURCE_SYMBOLS: u32 = 255;

/// The dispersal code of groups of `m` packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dispersal {
    source_symbols: u32,
    seed: u64,
}

impl Dispersal {
    /// A code of groups of `source_symbols` packets, `m`; BMTP uses 5.
    ///
    /// # Errors
    /// [`BlockLengthError`] unless `m` is 1 to [`MAX_SOURCE_SYMBOLS`].
    pub fn new(source_symbols: u32, seed: u64) -> Result<Self, BlockLengthError> {
        BlockLengthError::check(source_symbols, MAX_SOURCE_SYMBOLS)?;
        Ok(Self { source_symbols, seed })
    }

    /// `m`.
    pub fn source_symbols(&self) -> u32 {
        self.source_symbols
    }

    /// The factors of packet `esi`: octets of the random stream of this ESI, four to a draw, the
    /// lowest first.
    pub fn vector(&self, esi: Esi) -> Vec<u8> {
        let m = self.source_symbols as usize;
        let mut vector = Vec::with_capacity(m + 3);
        if esi.0 < self.source_symbols {
            vector.resize(m, 0);
            vector[esi.0 as usize] = 1;
        } else {
            let mut random = SplitMix64::member(self.seed, esi.0);
            while vector.len() < m {
                vector.extend(random.next_u32().to_le_bytes());
            }
            vector.truncate(m);
        }
        vector
    }

    /// The plan of a group whose packets are all available, for encoders.
    pub fn source_plan(&self) -> Plan {
        let inputs = (0..self.source_symbols).map(Esi).collect();
        Linear::plan(*self, self.source_symbols, inputs, Vec::new(), Recovery::NONE)
    }

    /// An empty decoder. [`Novelty::Fresh`] means that the vector is independent of earlier ones.
    pub fn decoder(&self) -> DispersalDecoder {
        DispersalDecoder {
            code: *self,
            basis: Basis::new(self.source_symbols as usize),
            available: BTreeMap::new(),
        }
    }
}

impl Generator for Dispersal {
    fn factors(&self, source_symbols: u32, esis: &[Esi]) -> Vec<u8> {
        let vectors: Vec<Vec<u8>> = esis.iter().map(|&esi| self.vector(esi)).collect();
        let columns = 0..source_symbols as usize;
        columns.flat_map(|j| vectors.iter().map(move |vector| vector[j])).collect()
    }
}

/// Records which packets of a group are available, and finds by elimination whether their vectors
/// suffice.
pub struct DispersalDecoder {
    code: Dispersal,
    /// The vectors of the available packets.
    basis: Basis,
    /// The available packets, and the number of each in the order of arrival.
    available: BTreeMap<u32, usize>,
}

impl IdDecoder for DispersalDecoder {
    /// Takes `m^2` multiplications.
    fn push(&mut self, esi: Esi) -> Result<Novelty, EsiError> {
        if esi.0 == u32::MAX {
            return Err(EsiError { esi, encoding_symbols: u32::MAX });
        }
        let m = self.code.source_symbols as usize;
        if self.basis.len() == m || self.available.contains_key(&esi.0) {
            return Ok(Novelty::Duplicate);
        }
        let number = self.basis.len();
        if !self.basis.push(self.code.vector(esi)) {
            return Ok(Novelty::Duplicate);
        }
        self.available.insert(esi.0, number);
        Ok(Novelty::Fresh)
    }

    fn symbols_wanted(&self) -> u32 {
        self.code.source_symbols - self.basis.len() as u32
    }

    /// Ignores the budget: `push` has done the work.
    fn solve(&mut self, _budget: Work) -> Progress {
        let Some(inverse) = self.basis.inverse() else {
            return Progress::Wanting(self.symbols_wanted());
        };
        let m = self.code.source_symbols;
        let lost: Vec<u32> = (0..m).filter(|esi| !self.available.contains_key(esi)).collect();
        // The inputs' rows: source symbols in their own, the others in those of lost symbols.
        let mut numbers: Vec<usize> = vec![0; m as usize];
        let mut free = lost.iter();
        for (&esi, &number) in &self.available {
            let row = if esi < m { Some(&esi) } else { free.next() };
            if let Some(&row) = row {
                numbers[row as usize] = number;
            }
        }
        let recovery = numbers
            .iter()
            .flat_map(|&number| lost.iter().map(move |&row| (row, number)))
            .map(|(row, number)| inverse[row as usize][number])
            .collect();
        let inputs = self.available.keys().copied().map(Esi).collect();
        let plan = Linear::plan(self.code, m, inputs, lost, Recovery::Factors(recovery));
        Progress::Solved(Arc::new(plan))
    }
}
