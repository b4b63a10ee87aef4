//! `ms.eq1`, `ms.fig2` and `ms.fig3`: senders of different rates.

use super::model::{recursion, two_senders_exact};
use super::reception::{Mirrors, turn};
use super::{NEEDED, SOURCE_SYMBOLS};
use crate::chart::{self, Axis, Chart, Exhibit, Panel, Series};
use crate::claim::{Claim, Target, quote};
use crate::estimate::Estimate;
use crate::experiment::{Case, Experiment, Kind, SweepOf};
use crate::row::Rows;
use crate::table::Table;
use serde::{Deserialize, Serialize};

/// Relative rates, the fastest sender first, and what they are called.
type Rates = (&'static str, &'static [u32]);

const TWO: &[Rates] = &[("1:1", &[1, 1]), ("2:1", &[2, 1]), ("4:1", &[4, 1]), ("8:1", &[8, 1])];

/// With two equal ones, to see what the third one adds.
const THREE: &[Rates] = &[
    ("1:1", &[1, 1]),
    ("1:1:1", &[1, 1, 1]),
    ("2:2:1", &[2, 2, 1]),
    ("2:1:1", &[2, 1, 1]),
    ("4:1:1", &[4, 1, 1]),
    ("4:2:1", &[4, 2, 1]),
];

/// Stretch factors of `ms.eq1`.
const STRETCHES: [u32; 3] = [2, 3, 4];

/// Stretch factors of the figures, in halves. From 3/2 on one sender never comes to the end of its
/// packets.
const HALVES: [u32; 7] = [3, 4, 5, 6, 8, 12, 16];

/// The section that describes figures 2 and 3.
const SECTION: &str = "section V-A.2";

/// Standard error of a mean of so many: 0.0001.
const EXACT_TRIALS: u32 = 10_000;

/// As in the paper.
const FIGURE_TRIALS: u32 = 1000;

pub(crate) const EQUATION_1: Experiment = Experiment {
    id: "ms.eq1",
    paper: "mirror sites, equation (1)",
    what: "Reception inefficiency of senders of different rates: the recursion of equation (1), \
           the mean of 10 000 receptions, and for two senders the exact expectation by the \
           distribution of the packets that both have sent.",
    sweep: &SweepOf {
        name: "ms.eq1",
        kind: Kind::Counted,
        cases: |_| ((TWO.len() + THREE.len() - 1) * STRETCHES.len()) as u32,
        run: equation_1,
    },
    claims: || {
        // Without those of three senders if there is no exact value.
        let farthest = |pair: fn(&Equation1) -> (Estimate, f64)| {
            move |rows: &[Equation1]| {
                let pairs = rows.iter().map(pair).filter(|pair| pair.1 != 0.0);
                Estimate::largest(pairs.map(|(a, b)| a.minus(b.into()).size()))
            }
        };
        vec![
            Claim::shape(
                "simulation",
                "largest difference of the recursion from the simulation; the paper's thousandth",
                quote("this is only an approximation", "section V-A.1"),
                Target::AtMost(0.001),
                farthest(|row| (row.simulated(), row.recursion)),
            ),
            Claim::own(
                "exact",
                "largest difference of the recursion from the exact sum for two senders",
                Target::AtMost(0.001),
                0.0,
                farthest(|row| (row.recursion.into(), row.exact)),
            ),
            Claim::own(
                "sum",
                "largest difference of the simulation from the exact sum for two senders",
                Target::AtMost(0.0005),
                0.0,
                farthest(|row| (row.simulated(), row.exact)),
            ),
        ]
    },
    exhibits: |_| Vec::new(),
};

/// The inefficiency of senders of different rates.
#[derive(Serialize, Deserialize)]
struct Equation1 {
    rates: String,
    stretch: u32,
    recursion: f64,
    simulated: f64,
    /// 0 for three senders, which have no exact value.
    exact: f64,
    /// The standard error of `simulated`.
    error: f64,
}

impl Equation1 {
    fn simulated(&self) -> Estimate {
        Estimate { value: self.simulated, error: self.error }
    }
}

fn equation_1(case: &Case) -> Vec<Equation1> {
    let index = case.index as usize;
    // The first of the three is one of the two.
    let all: Vec<Rates> = TWO.iter().chain(&THREE[1..]).copied().collect();
    let (Some(&(name, rates)), Some(&stretch)) =
        (all.get(index % all.len()), STRETCHES.get(index / all.len()))
    else {
        return Vec::new();
    };
    let k = f64::from(SOURCE_SYMBOLS);
    let encoding_symbols = SOURCE_SYMBOLS * stretch;
    let packets = recursion(rates, f64::from(encoding_symbols), f64::from(NEEDED));
    let mut mirrors = Mirrors::new(rates, encoding_symbols, NEEDED);
    let mean = mirrors.mean(EXACT_TRIALS, &mut case.stream(0));
    let Estimate { value: simulated, error } = mean.inefficiency(SOURCE_SYMBOLS);
    let exact = if rates.len() == 2 {
        two_senders_exact(&turn(rates), encoding_symbols, NEEDED) / k
    } else {
        0.0
    };
    let recursion = packets.iter().sum::<f64>() / k;
    vec![Equation1 { rates: name.into(), stretch, recursion, simulated, exact, error }]
}

