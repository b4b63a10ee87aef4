//! The code: intermediate symbols on a line, and which of them each row is the sum of.
//!
//! Degrees are those of RFC 6330, and so is the division of labor: most intermediate symbols are
//! drawn by that distribution (*LT columns*), a few are in as many rows as a dense row's
//! (*permanent* columns, inactive from the start), and a few are the sums of others
//! (*constraints*). What differs is that a row's neighbors lie in a window of the line, around a
//! *place*. Places are spread evenly, and a window's far end is so far beyond its place that x rows
//! determine about the first x columns: the beginning of the line can be solved while its end has
//! not been sent.

use fontana_fec::study::DEGREE_BOUNDS;
use fontana_proto::SplitMix64;
use std::ops::Range;

/// The least columns of a window: twice the largest degree, so that few draws are repeated.
const NARROWEST: u32 = 64;

/// Windows are narrower near both ends: as wide as the line before them is long, and by one column
/// less for each `TAPER` columns that are missing from their width behind them. If they were as
/// wide everywhere, the last columns would be in few rows, and half a window of rows beyond the end
/// would have to make up for it.
const TAPER: u32 = 4;

/// The share of a window that is beyond the place of its row. Columns at the far end of the windows
/// so far are in few rows: 0.36 of a window would hold as many columns that are in none as there
/// are rows missing, so that after x rows x columns are determined. A little more leaves some
/// columns open for what comes in excess, which would be redundant otherwise, and is lacking where
/// fewer arrive.
const AHEAD: (u32, u32) = (42, 100);

/// Constraints that a source symbol is in. One in a hundred symbols is in no row; two of those in
/// the same constraints cannot be told apart. Of the some hundred constraints of a window RFC
/// 6330's three are the same too often: it has dense rows against that, which a line of windows
/// cannot have.
const CONSTRAINTS_OF_EACH: usize = 4;

/// The least constraints to choose from, near the ends.
const CHOICE: u32 = 16;

/// A windowed code for an object of one length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WindowCode {
    window: u32,
    lt_columns: u32,
    permanent: u32,
    constraints: u32,
    /// Of the window's columns.
    root: u32,
    seed: u64,
}

impl WindowCode {
    /// The code for `source_symbols`, at least some hundreds of them, with windows of `window`
    /// columns.
    pub(super) fn new(source_symbols: u32, window: u32, seed: u64) -> Self {
        let window = window.min(source_symbols);
        let (k, w) = (f64::from(source_symbols), f64::from(window));
        // Of RFC 6330, with the window for the block: S = 0.01 K + sqrt(2 K), and as many permanent
        // columns as its tables have beyond S, which is 1.6 sqrt(K).
        let constraints = (k * (0.01 + (2.0 / w).sqrt())).round() as u32;
        let permanent = ((k * 1.6 / w.sqrt()).round() as u32).max(4);
        let root = window.isqrt();
        let lt_columns = source_symbols + constraints - permanent;
        Self { window, lt_columns, permanent, constraints, root, seed }
    }

    /// Columns of a window.
    pub(super) fn window(&self) -> u32 {
        self.window
    }

    /// Columns that have a place on the line, which is their number.
    pub(super) fn lt_columns(&self) -> u32 {
        self.lt_columns
    }

    /// All columns: the permanent ones have the numbers from [`lt_columns`](Self::lt_columns) on.
    pub(super) fn columns(&self) -> u32 {
        self.lt_columns + self.permanent
    }

    /// Where on the line a permanent column is.
    pub(super) fn place(&self, permanent: u32) -> u32 {
        scale(permanent - self.lt_columns, self.lt_columns, self.permanent)
    }

