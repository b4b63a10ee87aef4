//! `fc.model`: the two symbol organizations, by the formulas of section 5.
//!
//! By organization 1 every layer sends all n symbols of a block in a random order; by organization
//! 2 each of n/k layers sends k of them, and further *cycles* of n/k layers send them again.
//! Without losses, a block of a receiver of all layers is complete when the recursions (1) and (2)
//! reach k. Time is counted in symbols that the base layer has sent of the block (t r_0 / b), which
//! makes the number of blocks drop out.

use crate::chart::{Axis, Chart, Exhibit, Grid, Panel, Series};
use crate::claim::{Claim, Target, quote};
use crate::experiment::{Case, Experiment, Kind, SweepOf};
use crate::row::Rows;
use crate::statistics::{largest, smallest};
use crate::table::Table;
use serde::{Deserialize, Serialize};

const SECTION: &str = "section 5.4";

/// Data symbols of a block.
const K: f64 = 32.0;

/// Symbols over data symbols, and cycles of layers.
const STRETCHES: [u32; 3] = [2, 3, 4];
const CYCLES: [u32; 3] = [1, 2, 3];

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "fc.model",
    paper: "FCAST, section 5",
    what: "End of reception of a block and share of duplicates, by the paper's recursions, for a \
           receiver of all layers of rates 1, 1, 2, 4, ... without losses: all symbols on every \
           layer (organization 1) or k on each (organization 2).",
    sweep: &SweepOf {
        name: "fc.model",
        kind: Kind::Counted,
        cases: |_| (STRETCHES.len() * CYCLES.len()) as u32,
        run,
    },
    claims,
    exhibits,
};

/// Both organizations, by the recursions.
#[derive(Serialize, Deserialize)]
struct Organizations {
    stretch: u32,
    cycles: u32,
    end1: f64,
    end2: f64,
    /// Per cent by which organization 2 is faster.
    faster: f64,
    /// Per cent of what is received.
    duplicates1: f64,
    duplicates2: f64,
}

fn run(case: &Case) -> Vec<Organizations> {
    let index = case.index as usize;
    let (Some(&stretch), Some(&cycles)) =
        (STRETCHES.get(index % STRETCHES.len()), CYCLES.get(index / STRETCHES.len()))
    else {
        return Vec::new();
    };
    let layers = stretch * cycles;
    let all: f64 = (0..layers).map(rate).sum();
    let end1 = first_time(|time| organization_1(time, stretch, layers));
    let end2 = first_time(|time| organization_2(time, stretch, layers));
    let duplicates = |end: f64| 100.0 * (1.0 - K / (end * all));
    let faster = 100.0 * (1.0 - end2 / end1);
    let [duplicates1, duplicates2] = [end1, end2].map(duplicates);
    vec![Organizations { stretch, cycles, end1, end2, faster, duplicates1, duplicates2 }]
}

/// Symbols that layer `layer` sends while the base layer sends one: each layer as many as all
/// before it.
fn rate(layer: u32) -> f64 {
    2_f64.powi(layer.saturating_sub(1) as i32)
}

/// Different symbols of a block that were received at `time`: recursion (1).
fn organization_1(time: f64, stretch: u32, layers: u32) -> f64 {
    let n = K * f64::from(stretch);
    (0..layers).fold(0.0, |z, layer| z + time * rate(layer) * (1.0 - z / n))
}

/// Likewise recursion (2): of the layers that send the same symbols.
fn organization_2(time: f64, stretch: u32, layers: u32) -> f64 {
    let of_part = |part: u32| {
        let same = (part..layers).step_by(stretch as usize);
        same.fold(0.0, |z, layer| z + time * rate(layer) * (1.0 - z / K))
    };
    (0..stretch).map(of_part).sum()
}

/// When so many symbols have been received as are needed. Up to then `received` grows with time: it
/// would fall only once a layer had sent more than all symbols there are.
fn first_time(received: impl Fn(f64) -> f64) -> f64 {
    let (mut before, mut after) = (0.0, 1.0 / K);
    while received(after) < K {
        (before, after) = (after, after + 1.0 / K);
    }
    for _ in 0..60 {
        let middle = f64::midpoint(before, after);
        if received(middle) < K { before = middle } else { after = middle }
    }
    after
}

/// A result of the recursions.
type Measure = fn(&Organizations) -> f64;

const END_1: Measure = |row| row.end1;
const END_2: Measure = |row| row.end2;
const FASTER: Measure = |row| row.faster;
const DUPLICATES_1: Measure = |row| row.duplicates1;
const DUPLICATES_2: Measure = |row| row.duplicates2;

fn at(rows: &[Organizations], measure: Measure, stretch: u32, cycles: u32) -> f64 {
    rows.number(|row| row.stretch == stretch && row.cycles == cycles, measure)
}

