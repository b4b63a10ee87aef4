//! Blocks of objects, read out of files that exist.

use super::entries::{ManifestTree, TreeEntry};
use fontana_store::{ExistingFile, StagingError, TargetDirectory};
use fontana_wire::{Entry, PlacedSegment, Segment};
use std::collections::BTreeMap;
use std::ops::Range;

/// Bytes that are read at a time.
const CHUNK: usize = 256 << 10;

/// Consecutive bytes of an object that are consecutive in a file.
#[derive(Debug)]
pub(super) struct Piece {
    in_object: Range<u64>,
    /// Offset in the file.
    in_file: u64,
    /// Index of the file's entry.
    pub(super) entry: usize,
}

/// The pieces of every object, in the object's order.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    pub(super) by_object: BTreeMap<u32, Vec<Piece>>,
}

impl Pieces {
    pub(super) fn of(tree: &ManifestTree<'_>) -> Self {
        let mut by_object: BTreeMap<u32, Vec<Piece>> = BTreeMap::new();
        for (index, entry) in tree.entries.iter().enumerate() {
            let Entry::File(file) = entry.entry else { continue };
            for PlacedSegment { range, segment } in file.placed_segments() {
                if let Segment::Extent { toi, object_offset, length } = segment {
                    let in_object = object_offset..object_offset.saturating_add(length);
                    let piece = Piece { in_object, in_file: range.start, entry: index };
                    by_object.entry(toi).or_default().push(piece);
                }
            }
        }
        for pieces in by_object.values_mut() {
            pieces.retain(|piece| !piece.in_object.is_empty());
            pieces.sort_by_key(|piece| piece.in_object.start);
        }
        Self { by_object }
    }

    /// The pieces that have a byte in a range of an object.
    pub(super) fn overlapping(&self, toi: u32, range: &Range<u64>) -> &[Piece] {
        let pieces = self.by_object.get(&toi).map_or(&[][..], Vec::as_slice);
        let first = pieces.partition_point(|piece| piece.in_object.end <= range.start);
        let last = pieces.partition_point(|piece| piece.in_object.start < range.end);
        pieces.get(first..last).unwrap_or_default()
    }
}

/// Whether a reader goes on after a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    Continue,
    Stop,
}

/// Takes the offset of a chunk in its object, and its bytes.
type OnChunk<'a> = dyn FnMut(u64, &[u8]) -> Result<Reading, StagingError> + 'a;

/// Reads ranges of objects out of existing files. The file that was read last stays open.
pub(super) struct PieceReader<'a> {
    directory: &'a TargetDirectory,
    entries: &'a [TreeEntry<'a>],
    open: Option<OpenEntry>,
    chunk: Vec<u8>,
}

struct OpenEntry {
    index: usize,
    file: ExistingFile,
}

impl<'a> PieceReader<'a> {
    pub(super) fn new(directory: &'a TargetDirectory, tree: &'a ManifestTree<'a>) -> Self {
        Self { directory, entries: &tree.entries, open: None, chunk: vec![0; CHUNK] }
    }

    /// Reads a range of an object in its order, until it is at its end, a byte is missing or
    /// `on_chunk` stops it. True if it came to the end.
    pub(super) fn read(
        &mut self,
        range: &Range<u64>,
        pieces: &[Piece],
        on_chunk: &mut OnChunk<'_>,
    ) -> Result<bool, StagingError> {
        let mut at = range.start;
        for piece in pieces {
            if piece.in_object.start > at {
                return Ok(false); // no file has these bytes
            }
            let end = piece.in_object.end.min(range.end);
            while at < end {
                let count = (end - at).min(CHUNK as u64) as usize;
                let Self { directory, entries, open, chunk } = self;
                let Some(file) = open_entry(directory, entries, open, piece.entry)? else {
                    return Ok(false);
                };
                let chunk = chunk.get_mut(..count).unwrap_or_default();
                let in_file = piece.in_file + (at - piece.in_object.start);
                if !file.read_at(in_file, chunk)? || on_chunk(at, chunk)? == Reading::Stop {
                    return Ok(false);
                }
                at += count as u64;
            }
        }
        Ok(at == range.end)
    }
}

/// The file of an entry, opened unless it is open; `None` if it is not there.
fn open_entry<'o>(
    directory: &TargetDirectory,
    entries: &[TreeEntry<'_>],
    open: &'o mut Option<OpenEntry>,
    index: usize,
) -> Result<Option<&'o ExistingFile>, StagingError> {
    if open.as_ref().is_none_or(|open| open.index != index) {
        let Some(TreeEntry { entry: Entry::File(file), name }) = entries.get(index) else {
            return Ok(None);
        };
        let existing = directory.existing(name, file.length())?;
        *open = existing.map(|file| OpenEntry { index, file });
    }
    Ok(open.as_ref().map(|open| &open.file))
}
