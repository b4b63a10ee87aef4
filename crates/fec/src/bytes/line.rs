//! The unit of operations on bytes.

/// A cache line, and the widest vector register: the unit of a stripe's width.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct Line(pub(crate) [u8; LINE]);

/// Bytes in a [`Line`].
pub(crate) const LINE: usize = 64;

impl Line {
    pub(crate) const ZERO: Self = Self([0; LINE]);
}

/// Widest stripe, in lines. Each width is a kernel of its own, with a row held in registers. Of 128
/// to 320 bytes the widest is fastest, or as fast, from 1000 to 50 000 rows. The full 1280 bytes of
/// a symbol are two to three times slower.
pub(crate) const MAX_STRIPE_LINES: usize = 5;
