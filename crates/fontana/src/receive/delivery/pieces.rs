//! A file of a manifest as pieces of verified blocks, for a consumer that reads it in order.

use fontana_fec::Sbn;
use fontana_proto::BlockId;
use fontana_wire::{FileEntry, Manifest, PlacedSegment, Segment, Toi};
use std::collections::BTreeMap;
use std::ops::Range;

/// What a file is made of. Every piece has a number: its place in the file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct FilePieces {
    /// The pieces that each block holds.
    pub(super) of_block: BTreeMap<BlockId, Vec<BlockPiece>>,
    pub(super) holes: Vec<HolePiece>,
}

/// Bytes of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BlockPiece {
    pub(super) number: u64,
    /// Their range in the object.
    pub(super) range: Range<u64>,
    /// Their offset in the file.
    pub(super) at: u64,
}

/// A hole of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HolePiece {
    pub(super) number: u64,
    /// Bytes of the hole.
    pub(super) length: u64,
}

impl FilePieces {
    pub(super) fn of(file: &FileEntry, manifest: &Manifest) -> Self {
        let mut pieces = Self::default();
        let mut number = 0;
        for PlacedSegment { range: placed, segment } in file.placed_segments() {
            match segment {
                Segment::Hole { length } => {
                    pieces.holes.push(HolePiece { number, length });
                    number += 1;
                }
                Segment::Extent { toi, object_offset, length } => {
                    let range = object_offset..object_offset.saturating_add(length);
                    for (sbn, range) in split(manifest, toi, range) {
                        let block = BlockId { toi: Toi::from(toi), sbn };
                        let at = placed.start + (range.start - object_offset);
                        let piece = BlockPiece { number, range, at };
                        pieces.of_block.entry(block).or_default().push(piece);
                        number += 1;
                    }
                }
            }
        }
        pieces
    }
}

/// Cuts a range of an object where its blocks end.
fn split(manifest: &Manifest, toi: u32, range: Range<u64>) -> Vec<(Sbn, Range<u64>)> {
    let Some(layout) = manifest.object(toi).and_then(|object| object.oti.layout().ok()) else {
        return Vec::new();
    };
    let block = |sbn| layout.block_range(Sbn(sbn)).unwrap_or(u64::MAX..u64::MAX);
    // Blocks follow each other: a binary search for the first one that ends behind the start.
    let (mut first, mut beyond) = (0, layout.block_count());
    while first < beyond {
        let middle = first + (beyond - first) / 2;
        if block(middle).end > range.start { beyond = middle } else { first = middle + 1 }
    }
    (first..layout.block_count())
        .map(|sbn| (Sbn(sbn), block(sbn)))
        .take_while(|(_, block)| block.start < range.end)
        .map(|(sbn, block)| (sbn, block.start.max(range.start)..block.end.min(range.end)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fontana_fec::codes::raptorq::RaptorQ;
    use fontana_fec::{FecScheme, Oti};
    use fontana_wire::{Entry, Hash, ManifestObject, Metadata, RelativePath};

    #[test]
    fn a_file_with_holes_in_two_objects_is_cut_at_its_blocks_and_numbered_in_its_order() {
        let object = |toi, blocks: u8| {
            let scheme =
                FecScheme::RaptorQ(RaptorQ { source_blocks: blocks, sub_blocks: 1, alignment: 1 });
            let oti = Oti { transfer_length: 100, symbol_size: 10, scheme };
            let block_hashes = vec![Hash([0; 32]); blocks.into()];
            ManifestObject { toi, oti, block_hashes }
        };
        let extent = |toi, object_offset, length| Segment::Extent { toi, object_offset, length };
        let file = FileEntry {
            path: RelativePath::new("a").unwrap(),
            metadata: Metadata { mode: 0o644, ..Metadata::default() },
            // Blocks of object 1 end at 40, 70 and 100, those of object 2 at 50 and 100.
            segments: vec![
                extent(1, 35, 40),
                Segment::Hole { length: 7 },
                extent(2, 50, 50),
                extent(1, 0, 1),
            ],
        };
        let objects = vec![object(1, 3), object(2, 2)];
        let manifest = Manifest::new(1, "", objects, vec![Entry::File(file.clone())]).unwrap();
        let pieces = FilePieces::of(&file, &manifest);
        let block = |toi, sbn| BlockId { toi: Toi(toi), sbn: Sbn(sbn) };
        let piece = |number, range, at| BlockPiece { number, range, at };
        let expected = [
            (block(1, 0), vec![piece(0, 35..40, 0), piece(5, 0..1, 97)]),
            (block(1, 1), vec![piece(1, 40..70, 5)]),
            (block(1, 2), vec![piece(2, 70..75, 35)]),
            (block(2, 1), vec![piece(4, 50..100, 47)]),
        ];
        assert_eq!(pieces.of_block, BTreeMap::from(expected));
        assert_eq!(pieces.holes, [HolePiece { number: 3, length: 7 }]);
    }
}
