//! From when on a receiver uses its mirrors.

use std::time::Duration;

/// From when on a receiver that receives from a group uses its mirrors: the group brings most of
/// the content to all receivers at once, and mirrors what is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WebAfter {
    /// This long after its start.
    Time(Duration),
    /// Once it has this share of the symbols that it needs, in thousandths; or if nothing has
    /// arrived from the group for [`SILENCE`](crate::SILENCE).
    Permille(u32),
}
