//! The result of a session.

use crate::error::Error;
use crate::event::{AcceptedManifest, ObjectReport, ReceiveProgress};
use crate::outcome::Outcome;
use crate::reporting::Crowd;
use crate::sharing::ShareReport;
use fontana_proto::{EarlierReceivers, Rejection, SenderStats, SessionKey, TableStatus, Verified};
use fontana_store::Selection;
use fontana_wire::{RelativePath, Toi};
use std::sync::Arc;
use std::time::Duration;

/// The result of a sender.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SendReport {
    /// The outcome.
    pub outcome: Outcome,
    /// Time since sending began.
    pub elapsed: Duration,
    /// Counters of the protocol.
    pub stats: SenderStats,
    /// Datagrams counted in `stats` that this host could not send.
    pub lost: u64,
    /// The errors of files that were given up.
    pub failures: Vec<Arc<Error>>,
    /// Bytes of source symbols that were read to solve their blocks. A block is solved once if
    /// there is room for its intermediate symbols, and otherwise for each visit. 0 for a stream.
    pub solved_bytes: u64,
    /// Bytes of solved blocks that were written to the scratch file.
    pub scratch_bytes: u64,
    /// What is known of the receivers; `None` if no reports were collected.
    pub crowd: Option<Arc<Crowd>>,
    /// What is known of the receivers, for the next version.
    pub(crate) receivers: Option<Box<EarlierReceivers>>,
}

/// Why a reception ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ended {
    /// Everything is on disk or was given up.
    Done,
    /// The time was up, or no usable packet arrived for too long.
    TimeUp,
    /// The sender closed the session before everything was received: plain FLUTE.
    Closed,
    /// Every mirror was dropped, and there is no group to receive from.
    NoMirrors,
    /// The caller stopped it.
    Stopped,
    /// [`Versions::Newer`](crate::Versions::Newer): only versions that are not newer are sent.
    NothingNew,
    /// [`Versions::Newer`](crate::Versions::Newer): a version is sent that is newer than the one
    /// that was received.
    Superseded,
}

/// The result of a reception.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ReceiveReport {
    /// The outcome.
    pub outcome: Outcome,
    /// Why it ended.
    pub ended: Ended,
    /// The manifest that was accepted. `None` for plain FLUTE and FCAST.
    pub manifest: Option<AcceptedManifest>,
    /// The progress at the end.
    pub progress: ReceiveProgress,
    /// Objects that were received: of plain FLUTE and FCAST the last 16 384, because a session may
    /// have no end.
    pub objects: Vec<ObjectReport>,
    /// Number of all objects that were received.
    pub object_count: u64,
    /// Bytes of the files that were committed.
    pub bytes: u64,
    /// The weakest verification of anything received; `None` if nothing was accepted.
    pub verified: Option<Verified>,
    /// The errors of objects that were given up.
    pub failures: Vec<Arc<Error>>,
    /// Sessions that were received and refused.
    pub rejections: Vec<RejectedSession>,
    /// How much was received of file delivery tables. For plain FLUTE.
    pub table: TableStatus,
    /// A corrupt block whose wrong symbols were not found, for lack of others.
    pub suspect: Option<SuspectBlock>,
    /// What came from each mirror. With the feature `web`.
    #[cfg(feature = "web")]
    pub mirrors: Vec<crate::web::report::MirrorReport>,
    /// What was shared with other receivers; `None` if nothing was to be.
    pub shared: Option<ShareReport>,
    /// Whether the sender has said that it knows of the end; `None` if it was not told of it, and
    /// has not asked.
    pub is_known_to_sender: Option<bool>,
    /// The files of a reception that ended before all were complete. `None` if it was interrupted,
    /// or no manifest was accepted.
    pub incomplete: Option<IncompleteFiles>,
    /// What was written to a pipe or device; `None` if files went to a directory.
    pub delivery: Option<Delivery>,
}

/// The files of a reception that ended before all were complete.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct IncompleteFiles {
    /// Number of wanted files.
    pub wanted: u64,
    /// Number of those that have their names.
    pub named: u64,
    /// The files that bytes are missing of, in the order of their paths.
    pub missing: Vec<MissingFile>,
}

/// A file that bytes are missing of.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MissingFile {
    /// Its path in the tree.
    pub path: RelativePath,
    /// The pattern of [`only`](crate::FontanaReception::only) that selects it alone; `None` if its
    /// name is no text in one line.
    pub only: Option<String>,
}

impl MissingFile {
    /// The file with this path.
    pub fn new(path: RelativePath) -> Self {
        Self { only: Selection::pattern_of(path.as_bytes()), path }
    }
}

/// A block with wrong symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SuspectBlock {
    /// The object.
    pub toi: Toi,
    /// The number of the block in the object, from 0.
    pub block: u32,
}

/// A session that a receiver refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RejectedSession {
    /// The session.
    pub session: SessionKey,
    /// The reason.
    pub reason: Rejection,
}

/// The bytes that a consumer has taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delivery {
    /// Bytes from the beginning, all verified.
    pub bytes: u64,
    /// The consumer closed its end before it had everything.
    pub closed_by_consumer: bool,
}
