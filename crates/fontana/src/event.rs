//! The events of a running session.

use crate::error::Error;
use crate::rate::Rate;
use crate::reporting::Crowd;
use crate::seal::RejectedPackets;
use fontana_net::{InterfaceChange, MissingNeighbor, MtuDrop, SendLoss, Ungranted};
use fontana_proto::report::{AwaitedReceivers, ReceiverStatus};
use fontana_proto::{
    DropReason, Offer, ReceiverStats, Rejection, SenderStats, SessionKey, TableWarning, Verified,
};
use fontana_store::OptionalCall;
use fontana_wire::{Hash, Manifest, PublicKey, ReceiverId, StreamIndex, Toi, Tsi};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// An event of a sender.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum SendEvent {
    /// The progress, a few times a second.
    Progress(SendProgress),
    /// A file was given up, because it changed or cannot be read. The other files are still sent.
    Failed(Arc<Error>),
    /// The system refuses something that the session does not need. Emitted once for each kind.
    Ungranted(Ungranted),
    /// The interface is gone, or is back and used again.
    Interface(InterfaceChange),
    /// Packets exceed the interface's MTU, which was lowered. They are lost until it is raised
    /// again.
    MtuDropped(MtuDrop),
    /// The system refuses packets for a reason that may pass. They count as lost. Emitted once for
    /// each reason.
    NotSent(SendLoss),
    /// The kernel drops all packets to a unicast host, because it does not know the hardware
    /// address of the host or its router. Emitted a second after the first packet, once for each
    /// host.
    NoNeighbor(MissingNeighbor),
    /// Another sender on this host uses the number of this session, from the same address to the
    /// same group. Receivers take both for one session. Emitted before the first packet.
    NumberInUse {
        /// The number.
        tsi: Tsi,
    },
    /// A receiver has reported for the first time, or a new state.
    Report(Box<ReceiverStatus>),
    /// The receivers that a stream waits for: at first, and whenever more have reported. It begins
    /// when [all](AwaitedReceivers::is_over) have.
    Awaited(AwaitedReceivers),
    /// The rate has changed, because receivers have reported how much arrives.
    RateChanged {
        /// The rate from now on, of each copy.
        rate: Rate,
    },
    /// A receiver gets less than the lowest rate ([`RateFollowing::least`]), which does not follow
    /// it. Emitted once for each.
    ///
    /// [`RateFollowing::least`]: crate::RateFollowing
    Slow {
        /// The process. Its reports have its name.
        receiver: ReceiverId,
        /// What it gets.
        rate: Rate,
    },
    /// No receiver lacks symbols, and no content is sent until one does; or one does
    /// ([`ReportCollection::rests`](crate::ReportCollection::rests)).
    Resting(bool),
    /// The state of all receivers, once a second while reports are collected, and at the end.
    Crowd(Arc<Crowd>),
}

impl SendEvent {
    /// Whether it says again, and newer, what another one says.
    pub(crate) fn replaces(&self, other: &Self) -> bool {
        matches!(
            (self, other),
            (Self::Progress(_), Self::Progress(_))
                | (Self::Awaited(_), Self::Awaited(_))
                | (Self::RateChanged { .. }, Self::RateChanged { .. })
                | (Self::Crowd(_), Self::Crowd(_))
        )
    }
}

/// The progress of a sender.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct SendProgress {
    /// Time since sending began.
    pub elapsed: Duration,
    /// Counters of the protocol.
    pub stats: SenderStats,
    /// Source symbols of the whole content; one pass sends this many.
    pub source_symbols: u64,
    /// Datagrams counted in `stats` that this host could not send.
    pub lost: u64,
    /// The blocks that are new in this version of a publisher's files were sent, each with as many
    /// symbols as a receiver that loses a quarter most likely needs. Always true without a previous
    /// version.
    pub first_sent: bool,
}

/// The room on a disk for repair symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LittleRoom {
    /// Free bytes beside the files that are received.
    pub free: u64,
    /// Bytes that repair symbols take at most: as many symbols as the files lack now.
    pub wanted: u64,
}

/// A manifest that a receiver accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AcceptedManifest {
    /// Its hash.
    pub hash: Hash,
    /// The version of its content.
    pub version: u64,
}

