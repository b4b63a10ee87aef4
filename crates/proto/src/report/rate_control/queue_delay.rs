//! The delay of queues on the way to a receiver and back. Where other traffic fills a queue, it
//! shows before packets are lost.

use crate::time::Instant;
use std::collections::VecDeque;
use std::time::Duration;

/// Rounds whose delays have to agree.
const ROUNDS: usize = 3;
/// A queue is there, and it stands, if it delays packets by so much; and by so much of the least
/// time of the path.
const LONG: Duration = Duration::from_millis(4);
const STANDING: Duration = Duration::from_millis(10);
const PART: u32 = 8;
/// A queue that becomes shorter from round to round does not stand.
const SHORTER: Duration = Duration::from_millis(1);
/// Time after which the least time of a period is forgotten. Other traffic may keep a queue from
/// ever being empty, and a sender that took that for the path would starve it (RFC 6817, section
/// 3.4.2, has ten minutes as well).
const PERIOD: Duration = Duration::from_secs(300);

/// Round-trip times of a receiver: the least one is that of its path.
#[derive(Clone, Debug, Default)]
pub(super) struct QueueDelay {
    /// Least of the present period, and when that began.
    present: Option<(Duration, Instant)>,
    /// Least of the period before.
    before: Option<Duration>,
    /// The last ones at the present rate.
    last: VecDeque<Duration>,
    /// The round from which on the rate is the present one.
    since: u32,
}

impl QueueDelay {
    /// A report has taken so long, at a rate since this round.
    pub(super) fn note(&mut self, now: Instant, round_trip: Duration, since: u32) {
        self.present = Some(match self.present {
            Some((least, began)) if now < began + PERIOD => (least.min(round_trip), began),
            last => {
                self.before = last.map(|(least, _)| least);
                (round_trip, now)
            }
        });
        if std::mem::replace(&mut self.since, since) != since {
            self.last.clear();
        }
        if self.last.len() >= ROUNDS {
            self.last.pop_front();
        }
        self.last.push_back(round_trip);
    }

    /// The longest time with a queue that does not delay more than this; `None` before the first
    /// one.
    fn most(&self, delay: Duration) -> Option<Duration> {
        let present = self.present.map(|(least, _)| least);
        let least = present.into_iter().chain(self.before).min()?;
        Some(least + delay.max(least / PART))
    }

    /// The last time; `None` if there is none at the present rate.
    pub(super) fn last(&self) -> Option<Duration> {
        self.last.back().copied()
    }

    /// Whether the rate is the present one for some rounds.
    pub(super) fn is_settled(&self) -> bool {
        self.last.len() >= ROUNDS
    }

    /// Whether there was a queue in the last round, which may have dropped packets.
    pub(super) fn is_long(&self) -> bool {
        self.exceeds(LONG)
    }

    /// Whether it was so long that it is not the hosts which are busy.
    pub(super) fn is_certain(&self) -> bool {
        self.exceeds(STANDING)
    }

    fn exceeds(&self, delay: Duration) -> bool {
        self.most(delay).is_some_and(|most| self.last.back().is_some_and(|&time| time > most))
    }

    /// Whether a queue stands, or grows, at the present rate.
    pub(super) fn stands(&self) -> bool {
        let Some(most) = self.most(STANDING) else { return false };
        let shortens = match (self.last.front(), self.last.back()) {
            (Some(&first), Some(&last)) => last + SHORTER < first,
            _ => true,
        };
        self.last.len() >= ROUNDS && !shortens && self.last.iter().all(|&time| time > most)
    }
}
