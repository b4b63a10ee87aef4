//! The errors of a session.
//!
//! An [`Error`] belongs to one of four groups: invalid options ([`SetupError`]), a failure of the
//! system or the network ([`IoError`]), content that cannot be received ([`TransferError`]), or a
//! panic ([`PanicError`]).
//! Each error has an [`ErrorKind`], by which a program can handle it, and the [`Outcome`] of a
//! session that ends with it.

mod kind;

pub use kind::ErrorKind;

use crate::outcome::Outcome;
use fontana_net::{
    InterfaceError, MissingNeighbor, MtuError, PanicError, ReceiveError, SendError, ThreadError,
};
use fontana_proto::{Category, ControlError, JobError, StreamBreak};
use fontana_store::{EncodeError, ScanError, SourceError, StagingError};
use fontana_wire::{CongestionError, PathError};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

/// An error of a session.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The options cannot be satisfied.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// A file, a device, the network or the system failed.
    #[error(transparent)]
    Io(#[from] IoError),
    /// The content that is sent or received is unusable.
    #[error(transparent)]
    Transfer(#[from] TransferError),
    /// A thread of the session panicked: a defect of this library, or of a reader or writer that
    /// the application gave it. What was received is saved.
    #[error(transparent)]
    Panic(#[from] PanicError),
}

/// Options that contradict each other, the content, or this host.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// The content to send is invalid, whatever is on the disk.
    #[error(transparent)]
    Scan(ScanError),
    /// The destinations are invalid.
    #[error(transparent)]
    Send(SendError),
    /// The group or source cannot be received from.
    #[error(transparent)]
    Receive(ReceiveError),
    /// The network interface does not exist or does not fit.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// The interface's MTU is too small.
    #[error(transparent)]
    Mtu(#[from] MtuError),
    /// The name of a file to be sent or received is invalid.
    #[error("{name:?}: {error}")]
    Name {
        /// The name.
        name: String,
        /// Why it is invalid.
        error: PathError,
    },
    /// A stream's name has several components.
    #[error("{name:?} cannot be received: a stream's name is no path")]
    StreamName {
        /// The name.
        name: String,
    },
    /// Two files would have the same name at the receivers.
    #[error("{first:?} and {second:?} have the same file name")]
    SameName {
        /// The first file.
        first: PathBuf,
        /// The second file.
        second: PathBuf,
    },
    /// A file differs from the manifest that is to be sent again.
    #[error("{name:?} is not what the manifest says: {what}")]
    Differs {
        /// The file's name at receivers.
        name: String,
        /// The difference.
        what: String,
    },
    /// A plain FLUTE or FCAST session with Tornado or LT.
    #[error(
        "other programs know neither Tornado nor LT, FEC Encoding ID 128 is what each makes of it"
    )]
    CodeOfOurOwn,
    /// The rates of the session's layers are invalid.
    #[error(transparent)]
    Layers(#[from] LayerError),
    /// The parameters of the congestion control are invalid.
    #[error(transparent)]
    Congestion(#[from] CongestionError),
    /// Rates of layers were given for WEBRC, which determines its own.
    #[error("the rates of WEBRC's channels follow from the session's rate")]
    WavesWithRates,
    /// The number of groups is not the number of channels.
    #[error("there are {groups} groups for {channels} channels")]
    Groups {
        /// Groups that were given.
        groups: u8,
        /// Channels of the session.
        channels: u8,
    },
    /// Several channels for a kind of session that has one.
    #[error("{0} has one channel")]
    OneChannelOnly(&'static str),
    /// Several channels without multicast.
    #[error("several channels need a multicast group for each, and this is broadcast or unicast")]
    ChannelsWithoutGroups,
    /// Several interfaces without multicast.
    #[error("{address} is received on one interface: only multicast groups are joined on several")]
    InterfacesWithoutGroup {
        /// The address to listen on.
        address: IpAddr,
    },
    /// Not all channels fit into consecutive groups.
    #[error("{count} channels from {first} on leave the range of groups that it is in")]
    ChannelsBeyondGroups {
        /// The group of channel 0.
        first: IpAddr,
        /// Number of channels.
        count: u8,
    },
    /// Packets without congestion control would leave this network.
    #[error(
        "TTL {hop_limit} sends beyond this network without congestion control, which RFC 8085 \
         (section 4.1) leaves to networks that are under one control"
    )]
    UncontrolledNetwork {
        /// The TTL or hop limit.
        hop_limit: u8,
    },
    /// Nothing to send.
    #[error("no file to send")]
    NothingToSend,
    /// The file with a directory's high-water mark is corrupt.
    #[error("{path:?} is not what was written there: which versions are old is not known")]
    Mark {
        /// The file.
        path: PathBuf,
    },
    /// Versions cannot be followed without the publisher's key.
    #[error("to follow versions needs the publisher's key: any host could send a newer one")]
    NoPublisher,
    /// A directory cannot be published without a key to sign with.
    #[error("to send a directory as it changes needs a key to sign with, which receivers follow")]
    NoSigner,
    /// Symbols cannot be announced by signed digests without the publisher's key.
    #[error("signed digests of symbols need the publisher's key, by which receivers trust them")]
    UnsignedDigests,
    /// A mirror's certificate is for something else.
    #[error("the certificate is for {0}")]
    OtherCertificate(&'static str),
    /// A mirror with a certificate and a group key.
    #[error("a certificate with a group key: two runs of the mirror would seal with one key")]
    SealedCertificate,
    /// A number is outside its range.
    #[error("{what} is {actual}; it must be {allowed}")]
    Range {
        /// Its name.
        what: &'static str,
        /// Its value.
        actual: u64,
        /// The allowed values.
        allowed: &'static str,
    },
    /// The session cannot have this transmission schedule.
    #[error("{schedule} needs {needs}")]
    Schedule {
        /// The schedule.
        schedule: &'static str,
        /// What the session lacks.
        needs: &'static str,
    },
    /// A running session takes no further files.
    #[error("this session takes no further files: {0}")]
    NoFurtherFiles(&'static str),
    /// A session cannot both grow and have an end.
    #[error(
        "a session that takes further files has no end of its own, and this one sends a finite amount"
    )]
    GrowingPush,
    /// Reports cannot be collected, or not sent.
    #[error("reports need {needs}")]
    Reports {
        /// What is missing.
        needs: &'static str,
    },
    /// A session cannot repair on demand.
    #[error("repair on demand needs {needs}")]
    RepairOnDemand {
        /// What is missing.
        needs: &'static str,
    },
    /// The rate of a session cannot follow its receivers.
    #[error("a rate that follows the receivers needs {needs}")]
    RateFollowing {
        /// What is missing.
        needs: &'static str,
    },
    /// A rate of a session whose rate follows its receivers is out of range.
    #[error("{what} in bits per second is {actual}; it must be 8000 to the rate, {most}")]
    RateOutside {
        /// Which one.
        what: &'static str,
        /// The rate.
        actual: u64,
        /// The highest rate.
        most: u64,
    },
    /// The content cannot be described in one session.
    #[error("too much for one session: {0}")]
    TooMuch(#[from] ControlError),
}

/// Invalid rates of layers, in bits per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LayerError {
    /// The lowest layer is too slow.
    #[error(
        "the rate of the lowest layer in bits per second is {rate}; it must be at least {least}"
    )]
    TooSlow {
        /// Its rate.
        rate: u64,
        /// The minimum.
        least: u64,
    },
    /// A layer is faster than the session head can express.
    #[error("the rate of a layer in bits per second is {rate}; it must be at most {most}")]
    TooFast {
        /// Its rate.
        rate: u64,
        /// The maximum.
        most: u64,
    },
    /// All layers together are faster than the session.
    #[error(
        "the rate of all layers in bits per second is {rate}; it must be at most the session's, \
         {most}"
    )]
    TooFastTogether {
        /// The sum of their rates.
        rate: u64,
        /// The session's rate.
        most: u64,
    },
    /// The number of rates is not the number of channels.
    #[error("the number of layers is {layers}; it must be one for each channel, {channels}")]
    Count {
        /// Rates that were given.
        layers: usize,
        /// Channels of the session.
        channels: u8,
    },
}

