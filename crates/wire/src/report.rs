//! Receiver reports: what a receiver that was asked in a [roll call](crate::RollCall) sends to the
//! collector of a session, one datagram each.
//!
//! ```text
//! offset  bytes
//!      0      8  "FONTREP" and the format version, 1
//!      8      1  flags: 1 = encrypted, 2 = signed
//!      9      8  first 8 bytes of the sender's instance id
//!     17     16  receiver id
//!     33      8  counter: reports that this process has sent before
//!     41      4  round of the roll call
//!     45      8  start of the receiver, unix milliseconds
//!     53      1  state: 0 = receiving, 1 = complete, 2 = failed
//!     54      1  exit code if it has failed, otherwise 0
//!     55      2  symbols that it has of those that it needs, per thousand
//!     57      8  symbols that it lacks
//!     65      4  packets lost, per million
//!     69      8  datagrams that its kernel dropped
//!     77      1  channels that it is joined to
//!     78      4  seconds since its start
//!     82      1  bytes of its label
//!     83      l  label
//!   83+l     32  hash of the manifest, if it is complete
//!      .     32  public key   } if signed
//!      .     64  signature    }
//!      .     16  tag          } if encrypted
//! ```
//!
//! An encrypted report is encrypted from offset 41 on. The cipher is not in this crate: a
//! [`PacketSeal`] has the key of one receiver and one run of a sender.

use crate::bytes::Reader;
use crate::hash::Hash;
use crate::key::{KeyError, PublicKey, SecretKey, Signature};
use crate::seal::{PacketSeal, SealId, SealNonce, TAG_BYTES};
use std::fmt;
use std::str::FromStr;

const MAGIC: &[u8; 8] = b"FONTREP\x01";
/// Prefix of the signed message.
const SIGNATURE_DOMAIN: &[u8] = b"fontana receiver report v1\0";
const ENCRYPTED: u8 = 1;
const SIGNED: u8 = 2;
/// Bytes before what may be encrypted.
const HEADER_BYTES: usize = 41;
/// Bytes of a label and of a manifest hash, both absent, and of all other fields.
const LEAST_BODY_BYTES: usize = 42;

/// A random number that a receiving process draws when it starts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReceiverId(pub [u8; 16]);

impl fmt::Display for ReceiverId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&data_encoding::HEXLOWER.encode(&self.0))
    }
}

impl fmt::Debug for ReceiverId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ReceiverId({self})")
    }
}

/// The name that a receiver's operator gives it: ASCII letters, digits, `.`, `_` and `-`; empty if
/// it has none. It needs no escapes in a list, a path, JSON or a terminal.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReceiverLabel(String);

impl ReceiverLabel {
    /// Largest number of characters: that of a label of DNS (RFC 1035), so a host name fits.
    pub const MAX_SIZE: usize = 63;

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// True if the receiver has no name.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for ReceiverLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for ReceiverLabel {
    type Err = ReportError;

    fn from_str(text: &str) -> Result<Self, ReportError> {
        let is_allowed =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        if text.len() > Self::MAX_SIZE || !text.bytes().all(is_allowed) {
            return Err(ReportError::Label);
        }
        Ok(Self(text.to_owned()))
    }
}

/// How far a receiver is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiverState {
    /// It receives.
    Receiving,
    /// Everything that this manifest describes, or the selected part of it, is on disk and
    /// verified.
    Complete {
        /// Hash of the manifest.
        manifest: Hash,
    },
    /// It has ended otherwise.
    Failed {
        /// The exit code of the program.
        exit_code: u8,
    },
}

impl ReceiverState {
    /// True if the receiver will not change its state.
    pub const fn is_final(self) -> bool {
        !matches!(self, Self::Receiving)
    }
}

/// What a receiver says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceiverReport {
    /// The process.
    pub receiver: ReceiverId,
    /// Its name.
    pub label: ReceiverLabel,
    /// Start of the process, in unix milliseconds. Of two processes that sign with one key, the
    /// later one counts.
    pub started_unix_ms: u64,
    /// The round of the roll call that it answers.
    pub round: u32,
    /// How far it is.
    pub state: ReceiverState,
    /// Symbols that it has of those that it needs, per thousand.
    pub permille: u16,
    /// Symbols that it lacks; 0 before it knows the content, and when it has all of them.
    pub symbols_lacking: u64,
    /// Packets lost of those sent on its channels, per million.
    pub loss_ppm: u32,
    /// Datagrams that its kernel dropped.
    pub kernel_drops: u64,
    /// Channels that it is joined to.
    pub channels: u8,
    /// Seconds since the process started.
    pub seconds: u32,
}

/// The parts of a datagram that are never encrypted. Nothing of them is authenticated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportHeader {
    /// The run of the sender that has asked.
    pub instance: SealId,
    /// The process that reports.
    pub receiver: ReceiverId,
    /// Reports that this process has sent before.
    pub counter: u64,
}

impl ReportHeader {
    /// The nonce under the key of this receiver and run.
    fn nonce(&self) -> SealNonce {
        let mut nonce = [0; 12];
        for (byte, number) in nonce.iter_mut().skip(4).zip(self.counter.to_be_bytes()) {
            *byte = number;
        }
        nonce
    }
}

