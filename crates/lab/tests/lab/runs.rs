//! Runs: the same rows whatever the threads and slices, and what they leave on disk.

use fontana_lab::{
    CaseStore, Experiment, ExperimentOutcome, MergeError, RunIdentity, RunPlan, Scale, StoreError,
    SweepSlice, contents, digest, judge, merge, registry, run, write_to,
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

fn identity() -> RunIdentity {
    RunIdentity { seed: plan().seed, scale: Scale::Quick, commit: "4cb68031ec22".into() }
}

/// The plan of a process of a job array whose tasks have one directory.
fn stored(directory: &Path) -> RunPlan {
    let store = CaseStore::create(directory, identity(), experiments()).unwrap();
    RunPlan { store: Some(store), ..plan() }
}

fn run_slice(directory: &Path, index: u32, count: u32) {
    run_plan(&stored(directory).sliced(SweepSlice::new(index, count).unwrap()));
}

/// The file with the rows of a case.
fn case_file(directory: &Path, name: &str) -> PathBuf {
    directory.join("cases").join(name)
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
    let places: Vec<PathBuf> =
        ["one", "other"].iter().map(|name| directory.path().join(name)).collect();
    for index in 0..3 {
        run_slice(&places[usize::from(index == 1)], index, 3);
    }
    let joined = merge(&places).unwrap();
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
    // The rows of whole experiments are joined too.
    assert_eq!(digest(&merge(&[b]).unwrap()), digest(&whole));
}

#[test]
fn missing_cases_are_named_and_only_they_are_computed_again() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    (0..3).for_each(|index| run_slice(place, index, 3));
    let all = merge(&[place.to_owned()]).unwrap();
    for name in ["ms.series.0.csv", "ms.offsets.0.csv", "ms.offsets.1.csv"] {
        std::fs::remove_file(case_file(place, name)).unwrap();
    }
    // A process that was killed while it wrote has left no more than this.
    std::fs::write(case_file(place, ".new.123"), "# fontana").unwrap();
    let error = merge(&[place.to_owned()]).unwrap_err();
    let message = "the rows of 3 cases: ms.offsets 0-1; ms.series 0 are missing";
    assert_eq!(error.to_string(), message);
    let plan = stored(place).without_stored();
    assert_eq!(plan.cases.len(), 3);
    run_plan(&plan);
    assert_eq!(digest(&merge(&[place.to_owned()]).unwrap()), digest(&all));
    assert!(stored(place).without_stored().cases.is_empty());
}

#[test]
fn rows_of_two_runs_are_not_joined() {
    let directory = tempfile::tempdir().unwrap();
    let (one, other) = (directory.path().join("one"), directory.path().join("other"));
    run_slice(&one, 0, 1);
    let refused = |error: StoreError| assert!(matches!(error, StoreError::OtherRun { .. }));
    let commit = RunIdentity { commit: "000000000000".into(), ..identity() };
    let seed = RunIdentity { seed: 2, ..identity() };
    for identity in [&commit, &seed] {
        refused(CaseStore::create(&one, identity.clone(), experiments()).unwrap_err());
    }
    refused(CaseStore::create(&one, identity(), experiments()[1..].to_vec()).unwrap_err());
    // In one directory each.
    CaseStore::create(&other, commit.clone(), experiments()).unwrap();
    let error = merge(&[one.clone(), other]).unwrap_err();
    let message = error.to_string();
    assert!(message.contains("000000000000), not of a run of 3 experiments"), "{message}");
    // A file that was copied there.
    let file = case_file(&one, "ms.series.0.csv");
    let text = std::fs::read_to_string(&file).unwrap();
    for (old, new) in [("commit=4cb68031ec22", "commit=000000000000"), ("seed=1998", "seed=2")] {
        std::fs::write(&file, text.replace(old, new)).unwrap();
        let error = merge(std::slice::from_ref(&one)).unwrap_err();
        assert!(matches!(error, MergeError::Store(StoreError::OtherRun { .. })), "{error}");
    }
}

#[test]
fn files_that_no_run_has_written_are_refused_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().to_owned();
    run_slice(&place, 0, 1);
    let file = case_file(&place, "ms.offsets.1.csv");
    let original = std::fs::read_to_string(&file).unwrap();
    let line_of = |text: &str| {
        std::fs::write(&file, text).unwrap();
        match merge(std::slice::from_ref(&place)).unwrap_err() {
            MergeError::Store(StoreError::Malformed { line, path }) => {
                assert_eq!(path, file);
                line
            }
            other => panic!("{other}"),
        }
    };
    let first_row = original.lines().nth(2).unwrap();
    assert_eq!(line_of(""), 1);
    assert_eq!(line_of("\0\u{fffd},,,"), 1);
    assert_eq!(line_of(&original.replace("case=1", "case=2")), 1);
    assert_eq!(line_of(&original.replace("case=1", "case=1 of=3")), 1);
    assert_eq!(line_of(&original.replace("lab ms.offsets", "lab ms.eq9")), 1);
    assert_eq!(line_of(&original.replace("enhancement,", "")), 2);
    assert_eq!(line_of(&original.replace(first_row, "1,2")), 3);
    assert_eq!(line_of(&original.replace(first_row, &first_row.replacen("1,", "2,", 1))), 3);
    let run = case_file(&place, "run");
    std::fs::write(&run, "# fontana-lab run seed=1998").unwrap();
    let error = CaseStore::open(&place).unwrap_err();
    assert!(matches!(error, StoreError::Malformed { line: 1, .. }), "{error}");
}

#[test]
fn whole_experiments_that_cannot_be_joined_are_refused_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let (place, other) = (directory.path().join("one"), directory.path().join("other"));
    write_to(&place, &run_plan(&plan()), "test").unwrap();
    let refused = |places: &[PathBuf]| merge(places).unwrap_err();
    assert!(matches!(
        refused(&[place.clone(), place.clone()]),
        MergeError::Twice { id: "ms.offsets", .. }
    ));
    let seed = RunPlan { seed: 2, ..plan() };
    write_to(&other, &run_plan(&seed), "test").unwrap();
    assert!(matches!(refused(&[place.clone(), other.clone()]), MergeError::Foreign { .. }));
    run_slice(&other, 0, 1);
    assert!(matches!(refused(&[place, other]), MergeError::Mixed(_)));
    let empty = directory.path().join("empty");
    let missing = refused(std::slice::from_ref(&empty));
    assert!(matches!(missing, MergeError::Store(StoreError::Read { .. })));
    std::fs::create_dir_all(empty.join("lab")).unwrap();
    assert!(matches!(refused(&[empty]), MergeError::Empty(_)));
}

#[test]
fn the_page_that_is_checked_in_is_about_the_experiments_there_are() {
    let page = include_str!("../../../../docs/lab.md");
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
        "bm.protocol",
        "bm.fig3",
        "bm.fig4",
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
