//! The standing of a session at the receiver.

/// What a receiver wants of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// It is not known yet what it carries.
    Unknown,
    /// Its manifest is known; the application has not accepted it yet.
    Offered,
    /// It carries what is being received.
    Accepted,
    /// It carries something else.
    Refused,
}
