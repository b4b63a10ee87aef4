//! A clock that is earlier than this program. With it a receiver takes what has expired.

use crate::progress::whole_seconds;
use fontana::ReceiveFormat;
use fontana_console::console::Console;
use fontana_console::units::Time;
use std::time::Duration;

/// Whether heads have to be valid now: those of a publisher, unless only one manifest will do.
pub(super) fn counts(format: &ReceiveFormat) -> bool {
    let ReceiveFormat::Fontana(fontana) = format else { return false };
    fontana.publisher.is_some() && fontana.manifest.is_none() && !fontana.ignore_expiry
}

/// Warns if the clock is wrong, and heads or reports depend on it.
pub(super) fn check(heeds_expiry: bool, reports: bool, console: &Console) {
    if let Some(early) = fontana::clock_is_early().filter(|_| heeds_expiry || reports) {
        let (message, hint) = describe(early, heeds_expiry);
        console.warning(&message, hint);
    }
}

fn describe(early: Duration, heeds_expiry: bool) -> (String, &'static str) {
    let early = Time(whole_seconds(early));
    let clock = format!("this host's clock is {early} before the date of this program");
    match heeds_expiry {
        true => (
            format!("{clock}: what has expired is received nevertheless"),
            "set the clock; or give a ticket with the hash of the manifest",
        ),
        false => (format!("{clock}: any request for reports is answered"), "set the clock"),
    }
}

/// The message and the hint if the publisher's clock is another one.
pub(super) fn differ(difference: Duration) -> (String, &'static str) {
    let difference = Time(whole_seconds(difference));
    (
        format!(
            "the publisher's clock and this host's are {difference} apart: reports go only to the \
             address that the ticket names"
        ),
        "set the clock that is wrong: date shows this host's",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use fontana::wire::{Hash, SecretKey};
    use fontana::{FluteReception, FontanaReception};

    #[test]
    fn the_clock_counts_for_heads_of_a_publisher() {
        let of = |has_key: bool, has_hash: bool, ignore_expiry| {
            let mut fontana = FontanaReception::default();
            fontana.publisher = has_key.then(|| SecretKey::from_seed(&[1; 32]).public_key());
            fontana.manifest = has_hash.then_some(Hash([0; 32]));
            fontana.ignore_expiry = ignore_expiry;
            counts(&ReceiveFormat::Fontana(fontana))
        };
        assert!(of(true, false, false));
        assert!(!of(false, false, false) && !of(true, true, false) && !of(true, false, true));
        assert!(!counts(&ReceiveFormat::Flute(FluteReception::default())));
    }

    #[test]
    fn a_clock_that_is_earlier_than_the_program_is_named_with_what_follows() {
        let days = Duration::from_secs(3 * 86_400);
        for (heeds_expiry, what) in [(true, "expired"), (false, "reports")] {
            let (text, _) = describe(days, heeds_expiry);
            assert!(text.starts_with("this host's clock is 3 days"), "{text}");
            assert!(text.contains(what), "{text}");
        }
        assert!(differ(days).0.contains("3 days"));
    }
}
