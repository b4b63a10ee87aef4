//! The kind of an error, by which a program can handle it.

use super::{IoError, LayerError, SetupError, TransferError};
use crate::outcome::Outcome;
use fontana_net::ReceiveError;
use fontana_proto::{Category, StreamBreak};
use fontana_store::{Errno, NameError, ScanError, SourceError, StagingError};

/// The kind of an [`Error`](super::Error).
///
/// Errors of one kind are handled alike. There are more kinds than outcomes, and fewer than errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A pattern that selects files is invalid.
    Pattern,
    /// A path to be sent has no last component that can be a name.
    Nameless,
    /// Destinations, groups, sources or ports are invalid.
    Address,
    /// A group could not be joined.
    Membership,
    /// The network interface does not exist, or does not fit.
    Interface,
    /// The interface's MTU is too small.
    Mtu,
    /// A file may not have this name.
    FileName,
    /// The name of a stream is a path.
    StreamName,
    /// Two files have one name.
    SameName,
    /// The files differ from the manifest.
    ManifestDiffers,
    /// The code is unknown to other programs.
    CodeOfOurOwn,
    /// The parameters of the congestion control are invalid.
    Congestion,
    /// The lowest layer is too slow.
    LayerTooSlow,
    /// A layer is too fast.
    LayerTooFast,
    /// All layers together are too fast.
    LayersTooFast,
    /// The number of layers is not the number of channels.
    LayerCount,
    /// Rates of layers were given for WEBRC, which determines its own.
    WavesWithRates,
    /// The number of groups is not the number of channels.
    GroupCount,
    /// Several channels for a kind of session that has one.
    OneChannelOnly,
    /// Several channels without multicast.
    ChannelsWithoutGroups,
    /// Several interfaces without multicast.
    InterfacesWithoutGroup,
    /// More channels than there are groups from the first one on.
    ChannelsBeyondGroups,
    /// The session would leave this network without congestion control.
    UncontrolledNetwork,
    /// There is nothing to send.
    NothingToSend,
    /// The record of a publisher's versions is corrupt.
    Mark,
    /// The publisher's key is missing.
    NoPublisher,
    /// The key to sign with is missing.
    NoSigner,
    /// The key by which receivers trust signed digests is missing.
    UnsignedDigests,
    /// A mirror's certificate is for something else.
    OtherCertificate,
    /// A certificate with a group key.
    SealedCertificate,
    /// A number is outside its range.
    Range,
    /// The session cannot have this transmission schedule.
    Schedule,
    /// A running session takes no further files.
    NoFurtherFiles,
    /// A session cannot both grow and have an end.
    GrowingPush,
    /// Reports cannot be collected, or not sent.
    Reports,
    /// A session cannot repair on demand.
    RepairOnDemand,
    /// The rate of a session cannot follow its receivers.
    RateFollowing,
    /// There are more files than a session can describe.
    TooMuch,
    /// A file to be sent does not exist.
    SourceMissing,
    /// A file to be sent may not be read by this user.
    SourceDenied,
    /// A path to be sent was refused for another reason.
    SourceRefused,
    /// The disk with the files to be sent failed.
    SourceDisk,
    /// The path to be sent is neither a file with a size nor a directory nor a link.
    SourceNotRegular,
    /// A file changed while it was being sent.
    SourceChanged,
    /// The target directory may not be written to.
    TargetRefused,
    /// The target's disk failed.
    TargetDisk,
    /// The target's disk is full.
    DiskFull,
    /// The disk of a file that is written in place is full.
    DeviceFull,
    /// A file of this name exists.
    TargetExists,
    /// A directory has the file's name.
    TargetIsDirectory,
    /// Another object is in the place of a directory.
    TargetBlocked,
    /// Another receiver uses the target.
    TargetBusy,
    /// The device is mounted or in use.
    DeviceInUse,
    /// The path is neither a device nor a file.
    NotADevice,
    /// Two names differ in letter case only, and the file system does not distinguish them.
    NameCaseClash,
    /// The target cannot have a file of this name.
    NameRefused,
    /// Parameters describe no object: a defect of this library, or of the sender.
    Geometry,
    /// The system refuses a socket.
    Network,
    /// The system refused every packet.
    NothingSent,
    /// The hardware address of the next hop is unknown.
    NoNeighbor,
    /// The writer that takes received content failed.
    Consumer,
    /// The reader of the content to send failed.
    Producer,
    /// A device does not return what was written to it.
    ReadBack,
    /// The system starts no thread.
    Thread,
    /// The system refuses another operation.
    System,
    /// Nothing in the session matches the selection.
    NothingSelected,
    /// The received content contradicts itself.
    Content,
    /// A file is sent in a way that this library does not support.
    Unsupported,
    /// Slices of a file are missing.
    MissingSlices,
    /// A stream waited for receivers that did not come.
    ReceiversAbsent,
    /// A pipe or device takes one file, and the session has another number.
    NotOneFile,
    /// The device is too small.
    TooSmall,
    /// The stream began before the receiver joined.
    StreamLate,
    /// More of the stream was lost than its repair symbols can recover.
    StreamLost,
    /// The consumer is slower than the stream.
    StreamBehind,
    /// The stream is longer than the limit.
    StreamTooLarge,
    /// The received stream is not what was announced.
    StreamFailed,
    /// The sender aborted the stream.
    StreamBySender,
    /// A thread of the session panicked.
    Panic,
}

