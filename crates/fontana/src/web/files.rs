//! Which bytes of which files the symbols of a manifest's objects are.

use super::address::encode_path;
use super::client::FileRange;
use super::mirror::Fetch;
use fontana_fec::{Esi, FecScheme, ObjectLayout, Sbn};
use fontana_proto::BlockId;
use fontana_proto::pull::{FreshObject, RangeSet};
use fontana_wire::{
    FileEntry, FreshFrame, HeldIndex, HeldRun, Manifest, Segment, ShelfIndex, ShelfLayout, Toi,
};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// The objects of a manifest, one after the other: a position is a source symbol of one of them.
#[derive(Debug)]
pub(crate) struct PublishedFiles {
    /// Ascending by position and by TOI.
    objects: Vec<PublishedObject>,
}

#[derive(Debug)]
struct PublishedObject {
    toi: Toi,
    layout: ObjectLayout,
    /// The position of its first symbol.
    first: u64,
    /// The first symbol of each block, counted in the object, and the number of symbols at the end.
    block_starts: Vec<u64>,
    /// The parts of files that it consists of, ascending, without overlap. Bytes between them are
    /// in no file.
    parts: Vec<Part>,
}

/// A part of an object that is in a file.
#[derive(Clone, Debug)]
struct Part {
    in_object: Range<u64>,
    /// The offset in the file of its first byte.
    offset: u64,
    path: Arc<str>,
    file_length: u64,
}

/// Consecutive symbols of one block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BlockRun {
    pub(crate) block: BlockId,
    pub(crate) esis: Range<u32>,
}

impl PublishedFiles {
    /// The files of a manifest. Objects whose symbols are no ranges of bytes, because they have
    /// sub-blocks, are left out.
    pub(crate) fn new(manifest: &Manifest) -> Self {
        let mut parts = parts_of_objects(manifest);
        let (mut objects, mut first) = (Vec::new(), 0);
        for object in manifest.objects() {
            let Ok(layout) = object.oti.layout() else { continue };
            if !has_contiguous_symbols(&layout) {
                continue;
            }
            let lengths = (0..layout.block_count()).map(|sbn| layout.source_symbols(Sbn(sbn)));
            let mut block_starts = vec![0];
            for length in lengths {
                let start = block_starts.last().copied().unwrap_or(0);
                block_starts.push(start + u64::from(length.unwrap_or(0)));
            }
            let symbols = block_starts.last().copied().unwrap_or(0);
            let parts = parts.remove(&object.toi).unwrap_or_default();
            let toi = Toi::from(object.toi);
            objects.push(PublishedObject { toi, layout, first, block_starts, parts });
            first += symbols;
        }
        Self { objects }
    }

    /// The places of the symbols of all objects on a shelf. Objects of other codes have none.
    pub(crate) fn on_shelf(&self, index: &ShelfIndex) -> Vec<(Toi, ShelfLayout)> {
        let has_shelf =
            |object: &&PublishedObject| matches!(object.layout.oti().scheme, FecScheme::RaptorQ(_));
        let layout = |object: &PublishedObject| {
            let lengths = object.block_starts.windows(2).map(|pair| (pair[1] - pair[0]) as u32);
            (object.toi, index.layout(object.layout.oti().symbol_size, lengths))
        };
        self.objects.iter().filter(has_shelf).map(layout).collect()
    }

    /// The objects as a server of fresh symbols has them. `None` if it cannot have all of them:
    /// they are of another code.
    pub(crate) fn as_fresh(&self) -> Option<Vec<FreshObject>> {
        let fresh = |object: &PublishedObject| {
            let oti = object.layout.oti();
            // Frames have room for their ids in what a symbol may be long.
            let has_room = usize::from(oti.symbol_size) + FreshFrame::ID_SIZE <= u16::MAX.into();
            let is_fresh = matches!(oti.scheme, FecScheme::RaptorQ(_)) && has_room;
            let (toi, blocks) = (object.toi, object.layout.block_count());
            is_fresh.then_some(FreshObject { toi, blocks, symbol_size: oti.symbol_size })
        };
        self.objects.iter().map(fresh).collect()
    }

    /// The positions of the blocks that a mirror holds which is still receiving.
    pub(crate) fn held(&self, index: &HeldIndex) -> RangeSet {
        let positions = |run: &HeldRun| {
            let first = BlockId { toi: Toi::from(run.toi), sbn: run.first };
            let last = BlockId { sbn: Sbn(run.end()?.checked_sub(1)?), ..first };
            Some(self.positions(first)?.start..self.positions(last)?.end)
        };
        index.runs.iter().filter_map(positions).collect()
    }

    /// Number of objects.
    pub(crate) fn object_count(&self) -> usize {
        self.objects.len()
    }

