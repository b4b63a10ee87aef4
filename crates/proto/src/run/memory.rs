//! Job runners on bytes in memory: for tests, for simulations that check bytes, and for programs
//! whose content fits into memory.
//!
//! ```
//! use fontana_fec::codes::raptorq::RaptorQ;
//! use fontana_fec::{Esi, FecScheme, Oti, Sbn};
//! use fontana_proto::memory::{MemoryContent, MemorySendRunner};
//! use fontana_proto::{BatchId, BlockId, DatagramBatch, Instant, JobRunner, SendJob, SymbolId};
//! use fontana_wire::Toi;
//!
//! let scheme = FecScheme::RaptorQ(RaptorQ { source_blocks: 1, sub_blocks: 1, alignment: 4 });
//! let layout = Oti { transfer_length: 10, symbol_size: 4, scheme }.layout()?;
//! let mut content = MemoryContent::default();
//! content.insert(Toi(1), layout, b"fair water".to_vec());
//!
//! let mut runner = MemorySendRunner::new(content);
//! let (batch, block) = (BatchId(0), BlockId { toi: Toi(1), sbn: Sbn(0) });
//! let job = SendJob::Prepare { batch, block, esis: vec![Esi(1), Esi(77)], header_size: 20 };
//! runner.run(Instant::ZERO, job, &DatagramBatch::EMPTY)?;
//! let mut datagram = b"header ".to_vec();
//! let symbol = SymbolId { batch, index: 0, block, esi: Esi(1), size: 4 };
//! runner.write_symbol(&symbol, &mut datagram);
//! assert_eq!(datagram, b"header  wat");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use super::{Finished, JobRunner};
use crate::datagram::DatagramBatch;
use crate::endpoint::{BatchId, BlockId, SymbolId};
use crate::job::{
    BlockOutcome, BlockStock, Category, Choice, Committed, JobError, Opening, ReceiveDone,
    ReceiveJob, Recipe, Saved, SavedBlock, Search, SendDone, SendJob,
};
use crate::placed::SymbolPlace;
use crate::report::{Authentic, Signers, unverified_call};
use crate::time::Instant;
use fontana_fec::simple::decode_block;
use fontana_fec::{Esi, Intermediate, Lent, ObjectLayout, PlanCache, Sbn, Scratch};
use fontana_wire::{BlockHasher, Hash, StreamIndex, SymbolDigest, Toi};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Number of block lengths whose plans are cached: objects of one size have two.
const CACHED_PLANS: usize = 8;

/// Objects that a sender sends.
#[derive(Debug)]
pub struct MemoryContent {
    objects: BTreeMap<Toi, MemoryObject>,
    plans: PlanCache,
}

/// An object and its bytes.
#[derive(Clone, Debug)]
pub struct MemoryObject {
    /// Geometry of the object.
    pub layout: ObjectLayout,
    /// Its bytes, as many as the geometry says.
    pub bytes: Vec<u8>,
}

impl Default for MemoryContent {
    fn default() -> Self {
        Self { objects: BTreeMap::new(), plans: PlanCache::new(CACHED_PLANS) }
    }
}

impl MemoryObject {
    /// The bytes of a block; `None` if there is no such block.
    pub fn block(&self, sbn: Sbn) -> Option<&[u8]> {
        let range = self.layout.block_range(sbn)?;
        self.bytes.get(range.start as usize..range.end as usize)
    }

    /// The hash of each block, as a manifest lists them.
    pub fn block_hashes(&self) -> Vec<Hash> {
        let blocks = (0..self.layout.block_count()).filter_map(|sbn| self.block(Sbn(sbn)));
        blocks.map(hash).collect()
    }
}

impl MemoryContent {
    /// Adds an object, or replaces the one with this TOI.
    pub fn insert(&mut self, toi: Toi, layout: ObjectLayout, bytes: Vec<u8>) {
        self.objects.insert(toi, MemoryObject { layout, bytes });
    }

