//! The carousel instance descriptor: the list of objects that a session currently carries (RFC
//! 6968, sections 2.2 and 3.5).

use super::compound::{Compound, CompoundHeader, decode};
use super::error::{FcastError, excerpt};
use super::metadata::CompoundMetadata;
use crate::content::ContentEncoding;
use crate::fdt::{FdtContentEncoding, MAX_FILES};
use crate::id::Toi;
use std::fmt::Write as _;
use std::ops::RangeInclusive;

/// A set of objects that are sent together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CarouselInstance {
    /// True if no later instance will list an object that this one or an earlier one has not
    /// listed.
    pub is_complete: bool,
    /// Number of the instance, if it has one: counts from 0, one for each instance of the session.
    pub id: Option<u64>,
    /// Ranges of objects, ascending, disjoint and not empty. One object is the range `a..=a`.
    pub objects: Vec<RangeInclusive<Toi>>,
    /// Objects that were sent earlier under other numbers, ascending by their new number. The new
    /// number may be in `objects` too.
    pub equivalences: Vec<Equivalence>,
}

/// An object with a new number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Equivalence {
    /// Its number in this instance.
    pub toi: Toi,
    /// Its number in the instance that first listed it.
    pub first_toi: Toi,
    /// Number of that instance.
    pub first_instance: u64,
}

impl CarouselInstance {
    /// Largest number of elements of a list: that of the files that a receiver takes from a
    /// session.
    pub const MAX_ELEMENTS: usize = MAX_FILES;

    /// Reads the object of a descriptor. The elements may be in any order.
    ///
    /// # Errors
    /// [`FcastError`].
    pub fn parse(metadata: &CompoundMetadata, data: &[u8]) -> Result<Self, FcastError> {
        let decoded;
        let limit = Compound::MAX_LIST_SIZE;
        let list = match &metadata.content_encoding {
            None | Some(FdtContentEncoding::Known(ContentEncoding::Null)) => data,
            Some(FdtContentEncoding::Known(encoding)) if !data.is_empty() => {
                decoded = decode(*encoding, data, limit, "the FCAST object list")?;
                &decoded
            }
            Some(FdtContentEncoding::Known(_)) => data,
            Some(FdtContentEncoding::Unknown(name)) => {
                let reason = format!("its content encoding {:?} is not known", excerpt(name));
                let what = "the FCAST object list";
                return Err(FcastError::ContentEncoding { what, reason });
            }
        };
        if list.len() > limit {
            return Err(FcastError::Limit { what: "bytes of FCAST object list", limit });
        }
        let mut instance =
            Self { is_complete: metadata.is_complete, id: metadata.instance_id, ..Self::default() };
        // A NUL may mark the end.
        let list = list.strip_suffix(&[0]).unwrap_or(list);
        if list.is_empty() {
            return Ok(instance);
        }
        for (index, element) in list.split(|&byte| byte == b',').enumerate() {
            if index >= Self::MAX_ELEMENTS {
                let limit = Self::MAX_ELEMENTS;
                return Err(FcastError::Limit { what: "elements of an FCAST object list", limit });
            }
            instance.element(element)?;
        }
        instance.sort()?;
        Ok(instance)
    }

    fn element(&mut self, element: &[u8]) -> Result<(), FcastError> {
        let text = str::from_utf8(element).unwrap_or("\u{fffd}");
        let wrong = || FcastError::Element { element: excerpt(text) };
        if let Some(inner) = text.strip_prefix('(').and_then(|text| text.strip_suffix(')')) {
            let equivalence = || {
                let (new, first) = inner.split_once('=')?;
                let (toi, instance) = first.split_once('/')?;
                Some(Equivalence {
                    toi: parse_toi(new)?,
                    first_toi: parse_toi(toi)?,
                    first_instance: parse_number(instance)?.try_into().ok()?,
                })
            };
            self.equivalences.push(equivalence().ok_or_else(wrong)?);
            return Ok(());
        }
        let range = || match text.split_once('-') {
            None => parse_toi(text).map(|toi| toi..=toi),
            Some((first, last)) => {
                let (first, last) = parse_toi(first).zip(parse_toi(last))?;
                (first < last).then_some(first..=last)
            }
        };
        self.objects.push(range().ok_or_else(wrong)?);
        Ok(())
    }

    /// Sorts the elements, which brings repeated ones together, and refuses repetitions.
    fn sort(&mut self) -> Result<(), FcastError> {
        self.objects.sort_unstable_by_key(|range| *range.start());
        for (before, after) in self.objects.iter().zip(self.objects.iter().skip(1)) {
            if before.end() >= after.start() {
                return Err(FcastError::RepeatedToi(*after.start()));
            }
        }
        self.equivalences.sort_unstable();
        for (before, after) in self.equivalences.iter().zip(self.equivalences.iter().skip(1)) {
            if before.toi == after.toi {
                return Err(FcastError::RepeatedToi(after.toi));
            }
        }
        Ok(())
    }

    /// True if the instance lists an object under this number.
    pub fn lists(&self, toi: Toi) -> bool {
        let at = self.objects.partition_point(|range| *range.end() < toi);
        self.objects.get(at).is_some_and(|range| range.contains(&toi))
            || self.equivalences.binary_search_by_key(&toi, |e| e.toi).is_ok()
    }

    /// The whole compound object of the descriptor.
    pub fn emit(&self) -> Vec<u8> {
        let metadata = CompoundMetadata {
            is_complete: self.is_complete,
            instance_id: self.id,
            ..CompoundMetadata::default()
        };
        CompoundHeader::Descriptor(metadata).with_data(self.list().as_bytes())
    }

    fn list(&self) -> String {
        let mut list = String::new();
        for range in &self.objects {
            let (first, last) = (range.start(), range.end());
            // Writing to a string cannot fail.
            let _ = match first == last {
                true => write!(list, "{first},"),
                false => write!(list, "{first}-{last},"),
            };
        }
        for Equivalence { toi, first_toi, first_instance } in &self.equivalences {
            let _ = write!(list, "({toi}={first_toi}/{first_instance}),");
        }
        list.pop();
        list
    }
}

fn parse_toi(text: &str) -> Option<Toi> {
    parse_number(text).map(Toi).filter(|toi| *toi <= Toi::MAX)
}

/// Parses decimal digits only; Rust's own parser accepts a sign, too.
fn parse_number(text: &str) -> Option<u128> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits)
}
