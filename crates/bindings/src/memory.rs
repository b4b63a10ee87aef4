//! Memory of a program in another language that a session writes to.
#![allow(unsafe_code)] // It has no slice of Rust: the program reads it meanwhile.

use fontana::Memory;
use std::ops::Range;
use std::path::PathBuf;
use std::ptr;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The directory of symbols that wait, if the program names none: in memory where the system has
/// such a directory, so that nothing is written to a disk.
pub fn staging_in_memory() -> PathBuf {
    let shared = PathBuf::from("/dev/shm");
    if shared.is_dir() { shared } else { std::env::temp_dir() }
}

/// Memory that a program has given to a session, and which of its bytes are verified.
#[derive(Debug)]
pub struct GivenMemory {
    start: *mut u8,
    length: usize,
    /// Verified ranges, ascending, with gaps between them.
    verified: Mutex<Vec<Range<u64>>>,
    grown: Condvar,
}

// SAFETY: by the contract of `new` it may be used until it is dropped, from any thread.
unsafe impl Send for GivenMemory {}
// SAFETY: threads of a session read and write disjoint ranges, or one after the other.
unsafe impl Sync for GivenMemory {}

impl GivenMemory {
    /// The `length` bytes at `start`. None if `start` is null.
    ///
    /// # Safety
    /// They may be read and written until the value is dropped, by any thread. Nothing else writes
    /// to them, and what else reads them expects that they change until they are verified.
    pub unsafe fn new(start: *mut u8, length: usize) -> Self {
        let length = if start.is_null() { 0 } else { length };
        Self { start, length, verified: Mutex::default(), grown: Condvar::new() }
    }

    /// Bytes from the beginning on that are verified.
    pub fn verified_prefix(&self) -> u64 {
        self.verified().first().filter(|first| first.start == 0).map_or(0, |first| first.end)
    }

    /// Whether all bytes of a range are verified.
    pub fn is_verified(&self, range: &Range<u64>) -> bool {
        contains(&self.verified(), range)
    }

    /// Waits until all bytes of a range are verified, but not longer than this. Whether they are.
    pub fn wait(&self, range: &Range<u64>, most: Duration) -> bool {
        let waits = |verified: &mut Vec<Range<u64>>| !contains(verified, range);
        let waited = self.grown.wait_timeout_while(self.verified(), most, waits);
        let (verified, _) = waited.unwrap_or_else(PoisonError::into_inner);
        contains(&verified, range)
    }

    fn verified(&self) -> MutexGuard<'_, Vec<Range<u64>>> {
        self.verified.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The address of `length` bytes from `offset` on; `None` if they are not all inside.
    fn place(&self, offset: u64, length: usize) -> Option<*mut u8> {
        let offset = usize::try_from(offset).ok()?;
        let is_inside = offset.checked_add(length)? <= self.length;
        // SAFETY: inside the bytes of the contract of `new`.
        is_inside.then(|| unsafe { self.start.add(offset) })
    }
}

/// Whether a range is in one of these. An empty one is.
fn contains(verified: &[Range<u64>], range: &Range<u64>) -> bool {
    let number = verified.partition_point(|own| own.end < range.end);
    range.is_empty() || verified.get(number).is_some_and(|own| own.start <= range.start)
}

impl Memory for GivenMemory {
    fn length(&self) -> u64 {
        self.length as u64
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) {
        if let Some(place) = self.place(offset, out.len()) {
            // SAFETY: the bytes are inside, by `place`, and `out` is memory of the session.
            unsafe { ptr::copy_nonoverlapping(place, out.as_mut_ptr(), out.len()) }
        }
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) {
        if let Some(place) = self.place(offset, bytes.len()) {
            // SAFETY: the bytes are inside, by `place`, and `bytes` is memory of the session.
            unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), place, bytes.len()) }
        }
    }

    fn on_verified(&self, range: Range<u64>) {
        let mut verified = self.verified();
        let first = verified.partition_point(|own| own.end < range.start);
        let beyond = verified.partition_point(|own| own.start <= range.end);
        let joined = verified.get(first..beyond).unwrap_or_default();
        let start = joined.first().map_or(range.start, |own| own.start.min(range.start));
        let end = joined.last().map_or(range.end, |own| own.end.max(range.end));
        verified.splice(first..beyond, std::iter::once(start..end));
        drop(verified);
        self.grown.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_reads_and_writes_inside_its_bounds_only() {
        let mut bytes = [0; 6];
        // SAFETY: the middle of the array, which outlives it, and is not used meanwhile.
        let memory = unsafe { GivenMemory::new(bytes.as_mut_ptr().add(1), 4) };
        memory.write_at(0, b"abcd");
        memory.write_at(2, b"xyz");
        memory.write_at(u64::MAX, b"z");
        memory.write_at(4, b"z");
        let mut out = [7; 2];
        memory.read_at(2, &mut out);
        assert_eq!(&out, b"cd");
        memory.read_at(3, &mut out);
        assert_eq!(&out, b"cd", "one byte is outside");
        drop(memory);
        assert_eq!(&bytes, b"\0abcd\0");
    }

    #[test]
    fn ranges_that_touch_are_one() {
        // SAFETY: no bytes.
        let memory = unsafe { GivenMemory::new(ptr::null_mut(), 100) };
        assert_eq!(memory.length(), 0);
        for range in [10..20, 40..50, 0..5, 30..40] {
            memory.on_verified(range);
        }
        assert_eq!(*memory.verified(), [0..5, 10..20, 30..50]);
        assert!(memory.is_verified(&(32..48)) && memory.is_verified(&(60..60)));
        assert!(!memory.is_verified(&(15..35)) && !memory.is_verified(&(0..6)));
        assert_eq!(memory.verified_prefix(), 5);
        assert!(!memory.wait(&(0..50), Duration::from_millis(1)));
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| memory.wait(&(0..50), Duration::from_secs(60)));
            memory.on_verified(20..30);
            memory.on_verified(5..10);
            assert!(waits.join().unwrap());
        });
        assert_eq!((memory.verified_prefix(), memory.verified().len()), (50, 1));
    }
}