    /// The object with this TOI.
    pub fn get(&self, toi: Toi) -> Option<&MemoryObject> {
        self.objects.get(&toi)
    }

    /// All objects, in the order of their TOIs.
    pub fn objects(&self) -> impl Iterator<Item = (Toi, &MemoryObject)> {
        self.objects.iter().map(|(&toi, object)| (toi, object))
    }

    /// Encodes a block; `None` if there is no such block.
    pub fn encode(&self, block: BlockId) -> Option<Intermediate> {
        let object = self.objects.get(&block.toi)?;
        encode(&self.plans, object.layout, block.sbn, object.block(block.sbn)?)
    }
}

/// Encodes a block of these bytes.
fn encode(plans: &PlanCache, layout: ObjectLayout, sbn: Sbn, block: &[u8]) -> Option<Intermediate> {
    let oti = layout.oti();
    let plan = plans.source_plan(oti.scheme, layout.source_symbols(sbn)?).ok()?;
    let first = layout.block_range(sbn)?.start;
    let load = |esi: Esi, out: &mut [u8]| {
        for piece in layout.symbol_pieces(sbn, esi) {
            let [start, end] = [piece.in_object.start, piece.in_object.end].map(|at| at - first);
            let from = block.get(start as usize..end as usize).ok_or(MissingBytes)?;
            let end = piece.in_symbol.start + from.len();
            let out = out.get_mut(piece.in_symbol.start..end).ok_or(MissingBytes)?;
            out.copy_from_slice(from);
        }
        Ok::<(), MissingBytes>(())
    };
    plan.execute(oti.symbol_size.into(), load, Scratch::default()).ok()
}

/// The object has fewer bytes than its geometry says, or there is no such block.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the object has no such block, or fewer bytes than its geometry says")]
struct MissingBytes;

/// Appends the bytes of a block's encoding symbol to a datagram.
pub fn append_symbol(block: &Intermediate, esi: Esi, datagram: &mut Vec<u8>) {
    let start = datagram.len();
    datagram.resize(start + block.width(), 0);
    if let Some(symbol) = datagram.get_mut(start..) {
        block.write_symbol(esi, symbol);
    }
}

/// The digest of each of these symbols of a block.
fn digests(block: BlockId, esis: &[Esi], encoded: &Intermediate) -> Vec<SymbolDigest> {
    let mut symbol = Vec::new();
    let digest = |&esi: &Esi| {
        symbol.clear();
        append_symbol(encoded, esi, &mut symbol);
        SymbolDigest::of(block.toi, block.sbn, esi, &symbol)
    };
    esis.iter().map(digest).collect()
}

/// Runs a sender's jobs on content in memory. Each batch that is not released has its encoded block
/// in memory.
#[derive(Debug)]
pub struct MemorySendRunner {
    content: Arc<MemoryContent>,
    batches: BTreeMap<BatchId, Intermediate>,
    makes_digests: bool,
}

impl MemorySendRunner {
    /// A runner for a sender of this content.
    pub fn new(content: impl Into<Arc<MemoryContent>>) -> Self {
        let (content, batches) = (content.into(), BTreeMap::new());
        Self { content, batches, makes_digests: false }
    }

    /// The runner of a sender that announces its symbols
    /// ([`Sender::with_digests`](crate::Sender::with_digests)).
    #[must_use]
    pub fn with_digests(self) -> Self {
        Self { makes_digests: true, ..self }
    }

    /// Appends the bytes of a prepared symbol to a datagram.
    pub fn write_symbol(&self, symbol: &SymbolId, datagram: &mut Vec<u8>) {
        if let Some(block) = self.batches.get(&symbol.batch) {
            let start = datagram.len();
            append_symbol(block, symbol.esi, datagram);
            datagram.truncate(start + usize::from(symbol.size));
        }
    }

    /// Number of batches that are not released.
    pub fn batch_count(&self) -> usize {
        self.batches.len()
    }
}