    /// All blocks.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = BlockId> + '_ {
        self.objects.iter().flat_map(|object| {
            let count = object.layout.block_count();
            (0..count).map(|sbn| BlockId { toi: object.toi, sbn: Sbn(sbn) })
        })
    }

    /// The positions of a block's source symbols.
    pub(crate) fn positions(&self, block: BlockId) -> Option<Range<u64>> {
        let index = self.objects.binary_search_by_key(&block.toi, |object| object.toi).ok()?;
        let object = self.objects.get(index)?;
        let sbn = block.sbn.0 as usize;
        let start = object.block_starts.get(sbn)?;
        let end = object.block_starts.get(sbn + 1)?;
        Some(object.first + start..object.first + end)
    }

    /// The positions of a range whose bytes are in files.
    pub(crate) fn published(&self, range: Range<u64>) -> Vec<Range<u64>> {
        let Some(object) = self.object_at(range.start) else { return Vec::new() };
        let bytes = object.bytes(&range);
        let mut runs: Vec<Range<u64>> = Vec::new();
        for part in object.parts_in(&bytes) {
            let inside = part.in_object.start.max(bytes.start)..part.in_object.end.min(bytes.end);
            match runs.last_mut() {
                Some(last) if last.end == inside.start => last.end = inside.end,
                _ => runs.push(inside),
            }
        }
        runs.iter().filter_map(|run| object.whole_symbols(run)).collect()
    }

    /// The order for the first positions of a range, up to the end of their object, and these
    /// positions. `None` if they are not published.
    pub(crate) fn fetch(&self, range: Range<u64>) -> Option<(Fetch, Range<u64>)> {
        let object = self.object_at(range.start)?;
        let range = range.start..range.end.min(object.end());
        let bytes = object.bytes(&range);
        let mut pieces = Vec::new();
        let mut at = bytes.start;
        for part in object.parts_in(&bytes) {
            let inside = part.in_object.start.max(bytes.start)..part.in_object.end.min(bytes.end);
            if inside.start != at {
                return None;
            }
            at = inside.end;
            let start = part.offset + (inside.start - part.in_object.start);
            pieces.push(FileRange {
                path: Arc::clone(&part.path),
                range: start..start + (inside.end - inside.start),
                length: part.file_length,
            });
        }
        if at != bytes.end {
            return None;
        }
        let (symbol_size, object_length) =
            (object.layout.oti().symbol_size, object.layout.oti().transfer_length);
        // The object is one file as a whole.
        let is_whole = |part: &Part| {
            part.in_object == (0..object_length)
                && part.offset == 0
                && part.file_length == object_length
        };
        let file_start = object.parts.first().filter(|part| is_whole(part)).map(|_| 0);
        Some((Fetch { bytes, symbol_size, object_length, pieces, file_start }, range))
    }

    /// The positions of whole symbols of an object, given a position in the object and the bytes.
    pub(crate) fn positions_of_bytes(
        &self,
        position: u64,
        at: u64,
        length: usize,
    ) -> Option<Range<u64>> {
        let object = self.object_at(position)?;
        let size = u64::from(object.layout.oti().symbol_size);
        let first = object.first + at / size;
        Some(first..(first + (length as u64).div_ceil(size)).min(object.end()))
    }

    /// The positions of the symbols of an object that have some of these bytes, given a position in
    /// the object.
    pub(crate) fn positions_with(&self, position: u64, bytes: &Range<u64>) -> Range<u64> {
        let Some(object) = self.object_at(position) else { return 0..0 };
        let size = u64::from(object.layout.oti().symbol_size);
        let at = |symbol: u64| object.first.saturating_add(symbol).min(object.end());
        at(bytes.start / size)..at(bytes.end.div_ceil(size))
    }

    /// The bytes of the object that the symbol at a position has.
    pub(crate) fn bytes_of(&self, position: u64) -> Range<u64> {
        let object = self.object_at(position);
        object.map_or(0..0, |object| object.bytes(&(position..position + 1)))
    }

    /// The positions of an object whose symbols are in a file as a whole, given a position in the
    /// object. `path` is encoded.
    pub(crate) fn positions_of_file(&self, position: u64, path: &str) -> Vec<Range<u64>> {
        let Some(object) = self.object_at(position) else { return Vec::new() };
        let parts = object.parts.iter().filter(|part| *part.path == *path);
        parts.flat_map(|part| object.whole_symbols(&part.in_object)).collect()
    }

    /// The positions of an object. `None` if it has no ranges of bytes.
    pub(crate) fn positions_of_object(&self, toi: Toi) -> Option<Range<u64>> {
        let object = self.objects.iter().find(|object| object.toi == toi)?;
        Some(object.first..object.end())
    }

    /// The positions from the first one of an object to its end.
    pub(crate) fn object_end(&self, position: u64) -> Option<u64> {
        self.object_at(position).map(PublishedObject::end)
    }

    /// The symbols of a range of positions, by block.
    pub(crate) fn runs(&self, range: Range<u64>) -> Vec<BlockRun> {
        let (mut runs, mut at) = (Vec::new(), range.start);
        while at < range.end {
            let Some(object) = self.object_at(at) else { break };
            let symbol = at - object.first;
            let sbn = object.block_starts.partition_point(|&start| start <= symbol) - 1;
            let starts = object.block_starts.get(sbn).zip(object.block_starts.get(sbn + 1));
            let Some((&start, &end)) = starts else { break };
            let until = (range.end - object.first).min(end);
            runs.push(BlockRun {
                block: BlockId { toi: object.toi, sbn: Sbn(sbn as u32) },
                esis: (symbol - start) as u32..(until - start) as u32,
            });
            at = object.first + until;
        }
        runs
    }

    /// The symbol size of the object that a position is of.
    pub(crate) fn symbol_size(&self, position: u64) -> u16 {
        self.object_at(position).map_or(0, |object| object.layout.oti().symbol_size)
    }

    fn object_at(&self, position: u64) -> Option<&PublishedObject> {
        let index = self.objects.partition_point(|object| object.first <= position);
        let object = self.objects.get(index.checked_sub(1)?)?;
        (position < object.end()).then_some(object)
    }
}

