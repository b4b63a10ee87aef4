//! In which order the symbols of a session's blocks are sent.

use crate::random::SplitMix64;
use fontana_fec::{Esi, FecScheme};
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// Which block's turn is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransmissionSchedule {
    /// Even progress: every block of every object has at any moment had the same share of its
    /// symbols sent, to within one grain. A receiver may join at any time and no block is the
    /// last one. A block of `k` symbols counts as `k + sqrt(k) + 1`: how many of its symbols a
    /// lossy receiver misses varies with the root of `k`, and a file of one symbol that was lost
    /// should not have to wait until a thousand others have gone round.
    Interleaved {
        /// Symbols that a block sends in one turn; 0 counts as 1. A sender whose memory cannot
        /// hold a symbol of every block encodes a block for several symbols at a time, and pays
        /// with progress that is less even: receivers hear up to a grain too much of some blocks.
        grain: u32,
    },
    /// One block after the other, each with its share of repair symbols: for receivers that write
    /// blocks in order and hold few of them, as deployed FLUTE receivers do.
    Sequential {
        /// Repair symbols per thousand source symbols that follow the source symbols of a block.
        repair_permille: u32,
    },
}

impl TransmissionSchedule {
    /// Even progress to within one symbol.
    pub const EVEN: Self = Self::Interleaved { grain: 1 };
}

impl Default for TransmissionSchedule {
    fn default() -> Self {
        Self::EVEN
    }
}

/// Encoding symbols of one block in the order of sending: the source symbols once (unless this
/// sender leaves them to another), then repair symbols that were never sent before, from a
/// starting point drawn at random so that several senders of one object rarely meet. A code that
/// has only so many symbols repeats them in their order: source symbols, then repair symbols. One
/// who leaves the source pass to another starts at random in that cycle, and goes on to the source
/// symbols too. Tornado's cycle mixes source and repair symbols, and starts at random for everybody: its
/// graphs are made for receivers that have about the same share of every layer.
#[derive(Clone, Debug)]
pub(crate) struct SymbolStream {
    scheme: FecScheme,
    source_symbols: u32,
    source_pass: bool,
    first_repair: u32,
}

impl SymbolStream {
    /// `random` places the first repair symbol.
    pub(crate) fn new(
        scheme: FecScheme,
        source_symbols: u32,
        source_pass: bool,
        random: &mut SplitMix64,
    ) -> Self {
        let repair_symbols =
            scheme.symbols_per_cycle(source_symbols).saturating_sub(source_symbols);
        Self { scheme, source_symbols, source_pass, first_repair: random.below(repair_symbols) }
    }

    pub(crate) fn source_symbols(&self) -> u32 {
        self.source_symbols
    }

    /// Number `i` of the stream.
    pub(crate) fn esi(&self, i: u64) -> Esi {
        let k = u64::from(self.source_symbols.max(1));
        let n = u64::from(self.scheme.symbols_per_cycle(self.source_symbols));
        let source = if self.source_pass && self.scheme.is_systematic() { k } else { 0 };
        Esi(match self.scheme {
            FecScheme::NoCode { .. } => i % k,
            FecScheme::RaptorQ { .. } | FecScheme::Lt { .. } if i < source => i,
            FecScheme::RaptorQ { .. } | FecScheme::Lt { .. } => {
                k + (u64::from(self.first_repair) + (i - source)) % n.saturating_sub(k).max(1)
            }
            FecScheme::Tornado { .. } => {
                (u64::from(self.first_repair) + i % n.max(1) * golden_step(n)) % n.max(1)
            }
            FecScheme::ReedSolomon { .. } => {
                let start = if self.source_pass { 0 } else { k + u64::from(self.first_repair) };
                (start + i) % n.max(1)
            }
        } as u32)
    }
}

/// The least number from the golden section of `n` on that has no divisor in common with it: with
/// steps of this length round a cycle of `n`, any run of them is spread evenly over the cycle, and all
/// of it is visited.
fn golden_step(n: u64) -> u64 {
    const fn gcd(a: u64, b: u64) -> u64 {
        if b == 0 { a } else { gcd(b, a % b) }
    }
    (n * 618 / 1000..n).find(|&step| gcd(n, step) == 1).unwrap_or(1)
}

