//! What every code offers: encoders and decoders of one source block.

use crate::codes::lt::{self, LtDecoder};
use crate::codes::no_code::NoCodeDecoder;
use crate::codes::raptorq::{FullBlock, Params, RaptorQDecoder};
use crate::codes::reed_solomon::ReedSolomonDecoder;
use crate::codes::tornado::{self, TornadoDecoder};
use crate::ids::Esi;
use crate::oti::FecScheme;
use crate::plan::Plan;
use std::sync::Arc;

/// Produces any encoding symbol of one source block, or any columns of it.
///
/// The codes are linear in every byte position, so an encoder may cover whole symbols or only a
/// slice of their columns: `width` bytes of each.
pub trait Encoder: Send + Sync {
    /// Bytes of a symbol that this encoder covers.
    fn width(&self) -> usize;

    /// Writes encoding symbol `esi` into `out`. An `esi` that the code does not have (see
    /// [`FecScheme::encoding_symbols`]) gives zeros.
    ///
    /// # Panics
    /// If `out` is not [`width`](Self::width) bytes long.
    fn write_symbol(&self, esi: Esi, out: &mut [u8]);

    /// Writes many encoding symbols, one after the other, into `out`. Faster than one by one where
    /// the block is larger than the processor's caches.
    ///
    /// # Panics
    /// If `out` is not `esis.len() * width` bytes long.
    fn write_symbols(&self, esis: &[Esi], out: &mut [u8]) {
        assert_eq!(out.len(), esis.len() * self.width(), "one width of bytes for each symbol");
        for (&esi, out) in esis.iter().zip(out.chunks_exact_mut(self.width().max(1))) {
            self.write_symbol(esi, out);
        }
    }
}

/// Finds out, from the ids of the symbols that arrived, whether and how a source block can be
/// recovered. It never sees a byte of them.
pub trait Decoder: Send {
    /// Notes that encoding symbol `esi` is at hand. Costs at most a search in a balanced tree.
    ///
    /// # Errors
    /// [`EsiError`] if the code has no such symbol; nothing has changed then.
    fn push(&mut self, esi: Esi) -> Result<Novelty, EsiError>;

    /// Fresh symbols still needed before [`solve`](Self::solve) could succeed; at 0 it is worth
    /// trying.
    fn symbols_wanted(&self) -> u32;

    /// Tries to find a plan that recovers the block, spending at most about `budget`.
    ///
    /// Trying again is always allowed; elimination then starts over, while peeling goes on. So after
    /// [`Progress::OutOfBudget`] let the budget or the number of symbols grow by a factor. A block
    /// that was solved is solved in the same way again: who is short of memory need not keep the
    /// plan.
    fn solve(&mut self, budget: Work) -> Progress;
}

impl std::fmt::Debug for dyn Decoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Decoder {{ symbols_wanted: {} }}", self.symbols_wanted())
    }
}

/// Whether a pushed symbol added anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Novelty {
    /// New and kept: its bytes may be an input of the plan.
    Fresh,
    /// Of no use: seen before, or the decoder has all it will ever want. Its bytes can be dropped.
    Duplicate,
}

/// Computing effort. One unit is one step of the planner on ids: one non-zero of the code's sparse
/// matrix visited, or one 64-bit word of its dense part combined with another. A core does
/// several hundred million a second. Memory is bounded by the same number: a planner allocates at
/// most 16 bytes for each unit it has spent, beside what is proportional to the block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Work(pub u64);

impl Work {
    /// No bound: for ids that are known to be honest.
    pub const UNBOUNDED: Self = Self(u64::MAX);
}

/// What [`Decoder::solve`] came to.
#[derive(Clone, Debug)]
pub enum Progress {
    /// The block can be recovered, in this way.
    Solved(Arc<Plan>),
    /// The symbols do not determine the block: at least this many more are needed.
    Wanting(u32),
    /// The budget was spent first. More symbols make the work easier as a rule; so does a larger
    /// budget.
    OutOfBudget,
}

/// An encoding symbol identifier that the block does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("encoding symbol {esi} of a block that has {encoding_symbols}", esi = .esi.0)]
pub struct EsiError {
    /// What was asked for.
    pub esi: Esi,
    /// `n`: encoding symbols of the block, numbered from 0.
    pub encoding_symbols: u32,
}

/// A number of source symbols that the code cannot make a block of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a source block of {actual} symbols, the code takes 1 to {limit}")]
pub struct BlockLengthError {
    /// What was asked for.
    pub actual: u32,
    /// The longest block of the code.
    pub limit: u32,
}

impl FecScheme {
    /// Most source symbols that a block of this code may have.
    pub const fn max_source_symbols(self) -> u32 {
        match self {
            Self::NoCode { .. } => crate::layout::NO_CODE_LIMIT as u32,
            Self::RaptorQ { .. } => crate::layout::RAPTORQ_MAX_SOURCE_SYMBOLS,
            Self::Tornado { .. } => tornado::MAX_SOURCE_SYMBOLS,
            Self::Lt { .. } => lt::MAX_SOURCE_SYMBOLS,
            Self::ReedSolomon { max_source_block_length, .. } => {
                let (b, n) = (max_source_block_length as u32, self.encoding_symbols(1));
                if b < n { b } else { n }
            }
        }
    }

