//! Prepared symbols: in memory that is used again, each after the room for its packet's header.

use fontana_proto::{BatchId, SymbolId};
use std::collections::VecDeque;
use std::ops::Range;

/// Where the symbols of a batch are in its memory: each after the room for a header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Spacing {
    /// Bytes of a header; 0: symbols follow each other, and are sent as copies.
    pub(super) header: usize,
    /// Bytes of a symbol.
    pub(super) symbol: usize,
}

impl Spacing {
    /// Bytes of a header and a symbol.
    pub(super) fn stride(self) -> usize {
        self.header + self.symbol
    }

    /// Makes room for headers: moves `count` symbols, which follow each other before byte `count *
    /// stride`, to their places.
    pub(super) fn spread(self, count: usize, memory: &mut [u8]) {
        let first = count * self.header;
        for index in 0..count {
            let from = first + index * self.symbol;
            memory.copy_within(from..from + self.symbol, index * self.stride() + self.header);
        }
    }
}

/// The symbols of the batches that a sender has requested and not released.
#[derive(Default)]
pub(super) struct PreparedSymbols {
    /// By number, from `first` on.
    batches: VecDeque<Batch>,
    first: u64,
    /// Numbers of released batches whose memory may wait to be sent.
    released: Vec<BatchId>,
    spare: Spare,
}

#[derive(Default)]
struct Batch {
    /// Empty until the symbols are prepared.
    memory: Vec<u8>,
    spacing: Spacing,
    is_requested: bool,
}

impl PreparedSymbols {
    /// No symbols. At most `spare_bytes` bytes are held for further batches.
    pub(super) fn new(spare_bytes: usize) -> Self {
        Self { spare: Spare { limit: spare_bytes, ..Spare::default() }, ..Self::default() }
    }

    /// Expects the symbols of a batch. Returns memory for them, at least `bytes` long, with any
    /// contents.
    pub(super) fn request(&mut self, batch: BatchId, bytes: usize) -> Vec<u8> {
        if let Some(index) = batch.0.checked_sub(self.first) {
            let index = index as usize;
            if self.batches.len() <= index {
                self.batches.resize_with(index + 1, Batch::default);
            }
            if let Some(batch) = self.batches.get_mut(index) {
                batch.is_requested = true;
            }
        }
        self.spare.take(bytes)
    }

    /// Stores the symbols of a batch.
    pub(super) fn store(&mut self, batch: BatchId, memory: Vec<u8>, spacing: Spacing) {
        match self.batch_mut(batch) {
            Some(stored) if stored.is_requested => {
                (stored.memory, stored.spacing) = (memory, spacing);
            }
            // It was released meanwhile.
            _ => self.spare.put(memory),
        }
    }

    /// The batch is no longer needed. Its memory stays until [`recycle`](Self::recycle).
    pub(super) fn release(&mut self, batch: BatchId) {
        self.released.push(batch);
    }

    /// Uses the memory of released batches again: all packets were sent.
    pub(super) fn recycle(&mut self) {
        for batch in std::mem::take(&mut self.released) {
            if let Some(released) = self.batch_mut(batch) {
                let Batch { memory, .. } = std::mem::take(released);
                self.spare.put(memory);
            }
        }
        while self.batches.front().is_some_and(|batch| !batch.is_requested) {
            self.batches.pop_front();
            self.first += 1;
        }
    }

    /// Releases all batches.
    pub(super) fn clear(&mut self) {
        self.first += self.batches.len() as u64;
        self.batches.clear();
    }

    /// The bytes to send of a symbol; `None` if it is not prepared.
    pub(super) fn symbol(&self, symbol: &SymbolId) -> Option<&[u8]> {
        let Batch { memory, spacing, .. } = self.batch(symbol.batch)?;
        let at = symbol.index as usize * spacing.stride() + spacing.header;
        memory.get(at..at + usize::from(symbol.size))
    }

    /// Writes a header before its symbol, and returns the position of the datagram in the memory of
    /// the batch. `None` if the symbol is not prepared, or if the room has another size.
    pub(super) fn datagram(&mut self, symbol: &SymbolId, header: &[u8]) -> Option<Range<usize>> {
        let Batch { memory, spacing, .. } = self.batch_mut(symbol.batch)?;
        let at = symbol.index as usize * spacing.stride();
        let range = at..at + header.len() + usize::from(symbol.size);
        if header.len() != spacing.header || memory.len() < range.end {
            return None;
        }
        memory.get_mut(at..at + header.len())?.copy_from_slice(header);
        Some(range)
    }

    /// A part of the memory of a batch; empty if there is none.
    pub(super) fn memory(&self, batch: BatchId, range: Range<usize>) -> &[u8] {
        self.batch(batch).and_then(|batch| batch.memory.get(range)).unwrap_or_default()
    }

    /// As [`memory`](Self::memory).
    pub(super) fn memory_mut(&mut self, batch: BatchId, range: Range<usize>) -> &mut [u8] {
        self.batch_mut(batch).and_then(|batch| batch.memory.get_mut(range)).unwrap_or_default()
    }

    fn batch(&self, batch: BatchId) -> Option<&Batch> {
        self.batches.get(batch.0.checked_sub(self.first)? as usize)
    }

    fn batch_mut(&mut self, batch: BatchId) -> Option<&mut Batch> {
        self.batches.get_mut(batch.0.checked_sub(self.first)? as usize)
    }
}