impl JobRunner<SendJob> for MemorySendRunner {
    type Done = SendDone;
    type Error = &'static str;

    fn run(
        &mut self,
        _now: Instant,
        job: SendJob,
        _batch: &DatagramBatch<'_>,
    ) -> Result<Option<Finished<SendDone>>, &'static str> {
        let done = match job {
            SendJob::Prepare { batch, block, esis, .. } => match self.content.encode(block) {
                Some(encoded) => {
                    let digests = self.makes_digests.then(|| digests(block, &esis, &encoded));
                    self.batches.insert(batch, encoded);
                    match digests {
                        None => SendDone::Prepared { batch },
                        Some(digests) => SendDone::Digested { batch, digests },
                    }
                }
                None => {
                    let error = JobError::new(Category::Geometry, Arc::new(MissingBytes));
                    SendDone::Failed { batch, is_alone: false, error }
                }
            },
            SendJob::Release { batch } => {
                self.batches.remove(&batch);
                return Ok(None);
            }
            SendJob::ExpectRepair => return Ok(None),
            SendJob::Sign(_) => return Err("a sender without a key has a roll call"),
            SendJob::Open { from, datagram } => {
                let answer = Authentic::open_plain(&datagram, from, &Signers::default());
                SendDone::Opened(answer.map(Box::new))
            }
        };
        Ok(Some(Finished::now(done)))
    }
}

/// Runs a receiver's jobs on bytes in memory, which take the place of its disk. An error is a
/// defect of the receiver: a job that contradicts those before it.
#[derive(Clone, Debug, Default)]
pub struct MemoryReceiveRunner {
    layouts: BTreeMap<Toi, ObjectLayout>,
    /// Symbols of blocks that are not complete.
    placed: BTreeMap<BlockId, PlacedSymbols>,
    /// Blocks whose hash is not checked yet.
    recovered: BTreeMap<BlockId, Vec<u8>>,
    /// Blocks that are verified.
    complete: BTreeMap<BlockId, Vec<u8>>,
    committed: Vec<Toi>,
    /// Symbols that were read for others.
    read: BTreeMap<(BlockId, u64), Vec<Vec<u8>>>,
    /// What is stored beside the memory of a receiver, by offset.
    spilled: BTreeMap<u64, Vec<u8>>,
}

/// The symbols of a block that were placed.
#[derive(Clone, Debug, Default)]
struct PlacedSymbols {
    in_place: BTreeMap<Esi, Vec<u8>>,
    /// What each slot got last.
    slots: BTreeMap<u32, (Esi, Vec<u8>)>,
}

/// The slots of repair symbols, as a job lists them.
type Slots = BTreeMap<Esi, u32>;

impl PlacedSymbols {
    fn insert(&mut self, esi: Esi, to: SymbolPlace, bytes: Vec<u8>) {
        match to {
            SymbolPlace::InPlace => _ = self.in_place.insert(esi, bytes),
            SymbolPlace::RepairSlot(slot) => _ = self.slots.insert(slot, (esi, bytes)),
        }
    }

    /// The symbol, unless another one has its slot.
    fn get(&self, esi: Esi, slots: &Slots) -> Option<&[u8]> {
        let in_slot = || self.slots.get(slots.get(&esi)?).filter(|(placed, _)| *placed == esi);
        self.in_place.get(&esi).or_else(|| Some(&in_slot()?.1)).map(Vec::as_slice)
    }
}

/// The slots of a list of repair symbols in their order.
fn slots(repair: &[Esi]) -> Slots {
    repair.iter().copied().zip(0..).collect()
}

impl MemoryReceiveRunner {
    /// The runner of the next run, which begins with the bytes that this one saved.
    #[must_use]
    pub fn restarted(&self) -> Self {
        let (recovered, read, spilled) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { recovered, read, spilled, ..self.clone() }
    }

