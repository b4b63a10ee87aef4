//! `bm.fig4`: line errors.

use super::log::SecondOfPackets;
use super::run::{BmtpRun, BmtpSetting, SECONDS};
use crate::chart::{self, Axis, Chart, Exhibit, Panel, Series};
use crate::claim::{Claim, Target, quote};
use crate::estimate::Estimate;
use crate::experiment::{Case, Experiment, Kind, Scale, SweepOf};
use crate::row::Rows;
use serde::{Deserialize, Serialize};

const RECEIVERS: u32 = 100;
/// Line errors, in hundredths of a per cent, of all runs and of a quick one.
const ERRORS: [u32; 21] = [
    0, 25, 50, 75, 100, 125, 150, 175, 200, 225, 250, 275, 300, 325, 350, 375, 400, 425, 450, 475,
    500,
];
const QUICK_ERRORS: [u32; 7] = [0, 100, 200, 250, 275, 300, 500];
const TRIALS: u32 = 5;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "bm.fig4",
    paper: "BMTP, figure 4",
    what: "Packets of 500 s, and how many of them are resends, against the line errors of each path; the \
           100 receivers of bm.fig3, and a sender that starts at 42 packets a second. 21 error rates, 5 runs \
           of each (quick: 7, one run).",
    sweep: &SweepOf {
        name: "bm.fig4",
        kind: Kind::Counted,
        cases: |scale| errors(scale).len() as u32 * scale.pick(1, TRIALS),
        run: |case| run(case).into_iter().collect(),
    },
    claims,
    exhibits: |table| {
        let rows: Vec<ErrorRow> = table.read().unwrap_or_default();
        vec![figure(&rows)]
    },
};

const fn errors(scale: Scale) -> &'static [u32] {
    match scale {
        Scale::Quick => &QUICK_ERRORS,
        Scale::Full => &ERRORS,
    }
}

/// A run.
#[derive(Serialize, Deserialize)]
struct ErrorRow {
    /// Line errors, in per cent.
    errors: f64,
    trial: u32,
    sent: u32,
    resent: u32,
    /// Packets that the queue to the slowest receiver dropped.
    dropped: u64,
}

fn run(case: &Case) -> Option<ErrorRow> {
    let errors = errors(case.scale);
    let count = errors.len() as u32;
    let percent = f64::from(*errors.get((case.index % count) as usize)?) / 100.0;
    let setting = BmtpSetting::one_slow(RECEIVERS, percent / 100.0);
    let mut run = BmtpRun::new(&setting, case.stream(0).next_u64());
    let all = SecondOfPackets::sum(run.until(SECONDS)?.seconds());
    let (sent, resent) = (all.sent, all.resent);
    let dropped = run.overflows(0);
    Some(ErrorRow { errors: percent, trial: case.index / count, sent, resent, dropped })
}

/// The mean of a number of the runs with these errors.
fn at(rows: &[ErrorRow], errors: f64, number: fn(&ErrorRow) -> f64) -> Estimate {
    let values = rows.numbers(|row| row.errors == errors, number);
    match values[..] {
        [one] => one.into(),
        _ => Estimate::mean(&values),
    }
}

fn sent(row: &ErrorRow) -> f64 {
    row.sent.into()
}

fn resent(row: &ErrorRow) -> f64 {
    row.resent.into()
}

/// The errors at which the total falls to 95 % of that without errors, between two points.
fn falls_at(rows: &[ErrorRow]) -> f64 {
    let errors = rows.distinct(|row| row.errors);
    let total = |errors: f64| at(rows, errors, sent).value / at(rows, 0.0, sent).value;
    let pairs = errors.iter().zip(errors.iter().skip(1));
    let falls = |(&before, &after): (&f64, &f64)| {
        let (high, low) = (total(before), total(after));
        (low < 0.95).then(|| before + (after - before) * (high - 0.95) / (high - low))
    };
    pairs.into_iter().find_map(falls).unwrap_or(f64::NAN)
}

fn claims() -> Vec<Claim> {
    vec![
        Claim::printed(
            "total",
            "packets in 500 s without errors",
            quote("expected number of packets sent in each simulated run", SECTION),
            Target::Equal(21_000.0),
            210.0,
            |rows: &[ErrorRow]| at(rows, 0.0, sent),
        ),
        Claim::printed(
            "overload",
            "resends without errors",
            quote("1113 of the 21000 packets were re-transmissions", SECTION),
            Target::Equal(1113.0),
            223.0,
            |rows: &[ErrorRow]| at(rows, 0.0, resent),
        ),
        Claim::shape(
            "flattens",
            "growth of the resends from 2 to 2.5 % of errors, over that from 1 to 2 %, for the same errors",
            quote("The re-send rate flattens out briefly after 2%", SECTION),
            Target::AtMost(0.5),
            |rows: &[ErrorRow]| {
                let at = |errors| at(rows, errors, resent).value;
                2.0 * (at(2.5) - at(2.0)) / (at(2.0) - at(1.0))
            },
        ),
        Claim::printed(
            "falls",
            "% of errors at which the total falls to 95 % of that without errors",
            quote("just before 3% loss the sender's overall transmission rate", SECTION),
            Target::AtMost(3.0),
            0.2,
            falls_at,
        ),
        Claim::own("not before", "the same, from below", Target::AtLeast(2.5), 0.0, falls_at),
    ]
}

const SECTION: &str = "section 6";

fn figure(rows: &[ErrorRow]) -> Exhibit {
    let curve = |label: &str, number: fn(&ErrorRow) -> f64| {
        let point = |errors| chart::Point::estimate(errors, at(rows, errors, number));
        Series::new(label, rows.distinct(|row| row.errors).into_iter().map(point))
    };
    Exhibit::Chart(Chart {
        name: "",
        title: "Packets of 500 s against line errors".into(),
        x: Axis::linear("line errors (%)"),
        y: Axis::linear("packets"),
        panels: Panel::only(vec![
            curve("all packets", sent),
            curve("resends", resent),
            Series::printed("paper: all packets", [(0.0, 21_000.0)]).in_color_of("all packets"),
            Series::printed_curve("paper: the total falls", [(3.0, 0.0), (3.0, 21_000.0)])
                .in_color_of("all packets"),
            Series::printed("paper: resends", [(0.0, 1_113.0)]).in_color_of("resends"),
        ]),
    })
}
