//! Names of source blocks and encoding symbols.

/// Encoding symbol identifier: names one encoding symbol of a source block (RFC 5052, section 2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Esi(pub u32);

/// Source block number: names one source block of an object (RFC 5052, section 2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sbn(pub u32);
