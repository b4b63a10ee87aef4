//! Joins the rows of a run that were computed apart.

use crate::cases::{CaseStore, StoreError};
use crate::csv::{self, Heading};
use crate::experiment::Experiment;
use crate::outcome::ExperimentOutcome;
use crate::plan::{PlannedCase, planned_cases};
use crate::registry;
use crate::table::{CaseRow, Table};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// An error of joining rows.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// A file that cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A directory has no file of rows.
    #[error("no rows in {0:?}: expected files such as cases/ms.fig1.0.csv or lab/ms.fig1.csv")]
    Empty(PathBuf),
    /// Files with all rows of an experiment, of different runs.
    #[error("{path:?} has another seed or scale than the files before it")]
    Foreign {
        /// Which file.
        path: PathBuf,
    },
    /// All rows of one experiment twice.
    #[error("the rows of {id} are there twice, again in {path:?}")]
    Twice {
        /// The second file.
        path: PathBuf,
        /// The experiment.
        id: &'static str,
    },
    /// Directories with rows of single cases, and directories with pages.
    #[error("{0:?} has all rows of its experiments, and others have those of single cases")]
    Mixed(PathBuf),
    /// Cases whose rows none of the directories has.
    #[error("the rows of {holes} are missing")]
    Missing {
        /// The cases.
        holes: Holes,
    },
}

/// Cases whose rows are missing, by sweep.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holes(BTreeMap<&'static str, Vec<u32>>);

impl Holes {
    /// Number of cases.
    pub fn count(&self) -> usize {
        self.0.values().map(Vec::len).sum()
    }

    /// Sweeps, and the indices of their cases in ascending order.
    pub fn cases(&self) -> impl Iterator<Item = (&'static str, &[u32])> {
        self.0.iter().map(|(&id, indices)| (id, indices.as_slice()))
    }
}

impl fmt::Display for Holes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.count();
        write!(f, "{count} {}", if count == 1 { "case" } else { "cases" })?;
        for (place, (id, indices)) in self.cases().enumerate() {
            f.write_str(if place == 0 { ": " } else { "; " })?;
            let runs = indices.chunk_by(|a, b| a + 1 == *b).map(|run| match run {
                [first, .., last] => format!("{first}-{last}"),
                [first] => first.to_string(),
                [] => String::new(),
            });
            write!(f, "{id} {}", runs.collect::<Vec<_>>().join(","))?;
        }
        Ok(())
    }
}

/// Joins what runs have written to `directories`: the rows of single cases, or, if no directory has
/// any, those of whole experiments. The result is that of one run of all cases.
///
/// # Errors
/// [`MergeError`] if the rows are not those of one run, or cases are missing.
pub fn merge(directories: &[PathBuf]) -> Result<Vec<ExperimentOutcome>, MergeError> {
    let (mut stores, mut others) = (Vec::new(), Vec::new());
    for directory in directories {
        match CaseStore::open(directory)? {
            Some(store) => stores.push(store),
            None => others.push(directory),
        }
    }
    match (stores.is_empty(), others.first()) {
        (true, _) => join_experiments(&others),
        (false, None) => join_cases(&stores),
        (false, Some(other)) if files(other)?.is_empty() => {
            Err(MergeError::Empty((*other).clone()))
        }
        (false, Some(other)) => Err(MergeError::Mixed((*other).clone())),
    }
}

