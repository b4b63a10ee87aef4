//! Real bytes for short runs: the other runs of a swarm are on ids, where a wrong byte cannot even
//! occur.

use fontana_fec::{Encoder, Esi, Intermediate, ObjectLayout, Oti, PlanCache, Progress, Sbn, Work};
use fontana_proto::{
    BlockId, Done, Instant, Job, Kept, KeptBlock, Opening, Placement, Recipe, SplitMix64,
    SymbolBytes, SymbolId,
};
use fontana_sim::{HeardBytes, Jobs, Outcome};
use fontana_wire::{BlockHasher, Hash, ManifestObject, Toi};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

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
        plan.execute(oti.symbol_size.into(), load).ok()
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

/// The slot of the spool that a symbol has, if it is a repair symbol, and its bytes.
type Placed = (Option<u32>, Vec<u8>);

/// Does a receiver's jobs on bytes, and knows what they ought to be.
#[derive(Clone, Debug)]
pub(crate) struct ByteJobs {
    originals: Arc<Originals>,
    /// The disk: symbols of blocks that are not whole, and the bytes of those that are.
    placed: BTreeMap<BlockId, BTreeMap<Esi, Placed>>,
    recovered: BTreeMap<BlockId, Vec<u8>>,
    whole: BTreeMap<BlockId, Vec<u8>>,
    committed: Vec<Toi>,
}

impl ByteJobs {
    pub(crate) fn new(originals: Arc<Originals>) -> Self {
        Self {
            originals,
            placed: BTreeMap::new(),
            recovered: BTreeMap::new(),
            whole: BTreeMap::new(),
            committed: Vec::new(),
        }
    }

    /// The next life begins with what is on the disk.
    pub(crate) fn next_life(&self) -> Self {
        Self { recovered: BTreeMap::new(), ..self.clone() }
    }

    /// Whether every byte of every object is there, and is the right one.
    pub(crate) fn has_everything(&self) -> bool {
        self.originals.objects.iter().all(|(&toi, (layout, _))| {
            self.committed.contains(&toi)
                && (0..layout.block_count()).map(Sbn).all(|sbn| {
                    let block = BlockId { toi, sbn };
                    self.whole.get(&block).map(Vec::as_slice) == self.originals.block(block)
                })
        })
    }

    fn kept(&self) -> Kept {
        let whole = self.whole.keys().map(|&block| KeptBlock {
            block,
            whole: true,
            in_place: Vec::new(),
            spooled: Vec::new(),
        });
        let begun = self.placed.iter().map(|(&block, symbols)| KeptBlock {
            block,
            whole: false,
            in_place: symbols
                .iter()
                .filter(|(_, at)| at.0.is_none())
                .map(|(&esi, _)| esi)
                .collect(),
            spooled: symbols.iter().filter_map(|(&esi, at)| Some((esi, at.0?))).collect(),
        });
        Kept {
            session_packets: 0,
            committed: self.committed.clone(),
            blocks: whole.chain(begun).collect(),
        }
    }

    fn recover(&mut self, block: BlockId, recipe: Recipe) -> Result<Done, &'static str> {
        let plan = match recipe {
            Recipe::Plan(plan) => plan,
            Recipe::Decoder(mut decoder) => match decoder.solve(Work::UNBOUNDED) {
                Progress::Solved(plan) => plan,
                _ => return Err("a block that was solved before and is not now"),
            },
        };
        let layout = self.originals.layout(block.toi).ok_or("a block of an unknown object")?;
        let (size, k) = (usize::from(layout.oti().symbol_size), plan.source_symbols());
        let mut bytes = vec![0; k as usize * size];
        // What was verified in an earlier life is on the disk as a whole.
        if let Some(whole) = self.whole.get(&block) {
            bytes[..whole.len()].copy_from_slice(whole);
        }
        let placed = self.placed.remove(&block).unwrap_or_default();
        for (esi, out) in (0..k).map(Esi).zip(bytes.chunks_exact_mut(size)) {
            if let Some((_, symbol)) = placed.get(&esi) {
                out.copy_from_slice(symbol);
            }
        }
        if !plan.lost().is_empty() {
            let load = |esi: Esi, out: &mut [u8]| {
                let (_, symbol) = placed.get(&esi).ok_or("a plan that uses what was not placed")?;
                out.copy_from_slice(symbol);
                Ok(())
            };
            let found = plan.recover(size, load)?;
            for (index, esi) in plan.lost().iter().enumerate() {
                let out = &mut bytes[esi.0 as usize * size..][..size];
                found.write_symbols(index..index + 1, out);
            }
        }
        let range = layout.block_range(block.sbn).ok_or("a block that the object does not have")?;
        bytes.truncate((range.end - range.start) as usize);
        let hash = hash(&bytes);
        self.recovered.insert(block, bytes);
        Ok(Done::Recovered { block, hash })
    }

    fn settle(&mut self, block: BlockId, whole: bool) -> Result<(), &'static str> {
        let bytes = self.recovered.remove(&block);
        if !whole {
            self.whole.remove(&block);
            self.placed.remove(&block);
            return Ok(());
        }
        let Some(bytes) = bytes else { return Ok(()) };
        if self.originals.block(block) != Some(&bytes) {
            return Err("wrong bytes that count as verified");
        }
        self.whole.insert(block, bytes);
        Ok(())
    }
}

impl Jobs for ByteJobs {
    fn carry_out(
        &mut self,
        _now: Instant,
        job: Job,
        heard: HeardBytes<'_>,
    ) -> Result<Option<Outcome>, &'static str> {
        let done = match job {
            Job::Open(opening) => {
                let kept = match opening {
                    Opening::Manifest(_) => self.kept(),
                    _ => Kept::default(),
                };
                Done::Opened { toi: opening.toi(), kept }
            }
            Job::Place { block, esi, to, symbol } => {
                let bytes = match symbol {
                    SymbolBytes::InDatagram(range) => heard.bytes.get(range).map(<[u8]>::to_vec),
                    SymbolBytes::Kept(bytes) => Some(bytes),
                };
                let bytes = bytes.ok_or("a symbol outside the datagram")?;
                let slot = match to {
                    Placement::InPlace => None,
                    Placement::Spool(slot) => Some(slot),
                };
                self.placed.entry(block).or_default().insert(esi, (slot, bytes));
                return Ok(None);
            }
            Job::Solve { block, mut decoder, budget } => {
                let progress = decoder.solve(budget);
                Done::Solved { block, decoder, progress }
            }
            Job::Recover { block, recipe, .. } => self.recover(block, recipe)?,
            Job::Settle { block, whole } => {
                self.settle(block, whole)?;
                return Ok(None);
            }
            Job::Commit { toi } => {
                self.committed.push(toi);
                Done::Committed { toi }
            }
            Job::Finish => Done::Finished,
            Job::Prepare { .. } | Job::Release { .. } => return Err("not a receiver's job"),
        };
        Ok(Some(Outcome { done, after: Duration::ZERO }))
    }

    fn symbol_bytes(&self, _symbol: &SymbolId) -> u32 {
        0
    }
}
