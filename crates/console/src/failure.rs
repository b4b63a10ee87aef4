//! The error of a command.

use crate::hints::hint;
use fontana::net::ThreadError;
use fontana::{Error, Outcome};

/// The error of a command, with a hint, and with the outcome that determines the exit code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What the program ends with.
    pub outcome: Outcome,
    /// The error, without a full stop.
    pub message: String,
    /// What the user can do; empty if the message says it.
    pub hint: String,
}

impl Failure {
    /// `hint`: what the user can do.
    pub fn new(outcome: Outcome, message: impl Into<String>, hint: impl Into<String>) -> Self {
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
