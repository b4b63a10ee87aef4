//! The stream index: what a session of unknown length consists of, as far as it has been made.
//!
//! A *stream* is cut into *fragments* as it comes. Each is an object of one source block, whose TOI is
//! its number plus one. The index lists those that are on the air, and grows a version with each; the
//! session head names it in the place of a manifest, and is always signed, because nobody can know
//! beforehand what the bytes will be. `docs/wire.md`, section 11, has the format.

use crate::bytes::Reader;
use crate::hash::Hash;
use crate::id::Toi;
use crate::manifest::MAX_FILE_LENGTH;
use crate::path::{PathError, RelativePath};
use crate::varint;
use fontana_fec::{FecScheme, Oti};
use std::ops::Range;

const MAGIC: &[u8; 7] = b"FONTSTR";
const FORMAT_VERSION: u8 = 1;
/// Symbol alignment of fragments (RFC 6330, section 4.3).
const ALIGNMENT: u8 = 4;
/// Fewest bytes of a listed fragment.
const MIN_FRAGMENT_SIZE: usize = 1 + Hash::SIZE;

/// Whether more is to come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StreamState {
    /// It goes on.
    #[default]
    Open,
    /// The listed fragments are the last ones; the stream is whole with them.
    Ended,
    /// The sender could not go on: nothing follows, and the stream is not whole.
    Broken,
}

/// One fragment, as the index lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// Bytes.
    pub length: u32,
    /// Hash of its only block.
    pub hash: Hash,
}

/// A listed [`Fragment`] with its number and its place in the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedFragment {
    /// Number of the fragment, counted from 0 at the beginning of the stream.
    pub number: u32,
    /// Bytes of the stream that the fragment holds.
    pub range: Range<u64>,
    /// Length and hash.
    pub fragment: Fragment,
}

/// What a stream consists of, from the first fragment on that is still on the air.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamIndex {
    /// As in the head: grows with every change.
    pub version: u64,
    /// One component: what receivers call the file that they make of it.
    pub name: RelativePath,
    /// Whether more is to come.
    pub state: StreamState,
    /// Bytes of a symbol.
    pub symbol_size: u16,
    /// Most source symbols of a fragment.
    pub max_symbols: u32,
    /// Number of the first fragment that is listed.
    pub first: u32,
    /// Bytes of the stream before it.
    pub offset: u64,
    /// Fragments from `first` on.
    pub fragments: Vec<Fragment>,
}

impl StreamIndex {
    /// Fragments that are listed at a time. A sender has about twenty on the air at most.
    pub const MAX_FRAGMENTS: usize = 64;

    /// Most bytes of a fragment.
    pub fn max_length(&self) -> u32 {
        self.max_symbols.saturating_mul(self.symbol_size.into())
    }

    /// Number after the last one that is listed.
    pub fn next(&self) -> u32 {
        self.first.saturating_add(self.fragments.len() as u32)
    }

    /// Bytes of the stream as far as it is listed: all of it, if it has ended.
    pub fn length(&self) -> u64 {
        let listed = self.fragments.iter().map(|fragment| u64::from(fragment.length));
        listed.fold(self.offset, u64::saturating_add)
    }

    /// The object that a fragment is sent as.
    pub fn toi(number: u32) -> Toi {
        Toi::from(number.saturating_add(1))
    }

    /// The fragment that an object is.
    pub fn number(toi: Toi) -> Option<u32> {
        u32::try_from(toi.0).ok()?.checked_sub(1)
    }

    /// How a fragment of `length` bytes is encoded.
    pub fn oti(&self, length: u32) -> Oti {
        let scheme = FecScheme::RaptorQ { source_blocks: 1, sub_blocks: 1, alignment: ALIGNMENT };
        Oti { transfer_length: length.into(), symbol_size: self.symbol_size, scheme }
    }

    /// The listed fragments with their numbers and places in the stream.
    pub fn placed(&self) -> impl Iterator<Item = PlacedFragment> {
        let mut offset = self.offset;
        (0..).zip(&self.fragments).map(move |(index, &fragment)| {
            let number = self.first.saturating_add(index);
            let start = offset;
            offset = offset.saturating_add(fragment.length.into());
            PlacedFragment { number, range: start..offset, fragment }
        })
    }

    /// The bytes of this index.
    pub fn emit(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.push(FORMAT_VERSION);
        varint::emit(self.version, &mut out);
        let name = self.name.as_bytes();
        varint::emit(name.len() as u64, &mut out);
        out.extend(name);
        out.push(match self.state {
            StreamState::Open => 0,
            StreamState::Ended => 1,
            StreamState::Broken => 2,
        });
        out.extend(self.symbol_size.to_be_bytes());
        for number in [self.max_symbols.into(), self.first.into(), self.offset] {
            varint::emit(number, &mut out);
        }
        varint::emit(self.fragments.len() as u64, &mut out);
        for fragment in &self.fragments {
            varint::emit(fragment.length.into(), &mut out);
            out.extend(fragment.hash.0);
        }
        out
    }

