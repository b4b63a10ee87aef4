//! The bytes of a file, most of which may be a hole: a spool is a hundred times as long as what it
//! holds.

use rustix::fs::{SeekFrom, seek};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

const PAGE: u64 = 4096;

/// A file's length, and the pages that are not zeros only.
#[derive(Clone, Debug, Default)]
pub(super) struct Pages {
    length: u64,
    pages: BTreeMap<u64, Vec<u8>>,
}

impl Pages {
    /// A file of the host.
    pub(super) fn read(path: &Path) -> Self {
        let file = File::open(path).unwrap();
        let mut pages = Self { length: file.metadata().unwrap().len(), ..Self::default() };
        let mut at = 0;
        // At the end there is no more data.
        while let Ok(start) = seek(&file, SeekFrom::Data(at)) {
            at = seek(&file, SeekFrom::Hole(start)).unwrap();
            let mut bytes = vec![0; (at - start) as usize];
            file.read_exact_at(&mut bytes, start).unwrap();
            pages.write(start, &bytes);
        }
        pages
    }

    /// Writes the file to the host.
    pub(super) fn write_to(&self, path: &Path) {
        let file = File::create(path).unwrap();
        for (&page, bytes) in &self.pages {
            file.write_all_at(bytes, page * PAGE).unwrap();
        }
        file.set_len(self.length).unwrap();
    }

    pub(super) fn write(&mut self, mut at: u64, mut bytes: &[u8]) {
        self.length = self.length.max(at + bytes.len() as u64);
        while !bytes.is_empty() {
            let start = (at % PAGE) as usize;
            let count = bytes.len().min(PAGE as usize - start);
            let page = self.pages.entry(at / PAGE).or_insert_with(|| vec![0; PAGE as usize]);
            page[start..start + count].copy_from_slice(&bytes[..count]);
            (at, bytes) = (at + count as u64, &bytes[count..]);
        }
    }

    pub(super) fn set_length(&mut self, length: u64) {
        if length < self.length {
            self.punch(length, self.length - length);
        }
        self.length = length;
    }

    /// Makes the file at least so long.
    pub(super) fn extend(&mut self, length: u64) {
        self.length = self.length.max(length);
    }

    pub(super) fn punch(&mut self, at: u64, length: u64) {
        let end = at + length;
        let whole = at.div_ceil(PAGE)..end / PAGE;
        self.pages.retain(|page, _| !whole.contains(page));
        for (&page, bytes) in self.pages.range_mut(at / PAGE..end.div_ceil(PAGE)) {
            let start = at.saturating_sub(page * PAGE).min(PAGE);
            let end = end.saturating_sub(page * PAGE).min(PAGE);
            bytes[start as usize..end as usize].fill(0);
        }
    }
}
