//! What kind an error is: the value by which a program selects its answer.

use super::{IoError, LayerError, SetupError, TransferError};
use crate::outcome::Outcome;
use fontana_net::ReceiveError;
use fontana_proto::{Category, StreamBreak};
use fontana_store::{Errno, NameError, ScanError, SourceError, StagingError};

/// What kind an [`Error`](super::Error) is.
///
/// Errors of one kind call for the same answer. The kinds are more than the outcomes, and fewer
/// than the errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A pattern that selects files means nothing.
    Pattern,
    /// A path to be sent has no last component that could be a name.
    Nameless,
    /// Destinations, groups, sources or ports that make no sense.
    Address,
    /// A group could not be joined.
    Membership,
    /// There is no such network interface, or none that fits.
    Interface,
    /// The interface's packets are too small.
    Mtu,
    /// A name that a file may not have.
    FileName,
    /// A name of a stream that is a path.
    StreamName,
    /// Two files of one name.
    SameName,
    /// The files are not those of the manifest.
    ManifestDiffers,
    /// A code that other programs do not know, for other programs.
    CodeOfOurOwn,
    /// The parameters of the congestion control.
    Congestion,
    /// The lowest layer is too slow.
    LayerTooSlow,
    /// A layer is too fast.
    LayerTooFast,
    /// All layers together are too fast.
    LayersTooFast,
    /// There is not one layer for each channel.
    LayerCount,
    /// Rates of layers for a control that lays out its own.
    WavesWithRates,
    /// There is not one group for each channel.
    GroupCount,
    /// Several channels for a kind of session that has one.
    OneChannelOnly,
    /// Several channels without multicast.
    ChannelsWithoutGroups,
    /// More channels than there are groups from the first one on.
    ChannelsBeyondGroups,
    /// No congestion control beyond this network.
    UncontrolledNetwork,
    /// Nothing to send.
    NothingToSend,
    /// The record of a publisher's versions is not intact.
    Mark,
    /// The publisher's key is missing.
    NoPublisher,
    /// The key to sign with is missing.
    NoSigner,
    /// A number is outside its range.
    Range,
    /// A running session takes no further files.
    NoFurtherFiles,
    /// A session that takes further files, with an end.
    GrowingPush,
    /// More files than a session can describe.
    TooMuch,
    /// A file to be sent is not there.
    SourceMissing,
    /// A file to be sent may not be read by this user.
    SourceDenied,
    /// A path to be sent was refused for another reason.
    SourceRefused,
    /// The disk with the files to be sent failed.
    SourceDisk,
    /// What is to be sent is neither a file nor a directory nor a link.
    SourceNotRegular,
    /// A file changed while it was being sent.
    SourceChanged,
    /// The target directory may not be written to.
    TargetRefused,
    /// The target's disk failed.
    TargetDisk,
    /// The target's disk is full.
    DiskFull,
    /// A file of this name exists.
    TargetExists,
    /// A directory has the file's name.
    TargetIsDirectory,
    /// Something else stands where a directory should be.
    TargetBlocked,
    /// Another receiver uses the target.
    TargetBusy,
    /// The device is mounted or in use.
    DeviceInUse,
    /// Neither a device nor a file.
    NotADevice,
    /// Two names differ in letter case only, and the file system does not tell them apart.
    NameCaseClash,
    /// The target cannot have a file of this name.
    NameRefused,
    /// Numbers that describe no object: a defect of this library, or of the sender.
    Geometry,
    /// The system refuses a socket.
    Network,
    /// The writer that takes what is received failed.
    Consumer,
    /// The reader that makes what is sent failed.
    Producer,
    /// A device does not keep what is written to it.
    ReadBack,
    /// The system has no thread left.
    Thread,
    /// The system refuses something else.
    System,
    /// Nothing of what is sent was asked for.
    NothingSelected,
    /// What was received contradicts itself.
    Content,
    /// A file is sent in a way that is not received here.
    Unsupported,
    /// Slices of a file are missing.
    MissingSlices,
    /// A pipe or device takes one file, and there are more or none.
    NotOneFile,
    /// The device is too small.
    TooSmall,
    /// The stream began before the receiver.
    StreamLate,
    /// More of the stream was lost than its repair symbols make good.
    StreamLost,
    /// The consumer is slower than the stream.
    StreamBehind,
    /// The stream is longer than what is accepted.
    StreamTooLarge,
    /// What arrives of the stream is not what was promised.
    StreamFailed,
    /// The sender broke the stream off.
    StreamBySender,
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
        Self::ChannelsBeyondGroups,
        Self::UncontrolledNetwork,
        Self::NothingToSend,
        Self::Mark,
        Self::NoPublisher,
        Self::NoSigner,
        Self::Range,
        Self::NoFurtherFiles,
        Self::GrowingPush,
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
        Self::Consumer,
        Self::Producer,
        Self::ReadBack,
        Self::Thread,
        Self::System,
        Self::NothingSelected,
        Self::Content,
        Self::Unsupported,
        Self::MissingSlices,
        Self::NotOneFile,
        Self::TooSmall,
        Self::StreamLate,
        Self::StreamLost,
        Self::StreamBehind,
        Self::StreamTooLarge,
        Self::StreamFailed,
        Self::StreamBySender,
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
            | Self::ChannelsBeyondGroups
            | Self::UncontrolledNetwork
            | Self::NothingToSend
            | Self::NoPublisher
            | Self::NoSigner
            | Self::Range
            | Self::NoFurtherFiles
            | Self::GrowingPush
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
            | Self::Network
            | Self::Consumer
            | Self::Producer
            | Self::Thread
            | Self::System => Outcome::Io,
            // A description that fits no object: the sender's, if it is not a defect of ours.
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
            Self::ChannelsBeyondGroups { .. } => ErrorKind::ChannelsBeyondGroups,
            Self::UncontrolledNetwork { .. } => ErrorKind::UncontrolledNetwork,
            Self::NothingToSend => ErrorKind::NothingToSend,
            Self::Mark { .. } => ErrorKind::Mark,
            Self::NoPublisher => ErrorKind::NoPublisher,
            Self::NoSigner => ErrorKind::NoSigner,
            Self::Range { .. } => ErrorKind::Range,
            Self::NoFurtherFiles(_) => ErrorKind::NoFurtherFiles,
            Self::GrowingPush => ErrorKind::GrowingPush,
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
            Self::NotOneFile { .. } => ErrorKind::NotOneFile,
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
        SourceError::NotRegular { .. } => ErrorKind::SourceNotRegular,
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
        // Declared in this order, without values: their numbers are those of the list.
        for (number, &kind) in ErrorKind::ALL.iter().enumerate() {
            assert_eq!(kind as usize, number, "{kind:?}");
        }
        assert_eq!(ErrorKind::ALL.last(), Some(&ErrorKind::StreamBySender), "the last of all");
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
