//! Addresses of mirrors in tickets.

use crate::hash::{Hash, HexError};
use std::fmt;
use std::str::FromStr;

/// The address of a directory on a web server that has the files of a session under their names.
///
/// `http://` or `https://`, a host, and a path that ends with a slash, in printable ASCII without
/// `?`, `#`, `&` and `@`. Whether the host exists is not checked.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WebAddress(String);

impl WebAddress {
    /// Longest address in characters.
    pub const MAX_SIZE: usize = 512;
    /// Largest number of addresses in a ticket.
    pub const MAX_COUNT: usize = 8;

    /// The address as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The host: a name or an address, without the port. An address of IPv6 is in brackets.
    pub fn host(&self) -> &str {
        let rest = self.0.split_once("://").map_or(self.0.as_str(), |(_, rest)| rest);
        let authority = rest.split('/').next().unwrap_or_default();
        match authority.find(']') {
            Some(end) => authority.get(..=end).unwrap_or(authority),
            None => authority.split(':').next().unwrap_or_default(),
        }
    }
}

impl fmt::Display for WebAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A text that is not the address of a directory on a web server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a mirror is http://HOST/DIRECTORY/ or https://HOST/DIRECTORY/, with a slash at its end, at \
     most {max} characters of ASCII, and without ?, #, & and @",
    max = WebAddress::MAX_SIZE
)]
pub struct WebAddressError;

impl FromStr for WebAddress {
    type Err = WebAddressError;

    fn from_str(text: &str) -> Result<Self, WebAddressError> {
        let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
        let (host, _) = rest.and_then(|rest| rest.split_once('/')).ok_or(WebAddressError)?;
        let is_valid = |byte: u8| byte.is_ascii_graphic() && !b"?#&@\"'<>\\^`{|}".contains(&byte);
        let fits = text.len() <= Self::MAX_SIZE && text.bytes().all(is_valid);
        if host.is_empty() || !text.ends_with('/') || !fits {
            return Err(WebAddressError);
        }
        Ok(Self(text.to_owned()))
    }
}

const SCHEME: &str = "fontana://web/?manifest=";
const WEB: &str = "&web=";

/// A ticket for content that is on mirrors only: the hash of its manifest, and where it is.
///
/// ```text
/// fontana://web/?manifest=HEX&web=URL{&web=URL}
/// ```
///
/// ```
/// use fontana_wire::WebTicket;
///
/// let text = format!("fontana://web/?manifest={}&web=https://a.example/pub/", "07".repeat(32));
/// let ticket: WebTicket = text.parse()?;
/// assert_eq!(ticket.web[0].as_str(), "https://a.example/pub/");
/// assert_eq!(ticket.to_string(), text);
/// # Ok::<(), fontana_wire::WebTicketError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebTicket {
    /// Hash of the manifest.
    pub manifest: Hash,
    /// The mirrors: at least one, none repeated, and at most [`WebAddress::MAX_COUNT`].
    pub web: Vec<WebAddress>,
}

/// Reason why a text is not a [`WebTicket`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WebTicketError {
    /// Another beginning.
    #[error("a ticket for mirrors begins with fontana://web/?manifest=")]
    Scheme,
    /// An invalid hash.
    #[error("in manifest=: {0}")]
    Manifest(HexError),
    /// An invalid address.
    #[error("in web=: {0}")]
    Address(#[from] WebAddressError),
    /// No address, too many, or a repeated one.
    #[error("a ticket has 1 to {max} different mirrors", max = WebAddress::MAX_COUNT)]
    Count,
}

impl WebTicket {
    /// Whether a text is meant to be such a ticket.
    pub fn is_meant(text: &str) -> bool {
        text.starts_with("fontana://web/")
    }
}

impl fmt::Display for WebTicket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}", self.manifest)?;
        self.web.iter().try_for_each(|address| write!(f, "{WEB}{address}"))
    }
}

impl FromStr for WebTicket {
    type Err = WebTicketError;

    fn from_str(text: &str) -> Result<Self, WebTicketError> {
        let mut parts = text.strip_prefix(SCHEME).ok_or(WebTicketError::Scheme)?.split('&');
        let hash = parts.next().unwrap_or_default();
        let manifest = hash.parse().map_err(WebTicketError::Manifest)?;
        let mut web: Vec<WebAddress> = Vec::new();
        for part in parts {
            let address = part.strip_prefix("web=").ok_or(WebTicketError::Scheme)?.parse()?;
            if web.len() >= WebAddress::MAX_COUNT || web.contains(&address) {
                return Err(WebTicketError::Count);
            }
            web.push(address);
        }
        if web.is_empty() {
            return Err(WebTicketError::Count);
        }
        Ok(Self { manifest, web })
    }
}
