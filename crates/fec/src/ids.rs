//! Identifiers of FEC schemes, source blocks and encoding symbols.

/// FEC Encoding ID: identifies a FEC scheme, and with it the formats of its parameters and of its
/// payload ids (RFC 5052, section 9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EncodingId(pub u8);

impl EncodingId {
    /// Compact No-Code (RFC 5445, section 3).
    pub const NO_CODE: Self = Self(0);
    /// Raptor (RFC 5053).
    pub const RAPTOR: Self = Self(1);
    /// Reed-Solomon over GF(2^8) (RFC 5510).
    pub const RFC_5510: Self = Self(5);
    /// RaptorQ (RFC 6330).
    pub const RAPTORQ: Self = Self(6);
    /// Small Block, Large Block and Expandable FEC Codes (RFC 5445, section 4), distinguished by a
    /// FEC Instance ID.
    pub const EXPANDABLE: Self = Self(128);
    /// Small Block Systematic FEC Codes (RFC 5445, section 5), distinguished by a FEC Instance ID.
    pub const SMALL_BLOCK: Self = Self(129);
}

impl core::fmt::Display for EncodingId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.fmt(f)
    }
}

/// Encoding symbol identifier: identifies an encoding symbol of a source block (RFC 5052, section
/// 2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Esi(pub u32);

/// Source block number: identifies a source block of an object (RFC 5052, section 2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sbn(pub u32);
