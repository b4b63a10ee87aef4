//! Runs: the same rows whatever the threads and slices, and what they leave on disk.
#![allow(clippy::unwrap_used)]

use fontana_lab::{
    Experiment, ExperimentOutcome, MergeError, RunPlan, Scale, SweepSlice, contents, digest, judge,
    merge, registry, run, write_to,
};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// Of the cheap ones some that draw at random and one that does not, in the order of the registry.
const IDS: [&str; 3] = ["ms.series", "ms.slow", "ms.offsets"];

fn experiments() -> Vec<&'static Experiment> {
    IDS.iter().map(|id| registry::find(id).unwrap()).collect()
}

fn plan() -> RunPlan {
    RunPlan::new(experiments(), Scale::Quick)
}

fn run_plan(plan: &RunPlan) -> Vec<ExperimentOutcome> {
    run(plan, &|_| ()).unwrap()
}

fn slice(index: u32, count: u32) -> Vec<ExperimentOutcome> {
    run_plan(&RunPlan { slice: SweepSlice::new(index, count).unwrap(), ..plan() })
}

/// Slices as a job array would leave them.
fn slices(directory: &Path, count: u32) -> Vec<PathBuf> {
    let write = |index| {
        let out = directory.join(format!("slice{index}"));
        write_to(&out, &slice(index, count), "test").unwrap();
        out
    };
    (0..count).map(write).collect()
}

#[test]
fn rows_do_not_depend_on_threads_and_do_on_the_seed() {
    let threads =
        |threads| run_plan(&RunPlan { threads: NonZeroUsize::new(threads).unwrap(), ..plan() });
    let (one, four) = (threads(1), threads(4));
    assert_eq!(digest(&one), digest(&four));
    let other = run_plan(&RunPlan { seed: 2, ..plan() });
    assert_ne!(digest(&one), digest(&other));
    assert!(other.iter().flat_map(judge).all(|finding| finding.as_expected), "another seed");
}

#[test]
fn times_are_no_part_of_the_digest() {
    let timed = registry::find("df.patient").unwrap();
    let counted = registry::find("ms.series").unwrap();
    let run = |experiments| run_plan(&RunPlan::new(experiments, Scale::Quick));
    let both = run(vec![timed, counted]);
    assert_eq!(digest(&both), digest(&run(vec![counted])));
    // And what it counts comes out as known, whatever the time.
    let counts = ["redundant", "patience"];
    let findings = judge(&both[0]).into_iter().filter(|f| counts.contains(&f.claim.as_str()));
    assert_eq!(findings.filter(|finding| finding.as_expected).count(), 2);
}

#[test]
fn slices_joined_are_one_run() {
    let whole = run_plan(&plan());
    let directory = tempfile::tempdir().unwrap();
    let mut parts = slices(directory.path(), 3);
    parts.reverse();
    let joined = merge(&parts).unwrap();
    assert_eq!(digest(&joined), digest(&whole));
    assert_eq!(
        joined.iter().map(judge).collect::<Vec<_>>(),
        whole.iter().map(judge).collect::<Vec<_>>()
    );
    // And so are the pages.
    let (a, b) = (directory.path().join("a"), directory.path().join("b"));
    write_to(&a, &joined, "test").unwrap();
    write_to(&b, &whole, "test").unwrap();
    for file in ["lab.md", "lab/ms.offsets.csv", "lab/ms.series.svg"] {
        assert_eq!(std::fs::read(a.join(file)).unwrap(), std::fs::read(b.join(file)).unwrap());
    }
}

#[test]
fn a_slice_alone_makes_no_page() {
    let directory = tempfile::tempdir().unwrap();
    let parts = slices(directory.path(), 2);
    assert!(parts[0].join("lab/ms.offsets.csv").exists());
    assert!(!parts[0].join("lab.md").exists());
}

#[test]
fn what_cannot_be_joined_is_refused_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let parts = slices(directory.path(), 2);
    let file = parts[1].join("lab/ms.offsets.csv");
    let original = std::fs::read_to_string(&file).unwrap();
    let after = |text: &str| {
        std::fs::write(&file, text).unwrap();
        merge(&parts).unwrap_err()
    };
    let first_row = original.lines().nth(2).unwrap();
    assert!(matches!(after(""), MergeError::Malformed { line: 1, .. }));
    assert!(matches!(after("\0\u{fffd},,,"), MergeError::Malformed { line: 1, .. }));
    assert!(matches!(
        after(&original.replace("of=2", "of=0")),
        MergeError::Malformed { line: 1, .. }
    ));
    assert!(matches!(
        after(&original.replace("enhancement,", "")),
        MergeError::Malformed { line: 2, .. }
    ));
    assert!(matches!(
        after(&original.replace(first_row, "1,2")),
        MergeError::Malformed { line: 3, .. }
    ));
    assert!(matches!(
        after(&original.replace("lab ms.offsets", "lab ms.eq9")),
        MergeError::Unknown { .. }
    ));
    assert!(matches!(after(&original.replace("seed=1998", "seed=1")), MergeError::Foreign { .. }));
    assert!(matches!(
        after(&original.replace("case=1", "case=0")),
        MergeError::Case { case: 1, .. }
    ));
    let emptied =
        original.lines().take(2).collect::<Vec<_>>().join("\n").replace("case=1", "case=0");
    assert!(matches!(after(&emptied), MergeError::Twice { index: 0, count: 2, .. }));
    std::fs::remove_file(&file).unwrap();
    assert!(matches!(merge(&parts), Err(MergeError::Missing { index: 1, count: 2, .. })));
    let empty = directory.path().join("empty");
    assert!(matches!(merge(std::slice::from_ref(&empty)), Err(MergeError::Read { .. })));
    std::fs::create_dir_all(empty.join("lab")).unwrap();
    assert!(matches!(merge(&[empty]), Err(MergeError::Empty(_))));
}

#[test]
fn the_page_that_is_checked_in_is_about_the_experiments_there_are() {
    let page = include_str!("../../../docs/lab.md");
    let (_, rest) = page.split_once("## Contents\n\n").unwrap();
    let (listed, _) = rest.split_once("\n\n").unwrap();
    let all = registry::EXPERIMENTS.iter().map(|experiment| experiment.id);
    assert_eq!(listed.trim_end(), contents(all).trim_end());
}

#[test]
fn what_takes_seconds_comes_out_as_known() {
    let ids = [
        "df.layers",
        "df.requirements",
        "fo.crowd",
        "fo.eta",
        "fc.model",
        "fc.alf",
        "df.graph",
        "df.table1",
        "df.table2",
        "df.rs",
        "ms.series",
        "ms.slow",
        "ms.offsets",
        "fc.fig12",
        "fc.fig16",
        "fc.fig17",
        "fc.fig18",
    ];
    let experiments = ids.iter().map(|id| registry::find(id).unwrap()).collect();
    let outcomes = run_plan(&RunPlan::new(experiments, Scale::Quick));
    for finding in outcomes.iter().flat_map(judge) {
        assert!(finding.as_expected, "{finding:?}");
    }
}
