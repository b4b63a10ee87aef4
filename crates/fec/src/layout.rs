//! Where the symbols of an object lie: source blocks, sub-blocks and byte ranges.
//!
//! Partitioning follows RFC 5052, section 9.1 for No-Code and Reed-Solomon, and RFC 6330, section 4.4.1.2 for
//! RaptorQ; for the source blocks the two give the same answer.

use crate::ids::{Esi, Sbn};
use crate::oti::{FecScheme, Oti, OtiError};
use std::ops::Range;

/// Largest `K` of RFC 6330, section 5.6.
pub(crate) const RAPTORQ_MAX_SOURCE_SYMBOLS: u32 = 56_403;
/// Largest object of RFC 6330, section 3.3.2.
const RAPTORQ_MAX_TRANSFER_LENGTH: u64 = 946_270_874_880;
/// Block numbers and symbol numbers of Compact No-Code have 16 bits each.
pub(crate) const NO_CODE_LIMIT: u64 = 1 << 16;
/// Block numbers of under-specified codes have 32 bits (RFC 5445, section 5), but a receiver keeps
/// something of every block: with long blocks so many make 4 TB.
const LONG_BLOCKS_LIMIT: u64 = 1 << 16;
/// Transfer lengths have 48 bits in EXT_FTI.
const MAX_TRANSFER_LENGTH: u64 = (1 << 48) - 1;

/// Block numbers have 24 bits beside RFC 5510's 8 for symbols, and 32 in FEC Encoding
/// ID 129 (RFC 5445, section 5.2.1), of which 24 are used: an object of more blocks is none of ours.
const REED_SOLOMON_MAX_BLOCKS: u64 = 1 << 24;

/// The geometry of one object, from an [`Oti`] that has been checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectLayout {
    oti: Oti,
    /// Source symbols in the object.
    total: u64,
    /// Source blocks.
    blocks: u32,
    /// The first `large_blocks` blocks have `large` symbols, the others `small`.
    large: u32,
    small: u32,
    large_blocks: u32,
}

/// A run of bytes that a source symbol and the object have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SymbolPiece {
    /// Bytes of the object; may be shorter than `in_symbol` at the end of the object, where the
    /// rest of the symbol is zero padding.
    pub in_object: Range<u64>,
    /// Bytes of the symbol.
    pub in_symbol: Range<usize>,
}

