//! What an automatic rate knows of other traffic on its paths.
//!
//! A path that is full has a queue. If the sender has filled it alone, a little less than what
//! arrives empties it. A queue that stays, or drops packets again, is filled by others, too: the
//! rate is then [shared](super::shared), and rises to a part of what the path has carried as long
//! as there is a queue now and then.

use crate::time::Instant;
use std::time::Duration;

/// Time in which a queue is empty that no other traffic fills.
const LOWERED_FOR: Duration = Duration::from_secs(8);
/// Rounds without a queue before a higher rate is tried.
const FREE_ROUNDS: u32 = 3;
/// Time without one after which there is no other traffic.
const ALONE_AFTER: Duration = Duration::from_secs(30);
/// Time without one after which a rate is tried that a path has carried before.
const GONE_AFTER: Duration = Duration::from_secs(8);
/// Time after which the rate doubles again beside other traffic: that may have begun at the same
/// time, and have ended the start too early.
const STARTED_FOR: Duration = Duration::from_secs(30);

/// Other traffic.
#[derive(Clone, Debug)]
pub(super) struct Rivals {
    /// The last round in which a receiver said that there was a queue.
    queued_in: u32,
    /// When that was.
    seen_at: Option<Instant>,
    /// When there was one last at a rate that had been the same for some rounds.
    queued_at: Option<Instant>,
    /// A queue that the sender has filled alone is empty then.
    lowered_until: Instant,
    /// When the rate has begun to double.
    started_at: Instant,
}

impl Rivals {
    /// None is known.
    pub(super) fn new(now: Instant) -> Self {
        Self { queued_in: 0, seen_at: None, queued_at: None, lowered_until: now, started_at: now }
    }

    /// There is a queue in this round. `is_steady`: at a rate that has been the same for some.
    pub(super) fn note_queue(&mut self, now: Instant, round: u32, is_steady: bool) {
        (self.queued_in, self.seen_at) = (round, Some(now));
        if is_steady {
            self.queued_at = Some(now);
        }
    }

    /// A queue has to be emptied, which takes so long if no other traffic fills it. Returns whether
    /// it has been lately.
    pub(super) fn keep_queue(&mut self, now: Instant, empty_after: Duration) -> bool {
        let until = now + LOWERED_FOR.max(empty_after);
        now < std::mem::replace(&mut self.lowered_until, until)
    }

    /// Whether the rate may double again, which then begins now.
    pub(super) fn restarts(&mut self, now: Instant) -> bool {
        let restarts = now >= self.started_at + STARTED_FOR;
        if restarts {
            self.started_at = now;
        }
        restarts
    }

    /// Whether there is a queue in this round.
    pub(super) fn is_queued(&self, round: u32) -> bool {
        self.queued_in == round
    }

    /// Whether there was no queue for some rounds.
    pub(super) fn is_free(&self, round: u32) -> bool {
        self.queued_in == 0 || round > self.queued_in.saturating_add(FREE_ROUNDS)
    }

    /// Whether there was no queue for a while: a TCP flow fills it again and again.
    pub(super) fn has_gone(&self, now: Instant) -> bool {
        self.seen_at.is_none_or(|at| now >= at + GONE_AFTER)
    }

    /// Whether there is no other traffic.
    pub(super) fn is_alone(&self, now: Instant) -> bool {
        self.queued_at.is_none_or(|at| now >= at + ALONE_AFTER)
    }
}
