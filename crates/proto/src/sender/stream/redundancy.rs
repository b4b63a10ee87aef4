//! How many repair symbols the fragments of a stream have, and how many fragments are sent at a
//! time.

/// Most fragments that are sent at a time: half of what an index can list.
pub(super) const MAX_ON_AIR: usize = 32;
/// The same if fragments are listed until no receiver lacks any of them. An index lists 64.
const MAX_REPAIRABLE: usize = 48;

/// How many repair symbols the fragments of a stream have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamRedundancy {
    /// [`repair_symbols`] at so many per thousand source symbols.
    Fixed {
        /// Repair symbols per thousand source symbols.
        permille: u32,
    },
    /// As many as receivers request (`StreamSender::handle_request`); at first, as many as the
    /// requests for earlier fragments predict.
    Reported {
        /// As in [`Fixed`](Self::Fixed), while no receiver reports.
        permille: u32,
    },
}

impl StreamRedundancy {
    /// Bounds of the repair symbols per thousand source symbols that are made of a fragment for
    /// requests, for a driver to choose by its memory. They cover a loss of a fifth to a third, and
    /// bound what receivers can cause that lie.
    pub const REQUESTED_PERMILLE: std::ops::RangeInclusive<u32> = 300..=1_000;

    /// The repair symbols that are made of a fragment of `source_symbols`: those that may be sent.
    /// `requested_permille`: for requests.
    pub fn prepared(self, source_symbols: u32, requested_permille: u32) -> u32 {
        repair_symbols(
            source_symbols,
            match self {
                Self::Fixed { permille } => permille,
                Self::Reported { permille } => permille.max(requested_permille),
            },
        )
    }

    pub(super) const fn permille(self) -> u32 {
        match self {
            Self::Fixed { permille } | Self::Reported { permille } => permille,
        }
    }

    pub(super) const fn is_reported(self) -> bool {
        matches!(self, Self::Reported { .. })
    }

    /// Most fragments that are sent at a time.
    pub(super) const fn max_on_air(self) -> usize {
        match self {
            Self::Fixed { .. } => MAX_ON_AIR,
            Self::Reported { .. } => MAX_REPAIRABLE,
        }
    }
}

/// Repair symbols of a fragment of `source_symbols` at a repair share of `permille`, p:
/// `p k + 3 sqrt(k) + 4`, rounded up. A loss of p / (1 + p) removes p k on average, with a standard
/// deviation below a third of sqrt(k): this covers nine deviations, and 4 symbols cover the
/// shortest fragments, which may lose everything (`docs/tuning.md`).
pub fn repair_symbols(source_symbols: u32, permille: u32) -> u32 {
    let share = (u64::from(source_symbols) * u64::from(permille)).div_ceil(1000);
    let spare = 3 * u64::from(source_symbols.isqrt() + 1) + 4;
    // The ESIs of RaptorQ have 24 bits (RFC 6330, section 3.2).
    let most = (1 << 24) - u64::from(source_symbols);
    (share + spare).min(most) as u32
}
