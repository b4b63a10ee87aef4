//! A block that a member asks for.

use crate::time::Instant;
use std::time::Duration;

/// Times that the wait for an answer is doubled (SRM's back-off; ns-2 has the same limit).
const MOST_DOUBLINGS: u32 = 5;
/// Longest time for which a request is put off for those of others, and for answers that are of no
/// use. Anyone can send these.
const LONGEST_PUT_OFF: Duration = Duration::from_secs(2);

/// A block that is asked for until it lacks nothing.
#[derive(Debug)]
pub(super) struct Asking {
    /// When to ask.
    pub(super) due: Instant,
    /// A member has the block.
    pub(super) is_held: bool,
    /// Requests in a row that no symbol of use has followed.
    vain: u32,
    /// When it was last known to be of use to wait: a symbol of use has come, or it has asked.
    hopeful_at: Instant,
    /// When it has asked last, and for how many symbols.
    asked: Option<(Instant, u32)>,
    /// The answer of a member with the block has not begun.
    awaits: bool,
}

impl Asking {
    pub(super) fn new(now: Instant, due: Instant) -> Self {
        Self { due, is_held: false, vain: 0, hopeful_at: now, asked: None, awaits: false }
    }

    /// Requests that no symbol of use has followed.
    pub(super) fn attempts(&self) -> u32 {
        self.vain
    }

    /// How long a member with the block took to answer, at its first symbol.
    pub(super) fn answer_time(&mut self, now: Instant) -> Option<Duration> {
        let (at, _) = self.asked.filter(|_| std::mem::take(&mut self.awaits))?;
        Some(now.saturating_since(at))
    }

    /// The number of symbols that it has asked for since then; `None` if it has not.
    pub(super) fn asked_since(&self, then: Instant) -> Option<u32> {
        self.asked.filter(|&(at, _)| at >= then).map(|(_, lacking)| lacking)
    }

    /// Another member has asked.
    pub(super) fn put_off(&mut self, until: Instant) {
        self.due = self.due.max(until.min(self.hopeful_at + LONGEST_PUT_OFF));
    }

    /// Another member has answered: wait until it pauses.
    pub(super) fn on_answer(&mut self, now: Instant, until: Instant, is_fresh: bool) {
        if is_fresh {
            (self.vain, self.hopeful_at) = (0, now);
        }
        self.put_off(until);
    }

    /// It asks now.
    pub(super) fn on_asked(&mut self, now: Instant, lacking: u32, wait: Duration) {
        self.due = now + wait * (1 << self.vain.min(MOST_DOUBLINGS));
        (self.vain, self.hopeful_at) = (self.vain.saturating_add(1), now);
        (self.asked, self.awaits) = (Some((now, lacking)), true);
    }
}
