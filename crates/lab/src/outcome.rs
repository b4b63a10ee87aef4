//! The rows of an experiment that has run, and the digest of a run.

use crate::csv::{self, Heading};
use crate::experiment::{Experiment, Kind, Scale, SweepSlice};
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
    /// The cases that have run. Claims need the rows of all cases.
    pub slice: SweepSlice,
    /// The rows, in the order of the cases.
    pub table: Table,
}

impl ExperimentOutcome {
    pub(crate) fn csv(&self) -> String {
        let heading = Heading {
            id: self.experiment.id,
            seed: self.seed,
            scale: self.scale,
            slice: self.slice,
        };
        csv::write(&heading, &self.table)
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
