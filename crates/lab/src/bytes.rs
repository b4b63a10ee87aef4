//! Real bytes for short runs: the other runs of a swarm are on ids, where a wrong byte cannot even
//! occur.

use fontana_fec::simple::decode_block;
use fontana_fec::{Esi, Intermediate, ObjectLayout, Oti, PlanCache, Sbn, Scratch};
use fontana_proto::{
    BlockId, BlockOutcome, Committed, DatagramBatch, Finished, Instant, JobRunner, Opening,
    ReceiveDone, ReceiveJob, Recipe, Saved, SavedBlock, SplitMix64, SymbolBytes, SymbolId,
    SymbolPlace,
};
use fontana_sim::SimulatedRunner;
use fontana_wire::{BlockHasher, Hash, ManifestObject, Toi};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What is sent.
#[derive(Debug)]
pub(crate) struct Originals {
    objects: BTreeMap<Toi, (ObjectLayout, Vec<u8>)>,
    plans: PlanCache,
}

impl Originals {
    /// Noise in objects of these shapes, and how a manifest describes them.
    pub(crate) fn draw(
        otis: &[Oti],
        random: &mut SplitMix64,
    ) -> Option<(Self, Vec<ManifestObject>)> {
        let (mut objects, mut described) = (BTreeMap::new(), Vec::new());
        for (toi, &oti) in (1_u32..).zip(otis) {
            let layout = oti.layout().ok()?;
            let data: Vec<u8> = (0..oti.transfer_length).map(|_| random.next_u64() as u8).collect();
            let hash = |sbn| {
                let range = layout.block_range(sbn)?;
                Some(hash(data.get(range.start as usize..range.end as usize)?))
            };
            let block_hashes =
                (0..layout.block_count()).map(Sbn).map(hash).collect::<Option<_>>()?;
            described.push(ManifestObject { toi, oti, block_hashes });
            objects.insert(Toi::from(toi), (layout, data));
        }
        Some((Self { objects, plans: PlanCache::new(8) }, described))
    }

    fn layout(&self, toi: Toi) -> Option<&ObjectLayout> {
        self.objects.get(&toi).map(|(layout, _)| layout)
    }

    fn block(&self, BlockId { toi, sbn }: BlockId) -> Option<&[u8]> {
        let (layout, data) = self.objects.get(&toi)?;
        let range = layout.block_range(sbn)?;
        data.get(range.start as usize..range.end as usize)
    }

    /// From which all encoding symbols of a block are made.
    fn intermediate(&self, block: BlockId) -> Option<Intermediate> {
        let (layout, data) = self.objects.get(&block.toi)?;
        let oti = layout.oti();
        let plan = self.plans.source_plan(oti.scheme, layout.source_symbols(block.sbn)?).ok()?;
        let load = |esi: Esi, out: &mut [u8]| {
            for piece in layout.symbol_pieces(block.sbn, esi) {
                let from = data.get(piece.in_object.start as usize..piece.in_object.end as usize);
                let from = from.ok_or(())?;
                out[piece.in_symbol.start..][..from.len()].copy_from_slice(from);
            }
            Ok::<(), ()>(())
        };
        plan.execute(oti.symbol_size.into(), load, Scratch::default()).ok()
    }
}

fn hash(bytes: &[u8]) -> Hash {
    let mut hasher = BlockHasher::new();
    hasher.update(bytes);
    hasher.finalize()
}

/// Makes the bytes of the symbols that a sender sends.
#[derive(Debug)]
pub(crate) struct Pump {
    originals: Arc<Originals>,
    blocks: BTreeMap<BlockId, Intermediate>,
}

impl Pump {
    pub(crate) fn new(originals: Arc<Originals>) -> Self {
        Self { originals, blocks: BTreeMap::new() }
    }

    /// Appends a symbol's bytes.
    pub(crate) fn write(&mut self, symbol: &SymbolId, out: &mut Vec<u8>) {
        let block = symbol.block;
        if !self.blocks.contains_key(&block) {
            self.blocks.extend(self.originals.intermediate(block).map(|made| (block, made)));
        }
        let Some(made) = self.blocks.get(&block) else { return };
        let start = out.len();
        out.resize(start + made.width(), 0);
        made.write_symbol(symbol.esi, &mut out[start..]);
    }
}

/// A symbol that was placed.
#[derive(Clone, Debug)]
struct Placed {
    to: SymbolPlace,
    bytes: Vec<u8>,
}

/// Runs a receiver's jobs on bytes, and knows what they ought to be.
#[derive(Clone, Debug)]
pub(crate) struct ByteRunner {
    originals: Arc<Originals>,
    /// The disk: symbols of blocks that are not complete, and the bytes of those that are.
    placed: BTreeMap<BlockId, BTreeMap<Esi, Placed>>,
    recovered: BTreeMap<BlockId, Vec<u8>>,
    complete: BTreeMap<BlockId, Vec<u8>>,
    committed: Vec<Toi>,
}

