//! What a catalog finds in a packet, as data: `Reception` applies it.

use crate::event::{DropReason, FileRefusal, ReceiverEvent, Rejection, TableWarning};
use crate::job::{Expired, Opening};
use crate::receiver::config::ReceiverConfig;
use crate::receiver::sessions::ContentId;
use crate::receiver::transfer::Transfer;
use crate::time::Instant;
use fontana_fec::ObjectLayout;
use fontana_wire::{FdtError, Hash, Toi};

/// What a catalog may look at beside the session and the packet.
#[derive(Clone, Copy, Debug)]
pub(in crate::receiver) struct Context<'a> {
    pub(in crate::receiver) config: &'a ReceiverConfig,
    pub(in crate::receiver) now: Instant,
    /// The accepted content.
    pub(in crate::receiver) accepted: Option<&'a ContentId>,
    /// Its version, if newer ones may be announced.
    pub(in crate::receiver) accepted_version: Option<u64>,
    pub(in crate::receiver) transfer: &'a Transfer,
}

impl Context<'_> {
    /// The time by the host's clock, in seconds of Unix time.
    pub(in crate::receiver) fn unix_seconds(&self) -> u64 {
        let since_start = self.now.as_nanos() / 1_000_000_000;
        self.config.started_at_unix_seconds.saturating_add(since_start)
    }
}

/// What a packet has shown.
#[derive(Debug)]
pub(in crate::receiver) enum Discovery {
    Nothing,
    /// A head that does not parse.
    Malformed,
    /// The session has a new head of a manifest. With an event: its content is on offer, too.
    Head(Option<ReceiverEvent>),
    /// The content of the session is on offer. `None`: an event has said so before.
    Offered(Option<ReceiverEvent>),
    /// The content of the session, which is accepted without an offer.
    Content(Box<Content>),
    /// Objects of the accepted content.
    Objects(Vec<Finding>),
    /// The session is refused.
    Refused(Rejection),
    /// The packet is refused; the session is not.
    Ignored(Rejection),
    /// The session is of another kind than the receiver expects.
    Foreign(ReceiverEvent),
    /// A file delivery table that cannot be read; the next one may be better.
    Unreadable(FdtError),
    /// The session is refused: it carries another manifest, of this version.
    OtherManifest {
        version: u64,
    },
    /// The accepted session announces this newer version. It goes on sending the objects that both
    /// versions have.
    NewerVersion {
        version: u64,
    },
}

impl Discovery {
    /// Whether the packet has announced wanted content, or more of it.
    pub(in crate::receiver) fn announces_content(&self) -> bool {
        match self {
            Self::Head(_)
            | Self::Offered(_)
            | Self::Content(_)
            | Self::Objects(_)
            | Self::NewerVersion { .. } => true,
            Self::Nothing
            | Self::Malformed
            | Self::Refused(_)
            | Self::Ignored(_)
            | Self::Foreign(_)
            | Self::Unreadable(_)
            | Self::OtherManifest { .. } => false,
        }
    }
}

/// Content that is being accepted.
#[derive(Debug)]
pub(in crate::receiver) struct Content {
    pub(in crate::receiver) id: ContentId,
    /// Its version, if newer ones may be reported.
    pub(in crate::receiver) version: Option<u64>,
    /// Reports the acceptance.
    pub(in crate::receiver) event: Option<ReceiverEvent>,
    pub(in crate::receiver) findings: Vec<Finding>,
}

/// Objects that a catalog has found.
#[derive(Debug)]
pub(in crate::receiver) enum Finding {
    /// They are received.
    Open {
        objects: Vec<NewObject>,
        /// Reported before they are opened.
        event: Option<ReceiverEvent>,
        opening: Box<Opening>,
    },
    /// A defect of what was read.
    Warn(TableWarning),
    /// An object is not received any more. It precedes what takes its place.
    Drop { object: Toi, reason: DropReason },
    /// Files that the tables do not name any more.
    Expire(Expired),
    /// An object that is not received.
    Refuse { toi: Toi, content_location: String, reason: FileRefusal },
}

impl Finding {
    /// One object is received.
    pub(super) fn open(object: NewObject, event: Option<ReceiverEvent>, opening: Opening) -> Self {
        Self::Open { objects: vec![object], event, opening: Box::new(opening) }
    }
}

/// An object to receive.
#[derive(Debug)]
pub(in crate::receiver) struct NewObject {
    pub(in crate::receiver) toi: Toi,
    pub(in crate::receiver) layout: ObjectLayout,
    /// The expected hash of each block; `None` if the session promises none.
    pub(in crate::receiver) block_hashes: Option<Vec<Hash>>,
}
