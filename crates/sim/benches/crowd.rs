//! A crowd: one sender and 100 000 receivers of one object of 1 MB.
//!
//! ```sh
//! cargo bench -p fontana-sim --bench crowd -- [star|tree] [RECEIVERS] [LOSS] [MBIT]
//! ```
// This benchmark measures time.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::unwrap_used, clippy::panic)]

use fontana_proto::Instant;
use fontana_sim::{LinkConfig, LossModel, Rooted};
use std::sync::Arc;
use std::time::Duration;
use support::{Scene, until_complete};

#[path = "../tests/sim/scene.rs"]
mod support;

const BYTES: u64 = 1 << 20;

fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let shape = arguments.first().map_or("star", String::as_str);
    let receivers = arguments.get(1).map_or(100_000, |a| a.parse().unwrap());
    let loss = arguments.get(2).map_or(0.01, |a| a.parse().unwrap());
    let megabits: u64 = arguments.get(3).map_or(1_000, |a| a.parse().unwrap());
    let wire = LinkConfig::wire(Duration::from_millis(10));
    let access = Arc::new(wire.clone().with_loss(LossModel::bernoulli(loss)));
    let network = match shape {
        "star" => Rooted::star(receivers, wire, access),
        "tree" => {
            // Three levels, and losses on each.
            let side = f64::from(receivers).cbrt().ceil() as u32;
            let leaves = receivers.div_ceil(side * side);
            Rooted::tree(&[side, side, leaves], &[access])
        }
        other => panic!("{other}: star or tree"),
    };
    // A receiver that loses the first head stores all symbols until the second one. Without a known
    // manifest these are as many as the object has, and would take most of the memory.
    let scene = Scene {
        watched: false,
        manifest_is_known: true,
        ..Scene::new(BYTES, 1, megabits * 125_000, 1)
    };
    let (began, worked) = (std::time::Instant::now(), processor_time());
    let before = resident_bytes();
    let hosts = network.leaves.iter().map(|&leaf| (leaf, Instant::ZERO));
    let mut run = scene.run(network.topology, &[network.source], hosts);
    let built = began.elapsed();
    assert!(until_complete(&mut run, Duration::from_secs(60)), "all are complete");
    let (elapsed, took) = (began.elapsed(), processor_time() - worked);
    let (stats, memory) = (run.stats(), resident_bytes() - before);
    let count = network.leaves.len();
    let rate = |n: u64| n as f64 / took.as_secs_f64() / 1e6;
    println!("{shape} of {count} receivers, {BYTES} bytes, {megabits} Mbit/s, loss {loss}");
    println!("{took:.2?} of a core, {elapsed:.2?} with what else runs; set up in {built:.2?}");
    println!("{} deliveries, {:.2} million a second", stats.deliveries, rate(stats.deliveries));
    println!("{} events, {:.2} million a second", stats.events, rate(stats.events));
    println!("{} bytes a receiver, network included", memory / count as u64);
    println!("digest {}", hex(&run.digest()));
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Processor time of this thread: wall time includes other load on the host.
fn processor_time() -> Duration {
    let schedule = std::fs::read("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = String::from_utf8_lossy(&schedule);
    let nanos = nanos.split_whitespace().next().and_then(|nanos| nanos.parse().ok());
    Duration::from_nanos(nanos.unwrap_or(0))
}

/// Resident memory of the process.
fn resident_bytes() -> u64 {
    let statm = std::fs::read("/proc/self/statm").unwrap_or_default();
    let statm = String::from_utf8_lossy(&statm);
    statm.split_whitespace().nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0_u64) * 4096
}