impl ErrorKind {
    /// All kinds, in the order of their declaration.
    pub const ALL: &'static [Self] = &[
        Self::Pattern,
        Self::Nameless,
        Self::Address,
        Self::Membership,
        Self::Interface,
        Self::Mtu,
        Self::FileName,
        Self::StreamName,
        Self::SameName,
        Self::ManifestDiffers,
        Self::CodeOfOurOwn,
        Self::Congestion,
        Self::LayerTooSlow,
        Self::LayerTooFast,
        Self::LayersTooFast,
        Self::LayerCount,
        Self::WavesWithRates,
        Self::GroupCount,
        Self::OneChannelOnly,
        Self::ChannelsWithoutGroups,
        Self::InterfacesWithoutGroup,
        Self::ChannelsBeyondGroups,
        Self::UncontrolledNetwork,
        Self::NothingToSend,
        Self::Mark,
        Self::NoPublisher,
        Self::NoSigner,
        Self::UnsignedDigests,
        Self::OtherCertificate,
        Self::SealedCertificate,
        Self::Range,
        Self::Schedule,
        Self::NoFurtherFiles,
        Self::GrowingPush,
        Self::Reports,
        Self::RepairOnDemand,
        Self::RateFollowing,
        Self::TooMuch,
        Self::SourceMissing,
        Self::SourceDenied,
        Self::SourceRefused,
        Self::SourceDisk,
        Self::SourceNotRegular,
        Self::SourceChanged,
        Self::TargetRefused,
        Self::TargetDisk,
        Self::DiskFull,
        Self::DeviceFull,
        Self::TargetExists,
        Self::TargetIsDirectory,
        Self::TargetBlocked,
        Self::TargetBusy,
        Self::DeviceInUse,
        Self::NotADevice,
        Self::NameCaseClash,
        Self::NameRefused,
        Self::Geometry,
        Self::Network,
        Self::NothingSent,
        Self::NoNeighbor,
        Self::Consumer,
        Self::Producer,
        Self::ReadBack,
        Self::Thread,
        Self::System,
        Self::NothingSelected,
        Self::Content,
        Self::Unsupported,
        Self::MissingSlices,
        Self::ReceiversAbsent,
        Self::NotOneFile,
        Self::TooSmall,
        Self::StreamLate,
        Self::StreamLost,
        Self::StreamBehind,
        Self::StreamTooLarge,
        Self::StreamFailed,
        Self::StreamBySender,
        Self::Panic,
    ];

    /// The outcome of a session that an error of this kind ends.
    pub const fn outcome(self) -> Outcome {
        match self {
            Self::Pattern
            | Self::Nameless
            | Self::Address
            | Self::Membership
            | Self::Interface
            | Self::Mtu
            | Self::SameName
            | Self::CodeOfOurOwn
            | Self::Congestion
            | Self::LayerTooSlow
            | Self::LayerTooFast
            | Self::LayersTooFast
            | Self::LayerCount
            | Self::WavesWithRates
            | Self::GroupCount
            | Self::OneChannelOnly
            | Self::ChannelsWithoutGroups
            | Self::InterfacesWithoutGroup
            | Self::ChannelsBeyondGroups
            | Self::UncontrolledNetwork
            | Self::NothingToSend
            | Self::NoPublisher
            | Self::NoSigner
            | Self::UnsignedDigests
            | Self::OtherCertificate
            | Self::SealedCertificate
            | Self::Range
            | Self::Schedule
            | Self::NoFurtherFiles
            | Self::GrowingPush
            | Self::Reports
            | Self::RepairOnDemand
            | Self::RateFollowing
            | Self::TooMuch
            | Self::NothingSelected
            | Self::NotOneFile => Outcome::Usage,
            Self::FileName
            | Self::StreamName
            | Self::SourceMissing
            | Self::SourceDenied
            | Self::SourceRefused
            | Self::SourceNotRegular
            | Self::TargetRefused
            | Self::TargetExists
            | Self::TargetIsDirectory
            | Self::TargetBlocked
            | Self::TargetBusy
            | Self::DeviceInUse
            | Self::NotADevice
            | Self::NameCaseClash
            | Self::NameRefused
            | Self::Unsupported
            | Self::TooSmall
            | Self::StreamTooLarge => Outcome::Refused,
            Self::SourceDisk
            | Self::TargetDisk
            | Self::DiskFull
            | Self::DeviceFull
            | Self::Network
            | Self::NothingSent
            | Self::NoNeighbor
            | Self::Consumer
            | Self::Producer
            | Self::Thread
            | Self::System => Outcome::Io,
            // A description that fits no object comes from the sender, or from a defect of this
            // library.
            Self::Geometry | Self::ReadBack | Self::Content | Self::StreamFailed => {
                Outcome::VerificationFailed
            }
            Self::Mark => Outcome::Authentication,
            Self::ManifestDiffers | Self::SourceChanged => Outcome::SourceChanged,
            Self::MissingSlices
            | Self::StreamLate
            | Self::StreamLost
            | Self::StreamBehind
            | Self::StreamBySender => Outcome::Incomplete,
            Self::ReceiversAbsent => Outcome::ReceiversIncomplete,
            Self::Panic => Outcome::InternalError,
        }
    }
}

