//! The session head: a small record that the sender repeats, and from which a receiver learns all
//! other parameters of the session.

use crate::bytes::Reader;
use crate::congestion::{CongestionControl, CongestionError};
use crate::hash::Hash;
use crate::key::Signature;
use crate::key::{KeyError, PublicKey, SecretKey};
use crate::oti;
use crate::records::{HeadRecords, RecordError};
use fontana_fec::{CodeError, Oti, OtiError};
use std::fmt;
use std::num::NonZeroU64;

const MAGIC: &[u8; 7] = b"FONTANA";
/// Format of a head without records.
const PLAIN_FORMAT: u8 = 1;
/// Format of a head with records.
const RECORD_FORMAT: u8 = 2;
/// Prefix of the signed message. It prevents a signature over a head from being valid for another
/// kind of message.
const SIGNATURE_DOMAIN: &[u8] = b"fontana session head v1\0";
/// Size in bytes of an unsigned head whose manifest is sent without a code or with RaptorQ, which
/// Fontana uses.
const UNSIGNED_SIZE: usize = 88 + oti::MIN_SIZE;
/// Size in bytes of the magic bytes and the version of the format.
const START_SIZE: usize = MAGIC.len() + 1;
/// Size in bytes of a signer and a signature.
const SIGNATURE_SIZE: usize = PublicKey::SIZE + size_of::<Signature>();

/// A random number that a sending process draws when it starts. It distinguishes the runs of one
/// sender, and several senders of one file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstanceId(pub [u8; 16]);

impl fmt::Display for InstanceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&data_encoding::HEXLOWER.encode(&self.0))
    }
}

impl fmt::Debug for InstanceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "InstanceId({self})")
    }
}

/// Reference to an object, with the hash of its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectRef {
    /// Object number.
    pub toi: u32,
    /// Transmission information.
    pub oti: Oti,
    /// Hash of the content; for a manifest, that of [`manifest_hash`](crate::manifest_hash).
    pub hash: Hash,
}

/// Kind of object that describes the content of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ContentKind {
    /// A [manifest](crate::Manifest), complete from the beginning.
    #[default]
    Manifest,
    /// A [stream index](crate::StreamIndex); each version is another object.
    StreamIndex,
}

/// Description of a session.
///
/// It identifies the manifest, its expiry and the session's rate. The publisher may sign it. It
/// travels as a No-Code object of one symbol with [`Toi::HEAD`](crate::Toi::HEAD), padded with
/// zeros to the size of the session's other packets.
///
/// [`UnverifiedHead::parse`] exposes only the claimed signer. One of three methods returns the
/// [`SessionHead`]: [`UnverifiedHead::verify`] checks the signature of a publisher,
/// [`UnverifiedHead::pinned`] a manifest hash from a ticket, and
/// [`UnverifiedHead::without_verification`] nothing.
///
/// ```text
/// offset  bytes
///      0      8  "FONTANA" and the format version: 1, or 2 with records
///      8     16  instance id
///     24      8  manifest version
///     32      8  expires, unix seconds; 0 = never
///     40      8  rate, bytes per second; 0 = not stated
///     48      1  congestion control; 0 = fixed rate
///     49      1  channel count, at least 1
///     50      c  parameters of congestion control; none with fixed rate on one channel
///   50+c      1  what describes the content: 0 = a manifest, 1 = a stream index
///   51+c      4  its TOI
///   55+c      n  its object transmission information: 15 with No-Code, RFC 5510 and RaptorQ
/// 55+c+n     32  its hash
/// 87+c+n      r  format 2: bytes of the records as u16, and the records
/// 87+c+n+r    1  0 = not signed, 1 = signed
/// 88+c+n+r   32  public key       } when signed
/// 120+c+n+r  64  signature        }
/// ```
///
/// The signature is Ed25519 over `"fontana session head v1"`, a zero byte, and all bytes before the
/// signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionHead {
    /// Identifier of the sending process.
    pub instance: InstanceId,
    /// Version of the content. It never decreases for one publisher's key: a receiver that has seen
    /// version 7 refuses version 6.
    pub manifest_version: u64,
    /// Kind of the object that describes the content.
    pub kind: ContentKind,
    /// Reference to the manifest or stream index.
    pub manifest: ObjectRef,
    /// Time at which the head expires, in unix seconds; `None`: never.
    pub expires_unix_seconds: Option<NonZeroU64>,
    /// Largest rate of the sender over all channels, in bytes per second; `None`: not stated.
    pub rate_bytes_per_second: Option<NonZeroU64>,
    /// Channels of the session, and meaning of the CCI of its packets.
    pub congestion_control: CongestionControl,
    /// Optional fields. A head without them has format 1, otherwise 2.
    pub records: HeadRecords,
}

impl SessionHead {
    /// Size in bytes of a signed head of a session on one channel whose manifest is sent without a
    /// code or with RaptorQ. An unsigned head is 96 bytes shorter. Other sessions add the
    /// [parameters](CongestionControl::parameter_size) of their congestion control, and the
    /// [records](HeadRecords::size). Symbols of a session must be at least this long.
    pub const MAX_SIZE: usize = UNSIGNED_SIZE + SIGNATURE_SIZE;

