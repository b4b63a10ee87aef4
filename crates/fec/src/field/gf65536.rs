//! The field GF(2^16) in two forms. In [`field`], elements are polynomials over GF(2) modulo x^16 +
//! x^12 + x^3 + x + 1, which RFC 5510 lists, so `alpha` is 2. In [`leopard_field`] they are
//! positions in a Cantor basis.

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
    FIELD.get_or_init(|| Field::new(BinaryField::of_16_bits()))
}

/// The field of Leopard. Its tables are made at the first call.
pub(crate) fn leopard_field() -> &'static Field {
    static FIELD: OnceLock<Field> = OnceLock::new();
    FIELD.get_or_init(|| Field::new(BinaryField::of_leopard()))
}

impl Field {
    fn new(field: BinaryField) -> Self {
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

    /// The matrices of each upper and of each lower octet. [`matrices`](Self::matrices) are sums of
    /// both.
    pub(crate) fn octet_matrices(&self) -> [&[[u64; 4]]; 2] {
        self.matrices.each_ref().map(Vec::as_slice)
    }

    /// For every element `p`, the logarithm of the product of `p - q` over all `q` of `factors` but
    /// `p`, divided by the same product over `divisors`.
    ///
    /// A sum of logarithms of `p ^ q` over `q` is a convolution over exclusive or, which the
    /// Walsh-Hadamard transform turns into a product. Modulo 65 535 the transform is its own
    /// inverse, because 65 536 is 1.
    pub(crate) fn log_products(&self, factors: &[u32], divisors: &[u32]) -> Vec<u32> {
        self.log_products_below(SIZE, factors, divisors)
    }

    /// The same for the elements below `size`, a power of two, if all factors and divisors are.
    pub(crate) fn log_products_below(
        &self,
        size: usize,
        factors: &[u32],
        divisors: &[u32],
    ) -> Vec<u32> {
        let mut sums = vec![0; size];
        for (points, count) in [(factors, 1), (divisors, ORDER - 1)] {
            for &point in points {
                if let Some(sum) = sums.get_mut(point as usize) {
                    *sum = count;
                }
            }
        }
        transform(&mut sums);
        let logs = || {
            let mut logs: Vec<u32> = (0..size).map(|a| self.log(a as u16) % ORDER).collect();
            transform(&mut logs);
            logs
        };
        let few;
        let logs = if size == SIZE {
            self.transformed_logs.get_or_init(logs)
        } else {
            few = logs();
            &few
        };
        // Two transforms multiply by `size`, which this makes 65 536.
        let scale = (SIZE / size) as u64;
        for (sum, log) in sums.iter_mut().zip(logs) {
            let product = u64::from(*sum) * u64::from(*log) % u64::from(ORDER);
            *sum = (product * scale % u64::from(ORDER)) as u32;
        }
        transform(&mut sums);
        sums
    }
}

/// Computes the matrices column by column, by the definition.
fn matrices(field: &BinaryField, constant: u16) -> [u64; 4] {
    let mut matrices = [0; 4];
    for input in 0..16 {
        let product = field.product(constant, 1 << input);
        for output in 0..16 {
            let bit = u64::from(product >> output & 1);
            let block = 2 * usize::from(output < 8) + usize::from(input < 8);
            matrices[block] |= bit << (8 * (7 - output % 8) + input % 8);
        }
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
    fn positions_are_in_a_cantor_basis() {
        let field = leopard_field();
        let square = |a: u16| if a == 0 { 0 } else { field.alpha_power(2 * field.log(a)) };
        for bit in 1..16 {
            assert_eq!(square(1 << bit) ^ 1 << bit, 1 << (bit - 1), "bit {bit}");
        }
        assert_eq!(square(1), 1);
        // The generator is a zero of Leopard's polynomial x^16 + x^5 + x^3 + x^2 + 1.
        let sum = [16, 5, 3, 2, 0].map(|exponent| field.alpha_power(exponent));
        assert_eq!(sum.into_iter().fold(0, |sum, power| sum ^ power), 0);
    }

    #[test]
    fn products_below_a_size_are_those_of_all() {
        let field = leopard_field();
        let (factors, divisors) = ([1, 5, 6, 200], [0, 17, 255]);
        let all = field.log_products(&factors, &divisors);
        assert_eq!(field.log_products_below(256, &factors, &divisors), all[..256]);
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
