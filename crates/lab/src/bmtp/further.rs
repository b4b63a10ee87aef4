//! `bm.further`: what section 8 leaves open, as the product does it.

use super::log::SecondOfPackets;
use super::run::{BmtpRun, BmtpSetting, FAST, SLOW};
use crate::claim::{Claim, Target};
use crate::experiment::{Case, Experiment, Kind, SweepOf};
use crate::row::Rows;
use crate::statistics::mean;
use run::{SessionRun, SessionSetting};
use sender::SentContent;
use serde::{Deserialize, Serialize};

mod packet;
mod receiver;
mod run;
mod sender;

const RECEIVERS: u32 = 100;
/// The paper's rate for paths of 40 packets per second.
const FITTING: u32 = 42;
/// Line errors.
const ERRORS: f64 = 0.05;
/// Part of a rate that is too high at which it has fallen.
const FALLEN: f64 = 0.6;
/// Part of what the slowest path carries at which a rate that is too low has risen.
const RISEN: f64 = 0.9;
/// Receivers and content of the runs with an end: 80 s of the slow path.
const FEW: u32 = 10;
const CONTENT: SentContent = SentContent { blocks: 4, source_symbols: 400 };
/// A path that the lowest rate is too fast for.
const VERY_SLOW: u32 = 20;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "bm.further",
    paper: "BMTP, section 8",
    what: "What section 8 leaves open, by the product's rate control, repair rounds and roll calls in the \
           simulator: 100 receivers, of which one receives 40 packets a second and the others 100, from \
           a rate that is too high, too low or fits, without and with line errors of 5 %; the paper's \
           sender beside it, whose overload stands; and 10 receivers, of which one receives 20 and the \
           lowest rate is 40. 5 runs (quick: one).",
    sweep: &SweepOf {
        name: "bm.further",
        kind: Kind::Counted,
        cases: |scale| SITUATIONS.len() as u32 * scale.pick(1, 5),
        run: |case| run(case).into_iter().collect(),
    },
    claims,
    exhibits: |_| Vec::new(),
};

