//! What a member has of its blocks.

use crate::endpoint::BlockId;
use fontana_fec::Esi;
use std::net::IpAddr;
use std::ops::Range;
use std::time::Duration;

/// What a member has, as its receiver knows it.
pub trait Holdings {
    /// The first blocks after one that lack symbols, or of all; at most so many, in ascending
    /// order, each with the number of symbols that it lacks.
    fn lacking(&self, after: Option<BlockId>, most: usize) -> Vec<(BlockId, u32)>;

    /// A block. `None` if it is not received.
    fn block(&self, block: BlockId) -> Option<BlockHolding>;

    /// The symbols of a range that it does not have, ascending: those that one map can name.
    fn missing(&self, block: BlockId, esis: Range<u32>) -> Vec<u32>;

    /// From the first to after the last repair symbol that it has.
    fn repair_span(&self, block: BlockId) -> Option<Range<u32>>;

    /// Those of these symbols that it has received and may send, in their order.
    fn held(&self, block: BlockId, esis: &[Esi]) -> Vec<Esi>;

    /// Symbols of use that the session has brought. It never falls.
    fn session_symbols(&self) -> u64;

    /// Whether symbols that another member has sent from this address were right.
    fn is_proven(&self, address: IpAddr) -> bool;
}

/// What a member has of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockHolding {
    /// All of it, verified.
    pub has_block: bool,
    /// It has symbols that may be sent to others.
    pub is_sound: bool,
    /// It was solved with symbols of other members, and its hash was wrong: what they have sent
    /// says nothing.
    pub was_corrupt: bool,
    /// Symbols that it lacks; 0 if enough have arrived.
    pub lacking: u32,
    /// Source symbols of the block.
    pub source_symbols: u32,
    /// Encoding symbols of the block.
    pub encoding_symbols: u32,
    /// Bytes of a symbol.
    pub symbol_size: u16,
    /// Fresh symbols can be made of it ([`FreshStart`](fontana_wire::FreshStart)).
    pub makes_fresh: bool,
}

/// How much longer a member waits that lacks a whole block than one that lacks nothing of it: a
/// hundredth of that tells members apart.
const ORDER: Duration = Duration::from_secs(2);

impl BlockHolding {
    /// Whether the code of the block has this symbol.
    pub fn has_symbol(&self, esi: Esi) -> bool {
        esi.0 < self.encoding_symbols
    }

    /// Most symbols that one member can use.
    pub(super) fn most_useful(&self) -> u32 {
        self.source_symbols.saturating_add(8)
    }

    /// How much longer it waits before it asks for the block than one that lacks nothing.
    pub(super) fn order(&self, lacking: u32) -> Duration {
        let k = self.source_symbols.max(1);
        ORDER.mul_f64(f64::from(lacking.min(k)) / f64::from(k))
    }
}
