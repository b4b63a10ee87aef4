//! The job runner of simulations, on ids without bytes.

use fontana_fec::{Esi, Located, Location, Locator, Oti, Sbn};
use fontana_proto::report::unverified_call;
use fontana_proto::{
    BlockId, BlockOutcome, Committed, DatagramBatch, Finished, Instant, JobRunner, Opening,
    PlacedRun, ReceiveDone, ReceiveJob, Recipe, Saved, SavedBlock, Search, SendDone, SendJob,
    SymbolBytes, SymbolId, SymbolPlace, repair_slots,
};
use fontana_wire::{Hash, Manifest, Toi};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A datagram that is delivered to a simulated host.
#[derive(Clone, Copy, Debug)]
pub struct Delivery<'a> {
    /// A batch of one datagram.
    pub batch: DatagramBatch<'a>,
    /// All bytes of the slab from this index on are zeros and need not be read.
    pub zeros_from: u32,
}

/// What a simulation needs of a job runner in addition to running jobs.
pub trait SimulatedRunner {
    /// The jobs that follow result from this datagram.
    fn begin_delivery(&mut self, _delivery: &Delivery<'_>) {}
    /// Number of bytes of a prepared symbol.
    fn symbol_bytes(&self, symbol: &SymbolId) -> u32;
    /// Appends the bytes of a prepared symbol to its header, in runs on bytes: they are then no
    /// [`symbol_bytes`](Self::symbol_bytes).
    fn write_symbol(&self, _symbol: &SymbolId, _header: &mut Vec<u8>) {}
}

/// The content of a session without its bytes: parameters of its objects and hashes of their
/// blocks.
#[derive(Clone, Debug, Default)]
pub struct IdContent {
    objects: BTreeMap<Toi, IdObject>,
}

#[derive(Clone, Debug)]
struct IdObject {
    oti: Oti,
    block_hashes: Vec<Hash>,
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

    /// Adds an object, with the hash of each of its blocks.
    pub fn add(&mut self, toi: Toi, oti: Oti, block_hashes: Vec<Hash>) {
        self.objects.insert(toi, IdObject { oti, block_hashes });
    }

    fn oti(&self, toi: Toi) -> Option<Oti> {
        self.objects.get(&toi).map(|object| object.oti)
    }

    fn hash(&self, BlockId { toi, sbn: Sbn(sbn) }: BlockId) -> Option<Hash> {
        self.objects.get(&toi)?.block_hashes.get(sbn as usize).copied()
    }
}

/// Runs jobs on ids alone. All symbols are zeros. The hash of a block is the right one unless it
/// was recovered from a symbol that has other bytes, that is, was damaged in transit. A search
/// finds the damaged symbols as if their errors were linearly independent.
#[derive(Clone, Debug)]
pub struct IdRunner {
    content: Arc<IdContent>,
    /// [`Delivery::zeros_from`] of the datagram that was handled last.
    zeros_from: u32,
    /// The damaged symbols of blocks.
    damaged: BTreeMap<BlockId, BTreeSet<Esi>>,
    /// Blocks that were recovered last from damaged symbols.
    wrong: BTreeSet<BlockId>,
    /// The staged symbols; `None` if they are not checked.
    staging: Option<Box<Staging>>,
}

/// The disk of a receiver.
#[derive(Clone, Debug, Default)]
struct Staging {
    blocks: BTreeMap<BlockId, StagedBlock>,
    complete: BTreeSet<BlockId>,
    committed: Vec<Toi>,
}

#[derive(Clone, Debug, Default)]
struct StagedBlock {
    in_place: BTreeSet<Esi>,
    repair: BTreeMap<u32, Esi>,
}

impl IdRunner {
    /// A runner for a sender or a receiver of `content`.
    pub fn new(content: Arc<IdContent>) -> Self {
        Self {
            content,
            zeros_from: u32::MAX,
            damaged: BTreeMap::new(),
            wrong: BTreeSet::new(),
            staging: None,
        }
    }