/// A run, and the seconds in which it is judged.
struct Situation {
    name: &'static str,
    /// Packets per second at first.
    start: u32,
    errors: f64,
    /// Judged from this second on.
    from: u64,
    until: u64,
    kind: SituationKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SituationKind {
    /// Without an end, by the product.
    Endless,
    /// Without an end, by the paper's endpoints.
    Paper,
    /// With an end, and a receiver below the lowest rate.
    LeftBehind,
    MustFinish,
}

const fn endless(name: &'static str, start: u32, errors: f64, from: u64, until: u64) -> Situation {
    Situation { name, start, errors, from, until, kind: SituationKind::Endless }
}

const TOO_HIGH: &str = "too high";
const TOO_LOW: &str = "too low";
const PROBING: &str = "probing";
const STANDING: &str = "standing";
const LINE: &str = "line";
const BOTH: &str = "both";
const LEFT_BEHIND: &str = "left behind";
const MUST_FINISH: &str = "must finish";

const SITUATIONS: [Situation; 8] = [
    endless(TOO_HIGH, 200, 0.0, 10, 20),
    endless(TOO_LOW, 8, 0.0, 30, 60),
    endless(PROBING, FITTING, 0.0, 50, 250),
    Situation { kind: SituationKind::Paper, ..endless(STANDING, FITTING, 0.0, 50, 250) },
    endless(LINE, FITTING, ERRORS, 200, 250),
    endless(BOTH, 2 * FITTING, ERRORS, 60, 120),
    Situation { kind: SituationKind::LeftBehind, ..endless(LEFT_BEHIND, FITTING, 0.0, 30, 300) },
    Situation { kind: SituationKind::MustFinish, ..endless(MUST_FINISH, FITTING, 0.0, 30, 300) },
];

/// A run.
#[derive(Serialize, Deserialize)]
struct FurtherRow {
    situation: String,
    trial: u32,
    /// The first second at whose end the rate has left its beginning: at most [`FALLEN`] of it, if
    /// it was too high, or at least [`RISEN`] of what the slowest path carries. NAN if there is
    /// none.
    arrived: f64,
    /// The first second at whose end it is at most 1.1 times what the slowest path carries; NAN if
    /// there is none.
    settled: f64,
    /// Packets per second in the judged seconds.
    rate: f64,
    /// Per cent of these packets that the slowest receiver loses, or that the paper's sender sends
    /// again.
    lost_percent: f64,
    /// Seconds until all receivers have everything, if there is an end; otherwise NAN.
    complete: f64,
}

fn run(case: &Case) -> Option<FurtherRow> {
    let count = SITUATIONS.len() as u32;
    let situation = SITUATIONS.get((case.index % count) as usize)?;
    let (seed, trial) = (case.stream(0).next_u64(), case.index / count);
    match situation.kind {
        SituationKind::Paper => run_of_paper(situation, trial, seed),
        _ => run_of_product(situation, trial, seed),
    }
}

fn run_of_paper(situation: &Situation, trial: u32, seed: u64) -> Option<FurtherRow> {
    let setting = BmtpSetting::one_slow(RECEIVERS, situation.errors);
    let mut run = BmtpRun::new(&setting, seed);
    let seconds = run.until(situation.until)?.seconds();
    let judged = SecondOfPackets::sum(seconds.get(situation.from as usize..)?);
    let passed = (situation.until - situation.from) as f64;
    Some(FurtherRow {
        situation: situation.name.into(),
        trial,
        arrived: f64::NAN,
        settled: f64::NAN,
        rate: f64::from(judged.sent) / passed,
        lost_percent: 100.0 * f64::from(judged.resent) / f64::from(judged.sent),
        complete: f64::NAN,
    })
}

fn run_of_product(situation: &Situation, trial: u32, seed: u64) -> Option<FurtherRow> {
    let has_end = situation.kind != SituationKind::Endless;
    let setting = SessionSetting {
        receivers: if has_end { FEW } else { RECEIVERS },
        slow: if has_end { VERY_SLOW } else { SLOW },
        fast: FAST,
        errors: situation.errors,
        start: situation.start,
        least: if has_end { SLOW } else { 1 },
        must_finish: situation.kind == SituationKind::MustFinish,
        content: if has_end { CONTENT } else { SentContent::ENDLESS },
    };
    let mut run = SessionRun::new(&setting, seed);
    let slow = f64::from(setting.slow);
    let (mut arrived, mut settled, mut before) = (f64::NAN, f64::NAN, None);
    let (mut seconds, mut sent, mut lost) = (0, 0, 0);
    while seconds < situation.until && run.completed_at().is_none() {
        if seconds == situation.from {
            before = Some((sent, lost));
        }
        seconds += 1;
        run.until(seconds)?;
        (sent, lost) = (run.sent(), run.slow_counts().lost);
        let has_arrived = match situation.start {
            start if start > setting.slow => run.rate() <= FALLEN * f64::from(start),
            _ => run.rate() >= RISEN * slow,
        };
        if settled.is_nan() && run.rate() <= 1.1 * slow {
            settled = seconds as f64;
        }
        if arrived.is_nan() && has_arrived {
            arrived = seconds as f64;
        }
    }
    let (sent_before, lost_before) = before?;
    let judged = (sent - sent_before) as f64;
    Some(FurtherRow {
        situation: situation.name.into(),
        trial,
        arrived,
        settled,
        rate: judged / (seconds - situation.from) as f64,
        lost_percent: 100.0 * (lost - lost_before) as f64 / judged,
        complete: run.completed_at().unwrap_or(f64::NAN),
    })
}

/// A number of a run.
type Measure = fn(&FurtherRow) -> f64;

fn claims() -> Vec<Claim> {
    let of = |name: &'static str, number: Measure| {
        move |rows: &[FurtherRow]| mean(&rows.numbers(|row| row.situation == name, number))
    };
    let own = |name: &str, text: &str, target, measure: Measure, of_: &'static str| {
        Claim::own(name, text, target, 0.0, of(of_, measure))
    };
    let arrived: Measure = |row| row.arrived;
    let settled: Measure = |row| row.settled;
    let rate: Measure = |row| row.rate;
    let lost: Measure = |row| row.lost_percent;
    let complete: Measure = |row| row.complete;
    vec![
        own(
            "falls",
            "seconds until a rate that is 5 times too high has fallen to 0.6 times that",
            Target::AtMost(3.0),
            arrived,
            TOO_HIGH,
        ),
        own(
            "settles",
            "seconds until it is at most 1.1 times what the slowest of 100 receivers gets",
            Target::AtMost(15.0),
            settled,
            TOO_HIGH,
        ),
        own(
            "arrives",
            "seconds until a rate that is a fifth of what the slowest receives is 0.9 times that",
            Target::AtMost(15.0),
            arrived,
            TOO_LOW,
        ),
        own(
            "probing",
            "% of the packets that the slowest receiver loses to trials, from 50 to 250 s",
            Target::AtMost(2.0),
            lost,
            PROBING,
        ),
        own(
            "standing",
            "% of the packets that the paper's sender sends again, whose overload stands",
            Target::AtLeast(4.0),
            lost,
            STANDING,
        ),
        own(
            "line errors",
            "packets per second after 200 s if each line loses 5 %: 90 % of 42",
            Target::AtLeast(0.9 * f64::from(FITTING)),
            rate,
            LINE,
        ),
        own(
            "congestion",
            "packets per second, from 84 on, if each line loses 5 % and the queue half of the rest",
            Target::AtMost(45.0),
            rate,
            BOTH,
        ),
        own(
            "left behind",
            "% of the packets that a receiver loses that gets half of the lowest rate",
            Target::AtLeast(40.0),
            lost,
            LEFT_BEHIND,
        ),
        own(
            "must finish",
            "% of the packets that it loses if it must finish: the rate follows it",
            Target::AtMost(2.0),
            lost,
            MUST_FINISH,
        ),
        own(
            "completes",
            "seconds until all are complete, of 300 at most; the slow path takes 80 for the content",
            Target::AtMost(300.0),
            complete,
            MUST_FINISH,
        ),
    ]
}
