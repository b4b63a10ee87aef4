//! `df.table1` and `df.table2`: growth of costs, counted instead of timed.

use super::tornado::graph;
use crate::chart::{Axis, Chart, Exhibit, Series};
use crate::claim::{Claim, Target, quote};
use crate::experiment::{Case, Experiment, Kind};
use crate::statistics::{StraightLine, exponent};
use crate::table::{Table, TableRow, row};
use fontana_fec::codes::lt::LtCode;
use fontana_fec::study::lt::Degrees;

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
    kind: Kind::Counted,
    columns: &["code", "x", "xors"],
    cases: |_| 1,
    run: table_1,
    claims: || {
        let growth = |code: &'static str| {
            move |table: &Table| exponent(&table.points("x", "xors", &[("code", code.into())]))
        };
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
                move |table| (growth("Tornado")(table) - 1.0).abs(),
            ),
            Claim::identity(
                "tail",
                "and linear in ln(1/epsilon): edges that a source packet gains in the heavy tail \
                 for each unit of ln D",
                Target::Equal(1.0),
                0.05,
                |table| {
                    let points = table.points("x", "xors", &[("code", "heavy tail".into())]);
                    StraightLine::through(
                        &points.iter().map(|(d, degree)| (d.ln(), *degree)).collect::<Vec<_>>(),
                    )
                    .slope
                },
            ),
        ]
    },
    exhibits: |table| {
        let curve =
            |code: &str| Series::new(code, table.points("x", "xors", &[("code", code.into())]));
        vec![Exhibit::Chart(Chart {
            name: "",
            title: "Exclusive-ors of packets to encode a file at stretch 2".into(),
            x: Axis::logarithmic("source packets"),
            y: Axis::logarithmic("exclusive-ors"),
            series: vec![curve("Reed-Solomon"), curve("Tornado")],
        })]
    },
};

fn table_1(_: &Case) -> Vec<TableRow> {
    let mut rows = Vec::new();
    for k in LENGTHS {
        // A = 16 for all lengths: the field is one that has room for the longest.
        rows.push(row!["Reed-Solomon", k, u64::from(k) * u64::from(k) * 8]);
        rows.push(row!["Tornado", k, graph(k).edges() as u64]);
    }
    for d in TAILS {
        // Shares (D+1) / (D i (i-1)) of degree i from 2 to D+1: the mean is (D+1)/D times the D-th
        // harmonic number.
        let harmonic: f64 = (1..=d).map(|i| 1.0 / f64::from(i)).sum();
        rows.push(row!["heavy tail", d, f64::from(d + 1) / f64::from(d) * harmonic]);
    }
    rows
}

pub(crate) const TABLE_2: Experiment = Experiment {
    id: "df.table2",
    paper: "digital fountain, table II",
    what: "Exclusive-ors of a packet of an LT code, which is its mean degree, against k; a \
           Reed-Solomon packet that is made on the fly takes k A/2.",
    kind: Kind::Counted,
    columns: &["profile", "k", "degree"],
    cases: |_| 1,
    run: |_| {
        [1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000]
            .into_iter()
            .flat_map(|k| {
                [("fast", LtCode::fast(k, 1)), ("strict", LtCode::strict(k, 1))].map(
                    |(profile, code)| {
                        let degrees = Degrees::new(code, k);
                        let mean = degrees.map_or(f64::NAN, |degrees| degrees.mean() as f64);
                        row![profile, k, mean / 2_f64.powi(32)]
                    },
                )
            })
            .collect()
    },
    claims: || {
        let slope = |profile: &'static str| {
            move |table: &Table| StraightLine::through(&logarithmic(table, profile)).slope
        };
        let slopes = "exclusive-ors of a packet that are gained for each unit of ln k, from 1000 to \
                      1 000 000";
        vec![
            Claim::shape(
                "fast",
                format!("{slopes}: over 1, or 1 over them"),
                quote("asymptotic in k time per encoding packet of", "section V-A"),
                Target::AtMost(2.0),
                move |table| {
                    let slope = slope("fast")(table);
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
        let curve = |profile: &str| {
            Series::new(profile, table.points("k", "degree", &[("profile", profile.into())]))
        };
        vec![Exhibit::Chart(Chart {
            name: "",
            title: "Mean degree of LT codes".into(),
            x: Axis::logarithmic("source symbols"),
            y: Axis::linear("exclusive-ors of an encoding symbol"),
            series: vec![curve("fast"), curve("strict")],
        })]
    },
};

fn logarithmic(table: &Table, profile: &str) -> Vec<(f64, f64)> {
    let points = table.points("k", "degree", &[("profile", profile.into())]);
    points.into_iter().map(|(k, degree)| (k.ln(), degree)).collect()
}
