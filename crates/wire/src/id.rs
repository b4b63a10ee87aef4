//! Identifiers in a packet header: session, object, congestion control.

use crate::hash::Hash;
use crate::key::PublicKey;
use crate::oti;
use fontana_fec::Oti;
use std::fmt;

const TOI_CONTEXT: &str = "fontana 2026-11 content toi v1";

/// Transport session identifier: together with the sender's address it identifies a session (RFC
/// 5651, section 5.1). At most 48 bits on the wire.
///
/// Sessions are compared by this value, not by its width in a packet. A sender may use 16 bits in
/// one packet and 32 in the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tsi(pub u64);

impl Tsi {
    /// Largest session identifier: 48 bits (RFC 5651, flags S and H).
    pub const MAX: Self = Self((1 << 48) - 1);

    /// Default TSI of a manifest: the first 32 bits of its hash, or 1 if these are 0, which ALC
    /// excludes (RFC 5775, section 2.1). One ticket therefore names all senders of a manifest, and
    /// all runs of them. Their addresses distinguish them.
    pub const fn of_manifest(hash: &Hash) -> Self {
        let [a, b, c, d, ..] = hash.0;
        let number = u32::from_be_bytes([a, b, c, d]) as u64;
        Self(if number == 0 { 1 } else { number })
    }

    /// Default TSI of a publisher whose content changes: the first 32 bits of the BLAKE3 hash of
    /// the key, or 1 if these are 0.
    pub fn of_publisher(key: &PublicKey) -> Self {
        Self::of_manifest(&Hash(*blake3::hash(&key.to_bytes()).as_bytes()))
    }
}

impl fmt::Display for Tsi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Transport object identifier: identifies an object of a session (RFC 5651, section 5.1). At most
/// 112 bits on the wire; compared by value, like [`Tsi`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Toi(pub u128);

impl Toi {
    /// The file delivery table of a FLUTE session (RFC 6726, section 3.1).
    pub const FDT: Self = Self(0);
    /// The session head. Fontana reserves the end of the 32-bit range, which no sender reaches that
    /// numbers its objects from 1.
    pub const HEAD: Self = Self(0xFFFF_FFFF);
    /// The manifest or stream index; next to the head.
    pub const MANIFEST: Self = Self(0xFFFF_FFFE);
    /// Lists of symbol digests ([`DigestList`](crate::DigestList)): not an object, each packet is
    /// one list.
    pub const DIGESTS: Self = Self(0xFFFF_FFFD);
    /// The [roll call](crate::RollCall), with which a sender asks for reports.
    pub const ROLL_CALL: Self = Self(0xFFFF_FFFC);
    /// First of the identifiers that are reserved for control objects. Those from here to the one
    /// before [`ROLL_CALL`](Self::ROLL_CALL) have no meaning yet.
    pub const FIRST_RESERVED: Self = Self(0xFFFF_FFF0);
    /// Largest object identifier: 112 bits (RFC 5651, flags O and H).
    pub const MAX: Self = Self((1 << 112) - 1);

    /// Default TOI of an object in a signed session: 31 bits of a hash of its transmission
    /// information and the hashes of its source blocks, or 1 if these are 0. Objects with different
    /// content therefore have different numbers in all versions of a publisher, and an object that
    /// is in several versions has one number.
    ///
    /// ```
    /// # use fontana_wire::{BlockHasher, Toi};
    /// # use fontana_fec::{FecScheme, Oti, codes::no_code::NoCode};
    /// # let scheme = FecScheme::NoCode(NoCode { max_source_block_length: 64 });
    /// # let oti = Oti { transfer_length: 5, symbol_size: 1400, scheme };
    /// let hash = |bytes: &[u8]| {
    ///     let mut hasher = BlockHasher::new();
    ///     hasher.update(bytes);
    ///     hasher.finalize()
    /// };
    /// let toi = Toi::of_content(&oti, &[hash(b"water")]);
    /// assert_eq!(toi, Toi::of_content(&oti, &[hash(b"water")]));
    /// assert_ne!(toi, Toi::of_content(&oti, &[hash(b"Water")]));
    /// assert!(toi.is_content());
    /// ```
    pub fn of_content(oti: &Oti, block_hashes: &[Hash]) -> Self {
        let mut information = Vec::new();
        oti::emit(oti, &mut information);
        let mut hasher = blake3::Hasher::new_derive_key(TOI_CONTEXT);
        hasher.update(&information);
        for hash in block_hashes {
            hasher.update(&hash.0);
        }
        let [a, b, c, d, ..] = *hasher.finalize().as_bytes();
        Self::from((u32::from_be_bytes([a, b, c, d]) >> 1).max(1))
    }

    /// True for a number that content may have in a Fontana session: from 1 to the number below the
    /// reserved ones.
    pub const fn is_content(self) -> bool {
        self.0 > Self::FDT.0 && self.0 < Self::FIRST_RESERVED.0
    }

    /// True for the number of a control object of a Fontana session.
    pub const fn is_control(self) -> bool {
        self.0 == Self::FDT.0 || (self.0 >= Self::FIRST_RESERVED.0 && self.0 <= Self::HEAD.0)
    }
}

impl From<u32> for Toi {
    fn from(value: u32) -> Self {
        Self(value.into())
    }
}

impl fmt::Display for Toi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Congestion control information: opaque to LCT, 1 to 4 words (RFC 5651, flag C). The value
/// includes its width, because the width is constant in a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cci {
    value: u128,
    words: u8,
}

impl Cci {
    /// A CCI of 32 bits.
    pub const fn from_u32(value: u32) -> Self {
        Self { value: value as u128, words: 1 }
    }

    /// A CCI of `words` 32-bit words; `None` unless there are 1 to 4 of them and `value` fits.
    pub const fn new(value: u128, words: u8) -> Option<Self> {
        match words {
            1..=3 if value >> ((words as u32) << 5) == 0 => Some(Self { value, words }),
            4 => Some(Self { value, words }),
            _ => None,
        }
    }

    /// The value in all its bits.
    pub const fn value(self) -> u128 {
        self.value
    }

    /// The low 32 bits, which are the whole value in a Fontana session.
    pub const fn low32(self) -> u32 {
        self.value as u32
    }

    /// Width on the wire in 32-bit words: 1 to 4.
    pub const fn words(self) -> u8 {
        self.words
    }
}

impl Default for Cci {
    /// 32 zero bits: no congestion control.
    fn default() -> Self {
        Self::from_u32(0)
    }
}
