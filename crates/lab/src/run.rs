//! Runs of sweeps, or of a slice of them, on several threads.

use crate::cases::{CaseStore, StoreError};
use crate::experiment::{Case, Experiment, Kind, Scale};
use crate::identity::DEFAULT_SEED;
use crate::outcome::ExperimentOutcome;
use crate::plan::{PlannedCase, SweepSlice, planned_cases};
use crate::table::{CaseRow, Table};
use crate::timing;
use fontana_net::{ThreadError, thread};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A plan of a run.
#[derive(Clone, Debug)]
pub struct RunPlan {
    /// Experiments, in the order of the registry.
    pub experiments: Vec<&'static Experiment>,
    /// Number of trials.
    pub scale: Scale,
    /// Seed of all random numbers.
    pub seed: u64,
    /// The cases to run, in this order: first those that are counted, then those that are timed.
    pub cases: Vec<PlannedCase>,
    /// Where the rows of each case are written when it is done.
    pub store: Option<CaseStore>,
    /// Number of threads. The rows do not depend on it.
    pub threads: NonZeroUsize,
}

impl RunPlan {
    /// All cases, on all cores, with the default seed.
    pub fn new(experiments: Vec<&'static Experiment>, scale: Scale) -> Self {
        let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        let cases = planned_cases(&experiments, scale);
        Self { experiments, scale, seed: DEFAULT_SEED, cases, store: None, threads }
    }

    /// The plan with the cases of one slice.
    pub fn sliced(self, slice: SweepSlice) -> Self {
        Self { cases: slice.of(&self.cases), ..self }
    }

    /// The plan without the cases whose rows its store has.
    pub fn without_stored(mut self) -> Self {
        if let Some(store) = &self.store {
            self.cases.retain(|case| !store.has(case));
        }
        self
    }
}

/// A case that is done.
#[derive(Clone, Copy, Debug)]
pub struct RunProgress {
    /// Its sweep.
    pub sweep: &'static str,
    /// Its index in the sweep.
    pub index: u32,
    /// Processor time that it took.
    pub seconds: f64,
    /// Cases done so far, of all sweeps.
    pub done: usize,
    /// Cases of all sweeps.
    pub cases: usize,
}

/// Why a run ends early.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The system has no thread left.
    #[error(transparent)]
    Thread(#[from] ThreadError),
    /// The rows of a case cannot be written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Runs the plan. `progress` is called after each case, from any thread. Returns the rows of the
/// plan's cases.
///
/// # Errors
/// [`RunError`].
pub fn run(
    plan: &RunPlan,
    progress: &(dyn Fn(RunProgress) + Sync),
) -> Result<Vec<ExperimentOutcome>, RunError> {
    let of_kind = |kind| plan.cases.iter().filter(move |case| case.sweep.kind() == kind);
    let counted: Vec<&PlannedCase> = of_kind(Kind::Counted).collect();
    let run = Running { plan, progress, done: AtomicUsize::new(0), results: Mutex::default() };
    let next = AtomicUsize::new(0);
    let work_on_all = || {
        while let Some(case) = counted.get(next.fetch_add(1, Ordering::Relaxed)) {
            if !run.work(case) {
                return;
            }
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
    let _ = of_kind(Kind::Timed).all(|case| run.work(case));
    let Results { rows, error } = run.results.into_inner().unwrap_or_else(PoisonError::into_inner);
    match error {
        Some(error) => Err(error.into()),
        None => Ok(collect(plan, &rows)),
    }
}

/// A run while its threads work.
struct Running<'a> {
    plan: &'a RunPlan,
    progress: &'a (dyn Fn(RunProgress) + Sync),
    done: AtomicUsize,
    results: Mutex<Results>,
}

/// Rows by sweep and case, and the first error.
#[derive(Default)]
struct Results {
    rows: BTreeMap<(&'static str, u32), Vec<CaseRow>>,
    error: Option<StoreError>,
}

impl Running<'_> {
    fn results(&self) -> MutexGuard<'_, Results> {
        // The rows of other threads stay valid if one of them panics.
        self.results.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a case. False if the run has failed.
    fn work(&self, planned: &PlannedCase) -> bool {
        let &PlannedCase { sweep, index, .. } = planned;
        let RunPlan { scale, seed, .. } = *self.plan;
        let case = Case { index, scale, seed, sweep: sweep.name() };
        let mut rows = Vec::new();
        let seconds = timing::seconds(|| rows = sweep.run(&case));
        let rows: Vec<CaseRow> =
            rows.into_iter().map(|values| CaseRow { case: index, values }).collect();
        let stored = self.plan.store.as_ref().map_or(Ok(()), |store| store.write(planned, &rows));
        let mut results = self.results();
        results.rows.insert((sweep.name(), index), rows);
        if let Err(error) = stored {
            results.error.get_or_insert(error);
        }
        let is_well = results.error.is_none();
        drop(results);
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        let cases = self.plan.cases.len();
        let sweep = sweep.name();
        (self.progress)(RunProgress { sweep, index, seconds, done, cases });
        is_well
    }
}

/// The rows of each experiment's sweep.
fn collect(
    plan: &RunPlan,
    rows: &BTreeMap<(&'static str, u32), Vec<CaseRow>>,
) -> Vec<ExperimentOutcome> {
    let RunPlan { scale, seed, .. } = *plan;
    let outcome = |&experiment: &&'static Experiment| {
        let sweep = experiment.sweep;
        let mut table = Table::new(sweep.columns());
        for case in 0..sweep.cases(scale) {
            table.rows.extend(rows.get(&(sweep.name(), case)).into_iter().flatten().cloned());
        }
        ExperimentOutcome { experiment, scale, seed, table }
    };
    plan.experiments.iter().map(outcome).collect()
}
