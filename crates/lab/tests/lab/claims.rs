//! Claims can fail, and the page says what the rows of the checked-in run and the claims give.
//!
//! The rows are those of `docs/lab`: `fontana-lab run all --quick --out docs` writes them.

use fontana_lab::{
    ClaimKind, ExperimentOutcome, Finding, Quote, Target, Value, Verdict, judge, merge, registry,
    write_to,
};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// What the page says it was made with.
const COMMAND: &str = "fontana-lab run all --quick --out DIR";

/// Factors of the mutated numbers.
const FACTORS: [f64; 5] = [0.0, 0.25, 0.5, 2.0, 4.0];

fn docs() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// The run whose page is checked in.
fn outcomes() -> Vec<ExperimentOutcome> {
    merge(&[docs()]).unwrap()
}

/// Whether the paper or we state something that the rows decide.
fn is_decided_by_rows(kind: &ClaimKind) -> bool {
    *kind != ClaimKind::Identity
}

/// The outcome with other numbers in a column of some rows.
fn mutated(
    outcome: &ExperimentOutcome,
    column: usize,
    rows: &BTreeSet<usize>,
    mutate: &dyn Fn(usize, f64) -> f64,
) -> ExperimentOutcome {
    let mut outcome = outcome.clone();
    for (index, row) in outcome.table.rows.iter_mut().enumerate() {
        let value = row.values.get_mut(column).filter(|_| rows.contains(&index));
        if let Some(value) = value.filter(|value| !matches!(value, Value::Text(_))) {
            *value = Value::Number(mutate(index, value.number()));
        }
    }
    outcome
}

/// Groups of rows to mutate: all, every second one, one half, and those that share a label.
fn groups(outcome: &ExperimentOutcome) -> Vec<BTreeSet<usize>> {
    let rows = &outcome.table.rows;
    let of = |which: &dyn Fn(usize) -> bool| (0..rows.len()).filter(|&row| which(row)).collect();
    let mut groups: Vec<BTreeSet<usize>> =
        vec![of(&|_| true), of(&|row| row % 2 == 0), of(&|row| 2 * row < rows.len())];
    for column in 0..outcome.table.columns.len() {
        let labels = rows.iter().map(|row| row.values[column].to_string());
        let labels: BTreeSet<String> = labels.collect();
        // A column with more values than this has measurements.
        if labels.len() <= 16 {
            let labeled =
                |label: &String| of(&|row| rows[row].values[column].to_string() == *label);
            groups.extend(labels.iter().map(labeled));
        }
    }
    groups
}

/// Names of the claims that differ for other rows, with a number that is one.
fn claims_that_fail(outcome: &ExperimentOutcome) -> BTreeSet<String> {
    let mut failed = BTreeSet::new();
    let wanted = |finding: &&Finding| is_decided_by_rows(&finding.kind);
    let all = judge(outcome).iter().filter(wanted).count();
    for column in 0..outcome.table.columns.len() {
        let numbers: Vec<f64> =
            outcome.table.rows.iter().map(|row| row.values[column].number()).collect();
        if numbers.iter().all(|number| number.is_nan()) {
            continue;
        }
        let reversed = |index: usize, _: f64| numbers[numbers.len() - 1 - index];
        // Of what was never counted, a multiple is as much.
        let one_more = |_: usize, number: f64| number + 1.0;
        let mut mutations: Vec<Box<dyn Fn(usize, f64) -> f64 + '_>> =
            vec![Box::new(reversed), Box::new(one_more)];
        for factor in FACTORS {
            mutations.push(Box::new(move |_, number| number * factor));
        }
        for (rows, mutate) in groups(outcome)
            .iter()
            .flat_map(|rows| mutations.iter().map(move |mutate| (rows, mutate)))
        {
            for finding in judge(&mutated(outcome, column, rows, mutate)) {
                let differs = finding.verdict == Verdict::Differs && finding.ours.is_finite();
                if differs && is_decided_by_rows(&finding.kind) {
                    failed.insert(finding.claim);
                }
            }
            if failed.len() >= all {
                return failed;
            }
        }
    }
    failed
}

#[test]
fn every_claim_that_rows_decide_fails_for_other_rows() {
    let mut unfailing = Vec::new();
    for outcome in outcomes() {
        let failed = claims_that_fail(&outcome);
        for finding in judge(&outcome) {
            if is_decided_by_rows(&finding.kind) && !failed.contains(&finding.claim) {
                unfailing.push(format!("{} {}", finding.experiment, finding.claim));
            }
        }
    }
    assert!(unfailing.is_empty(), "{unfailing:#?}");
}

/// Factors of a third more and less.
const THIRD: [f64; 2] = [1.3, 1.0 / 1.3];

