//! Records of a session head: fields that only some sessions have.

use crate::bytes::Reader;
use std::collections::BTreeMap;

/// First type of the records that a receiver must know to receive the session. It ignores unknown
/// records of types below.
const REQUIRED: u8 = 128;

/// Records of a session head, by type.
///
/// ```text
/// 2  bytes of all records, not 0   } each record, in ascending order of types
/// 1  type                          }
/// 1  bytes of the value            }
/// n  value                         }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeadRecords(BTreeMap<u8, Vec<u8>>);

impl HeadRecords {
    /// Records of these types and values. `None` if a type is repeated, a value has more than 255
    /// bytes, or all records have more than 65 535.
    pub fn new(records: impl IntoIterator<Item = (u8, Vec<u8>)>) -> Option<Self> {
        let mut found = BTreeMap::new();
        for (kind, value) in records {
            u8::try_from(value.len()).ok()?;
            if found.insert(kind, value).is_some() {
                return None;
            }
        }
        let records = Self(found);
        u16::try_from(records.length()).ok()?;
        Some(records)
    }

    /// These records and another one. `None` as with [`new`](Self::new).
    pub fn with(&self, kind: u8, value: Vec<u8>) -> Option<Self> {
        let all = self.0.iter().map(|(&kind, value)| (kind, value.clone()));
        Self::new(all.chain([(kind, value)]))
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Value of the record of this type.
    pub fn get(&self, kind: u8) -> Option<&[u8]> {
        self.0.get(&kind).map(Vec::as_slice)
    }

    /// Bytes that they add to a head.
    pub fn size(&self) -> usize {
        if self.is_empty() { 0 } else { self.length().saturating_add(2) }
    }

    /// Bytes of the records alone.
    fn length(&self) -> usize {
        self.0.values().map(|value| value.len().saturating_add(2)).sum()
    }

    pub(crate) fn emit(&self, out: &mut Vec<u8>) {
        if self.is_empty() {
            return;
        }
        out.extend((self.length() as u16).to_be_bytes());
        for (&kind, value) in &self.0 {
            out.extend([kind, value.len() as u8]);
            out.extend(value);
        }
    }

    /// Parses the records of a head of format 2; `None` if the bytes end too early.
    pub(crate) fn parse(reader: &mut Reader<'_>) -> Option<Result<Self, RecordError>> {
        let length = u16::from_be_bytes(reader.array()?);
        let bytes = reader.take(length.into())?;
        Some(Self::parse_all(bytes))
    }

    fn parse_all(bytes: &[u8]) -> Result<Self, RecordError> {
        let mut reader = Reader::new(bytes);
        let mut records = BTreeMap::new();
        while !reader.rest().is_empty() {
            let kind = reader.u8().ok_or(RecordError::Malformed)?;
            let length = reader.u8().ok_or(RecordError::Malformed)?;
            let value = reader.take(length.into()).ok_or(RecordError::Malformed)?;
            if records.last_key_value().is_some_and(|(&last, _)| last >= kind) {
                return Err(RecordError::Malformed);
            }
            records.insert(kind, value.to_vec());
        }
        // No required type is known.
        match records.last_key_value() {
            None => Err(RecordError::Malformed),
            Some((&kind, _)) if kind >= REQUIRED => {
                let unknown = records.range(REQUIRED..).next();
                Err(RecordError::Unknown(unknown.map_or(kind, |(&first, _)| first)))
            }
            Some(_) => Ok(Self(records)),
        }
    }
}

/// Reason why bytes are not the records of a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// A record that a receiver must know, and that is unknown.
    #[error("session head with a record of the unknown type {0}")]
    Unknown(u8),
    /// Records that are missing, cut off or not in ascending order.
    #[error("the records of the session head are malformed")]
    Malformed,
}
