//! The session head: one small record, repeated all the time, from which everything else follows.
//!
//! It names the manifest and says for how long and how fast it is sent, and it can be signed by the
//! publisher. It travels as a No-Code object of one symbol under [`Toi::HEAD`](crate::Toi::HEAD),
//! padded with zeros to the size of the session's other packets.
//!
//! [`UnverifiedHead::parse`] gives away nothing but who claims to have signed. The [`SessionHead`] comes
//! out of one of three doors, each with its own name: [`UnverifiedHead::verify`] against a
//! publisher's key, [`UnverifiedHead::verify_pinned`] against a manifest hash from a ticket, and
//! [`UnverifiedHead::without_verification`].
//!
//! ```text
//! offset  bytes
//!      0      8  "FONTANA" and the format version, 1
//!      8     16  instance id
//!     24      8  manifest version
//!     32      8  expires, unix seconds; 0 = never
//!     40      8  rate, bytes per second; 0 = not said
//!     48      1  congestion control; 0 = fixed rate
//!     49      1  channel count, at least 1
//!     50      c  parameters of congestion control; none with fixed rate on one channel
//!   50+c      1  what describes the content: 0 = a manifest, 1 = a stream index
//!   51+c      4  its TOI
//!   55+c      n  its object transmission information: 15 with No-Code, RFC 5510 and RaptorQ
//! 55+c+n     32  its hash
//! 87+c+n      1  0 = not signed, 1 = signed
//! 88+c+n     32  public key       } when signed
//!120+c+n     64  signature        }
//! ```
//! The signature is Ed25519 over `"fontana session head v1"`, a zero byte, and all before it.

use crate::bytes::Reader;
use crate::congestion::{CongestionControl, CongestionError};
use crate::hash::Hash;
use crate::instance::CodeError;
use crate::key::Signature;
use crate::key::{KeyError, PublicKey, SecretKey};
use crate::oti;
use fontana_fec::{Oti, OtiError};
use std::fmt;
use std::num::NonZeroU64;

const MAGIC: &[u8; 7] = b"FONTANA";
const FORMAT_VERSION: u8 = 1;
/// Keeps a signature over a head from being one over anything else.
const SIGNATURE_DOMAIN: &[u8] = b"fontana session head v1\0";
/// Bytes of a head without a signature whose manifest is sent with RaptorQ, or without a code, as
/// Fontana's are.
const UNSIGNED_SIZE: usize = 88 + oti::MIN_SIZE;

/// A random number that a sending process draws when it starts. Two lives of one sender, or two
/// senders of one file, differ in it.
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

/// An object that can be fetched and recognized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectRef {
    /// Under which number it is sent.
    pub toi: u32,
    /// How it is encoded.
    pub oti: Oti,
    /// What it hashes to. For the manifest: [`manifest_hash`](crate::manifest_hash).
    pub hash: Hash,
}

/// What describes the content of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ContentKind {
    /// A [manifest](crate::Manifest): everything is known from the beginning.
    #[default]
    Manifest,
    /// A [stream index](crate::StreamIndex), and every version of it another one.
    StreamIndex,
}

/// What a session is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionHead {
    /// The sending process.
    pub instance: InstanceId,
    /// Version of the content: never decreases for one publisher's key. A receiver that has seen
    /// version 7 refuses 6.
    pub manifest_version: u64,
    /// What describes the content.
    pub kind: ContentKind,
    /// Where the manifest, or stream index, is and what it hashes to.
    pub manifest: ObjectRef,
    /// When the publisher's word ends, in unix seconds; `None`: never.
    pub expires_unix_seconds: Option<NonZeroU64>,
    /// Most bytes per second that the sender will send on all channels; `None`: not said.
    pub rate_bytes_per_second: Option<NonZeroU64>,
    /// On which channels it comes, and what the CCI of its packets means.
    pub congestion_control: CongestionControl,
}

impl SessionHead {
    /// Bytes of a signed head of a session on one channel whose manifest is sent with RaptorQ, or
    /// without a code; an unsigned one is 96 shorter, and others are longer by the
    /// [parameters](CongestionControl::parameter_size) of their congestion control. Symbols of a
    /// session must be at least this long.
    pub const MAX_SIZE: usize = UNSIGNED_SIZE + PublicKey::SIZE + size_of::<Signature>();

    /// True if the publisher's word no longer holds at the given time.
    pub const fn has_expired(&self, now_unix_seconds: u64) -> bool {
        match self.expires_unix_seconds {
            Some(expires) => expires.get() <= now_unix_seconds,
            None => false,
        }
    }

    /// The bytes of this head, signed if there is a key. Padding is the caller's.
    pub fn emit(&self, signer: Option<&SecretKey>) -> Vec<u8> {
        let mut out = Vec::with_capacity(Self::MAX_SIZE);
        out.extend(MAGIC);
        out.push(FORMAT_VERSION);
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
        out.push(signer.is_some().into());
        if let Some(key) = signer {
            out.extend(key.public_key().to_bytes());
            let signature = key.sign(&signed_message(&out));
            out.extend(signature);
        }
        out
    }
}

/// A head of which nobody knows yet who wrote it.
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

