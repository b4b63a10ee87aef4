//! AVX2: two registers to a lane; products by table look-up in halves of a byte (`pshufb`).

use super::{Kernel, Lane, run_lanes};
use crate::gf256::{REDUCTION, mul};
use crate::stripes::LINE;
use std::arch::x86_64::{
    __m128i, __m256i, _mm_loadu_si128, _mm256_add_epi8, _mm256_and_si256,
    _mm256_broadcastsi128_si256, _mm256_cmpeq_epi8, _mm256_cmpgt_epi8, _mm256_loadu_si256,
    _mm256_set1_epi8, _mm256_set1_epi32, _mm256_set1_epi64x, _mm256_setr_epi64x,
    _mm256_setzero_si256, _mm256_shuffle_epi8, _mm256_srli_epi64, _mm256_storeu_si256,
    _mm256_xor_si256,
};

/// Runs `kernel` compiled for AVX2.
#[target_feature(enable = "avx2")]
pub(super) fn run(lanes: usize, kernel: impl Kernel) {
    run_lanes::<Avx2>(lanes, kernel);
}

/// 64 bytes. Used inside [`run`] only, which is what makes its instructions available.
#[derive(Clone, Copy)]
struct Avx2([__m256i; 2]);

/// For each constant the products with 0, 1, ... 15, then with 0, 16, ... 240.
static PRODUCTS: [[u8; 32]; 256] = {
    let mut products = [[0; 32]; 256];
    let mut c = 0;
    while c < 256 {
        let mut i = 0;
        while i < 16 {
            products[c][i] = mul(c as u8, i as u8);
            products[c][16 + i] = mul(c as u8, (i as u8) << 4);
            i += 1;
        }
        c += 1;
    }
    products
};

impl Lane for Avx2 {
    /// Products with the low and with the high half of a byte, the same in both halves of the
    /// register.
    type Factor = [__m256i; 2];

    #[inline(always)]
    fn zero() -> Self {
        // SAFETY: AVX2 is there, see `Avx2`.
        unsafe { Self([_mm256_setzero_si256(); 2]) }
    }

    #[inline(always)]
    fn load(from: &[u8; LINE]) -> Self {
        let at = from.as_ptr().cast::<__m256i>();
        // SAFETY: AVX2 is there; two unaligned loads of 32 bytes from an array of 64.
        unsafe { Self([_mm256_loadu_si256(at), _mm256_loadu_si256(at.add(1))]) }
    }

    #[inline(always)]
    fn from_bits(bits: u64) -> Self {
        let mut lane = Self::zero();
        for (half, bits) in lane.0.iter_mut().zip([bits as i32, (bits >> 32) as i32]) {
            // SAFETY: AVX2 is there.
            unsafe {
                // Byte 0 in the first eight bytes, byte 1 in the next, and so on.
                let spread = _mm256_setr_epi64x(
                    0,
                    0x0101_0101_0101_0101,
                    0x0202_0202_0202_0202,
                    0x0303_0303_0303_0303,
                );
                let bytes = _mm256_shuffle_epi8(_mm256_set1_epi32(bits), spread);
                let bit = _mm256_set1_epi64x(0x8040_2010_0804_0201_u64 as i64);
                let is_set = _mm256_cmpeq_epi8(_mm256_and_si256(bytes, bit), bit);
                *half = _mm256_and_si256(is_set, _mm256_set1_epi8(1));
            }
        }
        lane
    }

    #[inline(always)]
    fn store(self, to: &mut [u8; LINE]) {
        let at = to.as_mut_ptr().cast::<__m256i>();
        // SAFETY: AVX2 is there; two unaligned stores of 32 bytes to an array of 64.
        unsafe {
            _mm256_storeu_si256(at, self.0[0]);
            _mm256_storeu_si256(at.add(1), self.0[1]);
        }
    }

    #[inline(always)]
    fn xor(self, a: Self) -> Self {
        // SAFETY: AVX2 is there.
        unsafe { Self([_mm256_xor_si256(self.0[0], a.0[0]), _mm256_xor_si256(self.0[1], a.0[1])]) }
    }

    #[inline(always)]
    fn xor3(self, a: Self, b: Self) -> Self {
        self.xor(a).xor(b)
    }

    #[inline(always)]
    fn double(mut self) -> Self {
        // SAFETY: AVX2 is there.
        unsafe {
            let reduction = _mm256_set1_epi8(REDUCTION as i8);
            for half in &mut self.0 {
                // A byte whose top bit is set is a negative number.
                let carry = _mm256_cmpgt_epi8(_mm256_setzero_si256(), *half);
                let shifted = _mm256_add_epi8(*half, *half);
                *half = _mm256_xor_si256(shifted, _mm256_and_si256(carry, reduction));
            }
        }
        self
    }

    #[inline(always)]
    fn factor(constant: u8) -> Self::Factor {
        let at = PRODUCTS[constant as usize].as_ptr().cast::<__m128i>();
        // SAFETY: AVX2 is there; two unaligned loads of 16 bytes from an array of 32.
        unsafe {
            [
                _mm256_broadcastsi128_si256(_mm_loadu_si128(at)),
                _mm256_broadcastsi128_si256(_mm_loadu_si128(at.add(1))),
            ]
        }
    }

    #[inline(always)]
    fn times(mut self, factor: Self::Factor) -> Self {
        // SAFETY: AVX2 is there.
        unsafe {
            let mask = _mm256_set1_epi8(0x0F);
            for half in &mut self.0 {
                let low = _mm256_and_si256(*half, mask);
                let high = _mm256_and_si256(_mm256_srli_epi64::<4>(*half), mask);
                *half = _mm256_xor_si256(
                    _mm256_shuffle_epi8(factor[0], low),
                    _mm256_shuffle_epi8(factor[1], high),
                );
            }
        }
        self
    }
}
