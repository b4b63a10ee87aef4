//! The table of codes, and their speed.

use crate::arguments::Selection;
use crate::contest::contest;
use crate::limit::AddingRows;
use crate::ours;
use crate::peers::{self, Peer};
use crate::workload::{SYMBOL_SIZE, Scenario, Workload};
use fontana_fec::FecScheme;
use serde::Serialize;
use std::time::Duration;

/// One of our codes, the blocks it is measured with, and whom it is compared with.
struct Code {
    name: &'static str,
    scheme: FecScheme,
    source_symbols: &'static [u32],
    peers: &'static [Peer],
}

/// A new code is a new line here.
const CODES: &[Code] = &[Code {
    name: "raptorq",
    scheme: FecScheme::RaptorQ { source_blocks: 1, sub_blocks: 1, alignment: 1 },
    source_symbols: &[1_000, 10_000, 50_000],
    peers: &[peers::raptorq, peers::reed_solomon_simd],
}];

/// One comparison. Speeds are of source data: `k * symbol_size` bytes in the time that the scenario
/// takes.
#[derive(Serialize)]
struct Row<'a> {
    code: &'a str,
    k: u32,
    symbol_size: usize,
    scenario: &'a str,
    mbytes_per_second: f64,
    peer: Option<&'a str>,
    /// Our speed over the peer's.
    ratio: Option<f64>,
}

/// Measures what is selected and prints it as it comes.
pub(crate) fn run(selection: &Selection, json: bool) {
    let wanted = |code: &&Code| selection.code.as_ref().is_none_or(|name| name == code.name);
    for code in CODES.iter().filter(wanted) {
        let ks = code.source_symbols.iter().copied();
        for k in ks.filter(|&k| selection.k.is_none_or(|wanted| wanted == k)) {
            let workload = Workload::new(k);
            let scenarios = Scenario::ALL.into_iter();
            for scenario in scenarios.filter(|&s| selection.scenario.is_none_or(|w| w == s)) {
                let peers = if selection.alone { &[] } else { code.peers };
                measure(code, peers, scenario, &workload, json);
            }
        }
    }
}

fn measure(code: &Code, peers: &[Peer], scenario: Scenario, workload: &Workload, json: bool) {
    let limit = AddingRows::new(workload.k);
    let bytes_read = limit.bytes_read();
    let mut contestants = vec![ours::contestant(code.scheme, scenario, workload)];
    contestants.extend(peers.iter().filter_map(|peer| peer(scenario, workload)));
    contestants.push(Box::new(limit));
    let outcomes = contest(&mut contestants);
    let [ours, peers @ .., limit] = outcomes.as_slice() else { return };

    let speed = |time: Duration| workload.block.len() as f64 / 1e6 / time.as_secs_f64();
    let name = scenario.name();
    let row = |peer, ratio| Row {
        code: code.name,
        k: workload.k,
        symbol_size: SYMBOL_SIZE,
        scenario: &name,
        mbytes_per_second: speed(ours.median),
        peer,
        ratio,
    };
    let ratio = |time: Duration| time.as_secs_f64() / ours.median.as_secs_f64();
    if json {
        let print = |row| println!("{}", serde_json::to_string(&row).unwrap());
        if peers.is_empty() {
            print(row(None, None));
        }
        peers.iter().for_each(|p| print(row(Some(p.name.as_str()), Some(ratio(p.median)))));
        return;
    }
    print!(
        "{:8} K = {:6}  {name:9} {:9.3} ms {:7.0} MB/s",
        code.name,
        workload.k,
        ours.median.as_secs_f64() * 1e3,
        speed(ours.median),
    );
    for peer in peers {
        print!("  {:5.2} x {} ({:.0})", ratio(peer.median), peer.name, speed(peer.median));
    }
    let bandwidth = bytes_read as f64 / limit.median.as_secs_f64();
    let reads = bandwidth * ours.median.as_secs_f64() / workload.block.len() as f64;
    println!("  = time to read {reads:.1} rows a symbol at {:.0} GB/s", bandwidth / 1e9);
}
