//! Errors as values.

use fontana::{Error, ErrorKind, Outcome};
use fontana_console::exit;
use std::fmt;
use std::sync::Arc;

/// An error: its kind, its outcome, and what is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The kind, by which a program handles it. `None`: an argument is invalid.
    pub kind: Option<ErrorKind>,
    /// The outcome of a session that ends with it.
    pub outcome: Outcome,
    /// What is wrong, with the values.
    pub message: String,
}

impl Failure {
    /// The name of the kind of invalid arguments.
    pub const ARGUMENT: &'static str = "Argument";

    /// An argument that the caller has to change.
    pub fn argument(name: &str, reason: impl fmt::Display) -> Self {
        Self { kind: None, outcome: Outcome::Usage, message: format!("{name}: {reason}") }
    }

    /// The errors of the parts of a session that were given up.
    pub fn of_parts(errors: &[Arc<Error>]) -> Vec<Self> {
        errors.iter().map(|error| Self::from(&**error)).collect()
    }

    /// The name of the kind.
    pub fn kind_name(&self) -> String {
        self.kind.map_or_else(|| Self::ARGUMENT.to_owned(), |kind| format!("{kind:?}"))
    }

    /// The code: the program's exit code.
    pub fn code(&self) -> u8 {
        exit::code(self.outcome)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::from(&error)
    }
}

impl From<&Error> for Failure {
    fn from(error: &Error) -> Self {
        Self { kind: Some(error.kind()), outcome: error.outcome(), message: error.to_string() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}
