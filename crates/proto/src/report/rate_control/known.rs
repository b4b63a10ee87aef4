//! What rate control knows of a receiver.

use super::queue_delay::QueueDelay;
use crate::report::line_error::{CERTAIN, LineError, OVERLOAD, StartLosses, deviation, is_equal};
use crate::time::Instant;
use fontana_wire::RateReport;
use std::time::Duration;

/// Rounds at a rate after which a path that brings less is full.
const HELD_ROUNDS: u32 = 3;
/// How long the most that has arrived is known.
const TOP_FOR: Duration = Duration::from_secs(300);
/// Time after which the lines of others are not compared with the one that was found last: a
/// receiver that joins later may have a full path that loses as much.
const TYPICAL_FOR: Duration = Duration::from_secs(10);

/// A receiver that has reported.
#[derive(Clone, Debug)]
pub(super) struct Known {
    /// Of its last report; `None`: it has not answered this sender.
    pub(super) counter: Option<u64>,
    /// The last round that it has answered.
    pub(super) round: u32,
    /// When it last reported enough packets to say something.
    pub(super) heard_at: Instant,
    /// The last round in which it has said that the rate arrives.
    pub(super) confirmed: u32,
    pub(super) start: StartLosses,
    pub(super) line: LineError,
    /// Share of lost packets in its last report outside of trials.
    pub(super) lost: f64,
    /// Packets that it had lost by its last report, since the rate has changed in this round.
    pub(super) lost_by: (u32, u32),
    /// The most that has arrived, in bytes per second, and when.
    top: (f64, Instant),
    /// The same at any rate, also while it doubles.
    got: (f64, Instant),
    /// What its path carried when it was full; `None` if a higher rate arrives.
    pub(super) carries: Option<f64>,
    /// Of the queues on its path.
    pub(super) delay: QueueDelay,
    /// There was one at the rate before, while it doubles.
    pub(super) was_queued: bool,
    pub(super) is_slow: bool,
    /// It says nothing more.
    pub(super) has_finished: bool,
}

/// What a line loses, with which those of others are compared until a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct TypicalLine {
    pub(super) share: f64,
    pub(super) until: Instant,
}

impl Known {
    /// One of which nothing is known but that it has reported now.
    pub(super) fn new(now: Instant) -> Self {
        Self {
            counter: None,
            round: 0,
            heard_at: now,
            confirmed: 0,
            start: StartLosses::default(),
            line: LineError::default(),
            lost: 0.0,
            lost_by: (0, 0),
            top: (0.0, now),
            got: (0.0, now),
            carries: None,
            delay: QueueDelay::default(),
            was_queued: false,
            is_slow: false,
            has_finished: false,
        }
    }

    /// So much arrives, in bytes per second. Returns the most lately.
    pub(super) fn top(&mut self, now: Instant, gets: f64) -> f64 {
        most(&mut self.top, now, gets)
    }

    /// The same at any rate.
    pub(super) fn got(&mut self, now: Instant, gets: f64) -> f64 {
        most(&mut self.got, now, gets)
    }

    /// Packets that were lost since its last report, at a rate since this round.
    pub(super) fn lost_since(&mut self, report: &RateReport, since: u32) -> u32 {
        let (before, lost) = std::mem::replace(&mut self.lost_by, (since, report.lost));
        report.lost.saturating_sub(if before == since { lost } else { 0 })
    }

    /// Notes whether the rate since this round arrives, while it doubles. Returns whether it has
    /// not for some rounds: the queue on its path grows.
    pub(super) fn is_held(&mut self, round: u32, arrives: bool, since: u32) -> bool {
        if arrives {
            self.confirmed = round;
        }
        !arrives && round >= since.saturating_add(HELD_ROUNDS)
    }

    /// Finds out whether its line loses this share of so many packets: as much as at the start, or
    /// as a typical line. The lines of a crowd lose alike, and of a crowd few report at the start.
    pub(super) fn learn_line(
        &mut self,
        now: Instant,
        share: f64,
        packets: f64,
        rate: f64,
        typical: &mut Option<TypicalLine>,
    ) {
        let is_alike = |line: TypicalLine| is_equal(share, line.share, packets);
        *typical = typical.filter(|line| now < line.until);
        if let Some(share) = self.start.persists(share, packets, rate) {
            *typical = Some(TypicalLine { share, until: now + TYPICAL_FOR });
            self.line = LineError::of(share);
        } else if self.line.share() == 0.0 && typical.is_some_and(is_alike) {
            self.line = LineError::of(share);
        }
    }

    /// What its line loses, and what the share of so many packets may differ by.
    pub(super) fn line(&self, is_automatic: bool, packets: f64) -> (f64, f64) {
        let line = self.line.share();
        let mean = if is_automatic { line.max(OVERLOAD) } else { OVERLOAD };
        (line, deviation(CERTAIN, mean, packets))
    }
}

/// The most of what arrives lately, and when that was; or this, if it is more.
fn most(kept: &mut (f64, Instant), now: Instant, gets: f64) -> f64 {
    if gets >= kept.0 || now >= kept.1 + TOP_FOR {
        *kept = (gets, now);
    }
    kept.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_that_has_arrived_is_forgotten_after_five_minutes() {
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let mut known = Known::new(at(0));
        assert_eq!(known.top(at(1), 9.0), 9.0);
        assert_eq!(known.top(at(300), 3.0), 9.0);
        assert_eq!(known.top(at(301), 3.0), 3.0);
    }
}
