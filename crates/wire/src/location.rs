//! Conversion between Content-Location and path (RFC 6726, section 3.4.2; RFC 3986).

use crate::path::{PathError, RelativePath};
use std::borrow::Cow;
use std::fmt::Write as _;

/// The path of a Content-Location: the path of its URI, percent-decoded once. Scheme, authority,
/// fragment, empty components and `.` are dropped. A backslash separates components like a slash.
///
/// Different URIs of these forms get different names:
/// - A query stays at the end of the last component: `get?id=1` is `get%3Fid=1`. In a query,
///   everything but letters, digits and `-._~=&+%` is percent-encoded.
/// - A URI without a hierarchy keeps its scheme, and its colons are percent-encoded: `urn:a:1` is
///   `urn%3Aa%3A1`.
///
/// A Content-Location is an identifier that is not signed: any host that can send to the group can
/// write one. The rules for names made from it are therefore stricter than those for names in a
/// manifest. It must be text, without characters and names that have a special meaning on any
/// system.
///
/// # Errors
/// [`PathError`] for `..`, control characters, colons, Windows device names, trailing dots or
/// blanks, and bytes that are not UTF-8.
pub fn parse_content_location(location: &str) -> Result<RelativePath, PathError> {
    let location = location.split('#').next().unwrap_or_default();
    let (path, query) = match location.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (location, None),
    };
    let (scheme, path) = split_scheme(path);
    let path = match path.strip_prefix("//") {
        // The authority ends at the next slash, or at the end of the URI.
        Some(rest) => rest.find('/').and_then(|slash| rest.get(slash..)).unwrap_or_default(),
        None => path,
    };
    let decoded = percent_decode(path);
    let text = str::from_utf8(&decoded).map_err(|_| PathError::NotPortable("it is not UTF-8"))?;
    let mut text = Cow::from(text);
    if let Some(scheme) = scheme.filter(|scheme| is_opaque(scheme, &text)) {
        let colon = percent_encode(':');
        let rest = text.replace(':', &colon);
        text = format!("{}{colon}{rest}", scheme.to_ascii_lowercase()).into();
    }
    if let Some(query) = query {
        // Without a path there is no name: a query alone is not one.
        if text.split(['/', '\\']).all(|component| matches!(component, "" | ".")) {
            return Err(PathError::Empty);
        }
        let text = text.to_mut();
        text.push_str(&percent_encode('?'));
        for c in query.chars() {
            match c {
                'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '.' | '_' | '~' => text.push(c),
                '=' | '&' | '+' | '%' => text.push(c),
                c => text.push_str(&percent_encode(c)),
            }
        }
        if text.ends_with('.') {
            text.pop();
            text.push_str(&percent_encode('.'));
        }
    }
    let components = text.split(['/', '\\']).filter(|component| !matches!(*component, "" | "."));
    for component in components.clone() {
        check_portable(component)?;
    }
    RelativePath::from_components(components)
}

/// Whether the rest of a URI is not a path: always after `urn`, and otherwise if it has a colon,
/// which no name has. After `file`, a colon is that of a drive.
fn is_opaque(scheme: &str, rest: &str) -> bool {
    let is = |name| scheme.eq_ignore_ascii_case(name);
    !rest.starts_with(['/', '\\']) && !is("file") && (is("urn") || rest.contains(':'))
}

/// The UTF-8 bytes of a character, each percent-encoded.
fn percent_encode(c: char) -> String {
    let mut bytes = [0; 4];
    c.encode_utf8(&mut bytes).bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// The scheme (RFC 3986, section 3.1), and what follows it. A single letter is a drive, which
/// [`check_portable`] refuses.
fn split_scheme(uri: &str) -> (Option<&str>, &str) {
    let is_scheme = |scheme: &str| {
        scheme.len() > 1
            && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    };
    match uri.split_once(':') {
        Some((scheme, rest)) if is_scheme(scheme) => (Some(scheme), rest),
        _ => (None, uri),
    }
}

/// Decodes percent-encoded octets (RFC 3986, section 2.1). A percent sign without two hexadecimal
/// digits stands for itself.
fn percent_decode(text: &str) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        let octet = match (byte, tail) {
            (b'%', [high, low, ..]) => hex_digit(*high).zip(hex_digit(*low)),
            _ => None,
        };
        rest = tail;
        match octet {
            Some((high, low)) => {
                decoded.push(high << 4 | low);
                rest = rest.get(2..).unwrap_or_default();
            }
            None => decoded.push(byte),
        }
    }
    decoded
}

fn hex_digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|digit| digit as u8)
}

fn check_portable(component: &str) -> Result<(), PathError> {
    if component == ".." {
        return Err(PathError::DotDot);
    }
    if component.contains('\0') {
        return Err(PathError::Nul);
    }
    if component.contains(char::is_control) {
        return Err(PathError::NotPortable("a control character"));
    }
    if component.contains(':') {
        return Err(PathError::NotPortable("a colon"));
    }
    if component.ends_with(['.', ' ']) {
        return Err(PathError::NotPortable("a dot or blank at the end of a name"));
    }
    if is_windows_device(component) {
        return Err(PathError::NotPortable("the name of a Windows device"));
    }
    Ok(())
}

/// True for names that Windows reserves for devices, with any extension.
fn is_windows_device(component: &str) -> bool {
    let stem = component.split('.').next().unwrap_or_default().trim_end().to_ascii_uppercase();
    let numbered = || {
        let digit = stem.strip_prefix("COM").or_else(|| stem.strip_prefix("LPT"));
        // Windows treats the superscript digits as digits.
        digit.is_some_and(|digit| matches!(digit, "¹" | "²" | "³") || is_digit_from_1(digit))
    };
    matches!(stem.as_str(), "CON" | "PRN" | "AUX" | "NUL" | "CONIN$" | "CONOUT$") || numbered()
}

fn is_digit_from_1(text: &str) -> bool {
    matches!(text.as_bytes(), [b'1'..=b'9'])
}

/// The Content-Location of a path: a relative reference in which everything but letters, digits,
/// `-._~` and slashes is percent-encoded.
pub fn emit_content_location(path: &RelativePath) -> String {
    let mut location = String::with_capacity(path.as_bytes().len());
    for &byte in path.as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                location.push(char::from(byte));
            }
            // Writing to a string cannot fail.
            _ => drop(write!(location, "%{byte:02X}")),
        }
    }
    location
}
