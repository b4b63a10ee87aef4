//! The division of a web server's memory.

use crate::memory::{MIN_MEMORY, usable};

/// The shares of a web server of content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ServerMemory {
    /// Bytes of encoded symbols that clients share.
    pub(super) symbol_bytes: usize,
    /// Bytes of solved blocks.
    pub(super) solved_bytes: usize,
    /// Bytes that each worker may spend to solve a block.
    pub(super) worker_bytes: usize,
}

impl ServerMemory {
    pub(super) fn of(memory: usize, workers: usize) -> Self {
        let quarter = usable(memory.max(MIN_MEMORY)) / 4;
        Self {
            symbol_bytes: quarter,
            solved_bytes: 2 * quarter,
            worker_bytes: quarter / workers.max(1),
        }
    }
}
