//! The line of a file with a secret: what it is for, and 32 bytes as hexadecimal digits.

use zeroize::Zeroizing;

/// Bytes of a secret.
const SIZE: usize = 32;

/// The line of these bytes, newline included.
pub(super) fn text(prefix: &str, bytes: &[u8; SIZE]) -> String {
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{prefix}{digits}\n")
}

/// The bytes of a line with this prefix; white space around it is ignored.
pub(super) fn parse(
    prefix: &'static str,
    text: &str,
) -> Result<Zeroizing<[u8; SIZE]>, KeyFileError> {
    let digits = text.trim().strip_prefix(prefix).ok_or(KeyFileError::Prefix(prefix))?;
    let digits = digits.as_bytes();
    let mut bytes = Zeroizing::new([0; SIZE]);
    if digits.len() != 2 * SIZE {
        return Err(KeyFileError::Digits);
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        for &digit in pair {
            let digit = char::from(digit).to_digit(16).ok_or(KeyFileError::Digits)?;
            *byte = *byte << 4 | digit as u8;
        }
    }
    Ok(bytes)
}

/// Reason why a text is not the content of a key file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyFileError {
    /// A text without the prefix of files with this kind of key.
    #[error("the file of such a key begins with {0:?}")]
    Prefix(&'static str),
    /// Not 64 hexadecimal digits after the prefix.
    #[error("such a key has 64 hexadecimal digits")]
    Digits,
}