/// A failure of the disk, the network or the system.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IoError {
    /// A file to be sent cannot be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The target directory or device failed.
    #[error(transparent)]
    Staging(#[from] StagingError),
    /// The sending socket failed.
    #[error(transparent)]
    Send(SendError),
    /// The system refused every packet of a session.
    #[error("no packet left this host, the system refuses to send to {to}: {error}")]
    NothingSent {
        /// The destination.
        to: SocketAddr,
        /// The system's first error.
        #[source]
        error: io::Error,
    },
    /// The kernel dropped every packet of a unicast session.
    #[error(
        "no packet left this host: {} does not answer on {}",
        _0.next_hop,
        _0.interface
    )]
    NoNeighbor(MissingNeighbor),
    /// The receiving socket failed.
    #[error(transparent)]
    Receive(ReceiveError),
    /// The writer that takes received content failed.
    #[error("cannot hand over what was received: {error}")]
    Consumer {
        /// Its error.
        #[source]
        error: io::Error,
    },
    /// The reader of the content to send failed.
    #[error("cannot read what is to be sent: {error}")]
    Producer {
        /// Its error.
        #[source]
        error: io::Error,
    },
    /// A device does not return what was written to it.
    #[error("{path:?} does not have what was written to it")]
    ReadBack {
        /// The device.
        path: PathBuf,
    },
    /// The system starts no thread.
    #[error(transparent)]
    Thread(#[from] ThreadError),
    /// The system refuses an operation without file or socket.
    #[error("cannot {doing}: {error}")]
    System {
        /// The operation.
        doing: &'static str,
        /// The system's error.
        #[source]
        error: io::Error,
    },
}

