//! The addresses of a mirror's files.

use fontana_wire::WebAddress;
use url::{ParseError, Url};

/// The address of a file in the directory of a mirror. `path` is [encoded](encode_path).
///
/// # Errors
/// The mirror's address is no URL.
pub(crate) fn file_url(mirror: &WebAddress, path: &str) -> Result<Url, ParseError> {
    Url::parse(&format!("{mirror}{path}"))
}

/// A path of a manifest as part of a URL: every byte that is not unreserved (RFC 3986, section 2.3)
/// is percent-encoded, so that no path leaves the directory or becomes a query.
pub(crate) fn encode_path(path: &[u8]) -> String {
    let mut text = String::with_capacity(path.len());
    for &byte in path {
        match byte {
            b'/' => text.push('/'),
            _ if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) => {
                text.push(char::from(byte));
            }
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_in_the_directory() {
        assert_eq!(encode_path(b"a b/\xc3\xa9?#%.txt"), "a%20b/%C3%A9%3F%23%25.txt");
        let mirror = "http://a.example/x/".parse().unwrap();
        let url = file_url(&mirror, &encode_path(b"p/q?.txt")).unwrap();
        assert_eq!(url.as_str(), "http://a.example/x/p/q%3F.txt");
    }
}
