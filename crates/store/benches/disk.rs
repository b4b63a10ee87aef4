//! Cost of the disk, relative to the code. Each line is a time per block, and its ratio to the same
//! work done in memory (or, for writing, to a plain write of the same bytes), measured in the same
//! run.
//! run.
//!
//! Run with `cargo bench -p fontana-store`. The files fit the page cache, so this measures system
//! calls and copies, not a device. `TMPDIR` chooses the file system.

#![allow(clippy::unwrap_used)]

use fontana_fec::codes::raptorq::RaptorQ;
use fontana_fec::{
    Esi, FecScheme, Intermediate, ObjectLayout, Oti, Plan, PlanCache, Progress, Sbn, Scratch, Work,
};
use fontana_proto::SymbolPlace;
use fontana_store::{
    Extents, FileAttributes, FileIndex, ObjectEncoder, ObjectSource, RecoveryMemory, RecoverySteps,
    SolvedStore, SourceFiles, StagedObject, Staging, StagingOptions, TargetDirectory, TargetName,
};
use std::collections::BTreeMap;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const SYMBOL_SIZE: usize = 1280;
const BLOCK: Sbn = Sbn(0);
/// A budget that holds any plan at full width.
const LARGE: usize = 1 << 30;

/// The least of several times, in milliseconds: the one with the least other load on the host.
fn milliseconds<T>(mut work: impl FnMut() -> T) -> f64 {
    let time = |_| {
        let begin = Instant::now();
        std::hint::black_box(work());
        begin.elapsed().as_secs_f64() * 1e3
    };
    (0..7).map(time).fold(f64::INFINITY, f64::min)
}

fn report(what: &str, time: f64, reference: f64) {
    println!("{what:<58} {time:8.2} ms {:6.2}", time / reference);
}

struct Block {
    layout: ObjectLayout,
    bytes: Vec<u8>,
    dir: tempfile::TempDir,
}

impl Block {
    fn new(source_symbols: usize) -> Self {
        let length = source_symbols * SYMBOL_SIZE;
        let bytes = (0..length as u64).map(|i| ((i * i) >> 7) as u8).collect();
        let scheme = FecScheme::RaptorQ(RaptorQ { source_blocks: 1, sub_blocks: 1, alignment: 4 });
        let oti = Oti { transfer_length: length as u64, symbol_size: 1280, scheme };
        Self { layout: oti.layout().unwrap(), bytes, dir: tempfile::tempdir().unwrap() }
    }

    fn extents(&self) -> Extents {
        Extents::whole_file(FileIndex(0), self.bytes.len() as u64)
    }

    fn symbol(&self, esi: Esi) -> &[u8] {
        &self.bytes[esi.0 as usize * SYMBOL_SIZE..][..SYMBOL_SIZE]
    }

    fn solve_in_memory(&self, plan: &Arc<Plan>) -> Intermediate {
        let load = |esi: Esi, out: &mut [u8]| {
            out.copy_from_slice(self.symbol(esi));
            Ok::<(), ()>(())
        };
        plan.execute(SYMBOL_SIZE, load, Scratch::default()).unwrap()
    }

    fn encode(&self, repairs: u32) {
        let path = self.dir.path().join("source");
        std::fs::write(&path, &self.bytes).unwrap();
        let mut files = SourceFiles::default();
        files.add(path).unwrap();
        let source = ObjectSource::new(Arc::new(files), self.layout, self.extents()).unwrap();
        let (source, plans) = (Arc::new(source), Arc::new(PlanCache::new(1)));
        let scheme = self.layout.oti().scheme;
        let k = self.layout.max_source_symbols();
        let plan = plans.source_plan(scheme, k).unwrap();
        let esis: Vec<Esi> = (k..k + repairs).map(Esi).collect();
        let mut out = vec![0; esis.len() * SYMBOL_SIZE];
        let memory = milliseconds(|| self.solve_in_memory(&plan).write_symbols(&esis, &mut out));
        let encoder =
            |kept| ObjectEncoder::new(source.clone(), plans.clone(), SolvedStore::new(kept));
        for (budget, what) in [(LARGE, "1 pass"), (plan.memory(256), "5 passes")] {
            let encoder = encoder(0);
            let time = milliseconds(|| encoder.encode(BLOCK, &esis, budget, &mut out).unwrap());
            report(&format!("encode K = {k}, {repairs} repair symbols, {what}"), time, memory);
        }
        let encoder = encoder(LARGE);
        let time = milliseconds(|| encoder.encode(BLOCK, &esis, LARGE, &mut out).unwrap());
        report(&format!("encode K = {k}, {repairs} repair symbols, block kept"), time, memory);
    }

