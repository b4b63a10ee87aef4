//! The orders of Roca and Mordelet, "Improving the efficiency of a multicast file transfer tool
//! based on ALC" (INRIA RR-4411, 2002):
//! [`TransmissionSchedule::Fcast`](super::TransmissionSchedule::Fcast).
//!
//! A layer has a list of symbols, which it sends repeatedly (section 4.3): all n symbols of each
//! block, or one of n/k segments. The list contains the objects in their order and is then
//! permuted, within each object or as a whole (section 4.2), with the algorithm of the annex. For
//! blocks of a rateless code every pass has fresh symbols.
//!
//! In push mode the lowest layers may first send the source symbols once, in sequence (section 7).

use super::turn::{BlockShape, ListedSymbol, MAX_CYCLE, Quota, Turn};
use crate::random::SplitMix64;

/// Order of FCAST: the distribution of symbols over layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fcast {
    /// Symbols of each layer.
    pub organization: SymbolOrganization,
    /// Order of the symbols of several objects.
    pub object_order: ObjectOrder,
    /// `n/k`, if the code has as many symbols; 0 counts as 1. The paper uses 4.
    pub stretch_factor: u32,
    /// `n_al`: number of the lowest layers that first send all source symbols, in sequence
    /// (transmission anticipation, section 7). For push mode, in which receivers are present from
    /// the beginning.
    pub anticipated_layers: u8,
}

/// Symbols of a block that each layer sends (section 4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SymbolOrganization {
    /// Organization 1: all n symbols on each layer.
    AllOnEach,
    /// Organization 2: ESIs `s k .. (s + 1) k` on layer l, with `s = l mod n/k`. `n/k` consecutive
    /// layers have no symbol in common.
    Segments,
}

/// Order of the symbols of several objects (section 4.2). For a session of one object, which the
/// paper calls `single`, `Sequential` and `Random` are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectOrder {
    /// `m/seq`: object after object, the symbols of each in random order.
    Sequential,
    /// `m/p_rand(l)`: all symbols in sequence, then one in `l` is exchanged with any other one. 0
    /// counts as 1, which is [`Random`](Self::Random).
    PartlyRandom {
        /// `l`.
        one_in: u32,
    },
    /// `m/rand`: all symbols of all objects in random order.
    Random,
}

/// The lists of all layers.
#[derive(Clone, Debug)]
pub(super) struct Lists {
    schedule: Fcast,
    blocks: Vec<BlockShape>,
    seed: u64,
    layers: Vec<Option<List>>,
    /// The next anticipated source symbol.
    ahead: Turn,
}

#[derive(Clone, Debug)]
struct List {
    /// Block and number in the block's symbol stream.
    symbols: Vec<ListedSymbol>,
    next: usize,
    pass: u64,
}

impl Lists {
    /// `None` if the lists are too long.
    pub(super) fn new(
        schedule: Fcast,
        blocks: &[BlockShape],
        layer_count: usize,
        seed: u64,
    ) -> Option<Self> {
        let total: u64 =
            blocks.iter().map(|shape| u64::from(schedule.encoding_symbols(shape))).sum();
        (total <= MAX_CYCLE).then(|| Self {
            schedule,
            blocks: blocks.to_vec(),
            seed,
            layers: vec![None; layer_count.max(1)],
            ahead: Turn { block: 0, i: 0 },
        })
    }

    pub(super) fn layer_count(&self) -> usize {
        self.layers.len()
    }

    /// [`Order::beyond`](super::Order::beyond): the end of the last pass that these turns begin. A
    /// pass has all symbols of a block, in any order, or a segment of them.
    pub(super) fn beyond(&self, shape: &BlockShape, turns: u64) -> u64 {
        let in_pass = match self.schedule.organization {
            SymbolOrganization::AllOnEach => self.schedule.encoding_symbols(shape),
            SymbolOrganization::Segments => shape.source_symbols,
        };
        turns.div_ceil(in_pass.max(1).into()) * u64::from(self.schedule.encoding_symbols(shape))
    }