impl ReceiverReport {
    /// The datagram of this report: signed if there is an identity, encrypted if there is a
    /// cipher. The caller never passes one counter twice with a cipher.
    pub fn emit(
        &self,
        instance: SealId,
        counter: u64,
        identity: Option<&SecretKey>,
        cipher: Option<&impl PacketSeal>,
    ) -> Vec<u8> {
        let header = ReportHeader { instance, receiver: self.receiver, counter };
        let flags = if cipher.is_some() { ENCRYPTED } else { 0 }
            | if identity.is_some() { SIGNED } else { 0 };
        let mut out = Vec::with_capacity(256);
        out.extend(MAGIC);
        out.push(flags);
        out.extend(instance.0);
        out.extend(self.receiver.0);
        out.extend(counter.to_be_bytes());
        self.emit_body(&mut out);
        if let Some(key) = identity {
            out.extend(key.public_key().to_bytes());
            let signature = key.sign(&signed_message(&out));
            out.extend(signature);
        }
        if let (Some(cipher), Some((head, text))) = (cipher, out.split_at_mut_checked(HEADER_BYTES))
        {
            let tag = cipher.seal(header.nonce(), head, text);
            out.extend(tag);
        }
        out
    }

    fn emit_body(&self, out: &mut Vec<u8>) {
        out.extend(self.round.to_be_bytes());
        out.extend(self.started_unix_ms.to_be_bytes());
        let (state, exit_code) = match self.state {
            ReceiverState::Receiving => (0, 0),
            ReceiverState::Complete { .. } => (1, 0),
            ReceiverState::Failed { exit_code } => (2, exit_code),
        };
        out.extend([state, exit_code]);
        out.extend(self.permille.to_be_bytes());
        out.extend(self.symbols_lacking.to_be_bytes());
        out.extend(self.loss_ppm.to_be_bytes());
        out.extend(self.kernel_drops.to_be_bytes());
        out.push(self.channels);
        out.extend(self.seconds.to_be_bytes());
        out.push(self.label.as_str().len() as u8);
        out.extend(self.label.as_str().as_bytes());
        if let ReceiverState::Complete { manifest } = self.state {
            out.extend(manifest.0);
        }
    }
}

fn signed_message(bytes: &[u8]) -> Vec<u8> {
    [SIGNATURE_DOMAIN, bytes].concat()
}

/// A datagram that begins as a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportDatagram<'a> {
    /// The parts that are not encrypted.
    pub header: ReportHeader,
    flags: u8,
    bytes: &'a [u8],
}

/// A report that was read, and decrypted if it was encrypted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenedReport {
    /// The content.
    pub report: ReceiverReport,
    /// Number of the report.
    pub counter: u64,
    /// A cipher has confirmed that a member of the group has sent it.
    pub is_sealed: bool,
    signed: Option<Signed>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Signed {
    signer: PublicKey,
    signature: Signature,
    message: Vec<u8>,
}

impl<'a> ReportDatagram<'a> {
    /// Longest datagram of a report, in bytes.
    pub const MAX_SIZE: usize = HEADER_BYTES
        + LEAST_BODY_BYTES
        + ReceiverLabel::MAX_SIZE
        + Hash::SIZE
        + PublicKey::SIZE
        + size_of::<Signature>()
        + TAG_BYTES;

