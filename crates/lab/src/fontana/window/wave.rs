//! Elimination that moves along the object, on ids, in an order in which rows could arrive.
//!
//! Rows are admitted by reach. A row with one active column left is a *pivot*: it is that column,
//! in terms of columns before it and of *inactive* ones. Columns that are a certain *delay* behind
//! the reach must not stay active: when nothing is left to peel, one is declared inactive, as in
//! RFC 6330, section 5.4.2.2. A row without active columns is an *equation* in the inactive
//! columns. Equations are in echelon form, the youngest inactive column leading; as soon as the
//! oldest ones all lead an equation, they are known, and the pivots that depend on no younger ones
//! are *released*: the line can be read up to there. So the work, and what is kept in mind, is that
//! of a few windows.

use super::bits::{Bits, Sum};
use super::code::WindowCode;
use super::matrix::Matrix;
use std::collections::VecDeque;

/// A value that exists while the line is solved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    /// That of a column.
    Value(u32),
    /// What the column of a pivot would be if all inactive columns were zero.
    Pivot(u32),
    /// What is known of the equation that leads with an inactive column, by age.
    Equation(u32),
}

/// A consumer of the steps by which values follow from rows and from each other.
pub(super) trait Steps {
    /// Whether it needs the terms; if not, they are not computed.
    const LISTENS: bool = true;

    /// `sum` is the sum of row `row`'s symbol, if one was received with it, and of `terms`.
    fn sum(&mut self, sum: Name, row: u32, terms: &[Name]);

    /// The value of inactive column `column` is the sum of `terms`.
    fn sum_of_values(&mut self, column: u32, terms: &[Name]);

    /// The value is read no more.
    fn forget(&mut self, name: Name);
}

/// No consumer.
impl Steps for () {
    const LISTENS: bool = false;
    fn sum(&mut self, _: Name, _: u32, _: &[Name]) {}
    fn sum_of_values(&mut self, _: u32, _: &[Name]) {}
    fn forget(&mut self, _: Name) {}
}

/// State of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ColumnState {
    /// Not solved, and not inactive.
    Active,
    /// Solved by a row, in terms of inactive columns that are not known.
    Pivot(Bits),
    /// Inactive and not known, with its age: the number of inactive columns before it.
    Inactive(u32),
    /// Its value is known.
    Known,
}

/// A row while columns are taken out of it.
#[derive(Clone, Copy, Default)]
struct ActiveRow {
    /// Active columns; 0 for a row that was used.
    degree: u32,
    /// Exclusive or of their numbers.
    sum: u32,
}

/// Rows with more active columns are not searched: there is nearly always a lighter one.
const LIGHT: usize = 16;

/// An elimination in progress.
pub(super) struct Wave<'a, S> {
    line: &'a WindowCode,
    matrix: &'a Matrix,
    /// Columns that may stay active behind the reach.
    delay: u32,
    steps: S,
    rows: Vec<ActiveRow>,
    places: Vec<ColumnState>,
    bits: Vec<u64>,
    /// Rows with one active column.
    ready: Vec<u32>,
    /// For each degree from 2 on the rows that came to it, the longest there first; they may have
    /// less by now.
    light: [VecDeque<u32>; LIGHT + 1],
    /// No column before this one is active.
    front: u32,
    /// Numbers of the inactive columns, by age.
    inactive: Vec<u32>,
    /// The age below which all inactive columns are known.
    known: u32,
    /// For each inactive column the equation that leads with it.
    equations: Vec<Option<Bits>>,
    /// For each inactive column the rows and columns of the pivots that are released with it.
    waiting: Vec<Vec<(u32, u32)>>,
    sum: Sum,
    terms: Vec<Name>,
    reach: u32,
    known_front: u32,
    /// Columns that were known when the reach was so much beyond them, in units of 1/64 window.
    lags: Vec<u32>,
}

impl<'a, S: Steps> Wave<'a, S> {
    /// An elimination before the first row.
    pub(super) fn new(line: &'a WindowCode, matrix: &'a Matrix, delay: u32, steps: S) -> Self {
        Self {
            line,
            matrix,
            delay,
            steps,
            rows: vec![ActiveRow::default(); matrix.rows()],
            places: vec![ColumnState::Active; line.columns() as usize],
            bits: Vec::new(),
            ready: Vec::new(),
            light: Default::default(),
            front: 0,
            inactive: Vec::new(),
            known: 0,
            equations: Vec::new(),
            waiting: Vec::new(),
            sum: Sum::default(),
            terms: Vec::new(),
            reach: 0,
            known_front: 0,
            lags: Vec::new(),
        }
    }

