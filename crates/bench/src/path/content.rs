//! The file that the stages work on.

use fontana_fec::codes::raptorq::RaptorQ;
use fontana_fec::{Esi, FecScheme, ObjectLayout, Oti, PlanCache, Sbn};
use fontana_store::{Extents, FileIndex, ObjectEncoder, ObjectSource, SolvedStore, SourceFiles};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes of a symbol on Ethernet.
pub(super) const SYMBOL_SIZE: u16 = 1344;
/// Source symbols of a block, by default.
const BLOCK_SYMBOLS: u64 = 10_000;
/// Consecutive symbols of a block: a GSO batch.
pub(super) const RUN: u32 = 48;

/// A file of noise, as one object.
pub(super) struct PathContent {
    pub(super) directory: PathBuf,
    pub(super) bytes: Vec<u8>,
    pub(super) layout: ObjectLayout,
}

/// Consecutive symbols of a block.
#[derive(Clone, Copy)]
pub(super) struct Run {
    pub(super) sbn: Sbn,
    pub(super) first: Esi,
    pub(super) count: u32,
}

impl Run {
    pub(super) fn esis(self) -> Vec<Esi> {
        (self.first.0..self.first.0 + self.count).map(Esi).collect()
    }
}

impl PathContent {
    /// A file of about `size` bytes, whole symbols.
    pub(super) fn new(directory: &Path, size: u64) -> Self {
        let symbols = size / u64::from(SYMBOL_SIZE);
        let size = symbols * u64::from(SYMBOL_SIZE);
        let source_blocks = symbols.div_ceil(BLOCK_SYMBOLS) as u8;
        let scheme = FecScheme::RaptorQ(RaptorQ { source_blocks, sub_blocks: 1, alignment: 4 });
        let oti = Oti { transfer_length: size, symbol_size: SYMBOL_SIZE, scheme };
        let mut state = 1_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 32) as u32
        };
        let bytes = (0..size / 4).flat_map(|_| next().to_le_bytes()).collect();
        let content =
            Self { directory: directory.to_owned(), bytes, layout: oti.layout().unwrap() };
        std::fs::write(content.path(), &content.bytes).unwrap();
        content
    }

    pub(super) fn path(&self) -> PathBuf {
        self.directory.join("content")
    }

    pub(super) fn extents(&self) -> Extents {
        Extents::whole_file(FileIndex(0), self.bytes.len() as u64)
    }

    pub(super) fn source_symbols(&self) -> u64 {
        self.layout.total_source_symbols()
    }

    /// The blocks, and the number of source symbols of each.
    pub(super) fn blocks(&self) -> impl Iterator<Item = (Sbn, u32)> {
        let symbols = move |sbn| Some((sbn, self.layout.source_symbols(sbn)?));
        (0..self.layout.block_count()).map(Sbn).filter_map(symbols)
    }

    /// The runs of the source symbols, block after block.
    pub(super) fn source_runs(&self) -> impl Iterator<Item = Run> {
        self.blocks().flat_map(|(sbn, k)| {
            let run = move |first| Run { sbn, first: Esi(first), count: RUN.min(k - first) };
            (0..k).step_by(RUN as usize).map(run)
        })
    }

    /// The bytes of a run of source symbols.
    pub(super) fn source(&self, run: Run) -> &[u8] {
        let block: Range<u64> = self.layout.block_range(run.sbn).unwrap();
        let size = u64::from(SYMBOL_SIZE);
        let start = block.start + u64::from(run.first.0) * size;
        &self.bytes[start as usize..][..(u64::from(run.count) * size) as usize]
    }

    /// An encoder that stores all blocks in memory.
    pub(super) fn encoder(&self) -> ObjectEncoder {
        let mut files = SourceFiles::default();
        files.add(self.path()).unwrap();
        let source = ObjectSource::new(Arc::new(files), self.layout, self.extents()).unwrap();
        let plans = Arc::new(PlanCache::new(4));
        ObjectEncoder::new(Arc::new(source), plans, SolvedStore::new(usize::MAX))
    }
}
