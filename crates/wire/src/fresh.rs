//! Fresh symbols: what a server of repair symbols that computes them on request sends.
//!
//! The server has no files of symbols, but an index ([`FreshIndex`]) in place of that of a shelf,
//! and answers requests for symbols of an object ([`FreshRequest`]) with frames ([`FreshFrame`]).
//! Format: `docs/wire.md`, section 17.

use crate::bytes::Reader;
use crate::hash::{Hash, fresh_index_hash};
use crate::shelf::ShelfNumber;
use fontana_fec::{Esi, Sbn};
use std::fmt;

/// The index of a server of fresh symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FreshIndex {
    /// The content: the hash of its manifest.
    pub manifest: Hash,
    /// Where the server's symbols begin.
    pub start: FreshStart,
}

/// The encoding symbol number 0 of each block, as a server has drawn it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FreshStart(u32);

impl FreshStart {
    /// Numbers of symbols in a block, after which they repeat: the upper half of the ESIs.
    pub const SYMBOLS: u32 = 1 << 23;
    /// The lowest ESI of a fresh symbol.
    const LOWEST: u32 = 1 << 23;
    /// After the highest one.
    pub const END: Esi = Esi(1 << 24);
    /// The bits of an ESI by which it is above the lowest one.
    const OFFSET: u32 = (1 << 23) - 1;
    /// ESIs at the beginning of the part of each shelf of which no server draws its start: two
    /// symbols for each source symbol of the largest block.
    const SHELF_ROOM: u32 = 1 << 17;

    /// A start, if it is one of [`FreshStart::SYMBOLS`].
    pub const fn new(Esi(esi): Esi) -> Option<Self> {
        match esi.checked_sub(Self::LOWEST) {
            Some(offset) if offset < Self::SYMBOLS => Some(Self(esi)),
            _ => None,
        }
    }

    /// The start that a server draws: `random` is uniformly distributed. It is not where the
    /// symbols of shelves 8 to 15 begin.
    pub fn draw(random: u64) -> Self {
        let room = u64::from(ShelfNumber::SYMBOLS.saturating_sub(Self::SHELF_ROOM));
        let offset = (random >> 32).checked_rem(room).unwrap_or(0) as u32;
        // The bits of a multiple of the symbols of a shelf.
        let shelf = random as u32 & Self::OFFSET & !ShelfNumber::SYMBOLS.saturating_sub(1);
        Self(Self::LOWEST | shelf.saturating_add(Self::SHELF_ROOM).saturating_add(offset))
    }

    /// The ESI of symbol number 0.
    pub const fn first_esi(self) -> Esi {
        Esi(self.0)
    }

    /// The ESI of a symbol by its number, which counts modulo [`SYMBOLS`](Self::SYMBOLS).
    pub const fn esi(self, number: u32) -> Esi {
        Esi(Self::LOWEST | self.0.wrapping_add(number) & Self::OFFSET)
    }

    /// The number of a symbol by its ESI; `None` if it is not one of a server's.
    pub const fn number(self, Esi(esi): Esi) -> Option<u32> {
        match Self::new(Esi(esi)) {
            Some(_) => Some(esi.wrapping_sub(self.0) & Self::OFFSET),
            None => None,
        }
    }
}

/// Why bytes are no index of a server of fresh symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FreshIndexError {
    /// Another length, or does not begin as an index does.
    #[error("no index of a server of fresh symbols")]
    NotAnIndex,
    /// A version of the format that is not known.
    #[error("an index of version {0}, which this program does not know")]
    Version(u8),
    /// A start that no server draws.
    #[error("an index with an impossible start")]
    Start,
    /// The hash at its end is that of other bytes.
    #[error("a damaged index")]
    Damaged,
}

impl FreshIndex {
    /// Bytes of an index.
    pub const SIZE: usize = 76;
    const MAGIC: [u8; 7] = *b"FONTFSH";
    const VERSION: u8 = 1;

