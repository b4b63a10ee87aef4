//! Reed-Solomon codes over GF(256) and GF(65 536): any `k` encoding symbols of a block recover it.
//!
//! A block's `k` symbols are values of a polynomial `P` of degree below `k`, one polynomial for each
//! byte position, and every encoding symbol `p` is one more value: `c_p = g_p P(z_p)`, where the
//! points `z_p` differ and the `g_p` are not zero. Two families are here:
//!
//! * that of RFC 5510, as deployed codecs have it: `z` is 0, 1, `alpha`, `alpha^2`, ... in the
//!   order of ESIs, and every `g` is 1. (The text of the RFC says 1, `alpha`, ...; see
//!   `docs/errata.md`.)
//! * Cauchy matrices: repair symbol `x` is the sum of `c_y / (x + y)` over the source symbols `y`,
//!   the point of a symbol being its ESI. It has this form with
//!   `g_y = 1 / product of (y - y')` over the other source symbols `y'`, and
//!   `g_x = 1 / product of (x - y)` over all of them.
//!
//! So encoding and decoding are one thing, Lagrange's interpolation. From the symbols `R` at hand,
//!
//! ```text
//!   c_t = sum over r in R of  w_t / (w_r (z_t - z_r)) c_r,     w_p = g_p product of (z_p - z_r)
//! ```
//!
//! over all `r` in `R` but `p`. `R` is the source symbols without the lost ones `L`, and as many
//! repair symbols `Q`: the product over it is that over the source symbols, times the product over
//! `Q`, by the product over `L`. The first of these does not depend on what was lost, and for Cauchy
//! matrices `g_p` cancels it. What is left is `(k + l) 2 l` multiplications for `l` lost symbols, and
//! no matrix is ever inverted. On bytes, each lost symbol costs `k` multiplications, as each repair
//! symbol did.

mod decoder;

pub(crate) use decoder::ReedSolomonDecoder;

use crate::field::gf256::{alpha_power, log};

/// Which Reed-Solomon code, and under which name it travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReedSolomonCode {
    /// RFC 5510 over GF(2^8), FEC Encoding ID 5.
    Rfc5510,
    /// The same symbols under FEC Encoding ID 129, FEC Instance ID 0 (section 7).
    SmallBlock,
    /// Cauchy matrices over GF(2^8), FEC Encoding ID 129, FEC Instance ID 1: Fontana's own.
    Cauchy,
    /// Cauchy matrices over GF(2^16), FEC Encoding ID 129, FEC Instance ID 2: Fontana's own. Symbols
    /// have an even number of bytes; `l` lost symbols cost `k l` multiplications for each position,
    /// so above about `l = 1000` other codes are better.
    Cauchy16,
}

/// Most encoding symbols of a block over GF(256): RFC 5510 has 255, and the Cauchy code keeps to it.
pub(crate) const MAX_ENCODING_SYMBOLS: u32 = 255;

/// Elements of the field that are not 0.
const ORDER: u32 = 255;

impl ReedSolomonCode {
    /// Most encoding symbols of a block, source symbols included.
    pub const fn max_encoding_symbols(self) -> u16 {
        match self {
            Self::Rfc5510 | Self::SmallBlock | Self::Cauchy => MAX_ENCODING_SYMBOLS as u16,
            // The field has one point more, which the 16 bits of `max_n` cannot say.
            Self::Cauchy16 => u16::MAX,
        }
    }

    /// What the number of bytes of a symbol is a multiple of.
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

    /// The matrix that makes the encoding symbols `targets` of what is at hand, column by column: in
    /// column `j` are the factors of source symbol `j`, or, if that is `lost[i]`, of repair symbol
    /// `repair[i]`. No target is at hand, and all ESIs are below [`MAX_ENCODING_SYMBOLS`]. For the
    /// codes over GF(256); [`linear16`](crate::codes::shared::linear16) has no such matrix.
    pub(crate) fn interpolation(
        self,
        source_symbols: u32,
        lost: &[u32],
        repair: &[u32],
        targets: &[u32],
    ) -> Vec<u8> {
        debug_assert_eq!(lost.len(), repair.len());
        let points = |esis: &[u32]| -> Vec<u8> { esis.iter().map(|&p| self.point(p)).collect() };
        let (lost_points, repair_points) = (points(lost), points(repair));
        let log_weight = |esi: u32| {
            let point = self.point(esi);
            // A symbol is no factor of its own product: the logarithm of 0 counts as 0.
            let product = |points: &[u8]| points.iter().map(|&z| log(point ^ z)).sum::<u32>();
            let weight = self.source_weight(source_symbols, esi);
            let quotient = ORDER * lost.len() as u32 - product(&lost_points);
            (weight + product(&repair_points) + quotient) % ORDER
        };
        let targets: Vec<(u8, u32)> =
            targets.iter().map(|&esi| (self.point(esi), log_weight(esi))).collect();
        let mut at_hand: Vec<u32> = (0..source_symbols).collect();
        for (&lost, &repair) in lost.iter().zip(repair) {
            at_hand[lost as usize] = repair;
        }
        let mut matrix = Vec::with_capacity(at_hand.len() * targets.len());
        for esi in at_hand {
            let (point, weight) = (self.point(esi), ORDER - log_weight(esi));
            matrix.extend(targets.iter().map(|&(target, target_weight)| {
                let difference = ORDER - log(target ^ point);
                alpha_power(((target_weight + weight) % ORDER + difference) as usize)
            }));
        }
        matrix
    }
}

/// 0, then the powers of `alpha`: Rizzo's order.
const fn rfc5510_point(esi: u32) -> u8 {
    if esi == 0 { 0 } else { alpha_power(esi as usize - 1) }
}

/// For each number of source symbols, for each encoding symbol: the logarithm of the product of its
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

    /// The generator of RFC 5510 by elimination: `V(k,k)^-1 V(k,n)`, on the points
    /// that are in use.
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
}
