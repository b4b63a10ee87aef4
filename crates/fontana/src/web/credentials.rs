//! What a user sends to mirrors that ask who it is.

use data_encoding::BASE64;
use fontana_wire::WebAddress;
use std::fmt;
use ureq::http::{HeaderName, HeaderValue, header};
use url::Url;

/// Fields that a request determines, or that would change what its answer is.
const RESERVED: [HeaderName; 11] = [
    header::HOST,
    header::RANGE,
    header::IF_RANGE,
    header::ACCEPT_ENCODING,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::CONNECTION,
    header::EXPECT,
    header::TE,
    header::TRAILER,
    header::UPGRADE,
];

/// A field of the requests to one mirror (RFC 9110, section 5): a token, or a name and a password.
///
/// It is sent to the scheme, host and port of the mirror's address alone. A redirect to another
/// host does not get it.
#[derive(Clone, PartialEq, Eq)]
pub struct MirrorHeader {
    mirror: WebAddress,
    name: HeaderName,
    value: HeaderValue,
}

/// Reason why a field cannot be sent. The field is not shown: it may be a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MirrorHeaderError {
    /// It has no colon.
    #[error("it is not of the form NAME: VALUE")]
    Form,
    /// The name has other characters than a token.
    #[error("its name is not a token (RFC 9110, section 5.1)")]
    Name,
    /// The value has control characters, or others than of ASCII.
    #[error("its value is not visible text (RFC 9110, section 5.5)")]
    Value,
    /// Requests have such a field, which the receiver determines.
    #[error("requests have a field of this name, which the receiver determines")]
    Reserved,
}

impl MirrorHeader {
    /// The field that is written `NAME: VALUE`.
    ///
    /// # Errors
    /// [`MirrorHeaderError`]
    pub fn parse(mirror: WebAddress, field: &str) -> Result<Self, MirrorHeaderError> {
        let (name, value) = field.split_once(':').ok_or(MirrorHeaderError::Form)?;
        let name: HeaderName = name.trim().parse().map_err(|_| MirrorHeaderError::Name)?;
        if RESERVED.contains(&name) {
            return Err(MirrorHeaderError::Reserved);
        }
        let mut value: HeaderValue = value.trim().parse().map_err(|_| MirrorHeaderError::Value)?;
        value.set_sensitive(true);
        Ok(Self { mirror, name, value })
    }

    /// A name and a password (basic authentication, RFC 7617).
    ///
    /// # Errors
    /// [`MirrorHeaderError::Value`]: the name has a colon.
    pub fn basic(
        mirror: WebAddress,
        user: &str,
        password: &str,
    ) -> Result<Self, MirrorHeaderError> {
        if user.contains(':') {
            return Err(MirrorHeaderError::Value);
        }
        let encoded = BASE64.encode(format!("{user}:{password}").as_bytes());
        Self::parse(mirror, &format!("{}: Basic {encoded}", header::AUTHORIZATION))
    }

    /// The mirror that it is for.
    pub fn mirror(&self) -> &WebAddress {
        &self.mirror
    }

    /// Name and value, if a request to this address has the field.
    pub(super) fn for_request(&self, to: &Url) -> Option<(&HeaderName, &HeaderValue)> {
        let mirror = Url::parse(self.mirror.as_str()).ok()?;
        (mirror.origin() == to.origin()).then_some((&self.name, &self.value))
    }
}

impl fmt::Debug for MirrorHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MirrorHeader({}: ... for {})", self.name, self.mirror)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mirror() -> WebAddress {
        "https://a.example/pub/".parse().unwrap()
    }

    #[test]
    fn a_field_goes_to_the_mirror_and_to_no_other_host() {
        let field = MirrorHeader::parse(mirror(), "Authorization: Bearer abc").unwrap();
        let is_sent = |to: &str| field.for_request(&Url::parse(to).unwrap()).is_some();
        assert!(is_sent("https://a.example/pub/x") && is_sent("https://a.example:443/y"));
        for other in ["http://a.example/", "https://a.example:444/", "https://b.a.example/pub/"] {
            assert!(!is_sent(other), "{other}");
        }
        assert!(!format!("{field:?}").contains("abc"));
    }

    #[test]
    fn a_name_and_a_password_are_those_of_rfc_7617() {
        // Section 2 of the RFC.
        let field = MirrorHeader::basic(mirror(), "Aladdin", "open sesame").unwrap();
        assert_eq!(field.value, "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
        assert_eq!(MirrorHeader::basic(mirror(), "a:b", ""), Err(MirrorHeaderError::Value));
    }

    #[test]
    fn a_field_that_is_none_is_refused() {
        use MirrorHeaderError::{Form, Name, Reserved, Value};
        for (field, error) in [
            ("Authorization", Form),
            (": x", Name),
            ("a b: x", Name),
            ("a: x\ny: z", Value),
            ("RANGE: bytes=0-", Reserved),
            ("Host: other", Reserved),
        ] {
            assert_eq!(MirrorHeader::parse(mirror(), field), Err(error), "{field}");
        }
    }
}
