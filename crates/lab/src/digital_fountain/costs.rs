//! `df.table1` and `df.table2`: growth of costs, counted instead of timed.

use super::tornado::graph;
use crate::chart::{Axis, Chart, Exhibit, Panel, Series};
use crate::claim::{Claim, Target, quote};
use crate::experiment::{Case, Experiment, Kind, SweepOf};
use crate::row::Rows;
use crate::statistics::{StraightLine, exponent};
use fontana_fec::codes::lt::LtCode;
use fontana_fec::study::lt::Degrees;
use serde::{Deserialize, Serialize};

/// Lengths of blocks of table I. From 5000 on the graphs differ in nothing but their size.
const LENGTHS: [u32; 7] = [1000, 2000, 4000, 8000, 16_000, 32_000, 64_000];

/// Truncations of the heavy tail, `D`: a code for an inefficiency of `1 + 1/D`.
const TAILS: [u32; 5] = [100, 200, 500, 1000, 2000];

pub(crate) const TABLE_1: Experiment = Experiment {
    id: "df.table1",
    paper: "digital fountain, table I",
    what: "Exclusive-ors that it takes to make k redundant packets from k source packets: those of \
           a Reed-Solomon code, k (n-k) A/2, and the edges of Tornado graphs; and the mean degree \
           of a heavy tail that is cut at D = 1/epsilon.",
    sweep: &SweepOf { name: "df.table1", kind: Kind::Counted, cases: |_| 1, run: table_1 },
    claims: || {
        let growth = |code: &'static str| move |rows: &[Cost]| exponent(&costs(rows, code));
        vec![
            Claim::identity(
                "reed-solomon",
                "Reed-Solomon: k (n - k) A, as a power of k",
                Target::Equal(2.0),
                1e-9,
                growth("Reed-Solomon"),
            ),
            Claim::shape(
                "tornado",
                "Tornado: edges of the graph, as a power of k, less 1, either way",
                quote("encoding time per source packet does not grow", "section V-A"),
                Target::AtMost(0.1),
                move |rows| (growth("Tornado")(rows) - 1.0).abs(),
            ),
            Claim::identity(
                "tail",
                "and linear in ln(1/epsilon): edges that a source packet gains in the heavy tail \
                 for each unit of ln D",
                Target::Equal(1.0),
                0.05,
                |rows: &[Cost]| {
                    let points = costs(rows, "heavy tail");
                    StraightLine::through(
                        &points.iter().map(|(d, degree)| (d.ln(), *degree)).collect::<Vec<_>>(),
                    )
                    .slope
                },
            ),
        ]
    },
    exhibits: |table| {
        let rows: Vec<Cost> = table.read().unwrap_or_default();
        let curve = |code: &str| Series::new(code, costs(&rows, code));
        vec![Exhibit::Chart(Chart {
            name: "",
            title: "Exclusive-ors of packets to encode a file at stretch 2".into(),
            x: Axis::logarithmic("source packets"),
            y: Axis::logarithmic("exclusive-ors"),
            panels: Panel::only(vec![curve("Reed-Solomon"), curve("Tornado")]),
        })]
    },
};

/// Exclusive-ors to encode.
#[derive(Serialize, Deserialize)]
struct Cost {
    code: String,
    /// Source packets; of the heavy tail, its truncation.
    x: u32,
    xors: f64,
}

/// Costs of a code against `x`.
fn costs(rows: &[Cost], code: &str) -> Vec<(f64, f64)> {
    rows.points(|row| row.code == code, |row| (row.x.into(), row.xors))
}

fn table_1(_: &Case) -> Vec<Cost> {
    let cost = |code: &str, x: u32, xors: f64| Cost { code: code.into(), x, xors };
    let mut rows = Vec::new();
    for k in LENGTHS {
        // A = 16 for all lengths: the field is one that has room for the longest.
        rows.push(cost("Reed-Solomon", k, f64::from(k).powi(2) * 8.0));
        rows.push(cost("Tornado", k, graph(k).edges() as f64));
    }
    for d in TAILS {
        // Shares (D+1) / (D i (i-1)) of degree i from 2 to D+1: the mean is (D+1)/D times the D-th
        // harmonic number.
        let harmonic: f64 = (1..=d).map(|i| 1.0 / f64::from(i)).sum();
        rows.push(cost("heavy tail", d, f64::from(d + 1) / f64::from(d) * harmonic));
    }
    rows
}

pub(crate) const TABLE_2: Experiment = Experiment {
    id: "df.table2",
    paper: "digital fountain, table II",
    what: "Exclusive-ors of a packet of an LT code, which is its mean degree, against k; a \
           Reed-Solomon packet that is made on the fly takes k A/2.",
    sweep: &SweepOf { name: "df.table2", kind: Kind::Counted, cases: |_| 1, run: table_2 },
    claims: || {
        let slope = |profile: &'static str| {
            move |rows: &[MeanDegree]| StraightLine::through(&logarithmic(rows, profile)).slope
        };
        let slopes = "exclusive-ors of a packet that are gained for each unit of ln k, from 1000 to \
                      1 000 000";
        vec![
            Claim::identity(
                "fast",
                format!(
                    "{slopes}, of the mean degrees of the code's definition: over 1, or 1 over them"
                ),
                Target::AtMost(2.0),
                0.0,
                move |rows| {
                    let slope = slope("fast")(rows);
                    slope.max(1.0 / slope)
                },
            ),
            Claim::identity(
                "strict",
                format!("{slopes}, of the strict profile, whose degrees are ln(2e8 k)/1.05"),
                Target::Equal(0.952),
                0.05,
                slope("strict"),
            ),
        ]
    },
    exhibits: |table| {
        let rows: Vec<MeanDegree> = table.read().unwrap_or_default();
        let curve = |profile: &str| Series::new(profile, degrees(&rows, profile));
        vec![Exhibit::Chart(Chart {
            name: "",
            title: "Mean degree of LT codes".into(),
            x: Axis::logarithmic("source symbols"),
            y: Axis::linear("exclusive-ors of an encoding symbol"),
            panels: Panel::only(vec![
                curve("fast"),
                curve("strict"),
                // "For hundreds of thousands of symbols".
                Series::printed_curve("paper: around 20", [(2e5, 20.0), (9e5, 20.0)]),
            ]),
        })]
    },
};

/// The mean degree of a profile of LT codes.
#[derive(Serialize, Deserialize)]
struct MeanDegree {
    profile: String,
    k: u32,
    degree: f64,
}

fn table_2(_: &Case) -> Vec<MeanDegree> {
    let of = |k: u32, profile: &str, code| {
        let mean = Degrees::new(code, k).map_or(f64::NAN, |degrees| degrees.mean() as f64);
        MeanDegree { profile: profile.into(), k, degree: mean / 2_f64.powi(32) }
    };
    [1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000]
        .into_iter()
        .flat_map(|k| [of(k, "fast", LtCode::fast(k, 1)), of(k, "strict", LtCode::strict(k, 1))])
        .collect()
}

/// Mean degrees against `k`.
fn degrees(rows: &[MeanDegree], profile: &str) -> Vec<(f64, f64)> {
    rows.points(|row| row.profile == profile, |row| (row.k.into(), row.degree))
}

fn logarithmic(rows: &[MeanDegree], profile: &str) -> Vec<(f64, f64)> {
    degrees(rows, profile).into_iter().map(|(k, degree)| (k.ln(), degree)).collect()
}
