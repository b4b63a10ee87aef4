//! Reports of endpoints to the application, by side; and their outputs.

use crate::endpoint::{BlockId, Output, SessionKey};
use crate::job::{JobError, ReceiveJob, SendJob};
use crate::report::{AwaitedReceivers, ReceiverStatus, SlowReceiver};
use fontana_fec::OtiError;
use fontana_wire::{
    FdtError, Hash, InvalidEntry, Manifest, PublicKey, SessionHead, StreamIndex, Toi,
};
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// How far a receiver's content is verified. Ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verified {
    /// Only lengths and checksums agree: plain FLUTE and FCAST.
    None,
    /// Every byte matches a manifest whose hash was known, or accepted by the user.
    Digest,
    /// Every byte matches a manifest that the expected publisher has signed.
    Signed,
}

/// Why a session on the joined channels is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rejection {
    /// Its TSI is not the ticket's.
    OtherSession,
    /// Its manifest is not the ticket's.
    OtherManifest,
    /// The head is not signed with the expected publisher's key.
    WrongKey,
    /// The head's expiry has passed by this host's clock.
    Expired {
        /// The expiry, in unix seconds.
        unix_seconds: u64,
    },
    /// It has this version, which is not above [`Expectation::newer_than`](crate::Expectation).
    OldVersion {
        /// The version.
        version: u64,
        /// The one that it has to exceed.
        newer_than: u64,
    },
    /// Its manifest, or its file delivery table, cannot be parsed, or exceeds the limits.
    BadManifest,
    /// Its lowest rate exceeds this receiver's limit.
    TooFast,
    /// Its objects have more bytes, or blocks that take more memory to decode, than the limits
    /// allow.
    TooLarge,
    /// Its head has this format, which is newer than those that are known.
    NewerFormat(u8),
    /// Its head has a record of this type, which is not known and which receivers must know.
    UnknownRecord(u8),
}

/// Why the reception of a stream ends early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamBreak {
    /// Fragments were no longer sent when the receiver found it, or in part: one lacks more symbols
    /// than packets were lost.
    Late,
    /// More symbols of a fragment were lost than its repair symbols can replace.
    Lost,
    /// All slots hold fragments that wait for delivery: the consumer, or this host, is slower than
    /// the sender.
    Behind,
    /// It has more bytes than the limits allow.
    TooLarge,
    /// A fragment was given up: its storage failed, it was corrupt repeatedly, or it is longer than
    /// the first index allows.
    Failed,
    /// The sender reported that the stream is incomplete.
    BySender,
}

/// A session that was found and can be received.
#[derive(Clone, Debug)]
pub struct Offer {
    /// The session.
    pub session: SessionKey,
    /// Its head.
    pub head: Arc<SessionHead>,
    /// Its content.
    pub manifest: Arc<Manifest>,
}

/// Why a file of a file delivery table is not received.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileRefusal {
    /// Its code is not supported.
    #[error("its code, FEC Encoding ID {0}, is not known here")]
    Code(u8),
    /// Its transmission information is invalid.
    #[error("its transmission information makes no sense: {0}")]
    Geometry(#[from] OtiError),
    /// The session has already used as much as [`ReceiverLimits`](crate::ReceiverLimits) allow.
    #[error("the session asks for more {0} than are accepted")]
    Limit(&'static str),
    /// Its TOI is reserved by Fontana.
    #[error("its TOI is kept for other uses")]
    ReservedToi,
    /// Files of this name follow each other too fast.
    #[error("more than one new version of it is announced in a second")]
    TooManyVersions,
}

/// How much was received of the file delivery tables of plain FLUTE sessions. In the order of what
/// explains best why no content was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum TableStatus {
    /// No packet of a table.
    #[default]
    None,
    /// Packets of TOI 0 without EXT_FDT.
    WithoutFdtExtension,
    /// Packets of tables without transmission information (EXT_FTI), or with information that
    /// describes no table.
    WithoutGeometry,
    /// Packets of tables with a code that is not supported, by its FEC Encoding ID.
    UnknownCode(u8),
    /// A session of ROUTE (ATSC A/331), by the Source Packet Indicator that FLUTE does not use. Its
    /// codepoints are not FEC Encoding IDs, and its tables need not have EXT_FDT.
    Route,
    /// A part of a table.
    Incomplete {
        /// Symbols that were received.
        received: u64,
        /// Source symbols of the table.
        source_symbols: u64,
    },
    /// A table.
    Complete,
    /// A table without files.
    WithoutFiles,
    /// A table whose files have no transmission information, and no packet of them has EXT_FTI.
    WithoutGeometryOfFiles,
}

