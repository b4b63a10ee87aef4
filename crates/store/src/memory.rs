//! Memory of the caller that a file is received into, in place.

use std::fmt;
use std::ops::Range;
use std::sync::{PoisonError, RwLock};

/// Memory that a file is received into: each symbol at its final place, as it arrives. Threads
/// share it. Ranges lie inside [`length`](Self::length).
///
/// A vector behind a lock is one:
///
/// ```
/// use fontana_store::Memory;
/// use std::sync::RwLock;
///
/// let memory = RwLock::new(vec![0; 4]);
/// memory.write_at(1, b"ab");
/// assert_eq!(memory.into_inner().unwrap(), b"\0ab\0");
/// ```
pub trait Memory: fmt::Debug + Send + Sync {
    /// Its size in bytes.
    fn length(&self) -> u64;

    /// Fills `out` with the bytes from `offset` on.
    fn read_at(&self, offset: u64, out: &mut [u8]);

    /// Writes bytes from `offset` on.
    fn write_at(&self, offset: u64, bytes: &[u8]);

    /// Takes note that the bytes of a range are verified, and are not written to any more. Ranges
    /// come in any order, each once. Until then a range may have any bytes, also wrong ones.
    fn on_verified(&self, range: Range<u64>) {
        let _ = range;
    }
}

impl Memory for RwLock<Vec<u8>> {
    fn length(&self) -> u64 {
        self.read().unwrap_or_else(PoisonError::into_inner).len() as u64
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) {
        let bytes = self.read().unwrap_or_else(PoisonError::into_inner);
        // A vector that the caller has made shorter meanwhile lacks bytes: blocks are then wrong.
        if let Some(bytes) = place(offset, out.len()).and_then(|range| bytes.get(range)) {
            out.copy_from_slice(bytes);
        }
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) {
        let mut own = self.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = place(offset, bytes.len()).and_then(|range| own.get_mut(range)) {
            own.copy_from_slice(bytes);
        }
    }
}

fn place(offset: u64, length: usize) -> Option<Range<usize>> {
    let start = usize::try_from(offset).ok()?;
    Some(start..start.checked_add(length)?)
}
