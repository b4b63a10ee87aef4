//! LT codes (Luby, "LT codes", FOCS 2002; "A Digital Fountain Approach to Asynchronous Reliable
//! Multicast", section V). Every encoding symbol is the sum of a random set of source symbols, so
//! their number is unlimited.
//!
//! Encoding symbol `k + i` is the sum that `Rows` draws for it. The code is not systematic: senders
//! do not use the numbers below `k`, which name the source symbols, but a decoder accepts them.
//!
//! Integers ([`LtCode`]) give the distribution of sums, so two hosts agree to the bit. The sender
//! chooses them. To count how many symbols a block takes:
//!
//! ```
//! use fontana_fec::{Esi, codes::lt::LtCode, study::lt::Peeler};
//!
//! let k = 1_000;
//! let mut peeler = Peeler::new(LtCode::fast(k, 1), k)?;
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
//!
//! | | |
//! |---|---|
//! | source | Luby 2002, sections 3 and 4; parameters in `docs/codes.md` |
//! | slow reference | `crates/fec/tests/fec/sparse/reference.rs` |
//! | tests | `crates/fec/tests/fec/sparse`: degrees, reception, hostile ids |

mod decoder;
pub(crate) mod degrees;
mod elimination;
pub(crate) mod peeler;
mod profile;
mod recovery;
pub(crate) mod rows;

use crate::code::{BlockProfile, Code, CodeProfile, Factors, Padding};
use crate::decode::IdDecoder;
use crate::ids::EncodingId;
use crate::limits::{
    Interleaving, MAX_TRANSFER_LENGTH, ObjectLimits, OtiError, Partition, check_block_length_limit,
};
use crate::parameters::{CodeError, Format, Information, SchemeParameters};
use crate::plan::{Plan, PlanCache};
use alloc::boxed::Box;
use alloc::sync::Arc;
use decoder::{LtDecoder, symbols_kept};
use degrees::Degrees;
use peeler::Peeler;
use recovery::Recovery;
use rows::Rows;

/// LT: a rateless code whose encoding symbols are all sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lt {
    /// `B`: most source symbols in a block.
    pub max_source_block_length: u32,
    /// The LT code.
    pub code: LtCode,
}

/// Longest block. Beyond a million symbols, each one causes about twenty cache misses; a decoder
/// takes about 200 MB there.
pub const MAX_SOURCE_SYMBOLS: u32 = 1 << 20;
/// Most blocks of an object. Block numbers have 32 bits (RFC 5445, section 4), but a receiver keeps
/// some state for every block.
pub const MAX_BLOCKS: u32 = 1 << 16;
/// Encoding symbols of a block: one less than there are ESIs, so that the count has 32 bits too.
const ENCODING_SYMBOLS: u32 = u32::MAX;

/// Profile in 8 bits (0 fast, 1 strict), seed in 64, spike, ripple and spike weight in 32 each: a
/// format of Fontana.
pub(crate) const FORMAT: Format = Format {
    encoding_id: EncodingId::EXPANDABLE,
    instance_ids: Some(&[INSTANCE_ID]),
    information_size: 21,
};
const INSTANCE_ID: u16 = 2;

impl Lt {
    pub(crate) fn parse(parameters: &SchemeParameters) -> Result<Self, CodeError> {
        let &[profile, ref numbers @ ..] = parameters.information::<21>()?;
        let profile = match profile {
            0 => Profile::Fast,
            1 => Profile::Strict,
            other => return Err(CodeError::Profile(other)),
        };
        let number = |from: usize, size: usize| {
            numbers[from..from + size].iter().fold(0, |sum, &byte| sum << 8 | u64::from(byte))
        };
        let code = LtCode {
            profile,
            seed: number(0, 8),
            spike: number(8, 4) as u32,
            ripple: number(12, 4) as u32,
            spike_weight: number(16, 4) as u32,
        };
        Ok(Self { max_source_block_length: parameters.block_length()?, code })
    }
}

impl Code for Lt {
    fn profile(&self) -> CodeProfile {
        CodeProfile {
            name: "lt",
            encoding_id: FORMAT.encoding_id,
            is_systematic: false,
            is_rateless: true,
            is_mds: false,
            factors: Factors::Bits,
            mixes_cycle: false,
            padding: Padding::Sent,
            max_source_symbols: MAX_SOURCE_SYMBOLS,
            sure_surplus: None,
        }
    }

    fn block_profile(&self, source_symbols: u32) -> BlockProfile {
        BlockProfile {
            encoding_symbols: ENCODING_SYMBOLS,
            symbols_per_cycle: ENCODING_SYMBOLS,
            max_repair_symbols: symbols_kept(source_symbols),
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
        Box::new(LtDecoder::new(self.code, source_symbols))
    }

    /// A source plan is small, so it is not shared. The rows of an LT code are large, but they are
    /// not stored.
    fn source_plan(&self, source_symbols: u32, _cache: Option<&PlanCache>) -> Arc<Plan> {
        Arc::new(Recovery::of_source(self.code, source_symbols))
    }

    fn parameters(&self) -> SchemeParameters {
        let LtCode { profile, seed, spike, ripple, spike_weight } = self.code;
        let profile = match profile {
            Profile::Fast => 0,
            Profile::Strict => 1,
        };
        let information = Information::EMPTY
            .with([profile])
            .with(seed.to_be_bytes())
            .with(spike.to_be_bytes())
            .with(ripple.to_be_bytes())
            .with(spike_weight.to_be_bytes());
        SchemeParameters {
            max_source_block_length: Some(self.max_source_block_length),
            information,
            ..SchemeParameters::new(FORMAT.encoding_id, Some(INSTANCE_ID))
        }
    }
}

/// The numbers of an LT code on which both ends must agree. Any numbers make a code, but maybe an
/// inefficient one: [`LtCode::fast`] and [`LtCode::strict`] give efficient ones.
///
/// The weight of degree `d`, before normalisation, is that of a robust soliton distribution:
/// `1/k + R/k` for 1, `1/(d(d-1)) + R/(dk)` up to the *spike* `M`, and
/// `1/(M(M-1)) + 1/M + spike_weight` at `M`. No symbol is the sum of more than `M`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LtCode {
    /// The method by which receivers decode.
    pub profile: Profile,
    /// Seed of the random sums.
    pub seed: u64,
    /// `M`: the largest degree. 0 counts as 1. A block of fewer symbols has a smaller one.
    pub spike: u32,
    /// `R`, about the number of symbols that are recovered and not yet used while a receiver
    /// decodes, in units of 2^-16.
    pub ripple: u32,
    /// The extra weight of `M`, in units of 2^-32.
    pub spike_weight: u32,
}

/// The purpose of a code, which decides how receivers decode it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Profile {
    /// By peeling alone: fastest, but needs a few more symbols.
    Fast,
    /// By peeling and elimination: as soon as the symbols determine the block.
    Strict,
}
