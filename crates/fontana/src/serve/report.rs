//! What a web server has done.

use crate::outcome::Outcome;

/// What a web server has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServeProgress {
    /// Connections at present.
    pub clients: u64,
    /// Requests.
    pub requests: u64,
    /// Connections that have waited for others to end, because there were too many.
    pub waited: u64,
    /// Connections that were closed, because their clients took next to nothing.
    pub slow: u64,
    /// Bytes that were sent, heads of answers included.
    pub bytes: u64,
    /// Fresh symbols that were computed.
    pub encoded_symbols: u64,
    /// Fresh symbols that were sent: each to every client that shares it.
    pub sent_symbols: u64,
}

/// The result of a web server.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ServeReport {
    /// `Interrupted` if nothing worse happened before it was stopped.
    pub outcome: Outcome,
    /// What it has done.
    pub progress: ServeProgress,
}