    fn staged(&self) -> StagedObject {
        self.staged_in().1
    }

    fn staged_in(&self) -> (Arc<Staging>, StagedObject) {
        let target = Arc::new(TargetDirectory::open(self.dir.path().join("target")).unwrap());
        let staging = Staging::create(target, "bench", StagingOptions::default()).unwrap().0;
        let staging = Arc::new(staging);
        let name = TargetName::new(&["received"]).unwrap();
        staging.add_file(name, self.bytes.len() as u64, FileAttributes::default()).unwrap();
        let slots = self.layout.max_source_symbols() + 100;
        let object = StagedObject::new(staging.clone(), self.layout, self.extents(), slots);
        (staging, object.unwrap())
    }

    fn write(&self) {
        let k = self.layout.max_source_symbols();
        let plain = tempfile::tempfile_in(self.dir.path()).unwrap();
        let reference = milliseconds(|| {
            let chunks = self.bytes.chunks(SYMBOL_SIZE).zip(0_u64..);
            for (symbol, i) in chunks {
                plain.write_all_at(symbol, i * SYMBOL_SIZE as u64).unwrap();
            }
        });
        let object = self.staged();
        let one_by_one = milliseconds(|| {
            for esi in (0..k).map(Esi) {
                object.write_source(BLOCK, esi, self.symbol(esi)).unwrap();
            }
        });
        report(&format!("write K = {k}, symbols one by one"), one_by_one, reference);
        let runs = milliseconds(|| {
            for (i, run) in self.bytes.chunks(40 * SYMBOL_SIZE).enumerate() {
                object.write_source_run(BLOCK, Esi(40 * i as u32), run).unwrap();
            }
        });
        report(&format!("write K = {k}, runs of 40 symbols"), runs, reference);
    }

    /// Time spent in writing while another thread syncs for power failures, at the rate of a
    /// network of 1 Gbit/s. With and without syncing in alternating runs; prints the medians.
    fn write_beside_syncing(&self) {
        const PACE_BYTES_PER_SECOND: f64 = 125e6;
        const ROUNDS: usize = 30;
        let (staging, object) = self.staged_in();
        let write = |syncing: bool| {
            let stop = AtomicBool::new(false);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    while syncing && !stop.load(Ordering::Relaxed) {
                        std::thread::sleep(Duration::from_millis(250));
                        staging.sync().unwrap();
                    }
                });
                let begin = Instant::now();
                let (mut written, mut writing) = (0, Duration::ZERO);
                for (i, run) in
                    (0..ROUNDS).flat_map(|_| self.bytes.chunks(40 * SYMBOL_SIZE).enumerate())
                {
                    let due = Duration::from_secs_f64(written as f64 / PACE_BYTES_PER_SECOND);
                    std::thread::sleep(due.saturating_sub(begin.elapsed()));
                    let start = Instant::now();
                    object.write_source_run(BLOCK, Esi(40 * i as u32), run).unwrap();
                    writing += start.elapsed();
                    written += run.len();
                }
                stop.store(true, Ordering::Relaxed);
                [writing, begin.elapsed()].map(|time| time.as_secs_f64() * 1e3)
            })
        };
        let mut runs = [Vec::new(), Vec::new()];
        for _ in 0..5 {
            runs[0].push(write(false));
            staging.sync().unwrap();
            runs[1].push(write(true));
        }
        let median = |way: usize, what: usize| {
            let mut times: Vec<f64> = runs[way].iter().map(|run| run[what]).collect();
            times.sort_by(f64::total_cmp);
            times[times.len() / 2]
        };
        for (what, name) in ["in writes", "in all"].into_iter().enumerate() {
            let megabytes = (self.bytes.len() * ROUNDS) >> 20;
            let name = format!("{megabytes} MiB at 1 Gbit/s, synced 4 times a second: {name}");
            report(&name, median(1, what), median(0, what));
        }
    }

    /// Every `one_in`-th source symbol is lost.
    fn recover(&self, one_in: u32) {
        let k = self.layout.max_source_symbols();
        let scheme = self.layout.oti().scheme;
        let mut decoder = scheme.decoder(k).unwrap();
        let whole = self.solve_in_memory(&scheme.source_plan(k).unwrap());
        let object = self.staged();
        for esi in (0..k).filter(|esi| esi % one_in != 0).map(Esi) {
            decoder.push(esi).unwrap();
            object.write_source(BLOCK, esi, self.symbol(esi)).unwrap();
        }
        let (mut slots, mut symbols) = (BTreeMap::new(), BTreeMap::new());
        let plan = loop {
            if let Progress::Solved(plan) = decoder.solve(Work::UNBOUNDED) {
                break plan;
            }
            for _ in 0..decoder.symbols_wanted().max(1) {
                let (slot, mut symbol) = (slots.len() as u32, vec![0; SYMBOL_SIZE]);
                let esi = Esi(k + slot);
                decoder.push(esi).unwrap();
                whole.write_symbol(esi, &mut symbol);
                object.write_repair_run(BLOCK, slot, &symbol).unwrap();
                slots.insert(esi, slot);
                symbols.insert(esi, symbol);
            }
        };
        let mut out = vec![0; plan.lost().len() * SYMBOL_SIZE];
        let memory = milliseconds(|| {
            let load = |esi: Esi, out: &mut [u8]| {
                match symbols.get(&esi) {
                    Some(repair) => out.copy_from_slice(repair),
                    None => out.copy_from_slice(self.symbol(esi)),
                }
                Ok::<(), ()>(())
            };
            let recovered = plan.recover(SYMBOL_SIZE, load, Scratch::default()).unwrap();
            recovered.write_symbols(0..plan.lost().len(), &mut out);
        });
        let place = |esi| match slots.get(&esi) {
            Some(&slot) => SymbolPlace::RepairSlot(slot),
            None => SymbolPlace::InPlace,
        };
        let percent = 100 / one_in;
        for (budget, what) in [(LARGE, "1 pass"), (plan.memory(256), "5 passes")] {
            let mut used = RecoveryMemory::new(budget);
            let time = milliseconds(|| {
                let steps = RecoverySteps::all_of(&plan);
                object.recover_block(BLOCK, steps, &mut used, place, 0, |_| ()).unwrap()
            });
            report(&format!("recover K = {k}, {percent} % lost, {what}"), time, memory);
        }
        let mut received = Vec::new();
        object.for_each_chunk_of_block(BLOCK, |chunk| received.extend_from_slice(chunk)).unwrap();
        assert!(received == self.bytes);
    }
}

