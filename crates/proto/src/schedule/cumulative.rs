//! The order for cumulative layers: [`TransmissionSchedule::Cumulative`].
//!
//! The encoding symbols of all blocks form one circle of N, in which blocks take turns. Let p = 0,
//! 1, 2, ... number the packets of all layers together. With rates 1, 1, 2, 4, ... of L layers,
//! layer c > 0 sends the packets whose number has L - 1 - c trailing zero bits, and layer 0 those
//! with more. So the layers below the highest d send every 2^d-th packet. Packet p carries symbol
//!
//! ```text
//! (p mod N) xor f(p div N)   N = 2^a m,  f(q) = sum of the digits of q to the base 2^a, modulo 2^a
//! ```
//!
//! with m odd, or a = L - 1 if N has that many factors of 2. Every set of cumulative layers then
//! sends all N symbols before it repeats one:
//!
//! - For d <= a: in 2^d passes the low d bits of f take every value, and p mod N every multiple of
//!   2^d.
//! - For d > a: 2^d / 2^a and m have no divisor in common, so m packets carry every multiple of
//!   2^a. Their next visits are 2^(d - a) passes apart and have different f, because adding the
//!   digits of s 2^(d - a) rotates the bits of s.
//! - With N odd, the steps alone suffice.
//!
//! Flipping low bits from pass to pass is the reverse binary order of sub-blocks in the first
//! prototype of the digital fountain (Byers, Luby, Mitzenmacher, Rege, SIGCOMM 1998, to which
//! section VII-B of the journal paper refers), without its condition that N be a multiple of 2^(L -
//! 1). Bhattacharyya, Kurose, Towsley and Nagarajan (INFOCOM 1998) show that such schedules exist.
//! The property is exact if the layers are in step; if their clocks are one packet apart, so are
//! the repetitions.
//!
//! [`TransmissionSchedule::Cumulative`]: super::TransmissionSchedule::Cumulative

use super::turn::{BlockShape, ListedSymbol, MAX_CYCLE, Quota, Turn};

/// The circle of symbols, and the position of each layer.
#[derive(Clone, Debug)]
pub(super) struct Cumulative {
    circle: Vec<ListedSymbol>,
    layers: Vec<Layer>,
    /// `a`.
    digit_bits: u32,
}

/// Position of a layer: its next packet is p = pass * N + at, followed by its step to the one
/// after.
#[derive(Clone, Copy, Debug)]
struct Layer {
    pass: u128,
    at: u64,
    step_passes: u128,
    step_at: u64,
}

impl Cumulative {
    /// `None` if a block is rateless, or if there are too many symbols.
    pub(super) fn new(blocks: &[BlockShape], layer_count: usize) -> Option<Self> {
        let lengths: Option<Vec<u32>> = blocks.iter().map(|shape| shape.encoding_symbols).collect();
        let lengths = lengths?;
        let total: u64 = lengths.iter().map(|&n| u64::from(n)).sum();
        if total > MAX_CYCLE {
            return None;
        }
        let mut circle = Vec::with_capacity(total as usize);
        for (block, &n) in (0..).zip(&lengths) {
            circle.extend((0..n).map(|i| ListedSymbol { block, i }));
        }
        // Blocks progress together: each symbol is placed in the middle of its share of the circle.
        let length =
            |place: &ListedSymbol| lengths.get(place.block as usize).map_or(1, |&n| u64::from(n));
        circle.sort_by(|a, b| {
            let middle = |place: &ListedSymbol, other: u64| (2 * u64::from(place.i) + 1) * other;
            let (of_a, of_b) = (length(a), length(b));
            middle(a, of_b).cmp(&middle(b, of_a)).then(a.block.cmp(&b.block))
        });
        let depth = layer_count.clamp(1, 64) as u32 - 1;
        let layers = (0..=depth).map(|layer| Layer::new(layer, depth, total.max(1)));
        let digit_bits = total.max(1).trailing_zeros().min(depth);
        Some(Self { layers: layers.collect(), circle, digit_bits })
    }

    pub(super) fn layer_count(&self) -> usize {
        self.layers.len()
    }

