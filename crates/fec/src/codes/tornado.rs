//! Tornado codes (Byers, Luby, Mitzenmacher, "A Digital Fountain Approach to Asynchronous Reliable
//! Multicast", section V): systematic codes in which every check symbol is a sum of a few other
//! symbols. Decoding recovers one symbol from another by *peeling*. About 1.05 `k` symbols recover
//! a block of `k`.
//!
//! [`TornadoCode::Z`] of 16 000 symbols is the paper's Tornado Z with the same edge counts. `Graph`
//! has the rule that scales it to other lengths and stretch factors.
//!
//! Counting how many symbols a block takes needs no bytes:
//!
//! ```
//! use fontana_fec::{Esi, codes::tornado::TornadoCode, study::tornado::{Peeler, Peeling}};
//!
//! let graph = TornadoCode::Z.graph(1_000)?;
//! let mut peeler = Peeler::new(graph, Peeling::OneDirectional);
//! for esi in (0..2_000).rev().map(Esi) {
//!     peeler.push(esi)?;
//!     if peeler.is_complete() {
//!         break;
//!     }
//! }
//! assert_eq!(peeler.recovered(), 1_000);
//! peeler.reset(); // The next trial allocates nothing.
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | | |
//! |---|---|
//! | source | Byers, Luby, Mitzenmacher 2002, section V; parameters in `docs/codes.md` |
//! | slow reference | `crates/fec/tests/fec/sparse/reference.rs` |
//! | tests | `crates/fec/tests/fec/sparse`: graphs, reception, hostile ids |

mod decoder;
pub(crate) mod graph;
pub(crate) mod peeler;
mod recovery;

pub use crate::parameters::StretchError;
use alloc::boxed::Box;

use crate::code::{BlockProfile, Code, CodeProfile, Factors, Padding};
use crate::decode::{IdDecoder, Work};
use crate::ids::EncodingId;
use crate::limits::{
    BlockLengthError, Interleaving, MAX_TRANSFER_LENGTH, ObjectLimits, OtiError, Partition,
    check_block_length_limit,
};
use crate::parameters::{CodeError, Format, Information, SchemeParameters};
use crate::plan::{Key, Plan, PlanCache};
use crate::sync::Lock;
use alloc::collections::BTreeMap;
use alloc::sync::{Arc, Weak};
use decoder::TornadoDecoder;
use graph::Graph;
use peeler::{Peeler, Peeling};
use recovery::Recovery;

/// Tornado: systematic, 2 to 10 times as many encoding symbols as source symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tornado {
    /// `B`: most source symbols in a block.
    pub max_source_block_length: u32,
    /// The Tornado code.
    pub code: TornadoCode,
}

/// Longest block: four times the paper's longest, and a graph of 13 million edges at stretch 10.
pub const MAX_SOURCE_SYMBOLS: u32 = 64_000;
/// Most blocks of an object. Block numbers have 32 bits (RFC 5445, section 4), but a receiver keeps
/// some state for every block. With long blocks this limit allows 4 TB.
pub const MAX_BLOCKS: u32 = 1 << 16;

/// Stretch factor in 8 bits and seed in 64: a format of Fontana.
pub(crate) const FORMAT: Format = Format {
    encoding_id: EncodingId::EXPANDABLE,
    instance_ids: Some(&[INSTANCE_ID]),
    information_size: 9,
};
const INSTANCE_ID: u16 = 1;

impl Tornado {
    pub(crate) fn parse(parameters: &SchemeParameters) -> Result<Self, CodeError> {
        let &[stretch_factor, ref seed @ ..] = parameters.information::<9>()?;
        let code = TornadoCode::new(stretch_factor, u64::from_be_bytes(*seed))?;
        Ok(Self { max_source_block_length: parameters.block_length()?, code })
    }
}

impl Code for Tornado {
    fn profile(&self) -> CodeProfile {
        CodeProfile {
            name: "tornado",
            encoding_id: FORMAT.encoding_id,
            is_systematic: true,
            is_rateless: false,
            is_mds: false,
            factors: Factors::Bits,
            mixes_cycle: true,
            padding: Padding::Sent,
            max_source_symbols: MAX_SOURCE_SYMBOLS,
            sure_surplus: None,
        }
    }

    fn block_profile(&self, source_symbols: u32) -> BlockProfile {
        let n = source_symbols.saturating_mul(self.code.stretch_factor.into());
        BlockProfile {
            encoding_symbols: n,
            symbols_per_cycle: n,
            max_repair_symbols: n - source_symbols,
            decoder_memory: Some(self.code.decoder_memory(source_symbols)),
            work: self.code.work(source_symbols),
            products: 0,
        }
    }

