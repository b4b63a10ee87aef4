//! AVX2: two registers per lane. Products use table look-up by half bytes (`pshufb`), or bit
//! matrices if the processor has GFNI.

use super::tables::{ProductTable, products_of};
use super::{Lane, LaneKernel};
use crate::bytes::line::{LINE, Line};
use crate::field::gf256::REDUCTION;
use core::arch::x86_64::{
    __m128i, __m256i, _MM_HINT_T0, _mm_loadu_si128, _mm_prefetch, _mm_sfence, _mm256_add_epi8,
    _mm256_and_si256, _mm256_broadcastsi128_si256, _mm256_cmpeq_epi8, _mm256_cmpgt_epi8,
    _mm256_gf2p8affine_epi64_epi8, _mm256_loadu_si256, _mm256_permute2x128_si256, _mm256_set1_epi8,
    _mm256_set1_epi32, _mm256_set1_epi64x, _mm256_setr_epi64x, _mm256_setzero_si256,
    _mm256_shuffle_epi8, _mm256_srli_epi64, _mm256_storeu_si256, _mm256_stream_si256,
    _mm256_xor_si256,
};

/// Runs `kernel` compiled for AVX2.
#[target_feature(enable = "avx2")]
pub(super) fn run(kernel: impl LaneKernel) {
    kernel.run::<Avx2<false>>();
}

/// True if this processor runs [`run`].
pub(super) fn is_available() -> bool {
    #[cfg(feature = "std")]
    return is_x86_feature_detected!("avx2");
    #[cfg(not(feature = "std"))]
    return cfg!(target_feature = "avx2");
}

/// True if this processor runs [`run_gfni`].
pub(super) fn has_gfni() -> bool {
    #[cfg(feature = "std")]
    return is_available() && is_x86_feature_detected!("gfni");
    #[cfg(not(feature = "std"))]
    return is_available() && cfg!(target_feature = "gfni");
}

/// Runs `kernel` compiled for AVX2 and GFNI.
#[target_feature(enable = "avx2,gfni")]
pub(super) fn run_gfni(kernel: impl LaneKernel) {
    kernel.run::<Avx2<true>>();
}

/// 64 bytes. Used only inside [`run`], or inside [`run_gfni`] if `GFNI`: these functions enable the
/// instructions.
#[derive(Clone, Copy)]
struct Avx2<const GFNI: bool>([__m256i; 2]);

impl<const GFNI: bool> Lane for Avx2<GFNI> {
    /// Products with the low and with the high half of a byte, repeated in both halves of the
    /// register; with GFNI, the matrix twice.
    type Factor = [__m256i; 2];
    /// The low halves of the bytes, and the high ones; with GFNI, the bytes twice.
    type Operand = [[__m256i; 2]; 2];
    /// The same products, or the matrix four times, for one register.
    type Matrix = [u64; 4];
    const ACCUMULATORS: usize = if GFNI { 6 } else { 4 };

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
    fn factor_of(table: &ProductTable, constant: u8) -> Self::Factor {
        if GFNI {
            // SAFETY: AVX2 is there.
            return [unsafe { _mm256_set1_epi64x(table.matrices[constant as usize] as i64) }; 2];
        }
        let at = table.products[constant as usize].as_ptr().cast::<__m128i>();
        // SAFETY: AVX2 is there; two unaligned loads of 16 bytes from an array of 32.
        unsafe {
            [
                _mm256_broadcastsi128_si256(_mm_loadu_si128(at)),
                _mm256_broadcastsi128_si256(_mm_loadu_si128(at.add(1))),
            ]
        }
    }

    #[inline(always)]
    fn matrix(rows: u64) -> [u64; 4] {
        if GFNI { [rows; 4] } else { products_of(rows) }
    }

    #[inline(always)]
    fn matrix_factor(matrix: [u64; 4]) -> Self::Factor {
        // SAFETY: AVX2 is there; an unaligned load of 32 bytes from an array of 32.
        let products = unsafe { _mm256_loadu_si256(matrix.as_ptr().cast()) };
        if GFNI {
            return [products; 2];
        }
        // SAFETY: AVX2 is there. Each half of the register in both halves.
        unsafe {
            [
                _mm256_permute2x128_si256::<0x00>(products, products),
                _mm256_permute2x128_si256::<0x11>(products, products),
            ]
        }
    }

    #[inline(always)]
    fn matrix_sum(a: [u64; 4], b: [u64; 4]) -> [u64; 4] {
        core::array::from_fn(|i| a[i] ^ b[i])
    }

    #[inline(always)]
    fn exchange([Self([a, b]), Self([c, d])]: [Self; 2]) -> [Self; 2] {
        [Self([a, c]), Self([b, d])]
    }

    #[inline(always)]
    fn operand(self) -> Self::Operand {
        let mut halves = [self.0; 2];
        if !GFNI {
            let [low, high] = &mut halves;
            for (low, high) in low.iter_mut().zip(high) {
                // SAFETY: AVX2 is there.
                unsafe {
                    let mask = _mm256_set1_epi8(0x0F);
                    *low = _mm256_and_si256(*low, mask);
                    *high = _mm256_and_si256(_mm256_srli_epi64::<4>(*high), mask);
                }
            }
        }
        halves
    }

    #[inline(always)]
    fn product([low, high]: Self::Operand, factor: Self::Factor) -> Self {
        let mut product = low;
        for (product, high) in product.iter_mut().zip(high) {
            // SAFETY: AVX2 is there, and GFNI if `GFNI` is true.
            *product = unsafe {
                if GFNI {
                    _mm256_gf2p8affine_epi64_epi8::<0>(*product, factor[0])
                } else {
                    _mm256_xor_si256(
                        _mm256_shuffle_epi8(factor[0], *product),
                        _mm256_shuffle_epi8(factor[1], high),
                    )
                }
            };
        }
        Self(product)
    }

    #[inline(always)]
    fn prefetch(line: &[u8; LINE]) {
        // SAFETY: a hint, which accesses no memory.
        unsafe { _mm_prefetch::<_MM_HINT_T0>((&raw const *line).cast()) }
    }

    #[inline(always)]
    fn stream(self, to: &mut Line) {
        let at = (&raw mut *to).cast::<__m256i>();
        // SAFETY: AVX2 is there; two stores of 32 bytes to a `Line`, which is aligned to them.
        unsafe {
            _mm256_stream_si256(at, self.0[0]);
            _mm256_stream_si256(at.add(1), self.0[1]);
        }
    }

    #[inline(always)]
    fn fence() {
        // SAFETY: every processor that has AVX2 has it.
        unsafe { _mm_sfence() }
    }
}
