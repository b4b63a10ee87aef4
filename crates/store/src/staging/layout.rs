//! Names of staging directories and of their files.

/// Longest tag: a 256-bit hash in hexadecimal.
pub(crate) const MAX_TAG: usize = 64;

/// True if a staging directory may be named by this tag.
pub(crate) fn is_tag(tag: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=MAX_TAG).contains(&tag.len()) && tag.bytes().all(allowed)
}

/// The name of the file in the staging directory that says whose content is received.
pub(crate) const OWNER: &str = "owner";

/// The description's name in the staging directory.
pub(crate) const DESCRIPTION: &str = "manifest";
