//! The delay of queues on the way to a receiver and back. Where other traffic fills a queue, it
//! shows before packets are lost.

use crate::time::Instant;
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
/// Times in a mean, and the fewest that say something.
const MEAN: u32 = 16;
const FEWEST: u32 = 6;
/// Part of the range of times by which they differ from round to round if they vary at random: a
/// third, if all of the range are equally probable. Those of a queue differ by less. Only times
/// that become shorter are counted, twice: a queue that grows is none that varies.
const RANDOM: u32 = 8;
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
    /// The longest lately: it approaches what is shorter.
    longest: Duration,
    /// Twice the mean by which one is shorter than the one before, and how many count.
    difference: Duration,
    differences: u32,
    latest: Option<Duration>,
    /// The last ones at the present rate, the latest first, and how many there are.
    last: [Duration; ROUNDS],
    count: usize,
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
        if let Some(latest) = self.latest.replace(round_trip) {
            self.differences = MEAN.min(self.differences + 1);
            let before = self.difference / self.differences * (self.differences - 1);
            let shorter = latest.saturating_sub(round_trip);
            self.difference = before + 2 * shorter / self.differences;
        }
        let shorter = self.longest.saturating_sub(round_trip);
        self.longest = round_trip.max(self.longest.saturating_sub(shorter / MEAN));
        if std::mem::replace(&mut self.since, since) != since {
            self.count = 0;
        }
        let [first, second, _] = self.last;
        self.last = [round_trip, first, second];
        self.count = ROUNDS.min(self.count + 1);
    }

    /// The least one; `None` before there are some, and where they vary at random, as over radio
    /// links whose hosts sleep.
    fn least(&self) -> Option<Duration> {
        let present = self.present.map(|(least, _)| least);
        let least = present.into_iter().chain(self.before).min()?;
        let is_random = self.difference * RANDOM > self.longest.saturating_sub(least);
        (self.differences >= FEWEST && !is_random).then_some(least)
    }

    /// Whether queues show.
    pub(super) fn is_known(&self) -> bool {
        self.least().is_some()
    }

    /// The longest time with a queue that does not delay more than this.
    fn most(&self, delay: Duration) -> Option<Duration> {
        let least = self.least()?;
        Some(least + delay.max(least / PART))
    }

    /// The last time; `None` if there is none at the present rate.
    pub(super) fn last(&self) -> Option<Duration> {
        let [last, ..] = self.last;
        (self.count > 0).then_some(last)
    }

    /// The last time at any rate.
    pub(super) fn latest(&self) -> Option<Duration> {
        self.latest
    }

    /// What the queue takes now, as far as it shows.
    pub(super) fn of_queue(&self) -> Duration {
        let times = self.latest.zip(self.least());
        times.map_or(Duration::ZERO, |(latest, least)| latest.saturating_sub(least))
    }

    /// Whether the rate is the present one for some rounds.
    pub(super) fn is_settled(&self) -> bool {
        self.count == ROUNDS
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
        self.most(delay).zip(self.last()).is_some_and(|(most, last)| last > most)
    }

    /// Whether a queue stands, or grows, at the present rate.
    pub(super) fn stands(&self) -> bool {
        let [last, _, first] = self.last;
        let shortens = last + SHORTER < first;
        let most = self.most(STANDING).filter(|_| self.is_settled() && !shortens);
        most.is_some_and(|most| self.last.iter().all(|&time| time > most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A path that is longer than before has a queue, until the shorter time is forgotten.
    #[test]
    fn the_least_time_is_forgotten_after_ten_minutes() {
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let mut delay = QueueDelay::default();
        (0..10).for_each(|second| delay.note(at(second), Duration::from_millis(1), 1));
        (10..600).for_each(|second| delay.note(at(second), Duration::from_millis(50), 1));
        assert!(delay.stands());
        (600..610).for_each(|second| delay.note(at(second), Duration::from_millis(50), 1));
        assert!(delay.is_known() && !delay.is_long());
    }
}
