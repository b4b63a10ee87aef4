//! The output of a run: a Markdown page, figures, and rows.

use crate::chart::{Exhibit, Grid};
use crate::experiment::SweepSlice;
use crate::finding::{Finding, judge};
use crate::outcome::{ExperimentOutcome, digest};
use crate::{plot, registry};
use std::fmt::Write;
use std::io;
use std::path::Path;

/// Writes `lab/ID.csv` into a directory for each experiment, and, if all cases have run, the page
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
    if outcomes.iter().any(|outcome| outcome.slice != SweepSlice::WHOLE) {
        return Ok(());
    }
    for outcome in outcomes {
        for exhibit in (outcome.experiment.exhibits)(&outcome.table) {
            if let Exhibit::Chart(chart) = exhibit {
                let svg = plot::svg(&chart).map_err(io::Error::other)?;
                std::fs::write(directory.join(figure(outcome, chart.name)), svg)?;
            }
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
    let claims = findings.iter().flatten();
    let differing = claims.clone().filter(|finding| finding.reason.is_some()).count();
    let unexpected = claims.clone().filter(|finding| !finding.as_expected).count();
    let mut text = format!(
        "# The laboratory\n\nClaims of the papers, computed. This page is the output of\n\n```\n{command}\n```\n\n\
         It is not edited by hand. {} claims: {differing} differ for a known reason \
         ([errata.md](errata.md)), {unexpected} have an unexpected verdict, the others hold. \
         Digest of all rows that are not times: `{}`.\n\n",
        claims.count(),
        digest(outcomes),
    );
    text.push_str(
        "*Paper* is the number that the paper prints, *ours* the number that the rows give, and \
         *tolerance* the greatest allowed distance of the two. For printed numbers, it was chosen \
         before the run. Statements without a number are judged by bounds of our own, and say so. \
         Seconds are never compared, only their ratios and exponents.\n\n## Contents\n\n",
    );
    text.push_str(&contents(outcomes.iter().map(|outcome| outcome.experiment.id)));
    for (outcome, findings) in outcomes.iter().zip(&findings) {
        section(&mut text, outcome, findings);
    }
    text
}

fn section(text: &mut String, outcome: &ExperimentOutcome, findings: &[Finding]) {
    let experiment = outcome.experiment;
    let (id, paper, what) = (experiment.id, experiment.paper, experiment.what);
    let _ = write!(text, "\n## {id}\n\n*{paper}.* {what}\n");
    if !findings.is_empty() {
        text.push_str("\n| claim | paper | ours | tolerance | verdict |\n|---|---|---|---|---|\n");
    }
    for finding in findings {
        let Finding { claim, text: words, paper, ours, tolerance, verdict, .. } = finding;
        let reason = match (finding.reason, finding.as_expected) {
            (Some(reason), _) => format!(": {reason}"),
            (None, false) => ", **not as expected**".into(),
            (None, true) => String::new(),
        };
        let _ = writeln!(
            text,
            "| `{claim}` {words} | {paper} | {ours} | {tolerance} | {verdict}{reason} |"
        );
    }
    for exhibit in (experiment.exhibits)(&outcome.table) {
        match exhibit {
            Exhibit::Chart(chart) => {
                let path = figure(outcome, chart.name);
                let _ = write!(text, "\n![{}]({path})\n", chart.title);
            }
            Exhibit::Grid(grid) => write_grid(text, &grid),
        }
    }
}

fn write_grid(text: &mut String, grid: &Grid) {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let _ = write!(text, "\n{}:\n\n{}", grid.title, line(&grid.columns));
    text.push_str(&line(&vec!["---".to_owned(); grid.columns.len()]).replace(' ', ""));
    for row in &grid.rows {
        text.push_str(&line(row));
    }
}