    /// A runner that checks what a receiver stores: its plans use only symbols that it placed, and
    /// repair symbols stay within their slots. Takes memory for each symbol.
    pub fn watched(content: Arc<IdContent>) -> Self {
        Self { staging: Some(Box::default()), ..Self::new(content) }
    }

    /// The runner of a receiver whose disk has these blocks, for example of an earlier version.
    pub fn holding(content: Arc<IdContent>, blocks: impl IntoIterator<Item = BlockId>) -> Self {
        let complete = blocks.into_iter().collect();
        let staging = Some(Box::new(Staging { complete, ..Staging::default() }));
        Self { staging, ..Self::new(content) }
    }

    /// The runner of a receiver whose disk has these source symbols, too.
    #[must_use]
    pub fn with_parts(mut self, parts: impl IntoIterator<Item = (BlockId, Vec<Esi>)>) -> Self {
        let staging = self.staging.get_or_insert_default();
        for (block, esis) in parts {
            staging.blocks.entry(block).or_default().in_place.extend(esis);
        }
        self
    }

    /// The runner of the receiver's next run. It has the disk of this one, if that is checked.
    pub fn restarted(&self) -> Self {
        self.clone()
    }

    /// What an earlier run saved.
    fn saved(&self) -> Saved {
        let mut saved = Saved::default();
        let Some(staging) = &self.staging else { return saved };
        saved.committed = staging.committed.clone();
        let complete = staging.complete.iter().map(|&block| SavedBlock {
            block,
            is_complete: true,
            in_place: Vec::new(),
            repair: Vec::new(),
        });
        let begun = staging.blocks.iter().map(|(&block, staged)| SavedBlock {
            block,
            is_complete: false,
            in_place: staged.in_place.iter().copied().collect(),
            repair: staged.repair.iter().map(|(&slot, &esi)| (esi, slot)).collect(),
        });
        saved.blocks = complete.chain(begun).collect();
        saved
    }

    fn place(&mut self, run: &PlacedRun, batch: &DatagramBatch<'_>) -> Result<(), &'static str> {
        let block = run.block;
        for ((symbol, index), (esi, _)) in run.symbols(batch.slab).zip(0..).zip(run.ids()) {
            let symbol = symbol.ok_or("a symbol outside the slab")?;
            let read = match &run.bytes {
                SymbolBytes::InSlab(at) => {
                    self.zeros_from.saturating_sub(at.start + index * at.stride) as usize
                }
                SymbolBytes::Saved(_) => symbol.len(),
            };
            let maybe_damaged = symbol.get(..read).unwrap_or(symbol);
            if maybe_damaged.iter().any(|&byte| byte != 0) {
                self.damaged.entry(block).or_default().insert(esi);
            } else if !self.damaged.is_empty()
                && let Some(damaged) = self.damaged.get_mut(&block)
            {
                damaged.remove(&esi);
            }
        }
        let Some(staging) = &mut self.staging else { return Ok(()) };
        let oti = self.content.oti(block.toi).ok_or("a symbol of an unknown object")?;
        let k = oti.layout().ok().and_then(|layout| layout.source_symbols(block.sbn));
        let k = k.ok_or("a symbol of an unknown block")?;
        let staged = staging.blocks.entry(block).or_default();
        for (esi, to) in run.ids() {
            match to {
                SymbolPlace::InPlace if esi.0 < k => {
                    staged.in_place.insert(esi);
                }
                SymbolPlace::RepairSlot(slot) if slot < repair_slots(oti.scheme, k) => {
                    staged.repair.insert(slot, esi);
                }
                SymbolPlace::InPlace => return Err("a repair symbol in place"),
                SymbolPlace::RepairSlot(_) => return Err("a slot beyond those of the block"),
            }
        }
        Ok(())
    }

    fn recover(
        &mut self,
        block: BlockId,
        recipe: Recipe,
        repair: &[Esi],
        arrived: &[Esi],
    ) -> Result<ReceiveDone, &'static str> {
        const UNSOLVED: &str = "a block that was solved before and is not now";
        let hash = self.content.hash(block).ok_or("a block of an unknown object")?;
        let damaged = self.damaged.get(&block).filter(|damaged| !damaged.is_empty());
        if self.staging.is_none() && damaged.is_none() {
            return Ok(ReceiveDone::Recovered { block, hash });
        }
        let plan = recipe.into_plan().ok_or(UNSOLVED)?;
        let is_in_block = |esi: &Esi| {
            // Source symbols that are available are in the block even if the plan reads others.
            let is_source = esi.0 < plan.source_symbols();
            let is_lost = plan.lost().contains(esi) && !arrived.contains(esi);
            if is_source { !is_lost } else { plan.inputs().contains(esi) }
        };
        let is_damaged = damaged.is_some_and(|damaged| damaged.iter().any(is_in_block));
        if let Some(staging) = &self.staging {
            let nothing = StagedBlock::default();
            let staged = staging.blocks.get(&block).unwrap_or(&nothing);
            let has = |esi: &Esi| {
                let slot = || repair.iter().position(|placed| placed == esi);
                let is_stored = |slot| staged.repair.get(&(slot as u32)) == Some(esi);
                staged.in_place.contains(esi) || slot().is_some_and(is_stored)
            };
            if !plan.lost().is_empty() && !plan.inputs().iter().all(has) {
                return Err("a plan that uses what was not placed");
            }
            let k = plan.source_symbols();
            let lost: BTreeSet<_> = plan.lost().iter().collect();
            // A block that an earlier run recovered is complete.
            let was_complete = staging.complete.contains(&block);
            let is_there =
                |esi| was_complete || staged.in_place.contains(&esi) || lost.contains(&esi);
            if !(0..k).map(Esi).all(is_there) {
                return Err("a plan that leaves a gap");
            }
        }
        if is_damaged {
            self.wrong.insert(block);
        } else {
            self.wrong.remove(&block);
        }
        let hash = if is_damaged { wrong(hash) } else { hash };
        Ok(ReceiveDone::Recovered { block, hash })
    }

