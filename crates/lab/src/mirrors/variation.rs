//! `ms.fig4`: how much the decoding inefficiency matters.

use super::SOURCE_SYMBOLS;
use super::reception::Mirrors;
use crate::chart::{self, Axis, Chart, Exhibit, Panel, Series};
use crate::claim::{Claim, Target, quote};
use crate::estimate::Estimate;
use crate::experiment::{Case, Experiment, Kind, SweepOf};
use crate::statistics::StraightLine;
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
                |rows: &[Point]| bend(rows, Point::inefficiency),
            ),
            Claim::shape(
                "speedup",
                "speed-up: farthest point from a straight line",
                linearly(),
                Target::AtMost(0.002),
                |rows: &[Point]| bend(rows, Point::speedup),
            ),
            Claim::shape(
                "average",
                "mean of the inefficiencies from 1.00 to 1.10 less that at the average, either way",
                quote("approximately equal to the reception inefficiency at the average", SECTION),
                Target::AtMost(0.002),
                |rows: &[Point]| {
                    Estimate::largest(STRETCHES.iter().map(|&stretch| {
                        let points = curve(rows, stretch, Point::inefficiency);
                        let count = points.len() as f64;
                        let sum = points.iter().map(|point| point.1.value).sum::<f64>();
                        let middle = points.iter().find(|point| point.0 == 1.05);
                        // That of the mean of all is a third of it.
                        let middle = middle.map_or(f64::NAN.into(), |point| point.1);
                        middle.minus((sum / count).into()).size()
                    }))
                },
            ),
        ]
    },
    exhibits: |table| {
        let rows: Vec<Point> = table.read().unwrap_or_default();
        let series = |number: fn(&Point) -> Estimate| {
            let series = |&stretch: &u32| {
                let points = curve(&rows, stretch, number).into_iter();
                let points = points.map(|(x, y)| chart::Point::estimate(x, y));
                Series::new(format!("c = {stretch}"), points)
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
                panels: Panel::only(series(Point::inefficiency)),
            }),
            Exhibit::Chart(Chart {
                name: "speedup",
                title: "Speed-up of two equal senders".into(),
                x,
                y: Axis::linear("speed-up"),
                panels: Panel::only(series(Point::speedup)),
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
    /// The standard errors of both.
    inefficiency_error: f64,
    speedup_error: f64,
}

impl Point {
    fn inefficiency(&self) -> Estimate {
        Estimate { value: self.inefficiency, error: self.inefficiency_error }
    }

    fn speedup(&self) -> Estimate {
        Estimate { value: self.speedup, error: self.speedup_error }
    }
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
    let (inefficiency, speedup) = (mean.inefficiency(SOURCE_SYMBOLS), mean.speedup(needed));
    vec![Point {
        stretch,
        decoding_inefficiency: f64::from(needed) / k,
        inefficiency: inefficiency.value,
        speedup: speedup.value,
        inefficiency_error: inefficiency.error,
        speedup_error: speedup.error,
    }]
}

/// A number against the decoding inefficiency.
fn curve(rows: &[Point], stretch: u32, number: fn(&Point) -> Estimate) -> Vec<(f64, Estimate)> {
    let of = rows.iter().filter(|row| row.stretch == stretch);
    of.map(|row| (row.decoding_inefficiency, number(row))).collect()
}

/// Largest distance of a point from the straight line through those of its stretch factor.
fn bend(rows: &[Point], number: fn(&Point) -> Estimate) -> Estimate {
    Estimate::largest(STRETCHES.iter().flat_map(|&stretch| {
        let points = curve(rows, stretch, number);
        let values: Vec<_> = points.iter().map(|(x, y)| (*x, y.value)).collect();
        let line = StraightLine::through(&values);
        let off = move |(x, y): (f64, Estimate)| y.minus(line.at(x).into()).size();
        points.into_iter().map(off).collect::<Vec<_>>()
    }))
}
