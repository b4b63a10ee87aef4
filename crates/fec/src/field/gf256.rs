//! The field GF(256) of RFC 6330, section 5.7: polynomials over GF(2) modulo x^8 + x^4 + x^3 + x^2
//! + 1, so `alpha` is 2. Addition is exclusive or.
//!
//! These functions take one octet at a time, for planning. The kernels multiply symbols.

/// The reduction polynomial without its leading term.
pub(crate) const REDUCTION: u8 = 0x1D;

/// `a * alpha`.
pub(crate) const fn double(a: u8) -> u8 {
    (a << 1) ^ if a & 0x80 != 0 { REDUCTION } else { 0 }
}

/// Powers of `alpha`, stored twice so that a sum of two logarithms needs no reduction: `OCT_EXP` of
/// RFC 6330, section 5.7.3.
const EXP: [u8; 510] = {
    let mut exp = [0; 510];
    let (mut i, mut power) = (0, 1);
    while i < exp.len() {
        exp[i] = power;
        power = double(power);
        i += 1;
    }
    exp
};

/// Logarithms to the base `alpha`; 0 has none, and its entry is never used.
const LOG: [u8; 256] = {
    let mut log = [0; 256];
    let mut i = 0;
    while i < 255 {
        log[EXP[i] as usize] = i as u8;
        i += 1;
    }
    log
};

/// `a * b`.
pub const fn mul(a: u8, b: u8) -> u8 {
    if a == 0 || b == 0 {
        return 0;
    }
    EXP[LOG[a as usize] as usize + LOG[b as usize] as usize]
}

/// `1 / a`; 0 has no inverse and gives 1.
pub const fn inverse(a: u8) -> u8 {
    EXP[255 - LOG[a as usize] as usize]
}

/// The logarithm of `a` to the base `alpha`; 0 for 0, which has no logarithm.
pub(crate) const fn log(a: u8) -> u32 {
    LOG[a as usize] as u32
}

/// `alpha^exponent` for exponents below 510.
pub(crate) const fn alpha_power(exponent: usize) -> u8 {
    EXP[exponent]
}

/// Number of elements.
const SIZE: usize = 256;

/// Elements that are not 0.
pub(crate) const ORDER: u32 = 255;

/// Steps of [`log_products`]: two transforms of all elements.
pub(crate) const LOG_PRODUCTS_WORK: usize = 2 * 8 * SIZE;

/// For every element `p`, the logarithm of the product of `p - q` over all `q` of `factors` but
/// `p`, divided by the same product over `divisors`.
///
/// A sum of logarithms of `p ^ q` over `q` is a convolution over exclusive or, which the
/// Walsh-Hadamard transform turns into a product. The sums have at most 16 bits, so 32 suffice.
pub(crate) fn log_products(factors: &[u8], divisors: &[u8]) -> [u8; SIZE] {
    /// The transform of the logarithms.
    static LOGS: [i32; SIZE] = {
        let mut logs = [0; SIZE];
        let mut a = 0;
        while a < SIZE {
            logs[a] = LOG[a] as i32;
            a += 1;
        }
        transform(logs)
    };
    let mut counts = [0; SIZE];
    factors.iter().for_each(|&q| counts[usize::from(q)] += 1);
    divisors.iter().for_each(|&q| counts[usize::from(q)] -= 1);
    let mut products = transform(counts);
    for (product, log) in products.iter_mut().zip(LOGS) {
        *product = product.wrapping_mul(log);
    }
    transform(products).map(|sum| (sum / SIZE as i32).rem_euclid(ORDER as i32) as u8)
}

/// The Walsh-Hadamard transform: twice, it multiplies by [`SIZE`].
const fn transform(mut values: [i32; SIZE]) -> [i32; SIZE] {
    let mut half = 1;
    while half < SIZE {
        let mut first = 0;
        while first < SIZE {
            let mut i = first;
            while i < first + half {
                let (a, b) = (values[i], values[i + half]);
                values[i] = a.wrapping_add(b);
                values[i + half] = a.wrapping_sub(b);
                i += 1;
            }
            first += 2 * half;
        }
        half *= 2;
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Product by the definition: polynomial multiplication, then reduction.
    fn product(a: u8, b: u8) -> u8 {
        (0..8).rev().fold(0, |sum, bit| double(sum) ^ if b >> bit & 1 == 1 { a } else { 0 })
    }

    #[test]
    fn products_follow_the_definition() {
        for a in 0..=255 {
            for b in 0..=255 {
                assert_eq!(mul(a, b), product(a, b), "{a} * {b}");
            }
        }
    }

    #[test]
    fn every_octet_but_zero_has_an_inverse() {
        for a in 1..=255 {
            assert_eq!(mul(a, inverse(a)), 1, "{a}");
        }
    }

    #[test]
    fn tables_are_those_of_the_rfc() {
        let column = |text: &str| -> Vec<u8> {
            text.lines().filter(|line| !line.starts_with('#')).map(|n| n.parse().unwrap()).collect()
        };
        assert_eq!(column(include_str!("../../tests/data/rfc6330_OCT_EXP.txt")), EXP);
        let log = column(include_str!("../../tests/data/rfc6330_OCT_LOG.txt"));
        assert_eq!(log, LOG[1..]);
    }

    #[test]
    fn products_of_distances_are_sums_of_logarithms() {
        let octets = |from: u32, to: u32| -> Vec<u8> { (from..to).map(|a| a as u8).collect() };
        for (factors, divisors) in
            [(octets(3, 130), octets(130, 256)), (octets(0, 256), vec![]), (vec![], octets(0, 256))]
        {
            let products = log_products(&factors, &divisors);
            for p in 0..=255_u8 {
                let sum = |points: &[u8]| -> u32 { points.iter().map(|&q| log(p ^ q)).sum() };
                let expected = (sum(&factors) + ORDER * 256 - sum(&divisors)) % ORDER;
                assert_eq!(u32::from(products[usize::from(p)]), expected, "{p}");
            }
        }
    }
}
