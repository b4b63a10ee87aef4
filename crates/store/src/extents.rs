//! The extents of an object: the bytes of files that it consists of.
//!
//! An object is one file, a fragment of a file, or several small files bundled. Sender and receiver
//! describe it by the same list of extents, concatenated.

use crate::geometry::GeometryError;
use crate::ids::FileIndex;

/// Consecutive bytes of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Extent {
    /// The file.
    pub file: FileIndex,
    /// Offset of the first byte in the file.
    pub offset: u64,
    /// Bytes.
    pub length: u64,
}

impl Extent {
    /// The offset after the last byte, or `None` if it exceeds 64 bits.
    fn end(&self) -> Option<u64> {
        self.offset.checked_add(self.length)
    }
}

/// The extents of one object, concatenated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extents {
    /// Without empty extents.
    list: Vec<Extent>,
    /// Object offset of the first byte of each extent.
    starts: Vec<u64>,
    length: u64,
}

/// A part of a byte range of the object that is in one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ExtentPiece {
    pub(crate) file: FileIndex,
    /// Offset in the file.
    pub(crate) offset: u64,
    /// The position of the piece in the requested range.
    pub(crate) within: std::ops::Range<usize>,
}

impl Extents {
    /// Concatenates extents.
    ///
    /// # Errors
    /// [`GeometryError`] if two extents overlap in a file (one of them could overwrite the other
    /// after it was verified), or if an offset or the total exceeds 64 bits.
    pub fn new(extents: impl IntoIterator<Item = Extent>) -> Result<Self, GeometryError> {
        let mut all = Self::default();
        for extent in extents.into_iter().filter(|extent| extent.length > 0) {
            extent.end().ok_or(GeometryError::Overflow)?;
            all.starts.push(all.length);
            all.length = all.length.checked_add(extent.length).ok_or(GeometryError::Overflow)?;
            all.list.push(extent);
        }
        let mut sorted = all.list.clone();
        sorted.sort_unstable();
        for (before, after) in sorted.iter().zip(sorted.iter().skip(1)) {
            if before.file == after.file && before.end() > Some(after.offset) {
                return Err(GeometryError::Overlap { file: before.file, offset: after.offset });
            }
        }
        Ok(all)
    }

    /// An object that is exactly one file of `length` bytes.
    pub fn whole_file(file: FileIndex, length: u64) -> Self {
        let extent = (length > 0).then_some(Extent { file, offset: 0, length });
        Self { list: extent.into_iter().collect(), starts: vec![0; (length > 0).into()], length }
    }

    /// The non-empty extents, in the object's order.
    pub fn as_slice(&self) -> &[Extent] {
        &self.list
    }

    /// Bytes of the object.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The pieces of files that `length` bytes from offset `start` of the object consist of, in
    /// order. Bytes after the object's end are in no piece.
    pub(crate) fn pieces(&self, start: u64, length: usize) -> impl Iterator<Item = ExtentPiece> {
        // The last extent that starts at or before `start`.
        let first = self.starts.partition_point(|&s| s <= start).saturating_sub(1);
        let end = start.saturating_add(length as u64);
        self.list
            .iter()
            .zip(&self.starts)
            .skip(first)
            .take_while(move |&(_, &s)| s < end)
            .filter_map(move |(extent, &s)| {
                let (from, to) = (start.max(s), end.min(s + extent.length));
                (from < to).then(|| ExtentPiece {
                    file: extent.file,
                    offset: extent.offset + (from - s),
                    within: (from - start) as usize..(to - start) as usize,
                })
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(file: u32, offset: u64, length: u64) -> Extent {
        Extent { file: FileIndex(file), offset, length }
    }

    fn pieces(extents: &Extents, start: u64, length: usize) -> Vec<(u32, u64, usize, usize)> {
        let piece = |p: ExtentPiece| (p.file.0, p.offset, p.within.start, p.within.end);
        extents.pieces(start, length).map(piece).collect()
    }

    #[test]
    fn a_range_is_split_where_a_file_ends() {
        let list = [extent(3, 100, 10), extent(1, 0, 0), extent(1, 7, 5), extent(3, 0, 1)];
        let extents = Extents::new(list).unwrap();
        assert_eq!(extents.length(), 16);
        assert_eq!(pieces(&extents, 0, 10), [(3, 100, 0, 10)]);
        assert_eq!(pieces(&extents, 9, 2), [(3, 109, 0, 1), (1, 7, 1, 2)]);
        assert_eq!(pieces(&extents, 10, 5), [(1, 7, 0, 5)]);
        assert_eq!(pieces(&extents, 0, 16), [(3, 100, 0, 10), (1, 7, 10, 15), (3, 0, 15, 16)]);
    }

    #[test]
    fn nothing_lies_beyond_the_end() {
        let extents = Extents::whole_file(FileIndex(0), 8);
        assert_eq!(pieces(&extents, 7, 5), [(0, 7, 0, 1)]);
        assert_eq!(pieces(&extents, 8, 5), []);
        assert_eq!(pieces(&extents, u64::MAX, 5), []);
        assert_eq!(pieces(&extents, 3, 0), []);
        assert_eq!(pieces(&Extents::whole_file(FileIndex(0), 0), 0, 1), []);
        assert_eq!(Extents::whole_file(FileIndex(0), 0), Extents::new([]).unwrap());
        assert_eq!(extents, Extents::new([extent(0, 0, 8)]).unwrap());
    }

    #[test]
    fn extents_may_touch_but_not_overlap() {
        assert!(Extents::new([extent(0, 10, 5), extent(0, 5, 5)]).is_ok());
        assert!(Extents::new([extent(0, 10, 5), extent(1, 12, 5)]).is_ok());
        assert_eq!(
            Extents::new([extent(0, 10, 5), extent(0, 5, 6)]),
            Err(GeometryError::Overlap { file: FileIndex(0), offset: 10 })
        );
    }

    #[test]
    fn offsets_beyond_64_bits_are_refused() {
        assert!(Extents::new([extent(0, u64::MAX - 1, 1)]).is_ok());
        assert_eq!(Extents::new([extent(0, u64::MAX, 1)]), Err(GeometryError::Overflow));
        let halves = [extent(0, 0, 1 << 63), extent(1, 0, 1 << 63)];
        assert_eq!(Extents::new(halves), Err(GeometryError::Overflow));
    }
}
