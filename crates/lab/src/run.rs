//! Running sweeps on all cores, or a slice of them.

use crate::csv::{self, Heading};
use crate::experiment::{Case, Experiment, Kind, Scale};
use crate::table::{Row, Table};
use fontana_net::{ThreadError, thread};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// The seed of runs that are not given another one: the year of the first digital fountain.
pub const DEFAULT_SEED: u64 = 1998;

/// What to run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Which experiments. Rows of several runs are compared and joined in the order of the
    /// registry.
    pub experiments: Vec<&'static Experiment>,
    /// How many trials.
    pub scale: Scale,
    /// Where all randomness comes from.
    pub seed: u64,
    /// Which cases of each.
    pub slice: Slice,
    /// On how many threads. The rows do not depend on it.
    pub threads: NonZeroUsize,
}

impl Plan {
    /// All cases, on all cores, with the usual seed.
    pub fn new(experiments: Vec<&'static Experiment>, scale: Scale) -> Self {
        let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        Self { experiments, scale, seed: DEFAULT_SEED, slice: Slice::WHOLE, threads }
    }
}

/// Every `count`-th case of a sweep, beginning with the one numbered `index`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    index: u32,
    count: u32,
}

impl Slice {
    /// All cases.
    pub const WHOLE: Self = Self { index: 0, count: 1 };

    /// Slice `index` of `count`; `None` unless `index < count`.
    pub const fn new(index: u32, count: u32) -> Option<Self> {
        if index < count { Some(Self { index, count }) } else { None }
    }

    /// Which slice, from 0.
    pub const fn index(self) -> u32 {
        self.index
    }

    /// How many slices there are.
    pub const fn count(self) -> u32 {
        self.count
    }

    /// Whether a case belongs to the slice.
    pub const fn contains(self, case: u32) -> bool {
        case % self.count == self.index
    }
}

/// The rows of one experiment.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Which experiment.
    pub experiment: &'static Experiment,
    /// How many trials.
    pub scale: Scale,
    /// Where all randomness came from.
    pub seed: u64,
    /// Which of its cases. Only of all of them anything can be said.
    pub slice: Slice,
    /// The rows, in the order of the cases.
    pub table: Table,
}

impl Outcome {
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

/// How far a run has come.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// The experiment whose case is done.
    pub experiment: &'static str,
    /// Cases done so far, of all experiments.
    pub done: usize,
    /// Cases of all experiments.
    pub cases: usize,
}

/// Runs the plan. `progress` is called after each case, from any thread.
///
/// # Errors
/// The system has no thread left.
pub fn run(plan: &Plan, progress: &(dyn Fn(Progress) + Sync)) -> Result<Vec<Outcome>, ThreadError> {
    let cases = |kind| {
        let experiments = plan.experiments.iter().enumerate();
        experiments.filter(move |(_, experiment)| experiment.kind == kind).flat_map(
            |(position, experiment)| {
                let all = 0..(experiment.cases)(plan.scale);
                all.filter(|&index| plan.slice.contains(index)).map(move |index| {
                    let Plan { scale, seed, .. } = *plan;
                    (position, *experiment, Case { index, scale, seed, experiment: experiment.id })
                })
            },
        )
    };
    let counted: Vec<_> = cases(Kind::Counted).collect();
    let timed: Vec<_> = cases(Kind::Timed).collect();
    let total = counted.len() + timed.len();
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let rows: Mutex<BTreeMap<(usize, u32), Vec<Row>>> = Mutex::default();
    let work = |&(position, experiment, case): &(usize, &'static Experiment, Case)| {
        let found = (experiment.run)(&case);
        // A thread that panicked has broken no row of another one.
        let mut rows = rows.lock().unwrap_or_else(PoisonError::into_inner);
        rows.insert((position, case.index), found);
        drop(rows);
        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
        progress(Progress { experiment: experiment.id, done, cases: total });
    };
    let work_on_all = || {
        while let Some(case) = counted.get(next.fetch_add(1, Ordering::Relaxed)) {
            work(case);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..plan.threads.get().min(counted.len()) {
            if let Err(error) = thread::spawn_scoped(scope, "lab", work_on_all) {
                // The threads that were started find no further case.
                next.store(counted.len(), Ordering::Relaxed);
                return Err(error);
            }
        }
        Ok(())
    })?;
    // Timed cases run alone: no other case may slow them down.
    timed.iter().for_each(work);
    Ok(collect(plan, rows.into_inner().unwrap_or_else(PoisonError::into_inner)))
}

fn collect(plan: &Plan, rows: BTreeMap<(usize, u32), Vec<Row>>) -> Vec<Outcome> {
    let Plan { scale, seed, slice, .. } = *plan;
    let outcome = |&experiment: &&'static Experiment| {
        let table = Table::new(experiment.columns);
        Outcome { experiment, scale, seed, slice, table }
    };
    let mut outcomes: Vec<Outcome> = plan.experiments.iter().map(outcome).collect();
    for ((position, case), rows) in rows {
        if let Some(outcome) = outcomes.get_mut(position) {
            outcome.table.rows.extend(rows.into_iter().map(|row| (case, row)));
        }
    }
    outcomes
}

/// A digest of all rows that are not times: two runs with the same configuration and seed have the
/// same one.
pub fn digest(outcomes: &[Outcome]) -> String {
    let mut hasher = blake3::Hasher::new();
    for outcome in outcomes.iter().filter(|outcome| outcome.experiment.kind == Kind::Counted) {
        hasher.update(outcome.csv().as_bytes());
    }
    hasher.finalize().to_hex().to_string()
}
