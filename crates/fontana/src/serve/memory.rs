//! The division of a web server's memory.

use super::connections::MAX_CLIENTS;
use crate::memory::{MIN_MEMORY, usable};

/// Bytes of the server beside these shares: of itself, of its connections, and of runs that are
/// sent and no longer cached.
const OTHER_BYTES: usize = 12 << 20;
/// Most bytes of an answer that wait for a client.
const MAX_WAITING: usize = 4 << 20;

/// The shares of a web server of content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ServerMemory {
    /// Bytes of encoded symbols that clients share.
    pub(super) symbol_bytes: usize,
    /// Bytes of solved blocks.
    pub(super) solved_bytes: usize,
    /// Bytes that each worker may spend to solve a block.
    pub(super) worker_bytes: usize,
    /// Bytes of an answer that wait for its client, beside the others: at most 4 MiB, which the
    /// default memory gives. With less, 64 clients together have as much as all else.
    pub(super) waiting_bytes: usize,
}

impl ServerMemory {
    pub(super) fn of(memory: usize, workers: usize) -> Self {
        let quarter = usable(memory.max(MIN_MEMORY)).saturating_sub(OTHER_BYTES) / 4;
        Self {
            symbol_bytes: quarter,
            solved_bytes: 2 * quarter,
            worker_bytes: quarter / workers.max(1),
            waiting_bytes: (memory.max(MIN_MEMORY) / MAX_CLIENTS).min(MAX_WAITING),
        }
    }
}
