//! What endpoints ask their drivers for, done on ids.

use fontana_fec::{Esi, Oti, Progress, Sbn, Work};
use fontana_proto::{
    BlockId, Done, Instant, Job, Kept, KeptBlock, Opening, Placement, Recipe, SymbolBytes,
    SymbolId, repair_slots,
};
use fontana_wire::{Hash, Manifest, Toi};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// Carries out an endpoint's jobs.
pub trait Jobs {
    /// Does `job`; `heard` is what was handled just before. What came of it, if that is to be told.
    ///
    /// # Errors
    /// What is wrong with a job that should never have been asked for.
    fn carry_out(
        &mut self,
        now: Instant,
        job: Job,
        heard: HeardBytes<'_>,
    ) -> Result<Option<Outcome>, &'static str>;

    /// Bytes of a symbol that was prepared.
    fn symbol_bytes(&self, symbol: &SymbolId) -> u32;
}

/// A datagram that an endpoint has heard, or nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct HeardBytes<'a> {
    /// UDP payload.
    pub bytes: &'a [u8],
    /// Bytes from here on are zeros, as symbols on ids are: nobody needs to read them to know.
    pub zeros_from: usize,
}

impl<'a> HeardBytes<'a> {
    /// Bytes of which nothing is known.
    pub const fn of(bytes: &'a [u8]) -> Self {
        Self { bytes, zeros_from: bytes.len() }
    }
}

/// What came of a job.
#[derive(Debug)]
pub struct Outcome {
    /// What the endpoint is told.
    pub done: Done,
    /// How long the work takes. Without any time, it is told before anything else happens.
    pub after: Duration,
}

/// What everybody in a run knows of its content: everything but the bytes.
#[derive(Clone, Debug, Default)]
pub struct IdContent {
    objects: BTreeMap<Toi, (Oti, Vec<Hash>)>,
}

impl IdContent {
    /// The objects of a manifest.
    pub fn of(manifest: &Manifest) -> Self {
        let mut content = Self::default();
        for object in manifest.objects() {
            content.add(Toi::from(object.toi), object.oti, object.block_hashes.clone());
        }
        content
    }

    /// One object more, with the hash that each of its blocks shall have.
    pub fn add(&mut self, toi: Toi, oti: Oti, block_hashes: Vec<Hash>) {
        self.objects.insert(toi, (oti, block_hashes));
    }

    fn oti(&self, toi: Toi) -> Option<Oti> {
        self.objects.get(&toi).map(|(oti, _)| *oti)
    }

    fn hash(&self, BlockId { toi, sbn: Sbn(sbn) }: BlockId) -> Option<Hash> {
        self.objects.get(&toi)?.1.get(sbn as usize).copied()
    }
}

/// Does jobs on ids alone: symbols are zeros, and a block has the hash that it shall have unless a
/// symbol that was placed for it is anything else, that is, was damaged on the way.
#[derive(Clone, Debug)]
pub struct IdJobs {
    content: Arc<IdContent>,
    /// Blocks with a symbol that is not what was sent.
    damaged: BTreeSet<BlockId>,
    /// What lies in staging, if that is watched.
    staging: Option<Box<Staging>>,
}

/// What a receiver has on its disk.
#[derive(Clone, Debug, Default)]
struct Staging {
    blocks: BTreeMap<BlockId, StagedBlock>,
    whole: BTreeSet<BlockId>,
    committed: Vec<Toi>,
}

#[derive(Clone, Debug, Default)]
struct StagedBlock {
    in_place: BTreeSet<Esi>,
    spool: BTreeMap<u32, Esi>,
}

impl IdJobs {
    /// For a sender or a receiver of `content`.
    pub fn new(content: Arc<IdContent>) -> Self {
        Self { content, damaged: BTreeSet::new(), staging: None }
    }

    /// Watches what a receiver keeps: that its plans use only what it has placed, that its spool
    /// stays within bounds. Takes memory for every symbol.
    pub fn watched(content: Arc<IdContent>) -> Self {
        Self { staging: Some(Box::default()), ..Self::new(content) }
    }

    /// The driver of the receiver's next life: what was on the disk is still there, if that was
    /// watched.
    pub fn next_life(&self) -> Self {
        self.clone()
    }

    /// What an earlier life has left.
    fn kept(&self) -> Kept {
        let mut kept = Kept::default();
        let Some(staging) = &self.staging else { return kept };
        kept.committed = staging.committed.clone();
        let whole = staging.whole.iter().map(|&block| KeptBlock {
            block,
            whole: true,
            in_place: Vec::new(),
            spooled: Vec::new(),
        });
        let begun = staging.blocks.iter().map(|(&block, staged)| KeptBlock {
            block,
            whole: false,
            in_place: staged.in_place.iter().copied().collect(),
            spooled: staged.spool.iter().map(|(&slot, &esi)| (esi, slot)).collect(),
        });
        kept.blocks = whole.chain(begun).collect();
        kept
    }

