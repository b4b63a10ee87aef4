//! Tornado codes (Byers, Luby, Mitzenmacher, "A Digital Fountain Approach to Asynchronous Reliable
//! Multicast", section V): systematic, every symbol a sum of a few others, recovered one from
//! another by *peeling*. About 1.05 `k` symbols recover a block of `k`.
//!
//! [`Tornado::Z`] of 16 000 symbols is the paper's Tornado Z, edge counts and all; the rule that
//! scales it to other lengths and stretch factors is [`Graph`]'s.
//!
//! To count how many symbols it takes, no bytes are needed:
//!
//! ```
//! use fontana_fec::{Esi, tornado::{Peeler, Peeling, Tornado}};
//!
//! let graph = Tornado::Z.graph(1_000)?;
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

mod decoder;
mod graph;
mod peeler;
mod recovery;

pub(crate) use decoder::TornadoDecoder;
pub use graph::Graph;
pub use peeler::{Peeler, Peeling};
pub(crate) use recovery::Recovery;

use crate::code::{BlockLengthError, Work};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Longest block: four times the paper's longest, and a graph of 13 million edges at stretch 10.
pub(crate) const MAX_SOURCE_SYMBOLS: u32 = 64_000;

/// Which Tornado code: the stretch factor and the seed of the random graphs. Two ends that hold the
/// same one, and agree on `k`, have the same graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tornado {
    stretch_factor: u8,
    seed: u64,
}

/// A stretch factor that the rule for graphs does not cover.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a Tornado code that stretches a block by {actual}, it is 2 to 10")]
pub struct StretchError {
    /// What was asked for.
    pub actual: u8,
}

impl Tornado {
    /// The paper's: twice as many encoding symbols as source symbols.
    pub const Z: Self = Self { stretch_factor: 2, seed: 0 };

    /// The code with `stretch_factor` times as many encoding symbols as source symbols.
    ///
    /// # Errors
    /// [`StretchError`] if that is not 2 to 10. Beyond, the checks of a block are so many that
    /// decoding costs more than with a code without a stretch factor.
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

    /// What the graphs are drawn from.
    pub const fn seed(self) -> u64 {
        self.seed
    }

    /// The graph of blocks of `source_symbols`. It is large and takes a while to draw: all who use
    /// the same one at the same time share it.
    ///
    /// # Errors
    /// [`BlockLengthError`] if that is not 1 to 64 000.
    pub fn graph(self, source_symbols: u32) -> Result<Arc<Graph>, BlockLengthError> {
        if (1..=MAX_SOURCE_SYMBOLS).contains(&source_symbols) {
            Ok(self.shared_graph(source_symbols))
        } else {
            Err(BlockLengthError { actual: source_symbols, limit: MAX_SOURCE_SYMBOLS })
        }
    }

    /// `source_symbols` is within the code's limits.
    pub(crate) fn shared_graph(self, source_symbols: u32) -> Arc<Graph> {
        type InUse = BTreeMap<(Tornado, u32), Weak<Graph>>;
        // As many entries as there are graphs in somebody's hands, and one more.
        static IN_USE: Mutex<InUse> = Mutex::new(BTreeMap::new());
        let in_use = || IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (self, source_symbols);
        if let Some(graph) = in_use().get(&key).and_then(Weak::upgrade) {
            return graph;
        }
        // Drawn outside the lock: who asks for another graph need not wait.
        let drawn = Arc::new(Graph::new(self, source_symbols));
        let mut in_use = in_use();
        if let Some(graph) = in_use.get(&key).and_then(Weak::upgrade) {
            return graph;
        }
        in_use.retain(|_, graph| graph.strong_count() > 0);
        in_use.insert(key, Arc::downgrade(&drawn));
        drawn
    }

    /// See [`FecScheme::decoder_memory`](crate::FecScheme::decoder_memory).
    pub(crate) fn decoder_memory(self, source_symbols: u32) -> u64 {
        /// An edge of the graph: from both ends, and once more while it is drawn.
        const EDGE: u64 = 16;
        /// What is noted of an encoding symbol.
        const SYMBOL: u64 = 32;
        let n = u64::from(source_symbols) * u64::from(self.stretch_factor);
        EDGE * self.work(source_symbols).0 + SYMBOL * n
    }

    /// A bound of the work to decode a block: each edge is used once.
    pub(crate) fn work(self, source_symbols: u32) -> Work {
        /// Edges of G1 and G2 for each source symbol, and of the second graph for each of those and
        /// of the stretch factor: more than there are.
        const EDGES: (u64, u64) = (8, 6);
        let (k, c) = (u64::from(source_symbols), u64::from(self.stretch_factor));
        Work(k * (EDGES.0 + c + EDGES.1 * c) + 1_000)
    }
}