/// Joins the rows of single cases.
fn join_cases(stores: &[CaseStore]) -> Result<Vec<ExperimentOutcome>, MergeError> {
    let Some((first, rest)) = stores.split_first() else { return Ok(Vec::new()) };
    rest.iter().try_for_each(|store| first.check_same_run(store))?;
    let (identity, experiments) = (first.identity(), first.experiments());
    let mut tables: BTreeMap<&str, Table> = BTreeMap::new();
    let mut holes = Holes::default();
    let mut cases = planned_cases(experiments, identity.scale);
    cases.sort_by_key(|case| case.index);
    for case in &cases {
        let name = case.sweep.name();
        match find(stores, case)? {
            Some(rows) => {
                let empty = || Table::new(case.sweep.columns());
                tables.entry(name).or_insert_with(empty).rows.extend(rows);
            }
            None => holes.0.entry(name).or_default().push(case.index),
        }
    }
    if holes.count() > 0 {
        return Err(MergeError::Missing { holes });
    }
    let outcome = |&experiment: &&'static Experiment| ExperimentOutcome {
        experiment,
        scale: identity.scale,
        seed: identity.seed,
        table: tables
            .get(experiment.sweep.name())
            .cloned()
            .unwrap_or_else(|| Table::new(experiment.sweep.columns())),
    };
    Ok(experiments.iter().map(outcome).collect())
}

/// The rows of a case, from the first store that has them.
fn find(stores: &[CaseStore], case: &PlannedCase) -> Result<Option<Vec<CaseRow>>, StoreError> {
    for store in stores {
        if let Some(rows) = store.read(case)? {
            return Ok(Some(rows));
        }
    }
    Ok(None)
}

/// Joins the rows of whole experiments.
fn join_experiments(directories: &[&PathBuf]) -> Result<Vec<ExperimentOutcome>, MergeError> {
    let mut joined = Joined::default();
    for directory in directories {
        let files = files(directory)?;
        if files.is_empty() {
            return Err(MergeError::Empty((*directory).clone()));
        }
        for path in files {
            let text = std::fs::read_to_string(&path)
                .map_err(|error| StoreError::Read { path: path.clone(), error })?;
            joined.add(path, &text)?;
        }
    }
    Ok(joined.outcomes.into_values().collect())
}

/// The files with all rows of an experiment below a results directory, in the order of their names.
fn files(directory: &Path) -> Result<Vec<PathBuf>, MergeError> {
    let lab = directory.join("lab");
    let read = |error| StoreError::Read { path: lab.clone(), error };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(&lab).map_err(read)? {
        let path = entry.map_err(read)?.path();
        if path.extension().is_some_and(|extension| extension == "csv") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

#[derive(Default)]
struct Joined {
    /// Seed of the files so far; `None` before the first one. An experiment may have another scale
    /// than the others.
    seed: Option<u64>,
    /// By the experiment's position in the registry.
    outcomes: BTreeMap<usize, ExperimentOutcome>,
}

impl Joined {
    fn add(&mut self, path: PathBuf, text: &str) -> Result<(), MergeError> {
        let Some(Heading { id, seed, scale }) = csv::heading(text) else {
            return Err(StoreError::Malformed { path, line: 1 }.into());
        };
        let Some(position) = registry::EXPERIMENTS.iter().position(|known| known.id == id) else {
            return Err(StoreError::Unknown { path, id: id.to_owned() }.into());
        };
        let experiment = registry::EXPERIMENTS[position];
        if *self.seed.get_or_insert(seed) != seed {
            return Err(MergeError::Foreign { path });
        }
        let mut rows = match csv::rows(text, experiment.sweep.columns()) {
            Ok(rows) => rows,
            Err(line) => return Err(StoreError::Malformed { path, line }.into()),
        };
        let cases = experiment.sweep.cases(scale);
        if let Some(row) = rows.iter().position(|row| row.case >= cases) {
            return Err(StoreError::Malformed { path, line: row + 3 }.into());
        }
        // Stable: rows of one case stay in their order.
        rows.sort_by_key(|row| row.case);
        let table = Table { rows, ..Table::new(experiment.sweep.columns()) };
        let outcome = ExperimentOutcome { experiment, scale, seed, table };
        match self.outcomes.insert(position, outcome) {
            Some(_) => Err(MergeError::Twice { path, id: experiment.id }),
            None => Ok(()),
        }
    }
}
