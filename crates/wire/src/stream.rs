//! The stream index: the fragments of a session of unknown length that exist so far.

use crate::bytes::Reader;
use crate::hash::Hash;
use crate::id::Toi;
use crate::manifest::MAX_FILE_LENGTH;
use crate::path::{PathError, RelativePath};
use crate::varint;
use fontana_fec::codes::raptorq::RaptorQ;
use fontana_fec::{FecScheme, Oti};
use std::ops::Range;

const MAGIC: &[u8; 7] = b"FONTSTR";
const FORMAT_VERSION: u8 = 1;
/// Symbol alignment of fragments (RFC 6330, section 4.3).
const ALIGNMENT: u8 = 4;
/// Size in bytes of the shortest listed fragment.
const MIN_FRAGMENT_SIZE: usize = 1 + Hash::SIZE;

/// State of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StreamState {
    /// More fragments follow.
    #[default]
    Open,
    /// The listed fragments are the last ones, and the stream is complete.
    Ended,
    /// The sender failed: no fragment follows, and the stream is incomplete.
    Broken,
}

/// One fragment as listed in the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// Length in bytes.
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

/// The fragments of a stream, from the first one that is still being sent.
///
/// A *stream* is cut into *fragments* as it is produced. Each is an object of one source block; its
/// TOI is its number plus one. The index lists the fragments that are being sent. Each new fragment
/// makes a new version of the index. The session head names the index in place of a manifest, and
/// is always signed, because no hash of the content exists beforehand. `docs/wire.md`, section 11,
/// describes the format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamIndex {
    /// Version of the index, as in the head. It grows with every change.
    pub version: u64,
    /// Name of the file that receivers write: one component.
    pub name: RelativePath,
    /// State of the stream.
    pub state: StreamState,
    /// Size of a symbol in bytes.
    pub symbol_size: u16,
    /// Largest number of source symbols of a fragment.
    pub max_symbols: u32,
    /// Number of the first listed fragment.
    pub first: u32,
    /// Length of the stream before that fragment, in bytes.
    pub offset: u64,
    /// Fragments from number `first` on.
    pub fragments: Vec<Fragment>,
}

impl StreamIndex {
    /// Largest number of listed fragments. A sender sends about twenty at a time at most.
    pub const MAX_FRAGMENTS: usize = 64;

    /// Longest fragment in bytes.
    pub fn max_length(&self) -> u32 {
        self.max_symbols.saturating_mul(self.symbol_size.into())
    }

    /// Number of the fragment after the last listed one.
    pub fn next(&self) -> u32 {
        self.first.saturating_add(self.fragments.len() as u32)
    }

    /// Length in bytes of the stream up to the last listed fragment: all of it, if it has ended.
    pub fn length(&self) -> u64 {
        let listed = self.fragments.iter().map(|fragment| u64::from(fragment.length));
        listed.fold(self.offset, u64::saturating_add)
    }

    /// Object number of a fragment.
    pub fn toi(number: u32) -> Toi {
        Toi::from(number.saturating_add(1))
    }

    /// Number of the fragment with this object number; `None` if it is not one of a fragment.
    pub fn number(toi: Toi) -> Option<u32> {
        u32::try_from(toi.0).ok()?.checked_sub(1)
    }

    /// Transmission information of a fragment of `length` bytes.
    pub fn oti(&self, length: u32) -> Oti {
        let scheme =
            FecScheme::RaptorQ(RaptorQ { source_blocks: 1, sub_blocks: 1, alignment: ALIGNMENT });
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

    /// The encoding of this index.
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

    /// Parses an index.
    ///
    /// # Errors
    /// [`StreamError`] if the bytes are not the encoding of a valid index.
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

    /// Checks the rules that parser and emitter share.
    ///
    /// # Errors
    /// [`StreamError`] names the violated rule.
    pub fn check(&self) -> Result<(), StreamError> {
        if self.name.components().count() != 1 {
            return Err(StreamError::Name);
        }
        // The longest fragment is one source block, whose size RaptorQ limits.
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
        let placed = (before..=before.saturating_mul(most.into())).contains(&self.offset);
        let last = Self::toi(self.next()) <= Toi::FIRST_RESERVED;
        if !placed || !last || self.length() > MAX_FILE_LENGTH {
            return Err(StreamError::Place { first: self.first, offset: self.offset });
        }
        Ok(())
    }
}

/// Parses the fields after the version of the format; `None` if the bytes end too early or an
/// integer is not in its shortest form.
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

/// Reason why bytes are not a stream index, or why a value is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StreamError {
    /// Bytes that do not begin as an index.
    #[error("not a stream index of Fontana")]
    Magic,
    /// An unknown version of the format.
    #[error("stream index of format {0}, only 1 is known")]
    FormatVersion(u8),
    /// Bytes that end too early, or an integer that is too large or not in its shortest form.
    #[error("the stream index is malformed")]
    Malformed,
    /// Bytes after the last fragment.
    #[error("the stream index is followed by {count} more bytes")]
    TrailingBytes {
        /// Number of bytes.
        count: usize,
    },
    /// An invalid name.
    #[error("the stream's name: {0}")]
    Path(#[from] PathError),
    /// A name of several components.
    #[error("the stream's name is a path")]
    Name,
    /// An unknown state.
    #[error("the stream is in the unknown state {0}")]
    State(u8),
    /// A size of symbols or fragments that no block has.
    #[error("fragments of {max_symbols} symbols of {symbol_size} bytes")]
    Geometry {
        /// Size of a symbol in bytes.
        symbol_size: u16,
        /// Largest number of symbols of a fragment.
        max_symbols: u32,
    },
    /// Too many fragments.
    #[error("{count} fragments are listed, at most {} can be", StreamIndex::MAX_FRAGMENTS)]
    TooMany {
        /// Number of fragments.
        count: u64,
    },
    /// A fragment that is empty or longer than the index allows.
    #[error("fragment {number} has {length} bytes; it must have 1 to {most}")]
    Length {
        /// Number of the fragment.
        number: u32,
        /// Its length in bytes.
        length: u32,
        /// Largest length in bytes.
        most: u32,
    },
    /// An offset that the first fragment cannot have, or a last fragment beyond the object numbers.
    #[error("fragment {first} cannot begin at byte {offset}")]
    Place {
        /// Number of the first listed fragment.
        first: u32,
        /// Offset of that fragment in bytes.
        offset: u64,
    },
}
