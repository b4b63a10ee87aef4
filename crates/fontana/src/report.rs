//! How a session ended.

use crate::error::Error;
use crate::event::{ObjectReport, ReceiveProgress};
use crate::outcome::Outcome;
use fontana_proto::{Rejection, SenderStats, SessionKey, Verified};
use fontana_wire::Hash;
use std::sync::Arc;
use std::time::Duration;

/// How a sender ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SendReport {
    /// The outcome.
    pub outcome: Outcome,
    /// Time since sending began.
    pub elapsed: Duration,
    /// Counters of the protocol.
    pub stats: SenderStats,
    /// Datagrams that this host could not send, of those counted in `stats`.
    pub lost: u64,
    /// Why files were given up.
    pub failures: Vec<Arc<Error>>,
}

/// Why a reception ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ended {
    /// Everything is on disk, or given up.
    Done,
    /// The time was up, or nothing that can be received arrived for too long.
    TimeUp,
    /// The caller stopped it.
    Stopped,
    /// [`Versions::Newer`](crate::Versions::Newer): only versions that are not newer are being
    /// sent.
    NothingNew,
    /// [`Versions::Newer`](crate::Versions::Newer): a newer version is being sent than the one that
    /// was being received.
    Superseded,
}

/// How a reception ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ReceiveReport {
    /// The outcome.
    pub outcome: Outcome,
    /// Why it ended.
    pub ended: Ended,
    /// What was accepted: its hash and version. `None` for plain FLUTE and FCAST.
    pub manifest: Option<(Hash, u64)>,
    /// The progress at the end.
    pub progress: ReceiveProgress,
    /// What was received.
    pub objects: Vec<ObjectReport>,
    /// Bytes of the files that were committed.
    pub bytes: u64,
    /// Least trust in anything received; `None` if nothing was accepted.
    pub verified: Option<Verified>,
    /// Why objects were given up.
    pub failures: Vec<Arc<Error>>,
    /// Sessions that were received and refused.
    pub rejections: Vec<(SessionKey, Rejection)>,
    /// What a consumer has taken; `None` where files went to a directory.
    pub delivery: Option<Delivery>,
}

/// What a consumer has taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delivery {
    /// Bytes from the beginning, all of them verified.
    pub bytes: u64,
    /// The consumer closed its end before it had everything.
    pub closed: bool,
}