/// An event of a receiver.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ReceiveEvent {
    /// A session is on offer. [`Receiver::accept`](crate::Receiver::accept) accepts it, unless the
    /// receiver accepts sessions by itself.
    Offered(Offer),
    /// A session on the same group was refused. Reported once for each session and reason.
    Rejected {
        /// The session.
        session: SessionKey,
        /// The reason.
        reason: Rejection,
    },
    /// Reception of a manifest's content has begun.
    Accepted {
        /// The session that announced it first.
        session: SessionKey,
        /// The content.
        manifest: Arc<Manifest>,
        /// Its hash.
        hash: Hash,
        /// How the files are verified.
        verified: Verified,
    },
    /// A stream is on offer. [`Receiver::accept`](crate::Receiver::accept) accepts it, unless the
    /// receiver accepts sessions by itself.
    StreamOffered {
        /// The session.
        session: SessionKey,
        /// Its description.
        index: Arc<StreamIndex>,
    },
    /// Reception of a stream has begun.
    StreamAccepted {
        /// The session that announced it first.
        session: SessionKey,
        /// Its description.
        index: Arc<StreamIndex>,
        /// The key that signs it. Without a ticket, this is the key of the first stream received;
        /// compare it with the key that the sender printed.
        key: PublicKey,
        /// How its bytes are verified.
        verified: Verified,
    },
    /// Only a selected part of the content is received
    /// ([`FontanaReception::only`](crate::FontanaReception::only)).
    Selected(ReceivedPart),
    /// Existing files are being compared with the manifest
    /// ([`FontanaReception::skip_existing`](crate::FontanaReception::skip_existing)).
    Compared {
        /// Bytes that were compared.
        bytes: u64,
        /// Bytes to compare in total.
        of: u64,
    },
    /// A large file that got its name is being hashed for the application's record
    /// ([`ReceiverBuilder::report_files`](crate::ReceiverBuilder::report_files)).
    Hashed {
        /// Bytes that were hashed.
        bytes: u64,
        /// Bytes of the file.
        of: u64,
    },
    /// Symbols of an earlier run or of existing files are not received again.
    Resumed {
        /// Source symbols that are not received again.
        symbols: u64,
        /// Source symbols of the whole content.
        source_symbols: u64,
    },
    /// A mirror has sent a block with wrong bytes. With the feature `web`.
    #[cfg(feature = "web")]
    MirrorWrong {
        /// The mirror.
        mirror: fontana_wire::WebAddress,
        /// Object number.
        toi: Toi,
        /// Number of the block in the object.
        block: u32,
    },
    /// A mirror has failed, or lacks a file. It is asked again. Emitted once for a failure, and not
    /// more often than each ten seconds for a mirror. With the feature `web`.
    #[cfg(feature = "web")]
    MirrorFailed {
        /// The mirror.
        mirror: fontana_wire::WebAddress,
        /// The reason.
        failure: crate::web::failure::MirrorFailure,
        /// The time until it is asked again.
        pause: std::time::Duration,
    },
    /// A mirror is not used any more. With the feature `web`.
    #[cfg(feature = "web")]
    MirrorDropped {
        /// The mirror.
        mirror: fontana_wire::WebAddress,
        /// The reason.
        failure: crate::web::failure::MirrorFailure,
    },
    /// The disk has room for the files, but perhaps not for the repair symbols that are stored
    /// beside them until their blocks are verified. The reception goes on.
    LittleRoom(LittleRoom),
    /// The system refuses something that the content does not need. The reception goes on. Emitted
    /// once for each kind.
    Tolerated {
        /// What it refuses.
        call: OptionalCall,
        /// The target directory.
        path: PathBuf,
        /// Its error.
        error: Arc<std::io::Error>,
    },
    /// The system refuses something that the reception does not need. Emitted once for each kind.
    Ungranted(Ungranted),
    /// An interface on which groups are joined is gone, or is back and they are joined again.
    Interface(InterfaceChange),
    /// The publisher asks for reports, and its clock and this host's differ: they go only to the
    /// collectors that are known ([`Reporting::collectors`](crate::Reporting::collectors)).
    ClocksDiffer {
        /// By how much.
        difference: Duration,
    },
    /// The publisher asks for reports, and the receiver sends them to this address
    /// ([`FontanaReception::reporting`](crate::FontanaReception::reporting)).
    Reporting {
        /// The collector.
        to: SocketAddr,
    },
    /// Everything is received, and the files have their names. The receiver stays for others of its
    /// network, which may ask for it
    /// ([`FontanaReception::sharing`](crate::FontanaReception::sharing)).
    Sharing {
        /// How long it stays after it has last sent something for a request.
        stays: Duration,
        /// The manifest of what was received.
        manifest: Option<AcceptedManifest>,
        /// How the manifest was verified.
        verified: Option<Verified>,
        /// Bytes of the files.
        bytes: u64,
    },
    /// The session is silent, and no other receiver of this network has what is lacking. Emitted
    /// once, until a symbol of use arrives, and once a minute at most.
    SiteLacks {
        /// Blocks that lack symbols; if it is 64, there may be more.
        blocks: u32,
        /// Symbols that these lack.
        symbols: u64,
    },
    /// Nothing is shared with other receivers from here on. The reception goes on.
    SharingFailed {
        /// The reason.
        error: Arc<Error>,
    },
    /// A session of plain FLUTE was heard for three seconds, without a sign of Fontana, by a
    /// receiver that is not to receive a certain session. Emitted once for a session. It can be
    /// received by another receiver ([`ReceiveFormat::Flute`](crate::ReceiveFormat)).
    FluteFound {
        /// The session.
        session: SessionKey,
        /// Files of its last table.
        files: u64,
    },
    /// An FCAST session was found. All of its objects are received.
    CarouselFound {
        /// The session.
        session: SessionKey,
    },
    /// A file was found: in a plain FLUTE session when it is announced, in an FCAST session when
    /// its first slice, or all of it, has arrived.
    FileFound {
        /// The object of the file or of the slice.
        toi: Toi,
        /// Its name as sent: any bytes.
        name: String,
        /// Bytes of the object with plain FLUTE, of the file with FCAST.
        bytes: u64,
    },
    /// The file delivery table of a plain FLUTE session has a defect. Its files are received.
    /// Emitted once for each kind of defect.
    TableWarning(TableWarning),
    /// A block was corrupt: more symbols of it are received, until the wrong ones are found. Either
    /// an attacker forges packets, or a host is broken.
    CorruptBlock {
        /// The object.
        toi: Toi,
        /// The number of the block in the object, from 0.
        block: u32,
        /// How many times this block was corrupt.
        times: u32,
    },
    /// Wrong symbols of a corrupt block were found and dropped.
    SymbolsDropped {
        /// The object.
        toi: Toi,
        /// The number of the block in the object, from 0.
        block: u32,
        /// The number of symbols.
        count: u32,
    },
    /// No packet has arrived for a while. The group was joined again.
    Silence {
        /// Time since the last packet.
        duration: Duration,
        /// True if no packet of a session has ever arrived.
        ever_since_start: bool,
    },
    /// Channels of a session of several channels were joined or left.
    Level {
        /// Channels that are joined now.
        channels: u16,
        /// Bytes of UDP payload that arrived per second since the level changed last.
        received_bytes_per_second: u64,
    },
    /// A channel of the session could not be joined: the session continues without it. Reported
    /// once for each channel.
    ChannelRefused {
        /// The channel.
        channel: u8,
        /// The reason.
        error: Arc<Error>,
    },
    /// The sender of a plain FLUTE session has closed it, and sends nothing more. The reception
    /// ends.
    SessionClosed,
    /// Everything that a plain FLUTE session has announced is received, and no table says that this
    /// is all. The receiver waits for further tables until
    /// [`give_up_after_silence`](crate::ReceiverBuilder::give_up_after_silence) or the
    /// [`timeout`](crate::ReceiverBuilder::timeout). Emitted again after more was announced.
    AllAnnouncedReceived,
    /// Reception is complete: the group was left.
    ReceptionComplete,
    /// An object's files are on disk and verified.
    ObjectDone(ObjectReport),
    /// A file or link got its name, with
    /// [`ReceiverBuilder::report_files`](crate::ReceiverBuilder::report_files).
    FileNamed(NamedFile),
    /// A file of a plain FLUTE session exists, and is not received
    /// ([`FluteReception::skip_existing`](crate::FluteReception::skip_existing)).
    FileKept {
        /// The object of the file.
        toi: Toi,
        /// Its name as sent: any bytes.
        name: String,
        /// Its length and MD5 are what the table says. Otherwise the table gives no MD5, and only
        /// the name is the same.
        compared: bool,
    },
    /// A file of a plain FLUTE session has replaced an older version of it, which this reception
    /// had written.
    FileUpdated {
        /// The object of the newer version.
        toi: Toi,
        /// Its name as sent: any bytes.
        name: String,
    },
    /// A file that a plain FLUTE session had written was deleted: its tables do not name it any
    /// more ([`FluteReception::delete`](crate::FluteReception::delete)).
    FileDeleted {
        /// Its path in the directory.
        name: String,
    },
    /// An object of a session without a manifest (plain FLUTE, FCAST) was dropped, with what was
    /// received of it. It does not count any more.
    ObjectDropped {
        /// The object.
        toi: Toi,
        /// Its files, as far as they are known.
        names: Vec<String>,
        /// The reason.
        reason: DropReason,
    },
    /// An object was given up.
    ObjectFailed {
        /// The object.
        toi: Toi,
        /// Its files.
        names: Vec<String>,
        /// The disk's error; `None` if the disk was not the reason.
        error: Option<Arc<Error>>,
    },
    /// The progress, a few times a second.
    Progress(ReceiveProgress),
}

