//! `fontana-lab list` and `run`: runs experiments, prints the verdicts on their claims, and writes
//! pages and rows.

pub(crate) mod merge;
pub(crate) mod plan;

use crate::args::RunArguments;
use crate::commit::COMMIT;
use crate::events::LabEvent as Line;
use crate::progress;
use fontana::Outcome;
use fontana::net::{FrameError, NamespaceError};
use fontana_console::console::Console;
use fontana_console::exit;
use fontana_console::failure::Failure;
use fontana_console::json::seconds;
use fontana_console::units::Count;
use fontana_lab::registry::{self, Real, RealError};
use fontana_lab::{
    CaseStore, Experiment, ExperimentOutcome, Finding, HostsError, RunError, RunIdentity, RunPlan,
    RunProgress, Scale, Target, Verdict, digest, judge,
};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

pub(crate) fn list(console: &Console) -> Outcome {
    let real = registry::REAL.iter().map(|real| real.experiment);
    let only_real = real.filter(|real| registry::find(real.id).is_none());
    for experiment in registry::EXPERIMENTS.iter().copied().chain(only_real) {
        let Experiment { id, paper, what, .. } = *experiment;
        let claims: Vec<String> = (experiment.claims)()
            .iter()
            .map(|claim| format!("{}: {}", claim.name, claim.text))
            .collect();
        let real = registry::find_real(id).is_some();
        let mark = match (real, registry::find(id)) {
            (false, _) => "",
            (true, Some(_)) => "  (also --real)",
            (true, None) => "  (only --real)",
        };
        console.result(format_args!("{id:14} {paper}{mark}"));
        console.result_event(&Line::Experiment {
            id: id.into(),
            real,
            source: paper.into(),
            what: what.into(),
            claims,
        });
    }
    Outcome::Complete
}

pub(crate) fn run(arguments: &RunArguments, console: &Console) -> Result<Outcome, Failure> {
    let scale = if arguments.quick { Scale::Quick } else { Scale::Full };
    let experiments = if arguments.real { real(&arguments.ids)? } else { chosen(&arguments.ids)? };
    let mut plan = RunPlan::new(experiments, scale);
    plan.seed = arguments.seed;
    let slice = arguments.of.map(|of| plan::slice(arguments.case, of)).transpose()?;
    // Fails before hours of work, not after them.
    if let Some(out) = &arguments.out {
        std::fs::create_dir_all(out).map_err(|error| not_written(out, &error))?;
    }
    let is_whole = slice.is_none() && !arguments.missing;
    if let Some(out) = arguments.out.as_deref().filter(|_| !is_whole) {
        let identity = RunIdentity { seed: plan.seed, scale, commit: COMMIT.into() };
        let store = CaseStore::create(out, identity, plan.experiments.clone());
        plan.store = Some(store.map_err(|error| merge::not_stored(&error))?);
    }
    if let Some(slice) = slice {
        plan = plan.sliced(slice);
    }
    if arguments.missing {
        plan = plan.without_stored();
    }
    let began = Instant::now();
    let bar = console.bar(progress::cases());
    let done: Mutex<Vec<RunProgress>> = Mutex::default();
    let outcomes = fontana_lab::run(&plan, &|progress| {
        bar.set_length(progress.cases as u64);
        bar.set_position(progress.done as u64);
        done.lock().unwrap_or_else(PoisonError::into_inner).push(progress);
    });
    bar.finish_and_clear();
    for case in done.into_inner().unwrap_or_else(PoisonError::into_inner) {
        let RunProgress { sweep, index, seconds, .. } = case;
        console.result_event(&Line::Case { id: sweep.into(), case: index, seconds, slice: None });
    }
    let outcomes = outcomes.map_err(|error| match error {
        RunError::Thread(error) => error.into(),
        RunError::Store(error) => merge::not_stored(&error),
    })?;
    if is_whole {
        return leave(&outcomes, arguments.real, arguments.out.as_deref(), began, console);
    }
    leave_cases(&plan, &outcomes, began, console);
    Ok(Outcome::Complete)
}

/// The experiments that the words name, each once, in the order of the registry.
fn chosen(ids: &[String]) -> Result<Vec<&'static Experiment>, Failure> {
    let all = registry::EXPERIMENTS;
    match ids.iter().find(|word| !all.iter().any(|known| means(word, known.id))) {
        None => Ok(all.iter().copied().filter(|known| is_named(ids, known.id)).collect()),
        Some(id) if registry::find_real(id).is_some() => {
            let message = format!("{id} runs over real sockets only");
            let hint = format!("fontana-lab run {id} --real");
            Err(Failure::new(Outcome::Usage, message, hint))
        }
        Some(unknown) => {
            let message = format!("no experiment is called {unknown:?}");
            Err(Failure::new(Outcome::Usage, message, "see which there are: fontana-lab list"))
        }
    }
}

