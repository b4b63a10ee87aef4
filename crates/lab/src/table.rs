//! Rows: the results of experiments, from which pages, figures and verdicts are made.

use std::fmt;

/// One value of a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A count.
    Integer(i64),
    /// A measure. Its printed form parses to the same bits.
    Number(f64),
    /// A label, without commas and line ends.
    Text(String),
}

impl Value {
    /// The value as a number; `NAN` for a label.
    pub fn number(&self) -> f64 {
        match self {
            Self::Integer(integer) => *integer as f64,
            Self::Number(number) => *number,
            Self::Text(_) => f64::NAN,
        }
    }

    /// Whether both are the same number, of either kind, or the same label.
    fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Text(a), Self::Text(b)) => a == b,
            (Self::Text(_), _) | (_, Self::Text(_)) => false,
            _ => self.number() == other.number(),
        }
    }

    /// The inverse of `Display`. A measure without a fraction becomes a count, which prints alike.
    pub(crate) fn parse(text: &str) -> Self {
        if let Ok(integer) = text.parse() {
            return Self::Integer(integer);
        }
        match text.parse::<f64>() {
            Ok(number) => Self::Number(number),
            Err(_) => Self::Text(text.to_owned()),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(integer) => integer.fmt(f),
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => text.fmt(f),
        }
    }
}

impl From<u32> for Value {
    fn from(count: u32) -> Self {
        Self::Integer(i64::from(count))
    }
}

impl From<u64> for Value {
    fn from(count: u64) -> Self {
        i64::try_from(count).map_or(Self::Number(count as f64), Self::Integer)
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// The values of a row, in the order of the experiment's columns.
pub type TableRow = Vec<Value>;

/// A row of expressions that convert to values.
macro_rules! row {
    ($($value:expr),+ $(,)?) => { vec![$($crate::table::Value::from($value)),+] };
}
pub(crate) use row;

/// Rows of an experiment, in the order of the cases.
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

/// A condition on rows: a column and its value.
pub(crate) type Where<'a> = (&'a str, Value);

impl Table {
    pub(crate) const fn new(columns: &'static [&'static str]) -> Self {
        Self { columns, rows: Vec::new() }
    }

    /// The numbers of a column in the rows that meet all conditions; none if there is no such
    /// column.
    pub(crate) fn numbers(&self, column: &str, conditions: &[Where<'_>]) -> Vec<f64> {
        let Some(column) = self.position(column) else { return Vec::new() };
        self.matching(conditions).filter_map(|row| row.get(column)).map(Value::number).collect()
    }

    /// The number of a column in the first row that meets all conditions, or `NAN`.
    pub(crate) fn number(&self, column: &str, conditions: &[Where<'_>]) -> f64 {
        self.numbers(column, conditions).first().copied().unwrap_or(f64::NAN)
    }

    /// Points (x, y) of two columns, in the rows that meet all conditions.
    pub(crate) fn points(&self, x: &str, y: &str, conditions: &[Where<'_>]) -> Vec<(f64, f64)> {
        let (x, y) = (self.numbers(x, conditions), self.numbers(y, conditions));
        x.into_iter().zip(y).collect()
    }

    /// The distinct values of a column, in the order of their first rows.
    pub(crate) fn values(&self, column: &str) -> Vec<Value> {
        let Some(column) = self.position(column) else { return Vec::new() };
        let mut seen: Vec<Value> = Vec::new();
        for value in self.rows.iter().filter_map(|row| row.values.get(column)) {
            if !seen.iter().any(|other| other.is(value)) {
                seen.push(value.clone());
            }
        }
        seen
    }

    fn position(&self, column: &str) -> Option<usize> {
        self.columns.iter().position(|name| *name == column)
    }

    fn matching(&self, conditions: &[Where<'_>]) -> impl Iterator<Item = &TableRow> {
        let conditions: Vec<(Option<usize>, Value)> =
            conditions.iter().map(|(name, value)| (self.position(name), value.clone())).collect();
        self.rows.iter().map(|row| &row.values).filter(move |row| {
            conditions.iter().all(|(column, value)| {
                column.and_then(|column| row.get(column)).is_some_and(|found| found.is(value))
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_survive_being_written_and_read() {
        for value in [
            Value::from(7_u32),
            Value::from(1.0536),
            Value::from(0.1 + 0.2),
            Value::from(1e300),
            Value::from("2:2:1"),
        ] {
            let back = Value::parse(&value.to_string());
            assert!(back.is(&value), "{value}");
            assert_eq!(back.to_string(), value.to_string());
        }
    }

    #[test]
    fn rows_are_found_by_their_values() {
        let mut table = Table::new(&["code", "k", "eta"]);
        let rows = [row!["a", 10_u32, 1.5], row!["a", 20_u32, 1.25], row!["b", 10_u32, 1.125]];
        table.rows.extend((0..).zip(rows).map(|(case, values)| CaseRow { case, values }));
        assert_eq!(table.number("eta", &[("code", "b".into()), ("k", 10.0.into())]), 1.125);
        assert_eq!(table.points("k", "eta", &[("code", "a".into())]), [(10.0, 1.5), (20.0, 1.25)]);
        assert!(table.number("eta", &[("code", "c".into())]).is_nan());
        assert!(table.number("no such column", &[]).is_nan());
        assert_eq!(table.values("k"), [Value::from(10_u32), Value::from(20_u32)]);
    }
}
