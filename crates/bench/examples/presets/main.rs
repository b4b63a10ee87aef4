//! Comparison of `fontana_fec::presets` with the originals, on the same groups of shards, in
//! alternating runs, on one thread.
//!
//! ```sh
//! .ci/originals
//! ```
//!
//! Shards are written into memory that is there, but for *reconstruct* of Fontana and of
//! `reed-solomon-erasure`, which allocate. All make in advance what they can: tables, and what
//! depends on the lost shards, which are the same each time.
#![allow(
    unsafe_code,
    clippy::unwrap_used,
    reason = "it calls libraries in C, and a wrong result ends it"
)]

#[path = "../../src/contest.rs"]
mod contest;
mod originals;

use contest::{Contestant, OURS, contest};
use fontana_fec::presets::{Preset, ShardCode};
use originals::Original;

/// Bytes of data of a run: long enough for the clock.
const BYTES_OF_A_RUN: usize = 512 << 10;

/// Codes that are compared, and the library that each is compared with.
const PAIRS: [(Preset, Original); 7] = [
    (Preset::Backblaze, Original::ReedSolomonErasure),
    (Preset::Backblaze, Original::Klauspost(0)),
    (Preset::Zfec, Original::Zfec),
    (Preset::IsaLCauchy, Original::IsaLCauchy),
    (Preset::IsaLVandermonde, Original::IsaLVandermonde),
    (Preset::Leopard8, Original::Klauspost(1)),
    (Preset::Leopard16, Original::Klauspost(2)),
];

/// Data and parity shards of all codes.
const SHAPES: [(usize, usize); 4] = [(10, 4), (32, 32), (64, 64), (128, 128)];
/// Those of Leopard over GF(2^16).
const LARGE_SHAPES: [(usize, usize); 3] = [(300, 100), (1_000, 1_000), (10_000, 2_000)];

/// Bytes of a shard.
const SIZES: [usize; 2] = [1_280, 65_536];

fn main() {
    println!("MB/s of data, processor time, medians; ratio of Fontana to the original");
    let only = std::env::args().nth(1);
    for (preset, original) in PAIRS {
        let shapes = if preset == Preset::Leopard16 { &LARGE_SHAPES[..] } else { &SHAPES };
        let name = format!("{preset:?}, {}", original.name());
        if only.as_ref().is_some_and(|only| !name.contains(only)) {
            continue;
        }
        for &(data, parity) in shapes {
            for size in SIZES {
                // A gigabyte of data shows nothing that these do not.
                if data * size <= 64 << 20 {
                    compare(&name, original, &Group::new(preset, data, parity, size));
                }
            }
        }
    }
}

/// A computation that is measured.
type Work<'g> = Box<dyn FnMut(Call<'_>) + 'g>;

/// What a computation is called for.
enum Call<'c> {
    /// To compute so often.
    Run(usize),
    /// To copy the last result.
    Read(&'c mut Vec<u8>),
}

/// Data and parity shards.
struct Group {
    code: ShardCode,
    size: usize,
    data: Vec<Vec<u8>>,
    parity: Vec<Vec<u8>>,
}

impl Group {
    fn new(preset: Preset, data: usize, parity: usize, size: usize) -> Self {
        let code = ShardCode::new(preset, data, parity).unwrap();
        let byte = |at: usize| (at * at / 7 + at) as u8;
        let shard = |shard| (shard * size..(shard + 1) * size).map(byte).collect();
        let data: Vec<Vec<u8>> = (0..data).map(shard).collect();
        let parity = code.encode(&data).unwrap();
        Self { code, size, data, parity }
    }

    /// Data shards that are lost: the first ones.
    fn lost(&self) -> usize {
        self.parity.len().min(self.data.len())
    }

    fn shards(&self) -> Vec<Option<Vec<u8>>> {
        self.data.iter().chain(&self.parity).cloned().map(Some).collect()
    }

    fn encoder(&self) -> Work<'_> {
        let mut parity = vec![vec![0; self.size]; self.parity.len()];
        Box::new(move |call| match call {
            Call::Run(times) => {
                (0..times).for_each(|_| self.code.encode_into(&self.data, &mut parity).unwrap());
            }
            Call::Read(to) => *to = parity.concat(),
        })
    }

    fn decoder(&self) -> Work<'_> {
        let mut shards = self.shards();
        Box::new(move |call| match call {
            Call::Run(times) => (0..times).for_each(|_| {
                shards[..self.lost()].fill(None);
                self.code.reconstruct(&mut shards).unwrap();
            }),
            Call::Read(to) => {
                *to = shards[..self.lost()].iter().flatten().flatten().copied().collect()
            }
        })
    }
}

fn compare(name: &str, original: Original, group: &Group) {
    let encoders = [group.encoder(), original.encoder(group)];
    report(name, "encode", group, encoders, &group.parity.concat());
    let decoders = [group.decoder(), original.decoder(group)];
    report(name, "reconstruct", group, decoders, &group.data[..group.lost()].concat());
}

fn report(name: &str, what: &str, group: &Group, works: [Work<'_>; 2], expected: &[u8]) {
    let bytes = group.data.len() * group.size;
    let times = BYTES_OF_A_RUN.div_ceil(bytes);
    let mut contestants = [OURS, "original"].into_iter().zip(works).map(|(name, mut work)| {
        let mut result = Vec::new();
        work(Call::Run(1));
        work(Call::Read(&mut result));
        assert!(result == expected, "{name}: {what}");
        Box::new(Repeated { name, times, work }) as Box<dyn Contestant + '_>
    });
    let mut contestants: [_; 2] = std::array::from_fn(|_| contestants.next().unwrap());
    let outcomes = contest(&mut contestants);
    assert_eq!(outcomes[0].name, OURS);
    let [ours, theirs] = [0, 1].map(|index| outcomes[index].seconds);
    let rate = |seconds: f64| bytes as f64 / seconds / 1e6;
    let shape = format!("{} + {}, {} bytes", group.data.len(), group.parity.len(), group.size);
    let (here, there, ratio) = (rate(ours), rate(theirs), theirs / ours);
    println!("{name:31} {shape:26} {what:11} {here:6.0} {there:6.0} {ratio:6.2}");
}

/// A piece of work, repeated until a clock can measure it.
struct Repeated<'g> {
    name: &'static str,
    times: usize,
    work: Work<'g>,
}

impl Contestant for Repeated<'_> {
    fn name(&self) -> &str {
        self.name
    }

    fn run(&mut self) {
        (self.work)(Call::Run(self.times));
    }

    fn pieces(&self) -> usize {
        self.times
    }
}
