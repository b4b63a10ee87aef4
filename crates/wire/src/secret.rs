//! The secret of a ticket, from which the key of its session's packets follows.

use data_encoding::BASE64URL_NOPAD;
use std::fmt;
use std::str::FromStr;

/// 16 random bytes that the senders and the receivers of a session share. Who has them can read its
/// packets, and send in the name of all others who have them. Its text form, which `Display`
/// writes, is 22 characters of base64url.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TicketSecret([u8; TicketSecret::SIZE]);

impl TicketSecret {
    /// Size of a secret in bytes.
    pub const SIZE: usize = 16;

    /// The secret with these bytes, which must be random for who does not have them.
    pub const fn from_bytes(bytes: [u8; Self::SIZE]) -> Self {
        Self(bytes)
    }

    /// The bytes.
    pub const fn to_bytes(&self) -> [u8; Self::SIZE] {
        self.0
    }
}

/// The secret itself: for tickets.
impl fmt::Display for TicketSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&BASE64URL_NOPAD.encode(&self.0))
    }
}

impl fmt::Debug for TicketSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TicketSecret(..)")
    }
}

impl FromStr for TicketSecret {
    type Err = TicketSecretError;

    fn from_str(text: &str) -> Result<Self, TicketSecretError> {
        let bytes = BASE64URL_NOPAD.decode(text.as_bytes()).map_err(|_| TicketSecretError)?;
        bytes.try_into().map(Self).map_err(|_| TicketSecretError)
    }
}

/// A text that is not the secret of a ticket. It is not shown: it may be almost one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a secret has 22 characters: letters, digits, - and _")]
pub struct TicketSecretError;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_has_one_text_and_debug_does_not_show_it() {
        let secret = TicketSecret::from_bytes(std::array::from_fn(|i| 0xF0 | i as u8));
        let text = secret.to_string();
        assert_eq!(text, "8PHy8_T19vf4-fr7_P3-_w");
        assert_eq!(text.parse(), Ok(secret));
        assert_eq!(format!("{secret:?}"), "TicketSecret(..)");
        // The last character has four bits that are not of the secret.
        for bad in ["", "8PHy8_T19vf4-fr7_P3-_x", "8PHy8/T19vf4+fr7/P3+/w", &text[1..]] {
            assert_eq!(bad.parse::<TicketSecret>(), Err(TicketSecretError), "{bad}");
        }
    }
}