impl ByteRunner {
    pub(crate) fn new(originals: Arc<Originals>) -> Self {
        Self {
            originals,
            placed: BTreeMap::new(),
            recovered: BTreeMap::new(),
            complete: BTreeMap::new(),
            committed: Vec::new(),
        }
    }

    /// The runner of the next run, which begins with what is on the disk.
    pub(crate) fn restarted(&self) -> Self {
        Self { recovered: BTreeMap::new(), ..self.clone() }
    }

    /// Whether every byte of every object is there, and is the right one.
    pub(crate) fn has_everything(&self) -> bool {
        self.originals.objects.iter().all(|(&toi, (layout, _))| {
            self.committed.contains(&toi)
                && (0..layout.block_count()).map(Sbn).all(|sbn| {
                    let block = BlockId { toi, sbn };
                    self.complete.get(&block).map(Vec::as_slice) == self.originals.block(block)
                })
        })
    }

    fn saved(&self) -> Saved {
        let complete = self.complete.keys().map(|&block| SavedBlock {
            block,
            is_complete: true,
            in_place: Vec::new(),
            repair: Vec::new(),
        });
        let begun = self.placed.iter().map(|(&block, symbols)| {
            let (mut in_place, mut repair) = (Vec::new(), Vec::new());
            for (&esi, placed) in symbols {
                match placed.to {
                    SymbolPlace::InPlace => in_place.push(esi),
                    SymbolPlace::RepairSlot(slot) => repair.push((esi, slot)),
                }
            }
            SavedBlock { block, is_complete: false, in_place, repair }
        });
        Saved {
            session_packets: 0,
            committed: self.committed.clone(),
            blocks: complete.chain(begun).collect(),
        }
    }

    fn recover(&mut self, block: BlockId, recipe: Recipe) -> Result<ReceiveDone, &'static str> {
        let plan = recipe.into_plan().ok_or("a block that was solved before and is not now")?;
        let layout = self.originals.layout(block.toi).ok_or("a block of an unknown object")?;
        let size = usize::from(layout.oti().symbol_size);
        let placed = self.placed.remove(&block).unwrap_or_default();
        // A block that an earlier run verified is complete on the disk.
        let complete = self.complete.get(&block).map_or(&[][..], Vec::as_slice);
        let source = |esi: Esi| complete.get(esi.0 as usize * size..).filter(|s| !s.is_empty());
        let symbol = |esi: Esi| {
            let placed = placed.get(&esi).map(|symbol| symbol.bytes.as_slice());
            placed.or_else(|| source(esi))
        };
        let mut bytes = decode_block(&plan, size, symbol)
            .map_err(|_| "a plan that uses what was not placed")?;
        let range = layout.block_range(block.sbn).ok_or("a block that the object does not have")?;
        bytes.truncate((range.end - range.start) as usize);
        let hash = hash(&bytes);
        self.recovered.insert(block, bytes);
        Ok(ReceiveDone::Recovered { block, hash })
    }

    fn settle(&mut self, block: BlockId, outcome: BlockOutcome) -> Result<(), &'static str> {
        let bytes = self.recovered.remove(&block);
        if outcome == BlockOutcome::Corrupt {
            self.complete.remove(&block);
            self.placed.remove(&block);
            return Ok(());
        }
        let Some(bytes) = bytes else { return Ok(()) };
        if self.originals.block(block) != Some(&bytes) {
            return Err("wrong bytes that count as verified");
        }
        self.complete.insert(block, bytes);
        Ok(())
    }
}

impl JobRunner<ReceiveJob> for ByteRunner {
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
                let saved = match opening {
                    Opening::Manifest(_) => self.saved(),
                    _ => Saved::default(),
                };
                ReceiveDone::Opened { scope: opening.scope(), saved }
            }
            ReceiveJob::Place { block, esi, to, symbol } => {
                let bytes = match symbol {
                    SymbolBytes::InSlab(range) => batch.bytes(&range).map(<[u8]>::to_vec),
                    SymbolBytes::Saved(bytes) => Some(bytes),
                };
                let bytes = bytes.ok_or("a symbol outside the slab")?;
                self.placed.entry(block).or_default().insert(esi, Placed { to, bytes });
                return Ok(None);
            }
            ReceiveJob::Solve { block, mut decoder, budget } => {
                let progress = decoder.solve(budget);
                ReceiveDone::Solved { block, decoder, progress }
            }
            ReceiveJob::Recover { block, recipe, .. } => self.recover(block, recipe)?,
            ReceiveJob::Settle { block, outcome } => {
                self.settle(block, outcome)?;
                return Ok(None);
            }
            ReceiveJob::Commit { toi } => {
                self.committed.push(toi);
                ReceiveDone::Committed(Committed::Content { toi })
            }
            ReceiveJob::Finish => ReceiveDone::Finished,
        };
        Ok(Some(Finished::now(done)))
    }
}

impl SimulatedRunner for ByteRunner {
    /// Receivers prepare no symbols.
    fn symbol_bytes(&self, _symbol: &SymbolId) -> u32 {
        0
    }
}
