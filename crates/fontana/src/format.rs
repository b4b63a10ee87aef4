//! Formats of sessions: Fontana's, FLUTE and FCAST. Options that only one format has are in its
//! variant.

use crate::certificate::Certificate;
use crate::layers::Layering;
use crate::reporting::{ReportCollection, Reporting};
use crate::seal::{ContentKeys, GroupKey, GroupSeal};
use crate::sharing::Sharing;
use crate::versions::Versions;
use fontana_proto::{Acceptance, ReceiverLimits};
use fontana_wire::{
    ContentEncoding, FluteVersion, ForeignFormat, Hash, Manifest, PublicKey, SecretKey, Ticket,
};
use std::ffi::OsString;
use std::time::Duration;

/// The format of a session that is sent.
#[derive(Clone, Debug)]
#[non_exhaustive]
#[expect(clippy::large_enum_variant, reason = "a session has one, and users write no Box")]
pub enum Format {
    /// Fontana's format: a signed head, a manifest with the hash of every block, numbered packets.
    /// The manifest describes whole trees. The session also has a file delivery table.
    Fontana(FontanaFormat),
    /// Plain FLUTE, for other programs: an object for each file, without extensions.
    Flute(FluteFormat),
    /// FCAST (RFC 6968): objects that describe themselves, for other programs.
    Fcast(FcastFormat),
}

impl Default for Format {
    fn default() -> Self {
        Self::Fontana(FontanaFormat::default())
    }
}

impl Format {
    /// What a ticket says of it.
    pub(crate) fn foreign(&self) -> Option<ForeignFormat> {
        match self {
            Self::Fontana(_) => None,
            Self::Flute(_) => Some(ForeignFormat::Flute),
            Self::Fcast(_) => Some(ForeignFormat::Fcast),
        }
    }

    pub(crate) fn fontana(&self) -> Option<&FontanaFormat> {
        match self {
            Self::Fontana(format) => Some(format),
            Self::Flute(_) | Self::Fcast(_) => None,
        }
    }
}

/// The options of Fontana's format.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FontanaFormat {
    /// Signs the session head.
    pub signer: Option<SecretKey>,
    /// Time after which a signed head expires, at least ten seconds. The sender renews it while it
    /// runs. Receivers that know the publisher's key and no manifest refuse an expired head: it may
    /// be an old one that another host sends again. `None`: never.
    pub expires_after: Option<Duration>,
    /// Version of the content. Receivers compare the versions of one publisher.
    pub version: u64,
    /// The manifest of another sender or of an earlier run, whose objects are sent again. The files
    /// must match it. It determines code, symbol size, blocks and version.
    pub manifest: Option<Manifest>,
    /// How the rate is divided among the channels of the session. `None`: a session of several
    /// channels has layers of doubling rates.
    pub layering: Option<Layering>,
    /// Seals every packet with the key of a group. Each session draws a random number when it is
    /// prepared, from which the cipher's key is derived. A sender on a virtual machine must not be
    /// continued twice from one snapshot: it would encrypt different packets with one nonce.
    pub group_seal: Option<GroupSeal>,
    /// Where the keys come from that are not given. Without a [`signer`](Self::signer) the session
    /// is signed by a key that belongs to its content alone. Without a
    /// [`group_seal`](Self::group_seal) its packets are encrypted, and the
    /// [ticket](crate::wire::Ticket) has the secret: `signer`'s, or the content's.
    /// `None`: not signed, and not sealed.
    pub keys: Option<ContentKeys>,
    /// Announces the symbols by signed digests, so that receivers which know the publisher's key
    /// can tell them from forged ones before they use them. Needs a [`signer`](Self::signer) and a
    /// session on one channel. Takes about 2 % of the packets.
    pub symbol_digests: bool,
    /// The certificate of a mirror, whose key is the [`signer`](Self::signer). Its publisher has
    /// signed the head that the session repeats. Needs the [`manifest`](Self::manifest) that it is
    /// for, and implies [`symbol_digests`](Self::symbol_digests). Not with a
    /// [`group_seal`](Self::group_seal), because runs of one head would seal with one key.
    pub certificate: Option<Certificate>,
    /// Asks the receivers for reports. `None`: does not ask, and opens no socket for them.
    pub reports: Option<ReportCollection>,
}

impl Default for FontanaFormat {
    fn default() -> Self {
        Self {
            signer: None,
            expires_after: Some(Self::DEFAULT_LIFETIME),
            version: 1,
            manifest: None,
            layering: None,
            group_seal: None,
            keys: None,
            symbol_digests: false,
            certificate: None,
            reports: None,
        }
    }
}

impl FontanaFormat {
    /// Default of [`expires_after`](Self::expires_after): 30 days, which is longer than a sender is
    /// away.
    pub const DEFAULT_LIFETIME: Duration = Duration::from_secs(30 * 24 * 3600);
    /// The shortest [`expires_after`](Self::expires_after): a head is sent every two seconds.
    pub const LEAST_LIFETIME: Duration = Duration::from_secs(10);
}

