//! What a collector knows receivers by: a random number, and perhaps a name.

use std::fmt;
use std::str::FromStr;

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

    /// Reads a label.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, LabelError> {
        std::str::from_utf8(bytes).map_err(|_| LabelError)?.parse()
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
    type Err = LabelError;

    fn from_str(text: &str) -> Result<Self, LabelError> {
        let is_allowed =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        if text.len() > Self::MAX_SIZE || !text.bytes().all(is_allowed) {
            return Err(LabelError);
        }
        Ok(Self(text.to_owned()))
    }
}

/// Text that is not a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a label has at most {} ASCII letters, digits, '.', '_' and '-'", ReceiverLabel::MAX_SIZE)]
pub struct LabelError;
