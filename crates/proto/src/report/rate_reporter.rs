//! The receiver's side of rate control: when to report how much arrives, and what.

use super::limit::SecondLimit;
use super::rate_control::QUICK_WINDOW;
use crate::feedback::{AT_ONCE, MOST_GROWTH, answers, status_weight};
use crate::random::SplitMix64;
use crate::time::Instant;
use fontana_wire::{RateReport, RollCall};
use std::collections::VecDeque;
use std::time::Duration;

/// Rounds whose beginnings are remembered: those that a sender counts over.
const REMEMBERED: usize = 64;
/// Rounds whose losses are a receiver's weight. Longer ones would count what all have lost at an
/// earlier rate, and hide the few that lose packets now.
const WEIGHED: u32 = 3;
/// Part of a round's window before which no receiver reports: it has to count something first.
const EARLIEST: f64 = 0.5;
/// Time from the first short round of a run of a sender in which a receiver answers each of them,
/// where few receivers do: twenty a second.
const QUICK_FOR: Duration = Duration::from_secs(3);
const QUICK_BURST: usize = 10;
/// Packets that are lost, while no packet of the content arrives, from which on a receiver says
/// nothing of the rate: a link of its path has an MTU below them, at every rate.
const TOO_LONG: u64 = 4;
/// Stream of the random generator, different from those of reports and requests.
const RATE_STREAM: u64 = 2;

/// Packets of a session, since the receiver has joined it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketCounts {
    /// Packets that arrived.
    pub received: u64,
    /// Packets that were lost, on the way or at this host.
    pub lost: u64,
    /// When the last one arrived; [`Instant::ZERO`]: now, as far as is known.
    pub latest: Instant,
    /// Control packets alone have arrived, and none of the content.
    pub is_control_alone: bool,
}

/// What has arrived in a part of a rate round and of those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RateSample {
    /// The round.
    pub round: u32,
    /// Time that the packets were counted for; not zero.
    pub window: Duration,
    /// The packets.
    pub packets: PacketCounts,
    /// Weight with which the receiver has drawn whether it reports.
    pub weight: u8,
}

/// Reports how much arrives of a run of a sender, in the rounds in which it draws that it does.
///
/// The more packets a receiver has lost in the last rounds, the more probably it reports: the
/// sender hears of few receivers, and of those that the rate is too fast for. If all paths of a
/// crowd are full at once, all weights would grow at once, and the sender's divisor is for the
/// round before. So a weight at most doubles from round to round, which the sender expects.
#[derive(Debug)]
pub(super) struct RateReporter {
    random: SplitMix64,
    /// The beginnings of the last rounds, oldest first.
    rounds: VecDeque<Beginning>,
    /// The report of the present round.
    due: Option<Due>,
    /// Weight in the last round; 1 before the first one.
    weight: u32,
    /// Reports share a limit with the other answers, and take at most half of it.
    limit: SecondLimit,
    /// When the first short round began.
    quick_at: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
struct Beginning {
    round: u32,
    at: Instant,
    counts: PacketCounts,
}

#[derive(Clone, Copy, Debug)]
struct Due {
    at: Instant,
    round: u32,
    from: Beginning,
    weight: u8,
}

impl RateReporter {
    /// At most half of `max_per_second` in any second, and one if that is 0.
    pub(super) fn new(max_per_second: u32, seed: u64) -> Self {
        Self {
            random: SplitMix64::new(seed, RATE_STREAM),
            rounds: VecDeque::new(),
            due: None,
            weight: 1,
            limit: SecondLimit::new(max_per_second / 2),
            quick_at: None,
        }
    }

    /// Handles a roll call, with what has arrived until now. With the first one of a round, draws
    /// whether to report in it.
    pub(super) fn handle_roll_call(&mut self, now: Instant, call: &RollCall, counts: PacketCounts) {
        let Some(rate) = &call.rate else { return self.forget() };
        if self.rounds.back().is_some_and(|last| last.round >= rate.round) {
            return;
        }
        let window = Duration::from_millis(rate.window_ms.into());
        if window <= QUICK_WINDOW && call.head_count <= AT_ONCE {
            self.quick_at.get_or_insert(now);
        }
        if self.rounds.len() >= REMEMBERED {
            self.rounds.pop_front();
        }
        let beginning = Beginning { round: rate.round, at: now, counts };
        self.rounds.push_back(beginning);
        let from = self.rounds.iter().find(|it| it.round >= rate.since).copied();
        let from = from.unwrap_or(beginning);
        let lately = rate.round.saturating_sub(WEIGHED);
        let before = self.rounds.iter().find(|it| it.round >= lately).unwrap_or(&beginning);
        let lost = counts.lost.saturating_sub(before.counts.lost);
        let most = self.weight.saturating_mul(MOST_GROWTH).min(RateReport::MAX_WEIGHT.into());
        let weight = status_weight(lost, most);
        self.weight = weight;
        let part = EARLIEST + (1.0 - EARLIEST) * self.random.unit();
        let at = now + window.mul_f64(part);
        let is_drawn = answers(weight, rate.divisor, &mut self.random);
        let weight = u8::try_from(weight).unwrap_or(RateReport::MAX_WEIGHT);
        self.due = is_drawn.then_some(Due { at, round: rate.round, from, weight });
    }

    /// What has arrived does not count.
    pub(super) fn forget(&mut self) {
        self.due = None;
        self.rounds.clear();
    }

    /// Whether the sender doubles its rate in short rounds, each of which is answered.
    pub(super) fn is_quick(&self, now: Instant) -> bool {
        self.quick_at.is_some_and(|at| now < at + QUICK_FOR)
    }

    /// When the report is due; `None` if there is none.
    pub(super) fn due(&self) -> Option<Instant> {
        let of = |due: &Due| {
            let burst = if self.is_quick(due.at) { QUICK_BURST } else { 1 };
            due.at.max(self.limit.earliest(burst))
        };
        self.due.as_ref().map(of)
    }

    /// The report, with what has arrived until now.
    pub(super) fn take(&mut self, now: Instant, counts: PacketCounts) -> Option<RateSample> {
        let Due { round, from, weight, .. } = self.due.take()?;
        self.limit.spend(now);
        // Packets may arrive in groups, as over a radio link whose hosts sleep: in the time after
        // the last group none could have arrived.
        let until = if counts.latest > from.at { counts.latest.min(now) } else { now };
        let window = until.saturating_since(from.at);
        let packets = PacketCounts {
            received: counts.received.saturating_sub(from.counts.received),
            lost: counts.lost.saturating_sub(from.counts.lost),
            latest: until,
            ..counts
        };
        let are_too_long = counts.is_control_alone && packets.lost >= TOO_LONG;
        (!window.is_zero() && !are_too_long).then_some(RateSample {
            round,
            window,
            packets,
            weight,
        })
    }
}
