//! `fontana-lab merge`.

use super::leave;
use crate::args::MergeArguments;
use fontana::Outcome;
use fontana_console::console::Console;
use fontana_console::failure::Failure;
use fontana_lab::{MergeError, StoreError, merge};
use std::time::Instant;

pub(crate) fn run(arguments: &MergeArguments, console: &Console) -> Result<Outcome, Failure> {
    let began = Instant::now();
    let outcomes = merge(&arguments.directories).map_err(|error| not_joined(&error))?;
    leave(&outcomes, false, arguments.out.as_deref(), began, console)
}

fn not_joined(error: &MergeError) -> Failure {
    let hint = match error {
        MergeError::Store(error) => return not_stored(error),
        MergeError::Empty(_) | MergeError::Mixed(_) => {
            "name the directories that --out of `fontana-lab run --of M` named"
        }
        MergeError::Missing { .. } => {
            "compute them, with the same version and options: fontana-lab run ... --missing --out DIR"
        }
        MergeError::Twice { .. } => "name each directory once",
        MergeError::Foreign { .. } => "name the directories of one run",
    };
    Failure::new(Outcome::Usage, error.to_string(), hint)
}

/// The failure of files with the rows of cases.
pub(super) fn not_stored(error: &StoreError) -> Failure {
    let (outcome, hint) = match error {
        StoreError::Read { .. } => (Outcome::Io, "is it what --out of `fontana-lab run` named?"),
        StoreError::Write { .. } => (Outcome::Io, "choose a directory that this user may write to"),
        StoreError::OtherRun { .. } => (
            Outcome::Usage,
            "name another directory, or use the same experiments, options and version of the program",
        ),
        StoreError::Malformed { .. } => {
            (Outcome::Usage, "delete that file, and run again with --missing")
        }
        StoreError::Unknown { .. } => {
            (Outcome::Usage, "use the version of the program that has written it")
        }
    };
    Failure::new(outcome, error.to_string(), hint)
}