pub(crate) const FIGURE_2: Experiment = Experiment {
    id: "ms.fig2",
    paper: "mirror sites, figure 2",
    what: "Two senders of different rates: reception inefficiency, and speed-up over a receiver of \
           the faster one alone, against the stretch factor; 1000 receptions for each point.",
    sweep: &SweepOf {
        name: "ms.fig2",
        kind: Kind::Counted,
        cases: |_| (TWO.len() * HALVES.len()) as u32,
        run: |case| figure_point(TWO, case),
    },
    claims: || {
        vec![
            worst_claim("1:1", TWO),
            Claim::shape(
                "slower",
                "least difference between consecutive speed-ups at c = 4, from 1:1 to 8:1",
                quote("the speedup is much less significant", SECTION),
                Target::AtLeast(0.0),
                |rows: &[Point]| {
                    let speedups: Vec<_> = TWO.iter().map(|rates| speedup(rows, rates.0)).collect();
                    let gains = speedups.windows(2).map(|pair| pair[1].minus(pair[0]));
                    Estimate::largest(gains).times(-1.0)
                },
            ),
            Claim::shape(
                "reasonable",
                "speed-up at 4:1; 1.25 would be perfect",
                quote(
                    "we obtain reasonable speedups accessing multiple senders in parallel",
                    SECTION,
                ),
                Target::AtLeast(1.15),
                |rows: &[Point]| speedup(rows, "4:1"),
            ),
        ]
    },
    exhibits,
};

pub(crate) const FIGURE_3: Experiment = Experiment {
    id: "ms.fig3",
    paper: "mirror sites, figure 3",
    what: "Three senders of different rates, as figure 2.",
    sweep: &SweepOf {
        name: "ms.fig3",
        kind: Kind::Counted,
        cases: |_| (THREE.len() * HALVES.len()) as u32,
        run: |case| figure_point(THREE, case),
    },
    claims: || {
        vec![
            worst_claim("1:1:1", THREE),
            Claim::shape(
                "marginal",
                "a third sender at half the rate: speed-up of 2:2:1 over 1:1 at c = 4, over that of \
                 1:1 over one",
                quote("much less significant than the marginal gain of using two", SECTION),
                Target::AtMost(0.75),
                |rows: &[Point]| third(rows).over(speedup(rows, "1:1")),
            ),
            Claim::shape(
                "significant",
                "speed-up of 2:2:1 over 1:1; 1.25 would be perfect",
                quote(
                    "additional senders can still impact downloading performance significantly",
                    SECTION,
                ),
                Target::AtLeast(1.15),
                third,
            ),
        ]
    },
    exhibits,
};

/// A point of the figures.
#[derive(Serialize, Deserialize)]
struct Point {
    rates: String,
    stretch: f64,
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

fn figure_point(figures: &[Rates], case: &Case) -> Vec<Point> {
    let index = case.index as usize;
    let (Some(&(name, rates)), Some(&halves)) =
        (figures.get(index % figures.len()), HALVES.get(index / figures.len()))
    else {
        return Vec::new();
    };
    let encoding_symbols = SOURCE_SYMBOLS * halves / 2;
    let mut mirrors = Mirrors::new(rates, encoding_symbols, NEEDED);
    let mean = mirrors.mean(FIGURE_TRIALS, &mut case.stream(0));
    let (inefficiency, speedup) = (mean.inefficiency(SOURCE_SYMBOLS), mean.speedup(NEEDED));
    vec![Point {
        rates: name.into(),
        stretch: f64::from(halves) / 2.0,
        inefficiency: inefficiency.value,
        speedup: speedup.value,
        inefficiency_error: inefficiency.error,
        speedup_error: speedup.error,
    }]
}

fn speedup(rows: &[Point], rates: &str) -> Estimate {
    let is = |row: &&Point| row.rates == rates && row.stretch == 4.0;
    rows.iter().find(is).map_or(f64::NAN.into(), Point::speedup)
}

/// What a third sender at half the rate adds to two.
fn third(rows: &[Point]) -> Estimate {
    speedup(rows, "2:2:1").over(speedup(rows, "1:1"))
}

/// Equal rates give the most duplicates.
fn worst_claim(equal: &'static str, figures: &'static [Rates]) -> Claim {
    Claim::shape(
        "worst",
        "how much more inefficient any other rates are, over all stretch factors",
        quote(
            "equal rate transmission maximizes the number of duplicate packets received",
            SECTION,
        ),
        Target::AtMost(0.001),
        move |rows: &[Point]| {
            let of = |rates: &'static str| rows.iter().filter(move |row| row.rates == rates);
            let others = figures.iter().filter(|rates| rates.0 != equal);
            Estimate::largest(others.flat_map(|rates| {
                let both = of(rates.0).zip(of(equal));
                both.map(|(other, equal)| other.inefficiency().minus(equal.inefficiency()))
            }))
        },
    )
}

fn exhibits(table: &Table) -> Vec<Exhibit> {
    let rows: Vec<Point> = table.read().unwrap_or_default();
    vec![
        curves(&rows, "inefficiency", Point::inefficiency),
        curves(&rows, "speedup", Point::speedup),
    ]
}

fn curves(rows: &[Point], name: &'static str, number: fn(&Point) -> Estimate) -> Exhibit {
    let (title, label) = match name {
        "speedup" => ("Speed-up over the fastest sender alone", "speed-up"),
        _ => ("Reception inefficiency by the rates of the senders", "reception inefficiency"),
    };
    let series = rows.distinct(|row| row.rates.clone()).into_iter().map(|rates| {
        let of = rows.iter().filter(|row| row.rates == rates);
        let points: Vec<_> =
            of.map(|row| chart::Point::estimate(row.stretch, number(row))).collect();
        Series::new(rates, points)
    });
    Exhibit::Chart(Chart {
        name,
        title: title.into(),
        x: Axis::linear("stretch factor"),
        y: Axis::linear(label),
        panels: Panel::only(series.collect()),
    })
}
