//! Decoding on ids: whether the symbols received suffice, and how to combine them.

use crate::ids::Esi;
use crate::plan::Plan;
use alloc::sync::Arc;

/// Finds out from the ids of received symbols whether and how a source block can be recovered. It
/// never accesses their bytes.
pub trait IdDecoder: Send {
    /// Adds encoding symbol `esi`. Costs at most a search in a balanced tree.
    ///
    /// # Errors
    /// [`EsiError`] if the code has no such symbol; the state is unchanged.
    fn push(&mut self, esi: Esi) -> Result<Novelty, EsiError>;

    /// Fresh symbols that are needed before [`solve`](Self::solve) can succeed. At 0, `solve` is
    /// worth trying.
    fn symbols_wanted(&self) -> u32;

    /// Searches for a plan that recovers the block, spending at most about `budget`.
    ///
    /// It may be called again: elimination starts over, peeling continues. So after
    /// [`Progress::OutOfBudget`] increase the budget or the number of symbols by a factor. A solved
    /// block gives the same plan again, so a caller that is short of memory can drop the plan.
    fn solve(&mut self, budget: Work) -> Progress;
}

impl core::fmt::Debug for dyn IdDecoder {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Decoder {{ symbols_wanted: {} }}", self.symbols_wanted())
    }
}

/// The effect of a pushed symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Novelty {
    /// New and stored: its bytes may be an input of the plan.
    Fresh,
    /// Not used: already pushed, or the decoder needs no more. The caller can drop its bytes.
    Duplicate,
}

/// Computing effort. One unit is one step of the planner on ids: it visits one non-zero of the
/// code's sparse matrix, or combines one 64-bit word of its dense part with another. A core does
/// several hundred million a second. The same number bounds memory: a planner allocates at most 16
/// bytes for each unit it has spent, beside what is proportional to the block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Work(pub u64);

impl Work {
    /// No bound: for ids that are known to be honest.
    pub const UNBOUNDED: Self = Self(u64::MAX);
}

/// The result of [`IdDecoder::solve`].
#[derive(Clone, Debug)]
pub enum Progress {
    /// The block can be recovered by this plan.
    Solved(Arc<Plan>),
    /// The symbols do not determine the block: at least this many more are needed.
    Wanting(u32),
    /// The budget was exhausted first. More symbols usually reduce the work.
    OutOfBudget,
}

/// An encoding symbol identifier that the block does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("encoding symbol {esi} does not exist, the block has {encoding_symbols}", esi = .esi.0)]
pub struct EsiError {
    /// The requested identifier.
    pub esi: Esi,
    /// `n`: encoding symbols of the block, numbered from 0.
    pub encoding_symbols: u32,
}