/// The options of a plain FLUTE session.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct FluteFormat {
    /// Version that packets and the file delivery table name. Receivers of Fontana accept both.
    pub version: FluteVersion,
    /// Compression of the files and, in version 2, of a table of more than one symbol. A file that
    /// does not become shorter is sent as it is. Compressed files of more than a few hundred
    /// kilobytes are in unnamed files in the directory for temporary files (`TMPDIR`, or `/tmp`)
    /// during the session.
    pub content_encoding: ContentEncoding,
    /// Validity of a file delivery table. `None`: a year, which is longer than any session; of a
    /// folder that changes ([`Publisher`](crate::Publisher)) [a day](Self::GROWING_LIFETIME). Its
    /// table is renewed after half of that.
    pub table_lifetime: Option<Duration>,
}

impl FluteFormat {
    /// Validity of the table of a folder that changes. Receivers may delete what was withdrawn
    /// after it, and one whose clock is wrong by less refuses no table.
    pub const GROWING_LIFETIME: Duration = Duration::from_secs(24 * 3600);
}

/// The options of an FCAST session.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct FcastFormat {
    /// Largest number of bytes of a file in one object. `None`: about a source block.
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
    /// Fontana's format, and streams.
    Fontana(FontanaReception),
    /// Plain FLUTE (RFC 6726). Files are not authenticated.
    Flute(FluteReception),
    /// FCAST (RFC 6968). Files are not authenticated.
    Fcast,
}

impl ReceiveFormat {
    /// What the ticket says.
    #[must_use]
    pub fn from_ticket(ticket: &Ticket) -> Self {
        match ticket.format {
            None => Self::Fontana(FontanaReception::from_ticket(ticket)),
            Some(ForeignFormat::Flute) => Self::Flute(FluteReception::default()),
            Some(ForeignFormat::Fcast) => Self::Fcast,
        }
    }
}

impl Default for ReceiveFormat {
    fn default() -> Self {
        Self::Fontana(FontanaReception::default())
    }
}

/// The options of a reception of plain FLUTE.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct FluteReception {
    /// Receive what later tables announce until the reception is stopped. Otherwise it ends when a
    /// table says that it is complete, or the sender closes the session.
    pub watch: bool,
    /// Receive only what matches one of these patterns, in the syntax of `.gitignore`. Empty:
    /// everything.
    pub only: Vec<String>,
    /// Do not receive files that exist: with the length and the MD5 that the table says, or, if it
    /// gives no MD5, under the same name ([`FileKept`](crate::ReceiveEvent::FileKept)).
    pub skip_existing: bool,
    /// Find the files, and receive none. The reception ends when a table says that it is complete,
    /// or two seconds after the last file was found.
    pub list: bool,
    /// Delete files that this reception has written, or an earlier one of the session that watched
    /// or deleted, once the tables that named them have expired, and a later one that is valid does
    /// not ([`FileDeleted`](crate::ReceiveEvent::FileDeleted)).
    pub delete: bool,
    /// Give the only file of the session this name in the directory. A second file is refused.
    pub file_name: Option<OsString>,
}

/// The options of a reception in Fontana's format.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FontanaReception {
    /// Accept only the manifest with this hash.
    pub manifest: Option<Hash>,
    /// Accept only what this publisher has signed.
    pub publisher: Option<PublicKey>,
    /// Whether to accept the first matching session, or to offer sessions to the application.
    pub acceptance: Acceptance,
    /// Receive also what has expired by this host's clock.
    pub ignore_expiry: bool,
    /// Which versions of the publisher to accept.
    pub versions: Versions,
    /// Do not receive blocks that existing files contain, which is found by hashing them. Equal
    /// files stay, but get their mode and time. Of other files, only blocks that differ are
    /// received.
    pub skip_existing: bool,
    /// Give no file its name before all are complete. Otherwise a file gets its name when its
    /// objects are complete, and at the end of an incomplete reception when its own bytes are.
    pub all_or_nothing: bool,
    /// When a version is complete, delete what earlier versions of the publisher created and it
    /// does not contain.
    pub delete: bool,
    /// Receive only what matches one of these patterns, in the syntax of `.gitignore`, relative to
    /// the top of what is sent. Empty: everything.
    pub only: Vec<String>,
    /// Largest number of bytes of a stream on the disk, received or waiting for the consumer.
    pub stream_window: u64,
    /// Receive only packets that a sender with this key has sealed.
    pub group_key: Option<GroupKey>,
    /// Reports to the sender, if it asks in a roll call that the publisher has signed. `None`:
    /// sends nothing.
    pub reporting: Option<Box<Reporting>>,
    /// Shares what it has with other receivers of its network, and asks them for what it lacks. Not
    /// with a [`group_key`](Self::group_key). `None`: sends nothing.
    pub sharing: Option<Sharing>,
}

impl Default for FontanaReception {
    fn default() -> Self {
        Self {
            manifest: None,
            publisher: None,
            acceptance: Acceptance::Automatic,
            ignore_expiry: false,
            versions: Versions::default(),
            skip_existing: false,
            all_or_nothing: false,
            delete: false,
            only: Vec::new(),
            stream_window: ReceiverLimits::default().max_stream_window_bytes,
            group_key: None,
            reporting: None,
            sharing: None,
        }
    }
}
