//! Names that this program gives in directories of its users.

/// Prefix of the names of staging directories and memos.
pub(crate) const STAGING_PREFIX: &[u8] = b".fontana-";

/// Longest name after the prefix: that of a memo of a key, while it is being written.
const LONGEST: usize = b"mark-.new".len() + HASH_DIGITS;
/// Digits of a hash or a key in a name.
const HASH_DIGITS: usize = 64;
/// Letters and digits that make the name of a file different from all others.
const RANDOM_LETTERS: usize = 6;

/// Whether a name, without directories, is one that this program gives: a staging directory, a
/// memo, or a file that gets its name when it is complete. They are no content.
///
/// ```
/// assert!(fontana_store::is_ours(b".fontana-new-a1B2c3"));
/// assert!(!fontana_store::is_ours(b".fontana-notes"));
/// ```
///
/// | `.fontana-` and | |
/// |---|---|
/// | a hash | what is received of a manifest |
/// | `flute-`, `fcast-`, an address and a number | what is received of a session |
/// | `pipe-`, 16 digits | what is delivered in order |
/// | `mark-`, a key, perhaps `.new` | what is known of a publisher |
/// | `new-`, six letters | a file that is being written |
pub fn is_ours(name: &[u8]) -> bool {
    let Some(rest) = name.strip_prefix(STAGING_PREFIX) else { return false };
    if rest.len() > LONGEST {
        return false;
    }
    let is_hex = |digits: &[u8], count: usize| {
        digits.len() == count && digits.iter().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
    };
    let after = |prefix: &[u8]| rest.strip_prefix(prefix);
    if let Some(session) = after(b"flute-").or(after(b"fcast-")) {
        // The address has colons and points, which are hyphens here.
        let is_of_address = |b: &u8| matches!(b, b'0'..=b'9' | b'a'..=b'f' | b'-');
        return session.contains(&b'-') && session.iter().all(is_of_address);
    }
    if let Some(mark) = after(b"mark-") {
        return is_hex(mark.strip_suffix(b".new").unwrap_or(mark), HASH_DIGITS);
    }
    if let Some(new) = after(b"new-") {
        return new.len() == RANDOM_LETTERS && new.iter().all(u8::is_ascii_alphanumeric);
    }
    is_hex(rest, HASH_DIGITS) || after(b"pipe-").is_some_and(|digits| is_hex(digits, 16))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_users_are_content_however_similar_they_are() {
        let hash = "0123456789abcdef".repeat(4);
        for ours in [
            hash.clone(),
            "flute-10-0-0-7-55".into(),
            "fcast-fe80--1-7".into(),
            "pipe-0123456789abcdef".into(),
            format!("mark-{hash}"),
            format!("mark-{hash}.new"),
            "new-aB3dE6".into(),
        ] {
            assert!(is_ours(format!(".fontana-{ours}").as_bytes()), "{ours}");
            for other in [format!("fontana-{ours}"), format!(".fontana-{ours}~"), ours] {
                assert!(!is_ours(other.as_bytes()), "{other}");
            }
        }
        for users in ["", "-", "notes", "flute-", "flute-notes", "mark-", "new-notes", "new-"] {
            assert!(!is_ours(format!(".fontana-{users}").as_bytes()), "{users}");
        }
        assert!(!is_ours(&[&b".fontana-flute-"[..], &[b'1'; 5000]].concat()));
    }
}
