//! The sparse rows of the code's matrix (RFC 6330, section 5.3.3.4.2): `S` LDPC rows, then a row for
//! each symbol at hand. The `H` dense rows are never written out.

use super::params::Params;
use super::tuple::for_each_neighbor;

/// A sparse binary matrix of `L` columns, by rows and, left of column `W`, by columns.
pub(super) struct Matrix {
    /// Column indices, row after row, and where each row starts.
    terms: Vec<u32>,
    row_starts: Vec<u32>,
    /// Row indices, column after column, and where each column starts.
    rows: Vec<u32>,
    column_starts: Vec<u32>,
}

impl Matrix {
    /// The matrix of the symbols with internal symbol ids `isis`: row `S + i` is that of `isis[i]`.
    pub(super) fn new(params: &Params, isis: &[u32]) -> Self {
        /// Terms of an average row, and a little more.
        const TYPICAL_TERMS: usize = 8;
        let (s, w) = (params.s as usize, params.w as usize);
        let mut terms = Vec::with_capacity(3 * (w + s) + isis.len() * TYPICAL_TERMS);
        let mut row_starts = Vec::with_capacity(s + isis.len() + 1);
        row_starts.push(0);
        for row in ldpc_rows(params) {
            terms.extend(row);
            row_starts.push(terms.len() as u32);
        }
        for &isi in isis {
            for_each_neighbor(params, isi, |column| terms.push(column));
            row_starts.push(terms.len() as u32);
        }

        let mut column_starts = vec![0_u32; w + 1];
        for &column in terms.iter().filter(|&&column| column < params.w) {
            column_starts[column as usize + 1] += 1;
        }
        for column in 0..w {
            column_starts[column + 1] += column_starts[column];
        }
        let mut ends = column_starts.clone();
        let mut rows = vec![0; column_starts[w] as usize];
        for (row, range) in row_starts.windows(2).enumerate() {
            for &column in &terms[range[0] as usize..range[1] as usize] {
                if column < params.w {
                    let end = &mut ends[column as usize];
                    rows[*end as usize] = row as u32;
                    *end += 1;
                }
            }
        }
        Self { terms, row_starts, rows, column_starts }
    }

    /// How many rows there are.
    pub(super) fn row_count(&self) -> usize {
        self.row_starts.len() - 1
    }

    /// How many ones there are.
    pub(super) fn weight(&self) -> usize {
        self.terms.len()
    }

    /// The columns of row `row`.
    pub(super) fn row(&self, row: usize) -> &[u32] {
        &self.terms[self.row_starts[row] as usize..self.row_starts[row + 1] as usize]
    }

    /// The rows of column `column`, which is below `W`.
    pub(super) fn column(&self, column: usize) -> &[u32] {
        &self.rows[self.column_starts[column] as usize..self.column_starts[column + 1] as usize]
    }
}

/// The columns of each LDPC row (RFC 6330, section 5.3.3.3).
fn ldpc_rows(params: &Params) -> Vec<Vec<u32>> {
    // Three terms for each of `B` columns, spread evenly, and three more.
    let weight = 3 * params.b.div_ceil(params.s) as usize + 3;
    let mut rows: Vec<_> = (0..params.s).map(|_| Vec::with_capacity(weight)).collect();
    for i in 0..params.b {
        let a = 1 + i / params.s;
        for j in 0..3 {
            rows[((i + j * a) % params.s) as usize].push(i);
        }
    }
    for (i, row) in (0..).zip(&mut rows) {
        row.push(params.b + i);
        row.push(params.w + i % params.p);
        row.push(params.w + (i + 1) % params.p);
    }
    rows
}