    /// Reads an index.
    ///
    /// # Errors
    /// [`StreamError`] if the bytes are not the one encoding of a valid index.
    pub fn parse(bytes: &[u8]) -> Result<Self, StreamError> {
        let mut reader = Reader::new(bytes);
        if reader.take(MAGIC.len()).ok_or(StreamError::Malformed)? != MAGIC {
            return Err(StreamError::Magic);
        }
        match reader.u8().ok_or(StreamError::Malformed)? {
            FORMAT_VERSION => {}
            version => return Err(StreamError::FormatVersion(version)),
        }
        let index = parse_fields(&mut reader).ok_or(StreamError::Malformed)??;
        if !reader.is_empty() {
            return Err(StreamError::TrailingBytes { count: reader.rest().len() });
        }
        index.check()?;
        Ok(index)
    }

    /// Sees that the index keeps the rules that every reader and writer keeps.
    ///
    /// # Errors
    /// [`StreamError`] with the rule that is broken.
    pub fn check(&self) -> Result<(), StreamError> {
        if self.name.components().count() != 1 {
            return Err(StreamError::Name);
        }
        // The longest fragment is one source block, which RaptorQ limits.
        if self.max_symbols == 0 || self.oti(self.max_length()).layout().is_err() {
            let (symbol_size, max_symbols) = (self.symbol_size, self.max_symbols);
            return Err(StreamError::Geometry { symbol_size, max_symbols });
        }
        if self.fragments.len() > Self::MAX_FRAGMENTS {
            return Err(StreamError::TooMany { count: self.fragments.len() as u64 });
        }
        let most = self.max_length();
        for PlacedFragment { number, fragment, .. } in self.placed() {
            if !(1..=most).contains(&fragment.length) {
                return Err(StreamError::Length { number, length: fragment.length, most });
            }
        }
        // No fragment is empty, and each has a TOI of content.
        let before = u64::from(self.first);
        let placed = (before..=before * u64::from(most)).contains(&self.offset);
        let last = Self::toi(self.next()) <= Toi::MANIFEST;
        if !placed || !last || self.length() > MAX_FILE_LENGTH {
            return Err(StreamError::Place { first: self.first, offset: self.offset });
        }
        Ok(())
    }
}

/// `None` if the bytes end too early or an integer is not in its shortest form.
fn parse_fields(reader: &mut Reader<'_>) -> Option<Result<StreamIndex, StreamError>> {
    let version = varint::parse(reader)?;
    let size = usize::try_from(varint::parse(reader)?).ok()?;
    let name = match RelativePath::new(reader.take(size)?) {
        Ok(name) => name,
        Err(error) => return Some(Err(error.into())),
    };
    let state = match reader.u8()? {
        0 => StreamState::Open,
        1 => StreamState::Ended,
        2 => StreamState::Broken,
        state => return Some(Err(StreamError::State(state))),
    };
    let symbol_size = reader.u16()?;
    let max_symbols = u32::try_from(varint::parse(reader)?).ok()?;
    let first = u32::try_from(varint::parse(reader)?).ok()?;
    let offset = varint::parse(reader)?;
    let count = varint::parse(reader)?;
    if count > StreamIndex::MAX_FRAGMENTS as u64 {
        return Some(Err(StreamError::TooMany { count }));
    }
    if reader.rest().len() / MIN_FRAGMENT_SIZE < count as usize {
        return None;
    }
    let mut fragments = Vec::with_capacity(count as usize);
    for _ in 0..count {
        let length = u32::try_from(varint::parse(reader)?).ok()?;
        fragments.push(Fragment { length, hash: Hash(reader.array()?) });
    }
    Some(Ok(StreamIndex {
        version,
        name,
        state,
        symbol_size,
        max_symbols,
        first,
        offset,
        fragments,
    }))
}

/// Why bytes are not a stream index, or a value cannot be one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StreamError {
    /// Not an index at all.
    #[error("not a stream index of Fontana")]
    Magic,
    /// An index from another version.
    #[error("stream index of format {0}, only 1 is known")]
    FormatVersion(u8),
    /// The bytes end too early, or an integer is too large or not in its shortest form.
    #[error("the stream index is malformed")]
    Malformed,
    /// Something follows the last fragment.
    #[error("the stream index is followed by {count} more bytes")]
    TrailingBytes {
        /// How many.
        count: usize,
    },
    /// The name cannot be one.
    #[error("the stream's name: {0}")]
    Path(#[from] PathError),
    /// The name has several components.
    #[error("the stream's name is a path")]
    Name,
    /// Not one of the states there are.
    #[error("the stream is in the unknown state {0}")]
    State(u8),
    /// Symbols or fragments of a size that no block has.
    #[error("fragments of {max_symbols} symbols of {symbol_size} bytes")]
    Geometry {
        /// Bytes of a symbol.
        symbol_size: u16,
        /// Most symbols of a fragment.
        max_symbols: u32,
    },
    /// More fragments than an index lists.
    #[error("{count} fragments are listed, at most {} can be", StreamIndex::MAX_FRAGMENTS)]
    TooMany {
        /// How many.
        count: u64,
    },
    /// A fragment that is empty or longer than the index allows.
    #[error("fragment {number} has {length} bytes; it must have 1 to {most}")]
    Length {
        /// Which one.
        number: u32,
        /// Its bytes.
        length: u32,
        /// Most bytes that it may have.
        most: u32,
    },
    /// The first fragment cannot be where it is said to be, or the last one has no number.
    #[error("fragment {first} cannot begin at byte {offset}")]
    Place {
        /// The first fragment that is listed.
        first: u32,
        /// Bytes before it.
        offset: u64,
    },
}
