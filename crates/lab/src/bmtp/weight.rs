//! `bm.weight`: K by the number of receivers, which section 8 asks for.

use super::run::{BmtpRun, BmtpSetting};
use crate::chart::{Exhibit, Grid};
use crate::claim::{Claim, Target, quote};
use crate::experiment::{Case, Experiment, Kind, Scale, SweepOf};
use crate::row::Rows;
use crate::statistics::{largest, mean};
use serde::{Deserialize, Serialize};

/// Numbers of receivers, and values of K.
const CROWDS: [u32; 4] = [FEW, 300, 1_000, 3_000];
const WEIGHTS: [u32; 4] = [10, 30, 100, 300];
const FEW: u32 = 100;
/// K is this part of the receivers. One that misses as much then has 1 of 11 status packets, if the
/// others miss nothing.
const PART: u32 = 10;
const LEAST: u32 = 10;
const MOST: u32 = 1_000;
/// A part of which K is too small.
const SMALL_PART: u32 = 30;
/// Line errors of the one receiver, and those of all others in runs in which they have some.
const LOSS: f64 = 0.02;
const ERRORS: f64 = 0.01;
/// Packets that it loses per second at least: it receives 40 of 42.
const LOST_PER_SECOND: f64 = 2.0;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "bm.weight",
    paper: "BMTP, section 8",
    what: "K by the number of receivers, a tenth of it, 10 to 1 000: what a receiver misses that loses 2 % on the \
           line and receives 40 packets a second, among others that receive 100, without line errors and with 1 % \
           on each line, for several K. N is the number of receivers at the beginning. 500 s (quick: 150 s, up to \
           300 receivers).",
    sweep: &SweepOf {
        name: "bm.weight",
        kind: Kind::Counted,
        cases: |scale| plan(scale).len() as u32,
        run: |case| run(case).into_iter().collect(),
    },
    claims,
    exhibits: |table| vec![grid(&table.read().unwrap_or_default())],
};

/// K by the number of receivers.
fn by_number(receivers: u32) -> u32 {
    (receivers / PART).clamp(LEAST, MOST)
}

#[derive(Clone, Copy)]
struct Planned {
    receivers: u32,
    most_weight: u32,
    errors: f64,
}

const fn planned(receivers: u32, most_weight: u32, errors: f64) -> Planned {
    Planned { receivers, most_weight, errors }
}

/// What the claims need.
const QUICK: [Planned; 5] = [
    planned(FEW, 10, 0.0),
    planned(FEW, 10, ERRORS),
    planned(FEW, 100, ERRORS),
    planned(300, 10, 0.0),
    planned(300, 30, 0.0),
];

fn plan(scale: Scale) -> Vec<Planned> {
    let of = |receivers| {
        let without = WEIGHTS.map(|most_weight| planned(receivers, most_weight, 0.0));
        let with = WEIGHTS.map(|most_weight| planned(receivers, most_weight, ERRORS));
        [without, with].concat()
    };
    match scale {
        Scale::Quick => QUICK.into(),
        Scale::Full => CROWDS.into_iter().flat_map(of).collect(),
    }
}

/// A run.
#[derive(Serialize, Deserialize)]
struct WeightRow {
    receivers: u32,
    /// K.
    most_weight: u32,
    /// Line errors of the others.
    errors: f64,
    /// Packets that the one receiver misses at the end, and by how many these have grown per second
    /// in the second half.
    missing: u64,
    growth: f64,
    /// Packets that each of the others misses at the end, on average.
    others: f64,
}

fn run(case: &Case) -> Option<WeightRow> {
    let Planned { receivers, most_weight, errors } =
        plan(case.scale).into_iter().nth(case.index as usize)?;
    let setting = BmtpSetting {
        most_weight,
        slow_loss: LOSS,
        first_divisor: receivers,
        ..BmtpSetting::one_slow(receivers, errors)
    };
    let mut run = BmtpRun::new(&setting, case.stream(0).next_u64());
    let half = u64::from(case.scale.pick(150, 500)) / 2;
    run.until(half)?;
    let before = run.missing(0);
    run.until(2 * half)?;
    let missing = run.missing(0);
    let others = (1..receivers as usize).map(|receiver| run.missing(receiver) as f64);
    Some(WeightRow {
        receivers,
        most_weight,
        errors,
        missing,
        growth: (missing as f64 - before as f64) / half as f64,
        others: mean(&others.collect::<Vec<_>>()),
    })
}

/// Part of what the one receiver loses at least that is not repaired.
fn unrepaired(row: &WeightRow) -> f64 {
    row.growth / LOST_PER_SECOND
}

fn claims() -> Vec<Claim> {
    let with_errors = |rows: &[WeightRow], most_weight: u32| {
        let is = |row: &WeightRow| {
            row.receivers == FEW && row.most_weight == most_weight && row.errors > 0.0
        };
        mean(&rows.numbers(is, |row| row.others))
    };
    vec![
        Claim::own(
            "by number",
            "K = a tenth of the receivers: packets that it misses more at the end than half-way, over the 2 per \
             second that it loses at least, the most of all numbers, without and with errors",
            Target::AtMost(0.1),
            0.0,
            |rows: &[WeightRow]| {
                let is = |row: &&WeightRow| row.most_weight == by_number(row.receivers);
                largest(rows.iter().filter(is).map(unrepaired))
            },
        ),
        Claim::shape(
            "too small",
            "the same with a K of a thirtieth, the largest number of receivers, without errors",
            quote("should be governed by the total number of receivers", "section 8"),
            Target::AtLeast(0.2),
            |rows: &[WeightRow]| {
                let most = rows.iter().map(|row| row.receivers).max().unwrap_or(0);
                let is = |row: &WeightRow| {
                    row.receivers == most
                        && row.most_weight == most / SMALL_PART
                        && row.errors == 0.0
                };
                mean(&rows.numbers(is, unrepaired))
            },
        ),
        Claim::own(
            "few",
            "packets that each other of 100 receivers misses, with errors, K = 100 over K = 10: one receiver takes \
             nothing from the others with a K that is too large",
            Target::AtMost(1.2),
            0.0,
            move |rows: &[WeightRow]| with_errors(rows, 100) / with_errors(rows, 10),
        ),
    ]
}

fn grid(rows: &[WeightRow]) -> Exhibit {
    let line = |row: &WeightRow| {
        let by_number = row.most_weight == by_number(row.receivers);
        vec![
            row.receivers.to_string(),
            format!("{}{}", row.most_weight, if by_number { ", by number" } else { "" }),
            format!("{}", 100.0 * row.errors),
            row.missing.to_string(),
            // Without the sign of a rounded 0.
            format!("{:.2}", (100.0 * row.growth).round() / 100.0 + 0.0),
            format!("{:.2}", row.others),
        ]
    };
    let columns = ["receivers", "K", "errors %", "it misses", "more per second", "others miss"];
    Exhibit::Grid(Grid {
        title: "Packets that the one receiver misses at the end, and each of the others on average"
            .into(),
        columns: columns.map(String::from).into(),
        rows: rows.iter().map(line).collect(),
    })
}
