//! The metadata of compound objects: lines as in the headers of HTTP/1.1 (RFC 6968, sections 2.2
//! and 3.3). Names are case-insensitive; unknown entries are skipped.

use super::error::{FcastError, excerpt};
use crate::content::ContentEncoding;
use crate::fdt::FdtContentEncoding;
use data_encoding::BASE64;
use std::fmt::{Display, Write as _};
use std::str::FromStr;

const LOCATION: &str = "Content-Location";
const TYPE: &str = "Content-Type";
const LENGTH: &str = "Content-Length";
const ENCODING: &str = "Content-Encoding";
const SHA1: &str = "Fcast-Obj-Digest-SHA1";
const SHA256: &str = "Fcast-Obj-Digest-SHA256";
const SLICE_COUNT: &str = "Fcast-Obj-Slice-Nb";
const SLICE_INDEX: &str = "Fcast-Obj-Slice-Idx";
const SLICE_OFFSET: &str = "Fcast-Obj-Slice-Offset";
const COMPLETE: &str = "Fcast-CID-Complete";
const INSTANCE: &str = "Fcast-CID-ID";

/// Metadata of a compound object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompoundMetadata {
    /// Identifier of the file, not authenticated.
    /// [`parse_content_location`](crate::parse_content_location) makes a path of it.
    pub content_location: Option<String>,
    /// Media type.
    pub content_type: Option<String>,
    /// Length of the whole file in bytes before content encoding, also in a slice of it.
    pub content_length: Option<u64>,
    /// Compression of the data.
    pub content_encoding: Option<FdtContentEncoding>,
    /// SHA-1 of the data before content encoding. It detects accidental damage only.
    pub sha1: Option<[u8; 20]>,
    /// SHA-256 of the data before content encoding. It is not signed, so it detects accidental
    /// damage only.
    pub sha256: Option<[u8; 32]>,
    /// Part of the file that the data are; `None`: all of it.
    pub slice: Option<Slice>,
    /// In a descriptor: true if no later instance will list a new object.
    pub is_complete: bool,
    /// In a descriptor: number of the carousel instance.
    pub instance_id: Option<u64>,
}

/// Part of a file that a compound object holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Number of slices of the file: at least 1.
    pub count: u32,
    /// Number of this slice, counted from 0.
    pub index: u32,
    /// Offset of the slice in the file, in bytes.
    pub offset: u64,
}

/// The three entries of a slice, as far as they are present.
#[derive(Default)]
struct SliceEntries {
    count: Option<u32>,
    index: Option<u32>,
    offset: Option<u64>,
}

impl SliceEntries {
    fn slice(&self) -> Result<Option<Slice>, FcastError> {
        match (self.count, self.index, self.offset) {
            (None, None, None) => Ok(None),
            // The only slice of a file is the file.
            (Some(1), None | Some(0), None | Some(0)) => Ok(None),
            (Some(count), Some(index), Some(offset)) if index < count => {
                Ok(Some(Slice { count, index, offset }))
            }
            _ => Err(FcastError::Slice),
        }
    }
}

