//! A copy of an object, made while it is hashed: what is done to its files later does not matter.

use crate::solved::ScratchFile;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The bytes of an object, from the beginning to the end, in a part of a scratch file.
#[derive(Debug)]
pub struct ObjectCopy {
    scratch: Arc<ScratchFile>,
    offset: u64,
    has_failed: AtomicBool,
}

impl ObjectCopy {
    /// Room for an object of so many bytes; `None` if the file has none.
    pub fn reserve(scratch: &Arc<ScratchFile>, bytes: u64) -> Option<Self> {
        let offset = scratch.reserve(bytes)?;
        Some(Self { scratch: Arc::clone(scratch), offset, has_failed: AtomicBool::new(false) })
    }

    /// Writes bytes from `at` of the object on. If that fails, it [has failed](Self::has_failed).
    pub fn write(&self, at: u64, bytes: &[u8]) {
        if self.has_failed() {
            return;
        }
        if let Err(error) = self.scratch.file().write_all_at(bytes, self.offset + at) {
            tracing::info!(%error, "small files are not copied");
            self.has_failed.store(true, Ordering::Relaxed);
        }
    }

    /// Whether bytes are missing, as on a full disk.
    pub fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
    }

    pub(crate) fn read(&self, at: u64, out: &mut [u8]) -> std::io::Result<()> {
        self.scratch.file().read_exact_at(out, self.offset + at)
    }
}
