//! Fewer, larger system calls: reading ahead and writing behind, over byte ranges.

use std::ops::Range;

/// Bytes per read or write. A system call costs about as much as copying a few kilobytes. More than
/// a quarter of a megabyte gains nothing, and second-level caches overflow.
pub(crate) const CHUNK: usize = 256 << 10;

/// Largest gap that is read and discarded: this costs less than a system call.
const SKIP: u64 = 4 << 10;

/// Reads pieces through a buffer while they come in ascending order with small gaps, and directly
/// otherwise, so that no order costs more than unbuffered reading.
pub(crate) struct ReadAhead<F> {
    read: F,
    buffer: Vec<u8>,
    /// Offset of the buffer's first byte.
    start: u64,
    /// The end of the last requested piece.
    next: u64,
    /// The end of what can be read.
    end: u64,
}

impl<F, E> ReadAhead<F>
where
    F: FnMut(u64, &mut [u8]) -> Result<(), E>,
{
    /// `read(offset, out)` must fill `out` for all of `range`.
    pub(crate) fn new(range: Range<u64>, read: F) -> Self {
        Self { read, buffer: Vec::new(), start: range.start, next: range.start, end: range.end }
    }

    pub(crate) fn read_exact_at(&mut self, offset: u64, out: &mut [u8]) -> Result<(), E> {
        let sequential = offset.checked_sub(self.next).is_some_and(|gap| gap <= SKIP);
        self.next = offset + out.len() as u64;
        if let Some(held) = self.held(offset, out.len()) {
            out.copy_from_slice(held);
            return Ok(());
        }
        if sequential && out.len() < CHUNK {
            let length = self.end.saturating_sub(offset).min(CHUNK as u64) as usize;
            self.start = offset;
            self.buffer.resize(length, 0);
            if let Err(error) = (self.read)(offset, &mut self.buffer) {
                self.buffer.clear();
                return Err(error);
            }
            if let Some(held) = self.held(offset, out.len()) {
                out.copy_from_slice(held);
                return Ok(());
            }
        }
        (self.read)(offset, out)
    }

    fn held(&self, offset: u64, length: usize) -> Option<&[u8]> {
        let from = usize::try_from(offset.checked_sub(self.start)?).ok()?;
        self.buffer.get(from..from.checked_add(length)?)
    }
}

/// Joins consecutive pieces into one write. [`WriteBehind::flush`] must come last.
pub(crate) struct WriteBehind<F> {
    write: F,
    buffer: Vec<u8>,
    start: u64,
}

impl<F, E> WriteBehind<F>
where
    F: FnMut(u64, &[u8]) -> Result<(), E>,
{
    pub(crate) fn new(write: F) -> Self {
        Self { write, buffer: Vec::new(), start: 0 }
    }

    pub(crate) fn write_all_at(&mut self, offset: u64, bytes: &[u8]) -> Result<(), E> {
        let follows = offset == self.start + self.buffer.len() as u64;
        if !follows || self.buffer.len() + bytes.len() > CHUNK {
            self.flush()?;
            self.start = offset;
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    pub(crate) fn flush(&mut self) -> Result<(), E> {
        if !self.buffer.is_empty() {
            (self.write)(self.start, &self.buffer)?;
            self.buffer.clear();
        }
        Ok(())
    }
}

/// Reads a byte range from its start to its end, and passes it on a chunk at a time.
pub(crate) fn for_each_chunk<E>(
    mut range: Range<u64>,
    mut read: impl FnMut(u64, &mut [u8]) -> Result<(), E>,
    mut show: impl FnMut(&[u8]),
) -> Result<(), E> {
    let mut buffer = vec![0; (range.end.saturating_sub(range.start)).min(CHUNK as u64) as usize];
    while range.start < range.end {
        let length = (range.end - range.start).min(CHUNK as u64) as usize;
        let chunk = buffer.get_mut(..length).unwrap_or_default();
        read(range.start, chunk)?;
        show(chunk);
        range.start += length as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::convert::Infallible;

    fn byte_at(offset: u64) -> u8 {
        ((offset * 31) >> 3) as u8
    }

    /// Reads pieces of a simulated file, checks them, and returns the ranges that were read.
    fn reads(end: u64, pieces: impl IntoIterator<Item = (u64, usize)>) -> Vec<(u64, usize)> {
        let calls = RefCell::new(Vec::new());
        let mut reader = ReadAhead::new(0..end, |offset, out: &mut [u8]| {
            calls.borrow_mut().push((offset, out.len()));
            (offset..).zip(out).for_each(|(at, byte)| *byte = byte_at(at));
            Ok::<(), Infallible>(())
        });
        for (offset, length) in pieces {
            let mut out = vec![0; length];
            reader.read_exact_at(offset, &mut out).unwrap();
            assert!((offset..).zip(&out).all(|(at, &byte)| byte == byte_at(at)));
        }
        drop(reader);
        calls.into_inner()
    }

    #[test]
    fn adjacent_pieces_are_read_together() {
        let symbols = (0..1000).map(|i| (i * 1280, 1280));
        let calls = reads(1_280_000, symbols);
        assert!(calls.len() <= 5, "{calls:?}");
        // The symbol in which a chunk ends is read again with the next chunk.
        let read: usize = calls.iter().map(|call| call.1).sum();
        assert!((1_280_000..1_280_000 + 5 * 1280).contains(&read), "{read}");
    }

    #[test]
    fn distant_pieces_are_read_alone() {
        let backwards = (0..100).rev().map(|i| (i * 1280, 1280));
        assert_eq!(reads(128_000, backwards).len(), 100);
        let far = [(0, 10), (1 << 20, 10), (3 << 20, 10)];
        assert_eq!(reads(4 << 20, far), [(0, CHUNK), (1 << 20, 10), (3 << 20, 10)]);
    }

    #[test]
    fn reading_ahead_stops_at_the_end() {
        assert_eq!(reads(100, [(0, 10), (90, 10)]), [(0, 100)]);
        assert_eq!(reads(CHUNK as u64 * 2, [(0, CHUNK)]), [(0, CHUNK)]);
    }

    #[test]
    fn writes_that_follow_each_other_become_one() {
        let mut calls = Vec::new();
        let mut writer = WriteBehind::new(|offset, bytes: &[u8]| {
            calls.push((offset, bytes.to_vec()));
            Ok::<(), Infallible>(())
        });
        for (offset, bytes) in [(0, b"ab"), (2, b"cd"), (8, b"ef"), (4, b"gh")] {
            writer.write_all_at(offset, bytes).unwrap();
        }
        writer.flush().unwrap();
        writer.flush().unwrap();
        assert_eq!(calls, [(0, b"abcd".to_vec()), (8, b"ef".to_vec()), (4, b"gh".to_vec())]);
    }

    #[test]
    fn a_long_run_is_written_in_chunks() {
        let mut lengths = Vec::new();
        let mut writer = WriteBehind::new(|_, bytes: &[u8]| {
            lengths.push(bytes.len());
            Ok::<(), Infallible>(())
        });
        for i in 0..5 {
            writer.write_all_at(i * 100_000, &[1; 100_000]).unwrap();
        }
        writer.flush().unwrap();
        assert_eq!(lengths, [200_000, 200_000, 100_000]);
    }
}
