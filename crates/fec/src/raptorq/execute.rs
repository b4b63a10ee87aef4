//! Programs and symbols on bytes.

use super::params::Params;
use super::program::Program;
use super::tuple::for_each_neighbor;
use crate::gf256::alpha_power;
use crate::kernel::{InstructionSet, Kernel, Lane, Row};
use crate::stripes::{LINE, Line, MAX_STRIPE_LINES, Stripes};

/// Width of the stripes, in lines. A program works on about `2 L` rows of a stripe.
pub(crate) fn stripe_lines(params: &Params) -> usize {
    /// Rows of the widest stripe that still stay in a few megabytes: a share of a third-level
    /// cache.
    const WIDE_ROWS: usize = 24_000;
    if params.l as usize * 2 <= WIDE_ROWS { MAX_STRIPE_LINES } else { MAX_STRIPE_LINES - 1 }
}

impl Program {
    /// Turns the inputs into the intermediate symbols, in place.
    pub(crate) fn run(&self, instructions: InstructionSet, symbols: &mut Stripes) {
        let widest = (0..symbols.count()).map(|i| symbols.lines(i)).max().unwrap_or(0);
        let mut scratch = vec![Line::ZERO; self.scratch_rows() * widest];
        for index in 0..symbols.count() {
            let lines = symbols.lines(index);
            let scratch = &mut scratch[..self.scratch_rows() * lines];
            let slots = symbols.stripe_mut(index);
            instructions.dispatch(lines, RunStripe { program: self, slots, scratch });
        }
    }
}

/// A program on one stripe.
struct RunStripe<'a> {
    program: &'a Program,
    slots: &'a mut [Line],
    scratch: &'a mut [Line],
}

impl Kernel for RunStripe<'_> {
    #[inline(always)]
    fn run<V: Lane, const N: usize>(self) {
        let program = self.program;
        let params = &program.params;
        let slots = self.slots.as_chunks_mut::<N>().0;
        let (y, rest) = self.scratch.as_chunks_mut::<N>().0.split_at_mut(params.w as usize);
        let (g, d) = rest.split_at_mut(params.h as usize);

        // Steps 1 and 2.
        for &column in &program.inactive_lt {
            y[column as usize] = [Line::ZERO; N];
        }
        let mut terms = program.pivot_terms.as_slice();
        for pivot in &program.pivots {
            let (solved, _) = split_terms(&mut terms, pivot.terms.into(), pivot.solved.into());
            let column = pivot.column as usize;
            Row::<V, N>::load(&slots[column]).add_all(y, solved).store(&mut y[column]);
        }
        let mut terms = program.dense_terms.as_slice();
        for (row, d) in program.dense_rows.iter().zip(d.iter_mut()) {
            let all = row.solved + row.rows + row.free;
            let (solved, _) = split_terms(&mut terms, all as usize, row.solved as usize);
            Row::<V, N>::load(&slots[row.column as usize]).add_all(y, solved).store(d);
        }
        if !program.free.is_empty() {
            apply_hdpc::<V, N>(program, y, g);
        }

        // Steps 4 to 6.
        let mut terms = program.dense_terms.as_slice();
        for row in &program.dense_rows {
            let (_, rest) = split_terms(
                &mut terms,
                (row.solved + row.rows + row.free) as usize,
                row.solved as usize,
            );
            let rows = &rest[..row.rows as usize];
            Row::<V, N>::zero().add_all(d, rows).store(&mut slots[row.column as usize]);
        }
        for free in &program.free {
            let mut sum = Row::<V, N>::zero();
            for (&factor, g) in free.hdpc_factors.iter().zip(&*g) {
                sum = sum.add_product(V::factor(factor), Row::load(g));
            }
            for (&factor, row) in free.dense_factors.iter().zip(&program.dense_rows) {
                sum = sum.add_product(V::factor(factor), Row::load(&slots[row.column as usize]));
            }
            sum.store(&mut slots[free.column as usize]);
        }
        let mut terms = program.dense_terms.as_slice();
        for row in &program.dense_rows {
            let before_free = (row.solved + row.rows) as usize;
            let all = before_free + row.free as usize;
            let (_, free) = split_terms(&mut terms, all, before_free);
            let column = row.column as usize;
            Row::<V, N>::load(&slots[column]).add_all(slots, free).store(&mut slots[column]);
        }

        // Step 7.
        let mut terms = program.pivot_terms.as_slice();
        for pivot in &program.pivots {
            let (all, _) = split_terms(&mut terms, pivot.terms.into(), pivot.terms.into());
            let column = pivot.column as usize;
            Row::<V, N>::load(&slots[column]).add_all(slots, all).store(&mut slots[column]);
        }
    }
}

