//! Lines of `--json`: one event each.

use fontana::{Outcome, Rejection, Verified};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The line of an event, with its line feed.
pub fn line(event: &impl Serialize) -> String {
    // Events have no maps and no fallible parts: their serialization does not fail.
    serde_json::to_string(event).map_or_else(|_| String::new(), |json| json + "\n")
}

/// Events of every command.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[expect(missing_docs, reason = "docs/events.md describes every event and field")]
pub enum Notice {
    Warning { message: String, hint: String },
    Error { message: String, hint: String, code: u8 },
    Dropped { events: u64 },
}

/// Seconds, rounded to microseconds.
pub fn seconds(duration: Duration) -> f64 {
    rounded(duration.as_secs_f64())
}

/// Rounds to six digits after the point, which is more than the accuracy of any field.
pub fn rounded(number: f64) -> f64 {
    (number * 1e6).round() / 1e6
}

/// The word for an outcome.
pub fn verdict(verdict: Outcome) -> &'static str {
    match verdict {
        Outcome::Complete => "complete",
        Outcome::Usage => "usage",
        Outcome::Incomplete => "incomplete",
        Outcome::VerificationFailed => "verification_failed",
        Outcome::Io => "io",
        Outcome::Refused => "refused",
        Outcome::Authentication => "authentication",
        Outcome::SourceChanged => "source_changed",
        Outcome::ReceiversIncomplete => "receivers_incomplete",
        Outcome::InternalError => "internal_error",
        Outcome::NothingReceived => "nothing_received",
        Outcome::Interrupted => "interrupted",
    }
}

/// The word for a way of verification.
pub fn verified(verified: Verified) -> &'static str {
    match verified {
        Verified::None => "none",
        Verified::Digest => "digest",
        Verified::Signed => "signed",
    }
}

/// The word for the reason of a rejection.
pub fn rejection(reason: Rejection) -> &'static str {
    match reason {
        Rejection::OtherSession => "other_session",
        Rejection::OtherManifest => "other_manifest",
        Rejection::WrongKey => "wrong_key",
        Rejection::Expired { .. } => "expired",
        Rejection::OldVersion { .. } => "old_version",
        Rejection::BadManifest => "bad_manifest",
        Rejection::TooLarge => "too_large",
        Rejection::TooFast => "too_fast",
        Rejection::NewerFormat(_) => "newer_format",
        Rejection::UnknownRecord(_) => "unknown_record",
    }
}
