//! Fontana's codes, all through the same interface.

use crate::contest::{Contestant, OURS};
use crate::reception::{OnIds, Receiving, Reception};
use crate::workload::{SYMBOL_SIZE, Scenario, Workload, symbol};
use fontana_fec::{Esi, FecScheme, Lent, Plan, PlanCache, Progress, Scratch, Work};
use std::sync::Arc;

/// A code of Fontana at work on `workload`, whose repair symbols have the ESIs from `k` on.
pub(crate) fn contestant<'a>(
    scheme: FecScheme,
    scenario: Scenario,
    workload: &'a Workload,
) -> Box<dyn Contestant + 'a> {
    match scenario {
        Scenario::Plan => Box::new(Planning { scheme, k: workload.k }),
        Scenario::Encode => Box::new(Encoding::new(scheme, workload)),
        Scenario::Decode { lost } => Box::new(Decoding::new(scheme, workload, lost)),
        Scenario::Receive => Box::new(Receiving::new(Reception::new(scheme, workload))),
        Scenario::ReceiveIds => Box::new(OnIds(Reception::new(scheme, workload))),
    }
}

struct Planning {
    scheme: FecScheme,
    k: u32,
}

impl Contestant for Planning {
    fn name(&self) -> &str {
        OURS
    }

    fn run(&mut self) {
        PlanCache::new(1).source_plan(self.scheme, self.k).unwrap();
    }
}

struct Encoding<'a> {
    workload: &'a Workload,
    plan: Arc<Plan>,
    scratch: Scratch,
    esis: Vec<Esi>,
    out: Vec<u8>,
}

impl<'a> Encoding<'a> {
    fn new(scheme: FecScheme, workload: &'a Workload) -> Self {
        let k = workload.k;
        // 127 of 128 for the longest block of Reed-Solomon.
        let end = (2 * k).min(scheme.block_profile(k).encoding_symbols);
        let esis: Vec<Esi> = (k..end).map(Esi).collect();
        Self {
            workload,
            plan: PlanCache::new(1).source_plan(scheme, k).unwrap(),
            scratch: Scratch::default(),
            out: vec![0; esis.len() * SYMBOL_SIZE],
            esis,
        }
    }
}

impl Contestant for Encoding<'_> {
    fn name(&self) -> &str {
        OURS
    }

    fn run(&mut self) {
        let scratch = std::mem::take(&mut self.scratch);
        let symbols = Lent(|esi| self.workload.symbol(esi));
        let Ok(block) = self.plan.execute(SYMBOL_SIZE, symbols, scratch);
        block.write_symbols(&self.esis, &mut self.out);
        self.scratch = block.into_scratch();
    }
}

struct Decoding<'a> {
    scheme: FecScheme,
    /// Shared by all blocks, as in a receiver of many blocks.
    plans: PlanCache,
    workload: &'a Workload,
    repair: Vec<u8>,
    received: Vec<Esi>,
    scratch: Scratch,
    out: Vec<u8>,
}

impl<'a> Decoding<'a> {
    fn new(scheme: FecScheme, workload: &'a Workload, percent: u32) -> Self {
        let mut encoding = Encoding::new(scheme, workload);
        encoding.run();
        let lost = workload.lost(percent);
        let here = (0..workload.k).map(Esi).filter(|esi| lost.binary_search(esi).is_err());
        let mut this = Self {
            scheme,
            plans: PlanCache::new(1),
            workload,
            repair: encoding.out,
            received: here.collect(),
            scratch: Scratch::default(),
            out: vec![0; lost.len() * SYMBOL_SIZE],
        };
        // One symbol more than the other implementations need, and more until they suffice.
        this.received.extend(&encoding.esis[..=lost.len()]);
        for &esi in &encoding.esis[lost.len() + 1..] {
            if this.solve().is_some() {
                break;
            }
            this.received.push(esi);
        }
        this.run();
        for (&esi, recovered) in lost.iter().zip(this.out.chunks(SYMBOL_SIZE)) {
            assert!(recovered == workload.symbol(esi), "{esi:?} of K = {}", workload.k);
        }
        this
    }

    fn solve(&self) -> Option<Arc<Plan>> {
        let mut decoder = self.plans.decoder(self.scheme, self.workload.k).unwrap();
        for &esi in &self.received {
            decoder.push(esi).unwrap();
        }
        match decoder.solve(Work::UNBOUNDED) {
            Progress::Solved(plan) => Some(plan),
            Progress::Wanting(_) | Progress::OutOfBudget => None,
        }
    }
}

impl Contestant for Decoding<'_> {
    fn name(&self) -> &str {
        OURS
    }

    fn run(&mut self) {
        let plan = self.solve().unwrap();
        let scratch = std::mem::take(&mut self.scratch);
        let received = |esi: Esi| match esi.0.checked_sub(self.workload.k) {
            None => self.workload.symbol(esi),
            Some(index) => symbol(&self.repair, index),
        };
        let Ok(recovered) = plan.recover(SYMBOL_SIZE, Lent(received), scratch);
        recovered.write_symbols(0..plan.lost().len(), &mut self.out);
        self.scratch = recovered.into_scratch();
    }
}
