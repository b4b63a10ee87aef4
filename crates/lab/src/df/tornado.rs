//! `df.graph` and `df.fig2`: the code Tornado Z itself.

use crate::chart::{Axis, Chart, Exhibit, Series};
use crate::claim::{Claim, Printed};
use crate::experiment::{Case, Experiment, Kind, Scale};
use crate::statistics::Histogram;
use crate::table::{Table, TableRow, row};
use fontana_fec::Esi;
use fontana_fec::codes::tornado::TornadoCode;
use fontana_fec::study::tornado::{Graph, Peeler, Peeling};
use fontana_proto::SplitMix64;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The printed code.
pub(super) const SOURCE_SYMBOLS: u32 = 16_000;

/// Edges of each source packet in G2, and edges of each of the checks there.
const EVEN_LEFT: u64 = 2;
const EVEN_RIGHT: u64 = 200;

/// The graph of Tornado codes with the stretch factor of the paper, for files of any length.
///
/// # Panics
/// If there is no such graph: all callers have valid lengths.
pub(super) fn graph(source_symbols: u32) -> Arc<Graph> {
    match TornadoCode::Z.graph(source_symbols) {
        Ok(graph) => graph,
        Err(error) => unreachable!("{error}"),
    }
}

pub(crate) const GRAPH: Experiment = Experiment {
    id: "df.graph",
    paper: "digital fountain, section V-B",
    what: "The graph of Tornado Z: how many nodes of each degree there are. A source packet's \
           degree is that in G1 and 2 more in G2.",
    kind: Kind::Counted,
    columns: &["side", "degree", "nodes"],
    cases: |_| 1,
    run: |_| degrees(&graph(SOURCE_SYMBOLS)),
    claims: graph_claims,
    exhibits: |_| Vec::new(),
};

/// The four sides: summands and sums of the first graph, summands and sums of the second one.
const SIDES: [&str; 4] = ["sources", "first checks", "summed checks", "last checks"];

fn degrees(graph: &Graph) -> Vec<TableRow> {
    let (k, first) = (graph.source_symbols(), graph.first_checks());
    let checks = graph.encoding_symbols() - k;
    let mut of_symbols = vec![0_u64; (k + first) as usize];
    let mut nodes: [BTreeMap<u64, u64>; 4] = Default::default();
    for check in 0..checks {
        let terms = graph.terms(check);
        let side = if check < first { 1 } else { 3 };
        *nodes[side].entry(terms.len() as u64).or_default() += 1;
        terms.iter().for_each(|&term| of_symbols[term as usize] += 1);
    }
    for (symbol, degree) in of_symbols.into_iter().enumerate() {
        let side = if symbol < k as usize { 0 } else { 2 };
        *nodes[side].entry(degree).or_default() += 1;
    }
    let rows = SIDES.iter().zip(nodes).flat_map(|(side, nodes)| {
        nodes.into_iter().map(|(degree, nodes)| row![*side, degree, nodes])
    });
    rows.collect()
}

fn graph_claims() -> Vec<Claim> {
    let nodes = |side: &'static str, degree: u64| {
        move |table: &Table| {
            table.number("nodes", &[("side", side.into()), ("degree", degree.into())])
        }
    };
    let exactly = |name: &str, text: &str, number: f64, measure: Box<dyn Fn(&Table) -> f64>| {
        Claim::new(name, text, Printed::Equal(number), 0.0, measure)
    };
    let mut claims = vec![
        exactly(
            "edges",
            "edges in all",
            222_516.0,
            Box::new(|table| edges(table, "first checks") + edges(table, "last checks")),
        ),
        exactly(
            "g1",
            "edges of G1, by exact integers (not printed: it follows from the sum)",
            94_516.0,
            Box::new(|table| {
                edges(table, "first checks") - (EVEN_LEFT * u64::from(SOURCE_SYMBOLS)) as f64
            }),
        ),
        exactly(
            "two",
            "source packets of degree 2 in G1",
            8040.0,
            Box::new(nodes("sources", 2 + EVEN_LEFT)),
        ),
        exactly(
            "g2",
            "checks of degree 200 in G2",
            160.0,
            Box::new(nodes("first checks", EVEN_RIGHT)),
        ),
        exactly(
            "twelve",
            "checks of degree 12 on the left of the second graph",
            8000.0,
            Box::new(nodes("summed checks", 12)),
        ),
    ];
    for (degree, number) in
        [(5, 4093), (6, 3097), (33, 122), (34, 472), (141, 1), (170, 27), (171, 188)]
    {
        claims.push(exactly(
            &format!("right{degree}"),
            &format!("checks of degree {degree} on the right of it"),
            f64::from(number),
            Box::new(nodes("last checks", degree)),
        ));
    }
    claims.push(Claim::new(
        "each",
        "approximately 14 edges for each source packet",
        Printed::Equal(14.0),
        0.5,
        |table| {
            let edges = edges(table, "first checks") + edges(table, "last checks");
            edges / f64::from(SOURCE_SYMBOLS)
        },
    ));
    claims
}

fn edges(table: &Table, side: &str) -> f64 {
    let points = table.points("degree", "nodes", &[("side", side.into())]);
    points.iter().map(|(degree, nodes)| degree * nodes).sum()
}

/// Trials of a case of figure 2.
const BATCH: u32 = 500;

/// Both decoders, and the number of batches of each, quick and full: the paper's 10 000 trials, and
/// fewer in the quick run, with a standard error of the mean of 0.0001.
const DECODERS: [(&str, Peeling, [u32; 2]); 2] =
    [("one-directional", Peeling::OneDirectional, [10, 20]), ("joint", Peeling::Joint, [2, 20])];

