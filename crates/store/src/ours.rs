//! Names that this program gives in directories of its users.

/// Prefix of the names of staging directories and memos.
pub(crate) const STAGING_PREFIX: &[u8] = b".fontana-";

/// No name is longer after the prefix: the longest are those of memos that are being written.
const LONGEST: usize = 96;
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
/// | `mark-flute-`, an address and a number, perhaps `.new` | what was written of a session |
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
    let is_session = |session: &[u8]| {
        // The address has colons and points, which are hyphens here.
        let is_of_address = |b: &u8| matches!(b, b'0'..=b'9' | b'a'..=b'f' | b'-');
        session.contains(&b'-') && session.iter().all(is_of_address)
    };
    if let Some(session) = after(b"flute-").or(after(b"fcast-")) {
        return is_session(session);
    }
    if let Some(mark) = after(b"mark-") {
        let mark = mark.strip_suffix(b".new").unwrap_or(mark);
        return is_hex(mark, HASH_DIGITS) || mark.strip_prefix(b"flute-").is_some_and(is_session);
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
            "mark-flute-10-0-0-7-55".into(),
            "mark-flute-2001-db8-1111-2222-3333-4444-5555-6666-281474976710655.new".into(),
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
