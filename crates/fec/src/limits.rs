//! Limits of a code on objects and blocks, and errors for OTIs that exceed them.

/// The partition of an object into source blocks, and the code's limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ObjectLimits {
    pub(crate) partition: Partition,
    /// Most source symbols of a block.
    pub(crate) max_source_symbols: u32,
    /// Most bytes of an object.
    pub(crate) max_transfer_length: u64,
    /// The layout of a source symbol in its block.
    pub(crate) interleaving: Interleaving,
}

/// The parameter that determines the number of source blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Partition {
    /// The number of blocks is given.
    BlockCount(u32),
    /// The largest number of source symbols of a block is given.
    BlockLength {
        /// `B`.
        max_source_block_length: u32,
        /// Most blocks.
        max_blocks: u32,
    },
}

/// The sub-blocks of a source block (RFC 5053, section 5.3.1.2; RFC 6330, section 4.4.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interleaving {
    /// `N`: parts of a source symbol that are not contiguous in the object.
    pub(crate) sub_blocks: u16,
    /// `Al`: unit of bytes that stay together.
    pub(crate) alignment: u8,
}

impl Interleaving {
    /// Source symbols are contiguous in the object.
    pub(crate) const NONE: Self = Self { sub_blocks: 1, alignment: 1 };

    /// Checks `Z`, `N` and `Al` of an object with symbols of `symbol_size` bytes.
    pub(crate) fn check(self, source_blocks: u16, symbol_size: u16) -> Result<(), OtiError> {
        let Self { sub_blocks, alignment } = self;
        let numbers = [
            (source_blocks == 0, "the number of source blocks"),
            (sub_blocks == 0, "the number of sub-blocks"),
            (alignment == 0, "the symbol alignment"),
        ];
        if let Some(&(_, name)) = numbers.iter().find(|&&(is_zero, _)| is_zero) {
            return Err(OtiError::Zero(name));
        }
        let units = symbol_size / u16::from(alignment);
        if !symbol_size.is_multiple_of(alignment.into()) || sub_blocks > units {
            return Err(OtiError::Alignment { symbol_size, sub_blocks, alignment });
        }
        Ok(())
    }
}

/// Longest object: transfer lengths have 48 bits in EXT_FTI.
pub const MAX_TRANSFER_LENGTH: u64 = (1 << 48) - 1;

/// Checks `B`, the maximum source block length.
pub(crate) fn check_block_length_limit(max_source_block_length: u32) -> Result<u32, OtiError> {
    match max_source_block_length {
        0 => Err(OtiError::Zero("the maximum source block length")),
        length => Ok(length),
    }
}

/// Why an [`Oti`](crate::Oti) is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OtiError {
    /// A symbol must have at least one byte.
    #[error("symbol size is 0 bytes, must be at least 1")]
    SymbolSize,
    /// A parameter that is used as a divisor is zero.
    #[error("{0} is 0, must be at least 1")]
    Zero(&'static str),
    /// Symbols of Raptor and RaptorQ must be a whole number of alignment units, and sub-symbols at
    /// least one. Those of Reed-Solomon over GF(2^16) must be a whole number of elements.
    #[error(
        "{symbol_size}-byte symbols cannot hold {sub_blocks} sub-symbols aligned to {alignment}"
    )]
    Alignment {
        /// Bytes in a symbol.
        symbol_size: u16,
        /// Sub-blocks per source block.
        sub_blocks: u16,
        /// Alignment, in bytes.
        alignment: u8,
    },
    /// A source block would have more symbols than the code allows.
    #[error("source blocks have {actual} symbols, the code allows at most {limit}")]
    BlockLength {
        /// Symbols in the largest block.
        actual: u64,
        /// The code's limit.
        limit: u32,
    },
    /// A block would have more encoding symbols than the code has.
    #[error("blocks have {actual} encoding symbols, the code allows at most {limit}")]
    EncodingSymbols {
        /// Encoding symbols of a block.
        actual: u16,
        /// The code's limit.
        limit: u16,
    },
    /// More source blocks than there are block numbers, or than there are symbols.
    #[error("object has {actual} source blocks, at most {limit} are allowed")]
    BlockCount {
        /// Source blocks of the object.
        actual: u64,
        /// The limit.
        limit: u64,
    },
    /// Longer than the 48 bits (40 for RaptorQ, 45 for Raptor) of the transfer length allow.
    #[error("object has {actual} bytes, the code allows at most {limit}")]
    TransferLength {
        /// Bytes of the object.
        actual: u64,
        /// The code's limit.
        limit: u64,
    },
}

/// A number of source symbols that no block of the code has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("source block has {actual} symbols, the code allows 1 to {limit}")]
pub struct BlockLengthError {
    /// The requested number.
    pub actual: u32,
    /// The longest block of the code.
    pub limit: u32,
}

impl BlockLengthError {
    /// Checks that a block of `source_symbols` has 1 to `limit` of them.
    pub(crate) fn check(source_symbols: u32, limit: u32) -> Result<(), Self> {
        if (1..=limit).contains(&source_symbols) {
            Ok(())
        } else {
            Err(Self { actual: source_symbols, limit })
        }
    }
}
