//! Reed-Solomon codes over GF(256) and GF(65 536): any `k` encoding symbols of a block recover it.
//!
//! A block's `k` symbols are values of a polynomial `P` of degree below `k`, one polynomial for
//! each byte position. Every encoding symbol `p` is one more value: `c_p = g_p P(z_p)`, where the
//! points `z_p` differ and the `g_p` are not zero. This module has two families:
//!
//! * RFC 5510, as deployed codecs implement it: `z` is 0, 1, `alpha`, `alpha^2`, ... in the order
//!   of ESIs, and every `g` is 1. (The text of the RFC says 1, `alpha`, ...; see `docs/errata.md`.)
//! * Cauchy matrices: repair symbol `x` is the sum of `c_y / (x + y)` over the source symbols `y`,
//!   the point of a symbol being its ESI. It has this form with
//!   `g_y = 1 / product of (y - y')` over the other source symbols `y'`, and
//!   `g_x = 1 / product of (x - y)` over all of them.
//!
//! So encoding and decoding are both Lagrange interpolation. From the available symbols `R`,
//!
//! ```text
//!   c_t = sum over r in R of  w_t / (w_r (z_t - z_r)) c_r,     w_p = g_p product of (z_p - z_r)
//! ```
//!
//! over all `r` in `R` but `p`. `R` is the source symbols without the lost ones `L`, and as many
//! repair symbols `Q`. The product over `R` is that over the source symbols, times the product over
//! `Q`, divided by the product over `L`. The first of these does not depend on the losses, and for
//! Cauchy matrices `g_p` cancels it. What remains is `(k + l) 2 l` multiplications for `l` lost
//! symbols, and no matrix is inverted. Two Walsh-Hadamard transforms of the field give the weights
//! too, and take less time if many symbols are lost.
//!
//! On bytes there are two ways. A matrix takes `k` multiplications for each lost or repair symbol.
//! The other way divides the available symbols by their weights, sums up all quotients over
//! `z_t - z_r` for all elements of the field at once, and multiplies by the weights of the wanted
//! symbols. This takes about 2 000 multiplications and 4 400 additions, whatever `k` and the number
//! of wanted symbols are (`bytes/kernel/cauchy.rs`). The product of both numbers decides.
//!
//! | | |
//! |---|---|
//! | source | [RFC 5510](https://www.rfc-editor.org/rfc/rfc5510), sections 8 and 9; Blömer and others 1995 for Cauchy matrices |
//! | slow reference | `crates/fec/tests/fec/reed_solomon/reference.rs` |
//! | tests | `crates/fec/tests/fec/reed_solomon`: vectors, all erasures of short blocks, both ends of every limit |

mod decoder;
mod interpolation;

use alloc::boxed::Box;
use alloc::vec::Vec;
pub(crate) use interpolation::{Points, available, prefers_sums};

use crate::code::{BlockProfile, Code, CodeProfile, Factors, Padding};
use crate::codes::shared::linear16::Linear16;
use crate::decode::IdDecoder;
use crate::ids::EncodingId;
use crate::limits::{
    Interleaving, MAX_TRANSFER_LENGTH, ObjectLimits, OtiError, Partition, check_block_length_limit,
};
use crate::parameters::{CodeError, Format, SchemeParameters};
use crate::plan::{Key, Plan, PlanCache};
use alloc::sync::Arc;
use decoder::ReedSolomonDecoder;
use interpolation::inputs;

/// Reed-Solomon: any `k` encoding symbols of a block recover it. Their number is limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReedSolomon {
    /// The code.
    pub code: ReedSolomonCode,
    /// `B`: most source symbols in a block.
    pub max_source_block_length: u16,
    /// `max_n`: most encoding symbols of a block, source symbols included.
    pub max_encoding_symbols: u16,
}

/// Most blocks of an object. Block numbers have 24 bits beside RFC 5510's 8 for symbols, and 32 in
/// FEC Encoding ID 129 (RFC 5445, section 5.2.1), of which 24 are used.
pub const MAX_BLOCKS: u32 = 1 << 24;

/// The format of RFC 5510, section 8.
pub(crate) const RFC_5510_FORMAT: Format =
    Format { encoding_id: EncodingId::RFC_5510, instance_ids: None, information_size: 0 };
