//! The fields GF(2^w), w from 2 to 16, by tables of logarithms, for planning. Elements are
//! polynomials over GF(2) modulo the primitive polynomial that RFC 5510 lists for w, so `alpha` is
//! 2.

/// Primitive polynomials for w = 2 ... 16, bit i for x^i (RFC 5510).
use alloc::vec;
use alloc::vec::Vec;

const POLYNOMIALS: [u32; 15] = [
    0x7, 0xB, 0x13, 0x25, 0x43, 0x89, 0x11D, 0x211, 0x409, 0x805, 0x1053, 0x201B, 0x4443, 0x8003,
    0x1100B,
];

/// Tables of one field: 256 KB for w = 16.
pub struct BinaryField {
    bits: u32,
    /// Logarithms; 0 for 0, which has no logarithm.
    log: Vec<u16>,
    /// Powers of `alpha`, stored twice so that a sum of two logarithms needs no reduction.
    exp: Vec<u16>,
}

impl BinaryField {
    /// The field of 2^`bits` elements; `None` unless `bits` is 2 to 16.
    pub fn new(bits: u32) -> Option<Self> {
        let polynomial = *POLYNOMIALS.get(bits.checked_sub(2)? as usize)?;
        Some(Self::modulo(bits, polynomial))
    }

    /// The field of 65 536 elements.
    pub(crate) fn of_16_bits() -> Self {
        Self::modulo(16, POLYNOMIALS[14])
    }

    /// The field of Leopard over GF(2^16): polynomials modulo x^16 + x^5 + x^3 + x^2 + 1, in the
    /// form of their positions in the Cantor basis whose elements but the first are even (see
    /// [`cantor_basis`](crate::field::cantor_basis)).
    pub(crate) fn of_leopard() -> Self {
        let polynomials = Self::modulo(16, 0x1002D);
        let mut elements = vec![0_u16; 1 << 16];
        let mut basis = 1;
        for bit in 0..16 {
            let (known, rest) = elements.split_at_mut(1 << bit);
            for (element, known) in rest.iter_mut().zip(known) {
                *element = *known ^ basis;
            }
            let is_root = |&x: &u16| polynomials.product(x, x) ^ x == basis;
            basis = (0..=u16::MAX).step_by(2).find(is_root).unwrap_or(0);
        }
        let mut field = Self { bits: 16, log: vec![0; 1 << 16], exp: polynomials.exp };
        let mut positions = vec![0; 1 << 16];
        for (position, &element) in (0..=u16::MAX).zip(&elements) {
            positions[usize::from(element)] = position;
            field.log[usize::from(position)] = polynomials.log[usize::from(element)];
        }
        for element in &mut field.exp {
            *element = positions[usize::from(*element)];
        }
        field
    }

    /// `a * b`.
    pub(crate) fn product(&self, a: u16, b: u16) -> u16 {
        if a == 0 || b == 0 { 0 } else { self.alpha_power(self.log(a) + self.log(b)) }
    }

    fn modulo(bits: u32, polynomial: u32) -> Self {
        let order = (1_u32 << bits) - 1;
        let (mut log, mut exp) = (vec![0; 1 << bits], vec![0; 2 * order as usize]);
        let mut power = 1_u32;
        for i in 0..order {
            exp[i as usize] = power as u16;
            exp[(i + order) as usize] = power as u16;
            log[power as usize] = i as u16;
            power <<= 1;
            if power > order {
                power ^= polynomial;
            }
        }
        Self { bits, log, exp }
    }

    /// `w`.
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// Elements that are not 0.
    pub fn order(&self) -> u32 {
        (1 << self.bits) - 1
    }

    /// The logarithm of `a`; 0 for 0.
    pub fn log(&self, a: u16) -> u32 {
        self.log[usize::from(a)].into()
    }

    /// `alpha^exponent` for exponents below twice the [`order`](Self::order).
    pub fn alpha_power(&self, exponent: u32) -> u16 {
        self.exp[exponent as usize]
    }

    /// `a * alpha`.
    pub fn double(&self, a: u16) -> u16 {
        if a == 0 { 0 } else { self.alpha_power(self.log(a) + 1) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alpha_generates_every_field() {
        assert!(BinaryField::new(1).is_none() && BinaryField::new(17).is_none());
        for bits in 2..=16 {
            let field = BinaryField::new(bits).unwrap();
            let mut powers: Vec<u16> = (0..field.order()).map(|i| field.alpha_power(i)).collect();
            powers.sort_unstable();
            let all: Vec<u16> = (1..=field.order()).map(|a| a as u16).collect();
            assert_eq!(powers, all, "{bits}");
        }
    }

    #[test]
    fn the_field_of_octets_equals_that_of_the_kernels() {
        let field = BinaryField::new(8).unwrap();
        for a in 1..=255_u8 {
            assert_eq!(field.log(a.into()), crate::field::gf256::log(a));
            assert_eq!(field.double(a.into()), u16::from(crate::field::gf256::double(a)));
        }
    }
}
