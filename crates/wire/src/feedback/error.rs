//! Why bytes are no datagram to a collector.

use crate::key::KeyError;
use crate::receiver_id::LabelError;

/// Reason why bytes are neither a report nor a request, or why they are not trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FeedbackError {
    /// More bytes than a report or a request has.
    #[error("{actual} bytes are more than a report or request has")]
    Size {
        /// Number of bytes.
        actual: usize,
    },
    /// Bytes that do not begin as a report or a request.
    #[error("neither a report nor a repair request of Fontana")]
    Magic,
    /// Bytes that end too early.
    #[error("{actual} bytes are too few for this report or request")]
    Truncated {
        /// Number of bytes.
        actual: usize,
    },
    /// Unknown flags.
    #[error("a report or request with the unknown flags {0:#04x}")]
    Flags(u8),
    /// An encrypted datagram, and no key.
    #[error("it is encrypted, and the session has no group key")]
    Encrypted,
    /// A plain datagram in a session with a group key.
    #[error("it is not encrypted, and the session has a group key")]
    NotEncrypted,
    /// An invalid tag.
    #[error("the tag does not match")]
    Tag,
    /// An unknown state, or an exit code with a state that has none.
    #[error("a report with the unknown state {0}")]
    State(u8),
    /// A share above one.
    #[error("a share above one")]
    Share,
    /// Blocks that are not in ascending order, or nothing that is lacking.
    #[error("a request whose blocks are not in ascending order, or that lacks nothing")]
    Blocks,
    /// A time of no length.
    #[error("a rate report on 0 us")]
    Window,
    /// A weight out of range.
    #[error("a rate report with the weight {0}, which is not 1 to 100")]
    Weight(u8),
    /// An invalid label.
    #[error(transparent)]
    Label(#[from] LabelError),
    /// An invalid key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// Bytes after the content.
    #[error("{count} bytes follow the report or request")]
    TrailingBytes {
        /// Number of bytes.
        count: usize,
    },
}