    /// Parses an index.
    ///
    /// # Errors
    /// [`FreshIndexError`].
    pub fn parse(bytes: &[u8]) -> Result<Self, FreshIndexError> {
        let parts = bytes.split_last_chunk::<{ Hash::SIZE }>();
        let (fields, hash) = parts.ok_or(FreshIndexError::NotAnIndex)?;
        let mut reader = Reader::new(fields);
        if reader.array() != Some(Self::MAGIC) {
            return Err(FreshIndexError::NotAnIndex);
        }
        match reader.u8() {
            Some(Self::VERSION) => {}
            Some(other) => return Err(FreshIndexError::Version(other)),
            None => return Err(FreshIndexError::NotAnIndex),
        }
        let mut read = || {
            let start = reader.u32()?;
            let manifest = Hash(reader.array()?);
            reader.is_empty().then_some((start, manifest))
        };
        let (start, manifest) = read().ok_or(FreshIndexError::NotAnIndex)?;
        if fresh_index_hash(fields).0 != *hash {
            return Err(FreshIndexError::Damaged);
        }
        let start = FreshStart::new(Esi(start)).ok_or(FreshIndexError::Start)?;
        Ok(Self { manifest, start })
    }

    /// The bytes of the index.
    pub fn emit(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(Self::SIZE);
        out.extend_from_slice(&Self::MAGIC);
        out.push(Self::VERSION);
        out.extend_from_slice(&self.start.0.to_be_bytes());
        out.extend_from_slice(&self.manifest.0);
        let hash = fresh_index_hash(&out);
        out.extend_from_slice(&hash.0);
        out
    }

    /// The path of an object's symbols in the directory of the server.
    pub fn symbols_path(manifest: Hash, toi: u32) -> String {
        format!("f/{manifest}/{toi}")
    }
}

/// What a client requests of an object: the query of a URL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FreshRequest {
    /// Symbols with smaller numbers are not sent.
    pub start: u32,
    /// How many symbols of which blocks, ascending by block. Empty: symbols of all blocks, without
    /// end.
    pub blocks: Vec<FreshShare>,
}

/// What a client requests of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FreshShare {
    /// The block.
    pub sbn: Sbn,
    /// The number of symbols, 1 to [`FreshRequest::MAX_COUNT`].
    pub count: u32,
    /// Symbols with smaller numbers are not sent.
    pub start: u32,
}

/// Why a query is no request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FreshRequestError {
    /// `start` is not a number of a symbol.
    #[error("start is a number below {}", FreshStart::SYMBOLS)]
    Start,
    /// `blocks` is not a list of blocks.
    #[error("blocks is a list of BLOCK:COUNT or BLOCK:COUNT:START, ascending, separated by commas")]
    Blocks,
    /// A count that no request has.
    #[error("a count is from 1 to {}", FreshRequest::MAX_COUNT)]
    Count,
}

impl FreshRequest {
    /// Most symbols of a block in one request: two for each source symbol of the largest block.
    pub const MAX_COUNT: u32 = 1 << 17;
    /// Most blocks in one request: an object of RaptorQ has 255, and a request line of them has
    /// less than 8 kB.
    pub const MAX_BLOCKS: usize = 256;

    /// Parses a query. Parameters that are not known are ignored; the last one of a name counts.
    ///
    /// # Errors
    /// [`FreshRequestError`].
    pub fn parse(query: &str) -> Result<Self, FreshRequestError> {
        let (mut start, mut list) = (0, None);
        for parameter in query.split('&') {
            match parameter.split_once('=') {
                Some(("start", text)) => start = number(text).ok_or(FreshRequestError::Start)?,
                Some(("blocks", text)) => list = Some(text),
                _ => {}
            }
        }
        let mut blocks: Vec<FreshShare> = Vec::new();
        for item in list.into_iter().flat_map(|list| list.split(',')) {
            let share = share(item, start)?;
            let ascends = blocks.last().is_none_or(|last| last.sbn < share.sbn);
            if !ascends || blocks.len() >= Self::MAX_BLOCKS {
                return Err(FreshRequestError::Blocks);
            }
            blocks.push(share);
        }
        Ok(Self { start, blocks })
    }

