//! RaptorQ (RFC 6330): a systematic rateless code. Any `K` encoding symbols of a block recover it
//! with probability 0.99. Each additional symbol makes a failure a hundred times rarer.
//!
//! Every encoding symbol is a sum of a few of the block's `L` intermediate symbols (`tuple`). The
//! intermediate symbols solve a linear system of the available symbols, and `S` sparse and `H`
//! dense constraints. The decoder solves it on ids (`matrix`, `peeling`, `dense` with `hdpc`,
//! joined in `planner`). The solution is a `program`, which `execute` runs on bytes. If only a few
//! symbols are lost, a `direct` plan is shorter: it uses what all blocks of equal length share
//! (`full`), by way of `transpose`.
//!
//! | | |
//! |---|---|
//! | source | [RFC 6330](https://www.rfc-editor.org/rfc/rfc6330), section 5 |
//! | slow reference | `crates/fec/tests/fec/raptorq/reference.rs` |
//! | tests | `crates/fec/tests/fec/raptorq`: vectors, the crate `raptorq`, hostile ids, failure rates |

mod decoder;
mod dense;
mod direct;
mod execute;
mod full;
mod hdpc;
mod matrix;
mod params;
mod peeling;
mod planner;
mod program;
mod recovery;
pub(crate) mod tables;
mod transpose;
mod tuple;

use alloc::boxed::Box;
use alloc::vec::Vec;
pub(crate) use params::Params;

use crate::code::{BlockProfile, Code, CodeProfile, Factors, Padding};
use crate::decode::{IdDecoder, Work};
use crate::ids::{EncodingId, Esi};
use crate::limits::{Interleaving, ObjectLimits, OtiError, Partition};
use crate::parameters::{CodeError, Format, Information, SchemeParameters};
use crate::plan::{Key, Plan, PlanCache};
use crate::sync::OnceLock;
use alloc::sync::Arc;
use decoder::RaptorQDecoder;
use full::FullBlock;
use planner::Planned;
use program::Program;
use recovery::Recovery;

/// RaptorQ: a rateless code with 2^24 symbols per block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RaptorQ {
    /// `Z`: blocks that the object is partitioned into.
    pub source_blocks: u8,
    /// `N`: sub-blocks that each source block is partitioned into. With more than one, the bytes of
    /// a symbol are not contiguous in the object.
    pub sub_blocks: u16,
    /// `Al`: alignment of symbols and sub-symbols, in bytes.
    pub alignment: u8,
}

/// Longest block: the largest `K` (RFC 6330, section 5.1.2).
pub const MAX_SOURCE_SYMBOLS: u32 = 56_403;
/// Most blocks of an object: `Z` has 8 bits (RFC 6330, section 3.3.3).
pub const MAX_BLOCKS: u32 = 255;
/// Largest object, in bytes (RFC 6330, section 3.3.2).
pub const MAX_TRANSFER_LENGTH: u64 = 946_270_874_880;
/// ESIs have 24 bits (RFC 6330, section 3.2).
const ENCODING_SYMBOLS: u32 = 1 << 24;

pub(crate) const FORMAT: Format =
    Format { encoding_id: EncodingId::RAPTORQ, instance_ids: None, information_size: 4 };

impl RaptorQ {
    /// Parses the scheme-specific information (RFC 6330, section 3.3.3).
    pub(crate) fn parse(parameters: &SchemeParameters) -> Result<Self, CodeError> {
        let &[source_blocks, n0, n1, alignment] = parameters.information()?;
        Ok(Self { source_blocks, sub_blocks: u16::from_be_bytes([n0, n1]), alignment })
    }

    /// The state that all blocks of this length share.
    fn full(source_symbols: u32, cache: Option<&PlanCache>) -> Arc<FullBlock> {
        let params = Params::covering(source_symbols);
        let make = || Arc::new(FullBlock::new(params));
        let key = Key { code: "raptorq", numbers: [params.k_prime.into(), 0, 0] };
        cache.map_or_else(make, |cache| cache.shared(key, make))
    }
}