    /// Admits the rows from `rows.start` to `rows.end`: the next ones.
    pub(super) fn admit(&mut self, rows: std::ops::Range<u32>) {
        for row in rows {
            self.reach = self.matrix.reach(row);
            self.enter(row);
            self.peel();
            self.clear_up_to(self.reach.saturating_sub(self.delay));
        }
    }

    /// Ends the elimination after the last row. Returns how many more rows are needed at least; 0
    /// if all columns are known.
    pub(super) fn finish(&mut self) -> u32 {
        self.clear_up_to(self.line.lt_columns());
        let led = self.equations.iter().flatten().count();
        let untouched = self.places.iter().filter(|&&place| place == ColumnState::Active).count();
        (self.inactive.len() - led + untouched) as u32
    }

    /// The consumer of the steps.
    pub(super) fn steps(&mut self) -> &mut S {
        &mut self.steps
    }

    /// The first column that is not known.
    pub(super) fn known_before(&mut self) -> u32 {
        let rest = self.places.get(self.known_front as usize..).unwrap_or_default();
        let known = rest.iter().take_while(|&&place| place == ColumnState::Known).count() as u32;
        self.known_front = (self.known_front + known).min(self.line.lt_columns());
        self.known_front
    }

    /// The inactive columns that are known and that nothing refers to any more, in the order in
    /// which they became inactive.
    pub(super) fn forgotten(&self) -> &[u32] {
        let waiting = self.waiting.iter().skip(self.known as usize).flatten();
        let pivots = waiting.filter_map(|&(_, column)| match self.places[column as usize] {
            ColumnState::Pivot(bits) => Some(bits),
            _ => None,
        });
        let equations = self.equations.iter().skip(self.known as usize).copied().flatten();
        let oldest = pivots.chain(equations).map(|bits| bits.base * 64).min();
        let count = oldest.unwrap_or(self.known).min(self.known);
        &self.inactive[..count as usize]
    }

    /// Columns that were known when the reach was so many 64ths of a window beyond them.
    pub(super) fn lags(&self) -> &[u32] {
        &self.lags
    }

    /// How many columns became inactive.
    pub(super) fn inactive(&self) -> u32 {
        self.inactive.len() as u32
    }

    /// Takes the columns out of a row that are no more active.
    fn enter(&mut self, row: u32) {
        let active = |&&column: &&u32| {
            column < self.line.lt_columns() && self.places[column as usize] == ColumnState::Active
        };
        let mut entered = ActiveRow::default();
        for &column in self.matrix.row(row).iter().filter(active) {
            entered.degree += 1;
            entered.sum ^= column;
        }
        self.rows[row as usize] = entered;
        self.note(row);
    }

    /// Queues a row by its degree.
    fn note(&mut self, row: u32) {
        match self.rows[row as usize].degree as usize {
            0 => self.equation(row),
            1 => self.ready.push(row),
            degree @ ..=LIGHT => self.light[degree].push_back(row),
            _ => {}
        }
    }

    /// Solves columns until no row has just one that is active.
    fn peel(&mut self) {
        while let Some(row) = self.ready.pop() {
            let ActiveRow { degree, sum: column } = self.rows[row as usize];
            if degree == 1 {
                self.rows[row as usize].degree = 0;
                self.pivot(row, column);
                self.take_out(column);
            }
        }
    }

    /// Declares columns inactive until none before `limit` is active.
    fn clear_up_to(&mut self, limit: u32) {
        loop {
            while self.front < limit && self.places[self.front as usize] != ColumnState::Active {
                self.front += 1;
            }
            if self.front >= limit {
                return;
            }
            let column = self.candidate();
            self.deactivate(column);
            self.take_out(column);
            self.peel();
        }
    }

    /// The column to declare inactive: of a lightest row, the column that makes most other rows
    /// lighter.
    fn candidate(&mut self) -> u32 {
        /// Worth of a row of degree 2, which becomes a pivot, against that of any other.
        const PIVOT_WORTH: u32 = 8;
        for degree in 2..=LIGHT {
            while let Some(&row) = self.light[degree].front() {
                if self.rows[row as usize].degree as usize != degree {
                    self.light[degree].pop_front();
                    continue;
                }
                let worth = |column: u32| -> u32 {
                    let rows = self.matrix.rows_of(column).iter();
                    let worth = |&row: &u32| match self.rows[row as usize].degree {
                        0 => 0,
                        2 => PIVOT_WORTH,
                        _ => 1,
                    };
                    rows.map(worth).sum()
                };
                let columns = self.matrix.row(row).iter().copied();
                let active = |&column: &u32| {
                    column < self.line.lt_columns()
                        && self.places[column as usize] == ColumnState::Active
                };
                let best = columns.filter(active).max_by_key(|&column| (worth(column), column));
                return best.unwrap_or(self.front);
            }
        }
        self.front
    }

