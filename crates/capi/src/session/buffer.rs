//! A buffer of the caller that a session writes to.

use std::io::{self, Write};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The part of a buffer that is not written yet.
#[derive(Debug)]
pub(super) struct Buffer {
    next: *mut u8,
    room: usize,
    written: Arc<AtomicUsize>,
}

// SAFETY: the caller of the library leaves the buffer to the session, of which one thread writes.
unsafe impl Send for Buffer {}

/// The number of bytes that are written.
#[derive(Clone, Debug)]
pub(super) struct Written(Arc<AtomicUsize>);

impl Written {
    pub(super) fn bytes(&self) -> usize {
        self.0.load(Ordering::Acquire)
    }
}

impl Buffer {
    /// A writer to the `size` bytes at `start`.
    ///
    /// # Safety
    /// They may be written until the buffer is dropped, and nothing else uses them.
    pub(super) unsafe fn new(start: *mut u8, size: usize) -> (Self, Written) {
        let written = Arc::new(AtomicUsize::new(0));
        let room = if start.is_null() { 0 } else { size };
        (Self { next: start, room, written: Arc::clone(&written) }, Written(written))
    }
}

impl Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = bytes.len().min(self.room);
        if count == 0 && !bytes.is_empty() {
            return Err(io::Error::new(io::ErrorKind::StorageFull, "the buffer is full"));
        }
        // SAFETY: `count` bytes of room are at `next`, by the contract of `new`, and what a
        // session holds does not overlap them.
        self.next = unsafe {
            ptr::copy_nonoverlapping(bytes.as_ptr(), self.next, count);
            self.next.add(count)
        };
        self.room -= count;
        self.written.fetch_add(count, Ordering::Release);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_takes_what_it_has_room_for() {
        let mut bytes = [0; 4];
        // SAFETY: the array outlives the buffer, and is not used meanwhile.
        let (mut buffer, written) = unsafe { Buffer::new(bytes.as_mut_ptr(), 4) };
        assert_eq!(buffer.write(b"abc").unwrap(), 3);
        assert_eq!(buffer.write(b"def").unwrap(), 1);
        assert_eq!(buffer.write(b"ef").unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(written.bytes(), 4);
        drop(buffer);
        assert_eq!(&bytes, b"abcd");
    }
}
