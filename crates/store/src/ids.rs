//! Identifiers of files.

/// The index of a file in the caller's list, from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileIndex(pub u32);