    /// Reads the parts that are not encrypted.
    ///
    /// # Errors
    /// [`ReportError`] if the datagram does not begin as a report.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ReportError> {
        if bytes.len() > Self::MAX_SIZE {
            return Err(ReportError::Size { actual: bytes.len() });
        }
        let mut reader = Reader::new(bytes);
        let truncated = ReportError::Truncated { actual: bytes.len() };
        if reader.take(MAGIC.len()).ok_or(truncated)? != MAGIC {
            return Err(ReportError::Magic);
        }
        let flags = reader.u8().ok_or(truncated)?;
        if flags & !(ENCRYPTED | SIGNED) != 0 {
            return Err(ReportError::Flags(flags));
        }
        let header = ReportHeader {
            instance: SealId(reader.array().ok_or(truncated)?),
            receiver: ReceiverId(reader.array().ok_or(truncated)?),
            counter: reader.u64().ok_or(truncated)?,
        };
        Ok(Self { header, flags, bytes })
    }

    /// Decrypts and reads the report. With a cipher, only an encrypted report with a valid tag is
    /// read, without one only a plain report.
    ///
    /// # Errors
    /// [`ReportError`].
    pub fn open(self, cipher: Option<&impl PacketSeal>) -> Result<OpenedReport, ReportError> {
        let truncated = ReportError::Truncated { actual: self.bytes.len() };
        let Some(cipher) = cipher else {
            if self.flags & ENCRYPTED != 0 {
                return Err(ReportError::Encrypted);
            }
            return self.read(self.bytes, false);
        };
        if self.flags & ENCRYPTED == 0 {
            return Err(ReportError::NotEncrypted);
        }
        let (sealed, tag) = self.bytes.split_last_chunk::<TAG_BYTES>().ok_or(truncated)?;
        let mut opened = sealed.to_vec();
        let (head, text) = opened.split_at_mut_checked(HEADER_BYTES).ok_or(truncated)?;
        if !cipher.open(self.header.nonce(), head, text, *tag) {
            return Err(ReportError::Tag);
        }
        self.read(&opened, true)
    }

    /// Reads the report in `bytes`, which are decrypted and end before the tag.
    fn read(self, bytes: &[u8], is_sealed: bool) -> Result<OpenedReport, ReportError> {
        let truncated = ReportError::Truncated { actual: bytes.len() };
        let mut reader = Reader::new(bytes.get(HEADER_BYTES..).ok_or(truncated)?);
        let report = self.read_body(&mut reader).ok_or(truncated)??;
        let signed = if self.flags & SIGNED == 0 {
            None
        } else {
            let signer = PublicKey::from_bytes(&reader.array().ok_or(truncated)?)?;
            let length = bytes.len().saturating_sub(reader.rest().len());
            let message = signed_message(bytes.get(..length).ok_or(truncated)?);
            let signature = reader.array().ok_or(truncated)?;
            Some(Signed { signer, signature, message })
        };
        if !reader.is_empty() {
            return Err(ReportError::TrailingBytes { count: reader.rest().len() });
        }
        Ok(OpenedReport { report, counter: self.header.counter, is_sealed, signed })
    }

    /// `None` if the bytes end too early.
    fn read_body(self, reader: &mut Reader<'_>) -> Option<Result<ReceiverReport, ReportError>> {
        let round = reader.u32()?;
        let started_unix_ms = reader.u64()?;
        let (state, exit_code) = (reader.u8()?, reader.u8()?);
        let permille = reader.u16()?;
        let symbols_lacking = reader.u64()?;
        let loss_ppm = reader.u32()?;
        let kernel_drops = reader.u64()?;
        let (channels, seconds) = (reader.u8()?, reader.u32()?);
        let length = reader.u8()?;
        let label = reader.take(length.into())?;
        let state = match (state, exit_code) {
            (0, 0) => ReceiverState::Receiving,
            (1, 0) => ReceiverState::Complete { manifest: Hash(reader.array()?) },
            (2, exit_code) => ReceiverState::Failed { exit_code },
            (state, _) => return Some(Err(ReportError::State(state))),
        };
        let label = std::str::from_utf8(label).map_err(|_| ReportError::Label);
        let label = match label.and_then(str::parse) {
            Ok(label) => label,
            Err(error) => return Some(Err(error)),
        };
        if permille > 1000 || loss_ppm > 1_000_000 {
            return Some(Err(ReportError::Share));
        }
        Some(Ok(ReceiverReport {
            receiver: self.header.receiver,
            label,
            started_unix_ms,
            round,
            state,
            permille,
            symbols_lacking,
            loss_ppm,
            kernel_drops,
            channels,
            seconds,
        }))
    }
}

impl OpenedReport {
    /// The key that claims to have signed it; `None` if it is not signed.
    pub fn claimed_signer(&self) -> Option<PublicKey> {
        self.signed.as_ref().map(|signed| signed.signer)
    }

    /// True if `key` has signed it. Takes about 50 microseconds.
    pub fn is_signed_by(&self, key: &PublicKey) -> bool {
        let signed = self.signed.as_ref().filter(|signed| signed.signer == *key);
        signed.is_some_and(|signed| key.verifies(&signed.message, &signed.signature))
    }
}

/// Reason why bytes are not a report, or why it is not trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReportError {
    /// More bytes than a report has.
    #[error("a report has at most {} bytes, not {actual}", ReportDatagram::MAX_SIZE)]
    Size {
        /// Number of bytes.
        actual: usize,
    },
    /// Bytes that do not begin as a report.
    #[error("not a receiver report of Fontana")]
    Magic,
    /// Bytes that end too early.
    #[error("{actual} bytes are too few for this report")]
    Truncated {
        /// Number of bytes.
        actual: usize,
    },
    /// Unknown flags.
    #[error("a report with the unknown flags {0:#04x}")]
    Flags(u8),
    /// An encrypted report, and no key.
    #[error("the report is encrypted, and the session has no group key")]
    Encrypted,
    /// A plain report in a session with a group key.
    #[error("the report is not encrypted, and the session has a group key")]
    NotEncrypted,
    /// An invalid tag.
    #[error("the report's tag does not match")]
    Tag,
    /// An unknown state, or an exit code with a state that has none.
    #[error("a report with the unknown state {0}")]
    State(u8),
    /// A share above one.
    #[error("a report with a share above one")]
    Share,
    /// An invalid label.
    #[error(
        "a label has at most {} ASCII letters, digits, '.', '_' and '-'",
        ReceiverLabel::MAX_SIZE
    )]
    Label,
    /// An invalid key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// Bytes after the report.
    #[error("{count} bytes follow the report")]
    TrailingBytes {
        /// Number of bytes.
        count: usize,
    },
}
