//! What takes delivered bytes.

use crate::error::{Error, IoError, TransferError};
use fontana_store::{Device, GrowingFile, Memory};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

/// Bytes that are read back from a device at a time.
const CHUNK: usize = 64 << 10;

/// What takes delivered bytes, in their order.
pub(super) enum Sink {
    /// The caller's writer.
    Writer(Box<dyn Write + Send>),
    /// The file of a stream.
    File(Box<GrowingFile>),
    /// A device that holds a stream.
    Device(Box<StreamOnDevice>),
    /// Memory that holds a stream.
    Memory(StreamInMemory),
}

impl Sink {
    /// Whether a write may never return.
    pub(super) fn may_block(&self) -> bool {
        matches!(self, Self::Writer(_))
    }

    /// Completes what was written.
    pub(super) fn finish(&mut self) -> Result<(), Error> {
        match self {
            Self::Writer(writer) => {
                Ok(writer.flush().map_err(|error| IoError::Consumer { error })?)
            }
            Self::File(file) => Ok(file.commit()?),
            Self::Device(stream) => stream.finish(),
            Self::Memory(_) => Ok(()),
        }
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Writer(writer) => writer.write(bytes),
            Self::File(file) => file.write(bytes),
            Self::Device(stream) => stream.append(bytes),
            Self::Memory(stream) => stream.append(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Writer(writer) => writer.flush(),
            Self::File(file) => file.flush(),
            Self::Device(_) | Self::Memory(_) => Ok(()),
        }
    }
}

/// A stream on a device: written in order, and read back at the end.
pub(super) struct StreamOnDevice {
    device: Device,
    length: u64,
    written: blake3::Hasher,
}

impl StreamOnDevice {
    pub(super) fn new(device: Device) -> Self {
        Self { device, length: 0, written: blake3::Hasher::new() }
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let end = self.length + bytes.len() as u64;
        if let Some(capacity) = self.device.capacity().filter(|&capacity| capacity < end) {
            return Err(too_small(self.device.path(), capacity, end));
        }
        self.device
            .write_all_at(self.length, bytes)
            .map_err(|error| io::Error::other(Error::from(error)))?;
        self.written.update(bytes);
        self.length = end;
        Ok(bytes.len())
    }

    /// Syncs the device, and compares what it then holds with what was written.
    fn finish(&mut self) -> Result<(), Error> {
        self.device.set_length(self.length)?;
        self.device.settle()?;
        let (mut read, mut at) = (blake3::Hasher::new(), 0);
        let mut chunk = vec![0; CHUNK];
        while at < self.length {
            let count = (self.length - at).min(CHUNK as u64);
            let bytes = chunk.get_mut(..count as usize).unwrap_or_default();
            self.device.read_exact_at(at, bytes)?;
            read.update(bytes);
            at += count;
        }
        if read.finalize() != self.written.finalize() {
            return Err(IoError::ReadBack { path: self.device.path().to_owned() }.into());
        }
        Ok(())
    }
}

/// A stream in memory: written in order.
pub(super) struct StreamInMemory {
    memory: Arc<dyn Memory>,
    length: u64,
}

impl StreamInMemory {
    pub(super) fn new(memory: Arc<dyn Memory>) -> Self {
        Self { memory, length: 0 }
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (start, end) = (self.length, self.length + bytes.len() as u64);
        let capacity = self.memory.length();
        if capacity < end {
            return Err(too_small(Path::new("memory"), capacity, end));
        }
        self.memory.write_at(start, bytes);
        self.memory.on_verified(start..end);
        self.length = end;
        Ok(bytes.len())
    }
}

fn too_small(path: &Path, capacity: u64, length: u64) -> io::Error {
    let full = Error::from(TransferError::TooSmall { path: path.to_owned(), capacity, length });
    io::Error::new(io::ErrorKind::StorageFull, full)
}
