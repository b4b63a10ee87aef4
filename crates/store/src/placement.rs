//! The position of a symbol's columns in an object: the geometry that sender and receiver share.

use crate::extents::Extents;
use crate::geometry::GeometryError;
use fontana_fec::{Esi, ObjectLayout, Sbn};
use std::ops::Range;

/// An object's geometry on the network and on the disk.
#[derive(Clone, Debug)]
pub(crate) struct Placement {
    layout: ObjectLayout,
    extents: Extents,
}

/// Some columns of a source symbol that are contiguous in the object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ColumnPiece {
    /// Offset of the first byte in the object.
    pub(crate) in_object: u64,
    /// Their position among the requested columns.
    pub(crate) in_columns: Range<usize>,
}

impl Placement {
    pub(crate) fn new(layout: ObjectLayout, extents: Extents) -> Result<Self, GeometryError> {
        let (expected, actual) = (layout.oti().transfer_length, extents.length());
        if expected != actual {
            return Err(GeometryError::Length { expected, actual });
        }
        Ok(Self { layout, extents })
    }

    pub(crate) fn layout(&self) -> &ObjectLayout {
        &self.layout
    }

    pub(crate) fn extents(&self) -> &Extents {
        &self.extents
    }

    /// `T`, in bytes.
    pub(crate) fn symbol_size(&self) -> usize {
        usize::from(self.layout.oti().symbol_size)
    }

    /// True if a source symbol's bytes are contiguous in the object, and follow those of the
    /// previous symbol.
    pub(crate) fn is_contiguous(&self) -> bool {
        self.layout.is_contiguous()
    }

    /// `k` of a block.
    pub(crate) fn source_symbols(&self, sbn: Sbn) -> Result<u32, GeometryError> {
        self.layout.source_symbols(sbn).ok_or(GeometryError::NoSuchBlock(sbn))
    }

    /// Bytes of the object that a block holds.
    pub(crate) fn block_range(&self, sbn: Sbn) -> Result<Range<u64>, GeometryError> {
        self.layout.block_range(sbn).ok_or(GeometryError::NoSuchBlock(sbn))
    }

    /// Rejects a symbol that is not a source symbol of the block.
    pub(crate) fn check_source(&self, sbn: Sbn, esi: Esi) -> Result<(), GeometryError> {
        if esi.0 < self.source_symbols(sbn)? {
            return Ok(());
        }
        Err(GeometryError::NoSuchSymbol { sbn, esi })
    }

    /// Bytes of the object in `count` source symbols from `first` on, for contiguous symbols.
    /// Shorter than the symbols if the object ends in the last one.
    pub(crate) fn run_range(
        &self,
        sbn: Sbn,
        first: Esi,
        count: usize,
    ) -> Result<Range<u64>, GeometryError> {
        let k = self.source_symbols(sbn)?;
        let end = u32::try_from(count).ok().and_then(|count| first.0.checked_add(count));
        let Some(end) = end.filter(|&end| end <= k) else {
            return Err(GeometryError::NoSuchSymbol { sbn, esi: Esi(k.max(first.0)) });
        };
        let block = self.block_range(sbn)?;
        let at = |esi: u32| {
            block.end.min(block.start + u64::from(esi) * u64::from(self.layout.oti().symbol_size))
        };
        Ok(at(first.0)..at(end))
    }

    /// The position of `columns` of a source symbol in the object. Columns in no piece are zero
    /// padding.
    pub(crate) fn column_pieces(
        &self,
        sbn: Sbn,
        esi: Esi,
        columns: Range<usize>,
    ) -> Result<impl Iterator<Item = ColumnPiece> + use<>, GeometryError> {
        self.check_source(sbn, esi)?;
        let symbol_size = self.symbol_size();
        if columns.end > symbol_size {
            return Err(GeometryError::Columns { end: columns.end, symbol_size });
        }
        Ok(self.layout.symbol_pieces(sbn, esi).filter_map(move |piece| {
            let stored = (piece.in_object.end - piece.in_object.start) as usize;
            let from = piece.in_symbol.start.max(columns.start);
            let to = (piece.in_symbol.start + stored).min(columns.end);
            (from < to).then(|| ColumnPiece {
                in_object: piece.in_object.start + (from - piece.in_symbol.start) as u64,
                in_columns: from - columns.start..to - columns.start,
            })
        }))
    }
}

/// Rejects a buffer of another length than `expected`.
pub(crate) fn check_size(actual: usize, expected: usize) -> Result<(), GeometryError> {
    if actual == expected { Ok(()) } else { Err(GeometryError::Size { expected, actual }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::FileIndex;
    use fontana_fec::codes::no_code::NoCode;
    use fontana_fec::codes::raptorq::RaptorQ;
    use fontana_fec::{FecScheme, Oti};

    fn placement(transfer_length: u64, scheme: FecScheme) -> Placement {
        let layout = Oti { transfer_length, symbol_size: 8, scheme }.layout().unwrap();
        Placement::new(layout, Extents::whole_file(FileIndex(0), transfer_length)).unwrap()
    }

    const SUB_BLOCKS: FecScheme =
        FecScheme::RaptorQ(RaptorQ { source_blocks: 1, sub_blocks: 2, alignment: 4 });

    #[test]
    fn columns_that_cross_a_sub_block_are_two_pieces() {
        let placement = placement(24, SUB_BLOCKS);
        let pieces: Vec<_> = placement.column_pieces(Sbn(0), Esi(1), 2..7).unwrap().collect();
        let piece = |in_object, in_columns| ColumnPiece { in_object, in_columns };
        assert_eq!(pieces, [piece(6, 0..2), piece(16, 2..5)]);
        assert!(!placement.is_contiguous());
    }

    #[test]
    fn padding_is_in_no_piece() {
        let placement = placement(21, FecScheme::NoCode(NoCode { max_source_block_length: 8 }));
        let mut pieces = placement.column_pieces(Sbn(0), Esi(2), 4..8).unwrap();
        assert_eq!(pieces.next(), Some(ColumnPiece { in_object: 20, in_columns: 0..1 }));
        assert_eq!(pieces.next(), None);
        assert_eq!(placement.column_pieces(Sbn(0), Esi(2), 5..8).unwrap().count(), 0);
        assert_eq!(placement.run_range(Sbn(0), Esi(1), 2), Ok(8..21));
        assert_eq!(placement.run_range(Sbn(0), Esi(3), 0), Ok(21..21));
    }

    #[test]
    fn positions_outside_the_object_are_refused() {
        let placement = placement(21, FecScheme::NoCode(NoCode { max_source_block_length: 8 }));
        let no_symbol = GeometryError::NoSuchSymbol { sbn: Sbn(0), esi: Esi(3) };
        assert_eq!(placement.column_pieces(Sbn(0), Esi(3), 0..8).err(), Some(no_symbol.clone()));
        assert_eq!(placement.run_range(Sbn(0), Esi(1), 3), Err(no_symbol));
        assert!(placement.run_range(Sbn(0), Esi(u32::MAX), usize::MAX).is_err());
        assert_eq!(placement.block_range(Sbn(1)), Err(GeometryError::NoSuchBlock(Sbn(1))));
        assert_eq!(
            placement.column_pieces(Sbn(0), Esi(0), 0..9).err(),
            Some(GeometryError::Columns { end: 9, symbol_size: 8 })
        );
        let extents = Extents::whole_file(FileIndex(0), 20);
        assert_eq!(
            Placement::new(placement.layout, extents).err(),
            Some(GeometryError::Length { expected: 21, actual: 20 })
        );
    }
}
