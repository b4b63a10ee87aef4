//! The cases of a run: their expected duration, and their division into slices.

use crate::experiment::{Experiment, Scale, Sweep};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::fmt;
use std::sync::LazyLock;

/// A case of a run, and how long it is expected to take.
#[derive(Clone, Copy)]
pub struct PlannedCase {
    /// The sweep.
    pub sweep: &'static dyn Sweep,
    /// Its index in the sweep, from 0.
    pub index: u32,
    /// Expected processor time. Hosts differ: it serves to compare cases.
    pub seconds: f64,
}

impl PlannedCase {
    /// The name of its sweep, without spaces.
    pub(crate) fn word(&self) -> String {
        word(self.sweep)
    }
}

fn word(sweep: &dyn Sweep) -> String {
    sweep.name().replace(' ', "-")
}

impl fmt::Debug for PlannedCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PlannedCase({} {}, {} s)", self.sweep.name(), self.index, self.seconds)
    }
}

/// The sweeps that experiments show, each once.
pub(crate) fn sweeps(experiments: &[&'static Experiment]) -> Vec<&'static dyn Sweep> {
    let mut sweeps: Vec<&'static dyn Sweep> = Vec::new();
    for experiment in experiments {
        if !sweeps.iter().any(|known| known.name() == experiment.sweep.name()) {
            sweeps.push(experiment.sweep);
        }
    }
    sweeps
}

/// All cases of the sweeps that experiments show, the longest first. Cases that take equally long
/// are in the order of the experiments.
pub fn planned_cases(experiments: &[&'static Experiment], scale: Scale) -> Vec<PlannedCase> {
    let of_sweep = |sweep: &'static dyn Sweep| {
        (0..sweep.cases(scale)).map(move |index| {
            let seconds = expected_seconds(&word(sweep), scale, index);
            PlannedCase { sweep, index, seconds }
        })
    };
    let mut cases: Vec<_> = sweeps(experiments).into_iter().flat_map(of_sweep).collect();
    // Stable: the division into slices is the same on every host.
    cases.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    cases
}

/// One of several parts of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SweepSlice {
    index: u32,
    count: u32,
}

impl SweepSlice {
    /// Most slices of a run: more than any run has cases.
    pub const MOST: u32 = 100_000;

    /// Slice `index` of `count`; `None` unless `index < count`, and if there are too many.
    pub const fn new(index: u32, count: u32) -> Option<Self> {
        if index < count && count <= Self::MOST { Some(Self { index, count }) } else { None }
    }

    /// The cases of this slice.
    pub fn of(self, cases: &[PlannedCase]) -> Vec<PlannedCase> {
        dealt(cases, self.count).swap_remove(self.index as usize)
    }
}

/// Divides cases into `count` slices: each case in turn, the longest first, goes to the slice that
/// has least to do. The longest slice takes at most 4/3 of the shortest possible time (Graham 1969,
/// theorem 2).
pub fn dealt(cases: &[PlannedCase], count: u32) -> Vec<Vec<PlannedCase>> {
    let mut slices = vec![Vec::new(); count as usize];
    // Nanoseconds, which are in a total order. The first of those with equally much to do.
    let mut least: BinaryHeap<Reverse<(u64, usize)>> =
        (0..slices.len()).map(|slice| Reverse((0, slice))).collect();
    for case in cases {
        let Some(Reverse((nanos, index))) = least.pop() else { break };
        if let Some(slice) = slices.get_mut(index) {
            slice.push(*case);
        }
        least.push(Reverse((nanos.saturating_add((case.seconds * 1e9) as u64), index)));
    }
    slices
}

/// Measured processor time of cases: `SWEEP SCALE SECONDS...`, in the order of the cases. `N*S` is
/// N cases of S seconds each. They are those of `fontana-lab run --json`. With all trials, those of
/// fo.fair, df.table5, df.loss and df.lt are extrapolated from quick runs, and a ninth of those of
/// fo.window from the cases beside them.
const MEASURED: &str = include_str!("plan/seconds.txt");

/// The measured seconds by experiment and scale. A line that does not parse is ignored, and fails a
/// test.
static SECONDS: LazyLock<BTreeMap<(&str, &str), Vec<f64>>> =
    LazyLock::new(|| MEASURED.lines().filter_map(parse).collect());

/// Seconds of a case of a sweep that was never measured.
const UNKNOWN: f64 = 1.0;

fn parse(line: &'static str) -> Option<((&'static str, &'static str), Vec<f64>)> {
    let mut words = line.split(' ');
    let key = (words.next()?, words.next()?);
    let mut all = Vec::new();
    for word in words {
        let (count, seconds) = word.split_once('*').unwrap_or(("1", word));
        let seconds = seconds.parse::<f64>().ok().filter(|all| (0.0..1e6).contains(all))?;
        all.extend(std::iter::repeat_n(seconds, count.parse().ok()?));
    }
    Some((key, all))
}

/// Expected seconds of a case: as measured, the mean of the sweep's cases if this one was
/// not measured.
fn expected_seconds(word: &str, scale: Scale, index: u32) -> f64 {
    let Some(all) = SECONDS.get(&(word, scale.name())) else { return UNKNOWN };
    let mean = || all.iter().sum::<f64>() / all.len().max(1) as f64;
    all.get(index as usize).copied().unwrap_or_else(mean)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry;

    fn cases(seconds: &[f64]) -> Vec<PlannedCase> {
        let sweep = registry::EXPERIMENTS[0].sweep;
        (0..).zip(seconds).map(|(index, &seconds)| PlannedCase { sweep, index, seconds }).collect()
    }

    fn sums(slices: &[Vec<PlannedCase>]) -> Vec<f64> {
        slices.iter().map(|slice| slice.iter().map(|case| case.seconds).sum()).collect()
    }

    #[test]
    fn the_longest_cases_are_dealt_first_and_to_the_emptiest_slice() {
        let slices = dealt(&cases(&[7.0, 5.0, 4.0, 3.0, 3.0]), 2);
        let indices: Vec<Vec<u32>> =
            slices.iter().map(|slice| slice.iter().map(|case| case.index).collect()).collect();
        assert_eq!(indices, [vec![0, 3], vec![1, 2, 4]]);
        assert_eq!(sums(&slices), [10.0, 12.0]);
        assert_eq!(sums(&dealt(&cases(&[1.0]), 3)), [1.0, 0.0, 0.0]);
    }

    #[test]
    fn slices_have_every_case_once() {
        let all = planned_cases(registry::EXPERIMENTS, Scale::Quick);
        let mut seen: Vec<_> = (0..16)
            .flat_map(|index| SweepSlice::new(index, 16).unwrap().of(&all))
            .map(|case| (case.sweep.name(), case.index))
            .collect();
        let mut expected: Vec<_> = all.iter().map(|case| (case.sweep.name(), case.index)).collect();
        seen.sort_unstable();
        expected.sort_unstable();
        assert_eq!(seen, expected);
        assert!(SweepSlice::new(16, 16).is_none() && SweepSlice::new(0, 0).is_none());
        assert!(SweepSlice::new(0, SweepSlice::MOST + 1).is_none());
    }

    #[test]
    fn slices_of_a_quick_run_keep_their_cores_busy() {
        let all = planned_cases(registry::EXPERIMENTS, Scale::Quick);
        for (slices, cores) in [(2, 2), (4, 4), (8, 8), (16, 2), (64, 4)] {
            // Each core takes the next slice when it is done with one.
            let mut busy = vec![0.0_f64; cores];
            for seconds in sums(&dealt(&all, slices)) {
                busy.sort_by(f64::total_cmp);
                busy[0] += seconds;
            }
            let makespan = busy.iter().copied().fold(0.0, f64::max);
            let mean = busy.iter().sum::<f64>() / cores as f64;
            assert!(makespan <= 1.15 * mean, "{slices} slices, {cores} cores: {makespan} {mean} s");
        }
    }

    #[test]
    fn measured_seconds_are_of_cases_that_exist() {
        for line in MEASURED.lines() {
            let ((name, scale), seconds) = parse(line).unwrap_or_else(|| panic!("{line:?}"));
            let all = sweeps(registry::EXPERIMENTS);
            let sweep = all.iter().find(|sweep| word(**sweep) == name);
            let sweep = sweep.unwrap_or_else(|| panic!("{line:?}"));
            let scale =
                [Scale::Quick, Scale::Full].into_iter().find(|s| s.name() == scale).unwrap();
            assert!(seconds.len() <= sweep.cases(scale) as usize, "{name}");
        }
        assert_eq!(expected_seconds("df.fig99", Scale::Quick, 0), UNKNOWN);
    }
}
