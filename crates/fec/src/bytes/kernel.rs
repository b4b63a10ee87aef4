//! Arithmetic on the bytes of symbols, for each supported instruction set.
//!
//! Each operation is written once, as a [`Kernel`] over a [`Lane`] of 64 bytes and a const number
//! of lanes per row. [`InstructionSet::dispatch`] runs it with the best lane that the processor
//! supports. The plain lane is the reference in the tests of the others, and the fallback for all
//! other processors. Its loops are simple enough for a compiler to vectorise (SSE2).

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code, reason = "vector instructions")]
mod avx2;
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code, reason = "vector instructions")]
mod avx512;
mod cauchy;
#[cfg(target_arch = "aarch64")]
#[allow(unsafe_code, reason = "vector instructions")]
mod neon;
mod plain;
mod product;
mod shards;
mod shift;
mod tables;
mod tree;
mod wide;

pub(crate) use cauchy::{
    CauchyInputs, CauchyOut, CauchyOutputs, CauchyPoint, CauchyRows, CauchySums, CauchyWork,
};
pub(crate) use product::{Before, Coefficients, MultiplyOut, MultiplyRows, Symbols};
pub(crate) use shards::{PairSums, ShardProducts, ShardSums, Shards};
pub(crate) use shift::{OctetShift, PairShift, Shift};
pub(crate) use tables::{CANTOR, POLYNOMIAL, ProductTable};
pub(crate) use wide::{MultiplyWide, WIDE_ROW};

use crate::bytes::line::{LINE, Line, MAX_STRIPE_LINES};

/// 64 bytes in registers, as elements of GF(256).
pub(crate) trait Lane: Copy {
    /// A constant of GF(256) in the form that [`times`](Self::times) multiplies by.
    type Factor: Copy;
    /// A lane in the form that is multiplied by several factors.
    type Operand: Copy;
    /// A bit matrix in memory, before it is converted into a [`Factor`](Self::Factor).
    type Matrix: Copy;
    /// Lanes of sums that fit the registers, beside the operands: see [`product`].
    const ACCUMULATORS: usize;

    fn zero() -> Self;
    fn load(from: &[u8; LINE]) -> Self;
    /// One element for each bit, from the lowest on.
    fn from_bits(bits: u64) -> Self;
    fn store(self, to: &mut [u8; LINE]);
    /// `self + a`.
    fn xor(self, a: Self) -> Self;
    /// `self + a + b`: one instruction if the processor has ternary logic.
    fn xor3(self, a: Self, b: Self) -> Self;
    /// `self * alpha`.
    fn double(self) -> Self;
    /// The product with `constant` of octets in the form of `table`.
    fn factor_of(table: &ProductTable, constant: u8) -> Self::Factor;
    /// The product with `constant` of octets in the usual form.
    #[inline(always)]
    fn factor(constant: u8) -> Self::Factor {
        Self::factor_of(&POLYNOMIAL, constant)
    }
    /// A matrix of 8 x 8 bits, in the form of [`ProductTable`].
    fn matrix(rows: u64) -> Self::Matrix;
    /// The factor that multiplies by a matrix instead of a constant.
    fn matrix_factor(matrix: Self::Matrix) -> Self::Factor;
    /// The sum of two matrices.
    fn matrix_sum(a: Self::Matrix, b: Self::Matrix) -> Self::Matrix;
    /// The first halves of two lanes, then the second ones: the inverse of itself.
    fn exchange(lanes: [Self; 2]) -> [Self; 2];
    /// `self * factor`.
    #[inline(always)]
    fn times(self, factor: Self::Factor) -> Self {
        Self::product(self.operand(), factor)
    }
    fn operand(self) -> Self::Operand;
    /// `operand * factor`.
    fn product(operand: Self::Operand, factor: Self::Factor) -> Self;
    /// Prefetches `line` into the caches.
    fn prefetch(line: &[u8; LINE]);
    /// Stores past the caches. The caller must call [`fence`](Self::fence) before another thread
    /// reads the result.
    #[inline(always)]
    fn stream(self, to: &mut Line) {
        self.store(&mut to.0);
    }
    /// Ends a run of [`stream`](Self::stream).
    #[inline(always)]
    fn fence() {}
}