impl ObjectLayout {
    pub(crate) fn new(oti: Oti) -> Result<Self, OtiError> {
        if oti.symbol_size == 0 {
            return Err(OtiError::SymbolSize);
        }
        let total = oti.transfer_length.div_ceil(u64::from(oti.symbol_size));
        let (blocks, length_limit, block_limit, size_limit) = match oti.scheme {
            FecScheme::NoCode { max_source_block_length } => {
                if max_source_block_length == 0 {
                    return Err(OtiError::Zero("the maximum source block length"));
                }
                let blocks = total.div_ceil(u64::from(max_source_block_length));
                (blocks, NO_CODE_LIMIT as u32, NO_CODE_LIMIT, MAX_TRANSFER_LENGTH)
            }
            FecScheme::Tornado { max_source_block_length, .. }
            | FecScheme::Lt { max_source_block_length, .. } => {
                if max_source_block_length == 0 {
                    return Err(OtiError::Zero("the maximum source block length"));
                }
                let blocks = total.div_ceil(u64::from(max_source_block_length));
                let length_limit = oti.scheme.max_source_symbols();
                (blocks, length_limit, LONG_BLOCKS_LIMIT, MAX_TRANSFER_LENGTH)
            }
            FecScheme::RaptorQ { source_blocks, sub_blocks, alignment } => {
                if source_blocks == 0 {
                    return Err(OtiError::Zero("the number of source blocks"));
                }
                if sub_blocks == 0 {
                    return Err(OtiError::Zero("the number of sub-blocks"));
                }
                if alignment == 0 {
                    return Err(OtiError::Zero("the symbol alignment"));
                }
                let units = oti.symbol_size / u16::from(alignment);
                if !oti.symbol_size.is_multiple_of(u16::from(alignment)) || sub_blocks > units {
                    let symbol_size = oti.symbol_size;
                    return Err(OtiError::Alignment { symbol_size, sub_blocks, alignment });
                }
                // An empty object has no blocks, whatever its sender says.
                let blocks = if total == 0 { 0 } else { u64::from(source_blocks) };
                (blocks, RAPTORQ_MAX_SOURCE_SYMBOLS, total, RAPTORQ_MAX_TRANSFER_LENGTH)
            }
            FecScheme::ReedSolomon { code, max_source_block_length, max_encoding_symbols } => {
                if max_source_block_length == 0 {
                    return Err(OtiError::Zero("the maximum source block length"));
                }
                let (actual, limit) = (max_encoding_symbols, code.max_encoding_symbols());
                if actual > limit {
                    return Err(OtiError::EncodingSymbols { actual, limit });
                }
                // Also if the object is too short for such a block: the field may have 8 bits.
                if max_source_block_length > max_encoding_symbols {
                    return Err(OtiError::BlockLength {
                        actual: max_source_block_length.into(),
                        limit: max_encoding_symbols.into(),
                    });
                }
                let (symbol_size, alignment) = (oti.symbol_size, code.symbol_alignment());
                if !symbol_size.is_multiple_of(alignment.into()) {
                    return Err(OtiError::Alignment { symbol_size, sub_blocks: 1, alignment });
                }
                let blocks = total.div_ceil(u64::from(max_source_block_length));
                let limit = max_encoding_symbols.into();
                (blocks, limit, REED_SOLOMON_MAX_BLOCKS, MAX_TRANSFER_LENGTH)
            }
        };
        if oti.transfer_length > size_limit {
            return Err(OtiError::TransferLength {
                actual: oti.transfer_length,
                limit: size_limit,
            });
        }
        if blocks > block_limit {
            return Err(OtiError::BlockCount { actual: blocks, limit: block_limit });
        }
        let large = if blocks == 0 { 0 } else { total.div_ceil(blocks) };
        if large > u64::from(length_limit) {
            return Err(OtiError::BlockLength { actual: large, limit: length_limit });
        }
        // `large` is at most 2^20 and `blocks` at most 2^24 from here on.
        let small = total.checked_div(blocks).unwrap_or(0);
        let large_blocks = total - small * blocks;
        Ok(Self {
            oti,
            total,
            blocks: blocks as u32,
            large: large as u32,
            small: small as u32,
            large_blocks: large_blocks as u32,
        })
    }

    /// What this geometry was computed from.
    pub fn oti(&self) -> Oti {
        self.oti
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
        self.large
    }

    /// `k`: source symbols of block `sbn`, or `None` if the object has no such block.
    pub fn source_symbols(&self, sbn: Sbn) -> Option<u32> {
        (sbn.0 < self.blocks).then_some(if sbn.0 < self.large_blocks {
            self.large
        } else {
            self.small
        })
    }

    /// True if block `sbn` exists and `esi` names one of its encoding symbols.
    pub fn contains(&self, sbn: Sbn, esi: Esi) -> bool {
        self.source_symbols(sbn).is_some_and(|k| esi.0 < self.oti.scheme.encoding_symbols(k))
    }

    /// Source symbols in the blocks before `sbn`.
    fn symbols_before(&self, sbn: Sbn) -> u64 {
        let (n, i) = (u64::from(sbn.0), u64::from(self.large_blocks));
        n.min(i) * u64::from(self.large) + n.saturating_sub(i) * u64::from(self.small)
    }

    /// Bytes of the object that block `sbn` holds, or `None` if there is no such block.
    pub fn block_range(&self, sbn: Sbn) -> Option<Range<u64>> {
        let k = u64::from(self.source_symbols(sbn)?);
        let t = u64::from(self.oti.symbol_size);
        let start = self.symbols_before(sbn) * t;
        Some(start..(start + k * t).min(self.oti.transfer_length))
    }

    /// Where the bytes of source symbol `esi` of block `sbn` lie in the object: one piece for each
    /// sub-block, in the symbol's order. Bytes of the symbol that no piece covers are zero.
    /// Empty if there is no such source symbol.
    pub fn symbol_pieces(&self, sbn: Sbn, esi: Esi) -> impl Iterator<Item = SymbolPiece> + use<> {
        let k = self.source_symbols(sbn).filter(|&k| esi.0 < k).unwrap_or(0);
        let (sub_blocks, alignment) = match self.oti.scheme {
            _ if k == 0 => (0, 1),
            FecScheme::RaptorQ { sub_blocks, alignment, .. } => (sub_blocks, alignment),
            _ => (1, 1),
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
