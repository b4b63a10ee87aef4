//! AVX-512 with GFNI: one register per lane, ternary logic for sums, and bit matrices for products.
//!
//! See [`ProductTable`] for the products.

use super::{Lane, LaneKernel, ProductTable};
use crate::bytes::line::{LINE, Line};
use core::arch::x86_64::{
    __m512i, _MM_HINT_T0, _mm_prefetch, _mm_sfence, _mm512_gf2p8affine_epi64_epi8,
    _mm512_loadu_si512, _mm512_maskz_set1_epi8, _mm512_set1_epi64, _mm512_setzero_si512,
    _mm512_shuffle_i64x2, _mm512_storeu_si512, _mm512_stream_si512, _mm512_ternarylogic_epi64,
    _mm512_xor_si512,
};

/// True if this processor runs [`run`].
pub(super) fn is_available() -> bool {
    #[cfg(feature = "std")]
    return is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("gfni");
    #[cfg(not(feature = "std"))]
    return cfg!(target_feature = "avx512f")
        && cfg!(target_feature = "avx512bw")
        && cfg!(target_feature = "gfni");
}

/// Runs `kernel` compiled for AVX-512 and GFNI.
#[target_feature(enable = "avx512f,avx512bw,gfni")]
pub(super) fn run(kernel: impl LaneKernel) {
    kernel.run::<Avx512>();
}

/// 64 bytes. Used only inside [`run`], which enables the instructions.
#[derive(Clone, Copy)]
struct Avx512(__m512i);

impl Lane for Avx512 {
    /// The matrix, in each of the eight words.
    type Factor = __m512i;
    type Operand = Self;
    type Matrix = u64;
    const ACCUMULATORS: usize = 25;

    #[inline(always)]
    fn zero() -> Self {
        // SAFETY: AVX-512 is there, see `Avx512`.
        unsafe { Self(_mm512_setzero_si512()) }
    }

    #[inline(always)]
    fn load(from: &[u8; LINE]) -> Self {
        // SAFETY: AVX-512 is there; an unaligned load of 64 bytes from an array of 64.
        unsafe { Self(_mm512_loadu_si512(from.as_ptr().cast())) }
    }

    #[inline(always)]
    fn from_bits(bits: u64) -> Self {
        // SAFETY: AVX-512 is there.
        unsafe { Self(_mm512_maskz_set1_epi8(bits, 1)) }
    }

    #[inline(always)]
    fn store(self, to: &mut [u8; LINE]) {
        // SAFETY: AVX-512 is there; an unaligned store of 64 bytes to an array of 64.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), self.0) }
    }

    #[inline(always)]
    fn xor(self, a: Self) -> Self {
        // SAFETY: AVX-512 is there.
        unsafe { Self(_mm512_xor_si512(self.0, a.0)) }
    }

    #[inline(always)]
    fn xor3(self, a: Self, b: Self) -> Self {
        /// The truth table of a sum of three bits.
        const SUM: i32 = 0x96;
        // SAFETY: AVX-512 is there.
        unsafe { Self(_mm512_ternarylogic_epi64::<SUM>(self.0, a.0, b.0)) }
    }

    #[inline(always)]
    fn double(self) -> Self {
        self.times(Self::factor(2))
    }

    #[inline(always)]
    fn factor_of(table: &ProductTable, constant: u8) -> __m512i {
        Self::matrix_factor(table.matrices[constant as usize])
    }

    #[inline(always)]
    fn matrix(rows: u64) -> u64 {
        rows
    }

    #[inline(always)]
    fn matrix_factor(matrix: u64) -> __m512i {
        // SAFETY: AVX-512 is there.
        unsafe { _mm512_set1_epi64(matrix as i64) }
    }

    #[inline(always)]
    fn matrix_sum(a: u64, b: u64) -> u64 {
        a ^ b
    }

    #[inline(always)]
    fn exchange([a, b]: [Self; 2]) -> [Self; 2] {
        // SAFETY: AVX-512 is there.
        unsafe {
            [
                Self(_mm512_shuffle_i64x2::<0b01_00_01_00>(a.0, b.0)),
                Self(_mm512_shuffle_i64x2::<0b11_10_11_10>(a.0, b.0)),
            ]
        }
    }

    #[inline(always)]
    fn operand(self) -> Self {
        self
    }

    #[inline(always)]
    fn product(operand: Self, factor: __m512i) -> Self {
        // SAFETY: AVX-512 and GFNI are there.
        unsafe { Self(_mm512_gf2p8affine_epi64_epi8::<0>(operand.0, factor)) }
    }

    #[inline(always)]
    fn prefetch(line: &[u8; LINE]) {
        // SAFETY: a hint, which accesses no memory.
        unsafe { _mm_prefetch::<_MM_HINT_T0>((&raw const *line).cast()) }
    }

    #[inline(always)]
    fn stream(self, to: &mut Line) {
        // SAFETY: AVX-512 is there; a store of 64 bytes to a `Line`, which is aligned to them.
        unsafe { _mm512_stream_si512((&raw mut *to).cast(), self.0) }
    }

    #[inline(always)]
    fn fence() {
        // SAFETY: every processor that has AVX-512 has it.
        unsafe { _mm_sfence() }
    }
}
