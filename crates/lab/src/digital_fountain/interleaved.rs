//! Interleaved Reed-Solomon codes: a file in blocks, each of which any `k` of its `2k` packets
//! recover, sent round robin, one packet of each block in turn, for ever.

use super::loss::LossProcess;
use fontana_proto::SplitMix64;

/// A reception of a carousel, until the receiver has the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CarouselReception {
    /// Distinct packets that it received.
    pub(crate) distinct: u32,
    /// Packets that were sent while it listened.
    pub(crate) sent: u32,
}

/// An interleaved carousel, and the memory of one receiver after the other.
#[derive(Clone, Debug)]
pub(crate) struct Interleaved {
    /// Source packets of each block. They differ by one at most.
    lengths: Vec<u32>,
    /// Block of the packet in each slot of the carousel.
    slots: Vec<u32>,
    /// Whether the packet of each slot has been received.
    got: Vec<bool>,
    /// Packets that each block still needs; negative if it received more than it needed.
    needed: Vec<i32>,
}

impl Interleaved {
    /// A file of `source_symbols` packets in `blocks` blocks of nearly equal length.
    pub(crate) fn new(source_symbols: u32, blocks: u32) -> Self {
        let (length, longer) = (source_symbols / blocks, source_symbols % blocks);
        let lengths: Vec<u32> = (0..blocks).map(|b| length + u32::from(b < longer)).collect();
        let rounds = 2 * (length + u32::from(longer > 0));
        // The last rounds have packets of the longer blocks only.
        let slots: Vec<u32> = (0..rounds)
            .flat_map(|round| (0..blocks).zip(&lengths).filter(move |(_, k)| round < 2 * **k))
            .map(|(block, _)| block)
            .collect();
        let (got, needed) = (vec![false; slots.len()], Vec::new());
        Self { lengths, slots, got, needed }
    }

    /// A receiver that joins at any time. `None` if it needs more than `limit` distinct packets.
    pub(crate) fn receive(
        &mut self,
        mut loss: LossProcess,
        limit: u32,
        random: &mut SplitMix64,
    ) -> Option<CarouselReception> {
        self.needed.clear();
        self.needed.extend(self.lengths.iter().map(|&length| length as i32));
        let Self { slots, got, needed, .. } = self;
        got.fill(false);
        let (mut distinct, mut sent, mut incomplete) = (0, 0, needed.len());
        let mut from = random.below(slots.len() as u32) as usize;
        // A copy, whose state stays in a register.
        let mut draws = random.clone();
        let end = 'reception: loop {
            for (place, (got, &block)) in (1..).zip(got[from..].iter_mut().zip(&slots[from..])) {
                // No branch depends on the loss alone: it could not be predicted.
                let fresh = !loss.next(&mut draws) & !*got;
                *got |= fresh;
                distinct += u32::from(fresh);
                let needed = &mut needed[block as usize];
                *needed -= i32::from(fresh);
                if (*needed == 0) & fresh {
                    incomplete -= 1;
                }
                if (incomplete == 0) | (distinct > limit) {
                    sent += place;
                    break 'reception incomplete == 0 && distinct <= limit;
                }
            }
            sent += (slots.len() - from) as u32;
            from = 0;
        };
        *random = draws;
        end.then_some(CarouselReception { distinct, sent })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_loss_everything_arrives_in_the_first_half() {
        let mut random = SplitMix64::new(1, 1);
        for (source_symbols, blocks) in [(100, 1), (100, 10), (100, 100)] {
            let mut file = Interleaved::new(source_symbols, blocks);
            let got = file.receive(LossProcess::random(0.0), u32::MAX, &mut random);
            assert_eq!(got, Some(CarouselReception { distinct: 100, sent: 100 }));
        }
        // In unequal blocks the carousel's end may bring more of the longer ones.
        let mut file = Interleaved::new(101, 10);
        let got = file.receive(LossProcess::random(0.0), u32::MAX, &mut random);
        assert!((101..=110).contains(&got.unwrap().distinct), "{got:?}");
    }

    #[test]
    fn one_block_needs_exactly_its_length_whatever_is_lost() {
        let mut random = SplitMix64::new(1, 1);
        let mut file = Interleaved::new(50, 1);
        for share in [0.1, 0.5, 0.9] {
            let got = file.receive(LossProcess::random(share), 50, &mut random);
            assert_eq!(got.map(|got| got.distinct), Some(50));
            assert_eq!(file.receive(LossProcess::random(share), 49, &mut random), None);
        }
    }

    #[test]
    fn every_block_has_twice_its_length_of_slots() {
        let file = Interleaved::new(23, 5);
        for (block, length) in file.lengths.iter().enumerate() {
            let slots = file.slots.iter().filter(|slot| **slot as usize == block).count();
            assert_eq!(slots as u32, 2 * length);
        }
    }
}