/// Content that cannot be received as requested.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransferError {
    /// Nothing in the session matches the selection.
    #[error("nothing in {label:?} is what was asked for; it has {names}")]
    NothingSelected {
        /// The content's label.
        label: String,
        /// The first names in it.
        names: String,
    },
    /// A received file contradicts its table.
    #[error("{name:?}: {what}")]
    Content {
        /// The file.
        name: String,
        /// The contradiction.
        what: String,
    },
    /// A file is sent in a way that this library does not receive.
    #[error("{name:?} cannot be received: {what}")]
    Unsupported {
        /// The file.
        name: String,
        /// The unsupported feature.
        what: String,
    },
    /// Slices of a file are missing, or were never sent.
    #[error("{name:?} lacks {missing} of its {count} slices: {which}")]
    MissingSlices {
        /// The file.
        name: String,
        /// How many slices are missing.
        missing: u32,
        /// Number of all slices.
        count: u32,
        /// The first missing slices, by their numbers from 0.
        which: String,
    },
    /// A stream cannot be received to its end.
    #[error(
        "{}: the output has {delivered} bytes, which are right, and ends there{}",
        broken(*reason),
        if missing > delivered { format!("; byte {missing} is missing") } else { String::new() }
    )]
    StreamBroken {
        /// Bytes that were delivered.
        delivered: u64,
        /// The first byte that is missing.
        missing: u64,
        /// The reason.
        reason: StreamBreak,
    },
    /// A stream has waited for receivers, and not begun.
    #[error(
        "the stream waited for {awaited} receiver{}, and {known} {} reported: nothing was sent",
        if *awaited == 1 { "" } else { "s" },
        if *known == 1 { "has" } else { "have" }
    )]
    ReceiversAbsent {
        /// Receivers that it waited for.
        awaited: u32,
        /// Receivers that have reported.
        known: u32,
    },
    /// The content for a pipe or device is not one file.
    #[error("the session has {files} files, and only one can go to a pipe or device")]
    NotOneFile {
        /// Number of files.
        files: usize,
    },
    /// A session with several files, where one was to be received.
    #[error("{second:?} is a second file beside {first:?}, and only one has a name here")]
    SecondFile {
        /// The file that is received.
        first: String,
        /// The other one.
        second: String,
    },
    /// The content is larger than the device.
    #[error("{path:?} has {capacity} bytes, and {length} are to be written")]
    TooSmall {
        /// The device.
        path: PathBuf,
        /// Its size.
        capacity: u64,
        /// The size of the content.
        length: u64,
    },
}