/// An operation on rows of `N` lanes. Implementations of `run`, and what they call, are
/// `#[inline(always)]`, so that they are compiled for the lane's instruction set.
pub(crate) trait Kernel {
    fn run<V: Lane, const N: usize>(self);
}

/// An operation on lanes. Inlining is required as for [`Kernel`].
pub(crate) trait LaneKernel {
    fn run<V: Lane>(self);
}

/// An instruction set that this processor has. Values for other sets cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InstructionSet(Set);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Set {
    /// AVX-512 with GFNI.
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// AVX2 with GFNI.
    #[cfg(target_arch = "x86_64")]
    Avx2Gfni,
    /// AVX2.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// NEON.
    #[cfg(target_arch = "aarch64")]
    Neon,
    Plain,
}

impl InstructionSet {
    /// The sets that this processor has, best first. The plain one is always included.
    pub(crate) fn available() -> impl Iterator<Item = Self> {
        [
            #[cfg(target_arch = "x86_64")]
            avx512::is_available().then_some(Self(Set::Avx512)),
            #[cfg(target_arch = "x86_64")]
            avx2::has_gfni().then_some(Self(Set::Avx2Gfni)),
            #[cfg(target_arch = "x86_64")]
            avx2::is_available().then_some(Self(Set::Avx2)),
            #[cfg(target_arch = "aarch64")]
            Some(Self(Set::Neon)),
            Some(Self(Set::Plain)),
        ]
        .into_iter()
        .flatten()
    }

    /// The best one.
    pub(crate) fn best() -> Self {
        Self::available().next().unwrap_or(Self(Set::Plain))
    }

    /// The largest [`products_per_sum_of_8`](Self::products_per_sum_of_8).
    pub(crate) const MOST_PRODUCTS_PER_SUM_OF_8: usize = 35;

    /// Products of two lanes that take as long as the addition of eight rows that are not in the
    /// first-level cache. Measured, rounded down.
    pub(crate) fn products_per_sum_of_8(self) -> usize {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => Self::MOST_PRODUCTS_PER_SUM_OF_8,
            #[cfg(target_arch = "x86_64")]
            Set::Avx2Gfni => 14,
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => 4,
            // Estimated from its instructions, not measured.
            #[cfg(target_arch = "aarch64")]
            Set::Neon => 4,
            Set::Plain => 0,
        }
    }

    /// Runs `kernel` on rows of `lanes` lanes, 1 to [`MAX_STRIPE_LINES`].
    pub(crate) fn dispatch(self, lanes: usize, kernel: impl Kernel) {
        self.run(OnRows { lanes, kernel });
    }

    /// Runs `kernel`.
    pub(crate) fn run(self, kernel: impl LaneKernel) {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            #[allow(unsafe_code, reason = "vector instructions")]
            // SAFETY: only `available` makes an `InstructionSet`, after it asked the processor.
            Set::Avx512 => unsafe { avx512::run(kernel) },
            #[cfg(target_arch = "x86_64")]
            #[allow(unsafe_code, reason = "vector instructions")]
            // SAFETY: as above.
            Set::Avx2Gfni => unsafe { avx2::run_gfni(kernel) },
            #[cfg(target_arch = "x86_64")]
            #[allow(unsafe_code, reason = "vector instructions")]
            // SAFETY: as above.
            Set::Avx2 => unsafe { avx2::run(kernel) },
            // Every processor of this architecture has NEON, so no function with a target feature
            // is needed.
            #[cfg(target_arch = "aarch64")]
            Set::Neon => kernel.run::<neon::Neon>(),
            Set::Plain => kernel.run::<plain::Plain>(),
        }
    }
}

/// A kernel on rows of a number of lanes that is known only at run time.
struct OnRows<K> {
    lanes: usize,
    kernel: K,
}

