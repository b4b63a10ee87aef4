//! `ms.eq1`, `ms.fig2` and `ms.fig3`: senders of different rates.

use super::model::{recursion, two_senders_exact};
use super::reception::{Mirrors, turn};
use super::{NEEDED, SOURCE_SYMBOLS};
use crate::chart::{Axis, Chart, Exhibit, Series};
use crate::claim::{Claim, Target, quote};
use crate::experiment::{Case, Experiment, Kind};
use crate::statistics::largest;
use crate::table::{Table, TableRow, Value, row};

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
    kind: Kind::Counted,
    columns: &["rates", "stretch", "recursion", "simulated", "exact"],
    cases: |_| ((TWO.len() + THREE.len() - 1) * STRETCHES.len()) as u32,
    run: equation_1,
    claims: || {
        let farthest = |a: &'static str, b: &'static str| {
            move |table: &Table| {
                let pairs = table.points(a, b, &[]);
                // Three senders have no exact value: 0.
                let pairs = pairs.into_iter().filter(|pair| pair.1 != 0.0);
                largest(pairs.map(|(a, b)| (a - b).abs()))
            }
        };
        vec![
            Claim::shape(
                "simulation",
                "largest difference of the recursion from the simulation; the paper's thousandth",
                quote("this is only an approximation", "section V-A.1"),
                Target::AtMost(0.001),
                farthest("recursion", "simulated"),
            ),
            Claim::own(
                "exact",
                "largest difference of the recursion from the exact sum for two senders",
                Target::AtMost(0.001),
                0.0,
                farthest("recursion", "exact"),
            ),
            Claim::own(
                "sum",
                "largest difference of the simulation from the exact sum for two senders",
                Target::AtMost(0.0005),
                0.0,
                farthest("simulated", "exact"),
            ),
        ]
    },
    exhibits: |_| Vec::new(),
};

fn equation_1(case: &Case) -> Vec<TableRow> {
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
    let simulated = mirrors.mean(EXACT_TRIALS, &mut case.stream(0)).packets / k;
    let exact = if rates.len() == 2 {
        two_senders_exact(&turn(rates), encoding_symbols, NEEDED) / k
    } else {
        0.0
    };
    vec![row![name, stretch, packets.iter().sum::<f64>() / k, simulated, exact]]
}

pub(crate) const FIGURE_2: Experiment = Experiment {
    id: "ms.fig2",
    paper: "mirror sites, figure 2",
    what: "Two senders of different rates: reception inefficiency, and speed-up over a receiver of \
           the faster one alone, against the stretch factor; 1000 receptions for each point.",
    kind: Kind::Counted,
    columns: &["rates", "stretch", "inefficiency", "speedup"],
    cases: |_| (TWO.len() * HALVES.len()) as u32,
    run: |case| figure_point(TWO, case),
    claims: || {
        vec![
            worst_claim("1:1", TWO),
            Claim::shape(
                "slower",
                "least difference between consecutive speed-ups at c = 4, from 1:1 to 8:1",
                quote("the speedup is much less significant", SECTION),
                Target::AtLeast(0.0),
                |table| {
                    let speedups: Vec<_> =
                        TWO.iter().map(|rates| speedup(table, rates.0)).collect();
                    -largest(speedups.windows(2).map(|pair| pair[1] - pair[0]))
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
                |table| speedup(table, "4:1"),
            ),
        ]
    },
    exhibits: |table| vec![curves(table, "inefficiency"), curves(table, "speedup")],
};

pub(crate) const FIGURE_3: Experiment = Experiment {
    id: "ms.fig3",
    paper: "mirror sites, figure 3",
    what: "Three senders of different rates, as figure 2.",
    kind: Kind::Counted,
    columns: &["rates", "stretch", "inefficiency", "speedup"],
    cases: |_| (THREE.len() * HALVES.len()) as u32,
    run: |case| figure_point(THREE, case),
    claims: || {
        vec![
            worst_claim("1:1:1", THREE),
            Claim::shape(
                "marginal",
                "a third sender at half the rate: speed-up of 2:2:1 over 1:1 at c = 4, over that of \
                 1:1 over one",
                quote("much less significant than the marginal gain of using two", SECTION),
                Target::AtMost(0.75),
                |table| third(table) / speedup(table, "1:1"),
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
    exhibits: |table| vec![curves(table, "inefficiency"), curves(table, "speedup")],
};

fn figure_point(figures: &[Rates], case: &Case) -> Vec<TableRow> {
    let index = case.index as usize;
    let (Some(&(name, rates)), Some(&halves)) =
        (figures.get(index % figures.len()), HALVES.get(index / figures.len()))
    else {
        return Vec::new();
    };
    let encoding_symbols = SOURCE_SYMBOLS * halves / 2;
    let mut mirrors = Mirrors::new(rates, encoding_symbols, NEEDED);
    let mean = mirrors.mean(FIGURE_TRIALS, &mut case.stream(0));
    let inefficiency = mean.packets / f64::from(SOURCE_SYMBOLS);
    vec![row![name, f64::from(halves) / 2.0, inefficiency, f64::from(NEEDED) / mean.first]]
}

fn speedup(table: &Table, rates: &str) -> f64 {
    table.number("speedup", &[("rates", rates.into()), ("stretch", 4_u32.into())])
}

/// What a third sender at half the rate adds to two.
fn third(table: &Table) -> f64 {
    speedup(table, "2:2:1") / speedup(table, "1:1")
}

/// Equal rates give the most duplicates.
fn worst_claim(equal: &'static str, figures: &'static [Rates]) -> Claim {
    Claim::shape(
        "worst",
        "how much more inefficient any other rates are, over all stretch factors (the standard \
         error of a difference is 0.0005)",
        quote(
            "equal rate transmission maximizes the number of duplicate packets received",
            SECTION,
        ),
        Target::AtMost(0.001),
        move |table| {
            let of = |rates: &str| table.numbers("inefficiency", &[("rates", rates.into())]);
            let equal_rates = of(equal);
            largest(figures.iter().filter(|rates| rates.0 != equal).flat_map(|rates| {
                let both = of(rates.0).into_iter().zip(equal_rates.clone());
                both.map(|(other, equal)| other - equal).collect::<Vec<_>>()
            }))
        },
    )
}

fn curves(table: &Table, column: &'static str) -> Exhibit {
    let (title, label) = match column {
        "speedup" => ("Speed-up over the fastest sender alone", "speed-up"),
        _ => ("Reception inefficiency by the rates of the senders", "reception inefficiency"),
    };
    let series = table.values("rates").into_iter().map(|rates: Value| {
        let label = rates.to_string();
        Series::new(label, table.points("stretch", column, &[("rates", rates)]))
    });
    Exhibit::Chart(Chart {
        name: column,
        title: title.into(),
        x: Axis::linear("stretch factor"),
        y: Axis::linear(label),
        series: series.collect(),
    })
}