    fn limits(&self, _symbol_size: u16) -> Result<ObjectLimits, OtiError> {
        let max_source_block_length = check_block_length_limit(self.max_source_block_length)?;
        Ok(ObjectLimits {
            partition: Partition::BlockLength { max_source_block_length, max_blocks: MAX_BLOCKS },
            max_source_symbols: MAX_SOURCE_SYMBOLS,
            max_transfer_length: MAX_TRANSFER_LENGTH,
            interleaving: Interleaving::NONE,
        })
    }

    fn decoder(&self, source_symbols: u32, _cache: Option<&PlanCache>) -> Box<dyn IdDecoder> {
        Box::new(TornadoDecoder::new(self.code.shared_graph(source_symbols)))
    }

    fn source_plan(&self, source_symbols: u32, cache: Option<&PlanCache>) -> Arc<Plan> {
        let TornadoCode { stretch_factor, seed } = self.code;
        let make = || Arc::new(Recovery::of_source(self.code.shared_graph(source_symbols)));
        let numbers = [stretch_factor.into(), seed, source_symbols.into()];
        cache.map_or_else(make, |cache| cache.shared(Key { code: "tornado", numbers }, make))
    }

    fn parameters(&self) -> SchemeParameters {
        let TornadoCode { stretch_factor, seed } = self.code;
        SchemeParameters {
            max_source_block_length: Some(self.max_source_block_length),
            information: Information::EMPTY.with([stretch_factor]).with(seed.to_be_bytes()),
            ..SchemeParameters::new(FORMAT.encoding_id, Some(INSTANCE_ID))
        }
    }
}

/// A Tornado code: the stretch factor and the seed of the random graphs. Two ends with the same
/// code and `k` have the same graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TornadoCode {
    stretch_factor: u8,
    seed: u64,
}

impl TornadoCode {
    /// The paper's Tornado Z: twice as many encoding symbols as source symbols.
    pub const Z: Self = Self { stretch_factor: 2, seed: 0 };

    /// The code with `stretch_factor` times as many encoding symbols as source symbols.
    ///
    /// # Errors
    /// [`StretchError`] if that is not 2 to 10. Beyond 10, a block has so many checks that decoding
    /// costs more than with a code without a stretch factor.
    pub const fn new(stretch_factor: u8, seed: u64) -> Result<Self, StretchError> {
        match stretch_factor {
            2..=10 => Ok(Self { stretch_factor, seed }),
            actual => Err(StretchError { actual }),
        }
    }

    /// `n/k`.
    pub const fn stretch_factor(self) -> u8 {
        self.stretch_factor
    }

    /// Seed of the graphs.
    pub const fn seed(self) -> u64 {
        self.seed
    }

    /// The graph of blocks of `source_symbols`. It is large and slow to draw, so concurrent users
    /// of the same graph share it.
    ///
    /// # Errors
    /// [`BlockLengthError`] if that is not 1 to 64 000.
    pub fn graph(self, source_symbols: u32) -> Result<Arc<Graph>, BlockLengthError> {
        BlockLengthError::check(source_symbols, MAX_SOURCE_SYMBOLS)?;
        Ok(self.shared_graph(source_symbols))
    }

    /// `source_symbols` must be within the code's limits.
    fn shared_graph(self, source_symbols: u32) -> Arc<Graph> {
        type InUse = BTreeMap<(TornadoCode, u32), Weak<Graph>>;
        // One entry for each graph in use, and one more.
        static IN_USE: Lock<InUse> = Lock::new(BTreeMap::new());
        let in_use = || IN_USE.lock();
        let key = (self, source_symbols);
        if let Some(graph) = in_use().get(&key).and_then(Weak::upgrade) {
            return graph;
        }
        // Drawn outside the lock, so that a thread that needs another graph does not wait.
        let drawn = Arc::new(Graph::new(self, source_symbols));
        let mut in_use = in_use();
        if let Some(graph) = in_use.get(&key).and_then(Weak::upgrade) {
            return graph;
        }
        in_use.retain(|_, graph| graph.strong_count() > 0);
        in_use.insert(key, Arc::downgrade(&drawn));
        drawn
    }

    /// See [`BlockProfile::decoder_memory`].
    fn decoder_memory(self, source_symbols: u32) -> u64 {
        /// An edge of the graph: from both ends, and once more while it is drawn.
        const EDGE: u64 = 16;
        /// State of an encoding symbol.
        const SYMBOL: u64 = 32;
        let n = u64::from(source_symbols) * u64::from(self.stretch_factor);
        EDGE * self.work(source_symbols).0 + SYMBOL * n
    }

    /// A bound of the work to decode a block: each edge is used once.
    fn work(self, source_symbols: u32) -> Work {
        /// Upper bounds: edges of G1 and G2 for each source symbol; edges of the second graph for
        /// each source symbol and unit of the stretch factor.
        const EDGES: (u64, u64) = (8, 6);
        let (k, c) = (u64::from(source_symbols), u64::from(self.stretch_factor));
        Work(k * (EDGES.0 + c + EDGES.1 * c) + 1_000)
    }
}