/// The named experiments that have a real form, if this host can run them.
fn real(ids: &[String]) -> Result<Vec<&'static Experiment>, Failure> {
    let all = registry::REAL;
    let simulated: Vec<_> =
        ids.iter().filter(|id| registry::find_real(id).is_none()).cloned().collect();
    chosen(&simulated)?;
    let has_real_form = |word: &&String| all.iter().any(|real| means(word, real.experiment.id));
    if let Some(id) = ids.iter().find(|word| !has_real_form(word)) {
        let names: Vec<_> = all.iter().map(|real| real.experiment.id).collect();
        let message = format!("{id} is not of real hosts: it has no real form");
        let hint = format!("run it without --real; with it: {}", names.join(" "));
        return Err(Failure::new(Outcome::Usage, message, hint));
    }
    let wanted = all.iter().filter(|real| is_named(ids, real.experiment.id));
    let checked = |real: &Real| {
        let id = real.experiment.id;
        (real.check)().map(|()| real.experiment).map_err(|error| not_here(id, &error))
    };
    wanted.map(checked).collect()
}

/// The failure of an experiment that cannot run over real sockets on this host.
fn not_here(id: &str, error: &RealError) -> Failure {
    let (outcome, hint) = match error {
        RealError::Hosts(
            HostsError::Namespace(NamespaceError::NotPermitted)
            | HostsError::Emulator(FrameError::NotPermitted { .. }),
        ) => (
            Outcome::Refused,
            format!("as root, or: unshare --map-root-user --net fontana-lab run {id} --real"),
        ),
        RealError::Hosts(HostsError::Namespace(NamespaceError::NoProgram)) => {
            (Outcome::Io, "install it: apt-get install iproute2".to_owned())
        }
        RealError::Hosts(_) => (
            Outcome::Io,
            "Linux with network namespaces, bridges and veth can; the simulated form runs without --real"
                .to_owned(),
        ),
        RealError::Loopback(_) => {
            (Outcome::Io, "see what this host can do: fontana doctor".to_owned())
        }
    };
    Failure::new(outcome, format!("{id} cannot be run over real sockets here: {error}"), hint)
}

fn is_named(ids: &[String], id: &str) -> bool {
    ids.iter().any(|word| means(word, id))
}

/// Whether a word of the command line names an experiment.
fn means(word: &str, id: &str) -> bool {
    word == "all" || word == id || id.split_once('.').is_some_and(|(paper, _)| paper == word)
}

/// Writes the pages, then prints the findings.
fn leave(
    outcomes: &[ExperimentOutcome],
    real: bool,
    out: Option<&Path>,
    began: Instant,
    console: &Console,
) -> Result<Outcome, Failure> {
    if let Some(out) = out {
        let written = fontana_lab::write_to(out, outcomes, &command(outcomes, real));
        written.map_err(|error| not_written(out, &error))?;
    }
    let mut findings = Vec::new();
    for outcome in outcomes {
        let found = judge(outcome);
        found.iter().for_each(|finding| show(finding, outcome.seed, console));
        findings.extend(found);
    }
    let summary = Summary::of(outcomes, &findings);
    summary.emit(began, console);
    console.result(format_args!(
        "{} claims, {} differ, {} undecided, {} other than expected; {}; digest {}",
        findings.len(),
        summary.differing,
        summary.undecided,
        summary.unexpected,
        provenance(outcomes),
        summary.digest,
    ));
    if summary.unexpected > 0 {
        return Err(Failure::new(
            summary.outcome(),
            format!("{} claims came out other than expected", summary.unexpected),
            "those marked with !; known differences are in docs/errata.md",
        ));
    }
    Ok(summary.outcome())
}

/// Prints what a run has computed that judges nothing.
fn leave_cases(plan: &RunPlan, outcomes: &[ExperimentOutcome], began: Instant, console: &Console) {
    let summary = Summary::of(outcomes, &[]);
    summary.emit(began, console);
    console.result(format_args!(
        "{}, {}; join them with the others: fontana-lab merge DIR --out DIR",
        Count(plan.cases.len() as u64, "case"),
        Count(summary.rows as u64, "row"),
    ));
}

/// The numbers of a run.
struct Summary<'a> {
    outcomes: &'a [ExperimentOutcome],
    rows: usize,
    claims: usize,
    differing: usize,
    undecided: usize,
    unexpected: usize,
    digest: String,
}

