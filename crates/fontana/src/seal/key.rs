//! Group keys, with their text form.

use crate::error::Error;
use fontana_wire::SealMode;
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
pub struct GroupKey(Zeroizing<[u8; Self::SIZE]>);

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
        let digits: String = self.0.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{PREFIX}{digits}\n")
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

/// Reason why a text is not a group key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GroupKeyError {
    /// A text without the prefix of group key files.
    #[error("a group key file begins with {PREFIX:?}")]
    Prefix,
    /// Not 64 hexadecimal digits after the prefix.
    #[error("a group key has 64 hexadecimal digits")]
    Digits,
}

/// Parses the content of a key file; white space around the line is ignored.
impl FromStr for GroupKey {
    type Err = GroupKeyError;

    fn from_str(text: &str) -> Result<Self, GroupKeyError> {
        let digits = text.trim().strip_prefix(PREFIX).ok_or(GroupKeyError::Prefix)?;
        let digits = digits.as_bytes();
        let mut bytes = Zeroizing::new([0; Self::SIZE]);
        if digits.len() != 2 * Self::SIZE {
            return Err(GroupKeyError::Digits);
        }
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            for &digit in pair {
                let digit = char::from(digit).to_digit(16).ok_or(GroupKeyError::Digits)?;
                *byte = *byte << 4 | digit as u8;
            }
        }
        Ok(Self(bytes))
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
        assert_eq!(refused(&text.replace("group", "secret")), GroupKeyError::Prefix);
        assert_eq!(refused(text.trim_end().trim_end_matches('7')), GroupKeyError::Digits);
        assert_eq!(refused(&text.replace("1b", "+b")), GroupKeyError::Digits);
        assert_eq!(format!("{key:?}"), "GroupKey(..)");
    }
}
