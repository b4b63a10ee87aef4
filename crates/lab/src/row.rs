//! Typed rows: structs whose fields are the columns of a table.

use crate::value::{TableRow, Value};
use serde::de::value::{Error, MapDeserializer};
use serde::de::{DeserializeOwned, Deserializer, Error as _, IntoDeserializer, Visitor};
use serde::{Serialize, forward_to_deserialize_any};

/// A row of a sweep: a struct of counts, measures and labels. Its fields are the columns.
pub(crate) trait Row: Serialize + DeserializeOwned + 'static {}

impl<T: Serialize + DeserializeOwned + 'static> Row for T {}

/// The names of the fields, in their order.
pub(crate) fn columns<R: Row>() -> &'static [&'static str] {
    let mut names: &'static [&'static str] = &[];
    // It ends with an error, after the names.
    let _ = R::deserialize(Names(&mut names));
    names
}

/// The values of the fields, in their order.
pub(crate) fn values<R: Row>(row: &R) -> TableRow {
    let fields = serde_json::to_value(row).unwrap_or_default();
    let field = |name: &&str| fields.get(name).map_or(Value::Number(f64::NAN), value);
    columns::<R>().iter().map(field).collect()
}

fn value(field: &serde_json::Value) -> Value {
    match field {
        serde_json::Value::String(text) => Value::Text(text.clone()),
        serde_json::Value::Bool(is) => Value::from(u32::from(*is)),
        serde_json::Value::Number(number) => match number.as_i64() {
            Some(integer) => Value::Integer(integer),
            None => Value::Number(number.as_f64().unwrap_or(f64::NAN)),
        },
        // JSON has no other numbers than finite ones.
        _ => Value::Number(f64::NAN),
    }
}

/// The row with these values, named by `columns`. Columns that are no fields of `R` are ignored.
///
/// # Errors
/// A column is missing, or its value is not of the field's type.
pub(crate) fn read<R: Row>(columns: &[&str], values: &[Value]) -> Result<R, Error> {
    let cells = columns.iter().zip(values).map(|(column, value)| (*column, Cell(value)));
    R::deserialize(MapDeserializer::new(cells))
}

/// Takes the names of the fields from a struct that is to be deserialized.
struct Names<'a>(&'a mut &'static [&'static str]);

impl<'de> Deserializer<'de> for Names<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(Error::custom("a row is a struct"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Error> {
        *self.0 = fields;
        Err(Error::custom("the names are read"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

/// One value of a row.
struct Cell<'a>(&'a Value);

impl Cell<'_> {
    /// A count, which is rounded if it is none.
    fn visit_count<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let number = self.0.number();
        if number.is_finite() {
            visitor.visit_i64(number.round() as i64)
        } else {
            Err(Error::custom("not a count"))
        }
    }
}

impl<'de> IntoDeserializer<'de, Error> for Cell<'_> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for Cell<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Integer(integer) => visitor.visit_i64(*integer),
            Value::Number(number) => visitor.visit_f64(*number),
            Value::Text(text) => visitor.visit_str(text),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_bool(self.0.number() > 0.5)
    }

    fn deserialize_u8<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.visit_count(visitor)
    }

    fn deserialize_u16<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.visit_count(visitor)
    }

    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.visit_count(visitor)
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.visit_count(visitor)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_string(self.0.to_string())
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u128 f32 f64 char str bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

/// Numbers of the rows that meet a condition.
pub(crate) trait Rows<R> {
    /// A number of each row that meets a condition.
    fn numbers(&self, is: impl Fn(&R) -> bool, number: impl Fn(&R) -> f64) -> Vec<f64>;

    /// A number of the first row that meets a condition; `NAN` if none does.
    fn number(&self, is: impl Fn(&R) -> bool, number: impl Fn(&R) -> f64) -> f64;

    /// A point of each row that meets a condition.
    fn points(&self, is: impl Fn(&R) -> bool, point: impl Fn(&R) -> (f64, f64)) -> Vec<(f64, f64)>;

    /// The distinct labels or parameters of the rows, in the order of their first rows.
    fn distinct<T: PartialEq>(&self, of: impl Fn(&R) -> T) -> Vec<T>;
}

impl<R> Rows<R> for [R] {
    fn numbers(&self, is: impl Fn(&R) -> bool, number: impl Fn(&R) -> f64) -> Vec<f64> {
        self.iter().filter(|row| is(row)).map(number).collect()
    }

    fn number(&self, is: impl Fn(&R) -> bool, number: impl Fn(&R) -> f64) -> f64 {
        self.iter().find(|row| is(row)).map_or(f64::NAN, number)
    }

    fn points(&self, is: impl Fn(&R) -> bool, point: impl Fn(&R) -> (f64, f64)) -> Vec<(f64, f64)> {
        self.iter().filter(|row| is(row)).map(point).collect()
    }

    fn distinct<T: PartialEq>(&self, of: impl Fn(&R) -> T) -> Vec<T> {
        let mut seen = Vec::new();
        for value in self.iter().map(of) {
            if !seen.contains(&value) {
                seen.push(value);
            }
        }
        seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Trial {
        code: String,
        k: u32,
        eta: f64,
        is_complete: bool,
        #[serde(rename = "ms late")]
        late: f64,
    }

    fn trial(code: &str, k: u32, eta: f64) -> Trial {
        Trial { code: code.into(), k, eta, is_complete: true, late: 0.5 }
    }

    #[test]
    fn fields_are_columns_in_their_order() {
        assert_eq!(columns::<Trial>(), ["code", "k", "eta", "is_complete", "ms late"]);
        let values = values(&trial("a", 10, 1.0));
        let shown: Vec<String> = values.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["a", "10", "1", "1", "0.5"]);
    }

    #[test]
    fn a_row_survives_being_written_and_read() {
        let row = trial("a", 10, 1.25);
        let values: TableRow =
            values(&row).iter().map(|value| Value::parse(&value.to_string())).collect();
        assert_eq!(read::<Trial>(columns::<Trial>(), &values).unwrap(), row);
        // What is unknown stays unknown.
        let unknown = super::values(&trial("a", 10, f64::NAN));
        assert!(read::<Trial>(columns::<Trial>(), &unknown).unwrap().eta.is_nan());
    }

    #[test]
    fn a_row_without_a_column_or_a_count_is_none() {
        let [code, k, eta] = [Value::from("a"), Value::from(10.4), Value::from(1.25)];
        let rest = [Value::from(1_u32), Value::from(0.5)];
        let mut columns = vec!["code", "k", "eta", "is_complete", "ms late", "more"];
        let mut values = [vec![code, k, eta], rest.to_vec(), vec![Value::from(0_u32)]].concat();
        assert_eq!(read::<Trial>(&columns, &values).unwrap().k, 10);
        values[1] = Value::from(f64::NAN);
        assert!(read::<Trial>(&columns, &values).is_err());
        columns[2] = "etas";
        assert!(read::<Trial>(&columns, &values).is_err());
    }

    #[test]
    fn rows_are_found_by_their_fields() {
        let rows = [trial("a", 10, 1.5), trial("a", 20, 1.25), trial("b", 10, 1.125)];
        assert_eq!(rows.number(|row| row.code == "b", |row| row.eta), 1.125);
        assert!(rows.number(|row| row.code == "c", |row| row.eta).is_nan());
        let points = rows.points(|row| row.code == "a", |row| (row.k.into(), row.eta));
        assert_eq!(points, [(10.0, 1.5), (20.0, 1.25)]);
        assert_eq!(rows.distinct(|row| row.k), [10, 20]);
    }
}