fn broken(reason: StreamBreak) -> &'static str {
    match reason {
        StreamBreak::Late => "the stream had begun before this receiver came",
        StreamBreak::Lost => "more packets were lost than the stream's repair symbols made good",
        StreamBreak::Behind => "the consumer is slower than the stream",
        StreamBreak::TooLarge => "the stream has more bytes than are accepted",
        StreamBreak::Failed => "what arrives of the stream is not what was promised",
        StreamBreak::BySender => "the sender broke the stream off",
    }
}

impl Error {
    /// The kind of the error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Setup(error) => error.kind(),
            Self::Io(error) => error.kind(),
            Self::Transfer(error) => error.kind(),
            Self::Panic(_) => ErrorKind::Panic,
        }
    }

    /// The outcome of a session that ends with this error.
    pub fn outcome(&self) -> Outcome {
        self.kind().outcome()
    }

    /// An error of the system while `doing` something without file or socket.
    pub(crate) fn system(doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::Io(IoError::System { doing, error })
    }

    /// The class of a job's failure.
    fn category(&self) -> Category {
        match self {
            Self::Io(IoError::Source(error)) => error.category(),
            Self::Io(IoError::Staging(error)) => error.category(),
            Self::Setup(SetupError::Name { .. })
            | Self::Transfer(TransferError::Unsupported { .. } | TransferError::TooSmall { .. }) => {
                Category::Refused
            }
            Self::Transfer(TransferError::Content { .. } | TransferError::MissingSlices { .. }) => {
                Category::Geometry
            }
            _ => Category::Io,
        }
    }

    /// The error as the endpoint gets it from a failed job.
    pub(crate) fn of_job(error: &Arc<Self>) -> JobError {
        JobError::new(error.category(), Arc::<Self>::clone(error))
    }

    /// Whether a consumer has closed its end, which is not a failure.
    pub(crate) fn is_closed_consumer(&self) -> bool {
        matches!(self, Self::Io(IoError::Consumer { error })
            if error.kind() == io::ErrorKind::BrokenPipe)
    }
}

impl From<SendError> for Error {
    fn from(error: SendError) -> Self {
        match error {
            SendError::Setup { .. } | SendError::System { .. } => Self::Io(IoError::Send(error)),
            error => Self::Setup(SetupError::Send(error)),
        }
    }
}

impl From<ReceiveError> for Error {
    fn from(error: ReceiveError) -> Self {
        match error {
            ReceiveError::Setup { .. } => Self::Io(IoError::Receive(error)),
            error => Self::Setup(SetupError::Receive(error)),
        }
    }
}

impl From<ScanError> for Error {
    fn from(error: ScanError) -> Self {
        match error {
            ScanError::Source(error) => error.into(),
            error => Self::Setup(SetupError::Scan(error)),
        }
    }
}

impl From<EncodeError> for Error {
    fn from(error: EncodeError) -> Self {
        match error {
            EncodeError::Source(error) => error.into(),
            EncodeError::Block(error) => Self::system("encode a block")(io::Error::other(error)),
        }
    }
}

impl From<SourceError> for Error {
    fn from(error: SourceError) -> Self {
        Self::Io(error.into())
    }
}

impl From<StagingError> for Error {
    fn from(error: StagingError) -> Self {
        Self::Io(error.into())
    }
}

impl From<ThreadError> for Error {
    fn from(error: ThreadError) -> Self {
        Self::Io(error.into())
    }
}

impl From<InterfaceError> for Error {
    fn from(error: InterfaceError) -> Self {
        Self::Setup(error.into())
    }
}

impl From<MtuError> for Error {
    fn from(error: MtuError) -> Self {
        Self::Setup(error.into())
    }
}

impl From<CongestionError> for Error {
    fn from(error: CongestionError) -> Self {
        Self::Setup(error.into())
    }
}

impl From<LayerError> for Error {
    fn from(error: LayerError) -> Self {
        Self::Setup(error.into())
    }
}

impl From<ControlError> for Error {
    fn from(error: ControlError) -> Self {
        Self::Setup(error.into())
    }
}
