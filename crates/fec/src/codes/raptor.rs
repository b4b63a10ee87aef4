//! Raptor (RFC 5053): a systematic code with 2^16 symbols per block, which 3GPP's and DVB's
//! multicast services use. With `m` encoding symbols of a block, most of them source symbols,
//! decoding fails with probability 0.85 * 0.567^(m - K) (Luby, Gasiba, Stockhammer, Watson,
//! "Reliable Multimedia Download Delivery in Cellular Broadcast Networks", IEEE Transactions on
//! Broadcasting 53, 2007).
//!
//! Every encoding symbol is a sum of a few of the block's `L` intermediate symbols (`triple`). The
//! intermediate symbols solve a binary system of the available symbols, and of `S` sparse and `H`
//! dense constraints (`matrix`). The decoder solves it on ids by elimination with inactive columns.
//!
//! The code has no blocks of fewer than 4 symbols. Here, these have their source symbols only.
//!
//! | | |
//! |---|---|
//! | source | [RFC 5053](https://www.rfc-editor.org/rfc/rfc5053), section 5 |
//! | slow reference | `crates/fec/tests/fec/raptor/reference.rs` |
//! | tests | `crates/fec/tests/fec/raptor`: vectors, any ids, hostile ids, failure rates |

mod decoder;
mod matrix;
mod params;
mod recovery;
mod tables;
mod triple;

use crate::code::{BlockProfile, Code, CodeProfile, Factors, Padding};
use crate::codes::no_code::NoCode;
use crate::decode::IdDecoder;
use crate::ids::EncodingId;
use crate::limits::{Interleaving, ObjectLimits, OtiError, Partition};
use crate::parameters::{CodeError, Format, Information, SchemeParameters};
use crate::plan::{Key, Plan, PlanCache};
use alloc::boxed::Box;
use alloc::sync::Arc;
use decoder::RaptorDecoder;
use params::Params;
use recovery::Recovery;

/// Raptor: a rateless code with 2^16 symbols per block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Raptor {
    /// `Z`: blocks that the object is partitioned into.
    pub source_blocks: u16,
    /// `N`: sub-blocks that each source block is partitioned into. With more than one, the bytes of
    /// a symbol are not contiguous in the object.
    pub sub_blocks: u8,
    /// `Al`: alignment of symbols and sub-symbols, in bytes.
    pub alignment: u8,
}

/// Longest block: the largest `K` (RFC 5053, section 5.7).
pub const MAX_SOURCE_SYMBOLS: u32 = 8_192;
/// Most blocks of an object: `Z` has 16 bits (RFC 5053, section 3.2.3).
pub const MAX_BLOCKS: u32 = u16::MAX as u32;
/// Largest object, in bytes (RFC 5053, section 3.2.2).
pub const MAX_TRANSFER_LENGTH: u64 = (1 << 45) - 1;
/// ESIs have 16 bits (RFC 5053, section 3.1).
const ENCODING_SYMBOLS: u32 = 1 << 16;

pub(crate) const FORMAT: Format =
    Format { encoding_id: EncodingId::RAPTOR, instance_ids: None, information_size: 4 };

impl Raptor {
    /// Parses the scheme-specific information (RFC 5053, section 3.2.3).
    pub(crate) fn parse(parameters: &SchemeParameters) -> Result<Self, CodeError> {
        let &[z0, z1, sub_blocks, alignment] = parameters.information()?;
        Ok(Self { source_blocks: u16::from_be_bytes([z0, z1]), sub_blocks, alignment })
    }
}

/// The code of a block that is too short for Raptor.
const SHORT: NoCode = NoCode { max_source_block_length: tables::MIN_SOURCE_SYMBOLS - 1 };

impl Code for Raptor {
    fn profile(&self) -> CodeProfile {
        CodeProfile {
            name: "raptor",
            encoding_id: FORMAT.encoding_id,
            is_systematic: true,
            is_rateless: true,
            is_mds: false,
            factors: Factors::Bits,
            mixes_cycle: false,
            padding: Padding::Optional,
            max_source_symbols: MAX_SOURCE_SYMBOLS,
            // With 24 more, decoding fails once in 10^6 times.
            sure_surplus: Some(25),
        }
    }

    fn block_profile(&self, source_symbols: u32) -> BlockProfile {
        Params::new(source_symbols).map_or_else(
            || SHORT.block_profile(source_symbols),
            |params| BlockProfile {
                encoding_symbols: ENCODING_SYMBOLS,
                symbols_per_cycle: ENCODING_SYMBOLS,
                max_repair_symbols: source_symbols,
                decoder_memory: None,
                work: decoder::work(&params),
                products: 0,
            },
        )
    }

    fn limits(&self, symbol_size: u16) -> Result<ObjectLimits, OtiError> {
        let Self { source_blocks, sub_blocks, alignment } = *self;
        let interleaving = Interleaving { sub_blocks: sub_blocks.into(), alignment };
        interleaving.check(source_blocks, symbol_size)?;
        Ok(ObjectLimits {
            partition: Partition::BlockCount(source_blocks.into()),
            max_source_symbols: MAX_SOURCE_SYMBOLS,
            max_transfer_length: MAX_TRANSFER_LENGTH,
            interleaving,
        })
    }

    fn decoder(&self, source_symbols: u32, cache: Option<&PlanCache>) -> Box<dyn IdDecoder> {
        match Params::new(source_symbols) {
            Some(params) => Box::new(RaptorDecoder::new(params)),
            None => SHORT.decoder(source_symbols, cache),
        }
    }

    fn source_plan(&self, source_symbols: u32, cache: Option<&PlanCache>) -> Arc<Plan> {
        let Some(params) = Params::new(source_symbols) else {
            return SHORT.source_plan(source_symbols, cache);
        };
        let make = || Arc::new(Recovery::of_source(params));
        let key = Key { code: "raptor", numbers: [source_symbols.into(), 0, 0] };
        cache.map_or_else(make, |cache| cache.shared(key, make))
    }

    fn parameters(&self) -> SchemeParameters {
        let [z0, z1] = self.source_blocks.to_be_bytes();
        let information = Information::EMPTY.with([z0, z1, self.sub_blocks, self.alignment]);
        SchemeParameters { information, ..SchemeParameters::new(FORMAT.encoding_id, None) }
    }
}