    /// Number of symbols; `None` if there is no end.
    pub fn symbols(&self) -> Option<u64> {
        let counts = self.blocks.iter().map(|share| u64::from(share.count));
        (!self.blocks.is_empty()).then(|| counts.fold(0, u64::saturating_add))
    }
}

fn number(text: &str) -> Option<u32> {
    // `parse` takes a sign.
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = is_number.then(|| text.parse::<u32>().ok()).flatten();
    number.filter(|&number| number < FreshStart::SYMBOLS)
}

fn share(item: &str, start: u32) -> Result<FreshShare, FreshRequestError> {
    let mut fields = item.split(':');
    let mut next = || fields.next().map(|text| number(text).ok_or(FreshRequestError::Blocks));
    let sbn = next().ok_or(FreshRequestError::Blocks)??;
    let count = next().ok_or(FreshRequestError::Blocks)??;
    let start = next().transpose()?.unwrap_or(start);
    if fields.next().is_some() {
        return Err(FreshRequestError::Blocks);
    }
    if !(1..=FreshRequest::MAX_COUNT).contains(&count) {
        return Err(FreshRequestError::Count);
    }
    Ok(FreshShare { sbn: Sbn(sbn), count, start })
}

/// The query of a URL.
impl fmt::Display for FreshRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "start={}", self.start)?;
        for (index, share) in self.blocks.iter().enumerate() {
            let before = if index == 0 { "&blocks=" } else { "," };
            write!(f, "{before}{}:{}", share.sbn.0, share.count)?;
            if share.start != self.start {
                write!(f, ":{}", share.start)?;
            }
        }
        Ok(())
    }
}

/// Bytes of a FEC Payload ID of RaptorQ.
const ID_SIZE: usize = 4;

/// A symbol with its FEC Payload ID (RFC 6330, section 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FreshFrame<'a> {
    /// The block.
    pub sbn: Sbn,
    /// The symbol's encoding symbol id.
    pub esi: Esi,
    /// The symbol.
    pub symbol: &'a [u8],
}

impl<'a> FreshFrame<'a> {
    /// Bytes before the symbol.
    pub const ID_SIZE: usize = ID_SIZE;

