//! RaptorQ beside the crate `raptorq`, in one run: throughput is of source data.
//!
//! `cargo bench -p fontana-fec`; a part of it: `cargo bench -p fontana-fec -- 'K=1000/'`.
//!
//! Encoding makes as many repair symbols as there are source symbols, from a plan made beforehand on
//! both sides, and in memory that is used again. Decoding replaces a share of the source symbols by repair symbols, evenly spread, and
//! includes planning; ours also copies each symbol in, as a receiver does from disk, while the peer
//! is handed packets that were allocated before the clock starts.
//!
//! The peer allocates its results anew each time, and with glibc's defaults most of that time goes to
//! the kernel. For a comparison of the codes, set `MALLOC_TRIM_THRESHOLD_=4000000000` and
//! `MALLOC_MMAP_THRESHOLD_=4000000000` in the environment.

#![allow(clippy::unwrap_used, missing_docs, reason = "a benchmark")]

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use fontana_fec::{Encoder, Esi, FecScheme, Memory, PlanCache, Progress};
use raptorq::{
    EncodingPacket, ObjectTransmissionInformation, PayloadId, SourceBlockDecoder,
    SourceBlockEncoder, SourceBlockEncodingPlan,
};

const SCHEME: FecScheme = FecScheme::RaptorQ { source_blocks: 1, sub_blocks: 1, alignment: 1 };
/// Fits an Ethernet frame.
const SYMBOL_SIZE: usize = 1280;

/// A block of `k` symbols that do not look alike.
fn block(k: u32) -> Vec<u8> {
    let mut state = 1_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..k as usize * SYMBOL_SIZE).map(|_| next()).collect()
}

fn slice(bytes: &[u8], index: u32) -> &[u8] {
    &bytes[index as usize * SYMBOL_SIZE..][..SYMBOL_SIZE]
}

fn config(block: &[u8]) -> ObjectTransmissionInformation {
    ObjectTransmissionInformation::new(block.len() as u64, SYMBOL_SIZE as u16, 1, 1, 1)
}

/// Writes `k` repair symbols, one after the other; hands the memory back.
fn repair_symbols(
    cache: &PlanCache,
    memory: Memory,
    block: &[u8],
    k: u32,
    out: &mut [u8],
) -> Memory {
    let plan = cache.source_plan(SCHEME, k).unwrap();
    let load = |esi: Esi, out: &mut [u8]| {
        out.copy_from_slice(slice(block, esi.0));
        Ok::<_, ()>(())
    };
    let esis: Vec<Esi> = (k..2 * k).map(Esi).collect();
    let intermediate = plan.execute_in(memory, SYMBOL_SIZE, load).unwrap();
    intermediate.write_symbols(&esis, out);
    intermediate.into_memory()
}

fn encode(criterion: &mut Criterion, k: u32) {
    let block = block(k);
    let cache = PlanCache::new(1);
    cache.source_plan(SCHEME, k).unwrap();
    let mut out = vec![0; block.len()];
    let mut group = criterion.benchmark_group(format!("encode K={k}"));
    group.throughput(Throughput::Bytes(block.len() as u64)).sample_size(10);
    let mut memory = Memory::default();
    group.bench_function("fontana", |b| {
        b.iter(|| {
            memory = repair_symbols(&cache, std::mem::take(&mut memory), &block, k, &mut out);
        });
    });
    let plan = SourceBlockEncodingPlan::generate(k as u16);
    group.bench_function("raptorq", |b| {
        b.iter(|| {
            let config = config(&block);
            SourceBlockEncoder::with_encoding_plan(0, &config, &block, &plan).repair_packets(0, k)
        });
    });
    group.finish();
}

fn decode(criterion: &mut Criterion, k: u32) {
    let block = block(k);
    let mut repair = vec![0; block.len()];
    let mut memory = repair_symbols(&PlanCache::new(1), Memory::default(), &block, k, &mut repair);
    let symbol = |esi: Esi| match esi.0.checked_sub(k) {
        None => slice(&block, esi.0),
        Some(index) => slice(&repair, index),
    };
    for percent in [50, 5, 1] {
        let lost = |esi: &u32| (esi + 1) * percent / 100 != esi * percent / 100;
        let count = (0..k).filter(lost).count() as u32;
        // One symbol more than needed, so that both sides succeed.
        let received: Vec<Esi> =
            (0..k).filter(|esi| !lost(esi)).chain(k..k + count + 1).map(Esi).collect();
        let mut out = vec![0; count as usize * SYMBOL_SIZE];

        let mut group = criterion.benchmark_group(format!("decode K={k}"));
        group.throughput(Throughput::Bytes(block.len() as u64)).sample_size(10);
        group.bench_function(BenchmarkId::new("fontana", format!("{percent}% lost")), |b| {
            b.iter(|| {
                let mut decoder = SCHEME.decoder(k).unwrap();
                for &esi in &received {
                    decoder.push(esi).unwrap();
                }
                let Progress::Solved(plan) = decoder.solve(SCHEME.work(k)) else {
                    unreachable!("one symbol more than needed")
                };
                let load = |esi: Esi, out: &mut [u8]| {
                    out.copy_from_slice(symbol(esi));
                    Ok::<_, ()>(())
                };
                let memory_before = std::mem::take(&mut memory);
                let decoded = plan.execute_in(memory_before, SYMBOL_SIZE, load).unwrap();
                decoded.write_symbols(plan.lost(), &mut out);
                memory = decoded.into_memory();
            });
        });
        for (esi, recovered) in (0..k).filter(lost).zip(out.chunks(SYMBOL_SIZE)) {
            assert!(recovered == slice(&block, esi), "symbol {esi}");
        }
        let packets: Vec<EncodingPacket> = (received.iter())
            .map(|&esi| EncodingPacket::new(PayloadId::new(0, esi.0), symbol(esi).to_vec()))
            .collect();
        group.bench_function(BenchmarkId::new("raptorq", format!("{percent}% lost")), |b| {
            b.iter_batched(
                || packets.clone(),
                |packets| {
                    let config = config(&block);
                    let mut decoder = SourceBlockDecoder::new(0, &config, block.len() as u64);
                    decoder.decode(packets).unwrap()
                },
                BatchSize::LargeInput,
            );
        });
        group.finish();
    }
}

fn benchmarks(criterion: &mut Criterion) {
    for k in [1_000, 10_000] {
        encode(criterion, k);
        decode(criterion, k);
    }
}

criterion_group!(benches, benchmarks);
criterion_main!(benches);
