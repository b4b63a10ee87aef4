//! Clocks of receivers that are not this host's.

use crate::progress::whole_seconds;
use fontana::reports::ReceiverStatus;
use fontana_console::units::Time;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What a user does about it.
pub(super) const HINT: &str = "set the clock that is wrong: date shows this host's";

/// A difference that has no consequence: roll calls count for so long after they were issued.
const ALLOWED: Duration = Duration::from_secs(60);

/// The message if the clock of a receiver that has reported just now is another one.
pub(super) fn differ(status: &ReceiverStatus, name: &str) -> Option<String> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    // A report says when the program started by its clock, and how long ago that was.
    let started = Duration::from_millis(status.report.started_unix_ms);
    let theirs = started.saturating_add(Duration::from_secs(status.report.seconds.into()));
    describe(theirs, now, name)
}

fn describe(theirs: Duration, ours: Duration, name: &str) -> Option<String> {
    let difference = theirs.abs_diff(ours);
    let (time, is_behind) = (Time(whole_seconds(difference)), theirs < ours);
    let is = if is_behind { "behind" } else { "ahead of" };
    (difference > ALLOWED).then(|| format!("the clock of {name} is {time} {is} this host's"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_differs_by_more_than_a_minute() {
        let at = |minutes: u64| Duration::from_secs(60 * minutes);
        assert_eq!(describe(at(10), at(11), "rack-1"), None);
        assert_eq!(describe(at(12), at(11), "rack-1"), None);
        let message = |theirs, ours| describe(at(theirs), at(ours), "rack-1").unwrap();
        assert_eq!(message(10, 130), "the clock of rack-1 is 2 h 00 min behind this host's");
        assert_eq!(message(250, 130), "the clock of rack-1 is 2 h 00 min ahead of this host's");
    }
}
