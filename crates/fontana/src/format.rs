//! Formats of sessions: ours, and those of other programs. What only one of them has is in its
//! variant.

use crate::layers::Layering;
use crate::versions::Versions;
use fontana_proto::{Acceptance, ReceiverLimits};
use fontana_wire::{Hash, Manifest, PublicKey, SecretKey};

/// The format of a session that is sent.
#[derive(Clone, Debug)]
#[non_exhaustive]
#[expect(clippy::large_enum_variant, reason = "a session has one, and users write no Box")]
pub enum Format {
    /// Ours: a signed head, a manifest with the hash of every block, numbered packets. The manifest
    /// describes whole trees; a file delivery table is beside it.
    Fontana(FontanaFormat),
    /// Plain FLUTE (RFC 6726): an object for each file and nothing of our own, for other programs.
    Flute,
    /// FCAST (RFC 6968): objects that describe themselves, for other programs.
    Fcast(FcastFormat),
}

impl Default for Format {
    fn default() -> Self {
        Self::Fontana(FontanaFormat::default())
    }
}

impl Format {
    pub(crate) fn fontana(&self) -> Option<&FontanaFormat> {
        match self {
            Self::Fontana(format) => Some(format),
            Self::Flute | Self::Fcast(_) => None,
        }
    }
}

/// What only a session of ours has.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FontanaFormat {
    /// Signs the session head.
    pub signer: Option<SecretKey>,
    /// Version of the content: tells receivers of a publisher which of two is newer.
    pub version: u64,
    /// The manifest of another sender, or of an earlier run of this one, to send symbols of the
    /// same objects: the files must be what it says, and it decides on code, symbol size, blocks
    /// and version.
    pub manifest: Option<Manifest>,
    /// Hash files even if size and time of last modification are those of `manifest`.
    pub rehash: bool,
    /// How the rate is divided among the channels of the session. By default a session of several
    /// channels has layers of doubling rates.
    pub layering: Option<Layering>,
}

impl Default for FontanaFormat {
    /// Version 1, not signed.
    fn default() -> Self {
        Self { signer: None, version: 1, manifest: None, rehash: false, layering: None }
    }
}

/// What only an FCAST session has.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct FcastFormat {
    /// Most bytes of a file in one object; about a source block if not given.
    pub slice_bytes: Option<u64>,
    /// The session takes further files while it runs ([`Sender::add`](crate::Sender::add)), and
    /// receivers wait for them until [`Sender::finish`](crate::Sender::finish). Only for sessions
    /// without an end ([`SendMode::OnDemand`](crate::SendMode)).
    pub growing: bool,
}

/// The format of a session that is received.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ReceiveFormat {
    /// Ours, and streams.
    Fontana(FontanaReception),
    /// Plain FLUTE (RFC 6726). Its files are not verified.
    Flute,
    /// FCAST (RFC 6968). Its files are not verified.
    Fcast,
}

impl Default for ReceiveFormat {
    fn default() -> Self {
        Self::Fontana(FontanaReception::default())
    }
}

/// What a receiver can ask for in a session of ours only.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FontanaReception {
    /// Accept only the manifest of this hash.
    pub manifest: Option<Hash>,
    /// Accept only what this publisher has signed.
    pub publisher: Option<PublicKey>,
    /// Whether to take the first session that meets the expectation, or to ask.
    pub acceptance: Acceptance,
    /// Which versions of the publisher.
    pub versions: Versions,
    /// Do not receive again what the files in the directory hold: found by hashing them block by
    /// block. Files that are the same stay as they are, but for mode and time; of others, only
    /// blocks that differ are received.
    pub skip_existing: bool,
    /// Receive only what matches one of these patterns, in the form of `.gitignore`, relative to
    /// the top of what is sent; none: everything.
    pub only: Vec<String>,
    /// Bytes of a stream that may wait for its consumer on the disk, those being received included.
    pub stream_window: u64,
}

impl Default for FontanaReception {
    /// The first session that comes, and all of it.
    fn default() -> Self {
        Self {
            manifest: None,
            publisher: None,
            acceptance: Acceptance::Automatic,
            versions: Versions::default(),
            skip_existing: false,
            only: Vec::new(),
            stream_window: ReceiverLimits::default().max_stream_window_bytes,
        }
    }
}
