//! The blocks that all contestants work on.

use fontana_fec::Esi;

/// Bytes of a symbol: fits an Ethernet frame.
pub(crate) const SYMBOL_SIZE: usize = 1280;

/// A measured task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scenario {
    /// Planning, on ids alone, for a block whose source symbols are all available.
    Plan,
    /// Computing as many repair symbols as there are source symbols, with a prepared plan.
    Encode,
    /// Decoding from all source symbols, of which `lost` in a hundred, evenly distributed, are
    /// replaced by repair symbols; planning included.
    Decode { lost: u32 },
    /// Decoding from as many symbols as needed, for codes of which no `k` symbols suffice, or
    /// without source symbols. Planning included.
    Receive,
    /// The planning of `Receive`.
    ReceiveIds,
}

impl Scenario {
    pub(crate) const ALL: [Self; 7] = [
        Self::Plan,
        Self::Encode,
        Self::Decode { lost: 50 },
        Self::Decode { lost: 5 },
        Self::Decode { lost: 1 },
        Self::Receive,
        Self::ReceiveIds,
    ];

    pub(crate) fn name(self) -> String {
        match self {
            Self::Plan => "plan".to_owned(),
            Self::Encode => "encode".to_owned(),
            Self::Decode { lost } => format!("decode{lost}"),
            Self::Receive => "receive".to_owned(),
            Self::ReceiveIds => "receive-ids".to_owned(),
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scenario| scenario.name() == name)
    }
}

/// A source block.
pub(crate) struct Workload {
    pub(crate) k: u32,
    pub(crate) block: Vec<u8>,
}

impl Workload {
    /// A block of `k` different symbols.
    pub(crate) fn new(k: u32) -> Self {
        let mut state = 1_u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        Self { k, block: (0..k as usize * SYMBOL_SIZE).map(|_| next()).collect() }
    }

    /// Source symbol `esi`.
    pub(crate) fn symbol(&self, esi: Esi) -> &[u8] {
        symbol(&self.block, esi.0)
    }

    /// The source symbols that are lost if `percent` of them are, evenly distributed.
    pub(crate) fn lost(&self, percent: u32) -> Vec<Esi> {
        let is_lost = |esi: &u32| (esi + 1) * percent / 100 != esi * percent / 100;
        (0..self.k).filter(is_lost).map(Esi).collect()
    }
}

/// Symbol `index` of contiguous symbols.
pub(crate) fn symbol(bytes: &[u8], index: u32) -> &[u8] {
    &bytes[index as usize * SYMBOL_SIZE..][..SYMBOL_SIZE]
}