/// Files that are committed together, compared with the same files written, synced and renamed one
/// by one.
fn commit_small_files() {
    const FILES: u32 = 2000;
    let bytes = [7; 4000];
    let dir = tempfile::tempdir().unwrap();
    let (mut ours, mut plain) = (Vec::new(), Vec::new());
    for run in 0..5 {
        let into = dir.path().join(format!("plain {run}"));
        std::fs::create_dir(&into).unwrap();
        let begin = Instant::now();
        for number in 0..FILES {
            let staged = into.join("staged");
            let file = std::fs::File::create(&staged).unwrap();
            file.write_all_at(&bytes, 0).unwrap();
            file.sync_all().unwrap();
            std::fs::rename(staged, into.join(number.to_string())).unwrap();
        }
        plain.push(begin.elapsed().as_secs_f64() * 1e3);

        let target = TargetDirectory::open(dir.path().join(format!("ours {run}"))).unwrap();
        let staging =
            Staging::create(Arc::new(target), "bench", StagingOptions::default()).unwrap().0;
        let begin = Instant::now();
        let add = |number: u32| {
            let name = TargetName::new(&[number.to_string()]).unwrap();
            let length = bytes.len() as u64;
            let file = staging.add_file(name, length, FileAttributes::default()).unwrap();
            staging.write_file(file, 0, &bytes).unwrap();
            file
        };
        let files: Vec<FileIndex> = (0..FILES).map(add).collect();
        staging.commit(&files).unwrap();
        ours.push(begin.elapsed().as_secs_f64() * 1e3);
    }
    let median = |mut times: Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    report(&format!("write and commit {FILES} files of 4 kB"), median(ours), median(plain));
}

fn main() {
    commit_small_files();
    println!("{:<58} {:>11} {:>6}", "symbols of 1280 bytes", "time", "ratio");
    for source_symbols in [1_000, 10_000] {
        let block = Block::new(source_symbols);
        block.encode(16);
        block.encode(source_symbols as u32);
        block.write();
        block.recover(20);
        block.recover(2);
    }
    let block = Block::new(10_000);
    block.write_beside_syncing();
}