/// Takes `count` terms off the front of `terms`, split at `at`.
#[inline(always)]
fn split_terms<'a>(terms: &mut &'a [u32], count: usize, at: usize) -> (&'a [u32], &'a [u32]) {
    let (taken, rest) = terms.split_at(count);
    *terms = rest;
    taken.split_at(at)
}

/// Step 3: the HDPC rows applied to `y` (RFC 6330, section 5.3.3.3).
///
/// Column `j` of the HDPC matrix is `alpha` times column `j + 1`, plus 1 in two rows; the last one
/// is 1, `alpha`, `alpha^2`, ... So a running sum `sum = alpha * sum + y[j]`, added to the two rows
/// of each `j`, multiplies by the whole matrix. `y` ends at column `W`: the others are inactive.
#[inline(always)]
fn apply_hdpc<V: Lane, const N: usize>(program: &Program, y: &[[Line; N]], g: &mut [[Line; N]]) {
    g.fill([Line::ZERO; N]);
    let mut sum = Row::<V, N>::zero();
    let mut y = y.iter();
    for &[a, b] in &program.hdpc_pairs {
        sum = sum.double();
        if let Some(y) = y.next() {
            sum = sum.add(y);
        }
        for row in [a, b] {
            let row = &mut g[row as usize];
            sum.add(row).store(row);
        }
    }
    sum = sum.double();
    if let Some(y) = y.next() {
        sum = sum.add(y);
    }
    for (i, row) in g.iter_mut().enumerate() {
        Row::<V, N>::load(row).add_product(V::factor(alpha_power(i)), sum).store(row);
    }
}

/// Writes encoding symbols, given by internal symbol ids, one after the other into `out`.
pub(crate) fn encode(
    params: &Params,
    intermediate: &Stripes,
    isis: impl ExactSizeIterator<Item = u32>,
    instructions: InstructionSet,
    out: &mut [u8],
) {
    /// Neighbours of an average symbol, and a little more.
    const TYPICAL_NEIGHBORS: usize = 8;
    let mut neighbors = Vec::with_capacity(isis.len() * TYPICAL_NEIGHBORS);
    let mut ends = Vec::with_capacity(isis.len());
    for isi in isis {
        for_each_neighbor(params, isi, |column| neighbors.push(column));
        ends.push(neighbors.len());
    }
    for index in 0..intermediate.count() {
        let kernel = EncodeStripe {
            slots: intermediate.stripe(index),
            neighbors: &neighbors,
            ends: &ends,
            width: intermediate.width(),
            bytes: intermediate.bytes(index),
            out,
        };
        instructions.dispatch(intermediate.lines(index), kernel);
    }
}

/// The columns of encoding symbols that one stripe holds.
struct EncodeStripe<'a> {
    slots: &'a [Line],
    /// The neighbours of one symbol after the other, and where each symbol's end.
    neighbors: &'a [u32],
    ends: &'a [usize],
    /// Bytes of a symbol.
    width: usize,
    /// Bytes of a symbol that are written here.
    bytes: std::ops::Range<usize>,
    out: &'a mut [u8],
}

impl Kernel for EncodeStripe<'_> {
    #[inline(always)]
    fn run<V: Lane, const N: usize>(self) {
        debug_assert!(self.bytes.len() <= N * LINE);
        let slots = self.slots.as_chunks::<N>().0;
        let mut start = 0;
        for (&end, out) in self.ends.iter().zip(self.out.chunks_exact_mut(self.width)) {
            let neighbors = &self.neighbors[start..end];
            start = end;
            Row::<V, N>::zero().add_all(slots, neighbors).store_bytes(&mut out[self.bytes.clone()]);
        }
    }
}
