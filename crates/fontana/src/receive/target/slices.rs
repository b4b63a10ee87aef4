//! Files of an FCAST session that arrive in slices, each an object of its own.

use crate::error::{Error, TransferError};
use fontana_store::{FileIndex, TargetName};
use fontana_wire::Slice;
use std::collections::BTreeMap;
use std::ops::Range;

/// The files of which some slices have arrived.
#[derive(Default)]
pub(super) struct SlicedFiles {
    files: BTreeMap<TargetName, SlicedFile>,
    /// Sum of the lengths of all sliced files, as their headers promise.
    promised: u64,
}

/// A file of which some slices have arrived.
pub(super) struct SlicedFile {
    pub(super) name: String,
    pub(super) index: FileIndex,
    pub(super) length: u64,
    /// Number of slices.
    pub(super) count: u32,
    /// The ranges of the slices that have arrived, by their number.
    placed: BTreeMap<u32, Range<u64>>,
    /// All slices have arrived, and leave gaps: there is no such file.
    pub(super) has_gaps: bool,
}

impl SlicedFiles {
    /// Sum of the lengths that headers promise, without a byte having to be sent.
    pub(super) fn promised(&self) -> u64 {
        self.promised
    }

    pub(super) fn get_mut(&mut self, name: &TargetName) -> Option<&mut SlicedFile> {
        self.files.get_mut(name)
    }

    pub(super) fn add(&mut self, target: TargetName, file: SlicedFile) {
        self.promised += file.length;
        self.files.insert(target, file);
    }

    pub(super) fn remove(&mut self, name: &TargetName) {
        self.files.remove(name);
    }

    /// Takes a file of which slices are missing, and says which.
    pub(super) fn pop_missing(&mut self) -> Option<Error> {
        let mut files = std::iter::from_fn(|| self.files.pop_first());
        files.find(|(_, file)| !file.has_gaps).map(|(_, file)| file.missing())
    }
}

impl SlicedFile {
    pub(super) fn new(name: String, index: FileIndex, length: u64, count: u32) -> Self {
        Self { name, index, length, count, placed: BTreeMap::new(), has_gaps: false }
    }

    /// Bytes that are free for a slice, up to the next one or the end; `None` if it is there, or
    /// its place is taken.
    pub(super) fn room_for(&self, slice: &Slice) -> Option<u64> {
        if self.placed.contains_key(&slice.index) {
            return None;
        }
        let before = self.placed.range(..slice.index).next_back().map_or(0, |(_, at)| at.end);
        let after = self.placed.range(slice.index..).next().map_or(self.length, |(_, at)| at.start);
        (before <= slice.offset).then(|| after.checked_sub(slice.offset)).flatten()
    }

    /// Notes that a slice has arrived.
    pub(super) fn place(&mut self, index: u32, range: Range<u64>) {
        self.placed.insert(index, range);
    }

    /// Whether every slice has arrived.
    pub(super) fn has_all(&self) -> bool {
        self.placed.len() >= self.count as usize
    }

    /// Whether every slice begins where the one before it ends.
    pub(super) fn is_whole(&self) -> bool {
        let mut end = 0;
        self.placed.values().all(|at| std::mem::replace(&mut end, at.end) == at.start)
            && end == self.length
    }

    fn missing(self) -> Error {
        /// Ranges that a message lists.
        const LISTED: usize = 5;
        let mut ranges = Vec::new();
        let mut next = 0;
        let ends = [self.count];
        for index in self.placed.keys().copied().chain(ends) {
            match index.saturating_sub(next) {
                0 => {}
                1 => ranges.push(next.to_string()),
                _ => ranges.push(format!("{next}-{}", index - 1)),
            }
            next = index.saturating_add(1);
        }
        let more = if ranges.len() > LISTED { ", ..." } else { "" };
        ranges.truncate(LISTED);
        let missing = self.count - self.placed.len() as u32;
        let which = ranges.join(", ") + more;
        TransferError::MissingSlices { name: self.name, missing, count: self.count, which }.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sliced(placed: &[(u32, Range<u64>)], count: u32) -> SlicedFile {
        let placed = placed.iter().cloned().collect();
        let file = SlicedFile::new("f".to_owned(), FileIndex(0), 30, count);
        SlicedFile { placed, ..file }
    }

    #[test]
    fn a_slice_has_room_up_to_its_neighbors() {
        let file = sliced(&[(1, 10..20)], 4);
        let room = |index, offset| file.room_for(&Slice { count: 4, index, offset });
        assert_eq!(room(0, 0), Some(10));
        assert_eq!(room(0, 10), Some(0));
        assert_eq!(room(0, 11), None);
        assert_eq!(room(1, 10), None, "it is there");
        assert_eq!(room(2, 20), Some(10));
        assert_eq!(room(2, 19), None);
        assert_eq!(room(3, 30), Some(0));
        assert_eq!(room(3, 31), None);
    }

    #[test]
    fn a_file_is_whole_when_its_slices_lie_end_to_end() {
        assert!(sliced(&[(0, 0..10), (1, 10..30)], 2).is_whole());
        assert!(!sliced(&[(0, 0..10), (1, 11..30)], 2).is_whole());
        assert!(!sliced(&[(0, 1..10), (1, 10..30)], 2).is_whole());
        assert!(!sliced(&[(0, 0..10), (1, 10..29)], 2).is_whole());
    }

    #[test]
    fn missing_slices_are_listed_by_their_numbers() {
        let listed = |placed: &[u32], count| {
            let placed: Vec<_> = placed.iter().map(|&index| (index, 0..0)).collect();
            match sliced(&placed, count).missing() {
                Error::Transfer(TransferError::MissingSlices { missing, which, .. }) => {
                    (missing, which)
                }
                other => panic!("{other}"),
            }
        };
        assert_eq!(listed(&[1, 5], 8), (6, "0, 2-4, 6-7".to_owned()));
        assert_eq!(listed(&[0], 2), (1, "1".to_owned()));
        assert_eq!(listed(&[1, 3, 5, 7, 9], 12), (7, "0, 2, 4, 6, 8, ...".to_owned()));
        assert_eq!(listed(&[u32::MAX - 1], u32::MAX), (u32::MAX - 1, "0-4294967293".to_owned()));
    }
}
