//! Small matrices of octets, whose rows the kernels work on.

use crate::bytes::kernel::{InstructionSet, Kernel, Lane, Row};
use crate::bytes::line::{LINE, Line, MAX_STRIPE_LINES};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

/// Rows of octets, at most as wide as a row of a stripe.
pub(crate) struct OctetRows {
    /// Lines of a row.
    pub(crate) lines: usize,
    pub(crate) octets: Vec<Line>,
}

impl OctetRows {
    /// `rows` rows of `width` zeros, 1 to [`MAX_STRIPE_LINES`] lines of them.
    pub(crate) fn new(rows: usize, width: usize) -> Self {
        Self::of_lines(rows, width.div_ceil(LINE))
    }

    /// `rows` rows of `lines` lines of zeros, 1 to [`MAX_STRIPE_LINES`].
    pub(crate) fn of_lines(rows: usize, lines: usize) -> Self {
        debug_assert!((1..=MAX_STRIPE_LINES).contains(&lines), "rows of {lines} lines");
        Self { lines, octets: vec![Line::ZERO; rows * lines] }
    }

    /// Row `row`.
    pub(crate) fn row(&self, row: usize) -> &[Line] {
        &self.octets[row * self.lines..][..self.lines]
    }

    /// Row `row`.
    pub(crate) fn row_mut(&mut self, row: usize) -> &mut [Line] {
        &mut self.octets[row * self.lines..][..self.lines]
    }

    /// The rows with these numbers, in this order.
    pub(crate) fn select(&self, rows: impl Iterator<Item = usize>) -> Self {
        let octets = rows.flat_map(|row| self.row(row).iter().copied()).collect();
        Self { lines: self.lines, octets }
    }

    /// Drops all rows but the first `rows`.
    pub(crate) fn truncate(&mut self, rows: usize) {
        self.octets.truncate(rows * self.lines);
    }

    /// Adds `factor` times `from` to row `row`.
    pub(crate) fn add(
        &mut self,
        instructions: InstructionSet,
        row: usize,
        factor: u8,
        from: &[Line],
    ) {
        add_product(instructions, self.row_mut(row), factor, from);
    }

    /// Octet `at` of row `row`.
    pub(crate) fn octet_mut(&mut self, row: usize, at: usize) -> &mut u8 {
        &mut self.octets[row * self.lines + at / LINE].0[at % LINE]
    }

    /// Octet `at` of every row.
    pub(crate) fn column(&self, at: usize) -> Arc<[u8]> {
        let lines = self.octets.iter().skip(at / LINE).step_by(self.lines);
        lines.map(|line| line.0[at % LINE]).collect()
    }

    /// Appends octets `from` on of row `row` to `out`, `count` of them.
    pub(crate) fn append(&self, row: usize, from: usize, count: usize, out: &mut Vec<u8>) {
        let row = &self.octets[row * self.lines..][..self.lines];
        let mut at = from;
        while at < from + count {
            let end = (from + count).min((at / LINE + 1) * LINE);
            out.extend_from_slice(&row[at / LINE].0[at % LINE..][..end - at]);
            at = end;
        }
    }
}

/// Adds `factor` times `from` to `to`, which has as many lines.
pub(crate) fn add_product(
    instructions: InstructionSet,
    to: &mut [Line],
    factor: u8,
    from: &[Line],
) {
    instructions.dispatch(1, AddProduct { to, factor, from });
}

struct AddProduct<'a> {
    to: &'a mut [Line],
    factor: u8,
    from: &'a [Line],
}

impl Kernel for AddProduct<'_> {
    #[inline(always)]
    fn run<V: Lane, const N: usize>(self) {
        let factor = V::factor(self.factor);
        let to = self.to.as_chunks_mut::<N>().0.iter_mut();
        for (to, from) in to.zip(self.from.as_chunks::<N>().0) {
            Row::<V, N>::load(to).add_product(factor, Row::load(from)).store(to);
        }
    }
}