impl ReceiveEvent {
    /// Whether it says again, and newer, what another one says.
    pub(crate) fn replaces(&self, other: &Self) -> bool {
        matches!((self, other), (Self::Progress(_), Self::Progress(_)))
    }
}

/// A file or link that got its name in the target directory.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NamedFile {
    /// Its path in the directory, in raw bytes.
    pub path: Vec<u8>,
    /// Its length in bytes; 0 for a link.
    pub length: u64,
    /// The BLAKE3 hash of its bytes; `None` for a link, or if it was changed at once.
    pub hash: Option<Hash>,
}

/// A part of a session's content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReceivedPart {
    /// Number of files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Objects that contain bytes of these files.
    pub objects: u64,
}

/// The result of an object that was received.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ObjectReport {
    /// The object.
    pub toi: Toi,
    /// The files that it contains bytes of.
    pub names: Vec<String>,
    /// How they were verified.
    pub verified: Verified,
    /// Bytes, as transported.
    pub bytes: u64,
    /// Packets of the object that were received until its reception was complete, over its source
    /// symbols.
    pub reception_inefficiency: f64,
    /// Share of the session's packets that the network has lost so far; `None` if packets are not
    /// numbered (plain FLUTE and FCAST).
    pub loss: Option<f64>,
    /// Time since the start.
    pub elapsed: Duration,
}

