//! Why a session could not be set up, or failed.
//!
//! An [`Error`] is one of three groups: what was asked for is not possible ([`SetupError`]), the
//! system or the network failed ([`IoError`]), or what arrived cannot be received
//! ([`TransferError`]). Each error has an [`ErrorKind`], by which a program selects its answer, and
//! the [`Outcome`] that a session with this error has.

mod kind;

pub use kind::ErrorKind;

use crate::outcome::Outcome;
use fontana_net::{InterfaceError, MtuError, ReceiveError, SendError, ThreadError};
use fontana_proto::{Category, ControlError, JobError, StreamBreak};
use fontana_store::{EncodeError, ScanError, SourceError, StagingError};
use fontana_wire::{CongestionError, PathError};
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

/// An error of a session.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// What was asked for is not possible.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// A file, a device, the network or the system failed.
    #[error(transparent)]
    Io(#[from] IoError),
    /// What is sent, or arrived, cannot be received.
    #[error(transparent)]
    Transfer(#[from] TransferError),
}

/// The options contradict each other, or the content, or this host.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// What is to be sent makes no sense, whatever is on the disk.
    #[error(transparent)]
    Scan(ScanError),
    /// The destinations make no sense.
    #[error(transparent)]
    Send(SendError),
    /// A group or source that cannot be received from.
    #[error(transparent)]
    Receive(ReceiveError),
    /// The network interface.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// The interface's packets are too small.
    #[error(transparent)]
    Mtu(#[from] MtuError),
    /// The name of a file to be sent or received.
    #[error("{name:?}: {error}")]
    Name {
        /// The name.
        name: String,
        /// What is wrong with it.
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
        /// One of them.
        first: PathBuf,
        /// The other.
        second: PathBuf,
    },
    /// A file differs from the manifest that is to be sent again.
    #[error("{name:?} is not what the manifest says: {what}")]
    Differs {
        /// The file, as receivers see it.
        name: String,
        /// What is different.
        what: String,
    },
    /// A plain FLUTE or FCAST session with Tornado or LT.
    #[error(
        "other programs know neither Tornado nor LT, FEC Encoding ID 128 is what each makes of it"
    )]
    CodeOfOurOwn,
    /// The rates of the session's layers.
    #[error(transparent)]
    Layers(#[from] LayerError),
    /// The parameters of the congestion control.
    #[error(transparent)]
    Congestion(#[from] CongestionError),
    /// WEBRC lays out its own channels.
    #[error("the rates of WEBRC's channels follow from the session's rate")]
    WavesWithRates,
    /// Groups for another number of channels than there are.
    #[error("there are {groups} groups for {channels} channels")]
    Groups {
        /// Groups that were named.
        groups: u8,
        /// Channels of the session.
        channels: u8,
    },
    /// Several channels for a kind of session that has only one.
    #[error("{0} has one channel")]
    OneChannelOnly(&'static str),
    /// Several channels where there is no multicast.
    #[error("several channels need a multicast group for each, and this is broadcast or unicast")]
    ChannelsWithoutGroups,
    /// Not all channels can be on consecutive groups from this one on.
    #[error("{count} channels from {first} on leave the range of groups that it is in")]
    ChannelsBeyondGroups {
        /// The group of channel 0.
        first: IpAddr,
        /// Number of channels.
        count: u8,
    },
    /// Packets without congestion control that leave this network.
    #[error(
        "TTL {hop_limit} sends beyond this network without congestion control, which RFC 8085 \
         (section 4.1) leaves to networks that are under one control"
    )]
    UncontrolledNetwork {
        /// The TTL or hop limit that was asked for.
        hop_limit: u8,
    },
    /// Nothing to send.
    #[error("no file to send")]
    NothingToSend,
    /// The file with the newest version of a publisher that a directory holds is not intact.
    #[error("{path:?} is not what was written there: which versions are old is not known")]
    Mark {
        /// The file.
        path: PathBuf,
    },
    /// Newer versions were asked for, without a key that says which versions are genuine.
    #[error("to follow versions needs the publisher's key: anybody could send a newer one")]
    NoPublisher,
    /// A directory is to be followed, and receivers would have no way to tell versions.
    #[error("to send a directory as it changes needs a key: receivers follow whoever signs")]
    NoSigner,
    /// A number is outside its range.
    #[error("{what} is {actual}; it must be {allowed}")]
    Range {
        /// What it is.
        what: &'static str,
        /// Its value.
        actual: u64,
        /// What it may be.
        allowed: &'static str,
    },
    /// A running session takes no further files.
    #[error("this session takes no further files: {0}")]
    NoFurtherFiles(&'static str),
    /// A session that grows and has an end.
    #[error(
        "a session that takes further files has no end of its own, and this one sends a finite amount"
    )]
    GrowingPush,
    /// The content cannot be described in one session.
    #[error("too much for one session: {0}")]
    TooMuch(#[from] ControlError),
}

