//! What an automatic rate was before a path came to carry far less: a radio that is farther away,
//! another flow. The path may carry as much again at any time, and trials of a few per cent would
//! take minutes to find that.

use super::known::Known;
use super::rivals::Rivals;
use super::{Phase, RateControl, SILENCE_OF_ONE, SILENT_ROUNDS};
use crate::time::Instant;
use std::time::Duration;

/// Part of the rate before below which a fall is far.
const FAR: f64 = 0.5;
/// Time from the fall after which the rate doubles again, at first and at most: it doubles as long
/// as the paths permit.
const WAITS: std::ops::RangeInclusive<Duration> = Duration::from_secs(8)..=Duration::from_secs(16);
/// Part of the rate before at which it is there again, and time in which it has to stay: the losses
/// of a path that has become worse may be taken for errors of its line for a while.
const RECOVERED: f64 = 0.9;
const STAYS: Duration = Duration::from_secs(5);
/// Time after which it is forgotten.
const FOR: Duration = Duration::from_secs(300);

/// A rate to return to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recovery {
    /// The rate before.
    rate: f64,
    /// When it has fallen.
    since: Instant,
    /// When it is tried next, and the wait after that.
    at: Instant,
    wait: Duration,
    /// Since when it is there.
    is_there: Option<Instant>,
}

impl Recovery {
    /// The rate falls to `lower`; `None`: that is not far.
    pub(super) fn of_fall(now: Instant, rate: f64, lower: f64) -> Option<Self> {
        let wait = *WAITS.start();
        let far = Self { rate, since: now, at: now + wait, wait, is_there: None };
        (lower < FAR * rate).then_some(far)
    }

    /// Whether the rate is there again, and stays, or is too long ago.
    pub(super) fn is_over(&mut self, now: Instant, rate: f64) -> bool {
        if rate < RECOVERED * self.rate {
            self.is_there = None;
            return now >= self.since + FOR;
        }
        now >= *self.is_there.get_or_insert(now) + STAYS
    }

    /// Whether an attempt is due, which then begins.
    pub(super) fn attempts(&mut self, now: Instant) -> bool {
        let attempts = now >= self.at;
        if attempts {
            self.wait = (2 * self.wait).min(*WAITS.end());
            self.at = now + self.wait;
        }
        attempts
    }
}

impl RateControl {
    /// Doubles an automatic rate again if the receiver has gone for which it was lowered: what the
    /// paths of the others carry is not known.
    pub(super) fn restart_without_limit(&mut self) {
        let Some(receiver) = self.limited_by else { return };
        let silent_for = SILENCE_OF_ONE.max(SILENT_ROUNDS * self.interval);
        let counts = |known: &Known| {
            !known.has_finished && (!self.has_few() || self.ran_at < known.heard_at + silent_for)
        };
        if !self.receivers.get(&receiver).is_some_and(counts) {
            self.limited_by = None;
            self.rivals = Rivals::new(self.ran_at);
            self.forget_trials();
            self.start_again();
        }
    }

    /// Doubles the rate again some time after it has fallen far, where there is no queue now.
    pub(super) fn recover(&mut self, now: Instant) {
        let Some(recovery) = &mut self.recovery else { return };
        if recovery.is_over(now, self.rate) {
            self.recovery = None;
        } else if self.rivals.has_gone(now)
            && matches!(self.phase, Phase::Steady { .. } | Phase::Shared(_))
            && recovery.attempts(now)
        {
            self.rivals = Rivals::new(now);
            self.forget_trials();
            self.start_again();
        }
    }

    /// The rate doubles again from where it is. A queue that is there now is not the sender's.
    pub(super) fn start_again(&mut self) {
        let receivers = self.receivers.values_mut();
        receivers.for_each(|known| {
            (known.was_queued, known.carries) = (known.delay.is_certain(), None);
        });
        self.change(self.rate, Phase::Start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_to_return_to_is_forgotten_when_it_stays_or_after_five_minutes() {
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        assert!(Recovery::of_fall(at(0), 100.0, 60.0).is_none(), "not far");
        let mut recovery = Recovery::of_fall(at(0), 100.0, 10.0).unwrap();
        assert!(!recovery.is_over(at(10), 95.0) && !recovery.is_over(at(12), 20.0));
        assert!(!recovery.is_over(at(13), 95.0) && !recovery.is_over(at(17), 95.0), "it fell");
        assert!(recovery.is_over(at(18), 95.0));
        let mut recovery = Recovery::of_fall(at(0), 100.0, 10.0).unwrap();
        assert!(!recovery.is_over(at(299), 20.0) && recovery.is_over(at(300), 20.0));
    }
}
