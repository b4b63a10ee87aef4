//! A buffer of Python that a session writes to.
#![allow(unsafe_code)] // Its address: while others run, no object of Python can be used.

use fontana::Memory;
use fontana_bindings::GivenMemory;
use pyo3::prelude::*;
use std::ops::Range;

/// The bytes of a writable memoryview. The buffer is not resized as long as this exists.
#[derive(Debug)]
pub(crate) struct Buffer {
    pub(crate) memory: GivenMemory,
    /// Keeps the buffer where it is.
    _export: Py<PyAny>,
}

impl Buffer {
    /// The bytes of `view`, which is contiguous. They are addressed by ctypes: the stable interface
    /// of Python 3.9 has no buffers.
    pub(crate) fn new(view: &Bound<'_, PyAny>) -> PyResult<Self> {
        let (py, length) = (view.py(), view.len()?);
        let ctypes = py.import("ctypes")?;
        let array = ctypes.getattr("c_char")?.mul(length)?;
        let export = array.call_method1("from_buffer", (view,))?;
        let address: usize = ctypes.call_method1("addressof", (&export,))?.extract()?;
        // SAFETY: `export` has `length` bytes there as long as it exists, and threads of others
        // that use the buffer of an object of Python expect that it changes.
        let memory = unsafe { GivenMemory::new(address as *mut u8, length) };
        Ok(Self { memory, _export: export.unbind() })
    }
}

impl Memory for Buffer {
    fn length(&self) -> u64 {
        self.memory.length()
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) {
        self.memory.read_at(offset, out);
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) {
        self.memory.write_at(offset, bytes);
    }

    fn on_verified(&self, range: Range<u64>) {
        self.memory.on_verified(range);
    }
}