    /// Appends the bytes of a symbol that was read for others to a datagram.
    pub fn write_symbol(&self, symbol: &SymbolId, datagram: &mut Vec<u8>) {
        let batch = self.read.get(&(symbol.block, symbol.batch.0));
        let bytes = batch.and_then(|batch| batch.get(symbol.index as usize));
        datagram.extend(bytes.into_iter().flatten().take(symbol.size.into()));
    }

    /// `None` if a symbol is not there.
    fn read(&self, block: BlockId, esis: &[Esi], stock: &BlockStock) -> Option<Vec<Vec<u8>>> {
        let layout = *self.layouts.get(&block.toi)?;
        let size = usize::from(layout.oti().symbol_size);
        match stock {
            BlockStock::Part { repair } => {
                let slots = slots(repair);
                let symbol = |&esi| self.symbol(block, size, esi, &slots).map(<[u8]>::to_vec);
                esis.iter().map(symbol).collect()
            }
            BlockStock::Whole => {
                let plans = PlanCache::new(1);
                let encoded = encode(&plans, layout, block.sbn, self.complete.get(&block)?)?;
                let symbol = |&esi| {
                    let mut bytes = Vec::new();
                    append_symbol(&encoded, esi, &mut bytes);
                    bytes
                };
                Some(esis.iter().map(symbol).collect())
            }
        }
    }

    /// A verified block.
    pub fn block(&self, block: BlockId) -> Option<&[u8]> {
        self.complete.get(&block).map(Vec::as_slice)
    }

    /// The verified blocks of an object, one after the other.
    pub fn object(&self, toi: Toi) -> Vec<u8> {
        let blocks = self.complete.iter().filter(|(block, _)| block.toi == toi);
        blocks.flat_map(|(_, bytes)| bytes.iter().copied()).collect()
    }

    /// A symbol that was placed, of a block that is not settled yet.
    pub fn placed(&self, block: BlockId, esi: Esi) -> Option<&[u8]> {
        let placed = self.placed.get(&block)?;
        let in_slot = || placed.slots.values().find(|(slot, _)| *slot == esi);
        placed.in_place.get(&esi).or_else(|| Some(&in_slot()?.1)).map(Vec::as_slice)
    }

    /// Bytes of the file that is [beside the memory](ReceiveJob::Spill) of a receiver.
    pub fn spilled_bytes(&self) -> u64 {
        let last = self.spilled.last_key_value();
        last.map_or(0, |(&offset, bytes)| offset.saturating_add(bytes.len() as u64))
    }

    /// Objects that were committed, in this order.
    pub fn committed(&self) -> &[Toi] {
        &self.committed
    }

    /// The bytes of each symbol and block that is saved, so that tests can change them.
    pub fn saved_bytes_mut(&mut self) -> impl Iterator<Item = &mut Vec<u8>> {
        let symbols = self.placed.values_mut().flat_map(|placed| {
            let in_slots = placed.slots.values_mut().map(|(_, bytes)| bytes);
            placed.in_place.values_mut().chain(in_slots)
        });
        symbols.chain(self.complete.values_mut())
    }

    /// Forgets an object, for example a fragment of a stream that was delivered.
    pub fn remove(&mut self, toi: Toi) {
        self.layouts.remove(&toi);
        self.placed.retain(|block, _| block.toi != toi);
        self.complete.retain(|block, _| block.toi != toi);
    }

    /// What a receiver resumes with.
    fn saved(&self) -> Saved {
        let complete = self.complete.keys().map(|&block| SavedBlock {
            block,
            is_complete: true,
            in_place: Vec::new(),
            repair: Vec::new(),
        });
        let begun = self.placed.iter().map(|(&block, placed)| {
            let in_place = placed.in_place.keys().copied().collect();
            let repair = placed.slots.iter().map(|(&slot, &(esi, _))| (esi, slot)).collect();
            SavedBlock { block, is_complete: false, in_place, repair }
        });
        Saved {
            session_packets: 0,
            committed: self.committed.clone(),
            blocks: complete.chain(begun).collect(),
        }
    }

