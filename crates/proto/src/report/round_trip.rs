//! The time from a roll call to the answer of the receiver that is farthest away.

use crate::time::Instant;
use fontana_wire::RollCallEcho;
use std::collections::VecDeque;
use std::time::Duration;

/// Roll calls whose answers are measured.
const REMEMBERED: usize = 64;
/// Assumed before the first answer.
pub(super) const UNKNOWN_ROUND_TRIP: Duration = Duration::from_millis(500);
/// The largest that is believed.
const LONGEST: Duration = Duration::from_secs(5);
/// Time after which the largest of a period is forgotten.
const PERIOD: Duration = Duration::from_secs(30);

/// The largest round-trip time of the last half to whole minute.
#[derive(Debug, Default)]
pub(super) struct RoundTrip {
    /// Roll calls by serial number, and when each was issued.
    calls: VecDeque<(u64, Instant)>,
    /// Largest of the present period, and when it began.
    present: Option<(Duration, Instant)>,
    /// Largest of the period before.
    before: Option<Duration>,
}

impl RoundTrip {
    pub(super) fn call(&mut self, now: Instant, serial: u64) {
        if self.calls.len() >= REMEMBERED {
            self.calls.pop_front();
        }
        self.calls.push_back((serial, now));
    }

    /// The time of an answer that arrives now; `None` if its roll call is not remembered, or the
    /// receiver does not know when it came. One that claims to be older than that counts as
    /// immediate.
    pub(super) fn of(&self, now: Instant, echo: RollCallEcho) -> Option<Duration> {
        if echo.held_us == RollCallEcho::UNKNOWN {
            return None;
        }
        let &(_, at) = self.calls.iter().find(|(serial, _)| *serial == echo.serial)?;
        let held = Duration::from_micros(echo.held_us.into());
        Some(now.saturating_since(at).saturating_sub(held).min(LONGEST))
    }

    /// An answer has arrived.
    pub(super) fn answer(&mut self, now: Instant, echo: RollCallEcho) {
        let Some(sample) = self.of(now, echo) else { return };
        self.present = Some(match self.present {
            Some((largest, since)) if now < since + PERIOD => (largest.max(sample), since),
            last => {
                self.before = last.map(|(largest, _)| largest);
                (sample, now)
            }
        });
    }

    /// The largest time.
    pub(super) fn largest(&self) -> Duration {
        let present = self.present.map(|(largest, _)| largest);
        present.into_iter().chain(self.before).max().unwrap_or(UNKNOWN_ROUND_TRIP)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_round_trip_is_forgotten_after_a_minute() {
        let mut trip = RoundTrip::default();
        let mut answer = |serial: u64, at_s: u64, after: Duration| {
            let at = Instant::ZERO + Duration::from_secs(at_s);
            trip.call(at, serial);
            trip.answer(at + after, RollCallEcho { serial, held_us: 0 });
            trip.largest()
        };
        let (long, short) = (Duration::from_secs(4), Duration::from_millis(5));
        assert_eq!(answer(1, 0, long), long);
        assert_eq!(answer(2, 20, short), long);
        assert_eq!(answer(3, 40, short), long);
        assert_eq!(answer(4, 80, short), short);
    }
}