    /// True if the head has expired at the given time.
    pub const fn has_expired(&self, now_unix_seconds: u64) -> bool {
        match self.expires_unix_seconds {
            Some(expires) => expires.get() <= now_unix_seconds,
            None => false,
        }
    }

    /// Bytes of this head, signed if there is a key. The caller pads them.
    pub fn emit(&self, signer: Option<&SecretKey>) -> Vec<u8> {
        let mut out = Vec::with_capacity(Self::MAX_SIZE);
        out.extend(MAGIC);
        out.push(if self.records.is_empty() { PLAIN_FORMAT } else { RECORD_FORMAT });
        out.extend(self.instance.0);
        out.extend(self.manifest_version.to_be_bytes());
        for field in [self.expires_unix_seconds, self.rate_bytes_per_second] {
            out.extend(field.map_or(0, NonZeroU64::get).to_be_bytes());
        }
        self.congestion_control.emit(&mut out);
        out.push(match self.kind {
            ContentKind::Manifest => 0,
            ContentKind::StreamIndex => 1,
        });
        out.extend(self.manifest.toi.to_be_bytes());
        oti::emit(&self.manifest.oti, &mut out);
        out.extend(self.manifest.hash.0);
        self.records.emit(&mut out);
        out.push(signer.is_some().into());
        if let Some(key) = signer {
            out.extend(key.public_key().to_bytes());
            let signature = key.sign(&signed_message(&out));
            out.extend(signature);
        }
        out
    }
}

/// A parsed head whose signer is not verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnverifiedHead {
    head: SessionHead,
    signed: Option<Signed>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Signed {
    signer: PublicKey,
    signature: Signature,
    message: Vec<u8>,
}

/// Instance and version that a symbol claims, not verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClaimedVersion {
    /// Identifier of the sending process.
    pub instance: InstanceId,
    /// Version of the content.
    pub manifest_version: u64,
}

impl UnverifiedHead {
    /// Parses a head from the symbol that carries it, zero padding included.
    ///
    /// # Errors
    /// [`HeadError`] if the bytes are not the encoding of a head. Every head has one encoding.
    pub fn parse(symbol: &[u8]) -> Result<Self, HeadError> {
        let truncated = HeadError::Truncated { actual: symbol.len() };
        let mut reader = Reader::new(symbol);
        let head = parse_unsigned(&mut reader, symbol.len())?;
        let signed = match reader.u8().ok_or(truncated)? {
            0 => None,
            1 => {
                let signer = PublicKey::from_bytes(&reader.array().ok_or(truncated)?)?;
                let length = symbol.len().saturating_sub(reader.rest().len());
                let message = signed_message(symbol.get(..length).ok_or(truncated)?);
                let signature = reader.array().ok_or(truncated)?;
                Some(Signed { signer, signature, message })
            }
            flag => return Err(HeadError::SignedFlag(flag)),
        };
        check_padding(&reader)?;
        Ok(Self { head, signed })
    }

    /// Instance and version that a symbol claims; `None` if the symbol is not a head. A receiver
    /// calls this to skip parsing and verification of a version that it has.
    pub fn claimed_version(symbol: &[u8]) -> Option<ClaimedVersion> {
        let mut reader = Reader::new(symbol);
        let magic = reader.take(START_SIZE)?;
        let instance = InstanceId(reader.array()?);
        let manifest_version = reader.u64()?;
        let is_head = magic.split_last().is_some_and(|(&format, magic)| {
            matches!(format, PLAIN_FORMAT | RECORD_FORMAT) && magic == MAGIC
        });
        is_head.then_some(ClaimedVersion { instance, manifest_version })
    }

    /// Key of the claimed signer, to be shown to a user who decides whether to trust it.
    pub fn claimed_signer(&self) -> Option<PublicKey> {
        self.signed.as_ref().map(|signed| signed.signer)
    }

    /// Kind of the object that describes the content, not verified.
    pub fn kind(&self) -> ContentKind {
        self.head.kind
    }

    /// The head, if `publisher` has signed it. The check takes about 50 microseconds. A receiver
    /// does not repeat it for bytes that it has verified.
    ///
    /// # Errors
    /// [`HeadError::NotSigned`], [`HeadError::OtherSigner`], [`HeadError::Signature`].
    pub fn verify(self, publisher: &PublicKey) -> Result<SessionHead, HeadError> {
        let signed = self.signed.as_ref().ok_or(HeadError::NotSigned)?;
        if signed.signer != *publisher {
            return Err(HeadError::OtherSigner { actual: signed.signer });
        }
        if !publisher.verifies(&signed.message, &signed.signature) {
            return Err(HeadError::Signature);
        }
        Ok(self.head)
    }