    pub(super) fn next(&mut self, queue: usize, quota: &mut Quota) -> Option<Turn> {
        let n = self.circle.len() as u64;
        let layer = self.layers.get_mut(queue)?;
        // A layer visits every symbol in twice as many packets. If none of them may be sent, there
        // is no turn.
        for _ in 0..2 * n {
            let at = layer.at ^ digit_sum(layer.pass, self.digit_bits);
            layer.advance(n);
            let &ListedSymbol { block, i } = self.circle.get(at as usize)?;
            if quota.spend(block as usize) {
                return Some(Turn { block: block as usize, i: i.into() });
            }
        }
        None
    }
}

impl Layer {
    fn new(layer: u32, depth: u32, n: u64) -> Self {
        let (first, step) = match layer {
            0 => (0, 1_u128 << depth),
            _ => (1 << (depth - layer), 2_u128 << (depth - layer)),
        };
        let n = u128::from(n);
        Self {
            pass: first / n,
            at: (first % n) as u64,
            step_passes: step / n,
            step_at: (step % n) as u64,
        }
    }

    fn advance(&mut self, n: u64) {
        self.at += self.step_at;
        self.pass += self.step_passes;
        if self.at >= n {
            (self.at, self.pass) = (self.at - n, self.pass + 1);
        }
    }
}

/// Sum of the digits of `q` to the base `2^bits`, modulo `2^bits`.
fn digit_sum(mut q: u128, bits: u32) -> u64 {
    let mask = (1_u64 << bits) - 1;
    let mut sum = 0_u64;
    while bits > 0 && q > 0 {
        sum = sum.wrapping_add(q as u64 & mask);
        q >>= bits;
    }
    sum & mask
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn fixed(lengths: &[u32]) -> Vec<BlockShape> {
        let shape = |&n: &u32| BlockShape {
            object: 0,
            source_symbols: n.div_ceil(2),
            encoding_symbols: Some(n),
        };
        lengths.iter().map(shape).collect()
    }

    /// The layer, of `depth + 1` layers, that sends packet `p`.
    fn layer_of(p: u64, depth: u32) -> usize {
        depth.saturating_sub(p.trailing_zeros()) as usize
    }

    proptest! {
        #[test]
        fn every_cumulative_set_of_layers_sends_all_symbols_before_one_twice(
            lengths in proptest::collection::vec(1_u32..70, 1..5),
            layer_count in 1_usize..9,
        ) {
            let blocks = fixed(&lengths);
            let n: usize = lengths.iter().map(|&n| n as usize).sum();
            let depth = layer_count as u32 - 1;
            for top in 0..layer_count {
                let mut order = Cumulative::new(&blocks, layer_count).unwrap();
                let mut quota = Quota::new(&blocks, None);
                let heard = (0..).filter(|&p| layer_of(p, depth) <= top);
                let mut cycle = BTreeSet::new();
                for p in heard.take(3 * n) {
                    let turn = order.next(layer_of(p, depth), &mut quota).unwrap();
                    prop_assert!(cycle.insert((turn.block, turn.i)), "layers up to {}", top);
                    if cycle.len() == n {
                        cycle.clear();
                    }
                }
            }
        }
    }

    #[test]
    fn each_layer_alone_sends_every_symbol() {
        let blocks = fixed(&[8]);
        let mut quota = Quota::new(&blocks, None);
        let mut order = Cumulative::new(&blocks, 4).unwrap();
        let mut take = |layer, count| -> Vec<u64> {
            (0..count).map(|_| order.next(layer, &mut quota).unwrap().i).collect()
        };
        assert_eq!(take(3, 8), [1, 3, 5, 7, 0, 2, 4, 6]);
        assert_eq!(take(2, 8), [2, 6, 3, 7, 0, 4, 1, 5]);
        assert_eq!(take(1, 8), [4, 5, 6, 7, 0, 1, 2, 3]);
        assert_eq!(take(0, 8), [0, 1, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn a_rateless_block_or_too_many_symbols_have_no_circle() {
        let mut blocks = fixed(&[4, 6]);
        assert!(Cumulative::new(&blocks, 3).is_some());
        blocks.push(BlockShape { object: 0, source_symbols: 1, encoding_symbols: None });
        assert!(Cumulative::new(&blocks, 3).is_none());
        let too_many = fixed(&[MAX_CYCLE as u32, 1]);
        assert!(Cumulative::new(&too_many, 3).is_none());
        assert!(Cumulative::new(&[], 3).unwrap().next(0, &mut Quota::new(&[], None)).is_none());
    }
}
