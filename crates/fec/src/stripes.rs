//! Rows of bytes in vertical stripes: the memory a plan works on.
//!
//! A plan touches every row many times, in an order that is as good as random. The rows of a whole
//! block are larger than the processor's caches, but a vertical stripe of them need not be: here
//! each stripe is contiguous, so that a plan can be run on one stripe after another, at the speed of
//! the cache. The columns are independent of each other, which is why this is allowed.

use std::ops::Range;

/// A cache line, and the widest vector register there is: the unit of a stripe's width.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct Line(pub(crate) [u8; LINE]);

/// Bytes in a [`Line`].
pub(crate) const LINE: usize = 64;

impl Line {
    pub(crate) const ZERO: Self = Self([0; LINE]);
}

/// Widest stripe, in lines: each width is a kernel of its own, with a row held in registers.
pub(crate) const MAX_STRIPE_LINES: usize = 5;

/// `rows` rows of `width` bytes, stripe by stripe.
#[derive(Clone)]
pub(crate) struct Stripes {
    rows: usize,
    width: usize,
    stripes: usize,
    lines: Vec<Line>,
}

impl Stripes {
    /// All zero. Stripes are `stripe_lines` lines wide, or one line less where that divides better.
    pub(crate) fn new(rows: usize, width: usize, stripe_lines: usize) -> Self {
        let lines = width.div_ceil(LINE);
        let stripes = lines.div_ceil(stripe_lines.clamp(1, MAX_STRIPE_LINES));
        Self { rows, width, stripes, lines: vec![Line::ZERO; rows * lines] }
    }

    /// Bytes in a row.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// How many stripes there are.
    pub(crate) fn count(&self) -> usize {
        self.stripes
    }

    /// The columns of stripe `index`, in lines.
    fn columns(&self, index: usize) -> Range<usize> {
        let lines = self.width.div_ceil(LINE);
        let (narrow, wide) = (lines / self.stripes, lines % self.stripes);
        let start = |i: usize| i * narrow + i.min(wide);
        start(index)..start(index + 1)
    }

    /// Lines in a row of stripe `index`.
    pub(crate) fn lines(&self, index: usize) -> usize {
        self.columns(index).len()
    }

    /// The columns of stripe `index`, in bytes; the last stripe ends where the rows end.
    pub(crate) fn bytes(&self, index: usize) -> Range<usize> {
        let columns = self.columns(index);
        columns.start * LINE..(columns.end * LINE).min(self.width)
    }

    /// The rows of stripe `index`, one after the other.
    pub(crate) fn stripe(&self, index: usize) -> &[Line] {
        let columns = self.columns(index);
        &self.lines[self.rows * columns.start..self.rows * columns.end]
    }

    /// The rows of stripe `index`, one after the other.
    pub(crate) fn stripe_mut(&mut self, index: usize) -> &mut [Line] {
        let columns = self.columns(index);
        &mut self.lines[self.rows * columns.start..self.rows * columns.end]
    }

    /// Replaces row `row` by `bytes`.
    pub(crate) fn write_row(&mut self, row: usize, bytes: &[u8]) {
        debug_assert_eq!(bytes.len(), self.width);
        for index in 0..self.stripes {
            let (lines, bytes) = (self.lines(index), &bytes[self.bytes(index)]);
            let row = &mut self.stripe_mut(index)[row * lines..][..lines];
            for (line, chunk) in row.iter_mut().zip(bytes.chunks(LINE)) {
                line.0[..chunk.len()].copy_from_slice(chunk);
            }
        }
    }

    /// Copies row `row` into `out`.
    pub(crate) fn read_row(&self, row: usize, out: &mut [u8]) {
        debug_assert_eq!(out.len(), self.width);
        for index in 0..self.stripes {
            let (lines, out) = (self.lines(index), &mut out[self.bytes(index)]);
            let row = &self.stripe(index)[row * lines..][..lines];
            for (line, chunk) in row.iter().zip(out.chunks_mut(LINE)) {
                chunk.copy_from_slice(&line.0[..chunk.len()]);
            }
        }
    }
}