fn claims() -> Vec<Claim> {
    let faster = || quote("always enables a 6.8 to 14.7% faster object", SECTION);
    let mut claims: Vec<Claim> = [(2, 1, 14.64), (3, 1, 11.30), (4, 1, 8.66), (4, 2, 6.78)]
        .into_iter()
        .map(|(stretch, cycles, percent)| {
            Claim::identity(
                format!("{stretch}x{cycles}"),
                format!("by the recursions, not printed: % by which organization 2 is faster, n/k = {stretch}, {cycles} cycles"),
                Target::Equal(percent),
                0.1,
                move |rows: &[Organizations]| at(rows, FASTER, stretch, cycles),
            )
        })
        .collect();
    claims.extend([
        Claim::printed(
            "most",
            "% by which organization 2 is faster: the most",
            faster(),
            Target::Equal(14.7),
            0.1,
            |rows: &[Organizations]| largest(rows.iter().map(FASTER)),
        ),
        Claim::printed(
            "least",
            "% by which organization 2 is faster: the least",
            faster(),
            Target::Equal(6.8),
            0.1,
            |rows: &[Organizations]| smallest(rows.iter().map(FASTER)),
        ),
        Claim::printed(
            "duplicates",
            "% of duplicates of organization 1 with one cycle at n/k = 2",
            quote("this duplication ratio is between 14.6 and 8.6%", SECTION),
            Target::Equal(14.6),
            0.1,
            |rows: &[Organizations]| at(rows, DUPLICATES_1, 2, 1),
        ),
        Claim::printed(
            "fewer",
            "and at n/k = 4",
            quote("this duplication ratio is between 14.6 and 8.6%", SECTION),
            Target::Equal(8.6),
            0.1,
            |rows: &[Organizations]| at(rows, DUPLICATES_1, 4, 1),
        ),
        Claim::printed(
            "none",
            "% of duplicates of organization 2 with one cycle, the most",
            quote("there is no duplication for organization 2", SECTION),
            Target::Equal(0.0),
            1e-9,
            |rows: &[Organizations]| largest(rows.numbers(|row| row.cycles == 1, DUPLICATES_2)),
        ),
        Claim::printed(
            "savings",
            "points between the two with two or three cycles, the least",
            quote("more than 6% savings compared to organization 1", SECTION),
            Target::AtLeast(6.0),
            0.0,
            |rows: &[Organizations]| {
                let saved =
                    rows.numbers(|row| row.cycles > 1, |row| row.duplicates1 - row.duplicates2);
                smallest(saved)
            },
        ),
    ]);
    claims
}

fn exhibits(table: &Table) -> Vec<Exhibit> {
    let rows: Vec<Organizations> = table.read().unwrap_or_default();
    let curve = |measure: Measure, name: &'static str| {
        STRETCHES.map(|stretch| {
            let point = |row: &Organizations| (f64::from(row.cycles * stretch), measure(row));
            let points = rows.points(|row| row.stretch == stretch, point);
            Series::new(format!("{name}, n/k = {stretch}"), points)
        })
    };
    let chart = |name, title: &str, y: Axis, series: Vec<Series>| {
        let x = Axis::linear("layers");
        let panels = Panel::only(series);
        Exhibit::Chart(Chart { name, title: title.into(), x, y, panels })
    };
    let line = |&(stretch, cycles): &(u32, u32)| {
        let cell = |measure| format!("{:.2}", at(&rows, measure, stretch, cycles));
        let measures = [FASTER, DUPLICATES_1, DUPLICATES_2];
        let counts = [stretch, cycles, stretch * cycles].map(|count| count.to_string());
        counts.into_iter().chain(measures.map(cell)).collect()
    };
    let all: Vec<(u32, u32)> =
        CYCLES.iter().flat_map(|&cycles| STRETCHES.map(|stretch| (stretch, cycles))).collect();
    let columns = ["n/k", "cycles", "layers", "% faster", "% duplicates, 1", "% duplicates, 2"];
    vec![
        Exhibit::Grid(Grid {
            title: "Organization 2 against organization 1".into(),
            columns: columns.map(String::from).into(),
            rows: all.iter().map(line).collect(),
        }),
        chart(
            "end",
            "End of reception of a block (the paper's figure 4)",
            Axis::logarithmic("symbols of the lowest layer"),
            curve(END_1, "organization 1")
                .into_iter()
                .chain(curve(END_2, "organization 2"))
                .collect(),
        ),
        chart(
            "ratio",
            "Organization 2 is faster",
            Axis::linear("shorter by (%)"),
            curve(FASTER, "ours")
                .into_iter()
                .chain([6.8, 14.7].map(|percent| {
                    let bound = [(2.0, percent), (12.0, percent)];
                    Series::printed_curve("paper: 6.8 to 14.7 %", bound)
                }))
                .collect(),
        ),
        chart(
            "duplicates",
            "Duplicates",
            Axis::linear("duplicates (% of what is received)"),
            curve(DUPLICATES_1, "organization 1")
                .into_iter()
                .chain(curve(DUPLICATES_2, "organization 2"))
                .chain([Series::printed("paper: one cycle", [(2.0, 14.6), (4.0, 8.6)])])
                .collect(),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_layers_are_a_quadratic_equation() {
        // 2u - u^2/n = k, and 2u = k.
        let n = 2.0 * K;
        let end = first_time(|time| organization_1(time, 2, 2));
        assert!((end - (n - (n * n - n * K).sqrt())).abs() < 1e-9, "{end}");
        let end = first_time(|time| organization_2(time, 2, 2));
        assert!((end - K / 2.0).abs() < 1e-9, "{end}");
    }

    #[test]
    fn every_layer_sends_as_much_as_all_below_it() {
        assert_eq!((0..5).map(rate).collect::<Vec<_>>(), [1.0, 1.0, 2.0, 4.0, 8.0]);
    }

    #[test]
    fn the_second_cycle_brings_some_of_what_the_first_has_brought() {
        // Layers 0 and 2 send the same symbols, so do 1 and 3.
        let (time, z) = (2.0, [2.0, 2.0]);
        let expected: f64 = [(z[0], 2.0), (z[1], 4.0)]
            .map(|(z, rate)| z + time * rate * (1.0 - z / K))
            .iter()
            .sum();
        assert!((organization_2(time, 2, 4) - expected).abs() < 1e-12);
    }
}
