//! Joins slices of a run that were computed apart.

use crate::csv::{self, Heading};
use crate::experiment::{Scale, SweepSlice};
use crate::outcome::ExperimentOutcome;
use crate::registry;
use crate::table::Table;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// An error of joining slices.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// A directory or a file could not be read.
    #[error("cannot read {path:?}: {error}")]
    Read {
        /// What.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// A directory has no file of rows.
    #[error("no rows in {0:?}: expected files such as lab/ms.fig1.csv")]
    Empty(PathBuf),
    /// A file that no run has written.
    #[error("{path:?} is not what `fontana lab run` writes: line {line} does not fit")]
    Malformed {
        /// Which file.
        path: PathBuf,
        /// The first invalid line, from 1.
        line: usize,
    },
    /// Rows of an experiment that is not registered.
    #[error("{path:?} holds rows of {id:?}, which this version does not know")]
    Unknown {
        /// Which file.
        path: PathBuf,
        /// The experiment.
        id: String,
    },
    /// Slices of different runs.
    #[error("{path:?} has another seed, scale or number of slices than the files before it")]
    Foreign {
        /// Which file.
        path: PathBuf,
    },
    /// The same slice twice.
    #[error("slice {index} of {count} of {id} is there twice, again in {path:?}")]
    Twice {
        /// The second file.
        path: PathBuf,
        /// The experiment.
        id: &'static str,
        /// Which slice.
        index: u32,
        /// Of how many.
        count: u32,
    },
    /// A slice that none of the directories holds.
    #[error("slice {index} of {count} of {id} is missing")]
    Missing {
        /// The experiment.
        id: &'static str,
        /// Which slice.
        index: u32,
        /// Of how many.
        count: u32,
    },
    /// A row of a case that is not in its slice, or not in the sweep.
    #[error("{path:?} holds a row of case {case}, which is not in its slice")]
    Case {
        /// Which file.
        path: PathBuf,
        /// The case.
        case: u32,
    },
}

/// Reads the files that runs of slices have written to `directories`, and joins them. The rows are
/// those of one run of all cases.
///
/// # Errors
/// [`MergeError`] if the files are not all slices of one run.
pub fn merge(directories: &[PathBuf]) -> Result<Vec<ExperimentOutcome>, MergeError> {
    let mut joined = Joined::default();
    for directory in directories {
        for path in files(directory)? {
            let text = std::fs::read_to_string(&path)
                .map_err(|error| MergeError::Read { path: path.clone(), error })?;
            joined.add(path, &text)?;
        }
    }
    joined.finish()
}

/// The files of rows below an output directory, in the order of their names.
fn files(directory: &Path) -> Result<Vec<PathBuf>, MergeError> {
    let lab = directory.join("lab");
    let read = |error| MergeError::Read { path: lab.clone(), error };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(&lab).map_err(read)? {
        let path = entry.map_err(read)?.path();
        if path.extension().is_some_and(|extension| extension == "csv") {
            files.push(path);
        }
    }
    if files.is_empty() {
        return Err(MergeError::Empty(directory.to_owned()));
    }
    files.sort();
    Ok(files)
}

#[derive(Default)]
struct Joined {
    /// The run of the files so far; `None` before the first one.
    run: Option<SlicedRun>,
    /// By the experiment's position in the registry.
    parts: BTreeMap<usize, JoinedRows>,
}

/// What all files of one run have in common.
#[derive(Clone, Copy, PartialEq, Eq)]
struct SlicedRun {
    seed: u64,
    scale: Scale,
    /// Number of slices.
    count: u32,
}

/// The rows of an experiment so far.
struct JoinedRows {
    table: Table,
    /// Slices that they are from.
    slices: Vec<u32>,
}

impl Joined {
    fn add(&mut self, path: PathBuf, text: &str) -> Result<(), MergeError> {
        let Some(Heading { id, seed, scale, slice }) = csv::heading(text) else {
            return Err(MergeError::Malformed { path, line: 1 });
        };
        let Some(position) = registry::EXPERIMENTS.iter().position(|known| known.id == id) else {
            return Err(MergeError::Unknown { path, id: id.to_owned() });
        };
        let experiment = registry::EXPERIMENTS[position];
        let run = SlicedRun { seed, scale, count: slice.count() };
        if *self.run.get_or_insert(run) != run {
            return Err(MergeError::Foreign { path });
        }
        let rows = match csv::rows(text, experiment) {
            Ok(rows) => rows,
            Err(line) => return Err(MergeError::Malformed { path, line }),
        };
        let cases = experiment.sweep.cases(scale);
        let fits = |case: u32| case < cases && slice.contains(case);
        if let Some(row) = rows.iter().find(|row| !fits(row.case)) {
            return Err(MergeError::Case { path, case: row.case });
        }
        let empty =
            || JoinedRows { table: Table::new(experiment.sweep.columns()), slices: Vec::new() };
        let JoinedRows { table, slices } = self.parts.entry(position).or_insert_with(empty);
        let (index, count) = (slice.index(), slice.count());
        if slices.contains(&index) {
            return Err(MergeError::Twice { path, id: experiment.id, index, count });
        }
        slices.push(index);
        table.rows.extend(rows);
        Ok(())
    }

    fn finish(self) -> Result<Vec<ExperimentOutcome>, MergeError> {
        let Some(SlicedRun { seed, scale, count }) = self.run else { return Ok(Vec::new()) };
        let mut outcomes = Vec::new();
        for (position, JoinedRows { mut table, slices }) in self.parts {
            let experiment = registry::EXPERIMENTS[position];
            if let Some(index) = (0..count).find(|index| !slices.contains(index)) {
                return Err(MergeError::Missing { id: experiment.id, index, count });
            }
            // Stable: rows of one case keep their order.
            table.rows.sort_by_key(|row| row.case);
            outcomes.push(ExperimentOutcome {
                experiment,
                scale,
                seed,
                slice: SweepSlice::WHOLE,
                table,
            });
        }
        Ok(outcomes)
    }
}