    /// The head in a symbol, if it names the manifest with this hash. The hash authenticates the
    /// manifest and what it contains, but no other field of the head. Key and signature are
    /// skipped, and take no time.
    ///
    /// # Errors
    /// [`HeadError::OtherManifest`], or those of [`parse`](Self::parse) except for the key.
    pub fn pinned(symbol: &[u8], manifest: &Hash) -> Result<SessionHead, HeadError> {
        let truncated = HeadError::Truncated { actual: symbol.len() };
        let mut reader = Reader::new(symbol);
        let head = parse_unsigned(&mut reader, symbol.len())?;
        match reader.u8().ok_or(truncated)? {
            0 => {}
            1 => _ = reader.take(SIGNATURE_SIZE).ok_or(truncated)?,
            flag => return Err(HeadError::SignedFlag(flag)),
        }
        check_padding(&reader)?;
        if head.manifest.hash != *manifest {
            return Err(HeadError::OtherManifest { actual: head.manifest.hash });
        }
        Ok(head)
    }

    /// The head without any check, for display, and for a receiver whose operator accepts any
    /// sender.
    pub fn without_verification(self) -> SessionHead {
        self.head
    }
}

/// Checks that only zeros follow a head.
fn check_padding(reader: &Reader<'_>) -> Result<(), HeadError> {
    match reader.rest().iter().all(|&byte| byte == 0) {
        true => Ok(()),
        false => Err(HeadError::Padding),
    }
}

fn signed_message(bytes: &[u8]) -> Vec<u8> {
    [SIGNATURE_DOMAIN, bytes].concat()
}

/// Parses what precedes the signature in a symbol of `size` bytes.
fn parse_unsigned(reader: &mut Reader<'_>, size: usize) -> Result<SessionHead, HeadError> {
    let truncated = HeadError::Truncated { actual: size };
    if reader.take(MAGIC.len()).ok_or(truncated)? != MAGIC {
        return Err(HeadError::Magic);
    }
    let format = reader.u8().ok_or(truncated)?;
    if !matches!(format, PLAIN_FORMAT | RECORD_FORMAT) {
        return Err(HeadError::FormatVersion(format));
    }
    let head = parse_fields(reader).ok_or(truncated)??;
    let records = match format {
        RECORD_FORMAT => HeadRecords::parse(reader).ok_or(truncated)??,
        _ => HeadRecords::default(),
    };
    Ok(SessionHead { records, ..head })
}

/// Parses the fields before the signature; `None` if the bytes end too early.
fn parse_fields(reader: &mut Reader<'_>) -> Option<Result<SessionHead, HeadError>> {
    let instance = InstanceId(reader.array()?);
    let manifest_version = reader.u64()?;
    let expires_unix_seconds = NonZeroU64::new(reader.u64()?);
    let rate_bytes_per_second = NonZeroU64::new(reader.u64()?);
    let congestion_control = match CongestionControl::parse(reader)? {
        Ok(control) => control,
        Err(error) => return Some(Err(error.into())),
    };
    let kind = reader.u8()?;
    let toi = reader.u32()?;
    let oti = match oti::parse(reader)? {
        Ok(oti) => oti,
        Err(error) => return Some(Err(error.into())),
    };
    let hash = Hash(reader.array()?);
    if let Err(error) = oti.layout() {
        return Some(Err(error.into()));
    }
    let kind = match kind {
        0 => ContentKind::Manifest,
        1 => ContentKind::StreamIndex,
        kind => return Some(Err(HeadError::ContentKind(kind))),
    };
    Some(Ok(SessionHead {
        instance,
        manifest_version,
        kind,
        manifest: ObjectRef { toi, oti, hash },
        expires_unix_seconds,
        rate_bytes_per_second,
        congestion_control,
        records: HeadRecords::default(),
    }))
}

/// Reason why bytes are not a head, or why the head is not trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeadError {
    /// Bytes that do not begin as a head.
    #[error("not a session head of Fontana")]
    Magic,
    /// An unknown version of the format.
    #[error("session head of format {0}, only 1 and 2 are known")]
    FormatVersion(u8),
    /// Invalid records.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// Bytes that end too early.
    #[error("{actual} bytes are too few for this session head")]
    Truncated {
        /// Number of bytes.
        actual: usize,
    },
    /// An unsupported code of the manifest.
    #[error(transparent)]
    Code(#[from] CodeError),
    /// Invalid transmission information of the manifest.
    #[error(transparent)]
    Oti(#[from] OtiError),
    /// Invalid congestion control.
    #[error(transparent)]
    CongestionControl(#[from] CongestionError),
    /// A kind of content other than manifest and stream index.
    #[error("content of the unknown kind {0}")]
    ContentKind(u8),
    /// A flag other than 0 and 1.
    #[error("the signed flag is {0}")]
    SignedFlag(u8),
    /// An invalid key of the signer.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// Padding other than zeros.
    #[error("the session head is followed by something else")]
    Padding,
    /// The expected signature is missing.
    #[error("the session head is not signed")]
    NotSigned,
    /// The signer is another publisher.
    #[error("the session head is signed by {actual}, a different publisher")]
    OtherSigner {
        /// The claimed signer.
        actual: PublicKey,
    },
    /// The signature does not match.
    #[error("the session head's signature does not match")]
    Signature,
    /// The manifest differs from the expected one.
    #[error("the session head names another manifest: {actual}")]
    OtherManifest {
        /// Hash of the manifest that the head names.
        actual: Hash,
    },
}
