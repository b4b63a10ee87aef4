//! Why a session could not be set up or went wrong, and what to do about it.

use crate::verdict::Verdict;
use fontana_net::{InterfaceError, MtuError, ReceiveError, SendError, ThreadError};
use fontana_proto::{Category, ControlError, JobError, StreamBreak};
use fontana_store::{EncodeError, ScanError, SourceError, StagingError};
use fontana_wire::{CongestionError, HeadError, PathError};
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

/// An error, with a [verdict](Error::verdict) and a [way out](Error::way_out).
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file to be sent.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// What is to be sent makes no sense, whatever is on the disk.
    #[error(transparent)]
    Scan(ScanError),
    /// The directory that is received into.
    #[error(transparent)]
    Staging(#[from] StagingError),
    /// The sending socket.
    #[error(transparent)]
    Send(#[from] SendError),
    /// The receiving socket.
    #[error(transparent)]
    Receive(#[from] ReceiveError),
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
    /// Two files would have the same name at the receivers.
    #[error("{first:?} and {second:?} have the same file name")]
    SameName {
        /// One of them.
        first: PathBuf,
        /// The other.
        second: PathBuf,
    },
    /// A file is not what the manifest says that is to be gone on with.
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
    FluteCode,
    /// The session's layers, or what controls them.
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
    /// Several channels for something that has only one.
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
    /// Packets that leave this network, at a rate that yields to nobody.
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
    /// Of what is sent, nothing is what was asked for.
    #[error("nothing in {label:?} is what was asked for; it has {names}")]
    NothingSelected {
        /// What is sent, for people.
        label: String,
        /// The first names in it.
        names: String,
    },
    /// What a directory remembers of a publisher's versions cannot be read.
    #[error("{path:?} is not what was written there: which versions are old is not known")]
    Mark {
        /// The file.
        path: PathBuf,
    },
    /// Newer versions were asked for, and nobody whose word counts for what is newer.
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
    /// The content cannot be described.
    #[error("too much for one session: {0}")]
    TooMuch(#[from] ControlError),
    /// A received file's content is not what its table says.
    #[error("{name:?}: {what}")]
    Content {
        /// The file.
        name: String,
        /// What is wrong.
        what: String,
    },
    /// A file that was heard of is sent in a way that this program does not receive.
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
    /// The one who takes what is received has failed.
    #[error("cannot hand over what was received: {error}")]
    Consumer {
        /// What it answered.
        #[source]
        error: std::io::Error,
    },
    /// The one who makes what is sent has failed.
    #[error("cannot read what is to be sent: {error}")]
    Producer {
        /// What it answered.
        #[source]
        error: std::io::Error,
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
    /// What is received for a consumer has to be one file.
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
    /// A device does not keep what is written to it.
    #[error("{path:?} does not have what was written to it")]
    ReadBack {
        /// The device.
        path: PathBuf,
    },
    /// The session's head.
    #[error(transparent)]
    Head(#[from] HeadError),
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
        error: std::io::Error,
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

impl From<ScanError> for Error {
    fn from(error: ScanError) -> Self {
        match error {
            ScanError::Source(error) => Self::Source(error),
            error => Self::Scan(error),
        }
    }
}

impl From<EncodeError> for Error {
    fn from(error: EncodeError) -> Self {
        match error {
            EncodeError::Source(error) => Self::Source(error),
            EncodeError::Block(error) => {
                Self::System { doing: "encode a block", error: std::io::Error::other(error) }
            }
        }
    }
}

impl Error {
    /// The exit code that tells of it.
    pub fn verdict(&self) -> Verdict {
        match self {
            Self::Source(error) => error.category().into(),
            Self::Staging(error) => error.category().into(),
            Self::Name { .. } | Self::Unsupported { .. } => Verdict::Refused,
            Self::TooSmall { .. } => Verdict::Refused,
            Self::Content { .. } | Self::ReadBack { .. } => Verdict::VerificationFailed,
            Self::Differs { .. } => Verdict::SourceChanged,
            Self::MissingSlices { .. } => Verdict::Incomplete,
            Self::Head(_) | Self::Mark { .. } => Verdict::Authentication,
            Self::StreamBroken { reason, .. } => match reason {
                StreamBreak::TooLarge => Verdict::Refused,
                StreamBreak::Failed => Verdict::VerificationFailed,
                StreamBreak::Late
                | StreamBreak::Lost
                | StreamBreak::Behind
                | StreamBreak::BySender => Verdict::Incomplete,
            },
            Self::System { .. }
            | Self::Thread(_)
            | Self::Consumer { .. }
            | Self::Producer { .. } => Verdict::Io,
            Self::Send(SendError::Setup { .. } | SendError::System { .. })
            | Self::Receive(ReceiveError::Setup { .. }) => Verdict::Io,
            Self::Scan(error) => error.category().map_or(Verdict::Usage, Verdict::from),
            Self::Send(_)
            | Self::Receive(_)
            | Self::Interface(_)
            | Self::Mtu(_)
            | Self::SameName { .. }
            | Self::NotOneFile { .. }
            | Self::FluteCode
            | Self::Congestion(_)
            | Self::WavesWithRates
            | Self::Groups { .. }
            | Self::OneChannelOnly(_)
            | Self::ChannelsWithoutGroups
            | Self::ChannelsBeyondGroups { .. }
            | Self::UncontrolledNetwork { .. }
            | Self::NothingToSend
            | Self::NoPublisher
            | Self::NoSigner
            | Self::NothingSelected { .. }
            | Self::Range { .. }
            | Self::TooMuch(_) => Verdict::Usage,
        }
    }

    /// The class of a job's failure.
    fn category(&self) -> Category {
        match self {
            Self::Source(error) => error.category(),
            Self::Staging(error) => error.category(),
            Self::Name { .. } | Self::Unsupported { .. } | Self::TooSmall { .. } => {
                Category::Refused
            }
            Self::Content { .. } | Self::MissingSlices { .. } => Category::Geometry,
            _ => Category::Io,
        }
    }

    /// What an endpoint is told of a job that failed.
    pub(crate) fn of_job(error: &Arc<Self>) -> JobError {
        JobError::new(error.category(), Arc::<Self>::clone(error))
    }

    /// Whether a consumer has closed its end, which is its right.
    pub(crate) fn is_closed_consumer(&self) -> bool {
        matches!(self, Self::Consumer { error } if error.kind() == std::io::ErrorKind::BrokenPipe)
    }

    /// What a person can do about it. Empty where the error itself says so.
    pub fn way_out(&self) -> &str {
        match self {
            Self::Source(error) => error.way_out(),
            Self::Scan(error) => error.way_out(),
            Self::Staging(error) => error.way_out(),
            Self::Send(SendError::Setup { .. } | SendError::System { .. })
            | Self::Receive(ReceiveError::Setup { .. } | ReceiveError::Membership(_)) => {
                "see what this host can do: fontana doctor"
            }
            Self::Name { .. } => "rename the file",
            Self::Unsupported { .. } => "ask the sender to send it in another way",
            Self::SameName { .. } => "rename one of them, or send them in two sessions",
            Self::Differs { .. } => {
                "send what the manifest was made of, or begin anew: with the name of a new manifest"
            }
            Self::StreamBroken { reason, .. } => match reason {
                StreamBreak::Late => {
                    "start receivers before the stream begins (send --wait), or have the sender read \
                     it first (send --spool): then receivers may come at any time"
                }
                StreamBreak::Lost => {
                    "have the sender send more repair symbols (--repair) or fewer packets a second \
                     (--rate), or read the stream first (--spool)"
                }
                StreamBreak::Behind => {
                    "let more of it wait on the disk (--window), or receive it into a directory"
                }
                StreamBreak::TooLarge => "if you trust the sender, accept more: --max-size",
                StreamBreak::Failed => "somebody forges packets, or a machine is broken",
                StreamBreak::BySender => "see what the sender says",
            },
            Self::Thread(_) => {
                "raise the limit on threads (ulimit -u, or pids.max of the container), or on memory"
            }
            Self::TooSmall { .. } => "use a larger device; nothing was written beyond its end",
            Self::ReadBack { .. } => {
                "the device is broken, or somebody else writes to it: use another one"
            }
            Self::NotOneFile { .. } => "receive into a directory",
            Self::Congestion(_) => "change the layers, or the rate",
            Self::WavesWithRates => "leave out --layers, or choose another --congestion-control",
            Self::Groups { .. } => {
                "name one group, and those after it are taken; or change --channels, --layers or --rate"
            }
            Self::OneChannelOnly(_) => "leave out --channels and --layers, and name one group",
            Self::ChannelsWithoutGroups => "send to a multicast group, or over one channel",
            Self::ChannelsBeyondGroups { .. } => "begin at a lower group, or list all of them",
            Self::UncontrolledNetwork { .. } => {
                "let receivers yield to other traffic: --congestion-control webrc; or, if all networks on \
                 the way are yours and have room for the rate, say so: --controlled-network"
            }
            Self::FluteCode => {
                "leave out --flute or --fcast, or send with --fec raptorq, rs or none"
            }
            Self::MissingSlices { .. } => "receive longer, or ask the sender for all slices",
            Self::NothingToSend => "name at least one file",
            Self::Mark { .. } => {
                "if you trust what is being sent, remove the file: then any version is taken once"
            }
            Self::NoPublisher => {
                "have the sender sign (fontana keygen KEYFILE; fontana send --sign KEYFILE) and use the \
                 ticket that it prints, or give the publisher's key: --key"
            }
            Self::NoSigner => "make one, and sign with it: fontana keygen KEYFILE; --sign KEYFILE",
            Self::NothingSelected { .. } => "change the patterns",
            Self::TooMuch(_) => "send fewer files in one session",
            Self::Content { .. } => {
                "the sender's data is inconsistent: ask who runs it, or receive again"
            }
            _ => "",
        }
    }
}