impl PublishedObject {
    fn end(&self) -> u64 {
        self.first + self.block_starts.last().copied().unwrap_or(0)
    }

    /// The positions of the symbols that are in a range of bytes as a whole.
    fn whole_symbols(&self, bytes: &Range<u64>) -> Option<Range<u64>> {
        let oti = self.layout.oti();
        let size = u64::from(oti.symbol_size);
        let is_last = bytes.end == oti.transfer_length;
        let end = if is_last { bytes.end.div_ceil(size) } else { bytes.end / size };
        let positions = self.first + bytes.start.div_ceil(size)..self.first + end;
        (!positions.is_empty()).then_some(positions)
    }

    /// The bytes of a range of positions.
    fn bytes(&self, range: &Range<u64>) -> Range<u64> {
        let oti = self.layout.oti();
        let offset = |position: u64| {
            let symbols = position.min(self.end()) - self.first;
            (symbols * u64::from(oti.symbol_size)).min(oti.transfer_length)
        };
        offset(range.start)..offset(range.end)
    }

    fn parts_in(&self, bytes: &Range<u64>) -> impl Iterator<Item = &Part> {
        let first = self.parts.partition_point(|part| part.in_object.end <= bytes.start);
        let end = bytes.end;
        let parts = self.parts.get(first..).unwrap_or_default();
        parts.iter().take_while(move |part| part.in_object.start < end)
    }
}

/// Whether each source symbol is one range of bytes.
fn has_contiguous_symbols(layout: &ObjectLayout) -> bool {
    layout.block_count() > 0 && layout.symbol_pieces(Sbn(0), Esi(0)).count() <= 1
}

/// The parts of each object that are in files.
fn parts_of_objects(manifest: &Manifest) -> BTreeMap<u32, Vec<Part>> {
    let mut parts: BTreeMap<u32, Vec<Part>> = BTreeMap::new();
    for file in manifest.files() {
        add_parts(file, &mut parts);
    }
    for list in parts.values_mut() {
        // Files may share bytes: those of the first one are used.
        list.sort_by_key(|part| (part.in_object.start, std::cmp::Reverse(part.in_object.end)));
        let mut at = 0;
        list.retain_mut(|part| {
            let skipped = at.max(part.in_object.start) - part.in_object.start;
            part.in_object.start += skipped;
            part.offset += skipped;
            at = at.max(part.in_object.end);
            part.in_object.start < part.in_object.end
        });
    }
    parts
}

