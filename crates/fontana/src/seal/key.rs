//! Group keys, with their text form.

use super::line::{KeyFileError, parse, text};
use crate::error::Error;
use fontana_wire::{SealMode, TicketSecret};
use std::fmt;
use std::str::FromStr;
use zeroize::Zeroizing;

/// Prefix of a group key file, so that its content is not mistaken for another key.
const PREFIX: &str = "fontana-group-key-1 ";

/// The key that the senders and receivers of a group share. It is wiped from memory when dropped,
/// and never printed.
///
/// Its file has one line: `fontana-group-key-1`, a space, and 32 bytes as 64 hexadecimal digits.
#[derive(Clone)]
pub struct GroupKey(pub(super) Zeroizing<[u8; Self::SIZE]>);

impl GroupKey {
    /// Size of a group key in bytes.
    pub const SIZE: usize = 32;

    /// The key with these bytes, which must be random.
    pub fn from_bytes(bytes: [u8; Self::SIZE]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// A new key, from the system's random numbers.
    ///
    /// # Errors
    /// [`IoError::System`](crate::IoError::System) if the system has none.
    pub fn generate() -> Result<Self, Error> {
        crate::system::random_bytes().map(Self::from_bytes)
    }

    /// Content of a key file, newline included. It is the secret itself.
    pub fn to_file_text(&self) -> String {
        text(PREFIX, &self.0)
    }

    pub(super) fn bytes(&self) -> &[u8; Self::SIZE] {
        &self.0
    }
}

impl fmt::Debug for GroupKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GroupKey(..)")
    }
}

/// Parses the content of a key file; white space around the line is ignored.
impl FromStr for GroupKey {
    type Err = KeyFileError;

    fn from_str(line: &str) -> Result<Self, KeyFileError> {
        parse(PREFIX, line).map(Self)
    }
}

/// How a sender seals its packets.
#[derive(Clone, Debug)]
pub struct GroupSeal {
    /// The group's key.
    pub key: GroupKey,
    /// Whether packets are encrypted as well.
    pub mode: SealMode,
}

impl GroupSeal {
    /// Encrypts packets for all who have a ticket with this secret.
    pub fn of_ticket(secret: &TicketSecret) -> Self {
        Self { key: GroupKey::of_ticket(secret), mode: SealMode::Encrypted }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_file_is_read_as_it_was_written() {
        let key = GroupKey::from_bytes(std::array::from_fn(|i| (i * 9) as u8));
        let text = key.to_file_text();
        assert!(text.starts_with("fontana-group-key-1 0009121b"), "{text}");
        assert_eq!(text.parse::<GroupKey>().unwrap().bytes(), key.bytes());
        let refused = |text: &str| text.parse::<GroupKey>().unwrap_err();
        assert_eq!(refused(&text.replace("group", "secret")), KeyFileError::Prefix(PREFIX));
        assert_eq!(refused(text.trim_end().trim_end_matches('7')), KeyFileError::Digits);
        assert_eq!(refused(&text.replace("1b", "+b")), KeyFileError::Digits);
        assert_eq!(format!("{key:?}"), "GroupKey(..)");
    }
}
