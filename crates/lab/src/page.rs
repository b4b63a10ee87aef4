//! The output of a run: a Markdown page, figures, and rows.

use crate::chart::{Exhibit, Grid};
use crate::claim::ClaimKind;
use crate::experiment::Scale;
use crate::finding::{Finding, Verdict, judge};
use crate::outcome::{ExperimentOutcome, digest};
use crate::{plot, registry};
use std::fmt::Write;
use std::io;
use std::path::Path;

/// Writes the rows of all cases into a directory: `lab/ID.csv` for each experiment, the page
/// `lab.md` and its figures `lab/ID.svg`. `command` is what the page says it was made with.
///
/// # Errors
/// When the directory cannot be made or a file cannot be written.
pub fn write_to(directory: &Path, outcomes: &[ExperimentOutcome], command: &str) -> io::Result<()> {
    let lab = directory.join("lab");
    std::fs::create_dir_all(&lab)?;
    for outcome in outcomes {
        std::fs::write(lab.join(format!("{}.csv", outcome.experiment.id)), outcome.csv())?;
    }
    for outcome in outcomes {
        for exhibit in (outcome.experiment.exhibits)(&outcome.table) {
            let (name, svg) = match &exhibit {
                Exhibit::Chart(chart) => (chart.name, plot::chart(chart)),
                Exhibit::Bars(bars) => (bars.name, plot::bars(bars)),
                Exhibit::Grid(_) => continue,
            };
            std::fs::write(directory.join(figure(outcome, name)), svg)?;
        }
    }
    std::fs::write(directory.join("lab.md"), page(outcomes, command))
}

/// Where a figure is, relative to the page.
fn figure(outcome: &ExperimentOutcome, name: &str) -> String {
    let id = outcome.experiment.id;
    if name.is_empty() { format!("lab/{id}.svg") } else { format!("lab/{id}.{name}.svg") }
}

/// The table of contents of a page about `ids`: a list of links.
pub fn contents(ids: impl Iterator<Item = &'static str>) -> String {
    let mut text = String::new();
    for experiment in ids.filter_map(registry::find) {
        let anchor = experiment.id.replace('.', "");
        // Writing to a string does not fail.
        let _ = writeln!(text, "- [{}](#{anchor}) {}", experiment.id, experiment.paper);
    }
    text
}

fn page(outcomes: &[ExperimentOutcome], command: &str) -> String {
    let findings: Vec<Vec<Finding>> = outcomes.iter().map(judge).collect();
    let mut text = format!(
        "# The laboratory\n\nClaims of the papers, computed. This page is the output of\n\n```\n{command}\n```\n\n\
         It is not edited by hand. Digest of all rows that are not times: `{}`.\n\n",
        digest(outcomes),
    );
    if is_mixed(outcomes) {
        text.push_str(
            "Experiments with *all trials* are of the same command without `--quick`, and `fontana-lab merge` \
             has joined them.\n\n",
        );
    }
    text.push_str(&counts(&findings.iter().flatten().collect::<Vec<_>>()));
    text.push_str(
        "\n- *printed*: the paper prints the number, or numbers that it follows from by arithmetic alone \
         (an exponent of printed times, blocks from a printed speed-up); the statement says how. Its \
         tolerance was chosen before the run.\n\
         - *shape*: the paper states an order or a shape; the bound is ours.\n\
         - *fitted*: the paper prints the number, and it chose a parameter of the experiment.\n\
         - *own*: the statement and the bound are ours.\n\
         - *identity*: it follows from arithmetic or from how the experiment is built: a check of \
         the experiment.\n\n\
         *Paper* has the numbers of printed and fitted claims, and no others; *bound* has ours. *Ours* is what \
         the rows give, ± the standard error where trials estimate it, and *tolerance* the greatest \
         allowed distance. A claim holds or differs if two standard errors to either side do; else \
         it is undecided. When the bounds and tolerances of bm.* were chosen, the results of an \
         independent model were known. Differences with a known reason are in [errata.md](errata.md). Seconds of \
         the papers' hosts are never compared, only ratios and exponents.\n\n## Contents\n\n",
    );
    text.push_str(&contents(outcomes.iter().map(|outcome| outcome.experiment.id)));
    let is_mixed = is_mixed(outcomes);
    for (outcome, findings) in outcomes.iter().zip(&findings) {
        section(&mut text, outcome, findings, is_mixed);
    }
    text
}

