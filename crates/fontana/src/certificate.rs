//! Certificates: what a publisher gives to a mirror in place of its key.

use crate::error::Error;
use crate::geometry;
use crate::system::{expires_after, random_bytes};
use data_encoding::HEXLOWER;
use fontana_proto::control_oti;
use fontana_wire::{
    CongestionControl, ContentKind, DigestKey, HeadError, HeadRecords, InstanceId, Manifest,
    ObjectRef, PublicKey, SecretKey, SessionHead, Toi, UnverifiedHead, manifest_hash,
};
use std::num::NonZeroU64;
use std::str::FromStr;
use std::time::Duration;

/// Prefix of a certificate's file, so that its content is not mistaken for a key.
const PREFIX: &str = "fontana-certificate-1 ";

/// A session head that a publisher has signed for a mirror, another sender of the same content.
///
/// The mirror repeats it as its own head, and signs its lists of symbol digests with a key of its
/// own, which the head names. So receivers that know the publisher's key accept the mirror, and the
/// mirror can send nothing but this content in the publisher's name. The certificate cannot be
/// renewed by the mirror, and cannot be revoked.
///
/// Its file has one line: `fontana-certificate-1`, a space, and the head in hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    head: SessionHead,
    /// The signed head, without padding.
    bytes: Vec<u8>,
    publisher: PublicKey,
    mirror: PublicKey,
}

/// Reason why a text is not a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CertificateError {
    /// A text without the prefix of certificate files, or without hexadecimal digits after it.
    #[error("a certificate's file begins with {PREFIX:?}, and has hexadecimal digits after it")]
    Text,
    /// The digits are no head that its signer has signed.
    #[error("not the head that its publisher has signed: {0}")]
    Head(#[from] HeadError),
    /// A head without the key of a mirror.
    #[error("a head without the key of a mirror")]
    NoMirror,
}

impl Certificate {
    /// A certificate of `publisher` for the mirror with this key, to send the content of
    /// `manifest`. `lifetime`: the time after which it expires; `None`: never.
    ///
    /// # Errors
    /// [`IoError::System`](crate::IoError::System) if the system has no random numbers.
    pub fn issue(
        manifest: &Manifest,
        publisher: &SecretKey,
        mirror: PublicKey,
        lifetime: Option<Duration>,
    ) -> Result<Self, Error> {
        let records = DigestKey(mirror).add_to(&HeadRecords::default()).unwrap_or_default();
        let head = content_head(manifest, lifetime, records)?;
        let bytes = head.emit(Some(publisher));
        Ok(Self { head, bytes, publisher: publisher.public_key(), mirror })
    }

    /// The publisher.
    pub fn publisher(&self) -> PublicKey {
        self.publisher
    }

    /// The key of the mirror.
    pub fn mirror(&self) -> PublicKey {
        self.mirror
    }

    /// The time from which on it is invalid, in unix seconds; `None`: never.
    pub fn expires_unix_seconds(&self) -> Option<NonZeroU64> {
        self.head.expires_unix_seconds
    }

    /// Content of its file, newline included.
    pub fn to_file_text(&self) -> String {
        format!("{PREFIX}{}\n", HEXLOWER.encode(&self.bytes))
    }

    pub(crate) fn head(&self) -> &SessionHead {
        &self.head
    }

    /// The signed head, padded to a symbol.
    pub(crate) fn symbol(&self, symbol_size: u16) -> Vec<u8> {
        let mut symbol = self.bytes.clone();
        symbol.resize(symbol.len().max(symbol_size.into()), 0);
        symbol
    }
}

impl FromStr for Certificate {
    type Err = CertificateError;

