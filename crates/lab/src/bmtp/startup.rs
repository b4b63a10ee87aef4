//! `bm.fig3`: a sender that starts five times too fast.

use super::log::SecondOfPackets;
use super::rate::PacketRate;
use super::run::{BmtpRun, BmtpSetting, FastPaths, SECONDS};
use crate::chart::{Axis, Chart, Exhibit, Panel, Point, Series};
use crate::claim::{Claim, Quote, Target, quote};
use crate::estimate::Estimate;
use crate::experiment::{Case, Experiment, Kind, SweepOf};
use crate::row::Rows;
use crate::statistics::{largest, mean, smallest};
use serde::{Deserialize, Serialize};
use std::ops::Range;

pub(super) const RECEIVERS: u32 = 100;
const FIRST_RATE: PacketRate = PacketRate::per_second(200);
/// Packets per second below which the rate has fallen.
const FALLEN: f64 = 60.0;
/// Seconds over which the share of resends is averaged: a control interval. Within one, the sender
/// sends resends only until they are half of an interval's packets, and then none.
const AVERAGED: usize = 10;
/// Per cent of resends below which the sender no longer uses half of the bandwidth for them.
const RECOVERED: f64 = 40.0;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "bm.fig3",
    paper: "BMTP, figure 3",
    what: "Packets of each second, and how many of them are resends, if the sender starts at 200 packets a \
           second. 100 receivers, of which one receives 40 packets a second and the others 100 on average, \
           by exponential times, so that they do not lose the same packets; the paper's endpoints in its \
           network, in the simulator. 5 runs (quick: two). K = 100 and N = 1 000 at the beginning, which the \
           paper does not print: bm.start has others.",
    sweep: &SweepOf {
        name: "bm.fig3",
        kind: Kind::Counted,
        cases: |scale| scale.pick(2, 5),
        run: |case| startup(case).unwrap_or_default(),
    },
    claims,
    exhibits: |table| {
        let rows: Vec<StartupRow> = table.read().unwrap_or_default();
        vec![figure(&rows)]
    },
};

/// A second of a run.
#[derive(Serialize, Deserialize)]
pub(super) struct StartupRow {
    pub(super) trial: u32,
    pub(super) second: u32,
    pub(super) sent: u32,
    pub(super) resent: u32,
    /// Status packets that arrived, and those of them with a request.
    pub(super) statuses: u32,
    pub(super) naks: u32,
    /// Packets that the queue to the slowest receiver has dropped so far.
    pub(super) dropped: u64,
    /// Packets that the slowest receiver, and one of the others, miss at the end of the second.
    pub(super) slow_misses: u64,
    pub(super) fast_misses: u64,
}

fn startup(case: &Case) -> Option<Vec<StartupRow>> {
    let setting = setting(RECEIVERS, FastPaths::Random);
    simulate(&setting, case.index, case.stream(0).next_u64(), SECONDS)
}

/// The paper's setting for figure 3, with so many receivers.
pub(super) fn setting(receivers: u32, fast_paths: FastPaths) -> BmtpSetting {
    BmtpSetting { first_rate: FIRST_RATE, fast_paths, ..BmtpSetting::one_slow(receivers, 0.0) }
}

/// The first seconds of a run.
pub(super) fn simulate(
    setting: &BmtpSetting,
    trial: u32,
    seed: u64,
    seconds: u64,
) -> Option<Vec<StartupRow>> {
    let mut run = BmtpRun::new(setting, seed);
    let mut rows = Vec::new();
    for second in 0..seconds {
        let log = run.until(second + 1)?;
        let SecondOfPackets { sent, resent, statuses, naks } =
            log.seconds().get(second as usize).copied().unwrap_or_default();
        rows.push(StartupRow {
            trial,
            second: second as u32,
            sent,
            resent,
            statuses,
            naks,
            dropped: run.overflows(0),
            slow_misses: run.missing(0),
            fast_misses: run.missing(1),
        });
    }
    Some(rows)
}

/// A number of each run, from its rows.
fn each(rows: &[StartupRow], number: impl Fn(&[&StartupRow]) -> f64) -> Vec<f64> {
    let trials = rows.distinct(|row| row.trial);
    let of = |trial| rows.iter().filter(|row| row.trial == trial).collect::<Vec<_>>();
    trials.into_iter().map(|trial| number(&of(trial))).collect()
}

/// The first second whose rows meet a condition; `NAN` if there is none.
fn first_second(run: &[&StartupRow], is: impl Fn(&StartupRow) -> bool) -> f64 {
    run.iter().find(|row| is(row)).map_or(f64::NAN, |row| row.second.into())
}

/// Per cent of resends in seconds of each run: the mean of all runs.
fn resent_percent(rows: &[StartupRow], from: u32, until: u32) -> Estimate {
    mean_of(&each(rows, |run| resent_in(run, from, until)))
}

/// Per cent of resends in seconds of a run.
pub(super) fn resent_in(run: &[&StartupRow], from: u32, until: u32) -> f64 {
    let of = |number: fn(&StartupRow) -> u32| {
        let within = run.iter().filter(|row| (from..until).contains(&row.second));
        within.map(|row| f64::from(number(row))).sum::<f64>()
    };
    100.0 * of(|row| row.resent) / of(|row| row.sent)
}

