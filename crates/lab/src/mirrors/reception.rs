//! One receiver of several senders, by counting distinct packets.

use crate::estimate::Estimate;
use crate::statistics::Histogram;
use fontana_proto::SplitMix64;
use fontana_sim::{Loss, LossModel};

/// Senders of one encoding, each in a random order of its own, and a receiver of all of them.
#[derive(Clone, Debug)]
pub(crate) struct Mirrors {
    /// Distinct packets that the receiver needs.
    needed: u32,
    /// Whose packet arrives next, over one period.
    turn: Vec<usize>,
    /// For each sender its order of the packets.
    orders: Vec<Vec<u32>>,
    /// The last reception in which a packet was seen.
    seen: Vec<u32>,
    reception: u32,
    /// Of each sender's path.
    loss: LossModel,
}

/// What the receiver got until it had enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MirrorReception {
    /// Packets that arrived, all of them.
    pub(crate) packets: u32,
    /// Packets that the first sender sent: the time it took.
    pub(crate) first: u32,
}

/// The same, on average.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Mean {
    pub(crate) packets: Estimate,
    pub(crate) first: Estimate,
}

impl Mean {
    /// The reception inefficiency of a file of `source_symbols`.
    pub(crate) fn inefficiency(self, source_symbols: u32) -> Estimate {
        self.packets.times(1.0 / f64::from(source_symbols))
    }

    /// The speed-up over the first sender alone, of which `needed` packets suffice.
    pub(crate) fn speedup(self, needed: u32) -> Estimate {
        Estimate::from(f64::from(needed)).over(self.first)
    }
}

impl Mirrors {
    /// Senders of relative `rates`, the fastest first, of an encoding of `encoding_symbols`.
    pub(crate) fn new(rates: &[u32], encoding_symbols: u32, needed: u32) -> Self {
        Self {
            needed: needed.min(encoding_symbols),
            turn: turn(rates),
            orders: vec![(0..encoding_symbols).collect(); rates.len()],
            seen: vec![0; encoding_symbols as usize],
            reception: 0,
            loss: LossModel::None,
        }
    }

    /// The same, with losses on each path.
    pub(crate) fn with_loss(self, loss: LossModel) -> Self {
        Self { loss, ..self }
    }

    /// One reception. Orders are drawn as packets are sent: a Fisher-Yates shuffle that stops when
    /// the receiver has enough, and begins again with whatever order it has left.
    pub(crate) fn receive(&mut self, random: &mut SplitMix64) -> MirrorReception {
        self.reception += 1;
        let encoding_symbols = self.seen.len() as u32;
        let mut sent = vec![0_u32; self.orders.len()];
        let mut losses = vec![Loss::new(self.loss.clone()); self.orders.len()];
        let (mut packets, mut distinct) = (0, 0);
        for &sender in self.turn.iter().cycle() {
            if distinct >= self.needed {
                break;
            }
            let (order, sent) = (&mut self.orders[sender], &mut sent[sender]);
            // A sender that has sent everything sends it again, in the same order.
            let position = *sent % encoding_symbols;
            if *sent < encoding_symbols {
                let other = position + random.below(encoding_symbols - position);
                order.swap(position as usize, other as usize);
            }
            *sent += 1;
            if losses[sender].next(random) {
                continue;
            }
            packets += 1;
            let packet = order[position as usize] as usize;
            if self.seen[packet] != self.reception {
                self.seen[packet] = self.reception;
                distinct += 1;
            }
        }
        MirrorReception { packets, first: sent.first().copied().unwrap_or(0) }
    }

    /// The mean of many receptions.
    pub(crate) fn mean(&mut self, trials: u32, random: &mut SplitMix64) -> Mean {
        let (mut packets, mut first) = (Histogram::default(), Histogram::default());
        for _ in 0..trials {
            let got = self.receive(random);
            packets.add(got.packets);
            first.add(got.first);
        }
        Mean { packets: Estimate::mean_of(&packets), first: Estimate::mean_of(&first) }
    }
}

/// The order in which packets of senders of these rates arrive: each as evenly as it can be.
pub(crate) fn turn(rates: &[u32]) -> Vec<usize> {
    let mut turn: Vec<(f64, usize)> = Vec::new();
    for (sender, &rate) in rates.iter().enumerate() {
        turn.extend((0..rate).map(|i| ((f64::from(i) + 0.5) / f64::from(rate), sender)));
    }
    turn.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    turn.into_iter().map(|(_, sender)| sender).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_sender_sends_nothing_twice() {
        let mut mirrors = Mirrors::new(&[1], 2000, 1055);
        let mut random = SplitMix64::new(1, 1);
        for _ in 0..10 {
            assert_eq!(
                mirrors.receive(&mut random),
                MirrorReception { packets: 1055, first: 1055 }
            );
        }
    }

    #[test]
    fn a_receiver_that_needs_everything_waits_for_the_last_packet() {
        let mut mirrors = Mirrors::new(&[1, 1], 100, 100);
        let got = mirrors.receive(&mut SplitMix64::new(1, 1));
        assert!(got.packets > 100 && got.packets <= 199, "{got:?}");
        // One sender has at most sent everything.
        assert!(got.first <= 100);
    }

    #[test]
    fn faster_senders_have_more_turns_evenly() {
        assert_eq!(turn(&[1, 1]), [0, 1]);
        assert_eq!(turn(&[2, 1]), [0, 1, 0]);
        assert_eq!(turn(&[4, 2, 1]), [0, 1, 0, 2, 0, 1, 0]);
    }
}