impl SetupError {
    pub(super) fn kind(&self) -> ErrorKind {
        match self {
            Self::Scan(ScanError::Source(error)) => source(error),
            Self::Scan(ScanError::Pattern { .. }) => ErrorKind::Pattern,
            Self::Scan(ScanError::Nameless { .. }) => ErrorKind::Nameless,
            Self::Receive(ReceiveError::Membership(_)) => ErrorKind::Membership,
            Self::Send(_) | Self::Receive(_) => ErrorKind::Address,
            Self::Interface(_) => ErrorKind::Interface,
            Self::Mtu(_) => ErrorKind::Mtu,
            Self::Name { .. } => ErrorKind::FileName,
            Self::StreamName { .. } => ErrorKind::StreamName,
            Self::SameName { .. } => ErrorKind::SameName,
            Self::Differs { .. } => ErrorKind::ManifestDiffers,
            Self::CodeOfOurOwn => ErrorKind::CodeOfOurOwn,
            Self::Layers(LayerError::TooSlow { .. }) => ErrorKind::LayerTooSlow,
            Self::Layers(LayerError::TooFast { .. }) => ErrorKind::LayerTooFast,
            Self::Layers(LayerError::TooFastTogether { .. }) => ErrorKind::LayersTooFast,
            Self::Layers(LayerError::Count { .. }) => ErrorKind::LayerCount,
            Self::Congestion(_) => ErrorKind::Congestion,
            Self::WavesWithRates => ErrorKind::WavesWithRates,
            Self::Groups { .. } => ErrorKind::GroupCount,
            Self::OneChannelOnly(_) => ErrorKind::OneChannelOnly,
            Self::ChannelsWithoutGroups => ErrorKind::ChannelsWithoutGroups,
            Self::InterfacesWithoutGroup { .. } => ErrorKind::InterfacesWithoutGroup,
            Self::ChannelsBeyondGroups { .. } => ErrorKind::ChannelsBeyondGroups,
            Self::UncontrolledNetwork { .. } => ErrorKind::UncontrolledNetwork,
            Self::NothingToSend => ErrorKind::NothingToSend,
            Self::Mark { .. } => ErrorKind::Mark,
            Self::NoPublisher => ErrorKind::NoPublisher,
            Self::NoSigner => ErrorKind::NoSigner,
            Self::UnsignedDigests => ErrorKind::UnsignedDigests,
            Self::OtherCertificate(_) => ErrorKind::OtherCertificate,
            Self::SealedCertificate => ErrorKind::SealedCertificate,
            Self::Range { .. } => ErrorKind::Range,
            Self::Schedule { .. } => ErrorKind::Schedule,
            Self::NoFurtherFiles(_) => ErrorKind::NoFurtherFiles,
            Self::GrowingPush => ErrorKind::GrowingPush,
            Self::Reports { .. } => ErrorKind::Reports,
            Self::RepairOnDemand { .. } => ErrorKind::RepairOnDemand,
            Self::RateFollowing { .. } | Self::RateOutside { .. } => ErrorKind::RateFollowing,
            Self::TooMuch(_) => ErrorKind::TooMuch,
        }
    }
}

