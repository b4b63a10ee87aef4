//! `ms.series`: the series that the paper derives from equation (2) for two senders.

use super::EPSILON;
use super::model::{equal_senders, two_senders_series};
use crate::chart::{Axis, Chart, Exhibit, Series};
use crate::claim::{Claim, Target};
use crate::experiment::{Case, Experiment, Kind};
use crate::statistics::exponent;
use crate::table::{TableRow, row};

/// Stretch factors; the exponent of the error is read off the last four.
const STRETCHES: [u32; 6] = [2, 4, 8, 16, 32, 64];

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "ms.series",
    paper: "mirror sites, section V-A.1",
    what: "The expansion of equation (2) for two senders, as far as the paper prints it, against \
           the formula itself.",
    kind: Kind::Counted,
    columns: &["stretch", "formula", "series", "error"],
    cases: |_| 1,
    run,
    claims: || {
        vec![
            Claim::identity("close", "error at stretch 4", Target::AtMost(0.002), 0.0, |table| {
                table.number("error", &[("stretch", 4_u32.into())])
            }),
            Claim::identity(
                "order",
                "the error falls with the third power of the stretch factor, as the first term \
                 left out does",
                Target::Equal(-3.0),
                0.1,
                |table| {
                    let points = table.points("stretch", "error", &[]);
                    exponent(points.get(2..).unwrap_or(&[]))
                },
            ),
        ]
    },
    exhibits: |table| {
        vec![Exhibit::Chart(Chart {
            name: "",
            title: "Two senders: equation (2) and its series".into(),
            x: Axis::logarithmic("stretch factor"),
            y: Axis::linear("reception inefficiency"),
            series: vec![
                Series::new("equation (2)", table.points("stretch", "formula", &[])),
                Series::new("series", table.points("stretch", "series", &[])),
            ],
        })]
    },
};

fn run(_: &Case) -> Vec<TableRow> {
    STRETCHES
        .iter()
        .map(|&stretch| {
            let formula = equal_senders(2, f64::from(stretch), EPSILON);
            let series = two_senders_series(f64::from(stretch), EPSILON);
            row![stretch, formula, series, (formula - series).abs()]
        })
        .collect()
}
