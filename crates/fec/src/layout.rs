//! The position of symbols in an object: source blocks, sub-blocks and byte ranges.
//!
//! Partitioning follows RFC 5052, section 9.1, for Raptor RFC 5053, section 5.3.1.2, and for
//! RaptorQ RFC 6330, section 4.4.1.2. For source blocks all give the same result.

use crate::code::BlockProfile;
use crate::ids::{EncodingId, Esi, Sbn};
use crate::limits::{Interleaving, OtiError, Partition};
use crate::oti::Oti;
use core::ops::Range;

/// The geometry of one object, from a checked [`Oti`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectLayout {
    oti: Oti,
    encoding_id: EncodingId,
    interleaving: Interleaving,
    /// Source symbols in the object.
    total: u64,
    /// Source blocks.
    blocks: u32,
    /// The first `large_blocks` blocks have `large` symbols, the others `small`.
    large: BlockLength,
    small: BlockLength,
    large_blocks: u32,
}

/// Facts about a block that every packet needs, stored to avoid a call to the code's page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct BlockLength {
    source_symbols: u32,
    encoding_symbols: u32,
}

/// A range of bytes that a source symbol and the object have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SymbolPiece {
    /// Bytes of the object. May be shorter than `in_symbol` at the end of the object, where the
    /// rest of the symbol is zero padding.
    pub in_object: Range<u64>,
    /// Bytes of the symbol.
    pub in_symbol: Range<usize>,
}

impl Oti {
    /// Checks the parameters and returns the geometry of the object.
    ///
    /// # Errors
    /// [`OtiError`] if the parameters are invalid.
    pub fn layout(&self) -> Result<ObjectLayout, OtiError> {
        ObjectLayout::new(*self)
    }
}

impl ObjectLayout {
    fn new(oti: Oti) -> Result<Self, OtiError> {
        if oti.symbol_size == 0 {
            return Err(OtiError::SymbolSize);
        }
        let limits = oti.scheme.limits(oti.symbol_size)?;
        let total = oti.transfer_length.div_ceil(u64::from(oti.symbol_size));
        let (blocks, block_limit) = match limits.partition {
            // An empty object has no blocks, whatever its OTI says.
            Partition::BlockCount(blocks) => (if total == 0 { 0 } else { blocks.into() }, total),
            Partition::BlockLength { max_source_block_length, max_blocks } => {
                (total.div_ceil(max_source_block_length.into()), max_blocks.into())
            }
        };
        let (actual, limit) = (oti.transfer_length, limits.max_transfer_length);
        if actual > limit {
            return Err(OtiError::TransferLength { actual, limit });
        }
        if blocks > block_limit {
            return Err(OtiError::BlockCount { actual: blocks, limit: block_limit });
        }
        let large = if blocks == 0 { 0 } else { total.div_ceil(blocks) };
        let limit = limits.max_source_symbols;
        if large > u64::from(limit) {
            return Err(OtiError::BlockLength { actual: large, limit });
        }
        // `large` is at most 2^20 and `blocks` at most 2^24 from here on.
        let small = total.checked_div(blocks).unwrap_or(0);
        let large_blocks = total - small * blocks;
        let block = |k| {
            let source_symbols = k as u32;
            let encoding_symbols = oti.scheme.block_profile(source_symbols).encoding_symbols;
            BlockLength { source_symbols, encoding_symbols }
        };
        Ok(Self {
            oti,
            encoding_id: oti.scheme.profile().encoding_id,
            interleaving: limits.interleaving,
            total,
            blocks: blocks as u32,
            large: block(large),
            small: block(small),
            large_blocks: large_blocks as u32,
        })
    }

    /// The OTI that this geometry was computed from.
    pub fn oti(&self) -> Oti {
        self.oti
    }

    /// The FEC Encoding ID of the code.
    pub fn encoding_id(&self) -> EncodingId {
        self.encoding_id
    }

    /// Source blocks; 0 for an empty object.
    pub fn block_count(&self) -> u32 {
        self.blocks
    }

    /// Source symbols in the whole object.
    pub fn total_source_symbols(&self) -> u64 {
        self.total
    }

