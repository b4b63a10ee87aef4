//! A buffer of Python that a session writes to.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PySlice};
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that are written while the interpreter's lock is held: a fraction of a millisecond.
const CHUNK: usize = 1 << 20;

/// A writer to a memoryview of bytes, from its beginning.
pub(crate) struct Buffer {
    view: Py<PyAny>,
    size: usize,
    written: Arc<AtomicUsize>,
}

impl Buffer {
    /// A writer to `view`, and the number of bytes that it has written.
    pub(crate) fn new(view: &Bound<'_, PyAny>) -> PyResult<(Self, Arc<AtomicUsize>)> {
        let written = Arc::new(AtomicUsize::new(0));
        let size = view.len()?;
        Ok((Self { view: view.clone().unbind(), size, written: Arc::clone(&written) }, written))
    }
}

impl Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let start = self.written.load(Ordering::Relaxed);
        let count = bytes.len().min(CHUNK).min(self.size.saturating_sub(start));
        if count == 0 && !bytes.is_empty() {
            return Err(io::Error::new(io::ErrorKind::StorageFull, "the buffer is full"));
        }
        let place = |at: usize| isize::try_from(at).map_err(io::Error::other);
        let (from, to) = (place(start)?, place(start + count)?);
        let write = |py: Python<'_>| {
            let content = PyBytes::new(py, &bytes[..count]);
            self.view.bind(py).set_item(PySlice::new(py, from, to, 1), content)
        };
        // None while the interpreter ends.
        let result = Python::try_attach(write);
        match result {
            Some(result) => result.map_err(io::Error::other)?,
            None => return Err(io::Error::other("the interpreter has ended")),
        }
        self.written.fetch_add(count, Ordering::Release);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
