//! Files are sent and received with lost symbols, and compared.

use crate::fixtures::{Random, name, raptorq, staging, staging_with, whole_file};
use fontana_fec::codes::no_code::NoCode;
use fontana_fec::codes::raptorq::RaptorQ;
use fontana_fec::{Esi, FecScheme, ObjectLayout, Oti, PlanCache, Progress, Sbn, Work};
use fontana_proto::SymbolPlace;
use fontana_store::{
    Extent, Extents, FileAttributes, FileIndex, ObjectEncoder, ObjectSource, RecoveryMemory,
    RecoverySteps, SolvedStore, SourceFiles, StagedObject, StagingOptions,
};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::Arc;

/// Parameters of a transfer.
#[derive(Clone, Debug)]
struct Transfer {
    oti: Oti,
    /// Percent of the source symbols that are lost (No-Code: that arrive late).
    loss: u64,
    /// Files that the object is split into.
    files: usize,
    /// Bytes for solving, at the sender and the receiver.
    budget: usize,
    seed: u64,
}

fn transfers() -> impl Strategy<Value = Transfer> {
    let raptorq = (1_u16..60, prop::sample::select(vec![1_u8, 2, 4, 8]), 1_u8..4, 1_u16..6);
    let raptorq = raptorq.prop_map(|(units, alignment, source_blocks, sub_blocks)| {
        let sub_blocks = sub_blocks.min(units);
        (
            units * u16::from(alignment),
            FecScheme::RaptorQ(RaptorQ { source_blocks, sub_blocks, alignment }),
        )
    });
    let no_code = (1_u16..400, 5_u32..100).prop_map(|(symbol_size, max_source_block_length)| {
        (symbol_size, FecScheme::NoCode(NoCode { max_source_block_length }))
    });
    let code = prop_oneof![3 => raptorq, 1 => no_code];
    let budget = prop::sample::select(vec![0, 10_000, usize::MAX]);
    (code, 3_u64..200, any::<u64>(), 0_u64..=100, 1_usize..5, budget).prop_map(
        |((symbol_size, scheme), symbols, seed, loss, files, budget)| {
            let transfer_length = symbols * u64::from(symbol_size) - seed % u64::from(symbol_size);
            let oti = Oti { transfer_length, symbol_size, scheme };
            Transfer { oti, loss, files, budget, seed }
        },
    )
}

/// Splits the object into `files` extents, each with other bytes before and after it in its file.
/// Returns the extents and each file's contents.
fn files(bytes: &[u8], files: usize, random: &mut Random) -> (Vec<Extent>, Vec<Vec<u8>>) {
    let mut cuts: Vec<usize> =
        (1..files).map(|_| random.below(bytes.len() as u64 + 1) as usize).collect();
    cuts.extend([0, bytes.len()]);
    cuts.sort_unstable();
    let part = |(i, cut): (usize, &[usize])| {
        let (before, behind) = (random.below(3) as usize, random.below(3) as usize);
        let part = &bytes[cut[0]..cut[1]];
        let (offset, length) = (before as u64, part.len() as u64);
        let extent = Extent { file: FileIndex(i as u32), offset, length };
        (extent, [&vec![0; before], part, &vec![0; behind]].concat())
    };
    cuts.windows(2).enumerate().map(part).unzip()
}

struct Receiver<'m> {
    object: StagedObject,
    random: Random,
    transfer: Transfer,
    memory: &'m mut RecoveryMemory,
}

