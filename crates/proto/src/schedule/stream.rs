//! The encoding symbols of a block in the order of transmission.

use crate::random::SplitMix64;
use fontana_fec::{Esi, FecScheme};

/// Encoding symbols of one block in the order of transmission.
///
/// - Rateless codes: the source symbols once (unless another sender sends them), then fresh repair
///   symbols. The first one is random, so that several senders of one object rarely send the same.
/// - Codes with a fixed number of symbols: source symbols and repair symbols in a cycle. A sender
///   without the source pass begins the same cycle at a random repair symbol; without repair
///   symbols, at the same random share of each block: receivers that have the beginning of every
///   block from a run before it have less to hear again.
/// - Tornado: a cycle that mixes source and repair symbols and begins at random for every sender,
///   because its graphs are made for receivers that have about the same share of every layer.
#[derive(Clone, Debug)]
pub(crate) struct SymbolStream {
    source_symbols: u32,
    source_pass: bool,
    /// The source symbol with which the source pass of a rateless code begins.
    first_source: u32,
    first_repair: u32,
    /// Number of encoding symbols after which the first one repeats.
    cycle: u32,
    order: EsiOrder,
}

/// The order of the symbols of a block.
#[derive(Clone, Copy, Debug)]
enum EsiOrder {
    /// Source symbols, if the sender sends them, then repair symbols without end.
    Fountain { is_systematic: bool },
    /// All symbols in their order, repeated.
    Cycle,
    /// All symbols, evenly mixed by steps of this length, repeated.
    Mixed { step: u64 },
    /// Number `i` is ESI `i`.
    Plain,
}

impl SymbolStream {
    /// A stream with the source pass. `random` determines the first repair symbol.
    pub(crate) fn new(scheme: FecScheme, source_symbols: u32, random: &mut SplitMix64) -> Self {
        let code = scheme.profile();
        let cycle = scheme.block_profile(source_symbols).symbols_per_cycle;
        let first_repair = random.below(cycle.saturating_sub(source_symbols));
        // The shortest blocks of Raptor have no repair symbols.
        let order = if code.is_rateless && cycle > source_symbols {
            EsiOrder::Fountain { is_systematic: code.is_systematic }
        } else if code.mixes_cycle {
            EsiOrder::Mixed { step: golden_step(cycle.into()) }
        } else {
            EsiOrder::Cycle
        };
        Self { source_symbols, source_pass: true, first_source: 0, first_repair, cycle, order }
    }

    /// The same stream, whose source pass begins at `start`, in parts of 2^32 of the block, if
    /// fresh repair symbols follow it: senders on different networks begin at different places, and
    /// a receiver on several of them gets no symbol twice.
    pub(crate) fn with_pass_start(self, start: u32) -> Self {
        let first_source = ((u64::from(self.source_symbols) * u64::from(start)) >> 32) as u32;
        Self { first_source, ..self }
    }

    /// The same stream for a sender that leaves the source pass to another sender. `start`: where
    /// it begins if there are no repair symbols, in parts of 2^32 of the block.
    pub(crate) fn without_source_pass(self, start: u32) -> Self {
        let first_repair = match self.cycle > self.source_symbols {
            true => self.first_repair,
            false => ((u64::from(self.cycle) * u64::from(start)) >> 32) as u32,
        };
        Self { source_pass: false, first_repair, ..self }
    }

    /// The same stream with plain numbers, for an order that interprets numbers itself. FCAST's
    /// organization 2 sends the first `k` numbers on its lowest layer. In the mixed cycle of a
    /// Tornado code, these would not suffice for a receiver of this layer alone.
    pub(crate) fn plain(self) -> Self {
        match self.order {
            EsiOrder::Mixed { .. } => Self { order: EsiOrder::Plain, ..self },
            EsiOrder::Fountain { .. } | EsiOrder::Cycle | EsiOrder::Plain => self,
        }
    }

