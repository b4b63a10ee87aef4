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
mod repair;

use crate::bytes::kernel::{CauchyInputs, CauchyOutputs, CauchyPoint};
use crate::code::{BlockProfile, Code, CodeProfile, Factors, Padding};
use crate::codes::shared::linear::{Linear, Recovery};
use crate::codes::shared::linear16::Linear16;
use crate::decode::IdDecoder;
use crate::field::gf256::{LOG_PRODUCTS_WORK, ORDER, alpha_power, log, log_products};
use crate::ids::{EncodingId, Esi};
use crate::limits::{
    Interleaving, MAX_TRANSFER_LENGTH, ObjectLimits, OtiError, Partition, check_block_length_limit,
};
use crate::parameters::{CodeError, Format, SchemeParameters};
use crate::plan::{Key, Plan, PlanCache};
use decoder::ReedSolomonDecoder;
use repair::RepairFactors;
use std::sync::Arc;

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

/// Product of the numbers of inputs and outputs from which sums over all points are faster than a
/// matrix: see `docs/benchmarks.md`.
const SUMS_FROM: usize = 3_000;

/// True if sums over all points compute `outputs` symbols from `inputs` faster than a matrix does.
fn prefers_sums(inputs: usize, outputs: usize) -> bool {
    inputs * outputs >= SUMS_FROM
}

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

    /// The plan that replaces source symbols `lost`, ascending, by as many repair symbols,
    /// ascending.
    fn plan(self, source_symbols: u32, lost: Vec<u32>, repair: &[u32]) -> Plan {
        let received = (0..source_symbols).filter(|esi| lost.binary_search(esi).is_err());
        let inputs = received.chain(repair.iter().copied()).map(Esi).collect();
        match self {
            Self::Cauchy16 => {
                let n = self.max_encoding_symbols().into();
                Linear16::plan(source_symbols, n, inputs, lost, repair)
            }
            Self::Rfc5510 | Self::SmallBlock | Self::Cauchy => {
                let recovery = match prefers_sums(source_symbols as usize, lost.len()) {
                    false => self.recovery_by_factors(source_symbols, &lost, repair),
                    true => self.recovery_by_sums(source_symbols, &lost, repair),
                };
                let generator = RepairFactors::new(self);
                Linear::plan(generator, source_symbols, inputs, lost, recovery)
            }
        }
    }

    /// The point of an encoding symbol of a code over GF(256).
    const fn point(self, esi: u32) -> u8 {
        match self {
            Self::Rfc5510 | Self::SmallBlock => rfc5510_point(esi),
            Self::Cauchy | Self::Cauchy16 => esi as u8,
        }
    }

    /// The logarithm of `g_p` times the product of `z_p - z_s` over the source symbols `s` but `p`.
    fn source_weight(self, source_symbols: u32, esi: u32) -> u32 {
        match self {
            Self::Rfc5510 | Self::SmallBlock => {
                u32::from(RFC5510_WEIGHTS[source_symbols as usize][esi as usize])
            }
            Self::Cauchy | Self::Cauchy16 => 0,
        }
    }

    /// Computes the source symbols `lost` with a matrix.
    fn recovery_by_factors(self, source_symbols: u32, lost: &[u32], repair: &[u32]) -> Recovery {
        Recovery::Factors(self.interpolation(source_symbols, lost, repair, lost))
    }

    /// Computes the source symbols `lost` at all points at once.
    fn recovery_by_sums(self, source_symbols: u32, lost: &[u32], repair: &[u32]) -> Recovery {
        let log_weight = self.log_weights(source_symbols, lost, repair);
        let inputs = self.inputs(source_symbols, lost, repair, &log_weight);
        let target = |&esi: &u32| CauchyPoint {
            point: self.point(esi),
            factor: alpha_power(log_weight(esi) as usize),
        };
        Recovery::Sums(inputs, CauchyOutputs::new(lost.iter().map(target)))
    }

    /// The available symbols, divided by their weights.
    fn inputs(
        self,
        source_symbols: u32,
        lost: &[u32],
        repair: &[u32],
        log_weight: impl Fn(u32) -> u32,
    ) -> CauchyInputs {
        CauchyInputs::new(available(source_symbols, lost, repair).into_iter().map(|esi| {
            let factor = alpha_power((ORDER - log_weight(esi)) as usize);
            CauchyPoint { point: self.point(esi), factor }
        }))
    }

    /// The matrix that computes the encoding symbols `targets` from the available ones, column by
    /// column. Column `j` has the factors of source symbol `j`, or, if that is `lost[i]`, of repair
    /// symbol `repair[i]`. No target is available, and all ESIs are below [`MAX_ENCODING_SYMBOLS`].
    /// For the codes over GF(256); the one over GF(2^16) stores no such matrix.
    fn interpolation(
        self,
        source_symbols: u32,
        lost: &[u32],
        repair: &[u32],
        targets: &[u32],
    ) -> Vec<u8> {
        let log_weight = self.log_weights(source_symbols, lost, repair);
        let targets: Vec<(u8, u32)> =
            targets.iter().map(|&esi| (self.point(esi), log_weight(esi))).collect();
        let available = available(source_symbols, lost, repair);
        let mut matrix = Vec::with_capacity(available.len() * targets.len());
        for esi in available {
            let (point, weight) = (self.point(esi), ORDER - log_weight(esi));
            matrix.extend(targets.iter().map(|&(target, target_weight)| {
                let difference = ORDER - log(target ^ point);
                alpha_power(((target_weight + weight) % ORDER + difference) as usize)
            }));
        }
        matrix
    }

    /// The logarithms of the weights `w`, if `lost` are replaced by as many `repair` symbols.
    fn log_weights(
        self,
        source_symbols: u32,
        lost: &[u32],
        repair: &[u32],
    ) -> impl Fn(u32) -> u32 + use<> {
        debug_assert_eq!(lost.len(), repair.len());
        let points = |esis: &[u32]| -> Vec<u8> { esis.iter().map(|&p| self.point(p)).collect() };
        let (lost_points, repair_points) = (points(lost), points(repair));
        let directly = (source_symbols as usize + lost.len()) * 2 * lost.len();
        let all =
            (directly > LOG_PRODUCTS_WORK).then(|| log_products(&repair_points, &lost_points));
        move |esi| {
            let point = self.point(esi);
            // A symbol is not a factor of its own product: the logarithm of 0 counts as 0.
            let sum = |points: &[u8]| points.iter().map(|&z| log(point ^ z)).sum::<u32>();
            let product = match &all {
                Some(all) => all[usize::from(point)].into(),
                None => {
                    let quotient = ORDER * lost_points.len() as u32 - sum(&lost_points);
                    sum(&repair_points) + quotient
                }
            };
            (self.source_weight(source_symbols, esi) + product) % ORDER
        }
    }
}

