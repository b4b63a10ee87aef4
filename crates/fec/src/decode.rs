//! Decoding on ids: whether the symbols received suffice, and how to combine them.

use crate::ids::Esi;
use crate::plan::Plan;
use std::sync::Arc;

/// Finds out, from the ids of the symbols that arrived, whether and how a source block can be
/// recovered. It never sees a byte of them.
pub trait IdDecoder: Send {
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
    /// Trying again is always allowed; elimination then starts over, while peeling goes on. So
    /// after
    /// [`Progress::OutOfBudget`] let the budget or the number of symbols grow by a factor. A block
    /// that was solved is solved in the same way again: who is short of memory need not keep the
    /// plan.
    fn solve(&mut self, budget: Work) -> Progress;
}

impl std::fmt::Debug for dyn IdDecoder {
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

/// What [`IdDecoder::solve`] came to.
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
