//! Early symbols beyond the memory for them: records in chunks of a file that the driver has.

use super::EarlySymbol;
use crate::counter::Counter;
use crate::endpoint::BlockId;
use crate::receiver::sources::SourceId;
use fontana_fec::{EncodingId, Esi, Sbn};
use fontana_wire::Toi;
use std::collections::VecDeque;

/// Bytes of a chunk, at most: of one write and of one read. A packet's symbols fit.
pub(in crate::receiver) const CHUNK_BYTES: usize = 64 << 10;

/// Bytes of a record before its symbol.
const HEADER_BYTES: usize = 19;

/// A part of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::receiver) struct Chunk {
    /// Its place: the file is divided in places of [`CHUNK_BYTES`].
    pub(in crate::receiver) slot: u32,
    /// Bytes.
    pub(in crate::receiver) length: u32,
    /// Symbols in it.
    pub(in crate::receiver) symbols: u64,
}

/// The symbols of one session that are in the file, or in the chunk that is written next.
#[derive(Debug, Default)]
pub(in crate::receiver) struct SpilledSymbols {
    /// Records of the next chunk.
    records: Vec<u8>,
    /// Symbols in them.
    symbols: u64,
    /// Those in the file, in the order of arrival.
    pub(in crate::receiver) chunks: VecDeque<Chunk>,
}

impl SpilledSymbols {
    pub(in crate::receiver) fn is_empty(&self) -> bool {
        self.records.is_empty() && self.chunks.is_empty()
    }

    /// Whether the next chunk has room for a symbol of so many bytes.
    pub(in crate::receiver) fn has_room(&self, length: usize) -> bool {
        let bytes = self.records.len().saturating_add(HEADER_BYTES).saturating_add(length);
        bytes <= CHUNK_BYTES
    }

    /// Adds a symbol to the next chunk. False if no manifest can have its object.
    pub(in crate::receiver) fn push(
        &mut self,
        block: BlockId,
        (esi, encoding_id): (Esi, EncodingId),
        source: SourceId,
        bytes: &[u8],
    ) -> bool {
        let (Ok(toi), Ok(length)) = (u32::try_from(block.toi.0), u16::try_from(bytes.len())) else {
            return false;
        };
        for number in [toi, block.sbn.0, esi.0, source.number()] {
            self.records.extend(number.to_le_bytes());
        }
        self.records.push(encoding_id.0);
        self.records.extend(length.to_le_bytes());
        self.records.extend(bytes);
        self.symbols.count(1);
        true
    }

    /// The next chunk, which will be in this slot, and its records.
    pub(in crate::receiver) fn complete(&mut self, slot: u32) -> Vec<u8> {
        let records = std::mem::take(&mut self.records);
        let symbols = std::mem::take(&mut self.symbols);
        self.chunks.push_back(Chunk { slot, length: records.len() as u32, symbols });
        records
    }

    /// The records that are in no chunk yet.
    pub(in crate::receiver) fn take_records(&mut self) -> Vec<u8> {
        self.symbols = 0;
        std::mem::take(&mut self.records)
    }
}

/// The symbols of a chunk as it was read, as far as they are whole.
pub(in crate::receiver) fn records(mut bytes: &[u8]) -> impl Iterator<Item = EarlySymbol> {
    std::iter::from_fn(move || {
        let (header, rest) = bytes.split_first_chunk::<HEADER_BYTES>()?;
        let &[a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, encoding_id, low, high] = header;
        let (symbol, rest) = rest.split_at_checked(u16::from_le_bytes([low, high]).into())?;
        bytes = rest;
        let toi = Toi(u32::from_le_bytes([a, b, c, d]).into());
        Some(EarlySymbol {
            block: BlockId { toi, sbn: Sbn(u32::from_le_bytes([e, f, g, h])) },
            esi: Esi(u32::from_le_bytes([i, j, k, l])),
            source: SourceId::of_number(u32::from_le_bytes([m, n, o, p])),
            encoding_id: EncodingId(encoding_id),
            bytes: symbol.to_vec(),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: BlockId = BlockId { toi: Toi(7), sbn: Sbn(8) };

    fn push(spilled: &mut SpilledSymbols, toi: u128, bytes: &[u8]) -> bool {
        let block = BlockId { toi: Toi(toi), ..BLOCK };
        spilled.push(block, (Esi(9), EncodingId::RAPTORQ), SourceId::new(3), bytes)
    }

    #[test]
    fn what_is_read_is_what_was_written() {
        let mut spilled = SpilledSymbols::default();
        assert!(push(&mut spilled, 7, b"first") && push(&mut spilled, 7, b""));
        assert!(!push(&mut spilled, 1 << 32, b"other"), "no object of a manifest");
        let bytes = spilled.complete(4);
        let chunk = Chunk { slot: 4, length: bytes.len() as u32, symbols: 2 };
        assert_eq!(spilled.chunks, [chunk]);
        let read: Vec<_> = records(&bytes).collect();
        let [first, second] = &read[..] else { panic!("{read:?}") };
        assert_eq!((first.block, first.esi, first.source), (BLOCK, Esi(9), SourceId::new(3)));
        assert_eq!((&first.bytes[..], first.encoding_id), (&b"first"[..], EncodingId::RAPTORQ));
        assert!(second.bytes.is_empty());
        // A chunk that was written in part.
        assert_eq!(records(&bytes[..bytes.len() - 1]).count(), 1);
        assert_eq!(records(&bytes[..HEADER_BYTES + 4]).count(), 0);
    }

    #[test]
    fn a_chunk_takes_the_symbols_of_any_packet_and_no_more_than_its_bytes() {
        let mut spilled = SpilledSymbols::default();
        let most = CHUNK_BYTES - HEADER_BYTES;
        assert!(spilled.has_room(65_507) && spilled.has_room(most) && !spilled.has_room(most + 1));
        assert!(push(&mut spilled, 7, &vec![1; most - 100]));
        assert!(spilled.has_room(100 - HEADER_BYTES) && !spilled.has_room(101 - HEADER_BYTES));
    }
}
