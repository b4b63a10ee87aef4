//! The list of codes, and their speed.

use crate::arguments::Selection;
use crate::contest::{Outcome, contest};
use crate::limit::{self, ReadingRows};
use crate::ours;
use crate::peers::{self, Peer};
use crate::workload::{SYMBOL_SIZE, Scenario, Workload};
use fontana_fec::FecScheme;
use fontana_fec::codes::lt::{Lt, LtCode};
use fontana_fec::codes::raptor::Raptor;
use fontana_fec::codes::raptorq::RaptorQ;
use fontana_fec::codes::reed_solomon::{ReedSolomon, ReedSolomonCode};
use fontana_fec::codes::tornado::{Tornado, TornadoCode};
use serde::Serialize;

/// A code of Fontana, the blocks it is measured with, and the implementations it is compared with.
struct Code {
    name: &'static str,
    /// The scheme for blocks of this many source symbols.
    scheme: fn(u32) -> FecScheme,
    source_symbols: &'static [u32],
    scenarios: &'static [Scenario],
    peers: &'static [Peer],
}

/// Longest block that is measured by default: one of a million symbols takes 5 GB.
const LONG: u32 = 100_000;

/// Scenarios of codes whose plans cost nothing, and that need more than `k` symbols or have no
/// source symbols.
const SPARSE: &[Scenario] = &[Scenario::Encode, Scenario::Receive, Scenario::ReceiveIds];

/// The list of codes. A new code adds one line.
const CODES: &[Code] = &[
    Code {
        name: "raptorq",
        scheme: |_| FecScheme::RaptorQ(RaptorQ { source_blocks: 1, sub_blocks: 1, alignment: 1 }),
        source_symbols: &[1_000, 10_000, 50_000],
        scenarios: &Scenario::ALL,
        peers: &[peers::raptorq, peers::reed_solomon_simd],
    },
    Code {
        name: "raptor",
        scheme: |_| FecScheme::Raptor(Raptor { source_blocks: 1, sub_blocks: 1, alignment: 1 }),
        source_symbols: &[1_000, 8_000],
        scenarios: &Scenario::ALL,
        peers: &[],
    },
    Code {
        name: "rs",
        scheme: |_| {
            FecScheme::ReedSolomon(ReedSolomon {
                code: ReedSolomonCode::Rfc5510,
                max_source_block_length: 128,
                max_encoding_symbols: 255,
            })
        },
        source_symbols: &[32, 64, 128],
        scenarios: &Scenario::ALL,
        peers: &[peers::reed_solomon_simd],
    },
    Code {
        name: "tornado",
        scheme: |k| {
            FecScheme::Tornado(Tornado { max_source_block_length: k, code: TornadoCode::Z })
        },
        source_symbols: &[1_000, 16_000],
        scenarios: SPARSE,
        peers: &[],
    },
    Code {
        name: "lt-fast",
        scheme: |k| FecScheme::Lt(Lt { max_source_block_length: k, code: LtCode::fast(k, 1) }),
        source_symbols: &[1_000, 10_000, 100_000, 1_000_000],
        scenarios: SPARSE,
        peers: &[],
    },
    Code {
        name: "lt-strict",
        scheme: |k| FecScheme::Lt(Lt { max_source_block_length: k, code: LtCode::strict(k, 1) }),
        source_symbols: &[1_000, 10_000, 100_000, 1_000_000],
        scenarios: SPARSE,
        peers: &[],
    },
];

/// One comparison. Speeds are bytes of source data, `k * symbol_size`, per time of the scenario.
#[derive(Serialize)]
struct Row {
    code: &'static str,
    k: u32,
    symbol_size: usize,
    scenario: String,
    mbytes_per_second: f64,
    peer: Option<String>,
    /// Fontana's speed divided by the peer's.
    ratio: Option<f64>,
}

impl Row {
    fn print_json(&self) {
        println!("{}", serde_json::to_string(self).unwrap());
    }

    fn print(&self) {
        let Self { code, k, scenario, mbytes_per_second: speed, .. } = self;
        let milliseconds = f64::from(*k) * self.symbol_size as f64 / 1e3 / speed;
        print!("{code:9} {k:7} {scenario:11} {milliseconds:8.3} ms {speed:6.0} MB/s");
        match (&self.peer, self.ratio) {
            (Some(peer), Some(ratio)) if peer == limit::NAME => {
                println!("  = reading {:.1} rows a symbol", 1.0 / ratio);
            }
            (Some(peer), Some(ratio)) => {
                println!("  = {ratio:.2} x {peer} ({:.0} MB/s)", speed / ratio);
            }
            _ => println!(),
        }
    }
}

/// Runs the selected measurements, and prints each result as soon as it is available.
pub(crate) fn run(selection: &Selection, json: bool) {
    let wanted = |code: &&Code| selection.code.as_ref().is_none_or(|name| name == code.name);
    for code in CODES.iter().filter(wanted) {
        let ks = code.source_symbols.iter().copied();
        for k in ks.filter(|&k| selection.k.map_or(k <= LONG, |wanted| wanted == k)) {
            let workload = Workload::new(k);
            let scenarios = code.scenarios.iter().copied();
            for scenario in scenarios.filter(|&s| selection.scenario.is_none_or(|w| w == s)) {
                let print = if json { Row::print_json } else { Row::print };
                measure(code, scenario, &workload, selection.alone).iter().for_each(print);
            }
        }
    }
}

fn measure(code: &Code, scenario: Scenario, workload: &Workload, alone: bool) -> Vec<Row> {
    let mut contestants = vec![ours::contestant((code.scheme)(workload.k), scenario, workload)];
    if !alone {
        contestants.extend(code.peers.iter().filter_map(|peer| peer(scenario, workload)));
        contestants.push(Box::new(ReadingRows::new(workload.k)));
    }
    let outcomes = contest(&mut contestants);
    let Some((ours, peers)) = outcomes.split_first() else { return Vec::new() };
    let row = |peer: Option<&Outcome>| Row {
        code: code.name,
        k: workload.k,
        symbol_size: SYMBOL_SIZE,
        scenario: scenario.name(),
        mbytes_per_second: workload.block.len() as f64 / 1e6 / ours.seconds,
        peer: peer.map(|peer| peer.name.clone()),
        ratio: peer.map(|peer| peer.seconds / ours.seconds),
    };
    match peers {
        [] => vec![row(None)],
        peers => peers.iter().map(|peer| row(Some(peer))).collect(),
    }
}