    /// Finds the damaged symbols if so many surplus symbols are enough.
    fn locate(&self, mut search: Search) -> Result<ReceiveDone, &'static str> {
        let block = search.block;
        let k = self
            .content
            .oti(block.toi)
            .and_then(|oti| oti.layout().ok()?.source_symbols(block.sbn));
        let k = k.ok_or("a search of an unknown block")?;
        let Some(least) = Locator::least_surplus(&search.profile, k) else {
            return Ok(ReceiveDone::Located { block, location: Location::Unsupported });
        };
        let locator = match search.locator() {
            Ok(locator) => locator,
            Err(location) => return Ok(ReceiveDone::Located { block, location }),
        };
        let surplus = locator.surplus().len() as u32;
        let damaged = self.damaged.get(&block).into_iter().flatten().copied();
        let wrong: Vec<Esi> =
            damaged.filter(|esi| search.available.binary_search(esi).is_ok()).collect();
        let rank = wrong.len() as u32;
        let location = match (least.saturating_sub(surplus), surplus.saturating_sub(rank)) {
            (lack @ 1.., _) => Location::Wanting(lack),
            (0, left) if rank > 0 && left + 1 < least => Location::Wanting(surplus),
            (0, surplus_left) => Location::Located(Located { wrong, surplus_left, rank }),
        };
        Ok(ReceiveDone::Located { block, location })
    }

    fn settle(&mut self, block: BlockId, outcome: BlockOutcome) -> Result<(), &'static str> {
        self.damaged.remove(&block);
        let was_wrong = self.wrong.remove(&block);
        if let Some(staging) = &mut self.staging {
            staging.blocks.remove(&block);
            if outcome == BlockOutcome::Corrupt {
                staging.complete.remove(&block);
            } else {
                staging.complete.insert(block);
            }
        }
        match outcome {
            BlockOutcome::Verified if was_wrong => Err("damaged bytes that count as verified"),
            BlockOutcome::Verified | BlockOutcome::Corrupt => Ok(()),
        }
    }
}

