//! A clock that shows an earlier time than that of this program: expired heads pass.

use crate::args::ReceiveArguments;
use crate::console::Console;
use crate::progress::whole_seconds;
use crate::units::Time;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The date of this program, in unix seconds: 2026-11-20. A constant, so that builds can be
/// reproduced. Each release sets it.
const WRITTEN: Duration = Duration::from_secs(1_795_132_800);

/// Warns if the clock is wrong, and the expiry of what is received counts.
pub(super) fn check(arguments: &ReceiveArguments, console: &Console) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    if heeds_expiry(arguments)
        && let Some(message) = message(now)
    {
        console.warning(&message, "set the clock; or give a ticket with the hash of the manifest");
    }
}

/// Whether heads have to be valid now: those of a publisher, unless only one manifest will do.
fn heeds_expiry(arguments: &ReceiveArguments) -> bool {
    let ticket = arguments.ticket();
    let key = arguments.key.or(ticket.and_then(|ticket| ticket.key));
    let manifest = ticket.and_then(|ticket| ticket.manifest).filter(|_| !arguments.watch);
    key.is_some() && manifest.is_none() && !arguments.ignore_expiry
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

    #[test]
    fn a_clock_that_is_earlier_than_the_program_is_named() {
        assert_eq!(message(WRITTEN), None);
        assert_eq!(message(WRITTEN + Duration::from_secs(1)), None);
        let text = message(WRITTEN - Duration::from_secs(3 * 86_400)).unwrap();
        assert!(text.starts_with("this host's clock is 3 days"), "{text}");
    }
}