impl IoError {
    pub(super) fn kind(&self) -> ErrorKind {
        match self {
            Self::Source(error) => source(error),
            Self::Staging(error) => staging(error),
            Self::Send(_) | Self::Receive(_) => ErrorKind::Network,
            Self::NothingSent { .. } => ErrorKind::NothingSent,
            Self::NoNeighbor(_) => ErrorKind::NoNeighbor,
            Self::Consumer { .. } => ErrorKind::Consumer,
            Self::Producer { .. } => ErrorKind::Producer,
            Self::ReadBack { .. } => ErrorKind::ReadBack,
            Self::Thread(_) => ErrorKind::Thread,
            Self::System { .. } => ErrorKind::System,
        }
    }
}

impl TransferError {
    pub(super) fn kind(&self) -> ErrorKind {
        match self {
            Self::NothingSelected { .. } => ErrorKind::NothingSelected,
            Self::Content { .. } => ErrorKind::Content,
            Self::Unsupported { .. } => ErrorKind::Unsupported,
            Self::MissingSlices { .. } => ErrorKind::MissingSlices,
            Self::ReceiversAbsent { .. } => ErrorKind::ReceiversAbsent,
            Self::NotOneFile { .. } | Self::SecondFile { .. } => ErrorKind::NotOneFile,
            Self::TooSmall { .. } => ErrorKind::TooSmall,
            Self::StreamBroken { reason, .. } => match reason {
                StreamBreak::Late => ErrorKind::StreamLate,
                StreamBreak::Lost => ErrorKind::StreamLost,
                StreamBreak::Behind => ErrorKind::StreamBehind,
                StreamBreak::TooLarge => ErrorKind::StreamTooLarge,
                StreamBreak::Failed => ErrorKind::StreamFailed,
                StreamBreak::BySender => ErrorKind::StreamBySender,
            },
        }
    }
}