/// A hash other than this one.
fn wrong(Hash(mut bytes): Hash) -> Hash {
    if let Some(first) = bytes.first_mut() {
        *first ^= 1;
    }
    Hash(bytes)
}

impl JobRunner<SendJob> for IdRunner {
    type Done = SendDone;
    type Error = &'static str;

    fn run(
        &mut self,
        _now: Instant,
        job: SendJob,
        _batch: &DatagramBatch<'_>,
    ) -> Result<Option<Finished<SendDone>>, &'static str> {
        Ok(match job {
            SendJob::Prepare { batch, .. } => Some(Finished::now(SendDone::Prepared { batch })),
            SendJob::Release { .. } | SendJob::ExpectRepair => None,
            // It has no keys: no session without reports asks for it.
            SendJob::Sign(_) => Some(Finished::now(SendDone::Signed(Vec::new()))),
            SendJob::Open { .. } => Some(Finished::now(SendDone::Opened(None))),
        })
    }
}

impl JobRunner<ReceiveJob> for IdRunner {
    type Done = ReceiveDone;
    type Error = &'static str;

    fn run(
        &mut self,
        _now: Instant,
        job: ReceiveJob,
        batch: &DatagramBatch<'_>,
    ) -> Result<Option<Finished<ReceiveDone>>, &'static str> {
        let done = match job {
            ReceiveJob::Open(opening) => {
                let saved = match *opening {
                    Opening::Manifest(_) => self.saved(),
                    Opening::File { .. } | Opening::Compound { .. } | Opening::Fragment { .. } => {
                        Saved::default()
                    }
                };
                ReceiveDone::Opened { scope: opening.scope(), saved }
            }
            ReceiveJob::Place(run) => {
                self.place(&run, batch)?;
                return Ok(None);
            }
            ReceiveJob::Solve { block, mut decoder, budget } => {
                let progress = decoder.solve(budget);
                ReceiveDone::Solved { block, decoder, progress }
            }
            ReceiveJob::Recover { block, recipe, repair, arrived } => {
                self.recover(block, recipe, &repair, &arrived)?
            }
            ReceiveJob::Locate(search) => self.locate(*search)?,
            // Ids have no copies that differ.
            ReceiveJob::Choose(choice) => ReceiveDone::Chosen { block: choice.block, chosen: None },
            ReceiveJob::Settle { block, outcome } => {
                self.settle(block, outcome)?;
                return Ok(None);
            }
            ReceiveJob::Commit { toi } => {
                if let Some(staging) = &mut self.staging {
                    staging.committed.push(toi);
                }
                ReceiveDone::Committed(Committed::Content { toi })
            }
            // Objects without a manifest are not simulated on ids, nor what is beside the memory.
            ReceiveJob::Drop { .. }
            | ReceiveJob::Expire(_)
            | ReceiveJob::Release { .. }
            | ReceiveJob::Spill { .. }
            | ReceiveJob::DropSpill => {
                return Ok(None);
            }
            ReceiveJob::ReadSpill { offset, .. } => {
                ReceiveDone::SpillRead { offset, bytes: Vec::new() }
            }
            ReceiveJob::Finish => ReceiveDone::Finished,
            ReceiveJob::CheckCall(symbol) => ReceiveDone::Called(unverified_call(&symbol)),
            ReceiveJob::Seal(answer) => {
                ReceiveDone::Sealed { to: answer.to, datagram: answer.emit_open() }
            }
            ReceiveJob::Read { block, batch, .. } => {
                ReceiveDone::Read { block, batch, is_read: true }
            }
        };
        Ok(Some(Finished::now(done)))
    }
}

impl SimulatedRunner for IdRunner {
    #[inline]
    fn begin_delivery(&mut self, delivery: &Delivery<'_>) {
        self.zeros_from = delivery.zeros_from;
    }

    fn symbol_bytes(&self, symbol: &SymbolId) -> u32 {
        symbol.size.into()
    }
}