/// A defect of a file delivery table that does not keep its files from being received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TableWarning {
    /// The table was valid until this time, which has passed.
    Expired {
        /// The time, in unix seconds.
        unix_seconds: u64,
    },
    /// The MD5 of a file is not an MD5 in base64. The file is not compared with it.
    InvalidMd5 {
        /// Name of the file, as the sender wrote it.
        content_location: String,
    },
    /// The table cannot be read. Reported once for a session.
    Unreadable(FdtError),
    /// An entry of the table describes no file. The others are received. A few are reported.
    InvalidEntry(InvalidEntry),
    /// The sender was restarted: tables contradict earlier ones, or their numbers begin again.
    /// Reported at most once a minute.
    Restarted,
    /// The session has a head: it is one of Fontana, whose files can be verified. Reported once.
    OfFontana,
}

/// Why an object is given up.
#[derive(Clone, Debug)]
pub enum ObjectFailure {
    /// A block has another hash than its manifest says, although its symbols agree with each other:
    /// the manifest is not that of the content.
    Corrupt,
    /// A job on the object, or on the session, failed.
    Job(JobError),
    /// Its bytes are not what a session without a manifest says of them, and were the same in two
    /// collections.
    Mismatched(JobError),
}

/// Why an object of a session without a manifest is dropped.
#[derive(Clone, Debug, thiserror::Error)]
pub enum DropReason {
    /// Its bytes are not what the session says of them. It is collected again.
    #[error("{0}; it is received again")]
    Mismatched(JobError),
    /// The sender was restarted: its packets may be of another file. It is collected again.
    #[error("the sender was restarted; it is received again")]
    Restarted,
    /// The sender was restarted, and sends another file with its TOI.
    #[error("the sender was restarted, and sends another file in its place")]
    Redefined,
    /// Its packets say that it is compressed, and the table does not.
    #[error("its packets say that it is compressed; it is received again")]
    Compressed,
    /// Newer versions of the file take its place.
    #[error("a newer version of it is received")]
    Superseded,
    /// The sender was restarted, and its tables do not name it any more.
    #[error("the sender was restarted, and does not list it any more")]
    Unlisted,
}

/// An output of a sender.
pub(crate) type SenderOutput = Output<SendJob, SenderEvent>;

/// An output of a receiver.
pub(crate) type ReceiverOutput = Output<ReceiveJob, ReceiverEvent>;

/// A report of a sender.
#[derive(Clone, Debug)]
pub enum SenderEvent {
    /// All content has been sent.
    Finished,
    /// A source failed; the object, or a block of it, is no longer sent.
    Withdrawn {
        /// The object.
        toi: Toi,
        /// The error.
        error: JobError,
    },
    /// A receiver has reported a state that is new or has changed.
    Report(Box<ReceiverStatus>),
    /// A receiver gets less than the lowest rate.
    Slow(SlowReceiver),
    /// The rate that follows the receivers has changed, in bytes per second.
    RateChanged(u64),
    /// Of a stream: other receivers are there of those that it waits for.
    Awaited(AwaitedReceivers),
    /// No receiver lacks symbols, and no content is sent; or one needs it again.
    Resting(bool),
    /// All expected receivers are complete, or it is the deadline: the session is over.
    Over,
}

