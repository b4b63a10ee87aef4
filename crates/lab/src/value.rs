//! Values of rows.

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

/// The values of a row, in the order of the columns.
pub type TableRow = Vec<Value>;

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
            assert_eq!(back.to_string(), value.to_string());
            assert!(back == value || back.number() == value.number(), "{value}");
        }
    }
}