fn source(error: &SourceError) -> ErrorKind {
    match error {
        SourceError::System { errno: Errno::NOENT, .. } => ErrorKind::SourceMissing,
        SourceError::System { errno: Errno::ACCESS | Errno::PERM, .. } => ErrorKind::SourceDenied,
        SourceError::System { .. } if error.category() == Category::Refused => {
            ErrorKind::SourceRefused
        }
        SourceError::System { .. } => ErrorKind::SourceDisk,
        SourceError::NotRegular { .. } | SourceError::WrongSize { .. } => {
            ErrorKind::SourceNotRegular
        }
        SourceError::InUse { .. } => ErrorKind::DeviceInUse,
        SourceError::Changed { .. } => ErrorKind::SourceChanged,
        SourceError::Geometry(_) => ErrorKind::Geometry,
    }
}

fn staging(error: &StagingError) -> ErrorKind {
    match error {
        StagingError::System { .. } if error.category() == Category::Refused => {
            ErrorKind::TargetRefused
        }
        StagingError::System { .. } => ErrorKind::TargetDisk,
        StagingError::DiskFull { .. } => ErrorKind::DiskFull,
        StagingError::DeviceFull { .. } => ErrorKind::DeviceFull,
        StagingError::Exists { .. } => ErrorKind::TargetExists,
        StagingError::IsDirectory { .. } => ErrorKind::TargetIsDirectory,
        StagingError::NotADirectory { .. } | StagingError::NotOurs { .. } => {
            ErrorKind::TargetBlocked
        }
        StagingError::Busy { .. } => ErrorKind::TargetBusy,
        StagingError::InUse { .. } => ErrorKind::DeviceInUse,
        StagingError::NotWritable { .. } => ErrorKind::NotADevice,
        StagingError::Name(NameError::CaseClash { .. }) => ErrorKind::NameCaseClash,
        StagingError::Name(_) => ErrorKind::NameRefused,
        StagingError::Committed { .. } | StagingError::Geometry(_) => ErrorKind::Geometry,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    #[test]
    fn all_kinds_are_listed_once_and_in_order() {
        // The kinds are declared in the order of the list, without values.
        for (number, &kind) in ErrorKind::ALL.iter().enumerate() {
            assert_eq!(kind as usize, number, "{kind:?}");
        }
        assert_eq!(ErrorKind::ALL.last(), Some(&ErrorKind::Panic), "the last of all");
    }

    #[test]
    fn an_error_of_the_disk_keeps_what_calls_for_another_answer() {
        let path = || "file".into();
        let system = |errno| SourceError::System { path: path(), doing: "open", errno };
        let staging = |errno| StagingError::System { path: path(), doing: "open", errno };
        let clash = NameError::CaseClash { first: "A".into(), second: "a".into() };
        let cases: [(Error, ErrorKind, Outcome); 7] = [
            (system(Errno::NOENT).into(), ErrorKind::SourceMissing, Outcome::Refused),
            (system(Errno::PERM).into(), ErrorKind::SourceDenied, Outcome::Refused),
            (system(Errno::LOOP).into(), ErrorKind::SourceRefused, Outcome::Refused),
            (system(Errno::IO).into(), ErrorKind::SourceDisk, Outcome::Io),
            (staging(Errno::ROFS).into(), ErrorKind::TargetRefused, Outcome::Refused),
            (staging(Errno::IO).into(), ErrorKind::TargetDisk, Outcome::Io),
            (StagingError::Name(clash).into(), ErrorKind::NameCaseClash, Outcome::Refused),
        ];
        for (error, kind, outcome) in cases {
            assert_eq!((error.kind(), error.outcome()), (kind, outcome), "{error}");
        }
    }
}
