//! A clock that is earlier than this program. With it a receiver takes what has expired.

use crate::progress::whole_seconds;
use fontana::ReceiveFormat;
use fontana_console::console::Console;
use fontana_console::units::Time;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The date of this program, in unix seconds: 2026-11-20. A constant, so that builds can be
/// reproduced. Each release sets it.
const WRITTEN: Duration = Duration::from_secs(1_795_132_800);

/// Whether heads have to be valid now: those of a publisher, unless only one manifest will do.
pub(super) fn counts(format: &ReceiveFormat) -> bool {
    let ReceiveFormat::Fontana(fontana) = format else { return false };
    fontana.publisher.is_some() && fontana.manifest.is_none() && !fontana.ignore_expiry
}

/// Warns if the clock is wrong.
pub(super) fn check(console: &Console) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    if let Some(message) = message(now) {
        console.warning(&message, "set the clock; or give a ticket with the hash of the manifest");
    }
}

fn message(now: Duration) -> Option<String> {
    let early = WRITTEN.checked_sub(now).filter(|early| !early.is_zero())?;
    let early = Time(whole_seconds(early));
    Some(format!(
        "this host's clock is {early} before the date of this program: what has expired is \
         received nevertheless"
    ))
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
    fn a_clock_that_is_earlier_than_the_program_is_named() {
        assert_eq!(message(WRITTEN), None);
        assert_eq!(message(WRITTEN + Duration::from_secs(1)), None);
        let text = message(WRITTEN - Duration::from_secs(3 * 86_400)).unwrap();
        assert!(text.starts_with("this host's clock is 3 days"), "{text}");
    }
}
