//! Ed25519 keys of publishers (RFC 8032), with their hexadecimal text form.

use crate::hash::{HexError, parse_hex};
use ed25519_dalek::{Signer as _, SigningKey, VerifyingKey};
use std::fmt;
use std::str::FromStr;

/// Prefix of a secret key file, so that its content is not mistaken for a public key.
const SECRET_KEY_PREFIX: &str = "fontana-secret-key-1 ";

/// An Ed25519 signature.
pub(crate) type Signature = [u8; 64];

/// A publisher's secret key. It is wiped from memory when dropped, and never printed.
///
/// Its file has one line: `fontana-secret-key-1`, a space, and the 32-byte seed as 64 hexadecimal
/// digits.
#[derive(Clone)]
pub struct SecretKey(SigningKey);

impl SecretKey {
    /// The key of a seed of 32 random bytes, which the caller takes from the operating system.
    pub fn from_seed(seed: &[u8; 32]) -> Self {
        Self(SigningKey::from_bytes(seed))
    }

    /// The public key that verifies this key's signatures.
    pub fn public_key(&self) -> PublicKey {
        PublicKey(self.0.verifying_key().to_bytes())
    }

    /// The seed, from which other secrets of the publisher may be derived. It is the secret itself.
    pub fn seed(&self) -> &[u8; 32] {
        self.0.as_bytes()
    }

    /// Content of a key file, newline included. It is the secret itself.
    pub fn to_file_text(&self) -> String {
        let seed = data_encoding::HEXLOWER.encode(self.0.as_bytes());
        format!("{SECRET_KEY_PREFIX}{seed}\n")
    }

    pub(crate) fn sign(&self, message: &[u8]) -> Signature {
        self.0.sign(message).to_bytes()
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretKey(of {})", self.public_key())
    }
}

/// Parses the content of a key file; white space around the line is ignored.
impl FromStr for SecretKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        let hex = text.trim().strip_prefix(SECRET_KEY_PREFIX).ok_or(KeyError::Prefix)?;
        Ok(Self::from_seed(&parse_hex(hex)?))
    }
}

/// A publisher's public key. Its text form is 64 hexadecimal digits, written in lower case.
///
/// The value holds the checked encoding. The decompressed curve point would take six times the
/// memory, and decompression takes a tenth of a verification.
///
/// Verification is strict: it accepts canonical points only, and none of small order. All receivers
/// therefore agree on which signatures are valid.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicKey([u8; PublicKey::SIZE]);

impl PublicKey {
    /// Size of a public key in bytes.
    pub const SIZE: usize = 32;

    /// The key with this encoding.
    ///
    /// # Errors
    /// [`KeyError::NotAKey`] if the bytes are not a point of the curve, or one of small order, for
    /// which signatures can be forged.
    pub fn from_bytes(bytes: &[u8; Self::SIZE]) -> Result<Self, KeyError> {
        match VerifyingKey::from_bytes(bytes) {
            Ok(key) if !key.is_weak() => Ok(Self(*bytes)),
            _ => Err(KeyError::NotAKey),
        }
    }

    /// The key's encoding.
    pub const fn to_bytes(&self) -> [u8; Self::SIZE] {
        self.0
    }

    /// True if `signature` was made over `message` with the matching secret key.
    pub(crate) fn verifies(&self, message: &[u8], signature: &Signature) -> bool {
        let signature = ed25519_dalek::Signature::from_bytes(signature);
        VerifyingKey::from_bytes(&self.0)
            .is_ok_and(|key| key.verify_strict(message, &signature).is_ok())
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&data_encoding::HEXLOWER.encode(&self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({self})")
    }
}

impl FromStr for PublicKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        if text.starts_with(SECRET_KEY_PREFIX.trim_end()) {
            return Err(KeyError::Secret);
        }
        Self::from_bytes(&parse_hex(text)?)
    }
}

/// Reason why a text or bytes are not a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// Text that is not 32 bytes in hexadecimal.
    #[error("not a key: {0}")]
    Hex(#[from] HexError),
    /// A secret key file without its prefix.
    #[error("a secret key file begins with {SECRET_KEY_PREFIX:?}")]
    Prefix,
    /// Bytes that are not a usable point of the curve.
    #[error("these 32 bytes are not an Ed25519 public key")]
    NotAKey,
    /// A secret key where a public key is expected.
    #[error("this is a secret key: keep it, and give the public one")]
    Secret,
}
