//! Tornado and LT codes: speed in source data per second, planning on ids included, beside RaptorQ
//! and the machine's speed at adding rows, in one run and by processor time.
//!
//! `cargo bench -p fontana-fec --bench sparse`; a part of it: `... --bench sparse -- lt-fast`. The
//! block of a million symbols needs 4 GB: `... --bench sparse -- lt-fast-1000000`.

#![allow(clippy::unwrap_used, clippy::panic, missing_docs, reason = "a benchmark")]

#[path = "../../bench/src/contest.rs"]
#[allow(dead_code, reason = "names, where contestants are peers")]
mod contest;
#[path = "../../bench/src/limit.rs"]
#[allow(dead_code, reason = "its name, as above")]
mod limit;
#[path = "../../bench/src/workload.rs"]
#[allow(dead_code, reason = "the scenarios of other codes")]
mod workload;

use contest::{Contestant, contest};
use fontana_fec::lt::{Lt, Profile};
use fontana_fec::tornado::Tornado;
use fontana_fec::{Encoder, Esi, FecScheme, Intermediate, Memory, Plan, PlanCache, Progress, Work};
use limit::ReadingRows;
use std::convert::Infallible;
use std::sync::Arc;
use workload::{SYMBOL_SIZE, Workload, symbol};

const RAPTORQ: FecScheme = FecScheme::RaptorQ { source_blocks: 1, sub_blocks: 1, alignment: 1 };

/// Longest block that is measured without being asked for.
const LONG: u32 = 100_000;

/// Symbols are written this many at a time, as a sender does.
const BATCH: usize = 16_000;

fn main() {
    let lt = |code, k| FecScheme::Lt { max_source_block_length: k, code };
    let tornado = |code, k| FecScheme::Tornado { max_source_block_length: k, code };
    let mut cases = vec![
        ("tornado-z", 1_000, tornado(Tornado::Z, 1_000)),
        ("tornado-z", 16_000, tornado(Tornado::Z, 16_000)),
        ("tornado-4", 16_000, tornado(Tornado::new(4, 0).unwrap(), 16_000)),
        ("raptorq", 16_000, RAPTORQ),
    ];
    for k in [1_000, 10_000, 100_000, 1_000_000] {
        cases.push(("lt-fast", k, lt(Lt::fast(k, 1), k)));
        cases.push(("lt-strict", k, lt(Lt::strict(k, 1), k)));
    }
    let wanted: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    for (name, k, scheme) in cases {
        let name = format!("{name}-{k}");
        let is_wanted = wanted.iter().any(|wanted| name.contains(wanted));
        if is_wanted || (wanted.is_empty() && k <= LONG) {
            measure(&name, scheme, &Workload::new(k));
        }
    }
}

fn measure(name: &str, scheme: FecScheme, workload: &Workload) {
    let k = workload.k;
    let reception = Reception::new(scheme, workload);
    let mut contestants: [Box<dyn Contestant + '_>; 4] = [
        Box::new(Encoding::new(scheme, workload)),
        Box::new(Planning(&reception)),
        Box::new(Decoding::new(&reception)),
        Box::new(ReadingRows::new(k)),
    ];
    let outcomes = contest(&mut contestants);
    let times: Vec<f64> = outcomes.iter().map(|outcome| outcome.seconds).collect();
    let [encode, ids, decode, limit] = times[..] else { return };
    let bytes = workload.block.len() as f64;
    let rows = |time: f64| time / limit;
    println!(
        "{name:18} {:.4} k symbols  encode {:5.2} GB/s ({:4.1} rows)  decode {:5.2} GB/s ({:4.1} \
         rows), {:4.1} % of it ids  (rows at {:.0} GB/s)",
        reception.esis.len() as f64 / f64::from(k),
        bytes / encode / 1e9,
        rows(encode),
        bytes / decode / 1e9,
        rows(decode),
        100.0 * ids / decode,
        bytes / limit / 1e9,
    );
}

fn load(plan: &Arc<Plan>, memory: Memory, symbol: impl Fn(Esi, &mut [u8])) -> Intermediate {
    let load = |esi: Esi, out: &mut [u8]| {
        symbol(esi, out);
        Ok::<_, Infallible>(())
    };
    let Ok(block) = plan.execute_in(memory, SYMBOL_SIZE, load);
    block
}

/// `k` repair symbols, from a plan made beforehand.
struct Encoding<'a> {
    workload: &'a Workload,
    plan: Arc<Plan>,
    memory: Memory,
    esis: Vec<Esi>,
    out: Vec<u8>,
}

impl<'a> Encoding<'a> {
    fn new(scheme: FecScheme, workload: &'a Workload) -> Self {
        let k = workload.k;
        Self {
            workload,
            plan: PlanCache::new(1).source_plan(scheme, k).unwrap(),
            memory: Memory::default(),
            esis: (k..2 * k).map(Esi).collect(),
            out: vec![0; BATCH.min(k as usize) * SYMBOL_SIZE],
        }
    }
}