/// One turn: block `block` (an index into the sender's list) sends number `i` of its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    pub(crate) block: usize,
    pub(crate) i: u64,
}

/// The endless (or, with a limit, finite) order of turns over a set of blocks.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    kind: Kind,
    /// Source symbols of each block; 0 once the block has been withdrawn.
    source_symbols: Vec<u32>,
    /// Symbols per thousand source symbols after which a block is finished.
    limit_permille: Option<u32>,
}

#[derive(Clone, Debug)]
enum Kind {
    Interleaved { heap: BinaryHeap<Reverse<Position>> },
    Sequential { visit_permille: u32, cycle: u64, block: usize, in_visit: u64 },
}

/// A block's next symbol. The grain that it belongs to is due when the share of a pass that ends
/// in the grain's middle is over; a grain that has begun goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Position {
    i: u64,
    grain: u64,
    /// Symbols of the block in one pass.
    weight: u64,
    block: usize,
}

fn weight(source_symbols: u32) -> u64 {
    u64::from(source_symbols) + u64::from(source_symbols.isqrt()) + 1
}

impl Position {
    /// Twice the number of symbols before the middle of the grain.
    fn middle(&self) -> u128 {
        u128::from(2 * (self.i / self.grain) + 1) * u128::from(self.grain)
    }
}

impl Ord for Position {
    fn cmp(&self, other: &Self) -> Ordering {
        let scaled = |a: &Self, b: &Self| a.middle() * u128::from(b.weight);
        scaled(self, other).cmp(&scaled(other, self)).then(self.block.cmp(&other.block))
    }
}

impl PartialOrd for Position {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Order {
    /// `source_symbols` has one entry per block. With `limit_permille`, a block of `k` source
    /// symbols gets `k * limit_permille / 1000` turns, rounded up, and no more.
    pub(crate) fn new(
        schedule: TransmissionSchedule,
        source_symbols: Vec<u32>,
        limit_permille: Option<u32>,
    ) -> Self {
        let kind = match schedule {
            TransmissionSchedule::Interleaved { grain } => Kind::Interleaved {
                heap: source_symbols
                    .iter()
                    .enumerate()
                    .filter(|&(_, &k)| k > 0)
                    .map(|(block, &k)| {
                        let grain = u64::from(grain.clamp(1, k));
                        Reverse(Position { i: 0, grain, weight: weight(k), block })
                    })
                    .collect(),
            },
            TransmissionSchedule::Sequential { repair_permille } => Kind::Sequential {
                visit_permille: repair_permille.saturating_add(1000),
                cycle: 0,
                block: 0,
                in_visit: 0,
            },
        };
        Self { kind, source_symbols, limit_permille }
    }

    /// Queues of the order: one, whatever the channel that a symbol is sent on.
    pub(crate) fn queue_count(&self) -> usize {
        1
    }

    /// The next turn of a queue.
    pub(crate) fn turn(&mut self, _queue: usize) -> Option<Turn> {
        self.next()
    }

    /// Takes a block out of the order.
    pub(crate) fn withdraw(&mut self, block: usize) {
        if let Some(k) = self.source_symbols.get_mut(block) {
            *k = 0;
        }
    }

    fn share(source_symbols: u32, permille: u32) -> u64 {
        (u64::from(source_symbols) * u64::from(permille)).div_ceil(1000)
    }
}

impl Iterator for Order {
    type Item = Turn;

