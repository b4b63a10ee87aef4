//! `ms.series`: the series that the paper derives from equation (2) for two senders.

use super::EPSILON;
use super::model::{equal_senders, two_senders_series};
use crate::chart::{Axis, Chart, Exhibit, Panel, Series};
use crate::claim::{Claim, Target};
use crate::experiment::{Case, Experiment, Kind, SweepOf};
use crate::row::Rows;
use crate::statistics::exponent;
use serde::{Deserialize, Serialize};

/// Stretch factors; the exponent of the error is read off the last four.
const STRETCHES: [u32; 6] = [2, 4, 8, 16, 32, 64];

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "ms.series",
    paper: "mirror sites, section V-A.1",
    what: "The expansion of equation (2) for two senders, as far as the paper prints it, against \
           the formula itself.",
    sweep: &SweepOf { name: "ms.series", kind: Kind::Counted, cases: |_| 1, run },
    claims: || {
        vec![
            Claim::identity(
                "close",
                "error at stretch 4",
                Target::AtMost(0.002),
                0.0,
                |rows: &[Expansion]| rows.number(|row| row.stretch == 4, |row| row.error),
            ),
            Claim::identity(
                "order",
                "the error falls with the third power of the stretch factor, as the first term \
                 left out does",
                Target::Equal(-3.0),
                0.1,
                |rows: &[Expansion]| {
                    let points = against_stretch(rows, |row| row.error);
                    exponent(points.get(2..).unwrap_or(&[]))
                },
            ),
        ]
    },
    exhibits: |table| {
        let rows: Vec<Expansion> = table.read().unwrap_or_default();
        vec![Exhibit::Chart(Chart {
            name: "",
            title: "Two senders: equation (2) and its series".into(),
            x: Axis::logarithmic("stretch factor"),
            y: Axis::linear("reception inefficiency"),
            panels: Panel::only(vec![
                Series::new("equation (2)", against_stretch(&rows, |row| row.formula)),
                Series::new("series", against_stretch(&rows, |row| row.series)),
            ]),
        })]
    },
};

/// Both sides of the expansion.
#[derive(Serialize, Deserialize)]
struct Expansion {
    stretch: u32,
    formula: f64,
    series: f64,
    error: f64,
}

fn against_stretch(rows: &[Expansion], number: fn(&Expansion) -> f64) -> Vec<(f64, f64)> {
    rows.points(|_| true, |row| (row.stretch.into(), number(row)))
}

fn run(_: &Case) -> Vec<Expansion> {
    STRETCHES
        .iter()
        .map(|&stretch| {
            let formula = equal_senders(2, f64::from(stretch), EPSILON);
            let series = two_senders_series(f64::from(stretch), EPSILON);
            Expansion { stretch, formula, series, error: (formula - series).abs() }
        })
        .collect()
}
