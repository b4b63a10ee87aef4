//! Inactivation: an order in which the sparse rows can be solved one after the other, given a few
//! *inactive* columns (RFC 6330, section 5.4.2.2, with cheaper rules of choice).
//!
//! A row with one active column left is a *pivot*: it solves that column, which is then removed
//! from all other rows. If there is no such row, a column of a row of least degree is declared
//! inactive, which also removes it from all rows. Permanently inactive columns, from `W` on, are
//! never active.

use super::matrix::Matrix;
use super::params::Params;
use crate::codes::shared::equations::{Budget, Stop};
use alloc::vec;
use alloc::vec::Vec;

/// The state of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Active,
    /// Solved by a pivot.
    Pivot,
    /// Among the inactive columns, at this index.
    Inactive(u32),
}

/// An order to solve the sparse rows in.
pub(super) struct Peeling {
    /// The state of each column.
    pub(super) places: Vec<Place>,
    /// Row and column of each pivot, in order: the other columns of the row are inactive or belong
    /// to earlier pivots.
    pub(super) pivots: Vec<(u32, u32)>,
    /// The inactive columns; those from `W` on come first, ascending.
    pub(super) inactive: Vec<u32>,
    /// The rows that are not pivots: all their columns are pivots' or inactive.
    pub(super) left_over: Vec<u32>,
}

impl Peeling {
    pub(super) fn is_pivot(&self, column: u32) -> bool {
        self.places[column as usize] == Place::Pivot
    }
}

/// A row while columns are removed from it.
struct Row {
    /// Active columns; 0 for a row that was used.
    degree: u32,
    /// Exclusive or of the active columns' indices: the column itself if there is one.
    sum: u32,
}

/// Rows by degree. A row is entered when it reaches a degree, which occurs once for each degree,
/// and its earlier entries remain: an entry is valid if the row still has that degree. Rows of
/// degree 0 are not stored.
struct Buckets {
    entries: Vec<u32>,
    /// For each degree, the part of `entries` in use.
    spans: Vec<(usize, usize)>,
}

impl Buckets {
    fn new(rows: &[Row]) -> Self {
        let most = rows.iter().map(|row| row.degree as usize).max().unwrap_or(0);
        // A bucket needs room for every row that starts with its degree or a higher one.
        let mut room = vec![0; most + 2];
        for row in rows {
            room[row.degree as usize] += 1;
        }
        for degree in (1..=most).rev() {
            room[degree] += room[degree + 1];
        }
        // All rows of degree 0 are written to the same place.
        room[0] = 1;
        let mut start = 0;
        let spans = room
            .iter()
            .map(|room| {
                let span = (start, start);
                start += room;
                span
            })
            .collect();
        let mut buckets = Self { entries: vec![0; start], spans };
        for (index, row) in (0..).zip(rows) {
            buckets.push(row.degree, index);
        }
        buckets
    }

    fn push(&mut self, degree: u32, row: u32) {
        let (_, end) = &mut self.spans[degree as usize];
        self.entries[*end] = row;
        *end += usize::from(degree > 0);
    }

    /// Removes a row of the least degree from 1 on, and returns it with its degree.
    fn lightest(&mut self, rows: &[Row]) -> Option<(u32, u32)> {
        for (degree, (start, end)) in self.spans.iter_mut().enumerate().skip(1) {
            while *end > *start {
                *end -= 1;
                let row = self.entries[*end];
                if rows[row as usize].degree == degree as u32 {
                    return Some((row, degree as u32));
                }
            }
        }
        None
    }
}

/// Finds an order for `matrix`.
pub(super) fn peel(params: &Params, matrix: &Matrix, budget: &mut Budget) -> Result<Peeling, Stop> {
    let mut rows: Vec<Row> = matrix.lt_sums().map(|(degree, sum)| Row { degree, sum }).collect();
    let mut buckets = Buckets::new(&rows);

    let mut places = vec![Place::Active; params.w as usize];
    places.extend((0..params.p).map(Place::Inactive));
    let mut inactive: Vec<u32> = (params.w..params.l).collect();
    let mut pivots = Vec::with_capacity(params.w as usize);
    let mut is_pivot = vec![false; rows.len()];

    while let Some((row, degree)) = buckets.lightest(&rows) {
        let column = if degree == 1 {
            let column = rows[row as usize].sum;
            rows[row as usize].degree = 0;
            is_pivot[row as usize] = true;
            places[column as usize] = Place::Pivot;
            pivots.push((row, column));
            column
        } else {
            let column = most_useful(matrix, &rows, &places, row, budget)?;
            places[column as usize] = Place::Inactive(inactive.len() as u32);
            inactive.push(column);
            column
        };
        let column_rows = matrix.column(column as usize);
        budget.spend(column_rows.len())?;
        for &index in column_rows {
            // Without an unpredictable branch.
            let row = &mut rows[index as usize];
            row.sum ^= column;
            row.degree = row.degree.saturating_sub(1);
            buckets.push(row.degree, index);
        }
    }
    for (column, place) in (0..).zip(&mut places) {
        if *place == Place::Active {
            *place = Place::Inactive(inactive.len() as u32);
            inactive.push(column);
        }
    }
    let left_over = (0..).zip(is_pivot).filter_map(|(row, used)| (!used).then_some(row)).collect();
    Ok(Peeling { places, pivots, inactive, left_over })
}

/// The active column of `row` whose removal helps the other rows most: rows of degree 2 become
/// pivots.
fn most_useful(
    matrix: &Matrix,
    rows: &[Row],
    places: &[Place],
    row: u32,
    budget: &mut Budget,
) -> Result<u32, Stop> {
    /// Weight of a row of degree 2, relative to any other row. Values from 4 to 16 give the same
    /// result.
    const PIVOT_WORTH: u32 = 8;
    let mut best = (0, 0);
    for &column in matrix.row(row as usize) {
        if places[column as usize] != Place::Active {
            continue;
        }
        let column_rows = matrix.column(column as usize);
        budget.spend(column_rows.len())?;
        let worth = |&row: &u32| match rows[row as usize].degree {
            0 => 0,
            2 => PIVOT_WORTH,
            _ => 1,
        };
        best = best.max((column_rows.iter().map(worth).sum(), column));
    }
    Ok(best.1)
}
