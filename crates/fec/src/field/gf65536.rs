//! The field GF(2^16): polynomials over GF(2) modulo x^16 + x^12 + x^3 + x + 1, which RFC 5510
//! lists, so `alpha` is 2. Elements are stored with their upper octet first.

use crate::field::binary_field::BinaryField;
use crate::sync::OnceLock;
use alloc::vec;
use alloc::vec::Vec;

/// Elements that are not 0.
pub(crate) const ORDER: u32 = 65_535;

/// The number of elements.
const SIZE: usize = 1 << 16;

/// Steps of [`Field::log_products`]: two transforms of all elements.
pub(crate) const LOG_PRODUCTS_WORK: u64 = 2 * 16 * SIZE as u64;

/// Tables of the field, half a megabyte: see [`field`].
pub(crate) struct Field {
    field: BinaryField,
    /// The bit matrices of each upper and each lower octet. Those of a constant are sums of both.
    matrices: [Vec<[u64; 4]>; 2],
    /// The transform of the logarithms, made at the first use.
    transformed_logs: OnceLock<Vec<u32>>,
}

/// The field. Its tables are made at the first call.
pub(crate) fn field() -> &'static Field {
    static FIELD: OnceLock<Field> = OnceLock::new();
    FIELD.get_or_init(Field::new)
}

impl Field {
    fn new() -> Self {
        let field = BinaryField::of_16_bits();
        let matrices =
            [8, 0].map(|shift| (0..256).map(|octet| matrices(&field, octet << shift)).collect());
        Self { field, matrices, transformed_logs: OnceLock::new() }
    }

    /// The logarithm of `a` to the base `alpha`; 0 for 0, which has no logarithm.
    pub(crate) fn log(&self, a: u16) -> u32 {
        self.field.log(a)
    }

    /// `alpha^exponent` for exponents below twice the [`ORDER`].
    pub(crate) fn alpha_power(&self, exponent: u32) -> u16 {
        self.field.alpha_power(exponent)
    }

    /// The bit matrices of multiplication by `constant`: from the upper octet to the upper one,
    /// from the lower to the upper, from the upper to the lower, and from the lower to the lower.
    /// Each has the form of the kernels: byte `7 - i` selects the input bits whose sum is output
    /// bit `i`.
    pub(crate) fn matrices(&self, constant: u16) -> [u64; 4] {
        let [upper, lower] = constant.to_be_bytes();
        let (upper, lower) = (self.matrices[0][upper as usize], self.matrices[1][lower as usize]);
        core::array::from_fn(|i| upper[i] ^ lower[i])
    }

    /// For every element `p`, the logarithm of the product of `p - q` over all `q` of `factors` but
    /// `p`, divided by the same product over `divisors`.
    ///
    /// A sum of logarithms of `p ^ q` over `q` is a convolution over exclusive or, which the
    /// Walsh-Hadamard transform turns into a product. Modulo 65 535 the transform is its own
    /// inverse, because 65 536 is 1.
    pub(crate) fn log_products(&self, factors: &[u32], divisors: &[u32]) -> Vec<u32> {
        let mut sums = vec![0; SIZE];
        for (points, count) in [(factors, 1), (divisors, ORDER - 1)] {
            for &point in points {
                if let Some(sum) = sums.get_mut(point as usize) {
                    *sum = count;
                }
            }
        }
        transform(&mut sums);
        let logs = self.transformed_logs.get_or_init(|| {
            let mut logs: Vec<u32> = (0..=u16::MAX).map(|a| self.log(a) % ORDER).collect();
            transform(&mut logs);
            logs
        });
        for (sum, log) in sums.iter_mut().zip(logs) {
            *sum = (u64::from(*sum) * u64::from(*log) % u64::from(ORDER)) as u32;
        }
        transform(&mut sums);
        sums
    }
}

/// Computes the matrices column by column, by the definition.
fn matrices(field: &BinaryField, constant: u16) -> [u64; 4] {
    let mut matrices = [0; 4];
    let mut product = constant;
    for input in 0..16 {
        for output in 0..16 {
            let bit = u64::from(product >> output & 1);
            let block = 2 * usize::from(output < 8) + usize::from(input < 8);
            matrices[block] |= bit << (8 * (7 - output % 8) + input % 8);
        }
        product = field.double(product);
    }
    matrices
}

/// The Walsh-Hadamard transform modulo [`ORDER`], of [`SIZE`] numbers below it.
fn transform(values: &mut [u32]) {
    let reduced = |value: u32| if value >= ORDER { value - ORDER } else { value };
    let mut half = 1;
    while half < values.len() {
        for pair in values.chunks_exact_mut(2 * half) {
            let (left, right) = pair.split_at_mut(half);
            for (a, b) in left.iter_mut().zip(right) {
                (*a, *b) = (reduced(*a + *b), reduced(*a + ORDER - *b));
            }
        }
        half *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matrices_multiply() {
        let field = field();
        for constant in [0, 1, 2, 0x100, 0x1234, 0x8000, 0xFFFF] {
            let [a, b, c, d] = field.matrices(constant);
            let times = |rows: u64, octet: u8| {
                let bit = |i: usize| (rows.to_le_bytes()[7 - i] & octet).count_ones() as u8 & 1;
                (0..8).fold(0, |sum, i| sum | bit(i) << i)
            };
            for element in [0, 1, 0x80, 0xFF, 0x100, 0xABCD, 0xFFFF_u16] {
                let [upper, lower] = element.to_be_bytes();
                let product =
                    [times(a, upper) ^ times(b, lower), times(c, upper) ^ times(d, lower)];
                let expected = match (constant, element) {
                    (0, _) | (_, 0) => 0,
                    _ => field.alpha_power(field.log(constant) + field.log(element)),
                };
                assert_eq!(u16::from_be_bytes(product), expected, "{constant} * {element}");
            }
        }
    }

    #[test]
    fn products_of_distances_are_sums_of_logarithms() {
        let field = field();
        let factors: Vec<u32> = (3..300).chain([65_535]).collect();
        let divisors: Vec<u32> = (1000..3000).step_by(7).collect();
        let products = field.log_products(&factors, &divisors);
        for p in [0, 3, 299, 300, 1000, 1001, 30_000, 65_535_u32] {
            let sum =
                |points: &[u32]| -> u32 { points.iter().map(|&q| field.log((p ^ q) as u16)).sum() };
            let expected = (sum(&factors) + ORDER * 300 - sum(&divisors)) % ORDER;
            assert_eq!(products[p as usize], expected, "{p}");
        }
    }
}