/// Rates of layers that a session cannot have. Rates are in bits per second.
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
        /// The lowest that a layer may have.
        least: u64,
    },
    /// A layer is faster than the session head can say.
    #[error("the rate of a layer in bits per second is {rate}; it must be at most {most}")]
    TooFast {
        /// Its rate.
        rate: u64,
        /// The highest that a layer may have.
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
    /// Other than one rate for each channel.
    #[error("the number of layers is {layers}; it must be one for each channel, {channels}")]
    Count {
        /// Rates that were given.
        layers: usize,
        /// Channels of the session.
        channels: u8,
    },
}

/// The disk, the network or the system failed or refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IoError {
    /// A file to be sent.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The directory or device that is received into.
    #[error(transparent)]
    Staging(#[from] StagingError),
    /// The sending socket.
    #[error(transparent)]
    Send(SendError),
    /// The receiving socket.
    #[error(transparent)]
    Receive(ReceiveError),
    /// The writer that takes what is received failed.
    #[error("cannot hand over what was received: {error}")]
    Consumer {
        /// What it answered.
        #[source]
        error: io::Error,
    },
    /// The reader that makes what is sent failed.
    #[error("cannot read what is to be sent: {error}")]
    Producer {
        /// What it answered.
        #[source]
        error: io::Error,
    },
    /// A device does not keep what is written to it.
    #[error("{path:?} does not have what was written to it")]
    ReadBack {
        /// The device.
        path: PathBuf,
    },
    /// The system has no thread left.
    #[error(transparent)]
    Thread(#[from] ThreadError),
    /// The system refuses something that needs no file and no socket.
    #[error("cannot {doing}: {error}")]
    System {
        /// What was tried.
        doing: &'static str,
        /// The system's answer.
        #[source]
        error: io::Error,
    },
}

/// What is sent cannot be received, or not as it was asked for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransferError {
    /// Of what is sent, nothing is what was asked for.
    #[error("nothing in {label:?} is what was asked for; it has {names}")]
    NothingSelected {
        /// What is sent, for people.
        label: String,
        /// The first names in it.
        names: String,
    },
    /// A received file's content is not what its table says.
    #[error("{name:?}: {what}")]
    Content {
        /// The file.
        name: String,
        /// What is wrong.
        what: String,
    },
    /// A file is sent in a way that this library does not receive.
    #[error("{name:?} cannot be received: {what}")]
    Unsupported {
        /// The file.
        name: String,
        /// What is the matter.
        what: String,
    },
    /// Only a part of a file has come, or is sent at all.
    #[error("{name:?} lacks {missing} of its {count} slices: {which}")]
    MissingSlices {
        /// The file.
        name: String,
        /// How many slices are missing.
        missing: u32,
        /// How many there are.
        count: u32,
        /// The first of them, by their numbers from 0.
        which: String,
    },
    /// A stream cannot be received to its end.
    #[error(
        "{}: the output has {delivered} bytes, which are right, and ends there{}",
        broken(*reason),
        if missing > delivered { format!("; byte {missing} is missing") } else { String::new() }
    )]
    StreamBroken {
        /// Bytes that were handed over.
        delivered: u64,
        /// The first byte that is missing.
        missing: u64,
        /// Why.
        reason: StreamBreak,
    },
    /// What is received for a pipe or device has to be one file.
    #[error("the session has {files} files, and only one can go to a pipe or device")]
    NotOneFile {
        /// How many it has.
        files: usize,
    },
    /// What is received does not fit where it should go.
    #[error("{path:?} has {capacity} bytes, and {length} are to be written")]
    TooSmall {
        /// The device.
        path: PathBuf,
        /// What it has.
        capacity: u64,
        /// What is needed.
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
    /// What kind of error it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Setup(error) => error.kind(),
            Self::Io(error) => error.kind(),
            Self::Transfer(error) => error.kind(),
        }
    }

    /// The outcome of a session that this error ends.
    pub fn outcome(&self) -> Outcome {
        self.kind().outcome()
    }

    /// An error of the system while `doing` something that needs no file and no socket.
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

    /// What an endpoint is told of a job that failed.
    pub(crate) fn of_job(error: &Arc<Self>) -> JobError {
        JobError::new(error.category(), Arc::<Self>::clone(error))
    }

    /// Whether a consumer has closed its end, which is its right.
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
