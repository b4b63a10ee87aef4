//! `df.graph` and `df.fig2`: the code Tornado Z itself.

use crate::chart::{Axis, Chart, Exhibit, Panel, Point, Series};
use crate::claim::{Claim, Target, quote};
use crate::estimate::Estimate;
use crate::experiment::{Case, Experiment, Kind, Scale, SweepOf};
use crate::row::Rows;
use crate::statistics::Histogram;
use fontana_fec::Esi;
use fontana_fec::codes::tornado::TornadoCode;
use fontana_fec::study::tornado::{Graph, Peeler, Peeling};
use fontana_proto::SplitMix64;
use serde::{Deserialize, Serialize};
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
    sweep: &SweepOf {
        name: "df.graph",
        kind: Kind::Counted,
        cases: |_| 1,
        run: |_| degrees(&graph(SOURCE_SYMBOLS)),
    },
    claims: graph_claims,
    exhibits: |_| Vec::new(),
};

/// The section that describes the graph.
const SECTION: &str = "section V-B";

/// The four sides: summands and sums of the first graph, summands and sums of the second one.
const SIDES: [&str; 4] = ["sources", "first checks", "summed checks", "last checks"];

/// Nodes of one side that have a degree.
#[derive(Serialize, Deserialize)]
struct Nodes {
    side: String,
    degree: u64,
    nodes: u64,
}

fn degrees(graph: &Graph) -> Vec<Nodes> {
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
        let row = |(degree, nodes)| Nodes { side: (*side).into(), degree, nodes };
        nodes.into_iter().map(row).collect::<Vec<_>>()
    });
    rows.collect()
}

fn graph_claims() -> Vec<Claim> {
    let nodes = |side: &'static str, degree: u64| {
        move |rows: &[Nodes]| {
            rows.number(|row| row.side == side && row.degree == degree, |row| row.nodes as f64)
        }
    };
    let all = |rows: &[Nodes]| edges(rows, "first checks") + edges(rows, "last checks");
    let mut claims = vec![
        Claim::printed(
            "edges",
            "edges in all",
            quote("In total there are 222,516 edges in this graph", SECTION),
            Target::Equal(222_516.0),
            0.0,
            all,
        ),
        Claim::own(
            "g1",
            "edges of G1, by exact integers: it follows from the sum",
            Target::Equal(94_516.0),
            0.0,
            |rows: &[Nodes]| {
                edges(rows, "first checks") - (EVEN_LEFT * u64::from(SOURCE_SYMBOLS)) as f64
            },
        ),
    ];
    let degrees = [
        ("two", "nodes of degree 2 on the left hand side", "sources", 2 + EVEN_LEFT, 8040),
        ("g2", "each of these nodes has degree 200", "first checks", EVEN_RIGHT, 160),
        ("twelve", "the 8,000 nodes on the left have degree 12", "summed checks", 12, 8000),
        ("right5", "4,093 nodes of degree 5", "last checks", 5, 4093),
        ("right6", "3,097 nodes of degree 6", "last checks", 6, 3097),
        ("right33", "122 nodes of degree 33", "last checks", 33, 122),
        ("right34", "472 nodes of degree 34", "last checks", 34, 472),
        ("right141", "1 node of degree 141", "last checks", 141, 1),
        ("right170", "27 nodes of degree 170", "last checks", 170, 27),
        ("right171", "188 nodes of degree 171", "last checks", 171, 188),
    ];
    for (name, words, side, degree, number) in degrees {
        claims.push(Claim::printed(
            name,
            format!("{side} of degree {degree}"),
            quote(words, SECTION),
            Target::Equal(f64::from(number)),
            0.0,
            nodes(side, degree),
        ));
    }
    claims.push(Claim::printed(
        "each",
        "edges for each source packet",
        quote("approximately 14 edges per source data node", SECTION),
        Target::Equal(14.0),
        0.5,
        move |rows| all(rows) / f64::from(SOURCE_SYMBOLS),
    ));
    claims
}

