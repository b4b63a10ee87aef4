//! The sparse rows of the code's matrix (RFC 6330, section 5.3.3.4.2): `S` LDPC rows, then a row
//! for each available symbol. The `H` dense rows are never stored.

use super::params::Params;
use super::tuple::Tuple;
use alloc::vec;
use alloc::vec::Vec;

/// A sparse binary matrix of `L` columns, by rows and, left of column `W`, by columns.
pub(super) struct Matrix {
    /// Column indices, row after row, those below `W` first.
    terms: Vec<u32>,
    rows: Vec<Row>,
    /// Row indices, column after column, and the start of each column.
    column_rows: Vec<u32>,
    column_starts: Vec<u32>,
}

/// The position of a row.
struct Row {
    /// Its first term.
    start: u32,
    /// Terms below `W`.
    lt: u32,
    /// Exclusive or of the terms below `W`.
    sum: u32,
}

impl Matrix {
    /// The matrix of the symbols with internal symbol ids `isis`: row `S + i` is that of `isis[i]`.
    pub(super) fn new(params: &Params, isis: &[u32]) -> Self {
        /// Terms of an average row, rounded up.
        const TYPICAL_TERMS: usize = 8;
        let (s, w) = (params.s as usize, params.w as usize);
        let mut terms = Vec::with_capacity(3 * (w + s) + isis.len() * TYPICAL_TERMS);
        let mut rows = Vec::with_capacity(s + isis.len() + 1);
        for row in 0..params.s {
            let start = terms.len();
            terms.extend(ldpc_lt(params, row));
            rows.push(Row { start: start as u32, lt: (terms.len() - start) as u32, sum: 0 });
            terms.extend([row, row + 1].map(|pi| params.w + pi % params.p));
        }
        for &isi in isis {
            let tuple = Tuple::new(params, isi);
            rows.push(Row { start: terms.len() as u32, lt: tuple.d, sum: 0 });
            terms.extend(tuple.lt(params));
            terms.extend(tuple.pi(params));
        }
        rows.push(Row { start: terms.len() as u32, lt: 0, sum: 0 });

        // Columns from `W` on are counted too, although no caller uses them: a test of each term
        // takes longer, because its branch is unpredictable.
        let mut column_starts = vec![0; params.l as usize + 1];
        for &column in &terms {
            column_starts[column as usize + 1] += 1;
        }
        column_starts.truncate(w + 1);
        for column in 0..w {
            column_starts[column + 1] += column_starts[column];
        }
        let mut ends = column_starts.clone();
        let mut column_rows = vec![0; column_starts[w] as usize];
        for (index, row) in (0..).zip(&mut rows) {
            for &column in &terms[row.start as usize..][..row.lt as usize] {
                row.sum ^= column;
                let end = &mut ends[column as usize];
                column_rows[*end as usize] = index;
                *end += 1;
            }
        }
        Self { terms, rows, column_rows, column_starts }
    }

    /// The number of rows.
    pub(super) fn row_count(&self) -> usize {
        self.rows.len() - 1
    }

    /// The number of ones.
    pub(super) fn weight(&self) -> usize {
        self.terms.len()
    }

    /// The columns of row `row`.
    pub(super) fn row(&self, row: usize) -> &[u32] {
        &self.terms[self.rows[row].start as usize..self.rows[row + 1].start as usize]
    }

    /// The number of columns below `W` of each row, and the exclusive or of their indices.
    pub(super) fn lt_sums(&self) -> impl Iterator<Item = (u32, u32)> {
        self.rows[..self.row_count()].iter().map(|row| (row.lt, row.sum))
    }

    /// The rows of column `column`, which is below `W`.
    pub(super) fn column(&self, column: usize) -> &[u32] {
        &self.column_rows
            [self.column_starts[column] as usize..self.column_starts[column + 1] as usize]
    }
}

/// The columns of LDPC row `row` that are below `W` (RFC 6330, section 5.3.3.3).
///
/// The columns before `B` come in groups of `S`. Column `i` of group `a`, counted from 1, is in the
/// rows `i`, `i + a` and `i + 2 a`, modulo `S`.
fn ldpc_lt(params: &Params, row: u32) -> impl Iterator<Item = u32> {
    let &Params { s, b, .. } = params;
    let in_group = move |a: u32| [0, a, 2 * a].map(|back| (a - 1) * s + (row + s - back % s) % s);
    let columns = (1..=b.div_ceil(s)).flat_map(in_group).filter(move |&column| column < b);
    columns.chain([b + row])
}