impl<'a> Summary<'a> {
    fn of(outcomes: &'a [ExperimentOutcome], findings: &[Finding]) -> Self {
        let with = |verdict| findings.iter().filter(|f| f.verdict == verdict).count();
        Self {
            outcomes,
            rows: outcomes.iter().map(|outcome| outcome.table.rows.len()).sum(),
            claims: findings.len(),
            differing: with(Verdict::Differs),
            undecided: with(Verdict::Undecided),
            unexpected: findings.iter().filter(|finding| !finding.as_expected).count(),
            digest: digest(outcomes),
        }
    }

    fn outcome(&self) -> Outcome {
        if self.unexpected == 0 { Outcome::Complete } else { Outcome::VerificationFailed }
    }

    fn emit(&self, began: Instant, console: &Console) {
        let first = self.outcomes.first();
        console.result_event(&Line::Summary {
            experiments: self.outcomes.len() as u64,
            rows: self.rows as u64,
            claims: self.claims as u64,
            differing: self.differing as u64,
            undecided: self.undecided as u64,
            unexpected: self.unexpected as u64,
            digest: self.digest.clone(),
            seed: first.map_or(0, |outcome| outcome.seed),
            quick: is_quick(self.outcomes),
            version: env!("CARGO_PKG_VERSION").into(),
            commit: COMMIT.into(),
            seconds: seconds(began.elapsed()),
            code: exit::code(self.outcome()),
        });
    }
}

/// The command that makes a page again.
fn command(outcomes: &[ExperimentOutcome], real: bool) -> String {
    let mut words = vec!["fontana-lab run".to_owned()];
    let all = if real { registry::REAL.len() } else { registry::EXPERIMENTS.len() };
    if outcomes.len() == all {
        words.push("all".into());
    } else {
        words.extend(outcomes.iter().map(|outcome| outcome.experiment.id.into()));
    }
    if is_quick(outcomes) {
        words.push("--quick".into());
    }
    if let Some(outcome) = outcomes.first()
        && outcome.seed != fontana_lab::DEFAULT_SEED
    {
        words.push(format!("--seed {}", outcome.seed));
    }
    if real {
        words.push("--real".into());
    }
    words.push("--out DIR".into());
    words.join(" ")
}

/// Whether experiments have fewer trials. Joined ones may be of both scales.
fn is_quick(outcomes: &[ExperimentOutcome]) -> bool {
    outcomes.iter().any(|outcome| outcome.scale == Scale::Quick)
}

fn show(finding: &Finding, seed: u64, console: &Console) {
    let Finding { experiment, claim, text, kind, target, ours, tolerance, verdict, .. } = finding;
    let mark = if finding.as_expected { ' ' } else { '!' };
    let reason = finding.reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
    let id = format!("{experiment} {claim}");
    let whose = if kind.is_printed_number() { "paper" } else { "bound" };
    let error = match finding.error {
        0.0 => String::new(),
        error => format!(" ± {error}"),
    };
    console.result(format_args!(
        "{mark} {id:28} {verdict}{reason}: ours {ours}{error}, {whose} {target}"
    ));
    console.result_event(&Line::Verdict {
        id: (*experiment).into(),
        claim: claim.clone(),
        text: text.clone(),
        kind: kind.name().into(),
        quote: kind.quote().map(|quote| quote.words.clone().into_owned()),
        section: kind.quote().map(|quote| quote.section.into()),
        paper: target.number(),
        relation: relation(*target).into(),
        ours: Some(*ours).filter(|ours| ours.is_finite()),
        error: Some(finding.error).filter(|error| error.is_finite()),
        tolerance: *tolerance,
        verdict: verdict.to_string(),
        reason: finding.reason.map(str::to_owned),
        expected: finding.as_expected,
        seed,
    });
}

/// The inputs that determine the digest: seed, scale and commit.
fn provenance(outcomes: &[ExperimentOutcome]) -> String {
    let seed = outcomes.first().map_or(0, |outcome| outcome.seed);
    let scale = if is_quick(outcomes) { ", quick" } else { "" };
    format!("seed {seed}{scale}, commit {COMMIT}")
}

const fn relation(target: Target) -> &'static str {
    match target {
        Target::Equal(_) => "equal",
        Target::AtMost(_) => "at_most",
        Target::AtLeast(_) => "at_least",
    }
}

fn not_written(out: &Path, error: &std::io::Error) -> Failure {
    let message = format!("cannot write to {out:?}: {error}");
    Failure::new(Outcome::Io, message, "choose a directory that this user may write to")
}