    fn open(&mut self, opening: &Opening) -> Result<Saved, &'static str> {
        match opening {
            Opening::Manifest(manifest) => {
                for object in manifest.objects() {
                    let layout = object.oti.layout().map_err(|_| "an object without geometry")?;
                    self.layouts.insert(object.toi.into(), layout);
                }
                return Ok(self.saved());
            }
            Opening::File { object, layout, .. } => self.layouts.insert(*object, *layout),
            Opening::Compound { toi, layout, .. } => self.layouts.insert(*toi, *layout),
            Opening::Fragment { number, layout, .. } => {
                self.layouts.insert(StreamIndex::toi(*number), *layout)
            }
        };
        Ok(Saved::default())
    }

    fn recover(
        &mut self,
        block: BlockId,
        recipe: Recipe,
        slots: &Slots,
        arrived: &[Esi],
    ) -> Result<ReceiveDone, &'static str> {
        let plan = recipe.into_plan().ok_or("a block that was solved before and is not now")?;
        let layout = self.layouts.get(&block.toi).ok_or("a block of an unknown object")?;
        let size = usize::from(layout.oti().symbol_size);
        let mut bytes = decode_block(&plan, size, |esi| self.symbol(block, size, esi, slots))
            .map_err(|_| "a plan that uses what was not placed")?;
        for &esi in arrived {
            let symbol = self.symbol(block, size, esi, slots);
            let symbol = symbol.ok_or("a symbol that was not placed")?;
            let out = bytes.get_mut(esi.0 as usize * size..).unwrap_or_default();
            out.iter_mut().zip(symbol).for_each(|(out, &byte)| *out = byte);
        }
        let range = layout.block_range(block.sbn).ok_or("a block that the object does not have")?;
        bytes.truncate((range.end - range.start) as usize);
        let hash = hash(&bytes);
        self.recovered.insert(block, bytes);
        Ok(ReceiveDone::Recovered { block, hash })
    }

    /// A symbol of `size` bytes that is stored; the object's last one may be shorter.
    fn symbol(&self, block: BlockId, size: usize, esi: Esi, slots: &Slots) -> Option<&[u8]> {
        let placed = self.placed.get(&block).and_then(|placed| placed.get(esi, slots));
        // A block that an earlier run verified has no symbols.
        let complete = || self.complete.get(&block)?.get(esi.0 as usize * size..);
        let source = || complete().map(|bytes| bytes.get(..size).unwrap_or(bytes));
        let stored = placed.or_else(source);
        stored.filter(|bytes| !bytes.is_empty())
    }

    fn locate(&self, mut search: Search) -> Result<ReceiveDone, &'static str> {
        let block = search.block;
        let layout = self.layouts.get(&block.toi).ok_or("a block of an unknown object")?;
        let size = usize::from(layout.oti().symbol_size);
        let slots = slots(&search.repair);
        let symbol = |esi| self.symbol(block, size, esi, &slots);
        if search.available.iter().any(|&esi| symbol(esi).is_none()) {
            return Err("a search among symbols that were not placed");
        }
        let location = search.locator().map_or_else(
            |location| location,
            |mut locator| {
                let symbols = Lent(|esi| symbol(esi).unwrap_or_default());
                let Ok(_) = locator.add_columns(size, symbols, Scratch::default());
                locator.locate(search.locating)
            },
        );
        Ok(ReceiveDone::Located { block, location })
    }

    fn choose(&self, choice: &Choice) -> Result<ReceiveDone, &'static str> {
        let block = choice.block;
        let layout = self.layouts.get(&block.toi).ok_or("a block of an unknown object")?;
        let size = usize::from(layout.oti().symbol_size);
        let range = layout.block_range(block.sbn).ok_or("a block that the object does not have")?;
        let length = (range.end - range.start) as usize;
        let mut bytes = Vec::with_capacity(length);
        for esi in (0..length.div_ceil(size)).map(|esi| Esi(esi as u32)) {
            let symbol = self.symbol(block, size, esi, &Slots::new());
            bytes.extend_from_slice(symbol.ok_or("a symbol is missing")?);
        }
        bytes.truncate(length);
        let range = |Esi(esi): Esi| {
            let start = (esi as usize).saturating_mul(size);
            Some(start..start.saturating_add(size).min(length))
        };
        Ok(ReceiveDone::Chosen { block, chosen: choice.decide(&mut bytes, range) })
    }

    fn settle(&mut self, block: BlockId, outcome: BlockOutcome) {
        let bytes = self.recovered.remove(&block);
        self.placed.remove(&block);
        match outcome {
            BlockOutcome::Verified => self.complete.extend(bytes.map(|bytes| (block, bytes))),
            BlockOutcome::Corrupt => {
                self.complete.remove(&block);
            }
        }
    }
}

