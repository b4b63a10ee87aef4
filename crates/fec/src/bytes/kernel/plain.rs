//! The reference: eight bytes at a time in ordinary registers.

use super::Lane;
use super::tables::{ProductTable, columns_of};
use crate::bytes::line::LINE;
use crate::field::gf256::REDUCTION;

/// 64 bytes as eight words of eight field elements.
#[derive(Clone, Copy)]
pub(super) struct Plain([u64; 8]);

/// `byte` in each of the eight bytes.
const fn each(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; 8])
}

impl Lane for Plain {
    /// The columns of the bit matrix: the products with 1, 2, ... 128.
    type Factor = [u8; 8];
    type Operand = Self;
    type Matrix = [u8; 8];
    const ACCUMULATORS: usize = 4;

    #[inline(always)]
    fn zero() -> Self {
        Self([0; 8])
    }

    #[inline(always)]
    fn load(from: &[u8; LINE]) -> Self {
        let mut lane = [0; 8];
        for (word, bytes) in lane.iter_mut().zip(from.as_chunks().0) {
            *word = u64::from_ne_bytes(*bytes);
        }
        Self(lane)
    }

    #[inline(always)]
    fn from_bits(bits: u64) -> Self {
        let mut lane = [0; 8];
        for (word, bits) in lane.iter_mut().zip(bits.to_le_bytes()) {
            // The byte in every byte, then bit i of byte i, then 1 where that bit is set.
            let bit = (u64::from(bits) * 0x0101_0101_0101_0101) & 0x8040_2010_0804_0201;
            let ones = ((bit + 0x7F7F_7F7F_7F7F_7F7F) >> 7) & 0x0101_0101_0101_0101;
            *word = u64::from_ne_bytes(ones.to_le_bytes());
        }
        Self(lane)
    }

    #[inline(always)]
    fn store(self, to: &mut [u8; LINE]) {
        for (word, bytes) in self.0.iter().zip(to.as_chunks_mut().0) {
            *bytes = word.to_ne_bytes();
        }
    }

    #[inline(always)]
    fn xor(mut self, a: Self) -> Self {
        for (word, a) in self.0.iter_mut().zip(a.0) {
            *word ^= a;
        }
        self
    }

    #[inline(always)]
    fn xor3(self, a: Self, b: Self) -> Self {
        self.xor(a).xor(b)
    }

    #[inline(always)]
    fn double(mut self) -> Self {
        for word in &mut self.0 {
            let carry = *word & each(0x80);
            // 0xFF in each byte that had its top bit set.
            let reduce = carry | (carry - (carry >> 7));
            *word = ((*word ^ carry) << 1) ^ (reduce & each(REDUCTION));
        }
        self
    }

    #[inline(always)]
    fn factor_of(table: &ProductTable, constant: u8) -> [u8; 8] {
        columns_of(table.matrices[constant as usize])
    }

    #[inline(always)]
    fn matrix(rows: u64) -> [u8; 8] {
        columns_of(rows)
    }

    #[inline(always)]
    fn matrix_factor(matrix: [u8; 8]) -> [u8; 8] {
        matrix
    }

    #[inline(always)]
    fn matrix_sum(a: [u8; 8], b: [u8; 8]) -> [u8; 8] {
        (u64::from_ne_bytes(a) ^ u64::from_ne_bytes(b)).to_ne_bytes()
    }

    #[inline(always)]
    fn exchange([Self(a), Self(b)]: [Self; 2]) -> [Self; 2] {
        let half = |from: usize| {
            Self(core::array::from_fn(|i| if i < 4 { a[from + i] } else { b[from + i - 4] }))
        };
        [half(0), half(4)]
    }

    #[inline(always)]
    fn operand(self) -> Self {
        self
    }

    // It needs no instructions of its own, and a copy in each butterfly would be large.
    #[inline(never)]
    fn product(operand: Self, factor: [u8; 8]) -> Self {
        let mut product = Self::zero();
        for (bit, column) in factor.into_iter().enumerate() {
            for (sum, word) in product.0.iter_mut().zip(operand.0) {
                let bits = (word >> bit) & each(1);
                // 0xFF in each byte that had the bit set.
                let is_set = (bits << 8).wrapping_sub(bits);
                *sum ^= is_set & each(column);
            }
        }
        product
    }

    #[inline(always)]
    fn prefetch(_line: &[u8; LINE]) {}
}
