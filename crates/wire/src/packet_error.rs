//! Why a datagram is not an ALC packet: the error of [`alc`](crate::alc), [`lct`](crate::lct) and
//! [`extension`](crate::extension).

/// Why a datagram is not a packet.
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
    /// The header says to be longer than the datagram, or shorter than its own fields.
    #[error("a header of {header_length} bytes in {available}")]
    HeaderLength {
        /// HDR_LEN in bytes.
        header_length: usize,
        /// Bytes there are for it.
        available: usize,
    },
    /// ALC has no packets without a session (RFC 5775, section 2.1).
    #[error("no transport session identifier")]
    NoTsi,
    /// An extension of zero words, one that passes the header's end, or one that is too short for
    /// what its type says.
    #[error("header extension of type {het} is malformed")]
    Extension {
        /// Header extension type.
        het: u8,
    },
    /// Two extensions that could contradict each other.
    #[error("header extension of type {het} appears twice")]
    RepeatedExtension {
        /// Header extension type.
        het: u8,
    },
    /// More extensions than any standard needs.
    #[error("more than {limit} header extensions")]
    ExtensionCount {
        /// How many are accepted.
        limit: usize,
    },
    /// The payload id of this FEC Encoding ID is not known.
    #[error("FEC Encoding ID {0} is not supported")]
    EncodingId(u8),
    /// Something follows the header, and it is shorter than a payload id.
    #[error("{actual} bytes after the header are too few for a payload id")]
    PayloadId {
        /// Bytes after the header.
        actual: usize,
    },
}
