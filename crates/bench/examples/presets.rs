//! Comparison of `fontana_fec::presets` with the crate `reed-solomon-erasure` and its kernels in C
//! (feature `simd-accel`), on the same groups of shards, in alternating runs, on one thread.
//!
//! ```sh
//! cargo run --release -p fontana-bench --features originals --example presets
//! ```
//!
//! For *encode* both prepare in advance what they can. For *reconstruct* both have stored what
//! depends on the lost shards, which are the same each time.
#![allow(clippy::unwrap_used, reason = "a wrong result ends it")]

#[path = "../src/contest.rs"]
mod contest;

use contest::{Contestant, OURS, contest};
use fontana_fec::presets::{Preset, ShardCode};
use reed_solomon_erasure::galois_8::ReedSolomon;

/// Bytes of data of a run: long enough for the clock.
const BYTES_OF_A_RUN: usize = 512 << 10;

type Shards = Vec<Option<Vec<u8>>>;

fn main() {
    println!("MB/s of data, processor time, medians");
    for size in [1_280, 65_536] {
        for (data, parity) in [(10, 4), (32, 32), (64, 64), (128, 128)] {
            compare(data, parity, size);
        }
    }
}

fn compare(data: usize, parity: usize, size: usize) {
    let ours = ShardCode::new(Preset::Backblaze, data, parity).unwrap();
    let theirs = ReedSolomon::new(data, parity).unwrap();
    let byte = |at: usize| (at * at / 7 + at) as u8;
    let source: Vec<Vec<u8>> =
        (0..data).map(|shard| (shard * size..(shard + 1) * size).map(byte).collect()).collect();
    let mut made = vec![vec![0; size]; parity];
    theirs.encode_sep(&source, &mut made).unwrap();
    assert!(ours.encode(&source).unwrap() == made, "the same parity shards");

    let encoders: [Box<dyn Contestant + '_>; 2] = [
        work(OURS, data * size, || drop(ours.encode(&source).unwrap())),
        work("original", data * size, || {
            let mut made = vec![vec![0; size]; parity];
            theirs.encode_sep(&source, &mut made).unwrap();
        }),
    ];
    report(&format!("{data} + {parity}, {size} bytes, encode"), data * size, encoders);

    let all: Shards = source.iter().chain(&made).cloned().map(Some).collect();
    let lost = parity.min(data);
    let (mut here, mut there) = (all.clone(), all.clone());
    let decoders: [Box<dyn Contestant + '_>; 2] = [
        work(OURS, data * size, || {
            here[..lost].fill(None);
            ours.reconstruct(&mut here).unwrap();
        }),
        work("original", data * size, || {
            there[..lost].fill(None);
            theirs.reconstruct(&mut there).unwrap();
        }),
    ];
    report(&format!("{data} + {parity}, {size} bytes, reconstruct {lost}"), data * size, decoders);
    assert!(here == all && there == all, "the same data");
}

fn report(what: &str, bytes: usize, mut contestants: [Box<dyn Contestant + '_>; 2]) {
    let outcomes = contest(&mut contestants);
    let [ours, theirs] = [0, 1].map(|index| outcomes[index].seconds);
    let rate = |seconds: f64| bytes as f64 / seconds / 1e6;
    let names = (&outcomes[0].name, &outcomes[1].name);
    let (here, there) = (rate(ours), rate(theirs));
    println!("{what:40} {} {here:.0}, {} {there:.0}, ratio {:.2}", names.0, names.1, theirs / ours);
}

/// A piece of work, repeated until a clock can measure it.
struct Repeated<W> {
    name: &'static str,
    times: usize,
    work: W,
}

fn work<'a>(name: &'static str, bytes: usize, work: impl FnMut() + 'a) -> Box<dyn Contestant + 'a> {
    Box::new(Repeated { name, times: BYTES_OF_A_RUN.div_ceil(bytes), work })
}

impl<W: FnMut()> Contestant for Repeated<W> {
    fn name(&self) -> &str {
        self.name
    }

    fn run(&mut self) {
        for _ in 0..self.times {
            (self.work)();
        }
    }

    fn pieces(&self) -> usize {
        self.times
    }
}
