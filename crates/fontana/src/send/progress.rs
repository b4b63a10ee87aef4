//! What a sender reports.

use crate::error::Error;
use crate::outcome::Outcome;
use fontana_net::MtuDrop;
use fontana_proto::SenderStats;
use std::sync::Arc;
use std::time::Duration;

/// The progress of a sender.
#[derive(Clone, Copy, Debug)]
pub struct SendProgress<'a> {
    /// Time since sending began.
    pub elapsed: Duration,
    /// Counters of the protocol.
    pub stats: SenderStats,
    /// Source symbols of the whole content: as many symbols make one pass.
    pub source_symbols: u64,
    /// Datagrams that this host could not send, of those counted in `stats`.
    pub lost: u64,
    /// The last period in which packets did not fit the interface's MTU any more; they are among
    /// those that are `lost`.
    pub mtu_drop: Option<&'a MtuDrop>,
    /// Files that had to be given up so far, with the reason.
    pub failures: &'a [Arc<Error>],
}

/// How a sender ended.
#[derive(Debug)]
pub struct SendSummary {
    /// The outcome.
    pub outcome: Outcome,
    /// Time since sending began.
    pub elapsed: Duration,
    /// Counters of the protocol.
    pub stats: SenderStats,
    /// Datagrams that this host could not send, of those counted in `stats`.
    pub lost: u64,
    /// Files that had to be given up, with the reason.
    pub failures: Vec<Arc<Error>>,
}