    pub(super) fn next(&mut self, queue: usize, quota: &mut Quota) -> Option<Turn> {
        if quota.is_over() {
            return None;
        }
        if queue < usize::from(self.schedule.anticipated_layers)
            && let Some(turn) = self.next_ahead(quota)
        {
            return Some(turn);
        }
        let Self { schedule, blocks, seed, layers, .. } = self;
        let list = layers
            .get_mut(queue)?
            .get_or_insert_with(|| List::new(*schedule, blocks, queue, *seed));
        // If no block of the list has a turn left, there is none.
        for _ in 0..list.symbols.len() {
            let &ListedSymbol { block, i } = list.symbols.get(list.next)?;
            let pass = list.pass;
            list.next += 1;
            if list.next == list.symbols.len() {
                (list.next, list.pass) = (0, pass + 1);
            }
            let (block, mut i) = (block as usize, u64::from(i));
            let shape = blocks.get(block)?;
            if shape.encoding_symbols.is_none() {
                i += pass * u64::from(schedule.encoding_symbols(shape));
            }
            if quota.spend(block) {
                return Some(Turn { block, i });
            }
        }
        None
    }

    /// The next anticipated source symbol, over all blocks in sequence.
    fn next_ahead(&mut self, quota: &mut Quota) -> Option<Turn> {
        loop {
            let Turn { block, i } = self.ahead;
            let k = self.blocks.get(block)?.source_symbols;
            if i < u64::from(k) && quota.spend(block) {
                self.ahead.i += 1;
                return Some(Turn { block, i });
            }
            self.ahead = Turn { block: block + 1, i: 0 };
        }
    }
}

impl Fcast {
    /// `n` of a block.
    fn encoding_symbols(&self, shape: &BlockShape) -> u32 {
        let n = shape.source_symbols.saturating_mul(self.stretch_factor.max(1));
        n.min(shape.encoding_symbols.unwrap_or(u32::MAX))
    }

    /// Numbers of a block's symbols on a layer.
    fn on_layer(&self, shape: &BlockShape, layer: usize) -> std::ops::Range<u32> {
        let (k, n) = (shape.source_symbols, self.encoding_symbols(shape));
        match self.organization {
            SymbolOrganization::AllOnEach => 0..n,
            SymbolOrganization::Segments => {
                let segment = layer as u32 % n.div_ceil(k.max(1)).max(1);
                let start = segment * k;
                start..n.min(start.saturating_add(k))
            }
        }
    }
}

impl List {
    fn new(schedule: Fcast, blocks: &[BlockShape], layer: usize, seed: u64) -> Self {
        let mut random = SplitMix64::new(seed, layer as u64);
        let (mut symbols, mut object_starts) = (Vec::new(), Vec::new());
        let mut object = None;
        for (block, shape) in (0..).zip(blocks) {
            if object.replace(shape.object) != Some(shape.object) {
                object_starts.push(symbols.len());
            }
            symbols.extend(schedule.on_layer(shape, layer).map(|i| ListedSymbol { block, i }));
        }
        match schedule.object_order {
            ObjectOrder::Random => permute(&mut symbols, 1, &mut random),
            ObjectOrder::PartlyRandom { one_in } => permute(&mut symbols, one_in, &mut random),
            ObjectOrder::Sequential => {
                let mut rest = symbols.as_mut_slice();
                while let Some(start) = object_starts.pop() {
                    let (before, object) = rest.split_at_mut(start);
                    permute(object, 1, &mut random);
                    rest = before;
                }
            }
        }
        Self { symbols, next: 0, pass: 0 }
    }
}

/// Permutation of the paper's annex A: one element out of `one_in` is exchanged with one drawn from
/// all. The paper calls it fully random for 1. Drawing from all elements, instead of from the
/// following ones, favors some permutations (`docs/errata.md`).
fn permute<T>(elements: &mut [T], one_in: u32, random: &mut SplitMix64) {
    let n = elements.len();
    for i in (0..n).step_by(one_in.max(1) as usize) {
        // At most MAX_CYCLE.
        elements.swap(i, random.below(n as u32) as usize);
    }
}

#[cfg(test)]
mod tests;