/// The progress of a receiver.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct ReceiveProgress {
    /// Time since the start.
    pub elapsed: Duration,
    /// Counters of the protocol.
    pub stats: ReceiverStats,
    /// Source symbols of all accepted content; 0 before anything is accepted.
    pub source_symbols: u64,
    /// Symbols still missing.
    pub symbols_wanted: u64,
    /// Channels that are joined.
    pub channels: u8,
    /// Largest number of channels that were joined at a time.
    pub most_channels: u8,
    /// Packets that the kernel dropped because the receive buffer was full.
    pub kernel_drops: u64,
    /// Datagrams that were dropped because the workers were behind.
    pub queue_drops: u64,
    /// Packets that were dropped because no member of the group has sent them
    /// ([`FontanaReception::group_key`](crate::FontanaReception::group_key)). They are not in
    /// `stats`.
    pub rejected: RejectedPackets,
}

impl ReceiveProgress {
    /// Packets of the session that were received until its reception was complete, over the source
    /// symbols; `None` before anything was accepted.
    pub fn reception_inefficiency(&self) -> Option<f64> {
        (self.source_symbols > 0)
            .then(|| self.stats.session_packets as f64 / self.source_symbols as f64)
    }

    /// Distinct symbols that were received until reception was complete, over the source symbols:
    /// η_c of the digital fountain paper. Late symbols count as distinct. `None` before anything
    /// was accepted.
    pub fn decoding_inefficiency(&self) -> Option<f64> {
        let distinct = self.stats.fresh + self.stats.late;
        (self.source_symbols > 0).then(|| distinct as f64 / self.source_symbols as f64)
    }

    /// Symbols that were received until reception was complete, over the distinct ones: η_d of the
    /// digital fountain paper. `None` before the first one.
    pub fn distinctness_inefficiency(&self) -> Option<f64> {
        let distinct = self.stats.fresh + self.stats.late;
        let received = distinct + self.stats.duplicates;
        (distinct > 0).then(|| received as f64 / distinct as f64)
    }

    /// Share of the session's packets that the network lost; `None` if they are not numbered.
    pub fn loss(&self) -> Option<f64> {
        (self.stats.expected > 0).then(|| self.stats.lost as f64 / self.stats.expected as f64)
    }
}