    fn place(
        &mut self,
        (block, esi): (BlockId, Esi),
        to: Placement,
        symbol: &SymbolBytes,
        heard: HeardBytes<'_>,
    ) -> Result<(), &'static str> {
        let maybe_damaged = match symbol {
            SymbolBytes::InDatagram(range) => {
                let symbol = heard.bytes.get(range.clone());
                let symbol = symbol.ok_or("a symbol outside the datagram")?;
                symbol.get(..heard.zeros_from.saturating_sub(range.start)).unwrap_or(symbol)
            }
            SymbolBytes::Kept(bytes) => bytes,
        };
        if maybe_damaged.iter().any(|&byte| byte != 0) {
            self.damaged.insert(block);
        }
        let Some(staging) = &mut self.staging else { return Ok(()) };
        let oti = self.content.oti(block.toi).ok_or("a symbol of an unknown object")?;
        let k = oti.layout().ok().and_then(|layout| layout.source_symbols(block.sbn));
        let k = k.ok_or("a symbol of an unknown block")?;
        let staged = staging.blocks.entry(block).or_default();
        match to {
            Placement::InPlace if esi.0 < k => {
                staged.in_place.insert(esi);
            }
            Placement::Spool(slot) if slot < repair_slots(oti.scheme, k) => {
                staged.spool.insert(slot, esi);
            }
            Placement::InPlace => return Err("a repair symbol in place"),
            Placement::Spool(_) => return Err("a slot beyond the spool"),
        }
        Ok(())
    }

    fn recover(
        &mut self,
        block: BlockId,
        recipe: Recipe,
        spool: &[Esi],
    ) -> Result<Done, &'static str> {
        let hash = self.content.hash(block).ok_or("a block of an unknown object")?;
        if let Some(staging) = &mut self.staging {
            let plan = match recipe {
                Recipe::Plan(plan) => plan,
                Recipe::Decoder(mut decoder) => match decoder.solve(Work::UNBOUNDED) {
                    Progress::Solved(plan) => plan,
                    _ => return Err("a block that was solved before and is not now"),
                },
            };
            let staged = staging.blocks.remove(&block).unwrap_or_default();
            let has = |esi: &Esi| {
                let spooled = || spool.iter().position(|spooled| spooled == esi);
                let there = |slot| staged.spool.get(&(slot as u32)) == Some(esi);
                staged.in_place.contains(esi) || spooled().is_some_and(there)
            };
            if !plan.lost().is_empty() && !plan.inputs().iter().all(has) {
                return Err("a plan that uses what was not placed");
            }
            let k = plan.source_symbols();
            let lost: BTreeSet<_> = plan.lost().iter().collect();
            // What an earlier life has recovered is there as a whole.
            let was_whole = staging.whole.contains(&block);
            let is_there = |esi| was_whole || staged.in_place.contains(&esi) || lost.contains(&esi);
            if !(0..k).map(Esi).all(is_there) {
                return Err("a plan that leaves a gap");
            }
            staging.whole.insert(block);
        }
        let hash = if self.damaged.contains(&block) { wrong(hash) } else { hash };
        Ok(Done::Recovered { block, hash })
    }

    fn settle(&mut self, block: BlockId, whole: bool) -> Result<(), &'static str> {
        let was_damaged = self.damaged.remove(&block);
        if whole && was_damaged {
            return Err("damaged bytes that count as verified");
        }
        if let Some(staging) = self.staging.as_mut().filter(|_| !whole) {
            staging.whole.remove(&block);
            staging.blocks.remove(&block);
        }
        Ok(())
    }
}

/// The hash of other bytes than those with this one.
fn wrong(Hash(mut bytes): Hash) -> Hash {
    if let Some(first) = bytes.first_mut() {
        *first ^= 1;
    }
    Hash(bytes)
}

impl Jobs for IdJobs {
    fn carry_out(
        &mut self,
        _now: Instant,
        job: Job,
        heard: HeardBytes<'_>,
    ) -> Result<Option<Outcome>, &'static str> {
        let done = match job {
            Job::Prepare { batch, .. } => Done::Prepared { batch },
            Job::Release { .. } => return Ok(None),
            Job::Open(opening) => {
                let kept = match opening {
                    Opening::Manifest(_) => self.kept(),
                    Opening::File { .. } | Opening::Compound { .. } | Opening::Fragment { .. } => {
                        Kept::default()
                    }
                };
                Done::Opened { toi: opening.toi(), kept }
            }
            Job::Place { block, esi, to, symbol } => {
                self.place((block, esi), to, &symbol, heard)?;
                return Ok(None);
            }
            Job::Solve { block, mut decoder, budget } => {
                let progress = decoder.solve(budget);
                Done::Solved { block, decoder, progress }
            }
            Job::Recover { block, recipe, spool } => self.recover(block, recipe, &spool)?,
            Job::Settle { block, whole } => {
                self.settle(block, whole)?;
                return Ok(None);
            }
            Job::Commit { toi } => {
                if let Some(staging) = &mut self.staging {
                    staging.committed.push(toi);
                }
                Done::Committed { toi }
            }
            Job::Finish => Done::Finished,
        };
        Ok(Some(Outcome { done, after: Duration::ZERO }))
    }

    fn symbol_bytes(&self, symbol: &SymbolId) -> u32 {
        self.content.oti(symbol.block.toi).map_or(0, |oti| oti.symbol_size.into())
    }
}