impl Receiver<'_> {
    /// Receives a block: some source symbols one by one and in runs, in any order, then repair
    /// symbols until it can be solved.
    fn receive(&mut self, encoder: &ObjectEncoder, sbn: Sbn) {
        let layout: ObjectLayout = *self.object.layout();
        let size = usize::from(layout.oti().symbol_size);
        let k = layout.source_symbols(sbn).unwrap();
        let mut decoder = layout.oti().scheme.decoder(k).unwrap();
        let mut arrived: Vec<u32> =
            (0..k).filter(|_| self.random.below(100) >= self.transfer.loss).collect();
        if let FecScheme::NoCode(_) = layout.oti().scheme {
            arrived = (0..k).collect();
        }
        let mut runs: Vec<Vec<Esi>> = arrived
            .chunk_by(|a, b| b == &(a + 1))
            .map(|run| run.iter().map(|&esi| Esi(esi)).collect())
            .collect();
        self.random.shuffle(&mut runs);
        for run in runs {
            let mut symbols = vec![0; run.len() * size];
            encoder.encode(sbn, &run, self.transfer.budget, &mut symbols).unwrap();
            if self.random.below(2) == 0 {
                self.object.write_source_run(sbn, run[0], &symbols).unwrap();
            } else {
                for (&esi, symbol) in run.iter().zip(symbols.chunks(size)) {
                    self.object.write_source(sbn, esi, symbol).unwrap();
                }
            }
            for &esi in &run {
                decoder.push(esi).unwrap();
            }
        }
        let mut slots = BTreeMap::new();
        let mut next = k + self.random.below(1000) as u32;
        let plan = loop {
            if let Progress::Solved(plan) = decoder.solve(Work::UNBOUNDED) {
                break plan;
            }
            let esis: Vec<Esi> =
                (next..).take(decoder.symbols_wanted().max(1) as usize).map(Esi).collect();
            next += esis.len() as u32;
            let mut symbols = vec![0; esis.len() * size];
            encoder.encode(sbn, &esis, self.transfer.budget, &mut symbols).unwrap();
            for (&esi, symbol) in esis.iter().zip(symbols.chunks(size)) {
                let slot = slots.len() as u32;
                self.object.write_repair_run(sbn, slot, symbol).unwrap();
                slots.insert(esi, slot);
                decoder.push(esi).unwrap();
            }
        };
        let place = |esi: Esi| match slots.get(&esi) {
            Some(&slot) => SymbolPlace::RepairSlot(slot),
            None => SymbolPlace::InPlace,
        };
        let mut block = Vec::new();
        self.object.for_each_chunk_of_block(sbn, |bytes| block.extend_from_slice(bytes)).unwrap();
        let from = self.random.below(block.len() as u64 + 1);
        let mut shown = Vec::new();
        let show = |bytes: &[u8]| shown.extend_from_slice(bytes);
        // Some of the lost symbols have arrived since, and are not written again.
        let mut late = plan.lost().to_vec();
        late.retain(|_| self.random.below(4) == 0);
        for &esi in &late {
            let mut symbol = vec![0; size];
            encoder.encode(sbn, &[esi], self.transfer.budget, &mut symbol).unwrap();
            self.object.write_source(sbn, esi, &symbol).unwrap();
        }
        let steps = RecoverySteps { plan: &plan, arrived: &late };
        self.object.recover_block(sbn, steps, self.memory, place, from, show).unwrap();
        let (retained, budget) = (self.memory.bytes(), self.transfer.budget);
        assert!(retained <= budget, "{retained} bytes are retained of {budget}");
        block.clear();
        self.object.for_each_chunk_of_block(sbn, |bytes| block.extend_from_slice(bytes)).unwrap();
        assert!(shown == block[from as usize..], "the bytes on the disk are passed on");
        self.object.free_repair(sbn).unwrap();
    }
}

fn run(transfer: &Transfer) {
    run_in(&mut RecoveryMemory::new(transfer.budget), transfer);
}

/// Recovers blocks in this memory, whose budget is the transfer's.
fn run_in(memory: &mut RecoveryMemory, transfer: &Transfer) {
    let mut random = Random::new(transfer.seed);
    let bytes = random.bytes(transfer.oti.transfer_length as usize);
    let layout = transfer.oti.layout().unwrap();
    let (extents, contents) = files(&bytes, transfer.files, &mut random);
    let extents = Extents::new(extents).unwrap();
    let dir = tempfile::tempdir().unwrap();

    let mut sources = SourceFiles::new(2);
    for (i, content) in contents.iter().enumerate() {
        let path = dir.path().join(format!("source {i}"));
        std::fs::write(&path, content).unwrap();
        sources.add(path).unwrap();
    }
    let source = ObjectSource::new(Arc::new(sources), layout, extents.clone()).unwrap();
    let (plans, allowance) = (Arc::new(PlanCache::new(2)), SolvedStore::new(transfer.budget / 2));
    let encoder = ObjectEncoder::new(Arc::new(source), plans, allowance);

    let target = dir.path().join("target");
    let staging = staging(&target);
    let mut indices = Vec::new();
    for (i, content) in contents.iter().enumerate() {
        let attributes = FileAttributes::default();
        let name = name(&format!("received {i}"));
        indices.push(staging.add_file(name, content.len() as u64, attributes).unwrap());
    }
    let slots = 2 * layout.max_source_symbols() + 100;
    let object = StagedObject::new(staging.clone(), layout, extents, slots).unwrap();
    let mut receiver = Receiver { object, random, transfer: transfer.clone(), memory };
    let mut blocks: Vec<Sbn> = (0..layout.block_count()).map(Sbn).collect();
    receiver.random.shuffle(&mut blocks);
    for sbn in blocks {
        receiver.receive(&encoder, sbn);
        let (mut sent, mut received) = (Vec::new(), Vec::new());
        encoder.source().for_each_chunk_of_block(sbn, |b| sent.extend_from_slice(b)).unwrap();
        receiver.object.for_each_chunk_of_block(sbn, |b| received.extend_from_slice(b)).unwrap();
        assert!(sent == received, "block {sbn:?} differs");
    }
    receiver.object.remove_spool().unwrap();
    staging.commit(&indices).unwrap();
    staging.remove().unwrap();
    for (i, content) in contents.iter().enumerate() {
        assert!(&std::fs::read(target.join(format!("received {i}"))).unwrap() == content);
    }
    assert_eq!(crate::fixtures::names_in(&target).len(), contents.len());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn files_are_received_with_any_losses(transfer in transfers()) {
        run(&transfer);
    }
}