    fn from_str(text: &str) -> Result<Self, CertificateError> {
        let digits = text.trim().strip_prefix(PREFIX).ok_or(CertificateError::Text)?;
        let bytes = HEXLOWER.decode(digits.as_bytes()).map_err(|_| CertificateError::Text)?;
        let head = UnverifiedHead::parse(&bytes)?;
        let publisher = head.claimed_signer().ok_or(HeadError::NotSigned)?;
        let head = head.verify(&publisher)?;
        let DigestKey(mirror) = DigestKey::of(&head.records).ok_or(CertificateError::NoMirror)?;
        Ok(Self { head, bytes, publisher, mirror })
    }
}

/// The head of the content of a manifest, of no running session.
///
/// # Errors
/// The system has no random numbers.
pub(crate) fn content_head(
    manifest: &Manifest,
    lifetime: Option<Duration>,
    records: HeadRecords,
) -> Result<SessionHead, Error> {
    let body = manifest.emit();
    Ok(SessionHead {
        instance: InstanceId(random_bytes()?),
        manifest_version: manifest.version(),
        kind: ContentKind::Manifest,
        manifest: ObjectRef {
            toi: Toi::MANIFEST.0 as u32,
            oti: control_oti(body.len(), control_symbol_size(manifest)),
            hash: manifest_hash(&body),
        },
        expires_unix_seconds: lifetime.and_then(expires_after),
        // That of the sender, which is not known.
        rate_bytes_per_second: None,
        congestion_control: CongestionControl::FixedRate,
        records,
    })
}

/// Bytes of the symbols of control objects in a session of this manifest: all objects have symbols
/// of one size.
fn control_symbol_size(manifest: &Manifest) -> u16 {
    let object = manifest.objects().first();
    geometry::control_symbol_size(object.map_or(u16::MAX, |object| object.oti.symbol_size))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fontana_fec::codes::raptorq::RaptorQ;
    use fontana_fec::{FecScheme, Oti};
    use fontana_wire::{Entry, FileEntry, Hash, ManifestObject, Metadata, RelativePath};

    fn manifest() -> Manifest {
        let scheme = FecScheme::RaptorQ(RaptorQ { source_blocks: 1, sub_blocks: 1, alignment: 4 });
        let oti = Oti { transfer_length: 10, symbol_size: 1_404, scheme };
        let object = ManifestObject { toi: 1, oti, block_hashes: vec![Hash([3; 32])] };
        let path = RelativePath::new("file").unwrap();
        let metadata = Metadata { mode: 0o644, ..Metadata::default() };
        let file = Entry::File(FileEntry::whole_object(path, metadata, 1, 10));
        Manifest::new(4, "file", vec![object], vec![file]).unwrap()
    }

    #[test]
    fn a_certificate_is_read_as_it_was_written_and_nothing_of_it_can_be_changed() {
        let key = |seed| SecretKey::from_seed(&[seed; 32]);
        let lifetime = Some(Duration::from_secs(60));
        let mirror = key(2).public_key();
        let certificate = Certificate::issue(&manifest(), &key(1), mirror, lifetime).unwrap();
        let text = certificate.to_file_text();
        assert_eq!(text.parse(), Ok(certificate.clone()));
        assert_eq!((certificate.publisher(), certificate.mirror()), (key(1).public_key(), mirror));
        assert_eq!(certificate.head().manifest.hash, manifest_hash(&manifest().emit()));
        assert_eq!(certificate.symbol(1_388).len(), 1_388);
        for (at, digit) in text.char_indices().skip(PREFIX.len()) {
            let other = if digit == '0' { "1" } else { "0" };
            let changed = [&text[..at], other, &text[at + 1..]].concat();
            assert!(changed.parse::<Certificate>().is_err(), "{at}");
        }
        assert_eq!("fontana-secret-key-1 00".parse::<Certificate>(), Err(CertificateError::Text));
        let without = SessionHead { records: HeadRecords::default(), ..certificate.head().clone() };
        let digits = HEXLOWER.encode(&without.emit(Some(&key(1))));
        let without = format!("{PREFIX}{digits}").parse::<Certificate>();
        assert_eq!(without, Err(CertificateError::NoMirror));
    }
}
