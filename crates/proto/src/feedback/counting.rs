//! Counting of receivers by their status packets (BMTP, section 3).
//!
//! The sender announces a divisor N in each data packet. A receiver of weight w answers with a
//! status packet with probability w/N. If N is the sum of all weights, one status packet arrives
//! per data packet. The sender measures how many arrive, and sets N accordingly.

use crate::random::SplitMix64;

/// Factor by which the weight of a receiver grows from one interval to the next, at most, where
/// [`WeightCount::adjust_to_growth`] is used.
pub const MOST_GROWTH: u32 = 2;
/// Factor between two intervals by which the sum of the weights grows. Of 20 answers, chance makes
/// so many more in one of four intervals, and then half as many are asked for in the next.
const GROWING: f64 = 1.2;

/// The weight of a receiver that misses `missing` packets: their number, at least 1 and at most
/// `most`.
///
/// The weight gives those that miss much more status packets, and so more requests. The limit stops
/// one receiver from taking all of them.
pub fn status_weight(missing: u64, most: u32) -> u32 {
    u32::try_from(missing).unwrap_or(u32::MAX).min(most).max(1)
}

/// Draws whether a receiver of this weight answers a data packet that announces `divisor`. It
/// always does if its weight is the divisor or more.
pub fn answers(weight: u32, divisor: u32, random: &mut SplitMix64) -> bool {
    weight >= divisor || random.below(divisor) < weight
}

/// The sender's estimate of the sum of all receivers' weights.
///
/// It measures over two control intervals: what is measured in the first of them still has the
/// answers to the divisor before it.
#[derive(Clone, Debug)]
pub struct WeightCount {
    divisor: u32,
    /// Status packets that each announcement is to cause.
    aim: f64,
    current: Answers,
    previous: Answers,
}

/// What was sent and answered in a control interval.
#[derive(Clone, Copy, Debug, Default)]
struct Answers {
    statuses: u64,
    /// The sum of 1/N over the data packets: the status packets that each unit of weight causes.
    per_weight: f64,
}

impl Answers {
    /// The sum of the weights, by these alone; 0 without an announcement.
    fn sum(self) -> f64 {
        if self.per_weight > 0.0 { self.statuses as f64 / self.per_weight } else { 0.0 }
    }
}

impl WeightCount {
    /// A count that announces `divisor` until it is first adjusted; 0 counts as 1.
    pub fn new(divisor: u32) -> Self {
        let (current, previous) = (Answers::default(), Answers::default());
        Self { divisor: divisor.max(1), aim: 1.0, current, previous }
    }

    /// Sets the number of status packets that each announcement is to cause, by default one. It
    /// counts from the next [`adjust`](Self::adjust) on.
    pub fn set_aim(&mut self, statuses: f64) {
        self.aim = statuses.max(1.0);
    }

    /// The divisor, which is at least 1.
    pub fn divisor(&self) -> u32 {
        self.divisor
    }

    /// The divisor is at most this, until it is adjusted, because there are no more receivers.
    pub fn limit(&mut self, divisor: u32) {
        self.divisor = self.divisor.min(divisor.max(1));
    }

    /// A data packet is sent. Returns the divisor to announce in it.
    pub fn announce(&mut self) -> u32 {
        self.current.per_weight += 1.0 / f64::from(self.divisor);
        self.divisor
    }

    /// A status packet has arrived.
    pub fn status(&mut self) {
        self.current.statuses = self.current.statuses.saturating_add(1);
    }

    /// Sets the divisor to what the last two control intervals show, and begins the next interval.
    ///
    /// BMTP's text divides N by the ratio of status packets to data packets; N has to be multiplied
    /// by it (`docs/errata.md`). The sum of 1/N is right also if N has changed between the two
    /// intervals. Without any status packet, the divisor is halved: a divisor of 1 at once would
    /// let all receivers of a large group answer together.
    pub fn adjust(&mut self) {
        let statuses = self.current.statuses.saturating_add(self.previous.statuses);
        let per_weight = self.current.per_weight + self.previous.per_weight;
        if per_weight > 0.0 {
            let divisor = match statuses {
                0 => f64::from(self.divisor) / 2.0,
                statuses => statuses as f64 / per_weight / self.aim,
            };
            // A cast saturates.
            self.divisor = (divisor.round() as u32).max(1);
        }
        self.previous = std::mem::take(&mut self.current);
    }

    /// As [`adjust`](Self::adjust), for receivers whose weights at most double from one interval to
    /// the next.
    ///
    /// If the sum of the weights has grown since the interval before, it may double again: the
    /// divisor is then for that. It falls at most by half, because the first answers of a crowd are
    /// few, and say little of its size.
    pub fn adjust_to_growth(&mut self) {
        let (before, now) = (self.divisor, self.current.sum());
        let grows = now > GROWING * self.previous.sum();
        let next = if grows { f64::from(MOST_GROWTH) * now } else { now };
        self.adjust();
        self.divisor = self.divisor.max((next / self.aim) as u32).max(before / 2);
    }

    /// Begins an interval early: forgets what was announced and answered since the last
    /// [`adjust`](Self::adjust), because receivers had no time to answer. Their weights may have
    /// doubled, as in [`adjust_to_growth`](Self::adjust_to_growth), and so does the divisor.
    pub fn cut_short(&mut self) {
        self.divisor = self.divisor.saturating_mul(MOST_GROWTH);
        self.current = Answers::default();
    }