    fn next(&mut self) -> Option<Turn> {
        let limit = self.limit_permille;
        let within = |k: u32, i: u64| limit.is_none_or(|permille| i < Self::share(k, permille));
        match &mut self.kind {
            Kind::Interleaved { heap } => loop {
                let Reverse(position) = heap.pop()?;
                let Position { i, block, .. } = position;
                let Some(&k) = self.source_symbols.get(block).filter(|&&k| k > 0) else {
                    continue;
                };
                if within(k, i + 1) {
                    heap.push(Reverse(Position { i: i + 1, ..position }));
                }
                // A limit of 0 asks for nothing at all.
                if within(k, i) {
                    return Some(Turn { block, i });
                }
            },
            Kind::Sequential { visit_permille, cycle, block, in_visit } => {
                // One cycle without a turn means that there is none.
                for _ in 0..=self.source_symbols.len() {
                    let k = *self.source_symbols.get(*block)?;
                    let visit = Self::share(k, *visit_permille);
                    let i = *cycle * visit + *in_visit;
                    if *in_visit < visit && within(k, i) {
                        *in_visit += 1;
                        return Some(Turn { block: *block, i });
                    }
                    *in_visit = 0;
                    *block += 1;
                    if *block == self.source_symbols.len() {
                        (*block, *cycle) = (0, *cycle + 1);
                    }
                }
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fontana_fec::ReedSolomonCode;
    use fontana_fec::lt::Lt;
    use fontana_fec::tornado::Tornado;
    use proptest::prelude::*;

    const RAPTORQ: FecScheme = FecScheme::RaptorQ { source_blocks: 1, sub_blocks: 1, alignment: 4 };
    /// RaptorQ names its symbols with 24 bits (RFC 6330, section 3.2).
    const RAPTORQ_SYMBOLS: u32 = 1 << 24;

    proptest! {
        #[test]
        fn interleaved_blocks_progress_evenly(
            lengths in proptest::collection::vec(1_u32..200, 1..20),
            turns in 1_usize..4_000,
        ) {
            let total: u64 = lengths.iter().map(|&k| weight(k)).sum();
            let mut sent = vec![0_u64; lengths.len()];
            let order = Order::new(TransmissionSchedule::EVEN, lengths.clone(), None);
            for (n, turn) in order.take(turns).enumerate() {
                prop_assert_eq!(turn.i, sent[turn.block]);
                sent[turn.block] += 1;
                // Each block's share is within one of its symbols of the session's, plus what
                // the other blocks round up.
                let done = (n + 1) as f64 / total as f64;
                for (&k, &s) in lengths.iter().zip(&sent) {
                    let weight = weight(k) as f64;
                    let slack = 1.0 + weight * lengths.len() as f64 / total as f64;
                    prop_assert!((s as f64 - done * weight).abs() <= slack);
                }
            }
        }

        #[test]
        fn a_limit_gives_every_block_its_share_and_ends(
            lengths in proptest::collection::vec(0_u32..50, 0..10),
            permille in 0_u32..3_000,
            sequential in any::<bool>(),
        ) {
            let schedule = if sequential {
                TransmissionSchedule::Sequential { repair_permille: permille.saturating_sub(1000) }
            } else {
                TransmissionSchedule::EVEN
            };
            let mut sent = vec![0_u64; lengths.len()];
            for turn in Order::new(schedule, lengths.clone(), Some(permille)) {
                sent[turn.block] += 1;
            }
            for (&k, &s) in lengths.iter().zip(&sent) {
                prop_assert_eq!(s, (u64::from(k) * u64::from(permille)).div_ceil(1000));
            }
        }
    }

    #[test]
    fn a_grain_is_sent_in_one_go_and_grains_progress_evenly() {
        let schedule = TransmissionSchedule::Interleaved { grain: 2 };
        let turns: Vec<_> = Order::new(schedule, vec![4, 4, 1], None).take(9).collect();
        let blocks: Vec<_> = turns.iter().map(|t| t.block).collect();
        assert_eq!(blocks, [0, 0, 1, 1, 2, 0, 0, 1, 1], "{turns:?}");
    }

    #[test]
    fn sequential_finishes_a_block_before_the_next() {
        let schedule = TransmissionSchedule::Sequential { repair_permille: 500 };
        let turns: Vec<_> = Order::new(schedule, vec![2, 4], None).take(12).collect();
        let blocks: Vec<_> = turns.iter().map(|t| t.block).collect();
        assert_eq!(blocks, [0, 0, 0, 1, 1, 1, 1, 1, 1, 0, 0, 0]);
        assert_eq!(turns[9], Turn { block: 0, i: 3 });
    }

    #[test]
    fn a_withdrawn_block_has_no_more_turns() {
        for schedule in
            [TransmissionSchedule::EVEN, TransmissionSchedule::Sequential { repair_permille: 0 }]
        {
            let mut order = Order::new(schedule, vec![3, 3], None);
            order.next();
            order.withdraw(0);
            assert!(order.clone().take(10).all(|turn| turn.block == 1));
            order.withdraw(1);
            assert_eq!(order.next(), None);
        }
    }

    #[test]
    fn source_symbols_come_once_and_repair_symbols_are_fresh_round_the_whole_range() {
        for source_pass in [true, false] {
            let mut random = SplitMix64::new(7, 0);
            let stream = SymbolStream::new(RAPTORQ, 10, source_pass, &mut random);
            let source = if source_pass { 10 } else { 0 };
            let period = u64::from(RAPTORQ_SYMBOLS) - 10;
            let head: Vec<_> = (0..source).map(|i| stream.esi(i).0).collect();
            assert_eq!(head, (0..source as u32).collect::<Vec<_>>());
            assert!((0..1000).all(|i| stream.esi(source + i).0 >= 10));
            assert!((0..1000).all(|i| stream.esi(source + i).0 < RAPTORQ_SYMBOLS));
            let seen: std::collections::BTreeSet<_> =
                (0..100_000).map(|i| stream.esi(source + i)).collect();
            assert_eq!(seen.len(), 100_000);
            assert_eq!(stream.esi(source), stream.esi(source + period));
        }
    }

    #[test]
    fn a_code_of_few_symbols_repeats_them_all_and_lt_has_no_source_pass() {
        let stream = |scheme, source_pass| {
            let stream = SymbolStream::new(scheme, 10, source_pass, &mut SplitMix64::new(3, 1));
            (0..40).map(|i| stream.esi(i).0).collect::<Vec<_>>()
        };
        let tornado = FecScheme::Tornado { max_source_block_length: 10, code: Tornado::Z };
        for source_pass in [true, false] {
            let mut esis = stream(tornado, source_pass);
            assert_eq!(esis[..20], esis[20..]);
            // As many of either half in any run, give or take.
            for run in esis.windows(6) {
                assert!((2..=4).contains(&run.iter().filter(|&&esi| esi < 10).count()), "{run:?}");
            }
            esis[..20].sort_unstable();
            assert_eq!(esis[..20], (0..20).collect::<Vec<_>>());
        }
        let lt = FecScheme::Lt { max_source_block_length: 10, code: Lt::fast(10, 1) };
        assert!(stream(lt, true).iter().all(|&esi| esi >= 10));
        assert_eq!(stream(lt, true), stream(lt, false));
    }

    #[test]
    fn a_short_reed_solomon_block_has_its_share_of_the_repair_symbols() {
        let scheme = FecScheme::ReedSolomon {
            code: ReedSolomonCode::Rfc5510,
            max_source_block_length: 4,
            max_encoding_symbols: 8,
        };
        let esis = |source_pass, seed| -> Vec<u32> {
            let stream = SymbolStream::new(scheme, 3, source_pass, &mut SplitMix64::new(seed, 1));
            (0..14).map(|i| stream.esi(i).0).collect()
        };
        assert_eq!(esis(true, 1), [0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5, 0, 1]);
        // Others begin with a repair symbol, not all of them with the same.
        let firsts: std::collections::BTreeSet<u32> =
            (0..20).map(|seed| esis(false, seed)[0]).collect();
        assert_eq!(firsts.into_iter().collect::<Vec<_>>(), [3, 4, 5]);
        let seen: std::collections::BTreeSet<u32> = esis(false, 1).into_iter().take(6).collect();
        assert_eq!(seen.len(), 6);
    }

    #[test]
    fn a_code_without_repair_repeats_its_source_symbols() {
        let scheme = FecScheme::NoCode { max_source_block_length: 3 };
        let stream = SymbolStream::new(scheme, 3, true, &mut SplitMix64::new(1, 1));
        let esis: Vec<_> = (0..7).map(|i| stream.esi(i).0).collect();
        assert_eq!(esis, [0, 1, 2, 0, 1, 2, 0]);
    }
}