#[test]
fn bytes_beyond_4_gib_are_written_to_their_offsets() {
    let length = (6 << 30) + 1;
    let layout = raptorq(length, 1024, 120, 1);
    let sbn = Sbn(119);
    let last = Esi(layout.source_symbols(sbn).unwrap() - 1);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("source");
    let file = std::fs::File::create(&path).unwrap();
    file.set_len(length).unwrap();
    file.write_all_at(b"before the end!\xff", length - 16).unwrap();
    let mut files = SourceFiles::default();
    files.add(path).unwrap();
    let source = ObjectSource::new(Arc::new(files), layout, whole_file(length)).unwrap();
    let encoder =
        ObjectEncoder::new(Arc::new(source), Arc::new(PlanCache::new(1)), SolvedStore::new(0));
    let mut symbols = [0; 2048];
    encoder.encode(sbn, &[Esi(last.0 - 1), last], 0, &mut symbols).unwrap();
    assert_eq!(&symbols[1009..1026], b"before the end!\xff\0");

    let target = dir.path().join("target");
    let options = StagingOptions { reserve: false, ..StagingOptions::default() };
    let staging = staging_with(&target, options).unwrap();
    let file = staging.add_file(name("file"), length, FileAttributes::default()).unwrap();
    let object = StagedObject::new(staging.clone(), layout, whole_file(length), 60_000).unwrap();
    object.write_source_run(sbn, Esi(last.0 - 1), &symbols).unwrap();
    object.write_repair_run(sbn, 59_999, &symbols[..1024]).unwrap();
    staging.commit(&[file]).unwrap();
    let received = std::fs::File::open(target.join("file")).unwrap();
    let mut end = [0; 17];
    assert_eq!(received.read_at(&mut end, length - 16).unwrap(), 16);
    assert_eq!(&end, b"before the end!\xff\0");
    assert!(received.metadata().unwrap().blocks() < 1000, "the rest is a hole");
}

#[test]
fn wide_symbols_of_many_sub_blocks_are_recovered_in_narrow_passes() {
    let scheme = FecScheme::RaptorQ(RaptorQ { source_blocks: 1, sub_blocks: 7, alignment: 4 });
    let oti = Oti { transfer_length: 300_001, symbol_size: 1280, scheme };
    for budget in [0, 200_000, usize::MAX] {
        run(&Transfer { oti, loss: 50, files: 3, budget, seed: 1 });
    }
}

/// Blocks of many short symbols, of which few are lost, and of one long symbol, which has 27 rows
/// of intermediate symbols.
#[test]
fn memory_of_blocks_of_other_shapes_does_not_add_up() {
    let budget = 1 << 20;
    let memory = &mut RecoveryMemory::new(budget);
    let (many, one) = ((700_000, 1_000, 3), (22_000, 22_000, 100));
    for (transfer_length, symbol_size, loss) in [many, one, many] {
        let scheme = FecScheme::RaptorQ(RaptorQ { source_blocks: 1, sub_blocks: 1, alignment: 1 });
        let oti = Oti { transfer_length, symbol_size, scheme };
        run_in(memory, &Transfer { oti, loss, files: 1, budget, seed: 4 });
        println!("{} bytes are retained", memory.bytes());
        assert!(memory.bytes() > budget / 2, "one shape is retained");
    }
}

#[test]
fn the_smallest_and_the_widest_symbols_are_transferred() {
    for symbol_size in [1, u16::MAX] {
        for transfer_length in [1, 10 * u64::from(symbol_size)] {
            let scheme =
                FecScheme::RaptorQ(RaptorQ { source_blocks: 1, sub_blocks: 1, alignment: 1 });
            let oti = Oti { transfer_length, symbol_size, scheme };
            run(&Transfer { oti, loss: 100, files: 1, budget: 0, seed: 3 });
        }
    }
}