/// The mean of all runs. One run does not tell how much runs differ.
fn mean_of(runs: &[f64]) -> Estimate {
    match runs {
        [one] => (*one).into(),
        several => Estimate::mean(several),
    }
}

/// The end of the first interval after the start with less than [`RECOVERED`] per cent of resends.
pub(super) fn recovered(run: &[&StartupRow]) -> f64 {
    let share = |window: &&[&StartupRow]| {
        let of = |number: fn(&StartupRow) -> u32| {
            window.iter().map(|row| f64::from(number(row))).sum::<f64>()
        };
        100.0 * of(|row| row.resent) < RECOVERED * of(|row| row.sent)
    };
    let start = run.iter().take_while(|row| row.second < HALF.start).count();
    let first = run.get(start..).and_then(|rest| rest.windows(AVERAGED).find(share));
    first.and_then(<[_]>::last).map_or(f64::NAN, |row| f64::from(row.second) + 1.0)
}

fn claims() -> Vec<Claim> {
    vec![
        Claim::printed(
            "falls",
            "the second in which the sender sends fewer than 60 packets for the first time",
            quote("rate control mechanism begins to take effect at time 21", FIGURE),
            Target::Equal(21.0),
            1.0,
            |rows: &[StartupRow]| {
                let has_fallen = |row: &StartupRow| f64::from(row.sent) < FALLEN;
                largest(each(rows, |run| first_second(run, has_fallen)))
            },
        ),
        Claim::printed(
            "rate",
            "packets per second from then on: mean of 25 to 500 s",
            quote("about 42 packets per second", FIGURE),
            Target::Equal(42.0),
            0.5,
            |rows: &[StartupRow]| {
                mean(&rows.numbers(|row| row.second >= 25, |row| row.sent.into()))
            },
        ),
        Claim::printed(
            "naks",
            "the second in which the first request arrives",
            quote("Receivers start reporting losses at time 11", FIGURE),
            Target::Equal(11.0),
            1.0,
            |rows: &[StartupRow]| largest(each(rows, |run| first_second(run, |row| row.naks > 0))),
        ),
        Claim::printed(
            "half",
            "% of the packets that are resends from 25 to 115 s",
            half_the_bandwidth(),
            Target::Equal(50.0),
            5.0,
            |rows: &[StartupRow]| resent_percent(rows, HALF.start, HALF.end),
        ),
        Claim::printed(
            "until",
            "the end of the first 10 s, after 25 s, of which less than 40 % are resends",
            until_115(),
            Target::Equal(115.0),
            25.0,
            |rows: &[StartupRow]| mean_of(&each(rows, recovered)),
        ),
        Claim::printed(
            "lost",
            "packets that the queue to the slowest receiver drops in the first 22 s",
            quote("over 3000 packets were lost", FIGURE),
            Target::AtLeast(3000.0),
            0.0,
            |rows: &[StartupRow]| {
                smallest(rows.numbers(|row| row.second == 21, |row| row.dropped as f64))
            },
        ),
        Claim::printed(
            "later",
            "% of the packets that are resends after 250 s",
            quote("only needs to re-send the 5% of packets lost", FIGURE),
            Target::Equal(5.0),
            1.0,
            |rows: &[StartupRow]| resent_percent(rows, 250, 500),
        ),
    ]
}

const FIGURE: &str = "section 6";

/// Seconds in which half of the bandwidth is used for resends.
pub(super) const HALF: Range<u32> = 25..115;

pub(super) fn half_the_bandwidth() -> Quote {
    quote("uses half the bandwidth for re-transmissions", FIGURE)
}

pub(super) fn until_115() -> Quote {
    quote("Until time 115 the sender uses half the bandwidth", FIGURE)
}

fn figure(rows: &[StartupRow]) -> Exhibit {
    // All runs: their mean, and the least and the greatest.
    let curve = |label: &str, number: fn(&StartupRow) -> f64| {
        let point = |second: u32| {
            let values = rows.numbers(|row| row.second == second, number);
            let (low, high) = (smallest(values.iter().copied()), largest(values.iter().copied()));
            Point { x: second.into(), y: mean(&values), low, high }
        };
        Series::new(label, rows.distinct(|row| row.second).into_iter().map(point))
    };
    let total = curve("all packets", |row| row.sent.into());
    let resent = curve("resends", |row| row.resent.into());
    let printed =
        |label: &str, points: &[(f64, f64)]| Series::printed_curve(label, points.iter().copied());
    Exhibit::Chart(Chart {
        name: "",
        title: "A sender that starts five times too fast".into(),
        x: Axis::linear("seconds"),
        y: Axis::linear("packets per second"),
        panels: Panel::only(vec![
            total,
            resent,
            printed(
                "paper: all packets",
                &[(0.0, 200.0), (21.0, 200.0), (21.0, 42.0), (500.0, 42.0)],
            )
            .in_color_of("all packets"),
            printed("paper: resends", &[(25.0, 21.0), (115.0, 21.0), (120.0, 2.1), (500.0, 2.1)])
                .in_color_of("resends"),
        ]),
    })
}
