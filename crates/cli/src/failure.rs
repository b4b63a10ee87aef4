//! Why a command failed.

use crate::hints::hint;
use fontana::net::ThreadError;
use fontana::{Error, Outcome};

/// Why a command failed: for people, with a hint, and the outcome that decides on the exit code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// The outcome.
    pub(crate) outcome: Outcome,
    /// What happened, without a full stop.
    pub(crate) message: String,
    /// What to do about it; empty if the message says it.
    pub(crate) hint: String,
}

impl Failure {
    pub(crate) fn new(
        outcome: Outcome,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self { outcome, message: message.into(), hint: hint.into() }
    }
}

impl From<&Error> for Failure {
    fn from(error: &Error) -> Self {
        Self::new(error.outcome(), error.to_string(), hint(error.kind()))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::from(&error)
    }
}

impl From<ThreadError> for Failure {
    fn from(error: ThreadError) -> Self {
        Self::from(Error::from(error))
    }
}