fn edges(rows: &[Nodes], side: &str) -> f64 {
    rows.numbers(|row| row.side == side, |row| (row.degree * row.nodes) as f64).iter().sum()
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
    sweep: &SweepOf {
        name: "df.fig2",
        kind: Kind::Counted,
        cases: |scale| DECODERS.iter().map(|decoder| batches(decoder.2, scale)).sum(),
        run: figure_2,
    },
    claims: figure_2_claims,
    exhibits: |table| {
        let k = f64::from(SOURCE_SYMBOLS);
        let rows: Vec<Trials> = table.read().unwrap_or_default();
        let curve = |&(name, _, _): &(&str, Peeling, [u32; 2])| {
            let pool = pool(&rows, name);
            // A point at each thousandth: 16 packets.
            let points = (1020..=1105).map(|thousandth| f64::from(thousandth) / 1000.0);
            let percent = |eta: f64| Point::percent(eta, Estimate::share_above(&pool, eta * k));
            Series::new(name, points.map(percent))
        };
        // The largest is one of 10 000 trials.
        let printed = [(1.06, 10.0), (1.064, 10.0), (1.076, 1.0), (1.1, 0.01)];
        let printed = Series::printed("paper (text)", printed);
        vec![Exhibit::Chart(Chart {
            name: "",
            title: "Tornado Z: receivers that are not done yet".into(),
            x: Axis::linear("decoding inefficiency"),
            y: Axis::linear("trials (%)"),
            panels: Panel::only(DECODERS.iter().map(curve).chain([printed]).collect()),
        })]
    },
};

const fn batches(batches: [u32; 2], scale: Scale) -> u32 {
    scale.pick(batches[0], batches[1])
}

/// Trials in which a decoder needed as many packets.
#[derive(Serialize, Deserialize)]
struct Trials {
    decoder: String,
    packets: u32,
    trials: u64,
}

fn figure_2(case: &Case) -> Vec<Trials> {
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
        let row = |(packets, trials)| Trials { decoder: name.into(), packets, trials };
        return pool.entries().map(row).collect();
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
    const K: f64 = SOURCE_SYMBOLS as f64;
    let paper = |name, text, quote, target, tolerance, measure: fn(&Histogram) -> Estimate| {
        Claim::printed(name, text, quote, target, tolerance, move |rows: &[Trials]| {
            measure(&pool(rows, "one-directional"))
        })
    };
    vec![
        paper(
            "mean",
            "average decoding inefficiency",
            quote("the average decoding inefficiency was 1.0536", "section V-C"),
            Target::Equal(1.0536),
            0.002,
            |pool| Estimate::mean_of(pool).times(1.0 / K),
        ),
        paper(
            "deviation",
            "standard deviation",
            quote("the standard deviation was 0.0073", "section V-C"),
            Target::Equal(0.0073),
            0.001,
            |pool| Estimate::deviation_of(pool).times(1.0 / K),
        ),
        paper(
            "max",
            "largest of all trials",
            quote("the maximum reception inefficiency was 1.10", "section V-C"),
            Target::Equal(1.10),
            0.01,
            |pool| (pool.max() / K).into(),
        ),
        paper(
            "done",
            "share of the trials that is done by 1.064",
            quote("Over 90% of the receivers were able to reconstruct", "section V-C"),
            Target::AtLeast(0.9),
            0.01,
            |pool| Estimate::from(1.0).minus(Estimate::share_above(pool, 1.064 * K)),
        ),
        paper(
            "late",
            "share of the trials above 1.076",
            quote("greater than 1.076 less than 1% of the time", "section VI-A"),
            Target::AtMost(0.01),
            0.003,
            |pool| Estimate::share_above(pool, 1.076 * K),
        ),
        paper(
            "tenth",
            "share of the trials above 1.06",
            quote("more than 1.06 with probability 1/10", "section V-A"),
            Target::Equal(0.1),
            0.02,
            |pool| Estimate::share_above(pool, 1.06 * K),
        ),
        Claim::own(
            "joint",
            "joint peeling needs fewer: average decoding inefficiency",
            Target::AtMost(1.0520),
            0.0,
            |rows: &[Trials]| Estimate::mean_of(&pool(rows, "joint")).times(1.0 / K),
        ),
    ]
}

fn pool(rows: &[Trials], decoder: &str) -> Histogram {
    let mut pool = Histogram::default();
    for row in rows.iter().filter(|row| row.decoder == decoder) {
        pool.add_many(row.packets, row.trials);
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