impl<K: Kernel> LaneKernel for OnRows<K> {
    #[inline(always)]
    fn run<V: Lane>(self) {
        const { assert!(MAX_STRIPE_LINES == 5, "the match below has one arm for each width") };
        let Self { lanes, kernel } = self;
        match lanes {
            1 => kernel.run::<V, 1>(),
            2 => kernel.run::<V, 2>(),
            3 => kernel.run::<V, 3>(),
            4 => kernel.run::<V, 4>(),
            5 => kernel.run::<V, 5>(),
            _ => debug_assert!(false, "rows of {lanes} lanes"),
        }
    }
}

/// `N` lanes in registers: a row of a stripe.
#[derive(Clone, Copy)]
pub(crate) struct Row<V, const N: usize>([V; N]);

impl<V: Lane, const N: usize> Row<V, N> {
    #[inline(always)]
    pub(crate) fn zero() -> Self {
        Self([V::zero(); N])
    }

    #[inline(always)]
    pub(crate) fn load(from: &[Line; N]) -> Self {
        let mut row = Self::zero();
        for (lane, line) in row.0.iter_mut().zip(from) {
            *lane = V::load(&line.0);
        }
        row
    }

    #[inline(always)]
    pub(crate) fn store(self, to: &mut [Line; N]) {
        for (lane, line) in self.0.into_iter().zip(to) {
            lane.store(&mut line.0);
        }
    }

    /// Prefetches `row` into the caches.
    #[inline(always)]
    pub(crate) fn prefetch(row: &[Line; N]) {
        row.iter().for_each(|line| V::prefetch(&line.0));
    }

    /// Loads unaligned bytes; the rest of the row is zero if they are fewer.
    #[inline(always)]
    pub(crate) fn load_bytes(from: &[u8]) -> Self {
        let mut row = Self::zero();
        let (lines, rest) = from.as_chunks::<LINE>();
        if let Some(lines) = lines.first_chunk::<N>() {
            for (lane, line) in row.0.iter_mut().zip(lines) {
                *lane = V::load(line);
            }
            return row;
        }
        for (lane, line) in row.0.iter_mut().zip(lines) {
            *lane = V::load(line);
        }
        if let Some(lane) = row.0.get_mut(lines.len()) {
            let mut line = [0; LINE];
            line[..rest.len()].copy_from_slice(rest);
            *lane = V::load(&line);
        }
        row
    }

    /// Stores into unaligned bytes, which may be fewer than the row's.
    #[inline(always)]
    pub(crate) fn store_bytes(self, to: &mut [u8]) {
        if to.len() == N * LINE {
            for (lane, to) in self.0.into_iter().zip(to.as_chunks_mut::<LINE>().0) {
                lane.store(to);
            }
        } else {
            for (lane, to) in self.0.into_iter().zip(to.chunks_mut(LINE)) {
                let mut line = [0; LINE];
                lane.store(&mut line);
                to.copy_from_slice(&line[..to.len()]);
            }
        }
    }

    /// `self + row`.
    #[inline(always)]
    pub(crate) fn add(mut self, row: &[Line; N]) -> Self {
        for (lane, line) in self.0.iter_mut().zip(row) {
            *lane = lane.xor(V::load(&line.0));
        }
        self
    }

    /// `self` + the rows of `from` with these indices.
    #[inline(always)]
    pub(crate) fn add_all(mut self, from: &[[Line; N]], indices: &[u32]) -> Self {
        let (pairs, rest) = indices.as_chunks::<2>();
        for &[a, b] in pairs {
            let (a, b) = (&from[a as usize], &from[b as usize]);
            for ((lane, a), b) in self.0.iter_mut().zip(a).zip(b) {
                *lane = lane.xor3(V::load(&a.0), V::load(&b.0));
            }
        }
        for &a in rest {
            self = self.add(&from[a as usize]);
        }
        self
    }

    /// Adds `self` to the rows of `to` with these indices.
    #[inline(always)]
    pub(crate) fn add_to_all(self, to: &mut [[Line; N]], indices: &[u32]) {
        for &index in indices {
            let row = &mut to[index as usize];
            self.add(row).store(row);
        }
    }

