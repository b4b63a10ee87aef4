//! A basis of GF(256) over GF(2) for the additive FFT (D. G. Cantor, "On arithmetical algorithms
//! over finite fields", Journal of Combinatorial Theory A 50, 1989).
//!
//! `b_0` is 1, and `b_(i+1)^2 + b_(i+1)` is `b_i`. The polynomial `s_j`, whose zeros are the sums
//! of the first `j` elements, is `x^2 + x` applied `j` times. So `s_j(b_i)` is `b_(i-j)`, and the
//! derivative of `s_j` is 1.
//!
//! Of the two solutions for `b_(i+1)` the even one is taken, as in Leopard.

use crate::field::gf256::mul;

/// Number of elements of the field.
pub(crate) const POINTS: usize = 256;

/// For each position, the element that is the sum of the `b_i` of its bits `i`. Entry `p >> j` is
/// `s_j` of entry `p`.
pub(crate) static ELEMENTS: [u8; POINTS] = {
    let mut elements = [0; POINTS];
    let mut basis = 1;
    let mut bit = 1;
    while bit < POINTS {
        let mut i = 0;
        while i < bit {
            elements[bit + i] = elements[i] ^ basis;
            i += 1;
        }
        basis = root(basis);
        bit *= 2;
    }
    elements
};

/// The position of each element: the inverse of [`ELEMENTS`].
pub(crate) static POSITIONS: [u8; POINTS] = {
    let mut positions = [0; POINTS];
    let mut position = 0;
    while position < POINTS {
        positions[ELEMENTS[position] as usize] = position as u8;
        position += 1;
    }
    positions
};

/// The even solution of `x^2 + x = a`; 0 if there is none.
const fn root(a: u8) -> u8 {
    let mut x = 254;
    while x > 0 && mul(x, x) ^ x != a {
        x -= 2;
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_has_one_position() {
        for element in 0..=255_u8 {
            assert_eq!(ELEMENTS[POSITIONS[element as usize] as usize], element);
        }
    }

    #[test]
    fn a_shift_of_the_position_is_a_subspace_polynomial() {
        for position in 0..POINTS {
            let mut x = ELEMENTS[position];
            for j in 1..=8 {
                x = mul(x, x) ^ x;
                assert_eq!(x, ELEMENTS[position >> j], "{position} >> {j}");
            }
        }
    }
}