impl Code for RaptorQ {
    fn profile(&self) -> CodeProfile {
        CodeProfile {
            name: "raptorq",
            encoding_id: FORMAT.encoding_id,
            is_systematic: true,
            is_rateless: true,
            is_mds: false,
            factors: Factors::Octets,
            mixes_cycle: false,
            padding: Padding::Optional,
            max_source_symbols: MAX_SOURCE_SYMBOLS,
            // With two more, decoding fails less than once in 10^6 times (RFC 6330, section 1).
            sure_surplus: Some(3),
        }
    }

    fn block_profile(&self, source_symbols: u32) -> BlockProfile {
        BlockProfile {
            encoding_symbols: ENCODING_SYMBOLS,
            symbols_per_cycle: ENCODING_SYMBOLS,
            max_repair_symbols: source_symbols,
            decoder_memory: None,
            work: Params::covering(source_symbols).work(),
            products: 0,
        }
    }

    fn limits(&self, symbol_size: u16) -> Result<ObjectLimits, OtiError> {
        let Self { source_blocks, sub_blocks, alignment } = *self;
        let interleaving = Interleaving { sub_blocks, alignment };
        interleaving.check(source_blocks.into(), symbol_size)?;
        Ok(ObjectLimits {
            partition: Partition::BlockCount(source_blocks.into()),
            max_source_symbols: MAX_SOURCE_SYMBOLS,
            max_transfer_length: MAX_TRANSFER_LENGTH,
            interleaving,
        })
    }

    fn decoder(&self, source_symbols: u32, cache: Option<&PlanCache>) -> Box<dyn IdDecoder> {
        Box::new(RaptorQDecoder::new(source_symbols, Self::full(source_symbols, cache)))
    }

    fn source_plan(&self, source_symbols: u32, cache: Option<&PlanCache>) -> Arc<Plan> {
        // Without a cache the program is made when the plan is executed.
        let program = cache.map_or_else(OnceLock::new, |_| {
            OnceLock::from(Arc::clone(Self::full(source_symbols, cache).program()))
        });
        Arc::new(Recovery::of_source(source_symbols, program))
    }

    fn parameters(&self) -> SchemeParameters {
        let [n0, n1] = self.sub_blocks.to_be_bytes();
        let information = Information::EMPTY.with([self.source_blocks, n0, n1, self.alignment]);
        SchemeParameters { information, ..SchemeParameters::new(FORMAT.encoding_id, None) }
    }
}

/// The internal symbol id of encoding symbol `esi`. Padding symbols, which have no ESI, lie between
/// the source symbols and the repair symbols (RFC 6330, section 5.3.1).
fn isi_of(params: &Params, source_symbols: u32, esi: Esi) -> u32 {
    if esi.0 < source_symbols { esi.0 } else { esi.0.wrapping_add(params.k_prime - source_symbols) }
}

/// The inverse of [`isi_of`]; `None` for a padding symbol.
fn esi_of(params: &Params, source_symbols: u32, isi: u32) -> Option<Esi> {
    if isi < source_symbols {
        Some(Esi(isi))
    } else {
        (isi >= params.k_prime).then(|| Esi(isi - (params.k_prime - source_symbols)))
    }
}

/// The program of a block whose source symbols are all available.
fn full_program(params: &Params) -> Program {
    let inputs: Vec<Esi> = (0..params.k_prime).map(Esi).collect();
    program_of(params, params.k_prime, &inputs)
}

/// The program of a block with encoding symbols `inputs`, ascending, which are known to suffice.
fn program_of(params: &Params, source_symbols: u32, inputs: &[Esi]) -> Program {
    let (source, repair) = inputs.split_at(inputs.partition_point(|esi| esi.0 < source_symbols));
    let isis: Vec<u32> = (source.iter().map(|esi| esi.0))
        .chain(source_symbols..params.k_prime)
        .chain(repair.iter().map(|&esi| isi_of(params, source_symbols, esi)))
        .collect();
    match planner::plan(params, &isis, Work::UNBOUNDED) {
        Planned::Solved(program) => *program,
        // For a full block the systematic indices guarantee it (RFC 6330, section 5.6), and a test
        // tries all. For others a direct plan exists.
        _ => unreachable!("the matrix of K' = {} is singular", params.k_prime),
    }
}
