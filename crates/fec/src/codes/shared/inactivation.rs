//! Elimination with inactive columns: sparse binary equations (as in RFC 6330, section 5.4.2,
//! without its constraints).
//!
//! Peeling solves a column by a row in which all other columns are solved. It continues if a few
//! columns are declared *inactive*, which means unknown. Then every other column (a *pivot*) is the
//! sum of one row's value, earlier pivots and inactive columns. The remaining rows give binary
//! equations in the inactive columns alone, packed 64 to a word.

use super::csr::Lists;
use super::equations::{Basis, Budget, Stop, ones, xor_into};
use crate::bytes::xor_program::XorProgram;
use alloc::vec;
use alloc::vec::Vec;

/// The computation of all columns.
pub(crate) struct Solution {
    /// In order: the other terms of a pivot's row are earlier pivots or inactive.
    pub(crate) pivots: Vec<Pivot>,
    /// One for each inactive column.
    pub(crate) dense: Vec<DenseRow>,
}

/// A column and the row that solves it.
pub(crate) struct Pivot {
    pub(crate) column: u32,
    pub(crate) row: u32,
}

/// An inactive column, one of the rows that solve for the inactive columns, and the indices of
/// those among them whose sum it is once known terms are removed.
pub(crate) struct DenseRow {
    pub(crate) column: u32,
    pub(crate) row: u32,
    pub(crate) sum: Vec<u32>,
}

/// Solves for `columns` columns, by rows that list the columns of each equation. The caller has
/// spent the terms of the rows. Left-over rows are used in their order.
pub(crate) fn solve(rows: &Lists, columns: u32, budget: &mut Budget) -> Result<Solution, Stop> {
    System { rows, columns: &rows.transposed(0..columns) }.solve(budget)
}

impl Solution {
    /// The same solution with each column and row replaced by its number in `columns` and `rows`.
    pub(crate) fn renumbered(mut self, columns: &[u32], rows: &[u32]) -> Self {
        let pivots = self.pivots.iter_mut().map(|pivot| (&mut pivot.column, &mut pivot.row));
        let dense = self.dense.iter_mut().map(|dense| (&mut dense.column, &mut dense.row));
        for (column, row) in pivots.chain(dense) {
            (*column, *row) = (columns[*column as usize], rows[*row as usize]);
        }
        self
    }

    /// Each column and the row whose value its slot holds before the program of
    /// [`append_to`](Self::append_to) runs.
    pub(crate) fn inputs(&self) -> impl Iterator<Item = (u32, u32)> {
        let pivots = self.pivots.iter().map(|pivot| (pivot.column, pivot.row));
        pivots.chain(self.dense.iter().map(|dense| (dense.column, dense.row)))
    }

    /// Appends the steps that compute the columns to `program`. `slots` has the slot of each
    /// column; columns that are not of this solution are known. `terms` appends the columns of a
    /// row to a list.
    ///
    /// 1. For every pivot, in order: `y`, its value if all inactive columns were zero.
    /// 2. For every dense row: `d`, the sum of its input and such values.
    /// 3. For every inactive column: a sum of `d`.
    /// 4. For every pivot, in order: the sum of its input and its row's other columns.
    pub(crate) fn append_to(
        &self,
        program: &mut XorProgram,
        slots: &[u32],
        mut terms: impl FnMut(u32, &mut Vec<u32>),
    ) {
        /// For columns that are not pivots.
        const NONE: u32 = u32::MAX;
        let mut y_of = vec![NONE; slots.len()];
        let mut is_inactive = vec![false; slots.len()];
        for (y, pivot) in (0..).zip(&self.pivots) {
            y_of[pivot.column as usize] = y;
        }
        for row in &self.dense {
            is_inactive[row.column as usize] = true;
        }
        let mut row_terms = Vec::new();
        for (scratch, (column, row)) in (0..).zip(self.inputs()) {
            row_terms.clear();
            terms(row, &mut row_terms);
            let is_known = |term: u32| y_of[term as usize] == NONE && !is_inactive[term as usize];
            let known = row_terms.iter().copied().filter(|&term| is_known(term));
            let known = core::iter::once(column).chain(known).map(|term| slots[term as usize]);
            let solved = row_terms.iter().map(|&term| y_of[term as usize]);
            let solved = solved.filter(|&y| y != NONE && y != scratch);
            program.set_scratch(scratch, known, solved);
        }
        let d_start = self.pivots.len() as u32;
        for row in &self.dense {
            let slot = slots[row.column as usize];
            program.set_slot_with(slot, [], row.sum.iter().map(|d| d_start + d));
        }
        for pivot in &self.pivots {
            row_terms.clear();
            terms(pivot.row, &mut row_terms);
            let terms = row_terms.iter().map(|&term| slots[term as usize]);
            program.set_slot(slots[pivot.column as usize], terms);
        }
    }
}

/// The equations by rows and by columns.
struct System<'a> {
    rows: &'a Lists,
    columns: &'a Lists,
}

impl System<'_> {
    fn solve(&self, budget: &mut Budget) -> Result<Solution, Stop> {
        let order = Order::new(self, budget)?;
        let bits = ColumnBits::new(self, &order, budget)?;
        let mut basis = Basis::new(order.inactive.len());
        for &row in &order.left_over {
            if basis.is_full() {
                break;
            }
            basis.insert(
                row,
                |equation| bits.add_row(self.rows.list(row as usize), equation),
                budget,
            )?;
        }
        if let lack @ 1.. = order.inactive.len() - basis.rows.len() {
            return Err(Stop::Wanting(lack as u32));
        }
        basis.reduce(budget)?;
        let pivots = order.pivots.iter().map(|&(row, column)| Pivot { column, row }).collect();
        let dense = (basis.rows.iter().enumerate())
            .map(|(index, &(row, lead))| DenseRow {
                column: order.inactive[lead as usize],
                row,
                sum: ones(basis.history(index)).collect(),
            })
            .collect();
        Ok(Solution { pivots, dense })
    }
}

