//! The exit code of each outcome: part of the program's interface, listed in `docs/events.md`.

use fontana::Outcome;
use std::process::ExitCode;

/// The exit code; also the field `code` of events.
pub const fn code(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Complete => 0,
        Outcome::Usage => 2,
        Outcome::Incomplete => 3,
        Outcome::VerificationFailed => 4,
        Outcome::Io => 5,
        Outcome::Refused => 6,
        Outcome::Authentication => 7,
        Outcome::SourceChanged => 8,
        Outcome::ReceiversIncomplete => 9,
        // EX_SOFTWARE of sysexits.h: an internal error.
        Outcome::InternalError => 70,
        // EX_TEMPFAIL of sysexits.h: try again later.
        Outcome::NothingReceived => 75,
        // 128 plus the number of SIGINT, as in shells.
        Outcome::Interrupted => 130,
    }
}

/// The exit code as the process returns it.
pub fn status(outcome: Outcome) -> ExitCode {
    ExitCode::from(code(outcome))
}
