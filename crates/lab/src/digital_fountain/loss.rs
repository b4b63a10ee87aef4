//! Losses of packets in transit.

use fontana_proto::SplitMix64;

/// Losses of a receiver.
#[derive(Clone, Debug)]
pub(crate) enum LossProcess {
    /// Each packet is lost with the same probability, in units of 2^-64.
    Random(u64),
    /// Two states (Gilbert): packets are lost in the bad one. Probabilities of leaving the good and
    /// the bad state before a packet, in units of 2^-64.
    Bursts { begin: u64, end: u64, bad: bool },
}

impl LossProcess {
    /// Independent losses.
    pub(crate) fn random(share: f64) -> Self {
        Self::Random(units(share))
    }

    /// The same share of losses, in bursts of `length` packets on average.
    pub(crate) fn bursts(share: f64, length: f64) -> Self {
        let end = 1.0 / length;
        let begin = end * share / (1.0 - share);
        Self::Bursts { begin: units(begin), end: units(end), bad: false }
    }

    /// Whether the next packet is lost.
    #[inline]
    pub(crate) fn next(&mut self, random: &mut SplitMix64) -> bool {
        match self {
            Self::Random(share) => random.next_u64() < *share,
            Self::Bursts { begin, end, bad } => {
                *bad = if *bad { random.next_u64() >= *end } else { random.next_u64() < *begin };
                *bad
            }
        }
    }
}

fn units(probability: f64) -> u64 {
    (probability * 2_f64.powi(64)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_lose_their_share_and_bursts_have_their_length() {
        for (mut loss, length) in
            [(LossProcess::random(0.1), 1.11), (LossProcess::bursts(0.1, 4.0), 4.0)]
        {
            let mut random = SplitMix64::new(1, 1);
            let (mut lost, mut bursts, mut before) = (0, 0, false);
            for _ in 0..1_000_000 {
                let now = loss.next(&mut random);
                lost += u32::from(now);
                bursts += u32::from(now && !before);
                before = now;
            }
            assert!((f64::from(lost) / 1e6 - 0.1).abs() < 0.003, "{lost}");
            assert!((f64::from(lost) / f64::from(bursts) - length).abs() < 0.05, "{bursts}");
        }
    }
}
