//! Fontana's codes at a receiver: decoding from as many symbols as it needs.

use crate::contest::{Contestant, OURS};
use crate::workload::{SYMBOL_SIZE, Workload, symbol};
use fontana_fec::codes::lt::{Lt, LtCode, Profile};
use fontana_fec::{Esi, FecScheme, Lent, Plan, PlanCache, Progress, Scratch, Work};
use std::sync::Arc;

/// Recovered symbols per write, as in a receiver.
const BATCH: usize = 16_000;

/// For a Tornado code any symbols, for LT repair symbols, for others half of the source symbols and
/// then repair symbols.
pub(crate) struct Reception<'a> {
    scheme: FecScheme,
    workload: &'a Workload,
    esis: Vec<Esi>,
    repair: Vec<u8>,
    /// For each repair symbol, by number, its position in `repair`.
    places: Vec<u32>,
    /// Keeps what decoders share while there is no decoder.
    _plan: Arc<Plan>,
}

impl<'a> Reception<'a> {
    pub(crate) fn new(scheme: FecScheme, workload: &'a Workload) -> Self {
        let k = workload.k;
        let plan = PlanCache::new(1).source_plan(scheme, k).unwrap();
        let esis = sufficient(scheme, k);
        let source = esis.partition_point(|esi| esi.0 < k);
        let last = esis.last().map_or(0, |esi| esi.0);
        let mut places = vec![0; (last + 1).saturating_sub(k) as usize];
        for (place, esi) in (0..).zip(&esis[source..]) {
            places[(esi.0 - k) as usize] = place;
        }
        let Ok(block) =
            plan.execute(SYMBOL_SIZE, Lent(|esi| workload.symbol(esi)), Scratch::default());
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

/// In ascending order.
fn sufficient(scheme: FecScheme, k: u32) -> Vec<Esi> {
    let candidates: Vec<u32> = match scheme {
        // An order that does not follow the layers.
        FecScheme::Tornado(_) => {
            let n = u64::from(scheme.block_profile(k).encoding_symbols);
            (0..n).map(|i| (i * 7_919 % n) as u32).collect()
        }
        FecScheme::Lt(_) => (k..4 * k).collect(),
        _ => (0..k).filter(|esi| esi % 2 == 0).chain(k..2 * k).collect(),
    };
    let mut decoder = scheme.decoder(k).unwrap();
    let mut esis = Vec::new();
    while !matches!(decoder.solve(Work::UNBOUNDED), Progress::Solved(_)) {
        let wanted = decoder.symbols_wanted() as usize;
        let next = &candidates[esis.len()..][..wanted];
        next.iter().for_each(|&esi| assert!(decoder.push(Esi(esi)).is_ok()));
        esis.extend(next.iter().copied().map(Esi));
    }
    // Strict codes guarantee success with 1.05 k symbols.
    let at_least = if is_strict(scheme) { k as usize + k as usize / 20 } else { 0 };
    let more = candidates.iter().copied().map(Esi).skip(esis.len());
    esis.extend(more.take(at_least.saturating_sub(esis.len())));
    esis.sort_unstable();
    esis
}

fn is_strict(scheme: FecScheme) -> bool {
    matches!(scheme, FecScheme::Lt(Lt { code: LtCode { profile: Profile::Strict, .. }, .. }))
}

/// The part that is done on ids.
pub(crate) struct OnIds<'a>(pub(crate) Reception<'a>);

impl Contestant for OnIds<'_> {
    fn name(&self) -> &str {
        OURS
    }

    fn run(&mut self) {
        self.0.plan();
    }
}

/// The whole reception.
pub(crate) struct Receiving<'a> {
    reception: Reception<'a>,
    scratch: Scratch,
    out: Vec<u8>,
}

impl<'a> Receiving<'a> {
    pub(crate) fn new(reception: Reception<'a>) -> Self {
        let out = vec![0; BATCH.min(reception.workload.k as usize) * SYMBOL_SIZE];
        Self { reception, scratch: Scratch::default(), out }
    }
}

impl Contestant for Receiving<'_> {
    fn name(&self) -> &str {
        OURS
    }

    fn run(&mut self) {
        let plan = self.reception.plan();
        let scratch = std::mem::take(&mut self.scratch);
        let symbols = Lent(|esi| self.reception.symbol(esi));
        let Ok(recovered) = plan.recover(SYMBOL_SIZE, symbols, scratch);
        for (lost, first) in plan.lost().chunks(BATCH).zip((0..).step_by(BATCH)) {
            let out = &mut self.out[..lost.len() * SYMBOL_SIZE];
            recovered.write_symbols(first..first + lost.len(), out);
            let expected = self.reception.workload.symbol(lost[0]);
            assert!(&out[..SYMBOL_SIZE] == expected, "{:?}", lost[0]);
        }
        self.scratch = recovered.into_scratch();
    }
}
