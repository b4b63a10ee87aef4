//! The arithmetic on symbols' bytes, for the instruction sets that matter.
//!
//! Work on bytes is written once, as a [`Kernel`] over a [`Lane`] of 64 bytes and a const number of
//! lanes per row; [`dispatch`] runs it with the best lane that the processor has. The plain lane is
//! the reference that the others are tested against, and what every other processor gets: its loops
//! are simple enough for a compiler to vectorise (SSE2, NEON).

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code, reason = "vector instructions")]
mod avx2;
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code, reason = "vector instructions")]
mod avx512;
mod plain;

use crate::stripes::{LINE, Line, MAX_STRIPE_LINES};

/// 64 bytes in registers, as elements of GF(256).
pub(crate) trait Lane: Copy {
    /// A constant of GF(256), made ready for [`times`](Self::times).
    type Factor: Copy;

    fn zero() -> Self;
    fn load(from: &[u8; LINE]) -> Self;
    fn store(self, to: &mut [u8; LINE]);
    /// `self + a`.
    fn xor(self, a: Self) -> Self;
    /// `self + a + b`: one instruction where there is ternary logic.
    fn xor3(self, a: Self, b: Self) -> Self;
    /// `self * alpha`.
    fn double(self) -> Self;
    fn factor(constant: u8) -> Self::Factor;
    /// `self * factor`.
    fn times(self, factor: Self::Factor) -> Self;
}

/// A piece of work on rows of `N` lanes. Implementations of `run`, and what they call, are
/// `#[inline(always)]`: that is how they come to be compiled for the lane's instruction set.
pub(crate) trait Kernel {
    fn run<V: Lane, const N: usize>(self);
}

/// An instruction set that this processor has: the others cannot be named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InstructionSet(Set);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Set {
    /// AVX-512 with GFNI.
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// AVX2.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    Plain,
}

impl InstructionSet {
    /// All that this processor has, best first; the plain one is always there.
    pub(crate) fn available() -> impl Iterator<Item = Self> {
        [
            #[cfg(target_arch = "x86_64")]
            avx512::is_available().then_some(Self(Set::Avx512)),
            #[cfg(target_arch = "x86_64")]
            is_x86_feature_detected!("avx2").then_some(Self(Set::Avx2)),
            Some(Self(Set::Plain)),
        ]
        .into_iter()
        .flatten()
    }

    /// The best one.
    pub(crate) fn best() -> Self {
        Self::available().next().unwrap_or(Self(Set::Plain))
    }

    /// Runs `kernel` on rows of `lanes` lanes, 1 to [`MAX_STRIPE_LINES`].
    pub(crate) fn dispatch(self, lanes: usize, kernel: impl Kernel) {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            #[allow(unsafe_code, reason = "vector instructions")]
            // SAFETY: an `InstructionSet` is made by `available` only, which asked the processor.
            Set::Avx512 => unsafe { avx512::run(lanes, kernel) },
            #[cfg(target_arch = "x86_64")]
            #[allow(unsafe_code, reason = "vector instructions")]
            // SAFETY: as above.
            Set::Avx2 => unsafe { avx2::run(lanes, kernel) },
            Set::Plain => run_lanes::<plain::Plain>(lanes, kernel),
        }
    }
}

/// From a number of lanes to a constant one.
#[inline(always)]
fn run_lanes<V: Lane>(lanes: usize, kernel: impl Kernel) {
    const { assert!(MAX_STRIPE_LINES == 5, "the match below has one arm for each width") };
    match lanes {
        1 => kernel.run::<V, 1>(),
        2 => kernel.run::<V, 2>(),
        3 => kernel.run::<V, 3>(),
        4 => kernel.run::<V, 4>(),
        5 => kernel.run::<V, 5>(),
        _ => debug_assert!(false, "rows of {lanes} lanes"),
    }
}

/// `N` lanes: a row of a stripe, in registers.
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
        for i in 0..N {
            row.0[i] = V::load(&from[i].0);
        }
        row
    }

    #[inline(always)]
    pub(crate) fn store(self, to: &mut [Line; N]) {
        for i in 0..N {
            self.0[i].store(&mut to[i].0);
        }
    }

    /// Stores into bytes of no alignment, which may end before the row does.
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
        for i in 0..N {
            self.0[i] = self.0[i].xor(V::load(&row[i].0));
        }
        self
    }

    /// `self` + the rows of `from` with these indices.
    #[inline(always)]
    pub(crate) fn add_all(mut self, from: &[[Line; N]], indices: &[u32]) -> Self {
        let (pairs, rest) = indices.as_chunks::<2>();
        for &[a, b] in pairs {
            let (a, b) = (&from[a as usize], &from[b as usize]);
            for i in 0..N {
                self.0[i] = self.0[i].xor3(V::load(&a[i].0), V::load(&b[i].0));
            }
        }
        for &a in rest {
            self = self.add(&from[a as usize]);
        }
        self
    }

    /// `self * alpha`.
    #[inline(always)]
    pub(crate) fn double(mut self) -> Self {
        for i in 0..N {
            self.0[i] = self.0[i].double();
        }
        self
    }

    /// `self + factor * row`.
    #[inline(always)]
    pub(crate) fn add_product(mut self, factor: V::Factor, row: Self) -> Self {
        for i in 0..N {
            self.0[i] = self.0[i].xor(row.0[i].times(factor));
        }
        self
    }
}