/// Memory for further batches. It is never zeroed again: a batch overwrites all that is sent of it.
#[derive(Default)]
struct Spare {
    memory: Vec<Vec<u8>>,
    bytes: usize,
    limit: usize,
}

impl Spare {
    /// At least `bytes` bytes, and not many more if they are not new.
    fn take(&mut self, bytes: usize) -> Vec<u8> {
        let fits = |memory: &&Vec<u8>| (bytes..=2 * bytes + PAGE).contains(&memory.len());
        // The one that came last is the one that is still in a cache.
        match self.memory.iter().rev().position(|memory| fits(&memory)) {
            Some(from_end) => {
                let memory = self.memory.remove(self.memory.len() - 1 - from_end);
                self.bytes -= memory.len();
                memory
            }
            None => vec![0; bytes.next_multiple_of(PAGE)],
        }
    }

    fn put(&mut self, memory: Vec<u8>) {
        if memory.is_empty() {
            return;
        }
        self.bytes += memory.len();
        self.memory.push(memory);
        // The oldest have sizes that were not asked for since.
        let mut excess = 0;
        while self.bytes > self.limit {
            let Some(oldest) = self.memory.get(excess) else { break };
            self.bytes -= oldest.len();
            excess += 1;
        }
        self.memory.drain(..excess);
    }
}

/// Unit of the memory of batches.
const PAGE: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;
    use fontana_fec::{Esi, Sbn};
    use fontana_proto::BlockId;
    use fontana_wire::Toi;

    const SPACING: Spacing = Spacing { header: 2, symbol: 3 };

    fn symbol(batch: u64, index: u32, size: u16) -> SymbolId {
        let block = BlockId { toi: Toi(1), sbn: Sbn(0) };
        SymbolId { block, esi: Esi(index), batch: BatchId(batch), index, size }
    }

    /// Prepares a batch of two symbols.
    fn prepare(prepared: &mut PreparedSymbols, batch: u64) {
        let mut memory = prepared.request(BatchId(batch), 10);
        memory[4..10].copy_from_slice(b"abcdef");
        SPACING.spread(2, &mut memory);
        prepared.store(BatchId(batch), memory, SPACING);
    }

    #[test]
    fn datagrams_of_a_batch_follow_each_other() {
        let mut prepared = PreparedSymbols::default();
        prepare(&mut prepared, 0);
        assert_eq!(prepared.symbol(&symbol(0, 1, 3)), Some(&b"def"[..]));
        assert_eq!(prepared.datagram(&symbol(0, 0, 3), b"12"), Some(0..5));
        assert_eq!(prepared.datagram(&symbol(0, 1, 2), b"34"), Some(5..9));
        assert_eq!(prepared.memory(BatchId(0), 0..9), b"12abc34de");
        // A header of another size has no room.
        assert_eq!(prepared.datagram(&symbol(0, 0, 3), b"123"), None);
        assert_eq!(prepared.datagram(&symbol(1, 0, 3), b"12"), None);
        assert_eq!(prepared.symbol(&symbol(1, 0, 3)), None);
    }

    #[test]
    fn memory_is_used_again_after_the_packets_were_sent() {
        let mut prepared = PreparedSymbols::new(1 << 20);
        for batch in 0..3 {
            prepare(&mut prepared, batch);
        }
        prepared.release(BatchId(1));
        assert!(prepared.symbol(&symbol(1, 0, 3)).is_some(), "it may wait to be sent");
        assert_eq!(prepared.spare.bytes, 0);
        prepared.recycle();
        assert!(prepared.symbol(&symbol(1, 0, 3)).is_none());
        assert_eq!((prepared.spare.bytes, prepared.batches.len()), (PAGE, 3));
        prepare(&mut prepared, 3);
        assert_eq!(prepared.spare.bytes, 0);
        // The numbers 4 and 5 were never requested.
        prepare(&mut prepared, 6);
        for batch in [0, 2, 3] {
            prepared.release(BatchId(batch));
        }
        prepared.recycle();
        assert_eq!((prepared.first, prepared.batches.len()), (6, 1));
        assert_eq!(prepared.symbol(&symbol(6, 1, 3)), Some(&b"def"[..]));
    }

    #[test]
    fn a_batch_that_was_released_before_it_was_prepared_is_not_stored() {
        let mut prepared = PreparedSymbols::new(1 << 20);
        let memory = prepared.request(BatchId(0), 10);
        prepared.release(BatchId(0));
        prepared.recycle();
        prepared.store(BatchId(0), memory, SPACING);
        assert_eq!((prepared.batches.len(), prepared.spare.bytes), (0, PAGE));
    }

    #[test]
    fn spare_memory_is_limited_and_fits() {
        let mut spare = Spare { limit: 20 * PAGE, ..Spare::default() };
        for pages in [1, 9, 10] {
            spare.put(vec![0; pages * PAGE]);
        }
        assert_eq!(spare.bytes, 20 * PAGE);
        assert_eq!(spare.take(3 * PAGE).len(), 3 * PAGE);
        assert_eq!(spare.take(5 * PAGE).len(), 10 * PAGE);
        assert_eq!(spare.bytes, 10 * PAGE);
        spare.put(vec![0; 12 * PAGE]);
        assert_eq!((spare.bytes, spare.memory.len()), (12 * PAGE, 1));
    }
}