    /// Removes a column that is no longer active from its rows.
    fn take_out(&mut self, column: u32) {
        for &row in self.matrix.rows_of(column) {
            let entry = &mut self.rows[row as usize];
            // Of a row that was not admitted yet, or was used.
            if entry.degree == 0 {
                continue;
            }
            entry.degree -= 1;
            entry.sum ^= column;
            self.note(row);
        }
    }

    fn deactivate(&mut self, column: u32) {
        let age = self.inactive.len() as u32;
        self.places[column as usize] = ColumnState::Inactive(age);
        self.inactive.push(column);
        self.equations.push(None);
        self.waiting.push(Vec::new());
    }

    /// Adds up what the columns of `row`, but for `pivot`, are: bits and terms.
    fn add_up(&mut self, row: u32, pivot: Option<u32>) {
        self.terms.clear();
        self.sum.clear(self.known / 64);
        for &column in self.matrix.row(row) {
            if Some(column) == pivot {
                continue;
            }
            if self.places[column as usize] == ColumnState::Active {
                // A permanent column, for the first time.
                self.deactivate(column);
            }
            match self.places[column as usize] {
                ColumnState::Pivot(bits) => {
                    self.sum.add(bits, &self.bits);
                    self.terms.push(Name::Pivot(column));
                }
                ColumnState::Inactive(age) => self.sum.flip(age),
                ColumnState::Known | ColumnState::Active => self.terms.push(Name::Value(column)),
            }
        }
    }

    /// Row `row` solves `column`.
    fn pivot(&mut self, row: u32, column: u32) {
        self.add_up(row, Some(column));
        let Some(youngest) = self.sum.youngest else {
            self.steps.sum(Name::Value(column), row, &self.terms);
            self.release(column);
            return;
        };
        self.steps.sum(Name::Pivot(column), row, &self.terms);
        self.places[column as usize] = ColumnState::Pivot(self.sum.keep(&mut self.bits));
        self.waiting[youngest as usize].push((row, column));
    }

    /// Row `row` has no active column.
    fn equation(&mut self, row: u32) {
        self.add_up(row, None);
        let leader = loop {
            let Some(age) = self.sum.leader(self.known) else { return };
            let Some(equation) = self.equations[age as usize] else { break age };
            self.sum.add(equation, &self.bits);
            self.terms.push(Name::Equation(age));
        };
        let (terms, inactive) = (&mut self.terms, &self.inactive);
        self.sum.take(self.known, |age| terms.push(Name::Value(inactive[age as usize])));
        self.steps.sum(Name::Equation(leader), row, &self.terms);
        self.equations[leader as usize] = Some(self.sum.keep(&mut self.bits));
        while let Some(&Some(bits)) = self.equations.get(self.known as usize) {
            self.solve(bits);
        }
    }

    /// The oldest inactive column that was not known leads an equation: it is known, and so are the
    /// pivots that waited for it.
    fn solve(&mut self, equation: Bits) {
        let (age, column) = (self.known, self.inactive[self.known as usize]);
        self.known += 1;
        if S::LISTENS {
            self.terms.clear();
            self.terms.push(Name::Equation(age));
            self.sum.clear(equation.base);
            self.sum.add(equation, &self.bits);
            let (terms, inactive) = (&mut self.terms, &self.inactive);
            self.sum.take(age, |age| terms.push(Name::Value(inactive[age as usize])));
            self.steps.sum_of_values(column, &self.terms);
            self.steps.forget(Name::Equation(age));
        }
        self.release(column);
        for (row, column) in std::mem::take(&mut self.waiting[age as usize]) {
            if S::LISTENS {
                let others = self.matrix.row(row).iter().filter(|&&other| other != column);
                self.terms.clear();
                self.terms.extend(others.map(|&other| Name::Value(other)));
                self.steps.sum(Name::Value(column), row, &self.terms);
                self.steps.forget(Name::Pivot(column));
            }
            self.release(column);
        }
    }

    /// The value of a column is known.
    fn release(&mut self, column: u32) {
        self.places[column as usize] = ColumnState::Known;
        if column < self.line.lt_columns() {
            let lag = u64::from(self.reach.saturating_sub(column)) * 64;
            let lag = (lag / u64::from(self.line.window())) as usize;
            if lag >= self.lags.len() {
                self.lags.resize(lag + 1, 0);
            }
            self.lags[lag] += 1;
        }
    }
}
