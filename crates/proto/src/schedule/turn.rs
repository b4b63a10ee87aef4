//! Turns of blocks, and their limits.

/// One turn: block `block` (an index into the sender's list) sends symbol number `i` of its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    pub(crate) block: usize,
    pub(crate) i: u64,
}

/// A [`Turn`] in half the memory, for lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ListedSymbol {
    pub(super) block: u32,
    pub(super) i: u32,
}

/// Properties of a block that a schedule uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockShape {
    /// Object of the block. Blocks of one object are consecutive.
    pub(crate) object: u32,
    /// `k`: number of source symbols.
    pub(crate) source_symbols: u32,
    /// `n`: number of symbols after which a sender repeats itself; `None` if the code is rateless.
    pub(crate) encoding_symbols: Option<u32>,
}

/// Largest number of symbols in the list of an order: 32 MB, for a layer or for all.
pub(super) const MAX_CYCLE: u64 = 1 << 22;

/// Rule for a number of consecutive symbols of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RunLength {
    /// Largest number.
    pub(super) most: u64,
    /// At most one part in so many of the block's symbols, rounded up.
    pub(super) parts: u64,
}

impl RunLength {
    /// One symbol.
    pub(super) const ONE: Self = Self { most: 1, parts: 1 };
    /// All symbols.
    pub(super) const WHOLE: Self = Self { most: u64::MAX, parts: 1 };

    /// The number for a block, or a phase, of `symbols` symbols; at least 1.
    pub(crate) fn of(self, symbols: u64) -> u64 {
        self.most.min(symbols.div_ceil(self.parts.max(1))).max(1)
    }
}

/// Number of turns that each block may still have.
#[derive(Clone, Debug)]
pub(super) struct Quota {
    /// Turns left of each block; `None`: unlimited.
    left: Vec<Option<u64>>,
    /// Number of blocks with turns left.
    open: usize,
}

impl Quota {
    pub(super) fn new(blocks: &[BlockShape], limit_permille: Option<u32>) -> Self {
        let left = blocks.iter().map(|shape| match (shape.source_symbols, limit_permille) {
            (0, _) => Some(0),
            (_, None) => None,
            (k, Some(permille)) => Some(share(k, permille)),
        });
        let left: Vec<_> = left.collect();
        let open = left.iter().filter(|&&left| left != Some(0)).count();
        Self { left, open }
    }

    /// Takes one turn of a block; false if it has none left.
    pub(super) fn spend(&mut self, block: usize) -> bool {
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

    /// Removes all turns of a block.
    pub(super) fn close(&mut self, block: usize) {
        if let Some(left) = self.left.get_mut(block) {
            self.open -= usize::from(*left != Some(0));
            *left = Some(0);
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.open == 0
    }
}

/// This many per thousand of a block's source symbols, rounded up.
pub(crate) fn share(source_symbols: u32, permille: u32) -> u64 {
    (u64::from(source_symbols) * u64::from(permille)).div_ceil(1000)
}
