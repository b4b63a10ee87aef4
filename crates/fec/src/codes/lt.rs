//! LT codes (Luby, "LT codes", FOCS 2002; "A Digital Fountain Approach to Asynchronous Reliable
//! Multicast", section V): every encoding symbol is the sum of a random set of source symbols, so
//! that there is no end of them.
//!
//! Encoding symbol `k + i` is the sum that [`Rows`] draws for it. The code is not systematic: a
//! sender has no use for the numbers below `k`, which name the source symbols themselves, but a
//! decoder takes them.
//!
//! Which sums are likely is said by integers ([`Lt`]), so that two machines agree to the bit; how
//! they were chosen is the sender's business. To count how many symbols it takes:
//!
//! ```
//! use fontana_fec::{Esi, lt::{Lt, Peeler}};
//!
//! let k = 1_000;
//! let mut peeler = Peeler::new(Lt::fast(k, 1), k)?;
//! let mut symbols = 0;
//! for esi in (k..).map(Esi) {
//!     peeler.push(esi);
//!     symbols += 1;
//!     if peeler.is_complete() {
//!         break;
//!     }
//! }
//! assert!(symbols < 1_300);
//! peeler.reset(); // The next trial allocates nothing.
//! # Ok::<(), fontana_fec::BlockLengthError>(())
//! ```

mod decoder;
mod degrees;
mod elimination;
mod peeler;
mod profile;
mod recovery;
mod rows;

pub(crate) use decoder::{LtDecoder, symbols_kept};
pub use degrees::Degrees;
pub use peeler::Peeler;
pub(crate) use recovery::Recovery;
pub use rows::Rows;

use crate::code::BlockLengthError;

/// Longest block. Beyond a million symbols, each touches the processor's caches about twenty times
/// in vain; the memory of a decoder is some 200 MB there.
pub(crate) const MAX_SOURCE_SYMBOLS: u32 = 1 << 20;

/// Which LT code: the numbers that both ends must agree on. Any numbers make a code, if perhaps a
/// bad one: the good ones come from [`Lt::fast`] and [`Lt::strict`].
///
/// The weight of degree `d`, before all are scaled to add up to 1, is that of a robust soliton
/// distribution: `1/k + R/k` for 1, `1/(d(d-1)) + R/(dk)` up to the *spike* `M`, and
/// `1/(M(M-1)) + 1/M + spike_weight` there; no symbol is the sum of more than `M`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lt {
    /// How receivers decode.
    pub profile: Profile,
    /// What the sums are drawn from.
    pub seed: u64,
    /// `M`: the largest degree. 0 counts as 1, and a block of fewer symbols has fewer.
    pub spike: u32,
    /// `R`, about the number of symbols that are recovered and not yet used while a receiver
    /// decodes: in units of 2^-16.
    pub ripple: u32,
    /// What is added to the weight of `M`: in units of 2^-32.
    pub spike_weight: u32,
}

/// What a code was made for, and so how receivers decode it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Profile {
    /// By peeling alone: the fastest, at the price of some more symbols.
    Fast,
    /// By peeling and elimination: as soon as the symbols determine the block.
    Strict,
}

/// Checks that a block is not too long.
fn check_block_length(source_symbols: u32) -> Result<(), BlockLengthError> {
    if (1..=MAX_SOURCE_SYMBOLS).contains(&source_symbols) {
        Ok(())
    } else {
        Err(BlockLengthError { actual: source_symbols, limit: MAX_SOURCE_SYMBOLS })
    }
}
