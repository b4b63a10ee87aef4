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
pub(crate) const fn mul(a: u8, b: u8) -> u8 {
    if a == 0 || b == 0 {
        return 0;
    }
    EXP[LOG[a as usize] as usize + LOG[b as usize] as usize]
}

/// `1 / a`; 0 has no inverse and gives 1.
pub(crate) const fn inverse(a: u8) -> u8 {
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
}
