//! Real bytes for short runs: the other runs of a swarm are on ids, where a wrong byte cannot even
//! occur.

use fontana_fec::{Intermediate, Oti, Sbn};
use fontana_proto::memory::{MemoryContent, MemoryObject, MemoryReceiveRunner, append_symbol};
use fontana_proto::{
    BlockId, BlockOutcome, DatagramBatch, Finished, Instant, JobRunner, ReceiveDone, ReceiveJob,
    SplitMix64, SymbolId,
};
use fontana_sim::SimulatedRunner;
use fontana_wire::{ManifestObject, Toi};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What is sent.
#[derive(Debug)]
pub(crate) struct Originals(MemoryContent);

impl Originals {
    /// Noise in objects of these shapes, and how a manifest describes them.
    pub(crate) fn draw(
        otis: &[Oti],
        random: &mut SplitMix64,
    ) -> Option<(Self, Vec<ManifestObject>)> {
        let (mut content, mut described) = (MemoryContent::default(), Vec::new());
        for (toi, &oti) in (1_u32..).zip(otis) {
            let layout = oti.layout().ok()?;
            let bytes = (0..oti.transfer_length).map(|_| random.next_u64() as u8).collect();
            content.insert(toi.into(), layout, bytes);
            let block_hashes = content.get(toi.into())?.block_hashes();
            described.push(ManifestObject { toi, oti, block_hashes });
        }
        Some((Self(content), described))
    }

    fn block(&self, BlockId { toi, sbn }: BlockId) -> Option<&[u8]> {
        self.0.get(toi)?.block(sbn)
    }
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
            self.blocks.extend(self.originals.0.encode(block).map(|made| (block, made)));
        }
        let Some(made) = self.blocks.get(&block) else { return };
        append_symbol(made, symbol.esi, out);
    }
}

/// Runs a receiver's jobs on bytes, and compares what it verifies with what was sent.
#[derive(Clone, Debug)]
pub(crate) struct ByteRunner {
    originals: Arc<Originals>,
    memory: MemoryReceiveRunner,
}

impl ByteRunner {
    pub(crate) fn new(originals: Arc<Originals>) -> Self {
        Self { originals, memory: MemoryReceiveRunner::default() }
    }

    /// The runner of the next run, which begins with what is on the disk.
    pub(crate) fn restarted(&self) -> Self {
        Self { originals: Arc::clone(&self.originals), memory: self.memory.restarted() }
    }

    /// Whether every byte of every object is there, and is the right one.
    pub(crate) fn has_everything(&self) -> bool {
        let is_complete = |toi: Toi, object: &MemoryObject| {
            self.memory.committed().contains(&toi)
                && (0..object.layout.block_count())
                    .map(Sbn)
                    .all(|sbn| self.memory.block(BlockId { toi, sbn }) == object.block(sbn))
        };
        self.originals.0.objects().all(|(toi, object)| is_complete(toi, object))
    }
}

impl JobRunner<ReceiveJob> for ByteRunner {
    type Done = ReceiveDone;
    type Error = &'static str;

    fn run(
        &mut self,
        now: Instant,
        job: ReceiveJob,
        batch: &DatagramBatch<'_>,
    ) -> Result<Option<Finished<ReceiveDone>>, &'static str> {
        let verified = match job {
            ReceiveJob::Settle { block, outcome: BlockOutcome::Verified } => Some(block),
            _ => None,
        };
        let finished = self.memory.run(now, job, batch)?;
        let received = verified.and_then(|block| Some((block, self.memory.block(block)?)));
        if received.is_some_and(|(block, bytes)| self.originals.block(block) != Some(bytes)) {
            return Err("wrong bytes that count as verified");
        }
        Ok(finished)
    }
}

impl SimulatedRunner for ByteRunner {
    fn symbol_bytes(&self, _symbol: &SymbolId) -> u32 {
        0
    }

    /// Symbols for other receivers of a site.
    fn write_symbol(&self, symbol: &SymbolId, header: &mut Vec<u8>) {
        self.memory.write_symbol(symbol, header);
    }
}
