//! Reed-Solomon codes over GF(256) as interpolation: the points of encoding symbols, and the plans.

mod repair;

use crate::bytes::kernel::{CauchyInputs, CauchyOutputs, CauchyPoint};
use crate::codes::shared::linear::{Linear, Recovery};
use crate::field::cantor_basis::ELEMENTS;
use crate::field::gf256::{LOG_PRODUCTS_WORK, ORDER, alpha_power, log, log_products};
use crate::ids::Esi;
use crate::plan::Plan;
use alloc::vec::Vec;
use repair::RepairFactors;

/// The points of encoding symbols, and the factor `g` of each. The field has 256 points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Points {
    /// 0, 1, `alpha`, `alpha^2`, ..., and every `g` is 1: Rizzo's codec, zfec, RFC 5510.
    Powers,
    /// 0, 1, 2, ..., and every `g` is 1: the codes of Backblaze.
    Numbers,
    /// 0, 1, 2, ..., with the factors that give a Cauchy matrix.
    Cauchy,
    /// Those of a Cantor basis at the *positions* of Leopard: repair symbols are at 0, 1, 2, ...,
    /// source symbols from `m` on, a power of two that is at least the number of repair symbols.
    /// Every `g` is 1. Positions from the last source symbol on, up to a power of two, belong to
    /// source symbols that are zero.
    Subspace {
        /// Source symbols of a block.
        source_symbols: u32,
        /// `m` is 2 to this power.
        log_m: u32,
    },
}

/// Product of the numbers of inputs and outputs from which sums over all points are faster than a
/// matrix: see `docs/benchmarks.md`.
const SUMS_FROM: usize = 3_000;

/// True if sums over all points compute `outputs` symbols from `inputs` faster than a matrix does.
pub(crate) fn prefers_sums(inputs: usize, outputs: usize) -> bool {
    inputs * outputs >= SUMS_FROM
}

impl Points {
    /// The plan that replaces source symbols `lost`, ascending, by as many repair symbols,
    /// ascending, of a code with `encoding_symbols`.
    pub(crate) fn plan(
        self,
        source_symbols: u32,
        encoding_symbols: u32,
        lost: Vec<u32>,
        repair: &[u32],
    ) -> Plan {
        let inputs = inputs(source_symbols, &lost, repair);
        let recovery = match prefers_sums(source_symbols as usize, lost.len()) {
            false => self.recovery_by_factors(source_symbols, &lost, repair),
            true => self.recovery_by_sums(source_symbols, &lost, repair),
        };
        let generator = RepairFactors::new(self, encoding_symbols);
        Linear::plan(generator, source_symbols, inputs, lost, recovery)
    }

    /// The point of an encoding symbol.
    const fn point(self, esi: u32) -> u8 {
        match self {
            Self::Powers => power_point(esi),
            Self::Numbers | Self::Cauchy => esi as u8,
            Self::Subspace { source_symbols, log_m } => {
                let is_source = esi < source_symbols;
                let position = if is_source { esi + (1 << log_m) } else { esi - source_symbols };
                ELEMENTS[position as usize]
            }
        }
    }

    /// The logarithm of `g_p` times the product of `z_p - z_s` over the source symbols `s` but `p`.
    fn source_weight(self, source_symbols: u32, esi: u32) -> u32 {
        /// Of the points' distances alone.
        static POWERS: [[u8; 256]; 256] = weights(Points::Powers);
        static NUMBERS: [[u8; 256]; 256] = weights(Points::Numbers);
        let weights = match self {
            Self::Powers => &POWERS,
            Self::Numbers => &NUMBERS,
            Self::Cauchy => return 0,
            // The product of all elements of a subspace but 0 is 1. So the product of the distances
            // to all elements outside of the first `m` is 1 for these, and for others the inverse
            // of the value of their subspace polynomial.
            Self::Subspace { source_symbols, log_m } => {
                let value = ELEMENTS[((esi >> log_m) + 1) as usize % ELEMENTS.len()];
                return if esi < source_symbols { ORDER - log(value) } else { 0 };
            }
        };
        weights[source_symbols as usize][esi as usize].into()
    }