    /// `n`: encoding symbols of a block of `source_symbols`; their ESIs are `0..n`. Of a block that
    /// is shorter than the longest one, senders of a Reed-Solomon code make fewer: see
    /// [`symbols_per_cycle`](Self::symbols_per_cycle).
    pub const fn encoding_symbols(self, source_symbols: u32) -> u32 {
        match self {
            Self::NoCode { .. } => source_symbols,
            Self::RaptorQ { .. } => crate::codes::raptorq::ENCODING_SYMBOLS,
            Self::Tornado { code, .. } => {
                source_symbols.saturating_mul(code.stretch_factor() as u32)
            }
            // The last number is left out, so that the count has 32 bits too.
            Self::Lt { .. } => u32::MAX,
            Self::ReedSolomon { code, max_encoding_symbols, .. } => {
                let (n, limit) = (max_encoding_symbols as u32, code.max_encoding_symbols() as u32);
                if n < limit { n } else { limit }
            }
        }
    }

    /// How many encoding symbols of a block of `source_symbols` a sender makes before it repeats
    /// them, from ESI 0 on: all of them, but of a Reed-Solomon block that is shorter than the longest
    /// one only its share, `floor(k max_n / B)` (RFC 5510).
    pub fn symbols_per_cycle(self, source_symbols: u32) -> u32 {
        let n = self.encoding_symbols(source_symbols);
        match self {
            Self::ReedSolomon { max_source_block_length, .. } => {
                let share = u64::from(source_symbols) * u64::from(n);
                let share = share.checked_div(max_source_block_length.into()).unwrap_or(0);
                (share.min(n.into()) as u32).max(source_symbols.min(n))
            }
            _ => n,
        }
    }

    /// Checks that the code can make a block of `source_symbols`.
    pub(crate) fn check_block_length(self, source_symbols: u32) -> Result<(), BlockLengthError> {
        let limit = self.max_source_symbols();
        if (1..=limit).contains(&source_symbols) {
            Ok(())
        } else {
            Err(BlockLengthError { actual: source_symbols, limit })
        }
    }

    /// An empty decoder for a block of `source_symbols`. Where there are many blocks,
    /// [`PlanCache::decoder`](crate::PlanCache::decoder) saves work.
    ///
    /// # Errors
    /// [`BlockLengthError`] if the code has no such block.
    pub fn decoder(self, source_symbols: u32) -> Result<Box<dyn Decoder>, BlockLengthError> {
        self.check_block_length(source_symbols)?;
        Ok(match self {
            Self::NoCode { .. } => Box::new(NoCodeDecoder::new(source_symbols)),
            Self::RaptorQ { .. } => {
                let full = FullBlock::new(Params::covering(source_symbols));
                Box::new(RaptorQDecoder::new(source_symbols, Arc::new(full)))
            }
            Self::Tornado { code, .. } => {
                Box::new(TornadoDecoder::new(code.shared_graph(source_symbols)))
            }
            Self::Lt { code, .. } => Box::new(LtDecoder::new(code, source_symbols)?),
            Self::ReedSolomon { code, .. } => {
                let n = self.encoding_symbols(source_symbols);
                Box::new(ReedSolomonDecoder::new(code, source_symbols, n))
            }
        })
    }

    /// Bytes that a decoder of a block of `source_symbols` takes before it has its plan: what the
    /// symbols of an honest sender make it grow to. `None` for codes whose decoders only note which
    /// symbols are at hand. Numbers that a hostile sender chose make it four times as much at most.
    pub fn decoder_memory(self, source_symbols: u32) -> Option<u64> {
        match self {
            Self::Tornado { code, .. } => Some(code.decoder_memory(source_symbols)),
            Self::Lt { code, .. } => Some(code.decoder_memory(source_symbols)),
            Self::NoCode { .. } | Self::RaptorQ { .. } | Self::ReedSolomon { .. } => None,
        }
    }

    /// Most symbols that a decoder of a block of `source_symbols` has a use for, other than source
    /// symbols: `k` of any code that needs no more than a few beyond, all there are of a Tornado
    /// code, and of an LT code what its decoder keeps.
    pub fn max_repair_symbols(self, source_symbols: u32) -> u32 {
        match self {
            Self::Tornado { .. } => self.encoding_symbols(source_symbols) - source_symbols,
            Self::Lt { .. } => lt::symbols_kept(source_symbols),
            Self::NoCode { .. } | Self::RaptorQ { .. } | Self::ReedSolomon { .. } => source_symbols,
        }
    }

    /// A budget for [`Decoder::solve`] that symbols chosen by an honest sender practically never
    /// exhaust, and that still ends a hostile choice soon: four to ten times the usual work, well
    /// under a second for the longest block of most codes, and about a second for a million symbols
    /// of LT.
    pub fn work(self, source_symbols: u32) -> Work {
        match self {
            // Nothing is ever computed.
            Self::NoCode { .. } => Work(u64::from(source_symbols)),
            Self::RaptorQ { .. } => Params::covering(source_symbols).work(),
            Self::Tornado { code, .. } => code.work(source_symbols),
            Self::Lt { code, .. } => code.work(source_symbols),
            Self::ReedSolomon { code, .. } => ReedSolomonDecoder::work(code, source_symbols),
        }
    }
}
