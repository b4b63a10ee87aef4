//! Runs of sweeps, or of a slice of them, on several threads.

use crate::experiment::{Case, Experiment, Kind, Scale, Sweep, SweepSlice};
use crate::outcome::ExperimentOutcome;
use crate::table::{CaseRow, Table, TableRow};
use fontana_net::{ThreadError, thread};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// The default seed: the year of the first paper about a digital fountain.
pub const DEFAULT_SEED: u64 = 1998;

/// A plan of a run.
#[derive(Clone, Debug)]
pub struct RunPlan {
    /// Experiments, in the order of the registry.
    pub experiments: Vec<&'static Experiment>,
    /// Number of trials.
    pub scale: Scale,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Cases of each experiment.
    pub slice: SweepSlice,
    /// Number of threads. The rows do not depend on it.
    pub threads: NonZeroUsize,
}

impl RunPlan {
    /// All cases, on all cores, with the default seed.
    pub fn new(experiments: Vec<&'static Experiment>, scale: Scale) -> Self {
        let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        Self { experiments, scale, seed: DEFAULT_SEED, slice: SweepSlice::WHOLE, threads }
    }
}

/// Progress of a run.
#[derive(Clone, Copy, Debug)]
pub struct RunProgress {
    /// The sweep whose case is done.
    pub sweep: &'static str,
    /// Cases done so far, of all sweeps.
    pub done: usize,
    /// Cases of all sweeps.
    pub cases: usize,
}

/// Runs the plan. `progress` is called after each case, from any thread.
///
/// # Errors
/// The system has no thread left.
pub fn run(
    plan: &RunPlan,
    progress: &(dyn Fn(RunProgress) + Sync),
) -> Result<Vec<ExperimentOutcome>, ThreadError> {
    let sweeps = sweeps(&plan.experiments);
    let cases = |kind| {
        let sweeps = sweeps.iter().enumerate().filter(move |(_, sweep)| sweep.kind() == kind);
        sweeps.flat_map(|(position, &sweep)| {
            let all = 0..sweep.cases(plan.scale);
            all.filter(|&index| plan.slice.contains(index)).map(move |index| {
                let RunPlan { scale, seed, .. } = *plan;
                (position, sweep, Case { index, scale, seed, sweep: sweep.name() })
            })
        })
    };
    let counted: Vec<_> = cases(Kind::Counted).collect();
    let timed: Vec<_> = cases(Kind::Timed).collect();
    let total = counted.len() + timed.len();
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let rows: Mutex<BTreeMap<(usize, u32), Vec<TableRow>>> = Mutex::default();
    let work = |&(position, sweep, case): &(usize, &'static dyn Sweep, Case)| {
        let found = sweep.run(&case);
        // The rows of other threads stay valid if one of them panics.
        let mut rows = rows.lock().unwrap_or_else(PoisonError::into_inner);
        rows.insert((position, case.index), found);
        drop(rows);
        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
        progress(RunProgress { sweep: sweep.name(), done, cases: total });
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
    let rows = rows.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(collect(plan, &sweeps, &rows))
}

/// The sweeps that the experiments show, each once.
fn sweeps(experiments: &[&'static Experiment]) -> Vec<&'static dyn Sweep> {
    let mut sweeps: Vec<&'static dyn Sweep> = Vec::new();
    for experiment in experiments {
        if !sweeps.iter().any(|known| known.name() == experiment.sweep.name()) {
            sweeps.push(experiment.sweep);
        }
    }
    sweeps
}

/// The rows of each experiment's sweep.
fn collect(
    plan: &RunPlan,
    sweeps: &[&'static dyn Sweep],
    rows: &BTreeMap<(usize, u32), Vec<TableRow>>,
) -> Vec<ExperimentOutcome> {
    let RunPlan { scale, seed, slice, .. } = *plan;
    let outcome = |&experiment: &&'static Experiment| {
        let Experiment { sweep, .. } = *experiment;
        let is_shown = |at: &usize| sweeps.get(*at).is_some_and(|s| s.name() == sweep.name());
        let of_sweep = rows.iter().filter(|((position, _), _)| is_shown(position));
        let of_case = |(&(_, case), rows): (&(usize, u32), &Vec<TableRow>)| {
            let row = move |values: &TableRow| CaseRow { case, values: values.clone() };
            rows.iter().map(row).collect::<Vec<_>>()
        };
        let mut table = Table::new(sweep.columns());
        table.rows = of_sweep.flat_map(of_case).collect();
        ExperimentOutcome { experiment, scale, seed, slice, table }
    };
    plan.experiments.iter().map(outcome).collect()
}