impl CompoundMetadata {
    /// Parses the text of a header.
    pub(super) fn parse(text: &str) -> Result<Self, FcastError> {
        let mut metadata = Self::default();
        let mut slice = SliceEntries::default();
        let mut complete = None;
        // A NUL may mark the end, although the RFC has none.
        for line in text.trim_end_matches('\0').split('\n') {
            let line = line.strip_suffix('\r').unwrap_or(line);
            if line.is_empty() {
                continue;
            }
            let unreadable = || FcastError::Line { line: excerpt(line) };
            if line.contains(is_control) {
                return Err(unreadable());
            }
            let (name, value) = line.split_once(':').ok_or_else(unreadable)?;
            let is = |known: &str| name.eq_ignore_ascii_case(known);
            let value = value.trim_matches([' ', '\t']);
            if is(LOCATION) {
                set(LOCATION, &mut metadata.content_location, value.to_owned())?;
            } else if is(TYPE) {
                set(TYPE, &mut metadata.content_type, value.to_owned())?;
            } else if is(LENGTH) {
                set(LENGTH, &mut metadata.content_length, number(LENGTH, value)?)?;
            } else if is(ENCODING) {
                set(ENCODING, &mut metadata.content_encoding, encoding(value))?;
            } else if is(SHA1) {
                set(SHA1, &mut metadata.sha1, digest(SHA1, value)?)?;
            } else if is(SHA256) {
                set(SHA256, &mut metadata.sha256, digest(SHA256, value)?)?;
            } else if is(SLICE_COUNT) {
                set(SLICE_COUNT, &mut slice.count, number(SLICE_COUNT, value)?)?;
            } else if is(SLICE_INDEX) {
                set(SLICE_INDEX, &mut slice.index, number(SLICE_INDEX, value)?)?;
            } else if is(SLICE_OFFSET) {
                set(SLICE_OFFSET, &mut slice.offset, number(SLICE_OFFSET, value)?)?;
            } else if is(COMPLETE) {
                set(COMPLETE, &mut complete, flag(COMPLETE, value)?)?;
            } else if is(INSTANCE) {
                set(INSTANCE, &mut metadata.instance_id, number(INSTANCE, value)?)?;
            }
        }
        metadata.slice = slice.slice()?;
        metadata.is_complete = complete.unwrap_or(false);
        Ok(metadata)
    }

    /// The text of a header. Control characters in a value, line breaks included, become blanks.
    /// Otherwise they could begin another entry.
    pub(super) fn emit(&self) -> String {
        let mut text = String::new();
        line(LOCATION, self.content_location.as_ref(), &mut text);
        line(TYPE, self.content_type.as_ref(), &mut text);
        line(LENGTH, self.content_length, &mut text);
        line(ENCODING, self.content_encoding.as_ref(), &mut text);
        line(SHA1, self.sha1.map(|digest| BASE64.encode(&digest)), &mut text);
        line(SHA256, self.sha256.map(|digest| BASE64.encode(&digest)), &mut text);
        line(SLICE_COUNT, self.slice.map(|slice| slice.count), &mut text);
        line(SLICE_INDEX, self.slice.map(|slice| slice.index), &mut text);
        line(SLICE_OFFSET, self.slice.map(|slice| slice.offset), &mut text);
        line(COMPLETE, self.is_complete.then_some(1), &mut text);
        line(INSTANCE, self.instance_id, &mut text);
        text
    }
}

fn line(name: &str, value: Option<impl Display>, text: &mut String) {
    if let Some(value) = value {
        let value = value.to_string().replace(is_control, " ");
        // Writing to a string cannot fail.
        let _ = write!(text, "{name}: {value}\r\n");
    }
}

/// True for characters that a value must not contain (RFC 2616, section 2.2).
fn is_control(c: char) -> bool {
    c.is_control() && c != '\t'
}

/// Sets an entry that may occur once.
fn set<T>(name: &'static str, place: &mut Option<T>, value: T) -> Result<(), FcastError> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(FcastError::Repeated { name }),
    }
}

fn wrong(name: &'static str, value: &str) -> FcastError {
    FcastError::Value { name, value: excerpt(value) }
}

/// Parses decimal digits only; Rust's own parser accepts a sign, too.
fn number<T: FromStr>(name: &'static str, value: &str) -> Result<T, FcastError> {
    let digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    value.parse().ok().filter(|_| digits).ok_or_else(|| wrong(name, value))
}

fn flag(name: &'static str, value: &str) -> Result<bool, FcastError> {
    match value {
        "0" => Ok(false),
        "1" => Ok(true),
        _ => Err(wrong(name, value)),
    }
}

fn digest<const N: usize>(name: &'static str, value: &str) -> Result<[u8; N], FcastError> {
    let bytes = BASE64.decode(value.as_bytes()).ok();
    bytes.and_then(|bytes| bytes.try_into().ok()).ok_or_else(|| wrong(name, value))
}

fn encoding(value: &str) -> FdtContentEncoding {
    match ContentEncoding::from_name(value) {
        Some(encoding) => FdtContentEncoding::Known(encoding),
        None => FdtContentEncoding::Unknown(value.to_owned()),
    }
}
