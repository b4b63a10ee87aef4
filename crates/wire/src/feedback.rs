//! What a receiver sends to the collector of a session if its user allows it, one datagram each:
//! [reports](crate::report), [repair requests](crate::repair_request) and
//! [rate reports](crate::rate_report).
//!
//! ```text
//! offset  bytes
//!      0      8  "FONTREP", "FONTREQ" or "FONTRAT", and the format version, 1
//!      8      1  flags: 1 = encrypted, 2 = signed
//!      9      8  first 8 bytes of the sender's instance id
//!     17     16  receiver id
//!     33      8  counter: datagrams that this process has sent before
//!     41      .  report, request or rate report
//!      .     32  public key   } if signed
//!      .     64  signature    }
//!      .     16  tag          } if encrypted
//! ```
//!
//! An encrypted datagram is encrypted from offset 41 on. The cipher is not in this crate: a
//! [`PacketSeal`] has the key of one receiver and one run of a sender.

use crate::bytes::Reader;
use crate::key::{PublicKey, SecretKey, Signature};
use crate::rate_report::RateReport;
use crate::receiver_id::ReceiverId;
use crate::repair_request::RepairRequest;
use crate::report::ReceiverReport;
use crate::seal::{PacketSeal, SealId, SealNonce, TAG_BYTES, nonce};
use echo::RollCallEcho;
use error::FeedbackError;

pub(crate) mod echo;
pub(crate) mod error;

// A rate report is shorter than the others, which bound the size of a datagram.
const _: () = assert!(RateReport::MAX_BODY < RepairRequest::MAX_BODY);

/// Prefix of the signed message.
const SIGNATURE_DOMAIN: &[u8] = b"fontana receiver report v1\0";
const ENCRYPTED: u8 = 1;
const SIGNED: u8 = 2;
/// Bytes before what may be encrypted.
const HEADER_BYTES: usize = 41;

/// The content of a datagram to a collector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Feedback {
    /// What the receiver says of itself.
    Report(ReceiverReport),
    /// What it asks for.
    Request(RepairRequest),
    /// How much of what is sent arrives.
    Rate(RateReport),
}

impl Feedback {
    /// The roll call that it answers.
    pub fn echo(&self) -> RollCallEcho {
        match self {
            Self::Report(report) => report.echo,
            Self::Request(request) => request.echo,
            Self::Rate(rate) => rate.echo,
        }
    }

    fn receiver(&self) -> ReceiverId {
        match self {
            Self::Report(report) => report.receiver,
            Self::Request(request) => request.receiver,
            Self::Rate(rate) => rate.receiver,
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Self::Report(_) => Kind::Report,
            Self::Request(_) => Kind::Request,
            Self::Rate(_) => Kind::Rate,
        }
    }

    fn emit_body(&self, out: &mut Vec<u8>) {
        match self {
            Self::Report(report) => report.emit_body(out),
            Self::Request(request) => request.emit_body(out),
            Self::Rate(rate) => rate.emit_body(out),
        }
    }

    /// The datagram: signed if there is an identity, encrypted if there is a cipher. The caller
    /// never passes one counter twice with a cipher.
    pub fn emit(
        &self,
        instance: SealId,
        counter: u64,
        identity: Option<&SecretKey>,
        cipher: Option<&impl PacketSeal>,
    ) -> Vec<u8> {
        let header = FeedbackHeader { instance, receiver: self.receiver(), counter };
        let flags = if cipher.is_some() { ENCRYPTED } else { 0 }
            | if identity.is_some() { SIGNED } else { 0 };
        let mut out = Vec::with_capacity(256);
        out.extend(self.kind().magic());
        out.push(flags);
        out.extend(instance.0);
        out.extend(header.receiver.0);
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
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Report,
    Request,
    Rate,
}

impl Kind {
    const ALL: [Self; 3] = [Self::Report, Self::Request, Self::Rate];

    const fn magic(self) -> &'static [u8; 8] {
        match self {
            Self::Report => b"FONTREP\x01",
            Self::Request => b"FONTREQ\x01",
            Self::Rate => b"FONTRAT\x01",
        }
    }
}

/// The parts of a datagram that are never encrypted. Nothing of them is authenticated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedbackHeader {
    /// The run of the sender that has asked.
    pub instance: SealId,
    /// The process that answers.
    pub receiver: ReceiverId,
    /// Datagrams that this process has sent before.
    pub counter: u64,
}