impl JobRunner<ReceiveJob> for MemoryReceiveRunner {
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
                let saved = self.open(&opening)?;
                ReceiveDone::Opened { scope: opening.scope(), saved }
            }
            ReceiveJob::Place(run) => {
                let placed = self.placed.entry(run.block).or_default();
                for ((esi, to), bytes) in run.ids().zip(run.symbols(batch.slab)) {
                    let bytes = bytes.ok_or("a symbol outside the slab")?.to_vec();
                    placed.insert(esi, to, bytes);
                }
                return Ok(None);
            }
            ReceiveJob::Solve { block, mut decoder, budget } => {
                let progress = decoder.solve(budget);
                ReceiveDone::Solved { block, decoder, progress }
            }
            ReceiveJob::Recover { block, recipe, repair, arrived } => {
                self.recover(block, recipe, &slots(&repair), &arrived)?
            }
            ReceiveJob::Locate(search) => self.locate(*search)?,
            ReceiveJob::Choose(choice) => self.choose(&choice)?,
            ReceiveJob::Settle { block, outcome } => {
                self.settle(block, outcome);
                return Ok(None);
            }
            ReceiveJob::Commit { toi } => {
                self.committed.push(toi);
                ReceiveDone::Committed(Committed::Content { toi })
            }
            ReceiveJob::Drop { toi } => {
                self.remove(toi);
                return Ok(None);
            }
            ReceiveJob::Expire(_) => return Ok(None),
            ReceiveJob::Finish => ReceiveDone::Finished,
            ReceiveJob::CheckCall(symbol) => ReceiveDone::Called(unverified_call(&symbol)),
            ReceiveJob::Seal(answer) => {
                ReceiveDone::Sealed { to: answer.to, datagram: answer.emit_open() }
            }
            ReceiveJob::Read { block, batch, esis, stock } => {
                let symbols = self.read(block, &esis, &stock);
                let is_read = symbols.is_some();
                self.read.extend(symbols.map(|symbols| ((block, batch.into()), symbols)));
                ReceiveDone::Read { block, batch, is_read }
            }
            ReceiveJob::Release { block } => {
                self.read.retain(|&(other, _), _| other != block);
                return Ok(None);
            }
            ReceiveJob::Spill { offset, bytes } => {
                self.spilled.insert(offset, bytes);
                return Ok(None);
            }
            ReceiveJob::ReadSpill { offset, length } => {
                let mut bytes = self.spilled.get(&offset).cloned().unwrap_or_default();
                bytes.truncate(length as usize);
                ReceiveDone::SpillRead { offset, bytes }
            }
            ReceiveJob::DropSpill => {
                self.spilled.clear();
                return Ok(None);
            }
        };
        Ok(Some(Finished::now(done)))
    }
}

fn hash(bytes: &[u8]) -> Hash {
    let mut hasher = BlockHasher::new();
    hasher.update(bytes);
    hasher.finalize()
}