/// The instances of [`ReedSolomonCode::instance_id`].
pub(crate) const SMALL_BLOCK_FORMAT: Format = Format {
    encoding_id: EncodingId::SMALL_BLOCK,
    instance_ids: Some(&[0, 1, 2]),
    information_size: 0,
};

impl ReedSolomon {
    pub(crate) fn parse(parameters: &SchemeParameters) -> Result<Self, CodeError> {
        let code = match parameters.instance_id {
            Some(id) if parameters.encoding_id == SMALL_BLOCK_FORMAT.encoding_id => {
                ReedSolomonCode::of_instance(id).ok_or(CodeError::InstanceId {
                    encoding_id: parameters.encoding_id.0,
                    instance_id: id,
                })?
            }
            _ => ReedSolomonCode::Rfc5510,
        };
        Ok(Self {
            code,
            max_source_block_length: parameters.block_length()?,
            max_encoding_symbols: parameters.encoding_symbols()?,
        })
    }

    /// `n` of the longest blocks.
    fn encoding_symbols(&self) -> u16 {
        self.max_encoding_symbols.min(self.code.max_encoding_symbols())
    }
}

impl Code for ReedSolomon {
    fn profile(&self) -> CodeProfile {
        CodeProfile {
            name: "rs",
            encoding_id: match self.code.instance_id() {
                None => RFC_5510_FORMAT.encoding_id,
                Some(_) => SMALL_BLOCK_FORMAT.encoding_id,
            },
            is_systematic: true,
            is_rateless: false,
            is_mds: true,
            factors: match self.code {
                ReedSolomonCode::Cauchy16 => Factors::OctetPairs,
                ReedSolomonCode::Rfc5510
                | ReedSolomonCode::SmallBlock
                | ReedSolomonCode::Cauchy => Factors::Octets,
            },
            mixes_cycle: false,
            padding: match self.code {
                ReedSolomonCode::Rfc5510 => Padding::Optional,
                ReedSolomonCode::SmallBlock
                | ReedSolomonCode::Cauchy
                | ReedSolomonCode::Cauchy16 => Padding::Sent,
            },
            max_source_symbols: self.max_source_block_length.min(self.encoding_symbols()).into(),
            sure_surplus: Some(3),
        }
    }

    fn block_profile(&self, source_symbols: u32) -> BlockProfile {
        let (k, n) = (source_symbols, u32::from(self.encoding_symbols()));
        let share = u64::from(k) * u64::from(n);
        let share = share.checked_div(self.max_source_block_length.into()).unwrap_or(0);
        let lost = u32::from(self.max_encoding_symbols).saturating_sub(k).min(k);
        BlockProfile {
            encoding_symbols: n,
            symbols_per_cycle: (share.min(n.into()) as u32).max(k.min(n)),
            max_repair_symbols: k,
            decoder_memory: None,
            work: ReedSolomonDecoder::work(self.code, k),
            products: u64::from(k) * u64::from(lost),
        }
    }

    fn limits(&self, symbol_size: u16) -> Result<ObjectLimits, OtiError> {
        let max_source_block_length =
            check_block_length_limit(self.max_source_block_length.into())?;
        let (actual, limit) = (self.max_encoding_symbols, self.code.max_encoding_symbols());
        if actual > limit {
            return Err(OtiError::EncodingSymbols { actual, limit });
        }
        // Checked even if the object is too short for such a block: the field may have 8 bits.
        if self.max_source_block_length > self.max_encoding_symbols {
            return Err(OtiError::BlockLength {
                actual: self.max_source_block_length.into(),
                limit: self.max_encoding_symbols.into(),
            });
        }
        let alignment = self.code.symbol_alignment();
        if !symbol_size.is_multiple_of(alignment.into()) {
            return Err(OtiError::Alignment { symbol_size, sub_blocks: 1, alignment });
        }
        Ok(ObjectLimits {
            partition: Partition::BlockLength { max_source_block_length, max_blocks: MAX_BLOCKS },
            max_source_symbols: self.max_encoding_symbols.into(),
            max_transfer_length: MAX_TRANSFER_LENGTH,
            interleaving: Interleaving::NONE,
        })
    }

