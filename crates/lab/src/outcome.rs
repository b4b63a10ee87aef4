//! The rows of an experiment that has run, and the digest of a run.

use crate::csv::{self, Heading};
use crate::experiment::{Experiment, Kind, Scale};
use crate::table::Table;

/// The rows of one experiment.
#[derive(Clone, Debug)]
pub struct ExperimentOutcome {
    /// The experiment.
    pub experiment: &'static Experiment,
    /// Number of trials.
    pub scale: Scale,
    /// Seed of all random numbers.
    pub seed: u64,
    /// The rows, in the order of the cases. Claims need those of all cases.
    pub table: Table,
}

impl ExperimentOutcome {
    pub(crate) fn csv(&self) -> String {
        let Self { experiment, scale, seed, table } = self;
        let heading = Heading { id: experiment.id, seed: *seed, scale: *scale };
        csv::write(&heading, table.columns, &table.rows)
    }
}

/// A digest of all rows that are not times. Runs with the same configuration and seed have the same
/// digest.
pub fn digest(outcomes: &[ExperimentOutcome]) -> String {
    let mut hasher = blake3::Hasher::new();
    for outcome in
        outcomes.iter().filter(|outcome| outcome.experiment.sweep.kind() == Kind::Counted)
    {
        hasher.update(outcome.csv().as_bytes());
    }
    hasher.finalize().to_hex().to_string()
}
