//! FEC Object Transmission Information: what both ends must know of an object before a symbol of it
//! means anything (RFC 5052, section 6; RFC 5445; RFC 6330, section 3.3).

use crate::codes::lt::Lt;
use crate::codes::reed_solomon::ReedSolomonCode;
use crate::codes::tornado::Tornado;
use crate::layout::ObjectLayout;

/// Which code an object is sent with, and the parameters that belong to that code.
///
/// The set is closed: it is the list of codes this workspace speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FecScheme {
    /// Compact No-Code, FEC Encoding ID 0 (RFC 5445, section 3): source symbols only.
    NoCode {
        /// `B`: most source symbols in a block.
        max_source_block_length: u32,
    },
    /// RaptorQ, FEC Encoding ID 6 (RFC 6330): a fountain, 2^24 symbols to a block.
    RaptorQ {
        /// `Z`: blocks the object is cut into.
        source_blocks: u8,
        /// `N`: sub-blocks that each source block is cut into; with more than one, the bytes of a
        /// symbol are not contiguous in the object.
        sub_blocks: u16,
        /// `Al`: alignment of symbols and sub-symbols, in bytes.
        alignment: u8,
    },
    /// Tornado ([`tornado`](crate::codes::tornado)): systematic, 2 to 10 times as many encoding symbols as
    /// source symbols.
    Tornado {
        /// `B`: most source symbols in a block.
        max_source_block_length: u32,
        /// Which Tornado code.
        code: Tornado,
    },
    /// LT ([`lt`](crate::codes::lt)): a fountain of which no symbol is a source symbol.
    Lt {
        /// `B`: most source symbols in a block.
        max_source_block_length: u32,
        /// Which LT code.
        code: Lt,
    },
    /// Reed-Solomon: any `k` encoding symbols of a block recover it, and there are not many more.
    ReedSolomon {
        /// Which of them.
        code: ReedSolomonCode,
        /// `B`: most source symbols in a block.
        max_source_block_length: u16,
        /// `max_n`: most encoding symbols of a block, source symbols included.
        max_encoding_symbols: u16,
    },
}

impl FecScheme {
    /// The FEC Encoding ID registered for the scheme (RFC 5052, section 9).
    pub const fn encoding_id(self) -> u8 {
        match self {
            Self::NoCode { .. } => 0,
            Self::RaptorQ { .. } => 6,
            // Small Block, Large Block and Expandable, under-specified (RFC 5445, section 5).
            Self::Tornado { .. } | Self::Lt { .. } => 128,
            Self::ReedSolomon { code: ReedSolomonCode::Rfc5510, .. } => 5,
            Self::ReedSolomon { .. } => 129,
        }
    }

    /// True if a block has more encoding symbols than anybody will ever send, so that a sender
    /// never needs to repeat one.
    pub const fn is_rateless(self) -> bool {
        matches!(self, Self::RaptorQ { .. } | Self::Lt { .. })
    }

    /// True if source symbols are worth sending: they are encoding symbols like any other. Decoders
    /// take them from every code, but an LT code's other symbols are made to do without.
    pub const fn is_systematic(self) -> bool {
        !matches!(self, Self::Lt { .. })
    }
}

/// FEC Object Transmission Information of one object.
///
/// Plain data that may have come from the network: [`Oti::layout`] checks it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Oti {
    /// `F`: bytes of the object as it is transported.
    pub transfer_length: u64,
    /// `T` (or `E`): bytes of an encoding symbol.
    pub symbol_size: u16,
    /// The code and its own parameters.
    pub scheme: FecScheme,
}

/// Why an [`Oti`] describes no object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OtiError {
    /// A symbol must have at least one byte.
    #[error("symbols of 0 bytes")]
    SymbolSize,
    /// A parameter that divides something is zero.
    #[error("{0} is 0")]
    Zero(&'static str),
    /// RaptorQ's symbols must be a whole number of alignment units, and sub-symbols at least one;
    /// those of Reed-Solomon over GF(2^16) a whole number of elements.
    #[error(
        "{symbol_size}-byte symbols cannot hold {sub_blocks} sub-symbols aligned to {alignment}"
    )]
    Alignment {
        /// Bytes in a symbol.
        symbol_size: u16,
        /// Sub-blocks asked for.
        sub_blocks: u16,
        /// Alignment asked for.
        alignment: u8,
    },
    /// A source block would have more symbols than the code allows.
    #[error("source blocks of {actual} symbols, the code allows {limit}")]
    BlockLength {
        /// Symbols in the largest block.
        actual: u64,
        /// The code's limit.
        limit: u32,
    },
    /// A block would have more encoding symbols than the code has.
    #[error("blocks of {actual} encoding symbols, the code has {limit}")]
    EncodingSymbols {
        /// How many are described.
        actual: u16,
        /// The code's limit.
        limit: u16,
    },
    /// More source blocks than there are block numbers, or more than there are symbols.
    #[error("{actual} source blocks, at most {limit} are possible")]
    BlockCount {
        /// Blocks described.
        actual: u64,
        /// How many there may be.
        limit: u64,
    },
    /// Longer than the 48 bits (40 for RaptorQ) that carry it.
    #[error("an object of {actual} bytes, the code allows {limit}")]
    TransferLength {
        /// Bytes described.
        actual: u64,
        /// The code's limit.
        limit: u64,
    },
}

impl Oti {
    /// Checks the parameters and returns the object's geometry.
    ///
    /// # Errors
    /// [`OtiError`] if no sender could have meant these numbers.
    pub fn layout(&self) -> Result<ObjectLayout, OtiError> {
        ObjectLayout::new(*self)
    }
}