    /// `self` + one element for each bit.
    #[inline(always)]
    pub(crate) fn add_bits(mut self, words: &[u64]) -> Self {
        for (lane, &word) in self.0.iter_mut().zip(words) {
            *lane = lane.xor(V::from_bits(word));
        }
        self
    }

    /// `self * alpha`.
    #[inline(always)]
    pub(crate) fn double(mut self) -> Self {
        for lane in &mut self.0 {
            *lane = lane.double();
        }
        self
    }

    /// `self + factor * row`.
    #[inline(always)]
    pub(crate) fn add_product(mut self, factor: V::Factor, row: Self) -> Self {
        for (lane, other) in self.0.iter_mut().zip(row.0) {
            *lane = lane.xor(other.times(factor));
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::gf256::mul;

    /// Bytes without a period that is a power of two, zeros and 255 among them.
    fn line(seed: usize) -> Line {
        let mut line = Line::ZERO;
        for (i, byte) in line.0.iter_mut().enumerate() {
            *byte = ((seed * 61 + i) * 7919 % 257) as u8;
        }
        line
    }

    /// In each lane, adjacent bits differ in some word.
    const BITS: [u64; MAX_STRIPE_LINES] =
        [0x8040_2010_0804_0201, 0, u64::MAX, 0x0123_4567_89AB_CDEF, 1];

    /// A sum that uses every operation of a row, and is stored in `out`.
    struct Everything<'a> {
        rows: &'a [Line],
        factor: u8,
        out: &'a mut [u8],
    }

    impl Kernel for Everything<'_> {
        #[inline(always)]
        fn run<V: Lane, const N: usize>(self) {
            let rows = self.rows.as_chunks::<N>().0;
            let mut copy = [Line::ZERO; N];
            Row::<V, N>::load(&rows[0])
                .add_all(rows, &[1, 2, 3])
                .double()
                .add(&rows[4])
                .add_product(V::factor(self.factor), Row::load(&rows[5]))
                .add_bits(&BITS)
                .store(&mut copy);
            Row::<V, N>::load(&copy).store_bytes(self.out);
        }
    }

    /// The result of [`Everything`], octet by octet.
    fn everything(rows: &[Line], lanes: usize, factor: u8, at: usize) -> u8 {
        let row = |row: usize| rows[row * lanes + at / LINE].0[at % LINE];
        let sum = row(0) ^ row(1) ^ row(2) ^ row(3);
        let bit = (BITS[at / LINE] >> (at % LINE) & 1) as u8;
        mul(sum, 2) ^ row(4) ^ mul(row(5), factor) ^ bit
    }

    #[test]
    fn every_instruction_set_agrees_with_octets() {
        for instructions in InstructionSet::available() {
            for lanes in 1..=MAX_STRIPE_LINES {
                let rows: Vec<Line> = (0..6 * lanes).map(line).collect();
                for factor in 0..=255 {
                    let mut out = vec![0; lanes * LINE];
                    let kernel = Everything { rows: &rows, factor, out: &mut out };
                    instructions.dispatch(lanes, kernel);
                    for (at, &byte) in out.iter().enumerate() {
                        let expected = everything(&rows, lanes, factor, at);
                        assert_eq!(byte, expected, "{instructions:?}, factor {factor}, byte {at}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_row_may_end_at_any_byte() {
        let lanes = 2;
        let rows: Vec<Line> = (0..6 * lanes).map(line).collect();
        for instructions in InstructionSet::available() {
            for end in LINE + 1..=2 * LINE {
                let mut out = [0xAA; 2 * LINE + 1];
                let kernel = Everything { rows: &rows, factor: 3, out: &mut out[..end] };
                instructions.dispatch(lanes, kernel);
                for (at, &byte) in out.iter().enumerate() {
                    let expected = if at < end { everything(&rows, lanes, 3, at) } else { 0xAA };
                    assert_eq!(byte, expected, "{instructions:?}, end {end}, byte {at}");
                }
            }
        }
    }

    #[test]
    fn the_plain_set_is_always_there() {
        assert_eq!(InstructionSet::available().last(), Some(InstructionSet(Set::Plain)));
    }
}
