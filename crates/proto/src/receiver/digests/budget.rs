//! The limit on signatures that are checked: an attacker can send lists at any rate.

use crate::time::Instant;
use std::time::Duration;

/// Time between two checks of signatures: 2 % of a core. An honest sender needs one for 6 144
/// symbols, 150 in a second at 10 Gbit/s. An attacker who sends other lists gets the checks in
/// proportion to the packets, and each of the 128 packets of a group is enough.
const CHECK_INTERVAL: Duration = Duration::from_micros(2_500);
/// Checks that may follow each other at once: groups of several senders, and short first groups.
pub(super) const MAX_CHECKS_AT_ONCE: u32 = 16;

/// The limit on signatures that are checked: a token bucket.
#[derive(Debug)]
pub(super) struct CheckBudget {
    checks: u32,
    /// Time up to which `checks` has grown.
    grown_until: Instant,
}

impl Default for CheckBudget {
    fn default() -> Self {
        Self { checks: MAX_CHECKS_AT_ONCE, grown_until: Instant::ZERO }
    }
}

impl CheckBudget {
    /// Whether a signature may be checked now; counts the check if so.
    pub(super) fn permit(&mut self, now: Instant) -> bool {
        let since = now.saturating_since(self.grown_until);
        let grown = since.as_micros().checked_div(CHECK_INTERVAL.as_micros()).unwrap_or(0);
        let grown = u32::try_from(grown).unwrap_or(u32::MAX);
        if grown >= MAX_CHECKS_AT_ONCE {
            (self.checks, self.grown_until) = (MAX_CHECKS_AT_ONCE, now);
        } else {
            self.checks = self.checks.saturating_add(grown).min(MAX_CHECKS_AT_ONCE);
            self.grown_until = self.grown_until + CHECK_INTERVAL.saturating_mul(grown);
        }
        let is_left = self.checks > 0;
        self.checks = self.checks.saturating_sub(1);
        is_left
    }
}
