//! What an endpoint reports to the application, by side; and its outputs.

use crate::endpoint::{BlockId, Output, SessionKey};
use crate::job::{JobError, ReceiveJob, SendJob};
use fontana_fec::OtiError;
use fontana_wire::{Hash, Manifest, PublicKey, SessionHead, StreamIndex, Toi};
use std::ops::Range;
use std::sync::Arc;

/// How far a receiver may trust what it received (DESIGN, section 5). Ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verified {
    /// Lengths and checksums agree, nothing more: plain FLUTE and FCAST.
    None,
    /// Every byte matches a manifest whose hash was known or accepted beforehand.
    Digest,
    /// Every byte matches a manifest that the expected publisher has signed.
    Signed,
}

/// Why a session on the joined channels is not the one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// Its TSI is not the ticket's.
    OtherSession,
    /// Its manifest is not the ticket's.
    OtherManifest,
    /// The publisher's key was expected, and the head is not signed with it.
    WrongKey,
    /// The head's expiry has passed.
    Expired,
    /// Its version is not above the one that was asked for.
    OldVersion,
    /// Its manifest, or its file delivery table, does not parse or asks for more than the limits
    /// allow.
    BadManifest,
    /// The least that it brings is more than this receiver takes.
    TooFast,
    /// Its objects have more bytes, or blocks that take more memory to decode, than the limits
    /// allow.
    TooLarge,
}

/// Why no more of a stream can be received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamBreak {
    /// Its beginning had left the air when it was first heard of.
    Late,
    /// More of a fragment was lost than its repair symbols made good.
    Lost,
    /// As many fragments wait to be handed over as there is room for: the consumer, or this host,
    /// is slower than the sender.
    Behind,
    /// It has more bytes than the limits allow.
    TooLarge,
    /// A fragment was given up: its storage failed, or it was forged again and again.
    Failed,
    /// Its sender broke it off.
    BySender,
}

/// A session that was heard and could be received.
#[derive(Clone, Debug)]
pub struct Offer {
    /// Names the session.
    pub session: SessionKey,
    /// Its head.
    pub head: Arc<SessionHead>,
    /// What it carries.
    pub manifest: Arc<Manifest>,
}

