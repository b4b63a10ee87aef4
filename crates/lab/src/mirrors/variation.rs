//! `ms.fig4`: how much the decoding inefficiency matters.

use super::SOURCE_SYMBOLS;
use super::reception::Mirrors;
use crate::chart::{Axis, Chart, Exhibit, Panel, Series};
use crate::claim::{Claim, Target, quote};
use crate::experiment::{Case, Experiment, Kind, SweepOf};
use crate::row::Rows;
use crate::statistics::{StraightLine, largest, mean};
use serde::{Deserialize, Serialize};

/// The text does not say which stretch factor figure 4 has: these.
const STRETCHES: [u32; 3] = [2, 3, 4];

/// Distinct packets needed of 1000: decoding inefficiencies 1.00 to 1.10.
const NEEDED: [u32; 11] = [1000, 1010, 1020, 1030, 1040, 1050, 1060, 1070, 1080, 1090, 1100];

/// The standard error of a mean is 0.0002 in the quick run, well below what a curve would have to
/// bend to be seen.
const TRIALS: [u32; 2] = [3000, 10_000];

const SECTION: &str = "section V-A.2";

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "ms.fig4",
    paper: "mirror sites, figure 4",
    what: "Reception inefficiency and speed-up of two equal senders as the decoding inefficiency \
           varies; 10 000 receptions for each point (quick: 3000). The text does not give the stretch factor.",
    sweep: &SweepOf {
        name: "ms.fig4",
        kind: Kind::Counted,
        cases: |_| (STRETCHES.len() * NEEDED.len()) as u32,
        run,
    },
    claims: || {
        let linearly =
            || quote("grow roughly linearly in the decoding inefficiency over this range", SECTION);
        vec![
            Claim::shape(
                "inefficiency",
                "reception inefficiency: farthest point from a straight line",
                linearly(),
                Target::AtMost(0.002),
                |rows: &[Point]| bend(rows, |row| row.inefficiency),
            ),
            Claim::shape(
                "speedup",
                "speed-up: farthest point from a straight line",
                linearly(),
                Target::AtMost(0.002),
                |rows: &[Point]| bend(rows, |row| row.speedup),
            ),
            Claim::shape(
                "average",
                "mean of the inefficiencies from 1.00 to 1.10 less that at the average, either way",
                quote("approximately equal to the reception inefficiency at the average", SECTION),
                Target::AtMost(0.002),
                |rows: &[Point]| {
                    largest(STRETCHES.iter().map(|&stretch| {
                        let points = curve(rows, stretch, |row| row.inefficiency);
                        let of = |is: fn(f64) -> bool| {
                            let some = points.iter().filter(|point| is(point.0));
                            mean(&some.map(|point| point.1).collect::<Vec<_>>())
                        };
                        (of(|_| true) - of(|epsilon| epsilon == 1.05)).abs()
                    }))
                },
            ),
        ]
    },
    exhibits: |table| {
        let rows: Vec<Point> = table.read().unwrap_or_default();
        let series = |number: fn(&Point) -> f64| {
            let series = |&stretch: &u32| {
                Series::new(format!("c = {stretch}"), curve(&rows, stretch, number))
            };
            STRETCHES.iter().map(series).collect()
        };
        let x = Axis::linear("decoding inefficiency");
        vec![
            Exhibit::Chart(Chart {
                name: "inefficiency",
                title: "Reception inefficiency of two equal senders".into(),
                x,
                y: Axis::linear("reception inefficiency"),
                panels: Panel::only(series(|row| row.inefficiency)),
            }),
            Exhibit::Chart(Chart {
                name: "speedup",
                title: "Speed-up of two equal senders".into(),
                x,
                y: Axis::linear("speed-up"),
                panels: Panel::only(series(|row| row.speedup)),
            }),
        ]
    },
};

/// A point of the figure.
#[derive(Serialize, Deserialize)]
struct Point {
    stretch: u32,
    decoding_inefficiency: f64,
    inefficiency: f64,
    speedup: f64,
}

fn run(case: &Case) -> Vec<Point> {
    let index = case.index as usize;
    let (Some(&stretch), Some(&needed)) =
        (STRETCHES.get(index / NEEDED.len()), NEEDED.get(index % NEEDED.len()))
    else {
        return Vec::new();
    };
    let k = f64::from(SOURCE_SYMBOLS);
    let mut mirrors = Mirrors::new(&[1, 1], SOURCE_SYMBOLS * stretch, needed);
    let trials = case.scale.pick(TRIALS[0], TRIALS[1]);
    let mean = mirrors.mean(trials, &mut case.stream(0));
    vec![Point {
        stretch,
        decoding_inefficiency: f64::from(needed) / k,
        inefficiency: mean.packets / k,
        speedup: f64::from(needed) / mean.first,
    }]
}

/// A number against the decoding inefficiency.
fn curve(rows: &[Point], stretch: u32, number: fn(&Point) -> f64) -> Vec<(f64, f64)> {
    rows.points(|row| row.stretch == stretch, |row| (row.decoding_inefficiency, number(row)))
}

/// Largest distance of a point from the straight line through those of its stretch factor.
fn bend(rows: &[Point], number: fn(&Point) -> f64) -> f64 {
    largest(STRETCHES.iter().map(|&stretch| {
        let points = curve(rows, stretch, number);
        StraightLine::through(&points).farthest(&points)
    }))
}