impl FeedbackHeader {
    /// The nonce under the key of this receiver and run.
    fn nonce(&self) -> SealNonce {
        nonce(self.counter.to_be_bytes())
    }
}

fn signed_message(bytes: &[u8]) -> Vec<u8> {
    [SIGNATURE_DOMAIN, bytes].concat()
}

/// A datagram that begins as a report, a request or a rate report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedbackDatagram<'a> {
    /// The parts that are not encrypted.
    pub header: FeedbackHeader,
    kind: Kind,
    flags: u8,
    bytes: &'a [u8],
}

/// A datagram that was read, and decrypted if it was encrypted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenedFeedback {
    /// The content.
    pub feedback: Feedback,
    /// Number of the datagram.
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

impl<'a> FeedbackDatagram<'a> {
    /// Longest datagram, in bytes.
    pub const MAX_SIZE: usize = HEADER_BYTES
        + if ReceiverReport::MAX_BODY > RepairRequest::MAX_BODY {
            ReceiverReport::MAX_BODY
        } else {
            RepairRequest::MAX_BODY
        }
        + PublicKey::SIZE
        + size_of::<Signature>()
        + TAG_BYTES;

    /// Reads the parts that are not encrypted.
    ///
    /// # Errors
    /// [`FeedbackError`] if the datagram does not begin as one of them.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, FeedbackError> {
        if bytes.len() > Self::MAX_SIZE {
            return Err(FeedbackError::Size { actual: bytes.len() });
        }
        let mut reader = Reader::new(bytes);
        let truncated = FeedbackError::Truncated { actual: bytes.len() };
        let magic = reader.take(Kind::Report.magic().len()).ok_or(truncated)?;
        let kind = Kind::ALL.into_iter().find(|kind| kind.magic() == magic);
        let kind = kind.ok_or(FeedbackError::Magic)?;
        let flags = reader.u8().ok_or(truncated)?;
        if flags & !(ENCRYPTED | SIGNED) != 0 {
            return Err(FeedbackError::Flags(flags));
        }
        let header = FeedbackHeader {
            instance: SealId(reader.array().ok_or(truncated)?),
            receiver: ReceiverId(reader.array().ok_or(truncated)?),
            counter: reader.u64().ok_or(truncated)?,
        };
        Ok(Self { header, kind, flags, bytes })
    }

    /// Decrypts and reads the datagram. With a cipher, only an encrypted one with a valid tag is
    /// read, without one only a plain one.
    ///
    /// # Errors
    /// [`FeedbackError`].
    pub fn open(self, cipher: Option<&impl PacketSeal>) -> Result<OpenedFeedback, FeedbackError> {
        let truncated = FeedbackError::Truncated { actual: self.bytes.len() };
        let Some(cipher) = cipher else {
            if self.flags & ENCRYPTED != 0 {
                return Err(FeedbackError::Encrypted);
            }
            return self.read(self.bytes, false);
        };
        if self.flags & ENCRYPTED == 0 {
            return Err(FeedbackError::NotEncrypted);
        }
        let (sealed, tag) = self.bytes.split_last_chunk::<TAG_BYTES>().ok_or(truncated)?;
        let mut opened = sealed.to_vec();
        let (head, text) = opened.split_at_mut_checked(HEADER_BYTES).ok_or(truncated)?;
        if !cipher.open(self.header.nonce(), head, text, *tag) {
            return Err(FeedbackError::Tag);
        }
        self.read(&opened, true)
    }

    /// Reads the content of `bytes`, which are decrypted and end before the tag.
    fn read(self, bytes: &[u8], is_sealed: bool) -> Result<OpenedFeedback, FeedbackError> {
        let truncated = FeedbackError::Truncated { actual: bytes.len() };
        let mut reader = Reader::new(bytes.get(HEADER_BYTES..).ok_or(truncated)?);
        let receiver = self.header.receiver;
        let feedback = match self.kind {
            Kind::Report => Feedback::Report(
                ReceiverReport::read_body(receiver, &mut reader).ok_or(truncated)??,
            ),
            Kind::Request => Feedback::Request(
                RepairRequest::read_body(receiver, &mut reader).ok_or(truncated)??,
            ),
            Kind::Rate => {
                Feedback::Rate(RateReport::read_body(receiver, &mut reader).ok_or(truncated)??)
            }
        };
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
            return Err(FeedbackError::TrailingBytes { count: reader.rest().len() });
        }
        Ok(OpenedFeedback { feedback, counter: self.header.counter, is_sealed, signed })
    }
}

impl OpenedFeedback {
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