/// Why a file that a table names is not received.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileRefusal {
    /// It is sent with a code that is not ours.
    #[error("its code, FEC Encoding ID {0}, is not known here")]
    Code(u8),
    /// Its transmission information describes no object.
    #[error("its transmission information makes no sense: {0}")]
    Geometry(#[from] OtiError),
    /// The session has already asked for as much as
    /// [`ReceiverLimits`](crate::ReceiverLimits) allow.
    #[error("the session asks for more {0} than are accepted")]
    Limit(&'static str),
    /// Its TOI is one of those that Fontana keeps for other uses.
    #[error("its TOI is kept for other uses")]
    ReservedToi,
}

/// Why an object is not received to its end.
#[derive(Clone, Debug)]
pub enum ObjectFailure {
    /// Its blocks were corrupt too often.
    Corrupt,
    /// A job on it failed, or on the session.
    Job(JobError),
}

/// An output of a sender.
pub(crate) type SenderOutput = Output<SendJob, SenderEvent>;

/// An output of a receiver.
pub(crate) type ReceiverOutput = Output<ReceiveJob, ReceiverEvent>;

/// What a sender reports.
#[derive(Clone, Debug)]
pub enum SenderEvent {
    /// Everything that was to be sent has been sent.
    Finished,
    /// An object's source failed; it is not sent any more.
    Withdrawn {
        /// The object.
        toi: Toi,
        /// Why.
        error: JobError,
    },
}

/// What a receiver reports.
#[derive(Clone, Debug)]
pub enum ReceiverEvent {
    /// A session is on offer; it is received at once if the configuration says so,
    /// or else when the application accepts it.
    Offered(Offer),
    /// A session on the same channels was refused. Told once per session and reason.
    Rejected {
        /// The session.
        session: SessionKey,
        /// Why.
        reason: Rejection,
    },
    /// The expected publisher has signed a newer version than the one that is being
    /// received, and sends it. Told once for each version; reception goes on as before, though
    /// perhaps nobody sends the older version any more.
    Superseded {
        /// The session that carries the newer one.
        session: SessionKey,
        /// Its version.
        version: u64,
    },
    /// A manifest was accepted; reception has begun.
    Accepted {
        /// The session it came from; others that carry the same manifest add to it.
        session: SessionKey,
        /// The manifest.
        manifest: Arc<Manifest>,
        /// Its hash.
        hash: Hash,
        /// What its objects will be worth.
        verified: Verified,
    },
    /// A stream is on offer, as [`ReceiverEvent::Offered`]. Told once.
    StreamOffered {
        /// The session.
        session: SessionKey,
        /// Its index at that moment.
        index: Arc<StreamIndex>,
    },
    /// A stream was accepted; reception has begun.
    StreamAccepted {
        /// The session it came from.
        session: SessionKey,
        /// Its index at that moment.
        index: Arc<StreamIndex>,
        /// Who signs it. Without a ticket: whoever was heard first.
        key: PublicKey,
        /// What its bytes will be worth.
        verified: Verified,
    },
    /// A fragment was handed over.
    FragmentDone {
        /// Its number.
        number: u32,
        /// Its place in the stream.
        range: Range<u64>,
    },
    /// No more of the stream can be received; what was handed over is right.
    StreamBroken {
        /// The first byte that is missing.
        at: u64,
        /// Why.
        reason: StreamBreak,
    },
    /// An earlier life had left something of what was accepted.
    Resumed {
        /// Source symbols that need not be received any more.
        symbols: u64,
    },
    /// The first object of a session was heard of, and is received with all others.
    CarouselFound {
        /// The session.
        session: SessionKey,
    },
    /// A file was found in the file delivery table.
    FileFound {
        /// The object.
        toi: Toi,
        /// Its name, as the sender wrote it.
        content_location: String,
        /// Bytes of the object, as transported.
        transfer_length: u64,
    },
    /// A file of the table, or an object, is not received. The others
    /// are, and in the end there is [`ReceiverEvent::GivenUp`].
    FileRefused {
        /// The object.
        toi: Toi,
        /// Its name, as the sender wrote it.
        content_location: String,
        /// Why.
        reason: FileRefusal,
    },
    /// Enough symbols have arrived for the block.
    BlockSolved {
        /// The block.
        block: BlockId,
    },
    /// The block's bytes are those of the manifest.
    BlockVerified {
        /// The block.
        block: BlockId,
    },
    /// The block's bytes are wrong: a symbol was forged or damaged. It is received again.
    BlockCorrupt {
        /// The block.
        block: BlockId,
        /// How often this has happened to the block.
        times: u32,
    },
    /// Enough has been received of everything; the channels were left.
    ReceptionComplete,
    /// An object is on disk under its final name.
    ObjectDone {
        /// The object.
        toi: Toi,
        /// What it is worth.
        verified: Verified,
    },
    /// An object is given up.
    ObjectFailed {
        /// The object.
        toi: Toi,
        /// Why.
        failure: ObjectFailure,
    },
    /// Everything is on disk and verified as far as it can be.
    Complete,
    /// Every object is done or given up, and at least one is given up; or what was left after all
    /// objects could not be finished.
    GivenUp {
        /// What [`ReceiveJob::Finish`] failed with, if that was it.
        error: Option<JobError>,
    },
    /// The congestion control of the session has joined or left channels.
    Level {
        /// Channels that are joined now.
        channels: u16,
        /// Bytes per second that they bring if nothing is lost, as far as is known.
        rate_bytes_per_second: Option<u64>,
        /// Bytes of UDP payload of wanted sessions that arrived, per second, since the level
        /// changed last.
        received_bytes_per_second: u64,
    },
    /// Nothing of a session has arrived for a while; the channels were joined anew.
    Silence {
        /// True if nothing has ever arrived.
        ever_since_start: bool,
    },
}
