//! A control object at the receiver: collected and decoded in memory.

use super::symbols::{SymbolRun, symbol_fits};
use fontana_fec::simple::BlockDecoder;
use fontana_fec::{Esi, ObjectLayout, Oti, Sbn};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Collects the symbols of one control object.
#[derive(Debug)]
pub(super) struct Collector {
    layout: ObjectLayout,
    blocks: BTreeMap<Sbn, Block>,
    blocks_missing: u32,
    bytes: Vec<u8>,
    /// Symbols that were taken.
    received: u64,
}

#[derive(Debug)]
enum Block {
    Open(Box<BlockDecoder>),
    Complete,
}

impl Collector {
    /// `None` if `oti` describes no object, one of more than `max_bytes`, or one with a code whose
    /// decoders take much memory. Memory grows with what arrives, not with what `oti` says.
    pub(super) fn new(oti: Oti, max_bytes: u64) -> Option<Self> {
        let layout = oti.layout().ok()?;
        let cheap = oti.scheme.block_profile(1).decoder_memory.is_none();
        (cheap && oti.transfer_length <= max_bytes).then(|| Self {
            layout,
            blocks: BTreeMap::new(),
            blocks_missing: layout.block_count(),
            bytes: Vec::new(),
            received: 0,
        })
    }

    /// Symbols that were received, those that came again included.
    pub(super) fn received(&self) -> u64 {
        self.received
    }

    pub(super) fn source_symbols(&self) -> u64 {
        self.layout.total_source_symbols()
    }

    pub(super) fn oti(&self) -> Oti {
        self.layout.oti()
    }

    /// Takes the symbols of a payload. Returns the object's bytes, when they are complete.
    pub(super) fn push(&mut self, sbn: Sbn, esi: Esi, payload: &[u8]) -> Option<Vec<u8>> {
        if symbol_fits(&self.layout, sbn, esi, payload.len()) {
            return self.push_symbol(sbn, esi, payload);
        }
        let run = SymbolRun::new(&self.layout, sbn, esi, payload.len())?;
        run.symbols().find_map(|(esi, range)| self.push_symbol(sbn, esi, payload.get(range)?))
    }

    /// Takes a symbol that [fits](symbol_fits).
    fn push_symbol(&mut self, sbn: Sbn, esi: Esi, symbol: &[u8]) -> Option<Vec<u8>> {
        let k = self.layout.source_symbols(sbn)?;
        let oti = self.layout.oti();
        let size = usize::from(oti.symbol_size);
        self.received += 1;
        let block = match self.blocks.entry(sbn) {
            Entry::Occupied(block) => block.into_mut(),
            Entry::Vacant(block) => {
                let decoder = BlockDecoder::new(oti.scheme, k as usize * size, oti.symbol_size);
                block.insert(Block::Open(Box::new(decoder.ok()?)))
            }
        };
        let Block::Open(decoder) = block else { return None };
        let mut padded = symbol.to_vec();
        padded.resize(size, 0);
        let symbols = decoder.push(esi, &padded).ok()??;
        self.bytes.resize(oti.transfer_length as usize, 0);
        for (esi, symbol) in (0..k).map(Esi).zip(symbols.chunks_exact(size)) {
            for piece in self.layout.symbol_pieces(sbn, esi) {
                let to = piece.in_object.start as usize..piece.in_object.end as usize;
                let from = piece.in_symbol.start..piece.in_symbol.start + to.len();
                if let (Some(to), Some(from)) = (self.bytes.get_mut(to), symbol.get(from)) {
                    to.copy_from_slice(from);
                }
            }
        }
        *block = Block::Complete;
        self.blocks_missing = self.blocks_missing.saturating_sub(1);
        (self.blocks_missing == 0).then(|| std::mem::take(&mut self.bytes))
    }
}