    /// Parses a frame; `None` if it has no room for an id.
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        let (id, symbol) = bytes.split_first_chunk::<ID_SIZE>()?;
        let id = u32::from_be_bytes(*id);
        Some(Self { sbn: Sbn(id >> 24), esi: Esi(id & 0xff_ffff), symbol })
    }

    /// The id of a symbol: of a block below 256.
    pub const fn id(Sbn(sbn): Sbn, Esi(esi): Esi) -> [u8; ID_SIZE] {
        (sbn << 24 | esi & 0xff_ffff).to_be_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index() -> FreshIndex {
        FreshIndex { manifest: Hash([7; 32]), start: FreshStart::draw(12_345) }
    }

    #[test]
    fn an_index_is_its_bytes_and_any_other_byte_is_an_error() {
        let bytes = index().emit();
        assert_eq!(bytes.len(), FreshIndex::SIZE);
        assert_eq!(FreshIndex::parse(&bytes), Ok(index()));
        for at in 0..bytes.len() {
            let mut other = bytes.clone();
            other[at] ^= 1;
            assert!(FreshIndex::parse(&other).is_err(), "{at}");
            assert!(FreshIndex::parse(&bytes[..at]).is_err(), "{at}");
        }
        let impossible = FreshIndex { start: FreshStart((1 << 23) - 1), ..index() };
        assert_eq!(FreshIndex::parse(&impossible.emit()), Err(FreshIndexError::Start));
        let mut newer = bytes;
        newer[7] = 2;
        assert_eq!(FreshIndex::parse(&newer), Err(FreshIndexError::Version(2)));
    }

    #[test]
    fn a_start_is_in_the_upper_half_and_not_where_a_shelf_begins() {
        for random in [0, 1, 7, 8, u64::MAX, 0x0123_4567_89ab_cdef, 1 << 40] {
            let FreshStart(esi) = FreshStart::draw(random);
            assert!((1 << 23..1 << 24).contains(&esi));
            assert!(esi % ShelfNumber::SYMBOLS >= 1 << 17, "{esi:x}");
            assert!(FreshStart::new(Esi(esi)).is_some());
        }
        assert_eq!(FreshStart::new(Esi((1 << 23) - 1)), None);
        assert_eq!(FreshStart::new(Esi(1 << 24)), None);
    }

    #[test]
    fn numbers_count_on_from_the_end_at_the_lower_bound() {
        let start = FreshStart((1 << 24) - 2);
        let esis = [0, 1, 2, FreshStart::SYMBOLS - 1].map(|number| start.esi(number).0);
        assert_eq!(esis, [(1 << 24) - 2, (1 << 24) - 1, 1 << 23, (1 << 24) - 3]);
        for number in [0, 1, 2, 1_000, FreshStart::SYMBOLS - 1] {
            assert_eq!(start.number(start.esi(number)), Some(number));
        }
        assert_eq!(start.number(Esi(5)), None);
    }

    #[test]
    fn a_request_is_its_query() {
        let share = |sbn, count, start| FreshShare { sbn: Sbn(sbn), count, start };
        let request = FreshRequest { start: 5, blocks: vec![share(0, 500, 5), share(7, 1, 0)] };
        assert_eq!(request.to_string(), "start=5&blocks=0:500,7:1:0");
        assert_eq!(FreshRequest::parse(&request.to_string()), Ok(request.clone()));
        assert_eq!(FreshRequest::parse("blocks=0:500,7:1:0&x=y&start=5"), Ok(request.clone()));
        assert_eq!((request.symbols(), FreshRequest::default().symbols()), (Some(501), None));
        assert_eq!(FreshRequest::parse(""), Ok(FreshRequest::default()));
        assert_eq!(FreshRequest::default().to_string(), "start=0");
    }

    #[test]
    fn other_queries_are_errors() {
        use FreshRequestError::{Blocks, Count, Start};
        for (query, error) in [
            ("start=", Start),
            ("start=-1", Start),
            ("start=+1", Start),
            ("start=8388608", Start),
            ("start=99999999999999999999", Start),
            ("blocks=", Blocks),
            ("blocks=1", Blocks),
            ("blocks=1:2:3:4", Blocks),
            ("blocks=1:2,", Blocks),
            ("blocks=2:2,1:2", Blocks),
            ("blocks=1:2,1:2", Blocks),
            ("blocks=1:0", Count),
            ("blocks=1:131073", Count),
        ] {
            assert_eq!(FreshRequest::parse(query), Err(error), "{query}");
        }
        assert!(FreshRequest::parse("start=8388607&blocks=1:131072").is_ok());
        let all = |count| (0..count).map(|sbn| format!("{sbn}:1")).collect::<Vec<_>>().join(",");
        assert!(FreshRequest::parse(&format!("blocks={}", all(256))).is_ok());
        assert_eq!(FreshRequest::parse(&format!("blocks={}", all(257))), Err(Blocks));
    }

    #[test]
    fn a_frame_has_the_payload_id_of_raptorq() {
        let mut id = Vec::new();
        crate::emit_payload_id(fontana_fec::EncodingId::RAPTORQ, Sbn(200), Esi(0x80_1234), &mut id);
        assert_eq!(FreshFrame::id(Sbn(200), Esi(0x80_1234))[..], id);
        let bytes = [&id[..], b"symbol"].concat();
        let frame = FreshFrame { sbn: Sbn(200), esi: Esi(0x80_1234), symbol: b"symbol" };
        assert_eq!(FreshFrame::parse(&bytes), Some(frame));
        assert_eq!(FreshFrame::parse(&bytes[..3]), None);
    }
}