/// The available symbols in the order of their rows: the source symbols, with `lost[i]` replaced by
/// `repair[i]`.
fn available(source_symbols: u32, lost: &[u32], repair: &[u32]) -> Vec<u32> {
    let mut available: Vec<u32> = (0..source_symbols).collect();
    for (&lost, &repair) in lost.iter().zip(repair) {
        available[lost as usize] = repair;
    }
    available
}

/// 0, then the powers of `alpha`: the order of Rizzo's codec.
const fn rfc5510_point(esi: u32) -> u8 {
    if esi == 0 { 0 } else { alpha_power(esi as usize - 1) }
}

/// For each number of source symbols and each encoding symbol, the logarithm of the product of its
/// distances to the (other) source symbols.
static RFC5510_WEIGHTS: [[u8; 256]; 256] = {
    let mut weights = [[0; 256]; 256];
    let mut k = 0;
    while k < 255 {
        let mut esi = 0;
        while esi <= 255 {
            let distance = rfc5510_point(esi) ^ rfc5510_point(k);
            let weight = weights[k as usize][esi as usize] as u32 + log(distance);
            weights[k as usize + 1][esi as usize] = (weight % ORDER) as u8;
            esi += 1;
        }
        k += 1;
    }
    weights
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::gf256::{inverse, mul};

    #[test]
    fn the_cauchy_code_is_that_of_a_cauchy_matrix() {
        for (k, n) in [(1, 2), (4, 6), (32, 64), (200, 255), (254, 255)] {
            let repair: Vec<u32> = (k..n).collect();
            let matrix = ReedSolomonCode::Cauchy.interpolation(k, &[], &[], &repair);
            let entries = (0..k).flat_map(|y| (k..n).map(move |x| inverse((x ^ y) as u8)));
            assert!(matrix.into_iter().eq(entries), "{k} of {n}");
        }
    }

    /// The generator of RFC 5510 by elimination: `V(k,k)^-1 V(k,n)`, on the points of deployed
    /// codecs.
    #[test]
    fn the_code_of_rfc_5510_is_that_of_a_vandermonde_matrix() {
        let power = |z: u8, i: u32| (0..i).fold(1, |product, _| mul(product, z));
        for (k, n) in [(1, 4), (4, 8), (10, 16), (32, 64), (127, 255)] {
            // Column by column `V(k,k) column = V(k, esi)` must hold.
            let repair: Vec<u32> = (k..n).collect();
            let matrix = ReedSolomonCode::Rfc5510.interpolation(k, &[], &[], &repair);
            for (row, &esi) in repair.iter().enumerate() {
                for i in 0..k {
                    let sum = (0..k).fold(0, |sum, j| {
                        let factor = matrix[j as usize * repair.len() + row];
                        sum ^ mul(factor, power(rfc5510_point(j), i))
                    });
                    assert_eq!(sum, power(rfc5510_point(esi), i), "{k} of {n}, {esi}, power {i}");
                }
            }
        }
    }

    /// The lost source symbols and the repair symbols, if `k` of all encoding symbols are received
    /// that lie evenly among them.
    fn erasures(k: u32, shift: u32) -> (Vec<u32>, Vec<u32>) {
        let mut received: Vec<u32> = (0..255).map(|i| (i * 101 + shift * 7) % 255).collect();
        received.truncate(k as usize);
        received.sort_unstable();
        let lost = (0..k).filter(|esi| !received.contains(esi)).collect();
        received.retain(|&esi| esi >= k);
        (lost, received)
    }

    #[test]
    fn sums_have_the_factors_of_the_matrix_for_every_block_length() {
        for code in [ReedSolomonCode::Rfc5510, ReedSolomonCode::Cauchy] {
            for k in 1..=254 {
                for shift in 0..4 {
                    let (lost, repair) = erasures(k, shift);
                    let Recovery::Sums(inputs, outputs) = code.recovery_by_sums(k, &lost, &repair)
                    else {
                        panic!("sums")
                    };
                    let Recovery::Factors(factors) = code.recovery_by_factors(k, &lost, &repair)
                    else {
                        panic!("factors")
                    };
                    assert_eq!(inputs.factors(&outputs), factors, "{code:?}, {k}, {lost:?}");
                }
            }
        }
    }
}