fn add_parts(file: &FileEntry, parts: &mut BTreeMap<u32, Vec<Part>>) {
    let path: Arc<str> = encode_path(file.path.as_bytes()).into();
    let file_length = file.length();
    for placed in file.placed_segments() {
        let Segment::Extent { toi, object_offset, length } = placed.segment else { continue };
        parts.entry(toi).or_default().push(Part {
            in_object: object_offset..object_offset + length,
            offset: placed.range.start,
            path: Arc::clone(&path),
            file_length,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fontana_fec::Oti;
    use fontana_fec::codes::raptorq::RaptorQ;
    use fontana_wire::{Entry, Hash, ManifestObject, Metadata, RelativePath};

    fn object(toi: u32, length: u64, blocks: u8, sub_blocks: u16) -> ManifestObject {
        let code = RaptorQ { source_blocks: blocks, sub_blocks, alignment: 2 };
        let oti =
            Oti { transfer_length: length, symbol_size: 10, scheme: FecScheme::RaptorQ(code) };
        let block_hashes = vec![Hash([0; 32]); usize::from(blocks)];
        ManifestObject { toi, oti, block_hashes }
    }

    fn file(name: &str, segments: &[(u32, u64, u64)]) -> Entry {
        let extent = |&(toi, object_offset, length)| Segment::Extent { toi, object_offset, length };
        Entry::File(FileEntry {
            path: RelativePath::new(name).unwrap(),
            metadata: Metadata::default(),
            segments: segments.iter().map(extent).collect(),
        })
    }

    /// Two files in one object of 3 blocks, a file that is a whole object of 95 bytes, and one with
    /// sub-blocks.
    fn files() -> PublishedFiles {
        let objects = vec![object(1, 250, 3, 1), object(2, 95, 1, 1), object(3, 95, 1, 2)];
        let entries = vec![
            file("a b", &[(1, 0, 103)]),
            file("c", &[(1, 103, 147)]),
            file("copy", &[(1, 0, 20)]),
            file("whole", &[(2, 0, 95)]),
            file("sub", &[(3, 0, 95)]),
        ];
        PublishedFiles::new(&Manifest::new(1, "x", objects, entries).unwrap())
    }

    fn ranges(fetch: &Fetch) -> Vec<(String, Range<u64>)> {
        let pieces = fetch.pieces.iter();
        pieces.map(|piece| (piece.path.to_string(), piece.range.clone())).collect()
    }

    #[test]
    fn symbols_are_ranges_of_files() {
        let files = files();
        assert_eq!(files.blocks().count(), 4, "no object with sub-blocks");
        let (fetch, range) = files.fetch(8..13).unwrap();
        assert_eq!((fetch.bytes.clone(), range, fetch.file_start), (80..130, 8..13, None));
        assert_eq!(ranges(&fetch), [("a%20b".into(), 80..103), ("c".into(), 0..27)]);
        // An order ends with its object.
        let (fetch, range) = files.fetch(20..30).unwrap();
        assert_eq!((range, ranges(&fetch)), (20..25, vec![("c".into(), 97..147)]));
        let (fetch, _) = files.fetch(33..40).unwrap();
        assert_eq!((fetch.file_start, ranges(&fetch)), (Some(0), vec![("whole".into(), 80..95)]));
        assert!(files.fetch(35..36).is_none());
    }

    #[test]
    fn a_file_that_is_missing_has_whole_symbols_and_parts_of_others() {
        let files = files();
        // Symbol 10 has bytes of both files.
        let of_file = |position, path| files.positions_of_file(position, path).into_iter().next();
        assert_eq!(of_file(3, "a%20b"), Some(0..10));
        assert_eq!(of_file(3, "c"), Some(11..25));
        assert_eq!(of_file(3, "whole"), None);
        assert_eq!(of_file(30, "whole"), Some(25..35));
        assert_eq!(files.positions_with(3, &(80..103)), 8..11);
        assert_eq!(files.positions_with(30, &(80..95)), 33..35);
        assert_eq!((files.bytes_of(10), files.bytes_of(34)), (100..110, 90..95));
        assert_eq!(files.positions_of_object(Toi(2)), Some(25..35));
    }

    #[test]
    fn positions_are_symbols_of_blocks() {
        let files = files();
        let block = |toi: u32, sbn| BlockId { toi: Toi::from(toi), sbn: Sbn(sbn) };
        // 25 symbols in 3 blocks: 9, 8 and 8.
        assert_eq!(files.positions(block(1, 1)), Some(9..17));
        assert_eq!(files.positions(block(2, 0)), Some(25..35));
        let runs = files.runs(7..27);
        let expected =
            [(block(1, 0), 7..9), (block(1, 1), 0..8), (block(1, 2), 0..8), (block(2, 0), 0..2)];
        assert_eq!(runs, expected.map(|(block, esis)| BlockRun { block, esis }));
        assert_eq!(files.positions_of_bytes(26, 80, 15), Some(33..35));
    }

    #[test]
    fn bytes_in_no_file_are_not_published() {
        let objects = vec![object(1, 250, 1, 1)];
        let entries = vec![file("a", &[(1, 0, 45)]), file("b", &[(1, 60, 190)])];
        let files = PublishedFiles::new(&Manifest::new(1, "x", objects, entries).unwrap());
        assert_eq!(files.published(0..25), [0..4, 6..25]);
        assert!(files.fetch(3..6).is_none());
    }
}
