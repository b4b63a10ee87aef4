//! The estimate of how many receivers will report in a round, and the pace of the round.

use crate::time::Instant;
use std::time::Duration;

/// Receivers that are assumed before the first report, if their number is not known: more than any
/// session has had.
const UNKNOWN_CROWD: f64 = (1_u32 << 20) as f64;
/// Part of the budget that a round aims at. The numbers of reports in different seconds have a
/// standard deviation of the square root of the budget.
const AIM: f64 = 0.93;
/// Number of the first round.
const FIRST_ROUND: u32 = 1;
/// Shortest window of a round.
const LEAST_WINDOW: Duration = Duration::from_secs(1);
/// The same of the first round, and of receivers on this network: they all report in it.
const LEAST_NEAR_WINDOW: Duration = Duration::from_millis(200);
/// Shortest window of a round that is begun early.
const LEAST_SHORT_WINDOW: Duration = Duration::from_millis(10);
/// Part of the receivers of one round that are expected in the next one: those whose report was
/// lost, and those that have not received the acknowledgment.
const REPEATED: f64 = 0.1;

/// How many receivers will report, and how much of the round's window has passed.
#[derive(Clone, Debug)]
pub(crate) struct HeadCount {
    budget_per_second: f64,
    round: u32,
    /// Part of the window that has passed.
    position: f64,
    at: Instant,
    /// Receivers that have reported in this round.
    replies: u32,
    /// Receivers that this round's window is for.
    assumed: f64,
    /// Raised by overload; until the end of the round, the window is for at least so many.
    least: f64,
    /// No receiver has reported yet.
    is_searching: bool,
    /// Reports arrive at once: the first one is looked for faster.
    is_near: bool,
    /// The round was begun early: its window is as short as the budget permits.
    is_short: bool,
}

impl HeadCount {
    /// The first round begins at `now`. `known`: the number of receivers, if the user gives it.
    pub(crate) fn new(
        budget_per_second: u32,
        known: Option<u32>,
        is_near: bool,
        now: Instant,
    ) -> Self {
        Self {
            budget_per_second: f64::from(budget_per_second.max(1)),
            round: FIRST_ROUND,
            position: 0.0,
            at: now,
            replies: 0,
            assumed: known.map_or(UNKNOWN_CROWD, f64::from),
            least: 0.0,
            is_searching: known.is_none(),
            is_near,
            is_short: false,
        }
    }

    /// So many receivers were known to the sender before this one. Their number is looked for.
    pub(crate) fn expect(&mut self, receivers: u32) {
        if self.is_searching && receivers > 0 {
            self.assumed = f64::from(receivers);
        }
    }

    pub(crate) fn round(&self) -> u32 {
        self.round
    }

    pub(crate) fn is_searching(&self) -> bool {
        self.is_searching
    }

    /// Receivers that this round's window is for.
    pub(crate) fn assumed(&self) -> u32 {
        self.assumed.ceil() as u32
    }

    pub(crate) fn window(&self) -> Duration {
        let seconds = self.assumed / (AIM * self.budget_per_second);
        let least = match (self.is_short, self.round == FIRST_ROUND && self.is_near) {
            (true, _) => LEAST_SHORT_WINDOW,
            (false, true) => LEAST_NEAR_WINDOW,
            (false, false) => LEAST_WINDOW,
        };
        Duration::from_secs_f64(seconds).max(least)
    }

    /// What is left of the window.
    pub(crate) fn left(&self) -> Duration {
        self.window().mul_f64(1.0 - self.position)
    }

    /// Part of the window that has passed, in units of 2^-32.
    pub(crate) fn position(&self) -> u32 {
        (self.position * f64::from(u32::MAX)) as u32
    }

    /// Receivers of this round, by the reports so far; `None` before the first one.
    pub(crate) fn estimate(&self) -> Option<f64> {
        (self.replies > 0 && self.position > 0.0)
            .then(|| f64::from(self.replies) / self.position.min(1.0))
    }

    /// A receiver has reported that had not reported in this round.
    pub(crate) fn reply(&mut self, now: Instant) {
        self.advance(now);
        self.replies += 1;
        self.is_searching = false;
    }

    /// More reports arrive than twice the budget.
    pub(crate) fn overload(&mut self, now: Instant) {
        self.advance(now);
        self.least = self.assumed * 2.0;
        self.adapt();
    }

    /// Prepares an announcement: halves the number before the first report, and follows the
    /// estimate after it. Begins the next round when the window has passed; `outstanding` receivers
    /// are then known that have not finished.
    pub(crate) fn announce(&mut self, now: Instant, outstanding: usize) {
        self.advance(now);
        if self.position >= 1.0 {
            self.next_round(outstanding);
        } else if self.is_searching && self.position > 0.0 {
            self.assumed /= if self.is_near { 4.0 } else { 2.0 };
        } else {
            self.adapt();
        }
    }