/// A report of a receiver.
#[derive(Clone, Debug)]
pub enum ReceiverEvent {
    /// A session can be received. Its reception starts at once if the configuration says so,
    /// otherwise when the application accepts it.
    Offered(Offer),
    /// A session on the same channels was rejected. Reported once per session and reason.
    Rejected {
        /// The session.
        session: SessionKey,
        /// The reason.
        reason: Rejection,
    },
    /// The expected publisher has signed a newer version than the one being received, and symbols
    /// of use have ceased: no sender sends the older version any more. Never reported of a version
    /// that is received and being committed.
    Superseded {
        /// The session that carries the newer version.
        session: SessionKey,
        /// Its version.
        version: u64,
    },
    /// A manifest was accepted; reception has begun.
    Accepted {
        /// The session that the manifest came from; others with the same manifest contribute
        /// symbols.
        session: SessionKey,
        /// The manifest.
        manifest: Arc<Manifest>,
        /// Its hash.
        hash: Hash,
        /// How far its objects will be verified.
        verified: Verified,
    },
    /// A stream can be received, as with [`ReceiverEvent::Offered`]. Reported once.
    StreamOffered {
        /// The session.
        session: SessionKey,
        /// Its index at that time.
        index: Arc<StreamIndex>,
    },
    /// A stream was accepted; reception has begun.
    StreamAccepted {
        /// The session that the index came from.
        session: SessionKey,
        /// Its index at that time.
        index: Arc<StreamIndex>,
        /// The signer's key. Without a ticket: that of the first stream found.
        key: PublicKey,
        /// How far its bytes will be verified.
        verified: Verified,
    },
    /// It answers the roll calls of a sender, for the first time.
    Reporting {
        /// The sender's address, which the publisher has signed.
        to: SocketAddr,
    },
    /// The publisher's roll calls are not obeyed, but those for collectors that are known: this
    /// host's clock, or the publisher's, is wrong.
    ClocksDiffer {
        /// The difference.
        difference: Duration,
    },
    /// The session is silent, and no other receiver of the site has what is lacking. Reported once,
    /// until a symbol of use arrives, and once a minute at most.
    SiteLacks {
        /// Blocks that lack symbols; if it is 64, there may be more.
        blocks: u32,
        /// Symbols that these lack.
        symbols: u64,
    },
    /// A fragment was delivered.
    FragmentDone {
        /// Its number.
        number: u32,
        /// Its range in the stream.
        range: Range<u64>,
    },
    /// The reception of the stream ends early; the delivered bytes are correct.
    StreamBroken {
        /// The first byte that is missing.
        at: u64,
        /// The reason.
        reason: StreamBreak,
    },
    /// An earlier run has saved parts of the accepted content.
    Resumed {
        /// Source symbols that need not be received again.
        symbols: u64,
    },
    /// The first object of an FCAST session was found, and is received with all others.
    CarouselFound {
        /// The session.
        session: SessionKey,
    },
    /// A session of plain FLUTE was heard for some time, by a receiver of Fontana's sessions that
    /// expects none in particular. Reported once for a session. To receive it takes a receiver of
    /// [`MetadataMode::Flute`](crate::MetadataMode).
    FluteFound {
        /// The session.
        session: SessionKey,
        /// Files of the last table.
        files: u64,
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
    /// A file delivery table has a defect; its files are received. Each kind is reported once for
    /// the accepted session.
    TableWarning(TableWarning),
    /// A file of the table, or an object, is not received. The others are, and
    /// [`ReceiverEvent::GivenUp`] follows at the end.
    FileRefused {
        /// The object.
        toi: Toi,
        /// Its name, as the sender wrote it.
        content_location: String,
        /// The reason.
        reason: FileRefusal,
    },
    /// Enough symbols have arrived for the block.
    BlockSolved {
        /// The block.
        block: BlockId,
    },
    /// The block's bytes match the manifest.
    BlockVerified {
        /// The block.
        block: BlockId,
    },
    /// The block's bytes are wrong: a symbol was forged or damaged. More symbols of the block are
    /// received, until the wrong ones are found.
    BlockCorrupt {
        /// The block.
        block: BlockId,
        /// The number of times for this block.
        times: u32,
    },
    /// Wrong symbols of a corrupt block were found and dropped.
    SymbolsDropped {
        /// The block.
        block: BlockId,
        /// Their number.
        count: u32,
    },
    /// Enough symbols of everything that was announced have been received, and the session does not
    /// say whether it will announce more. Reported again after more was announced.
    AllAnnouncedReceived,
    /// The sender of a plain FLUTE session has closed it (RFC 5651, section 5.1, flag A), and no
    /// other packet of it has arrived for some time.
    SessionClosed {
        /// Enough symbols of everything that was announced have been received: the reception
        /// completes. Otherwise it continues, and the driver may end it.
        is_complete: bool,
    },
    /// Enough symbols of every block have been received. The channels were left, or are left when
    /// the blocks are verified
    /// ([`ReceiverConfig::stays_until_verified`](crate::ReceiverConfig::stays_until_verified)).
    ReceptionComplete,
    /// An object is on disk under its final name.
    ObjectDone {
        /// The object.
        toi: Toi,
        /// How far it is verified.
        verified: Verified,
    },
    /// An object of a session without a manifest was dropped, with what was received of it. It does
    /// not count any more.
    ObjectDropped {
        /// The object.
        toi: Toi,
        /// The reason.
        reason: DropReason,
    },
    /// An object was given up.
    ObjectFailed {
        /// The object.
        toi: Toi,
        /// The reason.
        failure: ObjectFailure,
    },
    /// Everything is on disk, and verified as far as possible.
    Complete,
    /// Every object is done or given up, and at least one is given up; or [`ReceiveJob::Finish`]
    /// failed.
    GivenUp {
        /// The error of [`ReceiveJob::Finish`], if it failed.
        error: Option<JobError>,
    },
    /// The congestion control of the session has joined or left channels.
    Level {
        /// The number of joined channels.
        channels: u16,
        /// Their rate in bytes per second without losses, if known.
        rate_bytes_per_second: Option<u64>,
        /// Received bytes of UDP payload of accepted sessions, per second, since the last change of
        /// the level.
        received_bytes_per_second: u64,
    },
    /// No packet of a session has arrived for some time; the channels were joined again.
    Silence {
        /// True if no packet has ever arrived.
        ever_since_start: bool,
    },
}