/// Whether a third more or less of our number is beyond the bound or the tolerance.
fn is_near(finding: &Finding) -> bool {
    let beyond = |ours: f64| match finding.target {
        Target::Equal(number) => (ours - number).abs() > finding.tolerance,
        Target::AtMost(bound) => ours > bound + finding.tolerance,
        Target::AtLeast(bound) => ours < bound - finding.tolerance,
    };
    matches!(finding.verdict, Verdict::Holds | Verdict::HoldsWithin(_))
        && THIRD.iter().any(|factor| beyond(finding.ours * factor))
}

/// Claims whose number, and whose verdict, are others if an input is a third more or less.
#[derive(Default)]
struct Followed {
    number: BTreeSet<String>,
    verdict: BTreeSet<String>,
}

impl Followed {
    fn of(outcome: &ExperimentOutcome, before: &[Finding]) -> Self {
        let mut followed = Self::default();
        for column in 0..outcome.table.columns.len() {
            let numbers = outcome.table.rows.iter().map(|row| row.values[column].number());
            let is_flag = numbers.clone().all(|number| number == 0.0 || number == 1.0);
            if numbers.clone().all(f64::is_nan) {
                continue;
            }
            for (rows, factor) in
                groups(outcome).iter().flat_map(|rows| THIRD.map(|factor| (rows, factor)))
            {
                if before.iter().all(|finding| followed.has(finding)) {
                    return followed;
                }
                // A third of none is none, and a flag has no third.
                let mutate = |_, number: f64| match number {
                    _ if is_flag => 1.0 - number,
                    0.0 => 1.0,
                    _ => number * factor,
                };
                let after = judge(&mutated(outcome, column, rows, &mutate));
                for (before, after) in before.iter().zip(after) {
                    if before.verdict != after.verdict {
                        followed.verdict.insert(after.claim.clone());
                    }
                    if before.ours.to_bits() != after.ours.to_bits() {
                        followed.number.insert(after.claim);
                    }
                }
            }
        }
        followed
    }

    /// Whether a claim has followed as far as it has to.
    fn has(&self, finding: &Finding) -> bool {
        let claim = &finding.claim;
        !is_decided_by_rows(&finding.kind)
            || self.number.contains(claim) && (!is_near(finding) || self.verdict.contains(claim))
    }
}

#[test]
fn a_third_more_or_less_of_an_input_is_another_number_and_beyond_the_bound_another_verdict() {
    let mut unmoved = Vec::new();
    for outcome in outcomes() {
        let before = judge(&outcome);
        let followed = Followed::of(&outcome, &before);
        let of = before.iter().filter(|finding| !followed.has(finding));
        unmoved.extend(of.map(|finding| format!("{} {}", finding.experiment, finding.claim)));
    }
    assert!(unmoved.is_empty(), "identities: {unmoved:#?}");
}

/// The orders of `li.table1` that `li.sensitivity` reverses say so.
#[test]
fn what_a_constant_reverses_is_marked() {
    let findings: Vec<Finding> = outcomes().iter().flat_map(judge).collect();
    let of = |id: &'static str| findings.iter().filter(move |finding| finding.experiment == id);
    for changed in of("li.sensitivity") {
        let order = of("li.table1").find(|finding| finding.claim == changed.claim).unwrap();
        let is_reversed = changed.verdict == Verdict::Differs;
        assert_eq!(order.text.contains("li.sensitivity"), is_reversed, "{order:?} {changed:?}");
    }
}

#[test]
fn no_claim_that_rows_decide_holds_without_numbers() {
    for outcome in outcomes() {
        let mut unknown = outcome.clone();
        for row in &mut unknown.table.rows {
            for value in row.values.iter_mut().filter(|value| !matches!(value, Value::Text(_))) {
                *value = Value::Number(f64::NAN);
            }
        }
        for finding in judge(&unknown) {
            let holds = matches!(finding.verdict, Verdict::Holds | Verdict::HoldsWithin(_));
            assert!(!(holds && is_decided_by_rows(&finding.kind)), "{finding:?}");
        }
    }
}

#[test]
fn the_page_is_what_the_rows_and_the_claims_give() {
    let directory = tempfile::tempdir().unwrap();
    write_to(directory.path(), &outcomes(), COMMAND).unwrap();
    let written = std::fs::read_to_string(directory.path().join("lab.md")).unwrap();
    let page = std::fs::read_to_string(docs().join("lab.md")).unwrap();
    assert!(written == page, "fontana-lab merge docs --out docs writes the page again");
}

#[test]
fn no_finding_of_the_page_is_unexpected() {
    for finding in outcomes().iter().flat_map(judge) {
        assert!(finding.as_expected, "{finding:?}");
    }
}

#[test]
fn quotes_are_short() {
    let real = registry::REAL.iter().map(|real| real.experiment);
    for experiment in registry::EXPERIMENTS.iter().copied().chain(real) {
        for claim in (experiment.claims)() {
            if let Some(Quote { words, section }) = claim.kind.quote() {
                let count = words.split_whitespace().count();
                assert!((1..=Quote::MAX_WORDS).contains(&count), "{claim:?}: {words}");
                assert!(!section.is_empty(), "{claim:?}");
            }
        }
    }
}