pub(crate) const FIGURE_2: Experiment = Experiment {
    id: "df.fig2",
    paper: "digital fountain, figure 2",
    what: "How many packets in random order Tornado Z needs, in 10 000 trials of one graph (quick: \
           5000): with the paper's decoder, which does not rebuild checks that were lost, and with \
           joint peeling (quick: 1000), which does.",
    kind: Kind::Counted,
    columns: &["decoder", "packets", "trials"],
    cases: |scale| DECODERS.iter().map(|decoder| batches(decoder.2, scale)).sum(),
    run: figure_2,
    claims: figure_2_claims,
    exhibits: |table| {
        let k = f64::from(SOURCE_SYMBOLS);
        let curve = |&(name, _, _): &(&str, Peeling, [u32; 2])| {
            let pool = pool(table, name);
            // A point at each thousandth: 16 packets.
            let points = (1020..=1105).map(|thousandth| f64::from(thousandth) / 1000.0);
            let percent = |eta: f64| (eta, 100.0 * pool.share_above(eta * k));
            Series::new(name, points.map(percent).collect())
        };
        vec![Exhibit::Chart(Chart {
            name: "",
            title: "Tornado Z: receivers that are not done yet".into(),
            x: Axis::linear("decoding inefficiency"),
            y: Axis::linear("% of the trials"),
            series: DECODERS.iter().map(curve).collect(),
        })]
    },
};

const fn batches(batches: [u32; 2], scale: Scale) -> u32 {
    scale.pick(batches[0], batches[1])
}

fn figure_2(case: &Case) -> Vec<TableRow> {
    let mut index = case.index;
    for (name, peeling, count) in DECODERS {
        let count = batches(count, case.scale);
        if index >= count {
            index -= count;
            continue;
        }
        let mut peeler = Peeler::new(graph(SOURCE_SYMBOLS), peeling);
        let mut order: Vec<u32> = (0..2 * SOURCE_SYMBOLS).collect();
        let mut random = case.stream(0);
        let mut pool = Histogram::default();
        for _ in 0..BATCH {
            pool.add(packets_needed(&mut peeler, &mut order, &mut random));
        }
        return pool.entries().map(|(packets, trials)| row![name, packets, trials]).collect();
    }
    Vec::new()
}

/// Packets in random order until the block is complete. `order` holds all ESIs, in any order.
fn packets_needed(peeler: &mut Peeler, order: &mut [u32], random: &mut SplitMix64) -> u32 {
    peeler.reset();
    let count = order.len() as u32;
    for packets in 0..count {
        let other = packets + random.below(count - packets);
        order.swap(packets as usize, other as usize);
        // All of these are encoding symbols of the block.
        let _ = peeler.push(Esi(order[packets as usize]));
        if peeler.is_complete() {
            return packets + 1;
        }
    }
    count
}

fn figure_2_claims() -> Vec<Claim> {
    let k = f64::from(SOURCE_SYMBOLS);
    let paper = |name, text, printed, tolerance, measure: fn(&Histogram) -> f64| {
        Claim::new(name, text, printed, tolerance, move |table: &Table| {
            measure(&pool(table, "one-directional"))
        })
    };
    const K: f64 = SOURCE_SYMBOLS as f64;
    vec![
        paper("mean", "average decoding inefficiency", Printed::Equal(1.0536), 0.002, |pool| {
            pool.mean() / K
        }),
        paper("deviation", "standard deviation", Printed::Equal(0.0073), 0.001, |pool| {
            pool.standard_deviation() / K
        }),
        paper("max", "not more than 1.10 in 10 000 trials", Printed::AtMost(1.10), 0.01, |pool| {
            pool.max() / K
        }),
        paper(
            "done",
            "over 90 % done by 1.064 (the standard error is 0.004)",
            Printed::AtLeast(0.9),
            0.01,
            |pool| 1.0 - pool.share_above(1.064 * K),
        ),
        paper(
            "late",
            "above 1.076 less than 1 % of the time (the standard error is 0.0014)",
            Printed::AtMost(0.01),
            0.003,
            |pool| pool.share_above(1.076 * K),
        ),
        paper(
            "tenth",
            "above 1.06 with probability 1/10 (section V-A)",
            Printed::Equal(0.1),
            0.02,
            |pool| pool.share_above(1.06 * K),
        ),
        Claim::new(
            "joint",
            "joint peeling needs fewer: average decoding inefficiency (not of the paper)",
            Printed::AtMost(1.0520),
            0.0,
            move |table| pool(table, "joint").mean() / k,
        ),
    ]
}

fn pool(table: &Table, decoder: &str) -> Histogram {
    let mut pool = Histogram::default();
    for (packets, trials) in table.points("packets", "trials", &[("decoder", decoder.into())]) {
        pool.add_many(packets as u32, trials as u64);
    }
    pool
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receivers_of_the_whole_carousel_are_done() {
        let mut peeler = Peeler::new(graph(250), Peeling::OneDirectional);
        let mut order: Vec<u32> = (0..500).collect();
        let mut random = SplitMix64::new(1, 1);
        for _ in 0..20 {
            let packets = packets_needed(&mut peeler, &mut order, &mut random);
            assert!((250..500).contains(&packets), "{packets}");
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert!(sorted.into_iter().eq(0..500), "still a permutation");
        }
    }
}
