//! Numbers of command lines.

use std::ops::RangeInclusive;

/// A number in this range.
///
/// # Errors
/// The text, and the range.
pub(crate) fn within(text: &str, range: RangeInclusive<u64>) -> Result<u64, String> {
    let number = text.parse().ok().filter(|number| range.contains(number));
    number
        .ok_or_else(|| format!("{text} is not a number from {} to {}", range.start(), range.end()))
}
