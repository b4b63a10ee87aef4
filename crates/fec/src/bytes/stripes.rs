//! Rows of bytes in vertical stripes: the memory that a plan works on.
//!
//! A plan reads and writes every row many times, in an almost random order. The rows of a block are
//! larger than the processor's caches, but a vertical stripe of them can fit. The columns are
//! independent of each other. Each stripe is contiguous here, so a plan runs on one stripe after
//! another, at the speed of the cache.

pub(crate) mod loading;

use crate::bytes::line::{LINE, Line, MAX_STRIPE_LINES};
use alloc::vec::Vec;
use core::ops::Range;

/// Memory of an earlier block, for use by the next one: see
/// [`Intermediate::into_scratch`](crate::Intermediate::into_scratch).
#[derive(Default)]
pub struct Scratch {
    lines: Vec<Line>,
    scratch: Vec<Line>,
}

impl Scratch {
    /// Allocated bytes.
    pub fn bytes(&self) -> usize {
        (self.lines.capacity() + self.scratch.capacity()) * LINE
    }
}

impl core::fmt::Debug for Scratch {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Scratch").field("bytes", &self.bytes()).finish()
    }
}

/// `rows` rows of `width` bytes, stripe by stripe, on which an `XorProgram` runs.
pub struct Stripes {
    rows: usize,
    width: usize,
    stripes: usize,
    /// Lines of the last stripes; the first `wide` ones have one more. Stored, because a division
    /// for each row and stripe would dominate the time to copy small blocks.
    narrow: usize,
    wide: usize,
    scratch: Scratch,
}

impl Stripes {
    /// `rows` rows with the previous contents of `scratch`. Stripes are as few as possible and as
    /// equal as possible.
    pub fn new(scratch: Scratch, rows: usize, width: usize) -> Self {
        Self::narrow(scratch, rows, width, MAX_STRIPE_LINES)
    }

    /// [`new`](Self::new) with stripes of at most `stripe_lines` lines, which is at most
    /// [`MAX_STRIPE_LINES`].
    pub(crate) fn narrow(
        mut scratch: Scratch,
        rows: usize,
        width: usize,
        stripe_lines: usize,
    ) -> Self {
        let lines = width.div_ceil(LINE);
        let stripes = lines.div_ceil(stripe_lines);
        if scratch.lines.capacity() < rows * lines {
            // Growing the vector would copy its contents.
            scratch.lines = Vec::new();
            scratch.lines.reserve_exact(rows * lines);
        }
        scratch.lines.resize(rows * lines, Line::ZERO);
        let narrow = lines.checked_div(stripes).unwrap_or(0);
        let wide = lines - narrow * stripes;
        Self { rows, width, stripes, narrow, wide, scratch }
    }

    pub(crate) fn into_scratch(self) -> Scratch {
        self.scratch
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Bytes in a row.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// The number of stripes.
    pub(crate) fn count(&self) -> usize {
        self.stripes
    }

    /// True if `rows` of `width` bytes exceed the caches: a stripe is evicted before all others are
    /// written.
    pub(crate) fn is_large(rows: usize, width: usize) -> bool {
        /// Half of the cache that a few cores share. Measured, at half of it stores past the caches
        /// are as fast as ordinary ones.
        const LARGE: usize = 8 << 20;
        rows * width > LARGE
    }

    /// The columns of stripe `index`, in lines.
    fn columns(&self, index: usize) -> Range<usize> {
        let start = |i: usize| i * self.narrow + i.min(self.wide);
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

    /// The lines of stripe `index`.
    fn range(&self, index: usize) -> Range<usize> {
        let columns = self.columns(index);
        self.rows * columns.start..self.rows * columns.end
    }

    /// The rows of stripe `index`, one after the other.
    pub(crate) fn stripe(&self, index: usize) -> &[Line] {
        &self.scratch.lines[self.range(index)]
    }

    /// The rows of stripe `index`, one after the other.
    pub(crate) fn stripe_mut(&mut self, index: usize) -> &mut [Line] {
        let range = self.range(index);
        &mut self.scratch.lines[range]
    }

    /// The rows of stripe `index`, one after the other, and `scratch_rows` rows of the same width.
    pub(crate) fn stripe_and_scratch(
        &mut self,
        index: usize,
        scratch_rows: usize,
    ) -> (&mut [Line], &mut [Line]) {
        let (range, lines) = (self.range(index), self.lines(index));
        let Scratch { lines: all, scratch } = &mut self.scratch;
        if scratch.len() < scratch_rows * lines {
            scratch.reserve_exact(scratch_rows * lines - scratch.len());
            scratch.resize(scratch_rows * lines, Line::ZERO);
        }
        (&mut all[range], &mut scratch[..scratch_rows * lines])
    }

    /// The part of row `row` that is in stripe `index`.
    fn row_mut(&mut self, index: usize, row: usize) -> &mut [Line] {
        let columns = self.columns(index);
        let start = self.rows * columns.start + row * columns.len();
        &mut self.scratch.lines[start..start + columns.len()]
    }

    /// Replaces row `row` by `bytes`.
    ///
    /// # Panics
    /// If there is no such row, or `bytes` are fewer than its width.
    pub fn write_row(&mut self, row: usize, bytes: &[u8]) {
        debug_assert_eq!(bytes.len(), self.width);
        let (mut whole, rest) = bytes.as_chunks::<LINE>();
        for index in 0..self.stripes {
            let to = self.row_mut(index, row);
            let count = to.len().min(whole.len());
            for (line, bytes) in to.iter_mut().zip(whole) {
                line.0 = *bytes;
            }
            whole = &whole[count..];
            if let Some(line) = to.get_mut(count) {
                *line = Line::ZERO;
                line.0[..rest.len()].copy_from_slice(rest);
            }
        }
    }

    /// Replaces row `row` by row `from_row` of `from`, which is as wide and in the same stripes.
    pub(crate) fn copy_row(&mut self, row: usize, from: &Self, from_row: usize) {
        debug_assert_eq!(from.columns(0), self.columns(0));
        for index in 0..self.stripes {
            let lines = from.lines(index);
            let from = &from.stripe(index)[from_row * lines..][..lines];
            for (to, from) in self.row_mut(index, row).iter_mut().zip(from) {
                to.0 = from.0;
            }
        }
    }

    /// Replaces row `row` by zeros.
    pub(crate) fn clear_row(&mut self, row: usize) {
        for index in 0..self.stripes {
            self.row_mut(index, row).fill(Line::ZERO);
        }
    }

    /// Copies row `row` into `out`.
    ///
    /// # Panics
    /// If there is no such row, or `out` is not as wide.
    pub fn read_row(&self, row: usize, out: &mut [u8]) {
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
