//! Why bytes are not a compound object.

use crate::id::Toi;
use crate::printable::Printable;

/// Why bytes are not a compound object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FcastError {
    /// Shorter than its header.
    #[error("an FCAST header of {expected} bytes in an object of {actual}")]
    Truncated {
        /// Bytes that the header takes, padding included.
        expected: u64,
        /// Bytes there are.
        actual: u64,
    },
    /// Not version 0.
    #[error("FCAST version {0}, only 0 is known")]
    Version(u8),
    /// The header says to be shorter than its own fields.
    #[error("an FCAST header of {0} bytes, at least 8 are needed")]
    HeaderLength(u32),
    /// More than a receiver is ready to look at.
    #[error("more than {limit} {what}")]
    Limit {
        /// What there is too much of.
        what: &'static str,
        /// How much there may be.
        limit: usize,
    },
    /// A metadata format that is not HTTP/1.1's.
    #[error("FCAST metadata format {0}, only 0 is known")]
    Format(u8),
    /// A metadata encoding that is neither UTF-8 nor gzip.
    #[error("FCAST metadata encoding {0}, only 0 and 1 are known")]
    Encoding(u8),
    /// The checksum is not right.
    #[error("the FCAST checksum is wrong")]
    Checksum,
    /// Compressed metadata, or a compressed list, that cannot be decompressed.
    #[error("{what} cannot be decoded: {reason}")]
    ContentEncoding {
        /// What was compressed.
        what: &'static str,
        /// Why not.
        reason: String,
    },
    /// Metadata that are not UTF-8.
    #[error("the FCAST metadata are not UTF-8")]
    Utf8,
    /// A line that is not `Name: value`.
    #[error("the FCAST metadata have a line {line:?}")]
    Line {
        /// The line, cut to a length that can be shown.
        line: String,
    },
    /// A value that is not of its entry's type.
    #[error("the FCAST metadata entry {name} has the value {value:?}")]
    Value {
        /// The entry.
        name: &'static str,
        /// Its value, cut to a length that can be shown.
        value: String,
    },
    /// Two values for one entry.
    #[error("the FCAST metadata have two entries {name}")]
    Repeated {
        /// The entry.
        name: &'static str,
    },
    /// Some of the three entries that describe a slice, but not all, or an index beyond their number.
    #[error("the FCAST metadata describe no slice of a file")]
    Slice,
    /// The list of a descriptor is not one.
    #[error("the FCAST object list has an element {element:?}")]
    Element {
        /// The element, cut to a length that can be shown.
        element: String,
    },
    /// An object that a descriptor lists twice.
    #[error("the FCAST object list names TOI {0} twice")]
    RepeatedToi(Toi),
}

/// The beginning of a text from outside, made safe to show.
pub(super) fn excerpt(text: &str) -> String {
    /// As much as a message can have of it.
    const SHOWN: usize = 60;
    Printable(text.chars().take(SHOWN).collect::<String>()).to_string()
}
