//! Rows: the results of experiments, from which pages, figures and verdicts are made.

use crate::row::{self, Row};
use crate::value::TableRow;

/// Rows of a sweep, in the order of the cases.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Names of the columns.
    pub columns: &'static [&'static str],
    /// The rows.
    pub rows: Vec<CaseRow>,
}

/// A row of a table, and where it comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct CaseRow {
    /// The index of the case that returned it.
    pub case: u32,
    /// Its values.
    pub values: TableRow,
}

impl Table {
    pub(crate) const fn new(columns: &'static [&'static str]) -> Self {
        Self { columns, rows: Vec::new() }
    }

    /// The rows as structs; `None` if a row is none.
    pub(crate) fn read<R: Row>(&self) -> Option<Vec<R>> {
        self.rows.iter().map(|row| row::read(self.columns, &row.values).ok()).collect()
    }
}
