//! The error of the packet parsers [`alc`](crate::alc), [`lct`](crate::lct) and
//! [`extension`](crate::extension).

/// Reason why a datagram is not an ALC packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PacketError {
    /// Shorter than the first word of a header.
    #[error("{actual} bytes are too few for an LCT header")]
    Truncated {
        /// Bytes in the datagram.
        actual: usize,
    },
    /// Not LCT version 1.
    #[error("LCT version {0}, only 1 is known")]
    Version(u8),
    /// The header's length exceeds the datagram, or does not hold the header's own fields.
    #[error("a header of {header_length} bytes in {available}")]
    HeaderLength {
        /// HDR_LEN in bytes.
        header_length: usize,
        /// Bytes available for the header.
        available: usize,
    },
    /// No session identifier. ALC requires one (RFC 5775, section 2.1).
    #[error("no transport session identifier")]
    NoTsi,
    /// An extension that has zero words, reaches beyond the header, or is too short for its type.
    #[error("header extension of type {het} is malformed")]
    Extension {
        /// Header extension type.
        het: u8,
    },
    /// Two extensions of one type, which may contradict each other.
    #[error("header extension of type {het} appears twice")]
    RepeatedExtension {
        /// Header extension type.
        het: u8,
    },
    /// More extensions than any standard needs.
    #[error("more than {limit} header extensions")]
    ExtensionCount {
        /// Number of extensions that are accepted.
        limit: usize,
    },
    /// The payload id format of this FEC Encoding ID is not known.
    #[error("FEC Encoding ID {0} is not supported")]
    EncodingId(u8),
    /// The bytes after the header are too few for a payload id.
    #[error("{actual} bytes after the header are too few for a payload id")]
    PayloadId {
        /// Bytes after the header.
        actual: usize,
    },
}