impl Contestant for Encoding<'_> {
    fn name(&self) -> &str {
        "encode"
    }

    fn run(&mut self) {
        let block = load(&self.plan, std::mem::take(&mut self.memory), |esi, out| {
            out.copy_from_slice(self.workload.symbol(esi));
        });
        for esis in self.esis.chunks(BATCH) {
            block.write_symbols(esis, &mut self.out[..esis.len() * SYMBOL_SIZE]);
        }
        self.memory = block.into_memory();
    }
}

/// As many symbols as it takes: of a Tornado code any, of RaptorQ half of the source symbols and then
/// repair symbols, of LT repair symbols.
struct Reception<'a> {
    scheme: FecScheme,
    workload: &'a Workload,
    esis: Vec<Esi>,
    repair: Vec<u8>,
    /// For each repair symbol, by number, where it is in `repair`.
    places: Vec<u32>,
    /// Keeps what decoders share while no decoder is there.
    _plan: Arc<Plan>,
}

impl<'a> Reception<'a> {
    fn new(scheme: FecScheme, workload: &'a Workload) -> Self {
        let k = workload.k;
        let plan = PlanCache::new(1).source_plan(scheme, k).unwrap();
        let candidates: Vec<u32> = match scheme {
            // An order that is no walk through the layers.
            FecScheme::Tornado { .. } => {
                let n = u64::from(scheme.encoding_symbols(k));
                (0..n).map(|i| (i * 7_919 % n) as u32).collect()
            }
            FecScheme::Lt { .. } => (k..4 * k).collect(),
            _ => (0..k).filter(|esi| esi % 2 == 0).chain(k..2 * k).collect(),
        };
        let mut decoder = scheme.decoder(k).unwrap();
        // What strict codes promise is with 1.05 k symbols.
        let at_least = if is_strict(scheme) { k as usize + k as usize / 20 } else { 0 };
        let mut esis = Vec::new();
        while !matches!(decoder.solve(Work::UNBOUNDED), Progress::Solved(_)) {
            let wanted = decoder.symbols_wanted() as usize;
            let next = &candidates[esis.len()..][..wanted];
            next.iter().for_each(|&esi| assert!(decoder.push(Esi(esi)).is_ok()));
            esis.extend(next.iter().copied().map(Esi));
        }
        let more = candidates.iter().copied().map(Esi).skip(esis.len());
        esis.extend(more.take(at_least.saturating_sub(esis.len())));
        esis.sort_unstable();
        let source = esis.partition_point(|esi| esi.0 < k);
        let mut places = vec![0; scheme.encoding_symbols(k).min(4 * k) as usize];
        for (place, esi) in (0..).zip(&esis[source..]) {
            places[(esi.0 - k) as usize] = place;
        }
        let block = load(&plan, Memory::default(), |esi, out| {
            out.copy_from_slice(workload.symbol(esi));
        });
        let mut repair = vec![0; (esis.len() - source) * SYMBOL_SIZE];
        block.write_symbols(&esis[source..], &mut repair);
        Self { scheme, workload, esis, repair, places, _plan: plan }
    }

    fn symbol(&self, esi: Esi) -> &[u8] {
        match esi.0.checked_sub(self.workload.k) {
            None => self.workload.symbol(esi),
            Some(repair) => symbol(&self.repair, self.places[repair as usize]),
        }
    }

    fn plan(&self) -> Arc<Plan> {
        let mut decoder = self.scheme.decoder(self.workload.k).unwrap();
        for &esi in &self.esis {
            decoder.push(esi).unwrap();
        }
        let Progress::Solved(plan) = decoder.solve(Work::UNBOUNDED) else { panic!("they suffice") };
        plan
    }
}

fn is_strict(scheme: FecScheme) -> bool {
    matches!(scheme, FecScheme::Lt { code: Lt { profile: Profile::Strict, .. }, .. })
}

struct Planning<'a>(&'a Reception<'a>);

impl Contestant for Planning<'_> {
    fn name(&self) -> &str {
        "ids"
    }

    fn run(&mut self) {
        self.0.plan();
    }
}

struct Decoding<'a> {
    reception: &'a Reception<'a>,
    memory: Memory,
    out: Vec<u8>,
}

impl<'a> Decoding<'a> {
    fn new(reception: &'a Reception<'a>) -> Self {
        let out = vec![0; BATCH.min(reception.workload.k as usize) * SYMBOL_SIZE];
        Self { reception, memory: Memory::default(), out }
    }
}

impl Contestant for Decoding<'_> {
    fn name(&self) -> &str {
        "decode"
    }

    fn run(&mut self) {
        let plan = self.reception.plan();
        let block = load(&plan, std::mem::take(&mut self.memory), |esi, out| {
            out.copy_from_slice(self.reception.symbol(esi));
        });
        for lost in plan.lost().chunks(BATCH) {
            let out = &mut self.out[..lost.len() * SYMBOL_SIZE];
            block.write_symbols(lost, out);
            let first = self.reception.workload.symbol(lost[0]);
            assert!(&out[..SYMBOL_SIZE] == first, "{:?}", lost[0]);
        }
        self.memory = block.into_memory();
    }
}