/// Whether some of the experiments have all trials, and others fewer.
fn is_mixed(outcomes: &[ExperimentOutcome]) -> bool {
    outcomes.windows(2).any(|pair| matches!(pair, [a, b] if a.scale != b.scale))
}

/// How many claims of each kind hold.
fn counts(findings: &[&Finding]) -> String {
    let mut text = "| kind | claims | hold | differ, for a known reason | undecided | not as \
                    expected |\n|---|---|---|---|---|---|\n"
        .to_owned();
    let names = ClaimKind::NAMES.map(Some).into_iter().chain([None]);
    for name in names {
        let of_kind = || findings.iter().filter(|f| name.is_none_or(|name| f.kind.name() == name));
        let count = |which: fn(&Finding) -> bool| of_kind().filter(|f| which(f)).count();
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} |",
            name.unwrap_or("all"),
            of_kind().count(),
            count(|f| matches!(f.verdict, Verdict::Holds | Verdict::HoldsWithin(_))),
            count(|f| f.reason.is_some()),
            count(|f| f.verdict == Verdict::Undecided),
            count(|f| !f.as_expected),
        );
    }
    text
}

fn section(text: &mut String, outcome: &ExperimentOutcome, findings: &[Finding], is_mixed: bool) {
    let experiment = outcome.experiment;
    let (id, paper, what) = (experiment.id, experiment.paper, experiment.what);
    let scale = if is_mixed && outcome.scale == Scale::Full { " *All trials.*" } else { "" };
    let _ = write!(text, "\n## {id}\n\n*{paper}.* {what}{scale}\n");
    if !findings.is_empty() {
        text.push_str("\n| claim | kind | paper | bound | ours | tolerance | verdict |\n");
        text.push_str("|---|---|---|---|---|---|---|\n");
    }
    findings.iter().for_each(|finding| line(text, finding));
    for exhibit in (experiment.exhibits)(&outcome.table) {
        let (name, title) = match exhibit {
            Exhibit::Chart(chart) => (chart.name, chart.title),
            Exhibit::Bars(bars) => (bars.name, bars.title),
            Exhibit::Grid(grid) => {
                write_grid(text, &grid);
                continue;
            }
        };
        let path = figure(outcome, name);
        let _ = write!(text, "\n![{title}]({path})\n");
    }
}

/// The row of a claim.
fn line(text: &mut String, finding: &Finding) {
    let Finding { claim, kind, target, ours, tolerance, verdict, .. } = finding;
    let reason = match (finding.reason, finding.as_expected) {
        (Some(reason), _) => format!(": {reason}"),
        (None, false) => ", **not as expected**".into(),
        (None, true) => String::new(),
    };
    let words = kind
        .quote()
        .map_or_else(String::new, |quote| format!(" (“{}”, {})", quote.words, quote.section));
    let number = finding.paper.map_or_else(|| target.to_string(), |number| number.to_string());
    let (paper, bound) = if kind.is_printed_number() { (&*number, "") } else { ("", &*number) };
    let error = match finding.error {
        0.0 => String::new(),
        unknown if unknown.is_nan() => " ± ?".to_owned(),
        error => format!(" ± {error}"),
    };
    let _ = writeln!(
        text,
        "| `{claim}` {}{words} | {} | {paper} | {bound} | {ours}{error} | {tolerance} | \
         {verdict}{reason} |",
        finding.text,
        kind.name(),
    );
}

fn write_grid(text: &mut String, grid: &Grid) {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let _ = write!(text, "\n{}:\n\n{}", grid.title, line(&grid.columns));
    text.push_str(&line(&vec!["---".to_owned(); grid.columns.len()]).replace(' ', ""));
    for row in &grid.rows {
        text.push_str(&line(row));
    }
}
