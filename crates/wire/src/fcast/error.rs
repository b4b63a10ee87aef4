//! The error of the FCAST parsers.

use crate::id::Toi;
use crate::printable::Printable;

/// Reason why bytes are not a compound object or a descriptor.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FcastError {
    /// An object that is shorter than its header.
    #[error("an FCAST header of {expected} bytes in an object of {actual}")]
    Truncated {
        /// Size of the header in bytes, padding included.
        expected: u64,
        /// Size of the object in bytes.
        actual: u64,
    },
    /// A version other than 0.
    #[error("FCAST version {0}, only 0 is known")]
    Version(u8),
    /// A header length that is less than the size of the fixed fields.
    #[error("an FCAST header of {0} bytes, at least 8 are needed")]
    HeaderLength(u32),
    /// A size above the limit of a receiver.
    #[error("more than {limit} {what}")]
    Limit {
        /// Name of the limited quantity.
        what: &'static str,
        /// Largest value allowed.
        limit: usize,
    },
    /// A metadata format other than that of HTTP/1.1.
    #[error("FCAST metadata format {0}, only 0 is known")]
    Format(u8),
    /// A metadata encoding other than UTF-8 and gzip.
    #[error("FCAST metadata encoding {0}, only 0 and 1 are known")]
    Encoding(u8),
    /// A wrong checksum.
    #[error("the FCAST checksum is wrong")]
    Checksum,
    /// Compressed metadata or a compressed list that cannot be decompressed.
    #[error("{what} cannot be decoded: {reason}")]
    ContentEncoding {
        /// Name of the compressed part.
        what: &'static str,
        /// Message of the decoder.
        reason: String,
    },
    /// Metadata that are not UTF-8.
    #[error("the FCAST metadata are not UTF-8")]
    Utf8,
    /// A line that is not `Name: value`.
    #[error("the FCAST metadata have a line {line:?}")]
    Line {
        /// The line, truncated for display.
        line: String,
    },
    /// A value that does not have the type of its entry.
    #[error("the FCAST metadata entry {name} has the value {value:?}")]
    Value {
        /// Name of the entry.
        name: &'static str,
        /// Its value, truncated for display.
        value: String,
    },
    /// Two values for one entry.
    #[error("the FCAST metadata have two entries {name}")]
    Repeated {
        /// Name of the entry.
        name: &'static str,
    },
    /// A slice of which some entries are missing, or whose index is not less than their number.
    #[error("the FCAST metadata describe no slice of a file")]
    Slice,
    /// A list element that cannot be parsed.
    #[error("the FCAST object list has an element {element:?}")]
    Element {
        /// The element, truncated for display.
        element: String,
    },
    /// An object that a descriptor lists twice.
    #[error("the FCAST object list names TOI {0} twice")]
    RepeatedToi(Toi),
}

/// The beginning of a received text, escaped for display.
pub(super) fn excerpt(text: &str) -> String {
    /// Longest excerpt in characters.
    const SHOWN: usize = 60;
    Printable(text.chars().take(SHOWN).collect::<String>()).to_string()
}