    pub(crate) fn source_symbols(&self) -> u32 {
        self.source_symbols
    }

    /// ESI of symbol number `i`.
    pub(crate) fn esi(&self, i: u64) -> Esi {
        let (k, n) = (u64::from(self.source_symbols.max(1)), u64::from(self.cycle));
        let (first_repair, cycle) = (u64::from(self.first_repair), n.max(1));
        Esi(match self.order {
            EsiOrder::Fountain { is_systematic } => {
                let source = if self.source_pass && is_systematic { k } else { 0 };
                if i < source {
                    (u64::from(self.first_source) + i) % k
                } else {
                    k + (first_repair + (i - source)) % n.saturating_sub(k).max(1)
                }
            }
            EsiOrder::Cycle => {
                let start = if self.source_pass { 0 } else { k + first_repair };
                (start + i) % cycle
            }
            EsiOrder::Mixed { step } => (first_repair + i % cycle * step) % cycle,
            EsiOrder::Plain => i % cycle,
        } as u32)
    }
}

/// The least number from the golden section of `n` on that is prime to `n`. Steps of this length
/// around a cycle of `n` spread any run of them evenly, and visit the whole cycle.
fn golden_step(n: u64) -> u64 {
    const fn gcd(a: u64, b: u64) -> u64 {
        if b == 0 { a } else { gcd(b, a % b) }
    }
    (n * 618 / 1000..n).find(|&step| gcd(n, step) == 1).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fontana_fec::codes::no_code::NoCode;
    use fontana_fec::codes::raptor::Raptor;
    use fontana_fec::codes::raptorq::RaptorQ;
    use fontana_fec::codes::reed_solomon::{ReedSolomon, ReedSolomonCode};

    use fontana_fec::codes::lt::{Lt, LtCode};
    use fontana_fec::codes::tornado::{Tornado, TornadoCode};

    const RAPTORQ: FecScheme =
        FecScheme::RaptorQ(RaptorQ { source_blocks: 1, sub_blocks: 1, alignment: 4 });
    /// RaptorQ names its symbols with 24 bits (RFC 6330, section 3.2).
    const RAPTORQ_SYMBOLS: u32 = 1 << 24;

    fn with(source_pass: bool, stream: SymbolStream) -> SymbolStream {
        if source_pass { stream } else { stream.without_source_pass(0) }
    }

    #[test]
    fn source_symbols_come_once_and_repair_symbols_are_fresh_round_the_whole_range() {
        for source_pass in [true, false] {
            let mut random = SplitMix64::new(7, 0);
            let stream = with(source_pass, SymbolStream::new(RAPTORQ, 10, &mut random));
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
    fn a_source_pass_that_begins_within_the_block_has_all_source_symbols() {
        let stream = SymbolStream::new(RAPTORQ, 10, &mut SplitMix64::new(7, 0));
        let stream = stream.with_pass_start(1 << 31);
        let mut esis: Vec<_> = (0..10).map(|i| stream.esi(i).0).collect();
        assert_eq!(esis[..6], [5, 6, 7, 8, 9, 0]);
        esis.sort_unstable();
        assert_eq!(esis, (0..10).collect::<Vec<_>>());
        assert!(stream.esi(10).0 >= 10);
    }

    #[test]
    fn a_code_of_few_symbols_repeats_them_all_and_lt_has_no_source_pass() {
        let stream = |scheme, source_pass| {
            let stream =
                with(source_pass, SymbolStream::new(scheme, 10, &mut SplitMix64::new(3, 1)));
            (0..40).map(|i| stream.esi(i).0).collect::<Vec<_>>()
        };
        let tornado =
            FecScheme::Tornado(Tornado { max_source_block_length: 10, code: TornadoCode::Z });
        for source_pass in [true, false] {
            let mut esis = stream(tornado, source_pass);
            assert_eq!(esis[..20], esis[20..]);
            // Every run has about as many symbols of each half.
            for run in esis.windows(6) {
                assert!((2..=4).contains(&run.iter().filter(|&&esi| esi < 10).count()), "{run:?}");
            }
            esis[..20].sort_unstable();
            assert_eq!(esis[..20], (0..20).collect::<Vec<_>>());
        }
        let lt = FecScheme::Lt(Lt { max_source_block_length: 10, code: LtCode::fast(10, 1) });
        assert!(stream(lt, true).iter().all(|&esi| esi >= 10));
        assert_eq!(stream(lt, true), stream(lt, false));
    }

    #[test]
    fn the_first_symbols_of_a_plain_tornado_stream_are_the_source_symbols() {
        let tornado =
            FecScheme::Tornado(Tornado { max_source_block_length: 10, code: TornadoCode::Z });
        for source_pass in [true, false] {
            let stream =
                with(source_pass, SymbolStream::new(tornado, 10, &mut SplitMix64::new(3, 1)));
            let esis: Vec<_> = (0..25).map(|i| stream.clone().plain().esi(i).0).collect();
            assert_eq!(esis, (0..20).chain(0..5).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_short_reed_solomon_block_has_its_share_of_the_repair_symbols() {
        let scheme = FecScheme::ReedSolomon(ReedSolomon {
            code: ReedSolomonCode::Rfc5510,
            max_source_block_length: 4,
            max_encoding_symbols: 8,
        });
        let esis = |source_pass, seed| -> Vec<u32> {
            let stream =
                with(source_pass, SymbolStream::new(scheme, 3, &mut SplitMix64::new(seed, 1)));
            (0..14).map(|i| stream.esi(i).0).collect()
        };
        assert_eq!(esis(true, 1), [0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5, 0, 1]);
        // Other senders begin with a repair symbol, and not all with the same.
        let firsts: std::collections::BTreeSet<u32> =
            (0..20).map(|seed| esis(false, seed)[0]).collect();
        assert_eq!(firsts.into_iter().collect::<Vec<_>>(), [3, 4, 5]);
        let seen: std::collections::BTreeSet<u32> = esis(false, 1).into_iter().take(6).collect();
        assert_eq!(seen.len(), 6);
    }

    #[test]
    fn a_code_without_repair_repeats_its_source_symbols() {
        let scheme = FecScheme::NoCode(NoCode { max_source_block_length: 3 });
        let stream = SymbolStream::new(scheme, 3, &mut SplitMix64::new(1, 1));
        let esis: Vec<_> = (0..7).map(|i| stream.esi(i).0).collect();
        assert_eq!(esis, [0, 1, 2, 0, 1, 2, 0]);
        // A further run begins within the block.
        for (start, expected) in [(0, 0), (1 << 31, 1), (u32::MAX, 2)] {
            let stream = stream.clone().without_source_pass(start);
            let esis: Vec<_> = (0..4).map(|i| stream.esi(i).0).collect();
            assert_eq!(esis, [0, 1, 2, 3].map(|i| (expected + i) % 3));
        }
    }

    #[test]
    fn a_raptor_block_without_repair_symbols_repeats_its_source_symbols() {
        let scheme = FecScheme::Raptor(Raptor { source_blocks: 1, sub_blocks: 1, alignment: 1 });
        let esis = |k: u32, source_pass: bool| -> Vec<u32> {
            let stream =
                with(source_pass, SymbolStream::new(scheme, k, &mut SplitMix64::new(1, 1)));
            (0..7).map(|i| stream.esi(i).0).collect()
        };
        assert_eq!(esis(3, true), [0, 1, 2, 0, 1, 2, 0]);
        assert!(esis(3, false).iter().all(|&esi| esi < 3));
        assert_eq!(esis(4, true)[..4], [0, 1, 2, 3]);
        assert!(esis(4, false).iter().all(|&esi| (4..1 << 16).contains(&esi)));
    }
}
