//! The files of a tree that are complete when the reception is not: others share their objects.

use fontana_fec::Sbn;
use fontana_store::{Kept, StagedObject, StagingError};
use fontana_wire::{FileEntry, FileRun, Hash, RunHasher, Segment};
use std::collections::BTreeMap;
use std::ops::Range;

/// Bytes that are hashed at a time.
const CHUNK: usize = 64 << 10;

/// Ranges of bytes, ascending, with gaps between them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ByteRanges(Vec<Range<u64>>);

impl ByteRanges {
    /// The bytes that are in one of these ranges.
    fn of(mut ranges: Vec<Range<u64>>) -> Self {
        ranges.sort_unstable_by_key(|range| range.start);
        let mut merged: Vec<Range<u64>> = Vec::new();
        for range in ranges {
            match merged.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => merged.push(range),
            }
        }
        Self(merged)
    }

    /// Whether all bytes of a range are in them.
    fn has(&self, range: &Range<u64>) -> bool {
        let number = self.0.partition_point(|own| own.end < range.end);
        self.0.get(number).is_some_and(|own| own.start <= range.start)
    }
}

/// The bytes of an object that are verified: its whole blocks, and the runs whose source symbols
/// are all in their places and have the manifest's hash.
pub(super) fn verified_bytes(
    object: &StagedObject,
    toi: u32,
    runs: &[FileRun],
    saved: &Kept,
) -> Result<ByteRanges, StagingError> {
    let layout = object.layout();
    let (mut verified, mut placed) = (Vec::new(), Vec::new());
    for (&(_, sbn), block) in saved.blocks.range((toi, Sbn(0))..=(toi, Sbn(u32::MAX))) {
        if block.whole {
            verified.extend(layout.block_range(sbn));
        } else if !runs.is_empty() {
            for &esi in &block.in_place {
                placed.extend(layout.symbol_pieces(sbn, esi).map(|piece| piece.in_object));
            }
        }
    }
    let placed = ByteRanges::of(placed);
    let mut at = 0;
    for run in runs {
        let range = at..at + run.length;
        at = range.end;
        if placed.has(&range) && hash(object, &range)? == run.hash {
            verified.push(range);
        }
    }
    Ok(ByteRanges::of(verified))
}

fn hash(object: &StagedObject, range: &Range<u64>) -> Result<Hash, StagingError> {
    let (mut hasher, mut chunk) = (RunHasher::new(), vec![0; CHUNK]);
    for offset in range.clone().step_by(CHUNK) {
        let count = CHUNK.min(usize::try_from(range.end - offset).unwrap_or(CHUNK));
        let part = chunk.get_mut(..count).unwrap_or_default();
        object.read_at(offset, part)?;
        hasher.update(part);
    }
    Ok(hasher.finalize())
}

/// Whether all bytes of a file are verified. Objects that are not in `verified` are.
pub(super) fn is_complete(file: &FileEntry, verified: &BTreeMap<u32, ByteRanges>) -> bool {
    file.segments.iter().all(|segment| match *segment {
        Segment::Hole { .. } => true,
        Segment::Extent { toi, object_offset, length } => verified
            .get(&toi)
            .is_none_or(|ranges| ranges.has(&(object_offset..object_offset + length))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_complete_if_no_byte_of_it_is_missing() {
        let ranges = ByteRanges::of(vec![20..30, 0..10, 5..12, 12..15, 40..41]);
        assert_eq!(ranges, ByteRanges(vec![0..15, 20..30, 40..41]));
        for whole in [0..15, 3..4, 14..15, 20..30, 29..30, 40..41] {
            assert!(ranges.has(&whole), "{whole:?}");
        }
        for lacking in [0..16, 15..16, 14..21, 19..21, 29..31, 40..42, 50..51] {
            assert!(!ranges.has(&lacking), "{lacking:?}");
        }
    }
}
