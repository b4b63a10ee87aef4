//! How fast a sender has sent in the rounds of its rate control: less than its rate while it has
//! nothing to send.

use crate::time::Instant;
use std::collections::VecDeque;

/// Rounds that are remembered.
const REMEMBERED: usize = 64;

/// The beginning of a round.
#[derive(Clone, Copy, Debug)]
struct Beginning {
    round: u32,
    /// The round from which its reports count.
    since: u32,
    at: Instant,
    bytes: u64,
}

/// What a sender has sent by the beginnings of its last rounds.
#[derive(Clone, Debug, Default)]
pub(super) struct Offered {
    /// Bytes that were sent so far.
    bytes: u64,
    rounds: VecDeque<Beginning>,
}

impl Offered {
    /// So many bytes were sent so far.
    pub(super) fn note(&mut self, bytes: u64) {
        self.bytes = bytes;
    }

    /// A round begins, whose reports count from the round `since`.
    pub(super) fn begin(&mut self, now: Instant, round: u32, since: u32) {
        if self.rounds.back().is_some_and(|last| last.round >= round) {
            return;
        }
        if self.rounds.len() >= REMEMBERED {
            self.rounds.pop_front();
        }
        self.rounds.push_back(Beginning { round, since, at: now, bytes: self.bytes });
    }

    /// Bytes that were sent since the last round began, and in how many seconds.
    pub(super) fn in_round(&self, now: Instant) -> Option<(u64, f64)> {
        let from = self.rounds.back()?;
        let bytes = self.bytes.saturating_sub(from.bytes);
        Some((bytes, now.saturating_since(from.at).as_secs_f64()))
    }

    /// Bytes that were sent while a report counted that answers this round, and in how many
    /// seconds; `None` if it is not remembered. What is sent on the way of the report counts, too.
    pub(super) fn sent(&self, now: Instant, round: u32) -> Option<(u64, f64)> {
        let answered = self.rounds.iter().rev().find(|it| it.round <= round)?;
        let from = self.rounds.iter().find(|it| it.round >= answered.since)?;
        let bytes = self.bytes.saturating_sub(from.bytes);
        Some((bytes, now.saturating_since(from.at).as_secs_f64()))
    }
}