    /// Computes the source symbols `lost` with a matrix.
    fn recovery_by_factors(self, source_symbols: u32, lost: &[u32], repair: &[u32]) -> Recovery {
        Recovery::Factors(self.interpolation(source_symbols, lost, repair, lost))
    }

    /// Computes the source symbols `lost` at all points at once.
    fn recovery_by_sums(self, source_symbols: u32, lost: &[u32], repair: &[u32]) -> Recovery {
        let (inputs, outputs) = self.sums(source_symbols, lost, repair, lost);
        Recovery::Sums(inputs, outputs)
    }

    /// The sums that compute the encoding symbols `targets` from the available ones, at all points
    /// at once.
    pub(crate) fn sums(
        self,
        source_symbols: u32,
        lost: &[u32],
        repair: &[u32],
        targets: &[u32],
    ) -> (CauchyInputs, CauchyOutputs) {
        let log_weight = self.log_weights(source_symbols, lost, repair);
        let inputs = self.inputs(source_symbols, lost, repair, &log_weight);
        let target = |&esi: &u32| CauchyPoint {
            point: self.point(esi),
            factor: alpha_power(log_weight(esi) as usize),
        };
        (inputs, CauchyOutputs::new(targets.iter().map(target)))
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
    /// symbol `repair[i]`. No target is available.
    pub(crate) fn interpolation(
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

/// The ESIs of the available symbols, ascending.
pub(crate) fn inputs(source_symbols: u32, lost: &[u32], repair: &[u32]) -> Vec<Esi> {
    let received = (0..source_symbols).filter(|esi| lost.binary_search(esi).is_err());
    received.chain(repair.iter().copied()).map(Esi).collect()
}

/// The available symbols in the order of their rows: the source symbols, with `lost[i]` replaced by
/// `repair[i]`.
pub(crate) fn available(source_symbols: u32, lost: &[u32], repair: &[u32]) -> Vec<u32> {
    let mut available: Vec<u32> = (0..source_symbols).collect();
    for (&lost, &repair) in lost.iter().zip(repair) {
        available[lost as usize] = repair;
    }
    available
}

/// 0, then the powers of `alpha`: the order of Rizzo's codec.
const fn power_point(esi: u32) -> u8 {
    if esi == 0 { 0 } else { alpha_power(esi as usize - 1) }
}

/// For each number of source symbols and each encoding symbol, the logarithm of the product of its
/// distances to the (other) source symbols.
const fn weights(points: Points) -> [[u8; 256]; 256] {
    let mut weights = [[0; 256]; 256];
    let mut k = 0;
    while k < 255 {
        let mut esi = 0;
        while esi <= 255 {
            let distance = points.point(esi) ^ points.point(k);
            let weight = weights[k as usize][esi as usize] as u32 + log(distance);
            weights[k as usize + 1][esi as usize] = (weight % ORDER) as u8;
            esi += 1;
        }
        k += 1;
    }
    weights
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::gf256::{inverse, mul};

    #[test]
    fn the_cauchy_code_is_that_of_a_cauchy_matrix() {
        for (k, n) in [(1, 2), (4, 6), (32, 64), (200, 255), (254, 255)] {
            let repair: Vec<u32> = (k..n).collect();
            let matrix = Points::Cauchy.interpolation(k, &[], &[], &repair);
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
            let matrix = Points::Powers.interpolation(k, &[], &[], &repair);
            for (row, &esi) in repair.iter().enumerate() {
                for i in 0..k {
                    let sum = (0..k).fold(0, |sum, j| {
                        let factor = matrix[j as usize * repair.len() + row];
                        sum ^ mul(factor, power(power_point(j), i))
                    });
                    assert_eq!(sum, power(power_point(esi), i), "{k} of {n}, {esi}, power {i}");
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
        for k in 1..=254 {
            let mut codes = vec![Points::Powers, Points::Numbers, Points::Cauchy];
            // Of its 255 symbols, those of the erasures exist: 127 source and 128 repair symbols.
            codes.extend((k == 127).then_some(Points::Subspace { source_symbols: k, log_m: 7 }));
            for code in codes {
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
