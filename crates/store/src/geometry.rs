//! Errors of the geometry of objects and files.

use crate::ids::FileIndex;
use fontana_fec::{Esi, Sbn};

/// A geometry that is inconsistent, or a request outside it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GeometryError {
    /// The extents have another total length than the object.
    #[error("the extents hold {actual} bytes, the object has {expected}")]
    Length {
        /// Bytes of the object.
        expected: u64,
        /// Bytes of all extents.
        actual: u64,
    },
    /// An offset or a sum of lengths exceeds 64 bits.
    #[error("an extent ends after byte 2^64")]
    Overflow,
    /// Two extents of an object share bytes of a file.
    #[error("two extents hold byte {offset} of file {}", .file.0)]
    Overlap {
        /// The file.
        file: FileIndex,
        /// The first byte that is in both.
        offset: u64,
    },
    /// An extent ends after the end of its file.
    #[error("an extent ends at byte {end} of file {}, which has {length}", .file.0)]
    BeyondFile {
        /// The file.
        file: FileIndex,
        /// The end of the extent.
        end: u64,
        /// Bytes of the file.
        length: u64,
    },
    /// There is no file with this index.
    #[error("file {} does not exist", .0.0)]
    NoSuchFile(FileIndex),
    /// The object has no source block with this number.
    #[error("the object has no source block {}", .0.0)]
    NoSuchBlock(Sbn),
    /// The block has no such encoding symbol, or it is of the other kind.
    #[error("source block {} has no encoding symbol {}", .sbn.0, .esi.0)]
    NoSuchSymbol {
        /// The block.
        sbn: Sbn,
        /// The symbol.
        esi: Esi,
    },
    /// The buffer has another size than the symbols or columns.
    #[error("buffer has {actual} bytes, expected {expected}")]
    Size {
        /// Bytes of the symbols or columns.
        expected: usize,
        /// Bytes of the buffer.
        actual: usize,
    },
    /// The plan is for blocks of another length.
    #[error("plan is for {actual} source symbols, the block has {expected}")]
    Plan {
        /// Source symbols of the block.
        expected: u32,
        /// Source symbols of the plan.
        actual: u32,
    },
    /// Columns that a symbol does not have.
    #[error("columns end at {end}, symbols have {symbol_size} bytes")]
    Columns {
        /// One more than the last requested column.
        end: usize,
        /// Columns of a symbol.
        symbol_size: usize,
    },
    /// The spool has fewer slots per block.
    #[error("repair slot {slot} does not exist, a block has {limit}")]
    NoSuchSlot {
        /// The requested slot.
        slot: u32,
        /// Slots of a block.
        limit: u32,
    },
}
