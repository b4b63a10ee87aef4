//! NEON, which every 64-bit ARM processor has: four registers per lane. Products use table look-up
//! by half bytes (`tbl`).

use super::tables::{ProductTable, products_of};
use super::{Lane, plain::Plain};
use crate::bytes::line::LINE;
use crate::field::gf256::REDUCTION;
use core::arch::aarch64::{
    uint8x16_t, vandq_u8, vcltzq_s8, vdupq_n_u8, veorq_u8, vld1q_u8, vqtbl1q_u8,
    vreinterpretq_s8_u8, vshlq_n_u8, vshrq_n_u8, vst1q_u8,
};

/// 64 bytes.
#[derive(Clone, Copy)]
pub(super) struct Neon([uint8x16_t; 4]);

impl Lane for Neon {
    /// Products with the low and with the high half of a byte.
    type Factor = [uint8x16_t; 2];
    /// The low and the high halves of the bytes.
    type Operand = [[uint8x16_t; 4]; 2];
    /// The same products.
    type Matrix = [u64; 4];

    // Of 32 registers, each a quarter of a lane, an operand takes eight and a factor two.
    const ACCUMULATORS: usize = 4;

    #[inline(always)]
    fn zero() -> Self {
        // SAFETY: every processor of this architecture has NEON. This holds for the whole file.
        unsafe { Self([vdupq_n_u8(0); 4]) }
    }

    #[inline(always)]
    fn load(from: &[u8; LINE]) -> Self {
        let mut lane = Self::zero();
        for (register, bytes) in lane.0.iter_mut().zip(from.as_chunks::<16>().0) {
            // SAFETY: an unaligned load of 16 bytes from an array of 16.
            *register = unsafe { vld1q_u8(bytes.as_ptr()) };
        }
        lane
    }

    #[inline(always)]
    fn from_bits(bits: u64) -> Self {
        let mut bytes = [0; LINE];
        Plain::from_bits(bits).store(&mut bytes);
        Self::load(&bytes)
    }

    #[inline(always)]
    fn store(self, to: &mut [u8; LINE]) {
        for (register, bytes) in self.0.into_iter().zip(to.as_chunks_mut::<16>().0) {
            // SAFETY: an unaligned store of 16 bytes to an array of 16.
            unsafe { vst1q_u8(bytes.as_mut_ptr(), register) }
        }
    }

    #[inline(always)]
    fn xor(mut self, a: Self) -> Self {
        for (register, a) in self.0.iter_mut().zip(a.0) {
            // SAFETY: NEON is there.
            *register = unsafe { veorq_u8(*register, a) };
        }
        self
    }

    #[inline(always)]
    fn xor3(self, a: Self, b: Self) -> Self {
        self.xor(a).xor(b)
    }

    #[inline(always)]
    fn double(mut self) -> Self {
        for register in &mut self.0 {
            // SAFETY: NEON is there.
            unsafe {
                // A byte whose top bit is set is a negative number.
                let carry = vcltzq_s8(vreinterpretq_s8_u8(*register));
                let reduction = vandq_u8(carry, vdupq_n_u8(REDUCTION));
                *register = veorq_u8(vshlq_n_u8::<1>(*register), reduction);
            }
        }
        self
    }

    #[inline(always)]
    fn factor_of(table: &ProductTable, constant: u8) -> Self::Factor {
        let at = table.products[constant as usize].as_ptr();
        // SAFETY: two unaligned loads of 16 bytes from an array of 32.
        unsafe { [vld1q_u8(at), vld1q_u8(at.add(16))] }
    }

    #[inline(always)]
    fn matrix(rows: u64) -> [u64; 4] {
        products_of(rows)
    }

    #[inline(always)]
    fn matrix_factor(matrix: [u64; 4]) -> Self::Factor {
        let at = matrix.as_ptr().cast::<u8>();
        // SAFETY: two unaligned loads of 16 bytes from an array of 32.
        unsafe { [vld1q_u8(at), vld1q_u8(at.add(16))] }
    }

    #[inline(always)]
    fn matrix_sum(a: [u64; 4], b: [u64; 4]) -> [u64; 4] {
        core::array::from_fn(|i| a[i] ^ b[i])
    }

    #[inline(always)]
    fn exchange([Self([a, b, c, d]), Self([e, f, g, h])]: [Self; 2]) -> [Self; 2] {
        [Self([a, b, e, f]), Self([c, d, g, h])]
    }

    #[inline(always)]
    fn operand(self) -> Self::Operand {
        let mut halves = [self.0; 2];
        let [low, high] = &mut halves;
        for (low, high) in low.iter_mut().zip(high) {
            // SAFETY: NEON is there.
            unsafe {
                *low = vandq_u8(*low, vdupq_n_u8(0x0F));
                *high = vshrq_n_u8::<4>(*high);
            }
        }
        halves
    }

    #[inline(always)]
    fn product([low, high]: Self::Operand, factor: Self::Factor) -> Self {
        let mut product = low;
        for (product, high) in product.iter_mut().zip(high) {
            // SAFETY: NEON is there.
            *product =
                unsafe { veorq_u8(vqtbl1q_u8(factor[0], *product), vqtbl1q_u8(factor[1], high)) };
        }
        Self(product)
    }

    #[inline(always)]
    fn prefetch(_line: &[u8; LINE]) {}
}
