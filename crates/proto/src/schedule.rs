//! In which order the symbols of a session's blocks are sent, and on which channels.

use crate::random::SplitMix64;
use cumulative::Cumulative;
use fcast::Lists;
use interleaved::Interleaved;
use random::Random;
use sequential::Sequential;

mod cumulative;
mod fcast;
mod interleaved;
mod random;
mod sequential;
mod stream;

pub use fcast::{Fcast, ObjectOrder, SymbolOrganization};
pub(crate) use stream::SymbolStream;

/// Which block's turn is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransmissionSchedule {
    /// Even progress: every block of every object has at any moment had the same share of its
    /// symbols sent, to within one grain, and so on each of several channels. A receiver may join at
    /// any time and no block is the last one. A block of `k` symbols counts as `k + sqrt(k) + 1`: how many of its symbols a
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
    /// Every turn drawn at random, blocks in proportion to their length, whatever was drawn before: the
    /// memoryless process of the digital fountain paper (section VII-B). A code of so many symbols
    /// repeats some of them long before all were sent; a rateless one has a fresh one each time.
    Random,
    /// For codes of fixed stretch and layers of rates 1, 1, 2, 4, ...: receivers of any number of layers
    /// hear every encoding symbol before one comes again. Sessions with a rateless code, which never
    /// repeats anything, and those with more than 4 million encoding symbols are interleaved instead.
    Cumulative,
    /// As FCAST sends (Roca, Mordelet 2002). Sessions with more than 4 million symbols in a list are
    /// interleaved instead.
    Fcast(Fcast),
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

/// One turn: block `block` (an index into the sender's list) sends number `i` of its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    pub(crate) block: usize,
    pub(crate) i: u64,
}

/// What a schedule needs to know of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockShape {
    /// Which object it is of: equal numbers are next to each other.
    pub(crate) object: u32,
    /// `k`.
    pub(crate) source_symbols: u32,
    /// `n`: after so many a sender repeats itself; `None` if the code is rateless.
    pub(crate) encoding_symbols: Option<u32>,
}

/// Symbols that an order may hold a list of: 32 MB, for a layer or for all.
const MAX_CYCLE: u64 = 1 << 22;

/// The endless (or, with a limit, finite) order of turns over a set of blocks.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    kind: Kind,
    ledger: Ledger,
}

#[derive(Clone, Debug)]
enum Kind {
    Interleaved(Interleaved),
    Sequential(Sequential),
    Random(Random),
    Cumulative(Cumulative),
    Fcast(Lists),
}

impl Order {
    /// With `limit_permille`, a block of `k` source symbols gets `k * limit_permille / 1000` turns,
    /// rounded up, and no more. `seed` decides what is drawn at random.
    pub(crate) fn new(
        schedule: TransmissionSchedule,
        blocks: &[BlockShape],
        layer_count: usize,
        limit_permille: Option<u32>,
        seed: u64,
    ) -> Self {
        let kind = match schedule {
            TransmissionSchedule::Interleaved { grain } => {
                Some(Kind::Interleaved(Interleaved::new(blocks, grain, layer_count)))
            }
            TransmissionSchedule::Sequential { repair_permille } => {
                Some(Kind::Sequential(Sequential::new(blocks, repair_permille)))
            }
            TransmissionSchedule::Random => {
                Some(Kind::Random(Random::new(blocks, SplitMix64::new(seed, ORDER_STREAM))))
            }
            TransmissionSchedule::Cumulative => {
                Cumulative::new(blocks, layer_count).map(Kind::Cumulative)
            }
            TransmissionSchedule::Fcast(fcast) => {
                Lists::new(fcast, blocks, layer_count, seed ^ ORDER_STREAM).map(Kind::Fcast)
            }
        };
        Self {
            kind: kind
                .unwrap_or_else(|| Kind::Interleaved(Interleaved::new(blocks, 1, layer_count))),
            ledger: Ledger::new(blocks, limit_permille),
        }
    }

    /// Queues of the order: one for each layer, or one for all if it does not matter on which a symbol
    /// is sent.
    pub(crate) fn queue_count(&self) -> usize {
        match &self.kind {
            Kind::Sequential(_) | Kind::Random(_) => 1,
            Kind::Interleaved(order) => order.channel_count(),
            Kind::Cumulative(order) => order.layer_count(),
            Kind::Fcast(order) => order.layer_count(),
        }
    }

    /// The next turn of a queue.
    pub(crate) fn turn(&mut self, queue: usize) -> Option<Turn> {
        let Self { kind, ledger } = self;
        match kind {
            Kind::Interleaved(order) => order.next(queue, ledger),
            Kind::Sequential(order) => order.next(ledger),
            Kind::Random(order) => order.next(ledger),
            Kind::Cumulative(order) => order.next(queue, ledger),
            Kind::Fcast(order) => order.next(queue, ledger),
        }
    }

    /// Takes a block out of the order.
    pub(crate) fn withdraw(&mut self, block: usize) {
        self.ledger.close(block);
    }
}

/// Keeps what is drawn for the order apart from what is drawn for blocks and channels.
const ORDER_STREAM: u64 = 0x6f72_6465_7200_0000;

/// How many turns each block may still have.
#[derive(Clone, Debug)]
struct Ledger {
    /// `None`: as many as it likes.
    left: Vec<Option<u64>>,
    /// Blocks that may have one.
    open: usize,
}

impl Ledger {
    fn new(blocks: &[BlockShape], limit_permille: Option<u32>) -> Self {
        let left = blocks.iter().map(|shape| match (shape.source_symbols, limit_permille) {
            (0, _) => Some(0),
            (_, None) => None,
            (k, Some(permille)) => Some(share(k, permille)),
        });
        let left: Vec<_> = left.collect();
        let open = left.iter().filter(|&&left| left != Some(0)).count();
        Self { left, open }
    }

    /// Takes a turn off what a block may have; false if it may have none.
    fn spend(&mut self, block: usize) -> bool {
        match self.left.get_mut(block) {
            None | Some(Some(0)) => false,
            Some(None) => true,
            Some(Some(left)) => {
                *left -= 1;
                self.open -= usize::from(*left == 0);
                true
            }
        }
    }

    /// The block may have no more turns.
    fn close(&mut self, block: usize) {
        if let Some(left) = self.left.get_mut(block) {
            self.open -= usize::from(*left != Some(0));
            *left = Some(0);
        }
    }

    fn is_over(&self) -> bool {
        self.open == 0
    }
}

/// So many per thousand of a block's source symbols, rounded up.
fn share(source_symbols: u32, permille: u32) -> u64 {
    (u64::from(source_symbols) * u64::from(permille)).div_ceil(1000)
}

#[cfg(test)]
mod tests;
