//! Plans that many blocks share.

use super::Plan;
use crate::code::{BlockLengthError, Decoder};
use crate::codes::raptorq::{FullBlock, Params, RaptorQDecoder};
use crate::codes::reed_solomon::ReedSolomonCode;
use crate::codes::tornado::Tornado;
use crate::oti::FecScheme;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Plans of full blocks, which encoders need, shared among blocks of equal length: the blocks of an
/// object have at most two lengths, and the work of planning is that of some hundred symbols at
/// least.
///
/// Holds a limited number of plans and forgets the one that was used least recently. Threads that
/// ask for the same plan at once wait for one of them to make it.
pub struct PlanCache {
    limit: usize,
    plans: Mutex<Cached>,
}

/// What is expensive about a plan.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    /// RaptorQ's program and rows of its matrix, by `K'`.
    RaptorQ(u32),
    /// The graph of a code, by `k`, and the sums of its first checks.
    Tornado(Tornado, u32),
    /// The factors of a code's repair symbols, by `k`.
    ReedSolomon(ReedSolomonCode, u32),
}

#[derive(Default)]
struct Cached {
    clock: u64,
    entries: BTreeMap<Key, Entry>,
}

struct Entry {
    last_used: u64,
    made: Arc<Made>,
}

/// What a key stands for, once it was made.
#[derive(Default)]
struct Made {
    /// Decoders hold on to it.
    full: OnceLock<Arc<FullBlock>>,
    plan: OnceLock<Arc<Plan>>,
}

impl PlanCache {
    /// An empty cache for the plans of `limit` different block lengths, at least one. A plan takes
    /// about 80 bytes per source symbol, with Tornado codes 100 for each unit of the stretch factor:
    /// 4.5 MB for the longest blocks of RaptorQ, and as it is used a megabyte more.
    pub fn new(limit: usize) -> Self {
        Self { limit: limit.max(1), plans: Mutex::default() }
    }

    /// The plan of a block of `source_symbols` that are all at hand, ready to be executed.
    ///
    /// # Errors
    /// [`BlockLengthError`] if the code has no such block.
    pub fn source_plan(
        &self,
        scheme: FecScheme,
        source_symbols: u32,
    ) -> Result<Arc<Plan>, BlockLengthError> {
        scheme.check_block_length(source_symbols)?;
        Ok(match scheme {
            FecScheme::NoCode { .. } => Arc::new(Plan::no_code(source_symbols)),
            FecScheme::RaptorQ { .. } => {
                let program = OnceLock::from(Arc::clone(self.full(source_symbols).program()));
                Arc::new(Plan::raptorq_source(source_symbols, program))
            }
            FecScheme::Tornado { code, .. } => {
                let make = || Arc::new(Plan::tornado_source(code.shared_graph(source_symbols)));
                let made = self.made(Key::Tornado(code, source_symbols));
                Arc::clone(made.plan.get_or_init(make))
            }
            // Cheap to make: what is large about an LT code is its rows, and nobody keeps them.
            FecScheme::Lt { code, .. } => Arc::new(Plan::lt_source(code, source_symbols)?),
            FecScheme::ReedSolomon { code, .. } => {
                let make = || Plan::reed_solomon(code, source_symbols, Vec::new(), &[]);
                let made = self.made(Key::ReedSolomon(code, source_symbols));
                Arc::clone(made.plan.get_or_init(|| Arc::new(make())))
            }
        })
    }

    /// An empty decoder for a block of `source_symbols`, which uses the plan of the full block where
    /// that is the faster way, and shares it.
    ///
    /// # Errors
    /// [`BlockLengthError`] if the code has no such block.
    pub fn decoder(
        &self,
        scheme: FecScheme,
        source_symbols: u32,
    ) -> Result<Box<dyn Decoder>, BlockLengthError> {
        let FecScheme::RaptorQ { .. } = scheme else { return scheme.decoder(source_symbols) };
        scheme.check_block_length(source_symbols)?;
        Ok(Box::new(RaptorQDecoder::new(source_symbols, self.full(source_symbols))))
    }

    /// What all blocks that are as long share.
    fn full(&self, source_symbols: u32) -> Arc<FullBlock> {
        let params = Params::covering(source_symbols);
        let made = self.made(Key::RaptorQ(params.k_prime));
        Arc::clone(made.full.get_or_init(|| Arc::new(FullBlock::new(params))))
    }

    /// Where what `key` stands for is, or will be: it is made outside the lock.
    fn made(&self, key: Key) -> Arc<Made> {
        let mut cached = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        cached.clock += 1;
        let now = cached.clock;
        if cached.entries.len() >= self.limit && !cached.entries.contains_key(&key) {
            let oldest = cached.entries.iter().min_by_key(|(_, entry)| entry.last_used);
            if let Some(oldest) = oldest.map(|(&key, _)| key) {
                cached.entries.remove(&oldest);
            }
        }
        let entry = cached
            .entries
            .entry(key)
            .or_insert_with(|| Entry { last_used: now, made: Arc::default() });
        entry.last_used = now;
        Arc::clone(&entry.made)
    }
}

impl std::fmt::Debug for PlanCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PlanCache").field("limit", &self.limit).finish_non_exhaustive()
    }
}
