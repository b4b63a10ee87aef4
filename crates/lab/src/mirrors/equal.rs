//! `ms.eq2` and `ms.fig1`: senders of equal rates, which is the worst case.

use super::model::equal_senders;
use super::reception::{Mean, Mirrors};
use super::{EPSILON, NEEDED, SOURCE_SYMBOLS};
use crate::chart::{self, Axis, Chart, Exhibit, Panel, Series};
use crate::claim::{Claim, Quote, Target, quote};
use crate::estimate::Estimate;
use crate::experiment::{Case, Experiment, Kind, SweepOf};
use crate::row::Rows;
use serde::{Deserialize, Serialize};

/// Senders and stretch factors of the cases of `ms.eq2`.
const PAIRS: [(u32, u32); 8] = [(2, 2), (3, 2), (4, 2), (2, 3), (3, 3), (4, 3), (2, 4), (4, 4)];

/// Stretch factors of figure 1, in quarters.
const QUARTERS: [u32; 10] = [5, 6, 7, 8, 10, 12, 16, 20, 24, 32];

/// Equal senders of figure 1: 1 to this many.
const MOST_SENDERS: u32 = 4;

/// Runs of a case, so that the standard error of its mean is well below the thousandth that the
/// paper speaks of: one reception's standard deviation is about 0.012.
const EXACT_TRIALS: u32 = 10_000;

/// As in the paper.
const FIGURE_TRIALS: u32 = 1000;

pub(crate) const EQUATION_2: Experiment = Experiment {
    id: "ms.eq2",
    paper: "mirror sites, equation (2)",
    what: "Reception inefficiency of i equal senders at stretch factor c: the formula \
           i c (1 - (1 - eps/c)^(1/i)) and the mean of 10 000 simulated receptions of a file of \
           1000 packets that needs 1055 distinct ones.",
    sweep: &SweepOf {
        name: "ms.eq2",
        kind: Kind::Counted,
        cases: |_| PAIRS.len() as u32,
        run: equation_2,
    },
    claims: equation_2_claims,
    exhibits: |_| Vec::new(),
};

/// The inefficiency of equal senders, by the formula and as simulated.
#[derive(Serialize, Deserialize)]
struct Equation2 {
    senders: u32,
    stretch: u32,
    formula: f64,
    simulated: f64,
    /// The standard error of `simulated`.
    error: f64,
}

fn equation_2(case: &Case) -> Vec<Equation2> {
    let Some(&(senders, stretch)) = PAIRS.get(case.index as usize) else { return Vec::new() };
    let formula = equal_senders(senders, f64::from(stretch), EPSILON);
    let mean = simulate(senders, f64::from(stretch), EXACT_TRIALS, case);
    let Estimate { value, error } = mean.inefficiency(SOURCE_SYMBOLS);
    vec![Equation2 { senders, stretch, formula, simulated: value, error }]
}

fn overhead() -> Quote {
    quote("with an overhead of approximately 14%", "section V-A.2")
}

fn loss_in_efficiency() -> Quote {
    quote("an additional loss in efficiency of less than 4%", "section V-A.2")
}

fn nearest_thousandth() -> Quote {
    quote("matches the results of our simulations to the nearest thousandth", "section V-A.2")
}

fn equation_2_claims() -> Vec<Claim> {
    let formula = |senders: u32, stretch: u32| {
        move |rows: &[Equation2]| {
            rows.number(|row| row.senders == senders && row.stretch == stretch, |row| row.formula)
        }
    };
    vec![
        Claim::identity(
            "printed",
            "four senders at c = 2, by the formula, of which the paper prints 1.368",
            Target::Equal(1.368),
            0.0005,
            formula(4, 2),
        ),
        Claim::identity(
            "two",
            "two senders at c = 4, by the formula: an overhead of 14 %",
            Target::Equal(1.14),
            0.005,
            formula(2, 4),
        ),
        Claim::identity(
            "four",
            "four senders instead of two at c = 4, by the formula: less than 4 % more",
            Target::AtMost(1.04),
            0.0,
            move |rows| formula(4, 4)(rows) / formula(2, 4)(rows),
        ),
        Claim::printed(
            "simulation",
            "the formula and simulations: largest difference",
            nearest_thousandth(),
            Target::AtMost(0.001),
            0.0,
            |rows: &[Equation2]| {
                let simulated =
                    |row: &Equation2| Estimate { value: row.simulated, error: row.error };
                let off = |row: &Equation2| simulated(row).minus(row.formula.into()).size();
                Estimate::largest(rows.iter().map(off))
            },
        ),
    ]
}

