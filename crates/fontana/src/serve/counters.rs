//! What a web server counts, and what it does with errors of files.

use super::report::ServeProgress;
use crate::error::Error;
use crate::shared::Lock;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The errors that wait to be reported. The same file often fails for many clients.
const MAX_ERRORS: usize = 16;

/// Counts of a server, and errors that it has not reported yet.
#[derive(Debug, Default)]
pub(super) struct Counters {
    /// Connections that are served at present.
    pub(super) clients: AtomicU64,
    pub(super) requests: AtomicU64,
    /// Connections that have waited, because all places were taken.
    pub(super) waited: AtomicU64,
    /// Connections that were closed because their clients took next to nothing.
    pub(super) slow: AtomicU64,
    /// Bytes that the system has taken for all connections.
    pub(super) bytes: AtomicU64,
    /// Repair symbols that were computed.
    pub(super) encoded: AtomicU64,
    /// Repair symbols in answers.
    pub(super) symbols: AtomicU64,
    errors: Lock<Vec<Arc<Error>>>,
}

impl Counters {
    pub(super) fn add(counter: &AtomicU64, count: u64) {
        counter.fetch_add(count, Ordering::Relaxed);
    }

    /// A file could not be read, or has changed.
    pub(super) fn fail(&self, error: Arc<Error>) {
        // Any client can cause it again and again: events name each message once.
        tracing::debug!(%error, "an answer was given up");
        let mut errors = self.errors.lock();
        if errors.len() < MAX_ERRORS {
            errors.push(error);
        }
    }

    /// The errors since the last call.
    pub(super) fn take_errors(&self) -> Vec<Arc<Error>> {
        std::mem::take(&mut *self.errors.lock())
    }

    pub(super) fn progress(&self) -> ServeProgress {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        ServeProgress {
            clients: of(&self.clients),
            requests: of(&self.requests),
            waited: of(&self.waited),
            slow: of(&self.slow),
            bytes: of(&self.bytes),
            encoded_symbols: of(&self.encoded),
            sent_symbols: of(&self.symbols),
        }
    }
}