    fn decoder(&self, source_symbols: u32, _cache: Option<&PlanCache>) -> Box<dyn IdDecoder> {
        let n = self.encoding_symbols().into();
        Box::new(ReedSolomonDecoder::new(self.code, source_symbols, n))
    }

    fn source_plan(&self, source_symbols: u32, cache: Option<&PlanCache>) -> Arc<Plan> {
        let make = || Arc::new(self.code.plan(source_symbols, Vec::new(), &[]));
        let numbers = [self.code as u64, source_symbols.into(), 0];
        cache.map_or_else(make, |cache| cache.shared(Key { code: "rs", numbers }, make))
    }

    fn parameters(&self) -> SchemeParameters {
        SchemeParameters {
            max_source_block_length: Some(self.max_source_block_length.into()),
            max_encoding_symbols: Some(self.max_encoding_symbols),
            ..SchemeParameters::new(self.profile().encoding_id, self.code.instance_id())
        }
    }
}

/// A Reed-Solomon code, and its ids in protocols.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReedSolomonCode {
    /// RFC 5510 over GF(2^8), FEC Encoding ID 5.
    Rfc5510,
    /// The same symbols under FEC Encoding ID 129, FEC Instance ID 0 (section 7).
    SmallBlock,
    /// Cauchy matrices over GF(2^8), FEC Encoding ID 129, FEC Instance ID 1: a code of Fontana.
    Cauchy,
    /// Cauchy matrices over GF(2^16), FEC Encoding ID 129, FEC Instance ID 2: a code of Fontana.
    /// Symbols have an even number of bytes. `l` lost symbols cost `k l` multiplications for each
    /// position, so above about `l = 1000` other codes are better.
    Cauchy16,
}

/// Most encoding symbols of a block over GF(256): 255 in RFC 5510. The Cauchy code has the same
/// limit.
const MAX_ENCODING_SYMBOLS: u32 = 255;

impl ReedSolomonCode {
    /// Most encoding symbols of a block, source symbols included.
    pub const fn max_encoding_symbols(self) -> u16 {
        match self {
            Self::Rfc5510 | Self::SmallBlock | Self::Cauchy => MAX_ENCODING_SYMBOLS as u16,
            // The field has one point more, which the 16 bits of `max_n` cannot express.
            Self::Cauchy16 => u16::MAX,
        }
    }

    /// The number of bytes of a symbol is a multiple of this.
    pub const fn symbol_alignment(self) -> u8 {
        match self {
            Self::Rfc5510 | Self::SmallBlock | Self::Cauchy => 1,
            Self::Cauchy16 => 2,
        }
    }

    /// The FEC Instance ID beside FEC Encoding ID 129; `None` for a code that has an ID of its own.
    pub const fn instance_id(self) -> Option<u16> {
        match self {
            Self::Rfc5510 => None,
            Self::SmallBlock => Some(0),
            Self::Cauchy => Some(1),
            Self::Cauchy16 => Some(2),
        }
    }

    /// The inverse of [`instance_id`](Self::instance_id).
    pub const fn of_instance(id: u16) -> Option<Self> {
        match id {
            0 => Some(Self::SmallBlock),
            1 => Some(Self::Cauchy),
            2 => Some(Self::Cauchy16),
            _ => None,
        }
    }

    /// The points of the code; those of a code over GF(2^16) are the ESIs, too.
    const fn points(self) -> Points {
        match self {
            Self::Rfc5510 | Self::SmallBlock => Points::Powers,
            Self::Cauchy | Self::Cauchy16 => Points::Cauchy,
        }
    }

    /// The plan that replaces source symbols `lost`, ascending, by as many repair symbols,
    /// ascending.
    fn plan(self, source_symbols: u32, lost: Vec<u32>, repair: &[u32]) -> Plan {
        match self {
            Self::Cauchy16 => {
                let n = self.max_encoding_symbols().into();
                let inputs = inputs(source_symbols, &lost, repair);
                Linear16::plan(source_symbols, n, inputs, lost, repair)
            }
            Self::Rfc5510 | Self::SmallBlock | Self::Cauchy => {
                self.points().plan(source_symbols, MAX_ENCODING_SYMBOLS, lost, repair)
            }
        }
    }
}