    /// Begins a round before the window has passed, unless no receiver has reported yet.
    pub(crate) fn begin_round(&mut self, now: Instant, outstanding: usize) {
        self.advance(now);
        if !self.is_searching {
            self.next_round(outstanding);
            self.is_short = true;
        }
    }

    fn next_round(&mut self, outstanding: usize) {
        let repeated = REPEATED * f64::from(self.replies);
        self.round = self.round.wrapping_add(1);
        self.assumed = repeated.max(outstanding as f64);
        (self.position, self.replies, self.least) = (0.0, 0, 0.0);
        self.is_short = false;
    }

    /// Two standard deviations above the estimate, so that few reports do not shorten the window
    /// too much.
    fn adapt(&mut self) {
        if self.position > 0.0 && self.replies > 0 {
            let replies = f64::from(self.replies);
            self.assumed = (replies + 2.0 * replies.sqrt() + 1.0) / self.position.min(1.0);
        }
        self.assumed = self.assumed.max(self.least).min(f64::from(u32::MAX));
    }

    /// Time passes.
    pub(crate) fn advance(&mut self, now: Instant) {
        let passed = now.saturating_since(self.at).as_secs_f64();
        self.at = self.at.max(now);
        self.position = (self.position + passed / self.window().as_secs_f64()).min(1.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SplitMix64;

    fn unit(random: &mut SplitMix64) -> f64 {
        (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// The estimate after `wanted` of `crowd` receivers have reported. Their turns are the smallest
    /// of `crowd` uniform numbers, computed from sums of exponential ones: an order statistic, not
    /// the code of a receiver.
    fn estimate(crowd: u32, wanted: u32, seed: u64) -> f64 {
        let mut random = SplitMix64::new(seed, crowd.into());
        let spacing = |random: &mut SplitMix64| -(1.0 - unit(random)).ln();
        let (mut turns, mut sum) = (Vec::new(), 0.0);
        for _ in 0..wanted {
            sum += spacing(&mut random);
            turns.push(sum);
        }
        // The sum of the others is close to their number, unless there are few.
        let others = f64::from(crowd - wanted);
        let noise = (0..12).map(|_| unit(&mut random)).sum::<f64>() - 6.0;
        let total = match crowd - wanted {
            few @ 0..100 => sum + (0..=few).map(|_| spacing(&mut random)).sum::<f64>(),
            _ => sum + others + others.sqrt() * noise,
        };
        turns.iter_mut().for_each(|turn| *turn /= total);

        let mut now = Instant::ZERO;
        let mut count = HeadCount::new(200, None, false, now);
        let mut next = now;
        let mut turns = turns.into_iter().peekable();
        while let Some(&turn) = turns.peek() {
            let until = Duration::from_secs_f64(
                (turn - count.position).max(0.0) * count.window().as_secs_f64(),
            );
            if now + until > next {
                now = next;
                count.announce(now, 0);
                let every = if count.is_searching() { 200 } else { 500 };
                next = now + Duration::from_millis(every);
            } else {
                now = now + until;
                count.reply(now);
                turns.next();
            }
        }
        count.estimate().unwrap()
    }

    #[test]
    fn the_estimate_after_n_replies_is_within_three_standard_deviations() {
        for crowd in [10, 1_000, 10_000, 1_000_000] {
            for wanted in [100, 400, 1_600] {
                let wanted: u32 = wanted;
                // With a whole crowd, the estimate is its number.
                let replies = wanted.min(crowd);
                let allowed = 3.0 / f64::from(replies).sqrt();
                let good = (1..=100)
                    .filter(|&seed| {
                        let estimate = estimate(crowd, replies, seed);
                        (estimate / f64::from(crowd) - 1.0).abs() <= allowed
                    })
                    .count();
                assert!(good >= 95, "{good} of 100 for {replies} replies of {crowd}");
            }
        }
    }

    #[test]
    fn the_number_is_halved_until_the_first_report_and_doubled_by_overload() {
        let mut now = Instant::ZERO;
        let mut count = HeadCount::new(200, None, false, now);
        count.announce(now, 0);
        assert_eq!(count.assumed(), 1 << 20);
        for halvings in 1..=5 {
            now = now + Duration::from_millis(200);
            count.announce(now, 0);
            assert_eq!(count.assumed(), (1 << 20) >> halvings);
        }
        now = now + Duration::from_millis(200);
        count.reply(now);
        assert!(!count.is_searching());
        let before = count.assumed;
        count.overload(now);
        assert!(count.assumed >= 2.0 * before);
        count.announce(now, 0);
        assert!(count.assumed >= 2.0 * before, "it lasts for the round");
    }
}
