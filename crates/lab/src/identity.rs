//! What identifies a run whose rows are computed apart.

use crate::experiment::Scale;
use std::fmt;

/// The default seed: the year of the first paper about a digital fountain.
pub const DEFAULT_SEED: u64 = 1998;

/// What determines the rows of a run, apart from the choice of experiments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunIdentity {
    /// Seed of all random numbers.
    pub seed: u64,
    /// Number of trials.
    pub scale: Scale,
    /// The commit that the program was built from.
    pub commit: String,
}

impl fmt::Display for RunIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, scale, commit } = self;
        write!(f, "seed {seed}, scale {}, commit {commit}", scale.name())
    }
}