pub(crate) const FIGURE_1: Experiment = Experiment {
    id: "ms.fig1",
    paper: "mirror sites, figure 1",
    what: "Reception inefficiency and speed-up over one sender, against the stretch factor, for 1 \
           to 4 senders of equal rates; 1000 receptions for each point.",
    sweep: &SweepOf {
        name: "ms.fig1",
        kind: Kind::Counted,
        cases: |_| QUARTERS.len() as u32 * MOST_SENDERS,
        run: figure_1,
    },
    claims: figure_1_claims,
    exhibits: |table| {
        let rows: Vec<Point> = table.read().unwrap_or_default();
        vec![
            curves(&rows, "inefficiency", Point::inefficiency),
            curves(&rows, "speedup", Point::speedup),
        ]
    },
};

/// A point of the figure.
#[derive(Serialize, Deserialize)]
struct Point {
    senders: u32,
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

fn figure_1(case: &Case) -> Vec<Point> {
    let senders = 1 + case.index % MOST_SENDERS;
    let Some(&quarters) = QUARTERS.get((case.index / MOST_SENDERS) as usize) else {
        return Vec::new();
    };
    let stretch = f64::from(quarters) / 4.0;
    let mean = simulate(senders, stretch, FIGURE_TRIALS, case);
    let (inefficiency, speedup) = (mean.inefficiency(SOURCE_SYMBOLS), mean.speedup(NEEDED));
    vec![Point {
        senders,
        stretch,
        inefficiency: inefficiency.value,
        speedup: speedup.value,
        inefficiency_error: inefficiency.error,
        speedup_error: speedup.error,
    }]
}

fn figure_1_claims() -> Vec<Claim> {
    let point = |number: fn(&Point) -> Estimate, senders: u32, stretch: f64| {
        move |rows: &[Point]| {
            let of = |row: &&Point| row.senders == senders && row.stretch == stretch;
            rows.iter().find(of).map_or(f64::NAN.into(), number)
        }
    };
    let inefficiency = move |senders, stretch| point(Point::inefficiency, senders, stretch);
    let speedup = move |senders| point(Point::speedup, senders, 4.0);
    vec![
        Claim::printed(
            "overhead",
            "two senders at c = 4",
            overhead(),
            Target::Equal(1.14),
            0.006,
            inefficiency(2, 4.0),
        ),
        Claim::shape(
            "two",
            "speed-up of two senders at c = 4",
            quote("using two senders instead of one almost halves download time", "section V-A.2"),
            Target::AtLeast(1.8),
            speedup(2),
        ),
        Claim::shape(
            "four",
            "speed-up of four over two",
            quote("instead of two almost halves download time again", "section V-A.2"),
            Target::AtLeast(1.8),
            move |rows| speedup(4)(rows).over(speedup(2)(rows)),
        ),
        Claim::printed(
            "less",
            "packets of four over those of two",
            loss_in_efficiency(),
            Target::AtMost(1.04),
            0.001,
            move |rows| inefficiency(4, 4.0)(rows).over(inefficiency(2, 4.0)(rows)),
        ),
        Claim::shape(
            "rest",
            "more stretch gains little: four senders, inefficiency at c = 3 less that at c = 8",
            quote("beyond a moderate stretch factor of c=3", "section V-A.2"),
            Target::AtMost(0.15),
            move |rows| inefficiency(4, 3.0)(rows).minus(inefficiency(4, 8.0)(rows)),
        ),
        Claim::printed(
            "formula",
            "equation (2): largest difference",
            nearest_thousandth(),
            Target::AtMost(0.001),
            0.001,
            |rows: &[Point]| {
                let several = rows.iter().filter(|row| row.senders > 1);
                Estimate::largest(several.map(|row| {
                    let formula = equal_senders(row.senders, row.stretch, EPSILON);
                    row.inefficiency().minus(formula.into()).size()
                }))
            },
        ),
    ]
}

fn curves(rows: &[Point], name: &'static str, number: fn(&Point) -> Estimate) -> Exhibit {
    let (title, label, printed) = match name {
        "speedup" => ("Speed-up over one sender", "speed-up", None),
        _ => (
            "Reception inefficiency of equal senders",
            "reception inefficiency",
            Some(Series::printed("paper (text)", [(2.0, 1.368), (4.0, 1.14)])),
        ),
    };
    let series = (1..=MOST_SENDERS).map(|senders| {
        let of = rows.iter().filter(|row| row.senders == senders);
        let points = of.map(|row| chart::Point::estimate(row.stretch, number(row)));
        Series::new(format!("{senders} sender{}", if senders == 1 { "" } else { "s" }), points)
    });
    Exhibit::Chart(Chart {
        name,
        title: title.into(),
        x: Axis::linear("stretch factor"),
        y: Axis::linear(label),
        panels: Panel::only(series.chain(printed).collect()),
    })
}

/// What one reception takes on average.
fn simulate(senders: u32, stretch: f64, trials: u32, case: &Case) -> Mean {
    let encoding_symbols = (f64::from(SOURCE_SYMBOLS) * stretch) as u32;
    let mut mirrors = Mirrors::new(&vec![1; senders as usize], encoding_symbols, NEEDED);
    mirrors.mean(trials, &mut case.stream(0))
}