/// The instance and version that a symbol claims to be a head of; not verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClaimedVersion {
    /// The sending process.
    pub instance: InstanceId,
    /// Version of the content.
    pub manifest_version: u64,
}

impl UnverifiedHead {
    /// Reads a head from the symbol that carries it, zero padding included.
    ///
    /// # Errors
    /// [`HeadError`] if the bytes are not the one encoding of some head.
    pub fn parse(symbol: &[u8]) -> Result<Self, HeadError> {
        let truncated = HeadError::Truncated { actual: symbol.len() };
        let mut reader = Reader::new(symbol);
        if reader.take(MAGIC.len()).ok_or(truncated)? != MAGIC {
            return Err(HeadError::Magic);
        }
        match reader.u8().ok_or(truncated)? {
            FORMAT_VERSION => {}
            version => return Err(HeadError::FormatVersion(version)),
        }
        let head = parse_fields(&mut reader).ok_or(truncated)??;
        let signed = match reader.u8().ok_or(truncated)? {
            0 => None,
            1 => {
                let signer = PublicKey::from_bytes(&reader.array().ok_or(truncated)?)?;
                let length = symbol.len() - reader.rest().len();
                let message = signed_message(symbol.get(..length).ok_or(truncated)?);
                let signature = reader.array().ok_or(truncated)?;
                Some(Signed { signer, signature, message })
            }
            flag => return Err(HeadError::SignedFlag(flag)),
        };
        if reader.rest().iter().any(|&byte| byte != 0) {
            return Err(HeadError::Padding);
        }
        Ok(Self { head, signed })
    }

    /// Instance and version that a symbol claims to be of, at the price of a comparison: what is not
    /// new need not be parsed, let alone verified.
    pub fn claimed_version(symbol: &[u8]) -> Option<ClaimedVersion> {
        let mut reader = Reader::new(symbol);
        let magic = reader.take(MAGIC.len() + 1)?;
        let instance = InstanceId(reader.array()?);
        let manifest_version = reader.u64()?;
        (magic.split_last() == Some((&FORMAT_VERSION, &MAGIC[..])))
            .then_some(ClaimedVersion { instance, manifest_version })
    }

    /// Who claims to have signed it: for showing to a person, who may then trust that key.
    pub fn claimed_signer(&self) -> Option<PublicKey> {
        self.signed.as_ref().map(|signed| signed.signer)
    }

    /// What describes the content, if the head is to be believed.
    pub fn kind(&self) -> ContentKind {
        self.head.kind
    }

    /// The head, if `publisher` has signed it. Costs some 50 microseconds: a receiver that gets the
    /// same bytes again need not ask again.
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

    /// The head, if it names the manifest with this hash (no stream index: it has another). That makes the *manifest* trustworthy
    /// and what follows from it; the head's other fields may be anybody's.
    ///
    /// # Errors
    /// [`HeadError::OtherManifest`].
    pub fn verify_pinned(self, manifest: &Hash) -> Result<SessionHead, HeadError> {
        if self.head.manifest.hash != *manifest {
            return Err(HeadError::OtherManifest { actual: self.head.manifest.hash });
        }
        Ok(self.head)
    }

    /// The head as it is, for a receiver whose operator has agreed to take what comes, and for
    /// showing what is on the air.
    pub fn without_verification(self) -> SessionHead {
        self.head
    }
}

fn signed_message(bytes: &[u8]) -> Vec<u8> {
    [SIGNATURE_DOMAIN, bytes].concat()
}

/// `None` if the bytes end too early.
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
    }))
}

/// Why bytes are not a head, or not one to be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeadError {
    /// Not a head at all.
    #[error("not a session head of Fontana")]
    Magic,
    /// A head from a later, or very early, Fontana.
    #[error("session head of format {0}, only 1 is known")]
    FormatVersion(u8),
    /// The bytes end too early.
    #[error("{actual} bytes are too few for this session head")]
    Truncated {
        /// Bytes there are.
        actual: usize,
    },
    /// The manifest comes with a code that is not ours.
    #[error(transparent)]
    Code(#[from] CodeError),
    /// The manifest's transmission information makes no sense.
    #[error(transparent)]
    Oti(#[from] OtiError),
    /// No congestion control that there is.
    #[error(transparent)]
    CongestionControl(#[from] CongestionError),
    /// Neither a manifest nor a stream index.
    #[error("content of the unknown kind {0}")]
    ContentKind(u8),
    /// Neither 0 nor 1.
    #[error("the signed flag is {0}")]
    SignedFlag(u8),
    /// The signer's key is none.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// Something other than zeros after the end.
    #[error("the session head is followed by something else")]
    Padding,
    /// A signature was asked for and there is none.
    #[error("the session head is not signed")]
    NotSigned,
    /// Signed, but by somebody else.
    #[error("the session head is signed by {actual}, a different publisher")]
    OtherSigner {
        /// Who claims to have signed.
        actual: PublicKey,
    },
    /// Not what the signer signed.
    #[error("the session head's signature does not match")]
    Signature,
    /// A manifest was asked for and this is another.
    #[error("the session head names another manifest: {actual}")]
    OtherManifest {
        /// The manifest it names.
        actual: Hash,
    },
}
