//! Loss models: which packets a wire loses.

use crate::chance::Probability;
use fontana_proto::SplitMix64;
use std::sync::Arc;

/// A model of packet losses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LossModel {
    /// No losses.
    #[default]
    None,
    /// Independent losses, with the same probability for each packet.
    Bernoulli(Probability),
    /// Gilbert's channel ("Capacity of a burst-noise channel", 1960) with Elliott's extension: a
    /// good and a bad state, in each of which packets are lost at some rate. A run begins in the
    /// good state; the state moves before each packet.
    Gilbert {
        /// Probability of a change from good to bad.
        to_bad: Probability,
        /// Probability of a change from bad to good.
        to_good: Probability,
        /// Loss probability in the good state; 0 in Gilbert's own model.
        good_loss: Probability,
        /// Loss probability in the bad state; 1 in the simplest model.
        bad_loss: Probability,
    },
    /// Regular losses: packets `first`, `first + period`, ..., counted from 0.
    Periodic {
        /// Packets from one lost packet to the next; 0 loses none.
        period: u32,
        /// The first lost packet's number.
        first: u32,
    },
    /// A recorded sequence, repeated: true is a lost packet.
    Trace(Arc<[bool]>),
}

impl LossModel {
    /// Independent losses with probability `p`.
    pub fn bernoulli(p: f64) -> Self {
        if p > 0.0 { Self::Bernoulli(Probability::new(p)) } else { Self::None }
    }

    /// The two-state Markov model with packet error rate `p` and a mean of `b` consecutive losses,
    /// as in the comparison of reliable multicast protocols (Li, Cheriton). A lost packet is
    /// followed by a lost one with probability `1 - 1/b`, a received one by a received one with
    /// `(1 - p - p/b) / (1 - p)`. The mean burst is raised to `p / (1 - p)` if it is shorter:
    /// shorter bursts cannot reach the error rate.
    pub fn markov(error_rate: f64, mean_burst: f64) -> Self {
        if error_rate <= 0.0 || error_rate.is_nan() {
            return Self::None;
        }
        if error_rate >= 1.0 {
            return Self::Bernoulli(Probability::ONE);
        }
        let odds = error_rate / (1.0 - error_rate);
        let burst = mean_burst.max(1.0).max(odds);
        Self::Gilbert {
            to_bad: Probability::new(odds / burst),
            to_good: Probability::new(1.0 / burst),
            good_loss: Probability::ZERO,
            bad_loss: Probability::ONE,
        }
    }

    /// Mean share of lost packets.
    pub fn mean(&self) -> f64 {
        match self {
            Self::None | Self::Periodic { period: 0, .. } => 0.0,
            Self::Bernoulli(p) => p.as_f64(),
            Self::Gilbert { to_bad, to_good, good_loss, bad_loss } => {
                let (to_bad, to_good) = (to_bad.as_f64(), to_good.as_f64());
                let bad = if to_bad > 0.0 { to_bad / (to_bad + to_good) } else { 0.0 };
                bad * bad_loss.as_f64() + (1.0 - bad) * good_loss.as_f64()
            }
            Self::Periodic { period, .. } => 1.0 / f64::from(*period),
            Self::Trace(lost) => {
                lost.iter().filter(|&&lost| lost).count() as f64 / lost.len().max(1) as f64
            }
        }
    }
}

/// The state of a [`LossModel`] on one link.
#[derive(Clone, Debug, Default)]
pub struct Loss {
    model: LossModel,
    /// Position in a sequence; of Gilbert's model 0 in the good and 1 in the bad state.
    state: u32,
}

impl Loss {
    /// The model before the first packet.
    pub fn new(model: LossModel) -> Self {
        Self { model, state: 0 }
    }

    /// Whether the next packet is lost.
    #[inline]
    pub fn next(&mut self, random: &mut SplitMix64) -> bool {
        match &self.model {
            LossModel::None => false,
            LossModel::Bernoulli(p) => p.draw(random),
            LossModel::Gilbert { to_bad, to_good, good_loss, bad_loss } => {
                let change = if self.state == 0 { to_bad } else { to_good };
                self.state ^= u32::from(change.draw(random));
                let lost = if self.state == 0 { good_loss } else { bad_loss };
                lost.draw(random)
            }
            &LossModel::Periodic { period: 0, .. } => false,
            &LossModel::Periodic { period, first } => {
                let lost = self.state == first % period;
                self.state = (self.state + 1) % period;
                lost
            }
            LossModel::Trace(trace) => {
                let lost = trace.get(self.state as usize).copied().unwrap_or(false);
                self.state = (self.state + 1).checked_rem(trace.len() as u32).unwrap_or(0);
                lost
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(model: LossModel, packets: usize) -> Vec<bool> {
        let (mut loss, mut random) = (Loss::new(model), SplitMix64::new(7, 1));
        (0..packets).map(|_| loss.next(&mut random)).collect()
    }

    fn rate(lost: &[bool]) -> f64 {
        lost.iter().filter(|&&lost| lost).count() as f64 / lost.len() as f64
    }

    #[test]
    fn losses_come_as_often_as_the_model_says() {
        let p = Probability::new;
        let models = [
            LossModel::None,
            LossModel::bernoulli(0.3),
            LossModel::markov(0.05, 5.0),
            LossModel::markov(0.5, 1.0),
            LossModel::markov(0.9, 2.0),
            LossModel::markov(1.0, 3.0),
            LossModel::Gilbert {
                to_bad: p(0.01),
                to_good: p(0.25),
                good_loss: p(0.01),
                bad_loss: p(0.75),
            },
            LossModel::Periodic { period: 4, first: 6 },
            LossModel::Trace([true, false, false].into()),
        ];
        for model in models {
            let (expected, measured) = (model.mean(), rate(&run(model.clone(), 300_000)));
            assert!((expected - measured).abs() < 0.004, "{model:?}: {measured}, not {expected}");
        }
    }

    #[test]
    fn losses_of_the_two_state_model_come_in_bursts_of_the_given_length() {
        for b in [1.0, 2.0, 8.0] {
            let lost = run(LossModel::markov(0.05, b), 400_000);
            let bursts = lost.windows(2).filter(|pair| !pair[0] && pair[1]).count();
            let mean = rate(&lost) * lost.len() as f64 / bursts as f64;
            assert!((mean - b).abs() < 0.05 * b, "{mean}, not {b}");
        }
    }

    #[test]
    fn sequences_begin_where_they_say_and_repeat() {
        let periodic = run(LossModel::Periodic { period: 3, first: 1 }, 7);
        assert_eq!(periodic, [false, true, false, false, true, false, false]);
        let every = run(LossModel::Periodic { period: 1, first: 5 }, 3);
        assert_eq!(every, [true; 3]);
        let trace = run(LossModel::Trace([true, false].into()), 5);
        assert_eq!(trace, [true, false, true, false, true]);
        assert_eq!(run(LossModel::Trace([].into()), 2), [false; 2]);
        assert_eq!(run(LossModel::Periodic { period: 0, first: 0 }, 2), [false; 2]);
    }
}