    /// The columns on the line among which are the neighbors of encoding symbol `esi`.
    ///
    /// Multiples of the golden section are spread evenly, wherever one begins (Weyl): losses thin
    /// them out, and the rows of several senders add up.
    pub(super) fn columns_of(&self, esi: u32) -> Range<u32> {
        const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
        let turn = u64::from(esi).wrapping_mul(GOLDEN);
        // Rows in excess are spread over the first window, and over the windows that taper off.
        let (before, after) = (self.root, TAPER * self.root * 3 / 4);
        let at_the_end = self.narrowest() / 2;
        let turns = before + self.lt_columns + after + at_the_end;
        let place = ((u128::from(turn) * u128::from(turns)) >> 64) as u32;
        let last = self.lt_columns - 1;
        self.window_at(match place.checked_sub(before) {
            None => (place * self.root).min(last),
            Some(place) if place <= last => place,
            Some(beyond) => {
                last.saturating_sub((beyond - last).saturating_sub(at_the_end) * self.root * 4 / 3)
            }
        })
    }

    /// The narrowest window at the end: a few columns that happen to be in no row must have a
    /// constraint each.
    fn narrowest(&self) -> u32 {
        (4 * self.root).max(NARROWEST)
    }

    /// The window of a row at a place of the line.
    fn window_at(&self, place: u32) -> Range<u32> {
        let taper = self.narrowest() + place.min((self.lt_columns - place) / TAPER);
        let width = taper.min(self.window);
        let end = (place + 1 + scale(width, AHEAD.0, AHEAD.1)).clamp(NARROWEST, self.lt_columns);
        end.saturating_sub(width)..end
    }

    /// Replaces `row` by the neighbors of encoding symbol `esi`: distinct, in the order they are
    /// drawn.
    pub(super) fn row(&self, esi: u32, row: &mut Vec<u32>) {
        let mut random = SplitMix64::new(self.seed, esi.into());
        let Range { start, end: reach } = self.columns_of(esi);
        let number = random.below(1 << 20);
        let degree = DEGREE_BOUNDS.partition_point(|&bound| bound <= number);
        row.clear();
        draw(row, degree, start, reach, &mut random);
        let among = |column| scale(column, self.permanent, self.lt_columns);
        let last = (among(reach)).clamp(4, self.permanent);
        let first = among(start).min(last - 4);
        let permanent = if degree < 4 { 2 + random.below(2) } else { 2 };
        let beyond = self.lt_columns;
        draw(row, permanent as usize, beyond + first, beyond + last, &mut random);
    }

    /// How many constraints there are.
    pub(super) fn constraints(&self) -> u32 {
        self.constraints
    }

    /// The column that constraint `index` defines.
    pub(super) fn defined(&self, index: u32) -> u32 {
        scale(index + 1, self.lt_columns, self.constraints) - 1
    }

    /// The columns of each constraint, which sum to zero: first the one that it defines, then those
    /// that this is the sum of, at most a window before it.
    pub(super) fn constraint_rows(&self) -> Vec<Vec<u32>> {
        let mut rows: Vec<Vec<u32>> =
            (0..self.constraints).map(|index| vec![self.defined(index)]).collect();
        let mut random = SplitMix64::new(self.seed, u64::MAX);
        let mut chosen = Vec::new();
        // The first constraint that defines a column not before this one.
        let mut next = 0;
        for column in 0..self.lt_columns {
            if self.defined(next) == column {
                next += 1;
                continue;
            }
            let end = column + self.window_at(column).len() as u32;
            let end = scale(end.min(self.lt_columns), self.constraints, self.lt_columns);
            let end = end.max(next + CHOICE).min(self.constraints);
            let first = next.min(end.saturating_sub(CHOICE));
            chosen.clear();
            draw(&mut chosen, CONSTRAINTS_OF_EACH, first, end, &mut random);
            chosen.iter().for_each(|&index| rows[index as usize].push(column));
        }
        rows
    }
}

/// `part * whole / parts`.
fn scale(part: u32, whole: u32, parts: u32) -> u32 {
    (u64::from(part) * u64::from(whole) / u64::from(parts)) as u32
}

/// Appends `count` numbers from `start` to `end` that are not there yet.
fn draw(row: &mut Vec<u32>, count: usize, start: u32, end: u32, random: &mut SplitMix64) {
    let length = row.len() + count.min((end - start) as usize);
    while row.len() < length {
        let column = start + random.below(end - start);
        if !row.contains(&column) {
            row.push(column);
        }
    }
}