    /// Doubles the divisor: more status packets arrive than are wanted.
    pub fn overload(&mut self) {
        self.divisor = self.divisor.saturating_mul(2);
        (self.current, self.previous) = (Answers::default(), Answers::default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Status packets that receivers of these weights send for so many data packets.
    fn statuses(weights: &[u32], packets: u32, count: &mut WeightCount, seed: u64) -> u32 {
        let mut random = SplitMix64::new(seed, 1);
        let mut sum = 0;
        for _ in 0..packets {
            let divisor = count.announce();
            for &weight in weights {
                if answers(weight, divisor, &mut random) {
                    count.status();
                    sum += 1;
                }
            }
        }
        sum
    }

    #[test]
    fn a_weight_is_what_is_missing_within_its_limits() {
        let weights = [0, 1, 99, 100, 101, u64::MAX].map(|missing| status_weight(missing, 100));
        assert_eq!(weights, [1, 1, 99, 100, 100, 100]);
        assert_eq!(status_weight(7, 0), 1);
    }

    #[test]
    fn a_weight_of_the_divisor_always_answers_and_one_less_does_not() {
        let mut random = SplitMix64::new(1, 0);
        assert!((0..1_000).all(|_| answers(5, 5, &mut random) && answers(6, 5, &mut random)));
        assert!((0..1_000).any(|_| !answers(4, 5, &mut random)));
        assert!(answers(1, 0, &mut random));
    }

    /// Three receivers that miss 0, 0 and 500 packets, and a fourth that comes later.
    #[test]
    fn the_divisor_is_the_sum_of_the_weights_and_follows_a_receiver_that_joins() {
        let mut weights = [0, 0, 500].map(|missing| status_weight(missing, 100)).to_vec();
        let mut count = WeightCount::new(102);
        let sent = statuses(&weights, 20_000, &mut count, 3);
        assert!((19_400..20_600).contains(&sent), "{sent}");
        count.adjust();
        weights.push(100);
        for seed in 0..2 {
            statuses(&weights, 20_000, &mut count, seed);
            count.adjust();
        }
        // Of 202, by 40 000 answers.
        assert!((198..=206).contains(&count.divisor()), "{}", count.divisor());
    }

    #[test]
    fn without_an_answer_the_divisor_is_halved_until_it_is_one() {
        let mut count = WeightCount::new(1_000);
        let mut halved = || {
            count.announce();
            count.adjust();
            count.divisor()
        };
        assert_eq!([halved(), halved(), halved()], [500, 250, 125]);
        assert_eq!((0..10).map(|_| halved()).last(), Some(1));
    }

    /// A thousand receivers begin to lose packets together, so that their weights double until they
    /// are a hundred times as large. Chance makes 40 answers at once more than are wanted.
    #[test]
    fn weights_that_grow_together_cause_few_more_answers_than_are_wanted() {
        for seed in 0..20_u64 {
            let (wanted, mut count) = (100, WeightCount::new(10));
            count.set_aim(f64::from(wanted));
            let mut sent = Vec::new();
            for interval in 0..12 {
                let weight = 1 << 6_u32.min(interval);
                sent.push(statuses(
                    &[weight; 1_000],
                    1,
                    &mut count,
                    seed << 8 | u64::from(interval),
                ));
                count.adjust_to_growth();
            }
            let most = sent.iter().max().copied();
            assert!(most <= Some(2 * wanted + 60), "seed {seed}: {sent:?}");
            let all: u32 = sent.iter().sum();
            assert!(all <= 14 * wanted, "seed {seed}: {sent:?}");
        }
    }

    #[test]
    fn a_divisor_that_adjusts_to_growth_falls_at_most_by_half() {
        let mut count = WeightCount::new(1_000);
        count.set_aim(20.0);
        count.announce();
        count.status();
        // One answer says that the divisor should be 50.
        count.adjust_to_growth();
        assert_eq!(count.divisor(), 500);
        count.cut_short();
        assert_eq!(count.divisor(), 1_000);
    }

    #[test]
    fn an_interval_in_which_nothing_is_sent_changes_nothing() {
        let mut count = WeightCount::new(1_000);
        count.adjust();
        assert_eq!(count.divisor(), 1_000);
        count.status();
        count.adjust();
        assert_eq!(count.divisor(), 1_000);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// One status packet per data packet, whatever the weights.
        #[test]
        fn all_receivers_together_answer_once(
            weights in proptest::collection::vec(1_u32..100, 1..40),
            seed: u64,
        ) {
            let mut count = WeightCount::new(weights.iter().sum());
            let (packets, sent) = (4_000, statuses(&weights, 4_000, &mut count, seed));
            // A sum of independent draws, whose variance is below its mean.
            let deviation = f64::from(packets).sqrt();
            prop_assert!((f64::from(sent) - f64::from(packets)).abs() < 4.0 * deviation, "{sent}");
        }

        /// After a change of the crowd by ten times, either way.
        #[test]
        fn the_divisor_follows_within_two_intervals(grows: bool, seed: u64) {
            let (few, many) = (vec![1; 100], vec![1; 1_000]);
            let (before, after) = if grows { (&few, &many) } else { (&many, &few) };
            let mut count = WeightCount::new(before.len() as u32);
            for interval in 0..2 {
                statuses(before, 1_000, &mut count, seed ^ interval);
                count.adjust();
            }
            for interval in 2..4 {
                statuses(after, 1_000, &mut count, seed ^ interval);
                count.adjust();
            }
            let off = f64::from(count.divisor()) / after.len() as f64 - 1.0;
            prop_assert!(off.abs() < 0.3, "{} of {}", count.divisor(), after.len());
        }
    }
}