    /// Source symbols of the longest block; 0 for an empty object.
    pub fn max_source_symbols(&self) -> u32 {
        self.large.source_symbols
    }

    fn block(&self, sbn: Sbn) -> Option<&BlockLength> {
        let is_large = sbn.0 < self.large_blocks;
        (sbn.0 < self.blocks).then_some(if is_large { &self.large } else { &self.small })
    }

    /// `k`: source symbols of block `sbn`, or `None` if the object has no such block.
    pub fn source_symbols(&self, sbn: Sbn) -> Option<u32> {
        self.block(sbn).map(|block| block.source_symbols)
    }

    /// True if block `sbn` exists and `esi` names one of its encoding symbols.
    pub fn contains(&self, sbn: Sbn, esi: Esi) -> bool {
        self.block(sbn).is_some_and(|block| esi.0 < block.encoding_symbols)
    }

    /// The code's facts about the longest block.
    pub fn longest_block_profile(&self) -> BlockProfile {
        self.oti.scheme.block_profile(self.large.source_symbols)
    }

    /// True if the bytes of a source symbol are contiguous in the object, and consecutive source
    /// symbols of a block follow each other.
    pub fn is_contiguous(&self) -> bool {
        self.interleaving.sub_blocks < 2
    }

    /// Bytes of source symbol `esi` of block `sbn` without the padding after the end of the object.
    /// The symbol size for every other symbol. Also the symbol size for symbols of sub-blocks
    /// (RFC 6330), whose padding may not be at their end.
    pub fn unpadded_symbol_size(&self, sbn: Sbn, esi: Esi) -> u16 {
        let size = self.oti.symbol_size;
        if !self.is_contiguous() {
            return size;
        }
        let piece = self.symbol_pieces(sbn, esi).next();
        piece.map_or(size, |piece| (piece.in_object.end - piece.in_object.start) as u16)
    }

    /// Source symbols in the blocks before `sbn`.
    fn symbols_before(&self, sbn: Sbn) -> u64 {
        let (n, i) = (u64::from(sbn.0), u64::from(self.large_blocks));
        n.min(i) * u64::from(self.large.source_symbols)
            + n.saturating_sub(i) * u64::from(self.small.source_symbols)
    }

    /// Bytes of the object that block `sbn` holds, or `None` if there is no such block.
    pub fn block_range(&self, sbn: Sbn) -> Option<Range<u64>> {
        let k = u64::from(self.source_symbols(sbn)?);
        let t = u64::from(self.oti.symbol_size);
        let start = self.symbols_before(sbn) * t;
        Some(start..(start + k * t).min(self.oti.transfer_length))
    }

    /// The byte ranges of source symbol `esi` of block `sbn` in the object: one piece for each
    /// sub-block, in the symbol's order. Bytes of the symbol that no piece covers are zero. Empty
    /// if there is no such source symbol.
    pub fn symbol_pieces(&self, sbn: Sbn, esi: Esi) -> impl Iterator<Item = SymbolPiece> + use<> {
        let k = self.source_symbols(sbn).filter(|&k| esi.0 < k).unwrap_or(0);
        let Interleaving { sub_blocks, alignment } = match k {
            0 => Interleaving { sub_blocks: 0, alignment: 1 },
            _ => self.interleaving,
        };
        let al = u64::from(alignment);
        let units = u64::from(self.oti.symbol_size) / al;
        let n = u64::from(sub_blocks).max(1);
        let (large, small) = (units.div_ceil(n) * al, units / n * al);
        let large_count = units - units / n * n;
        let end = self.oti.transfer_length;
        let mut sub_block = self.symbols_before(sbn) * u64::from(self.oti.symbol_size);
        let mut at = 0_usize;
        (0..u64::from(sub_blocks)).filter_map(move |j| {
            let size = if j < large_count { large } else { small };
            let start = sub_block + u64::from(esi.0) * size;
            sub_block += u64::from(k) * size;
            let in_symbol = at..at + size as usize;
            at += size as usize;
            (start < end)
                .then(|| SymbolPiece { in_object: start..(start + size).min(end), in_symbol })
        })
    }
}