/// An order in which the rows are solved.
struct Order {
    /// Row and column of each pivot.
    pivots: Vec<(u32, u32)>,
    inactive: Vec<u32>,
    /// Rows that are no pivots.
    left_over: Vec<u32>,
}

/// A row while columns are removed from it.
#[derive(Clone, Copy)]
struct Active {
    /// Columns left; 0 for a pivot.
    degree: u32,
    /// Exclusive or of the column numbers.
    sum: u32,
}

/// Rows with more active columns are not sorted: there is almost always a row with fewer.
const LIGHT: usize = 16;

impl Order {
    fn new(system: &System<'_>, budget: &mut Budget) -> Result<Self, Stop> {
        let mut rows: Vec<Active> = (system.rows.iter())
            .map(|row| Active {
                degree: row.len() as u32,
                sum: row.iter().fold(0, |sum, column| sum ^ column),
            })
            .collect();
        // For each degree, the rows that have had it; their degree may be lower now.
        let mut light: [Vec<u32>; LIGHT + 1] = Default::default();
        for (index, row) in (0..).zip(&rows) {
            if let Some(bucket) = light.get_mut(row.degree as usize) {
                bucket.push(index);
            }
        }
        let mut this = Self { pivots: Vec::new(), inactive: Vec::new(), left_over: Vec::new() };
        let mut is_active = vec![true; system.columns.len()];
        let mut next = 0;
        loop {
            let lightest = light.iter_mut().enumerate().skip(1).find_map(|(degree, bucket)| {
                bucket.retain_last(|&row| rows[row as usize].degree as usize == degree);
                bucket.last().map(|&row| (degree, row))
            });
            let column = match lightest {
                Some((1, row)) => {
                    let column = rows[row as usize].sum;
                    rows[row as usize].degree = 0;
                    this.pivots.push((row, column));
                    column
                }
                Some((_, row)) => {
                    let candidates = system.rows.list(row as usize).iter().copied();
                    let candidates = candidates.filter(|&column| is_active[column as usize]);
                    let column = most_useful(system, &rows, candidates, budget)?;
                    this.inactive.push(column);
                    column
                }
                None => {
                    let Some(column) = (next..is_active.len()).find(|&c| is_active[c]) else {
                        break;
                    };
                    next = column + 1;
                    this.inactive.push(column as u32);
                    column as u32
                }
            };
            is_active[column as usize] = false;
            let of_column = system.columns.list(column as usize);
            budget.spend(of_column.len() + 1)?;
            for &index in of_column {
                let row = &mut rows[index as usize];
                if row.degree > 0 {
                    row.degree -= 1;
                    row.sum ^= column;
                    if (1..=LIGHT).contains(&(row.degree as usize)) {
                        light[row.degree as usize].push(index);
                    }
                }
            }
        }
        let mut is_pivot = vec![false; rows.len()];
        this.pivots.iter().for_each(|&(row, _)| is_pivot[row as usize] = true);
        this.left_over = (0..).zip(is_pivot).filter_map(|(row, is)| (!is).then_some(row)).collect();
        Ok(this)
    }
}

trait RetainLast<T> {
    /// Pops items until one is `kept`.
    fn retain_last(&mut self, kept: impl Fn(&T) -> bool);
}

impl<T> RetainLast<T> for Vec<T> {
    fn retain_last(&mut self, kept: impl Fn(&T) -> bool) {
        while self.pop_if(|item| !kept(item)).is_some() {}
    }
}

/// The column whose removal helps the other rows most: rows of degree 2 become pivots.
fn most_useful(
    system: &System<'_>,
    rows: &[Active],
    candidates: impl Iterator<Item = u32>,
    budget: &mut Budget,
) -> Result<u32, Stop> {
    /// Weight of a row of degree 2, relative to any other row.
    const PIVOT_WORTH: u32 = 8;
    let mut best = (0, 0);
    for column in candidates {
        let of_column = system.columns.list(column as usize);
        budget.spend(of_column.len())?;
        let worth = |&row: &u32| match rows[row as usize].degree {
            0 => 0,
            2 => PIVOT_WORTH,
            _ => 1,
        };
        best = best.max((of_column.iter().map(worth).sum(), column));
    }
    Ok(best.1)
}

/// For each column, the inactive columns that it depends on.
struct ColumnBits {
    words: usize,
    bits: Vec<u64>,
}

impl ColumnBits {
    fn new(system: &System<'_>, order: &Order, budget: &mut Budget) -> Result<Self, Stop> {
        let words = order.inactive.len().div_ceil(64);
        // Spent before anything is allocated.
        budget.spend(words.saturating_mul(system.columns.len()))?;
        let mut this = Self { words, bits: vec![0; words * system.columns.len()] };
        for (index, &column) in order.inactive.iter().enumerate() {
            this.bits[column as usize * words + index / 64] |= 1 << (index % 64);
        }
        let mut sum = vec![0; words];
        for &(row, column) in &order.pivots {
            let terms = system.rows.list(row as usize);
            budget.spend(words * terms.len())?;
            sum.fill(0);
            // The row's own bits are still zero.
            this.add_row(terms, &mut sum);
            this.bits[column as usize * words..][..words].copy_from_slice(&sum);
        }
        Ok(this)
    }

    /// Adds a row, in terms of inactive columns, to `sum`.
    fn add_row(&self, terms: &[u32], sum: &mut [u64]) {
        for &column in terms {
            xor_into(sum, &self.bits[column as usize * self.words..][..self.words]);
        }
    }
}
