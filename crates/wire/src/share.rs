//! What receivers of one site send each other: requests for symbols, and symbols. `docs/wire.md`,
//! section 19. With a group key they are [sealed].
//!
//! ```text
//! offset  bytes
//!      0      2  "FS"
//!      2      1  format: 1
//!      3      1  kind: 0 = request that counts, 1 = request that names symbols,
//!                2 = symbol of a member with a part of the block, 3 = with all of it
//!      4      8  the first bytes of the manifest's hash
//!     12      4  number that the sending member has drawn
//!     16      4  TOI
//!     20      4  SBN
//! ```
//!
//! A request goes on with:
//!
//! ```text
//!     24      4  the member's clock, in microseconds
//!     28      4  the longest round trip that it knows of, in microseconds
//!     32      4  the longest time that it knows of in which a member has read a block and
//!                computed symbols of it, in microseconds
//!     36      4  number of symbols that it lacks; not 0
//!     40      4  kind 1: ESI of the first symbol of the map
//!     44      n  kind 1: a bit for each symbol from there on, 1 = it lacks the symbol; the first
//!                one is the highest bit of the first byte
//! ```
//!
//! A symbol goes on with:
//!
//! ```text
//!     24      4  number of the member whose request it answers
//!     28      4  the clock in that request, and the time since it has arrived
//!     32      4  ESI
//!     36      n  the symbol
//! ```

use crate::bytes::Reader;
use crate::hash::Hash;

pub(crate) mod sealed;

pub(crate) const MAGIC: &[u8; 2] = b"FS";
pub(crate) const FORMAT: u8 = 1;
/// Bytes before the TOI.
pub(crate) const HEADER_BYTES: usize = 16;
const COUNTS: u8 = 0;
const NAMES: u8 = 1;
const OF_PART: u8 = 2;
const OF_WHOLE: u8 = 3;

/// What messages call their content by: the beginning of its manifest's hash. It need not be more:
/// every block is verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ShareContent(pub(crate) [u8; 8]);

impl ShareContent {
    /// These bytes.
    pub fn bytes(self) -> [u8; 8] {
        self.0
    }
}

impl From<Hash> for ShareContent {
    fn from(hash: Hash) -> Self {
        let mut first = [0; 8];
        first.iter_mut().zip(hash.0).for_each(|(to, byte)| *to = byte);
        Self(first)
    }
}

/// A block, as messages name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SharedBlock {
    /// Transport object identifier of the block's object.
    pub toi: u32,
    /// Source block number.
    pub sbn: u32,
}

/// Symbols of a block that a member lacks, by their numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingSymbols {
    first: u32,
    bits: Vec<u8>,
}

impl MissingSymbols {
    /// Most symbols from the first to the last one: the map of a block of 10 000 fits a datagram on
    /// Ethernet.
    pub const MAX_SPAN: u32 = 10_240;

    /// The map of some symbols, given in ascending order: those within [`MAX_SPAN`](Self::MAX_SPAN)
    /// of the first one. `None` if there are none.
    pub fn of(symbols: impl IntoIterator<Item = u32>) -> Option<Self> {
        let mut symbols = symbols.into_iter();
        let first = symbols.next()?;
        let mut map = Self { first, bits: vec![bit(0)] };
        for esi in symbols {
            let Some(at) = esi.checked_sub(first).filter(|&at| at < Self::MAX_SPAN) else { break };
            let byte = (at / 8) as usize;
            if byte >= map.bits.len() {
                map.bits.resize(byte.saturating_add(1), 0);
            }
            if let Some(byte) = map.bits.get_mut(byte) {
                *byte |= bit(at % 8);
            }
        }
        Some(map)
    }

    /// The symbols, in ascending order.
    pub fn symbols(&self) -> impl Iterator<Item = u32> + '_ {
        let bytes = (0_u32..).step_by(8).zip(&self.bits);
        let offsets = bytes.flat_map(|(start, byte)| {
            let set = (0..8_u32).filter(move |&at| byte & bit(at) != 0);
            set.map(move |at| start.saturating_add(at))
        });
        offsets.filter_map(|offset| self.first.checked_add(offset))
    }

    /// The first symbol that it has named.
    pub fn first(&self) -> u32 {
        self.first
    }

    /// Whether a symbol is in the map.
    pub fn contains(&self, esi: u32) -> bool {
        let at = esi.checked_sub(self.first);
        let byte = at.and_then(|at| Some((at, self.bits.get((at / 8) as usize)?)));
        byte.is_some_and(|(at, byte)| byte & bit(at % 8) != 0)
    }

    /// Removes a symbol. False if it was not in the map. What is left may be nothing.
    pub fn remove(&mut self, esi: u32) -> bool {
        let Some(at) = esi.checked_sub(self.first) else { return false };
        let Some(byte) = self.bits.get_mut((at / 8) as usize) else { return false };
        let was_there = *byte & bit(at % 8) != 0;
        *byte &= !bit(at % 8);
        was_there
    }

    fn read(reader: &mut Reader<'_>) -> Option<Result<Self, ShareError>> {
        let first = reader.u32()?;
        let bits = reader.take(reader.rest().len())?.to_vec();
        let fits = bits.len() <= Self::MAX_SPAN as usize / 8;
        let ends = bits.last().is_some_and(|&last| last != 0);
        let begins = bits.first().is_some_and(|&byte| byte & bit(0) != 0);
        let exist = first.checked_add(Self::MAX_SPAN).is_some();
        Some(match fits && begins && ends && exist {
            true => Ok(Self { first, bits }),
            false => Err(ShareError::Map),
        })
    }
}

/// Bit 0 to 7 of a byte, the highest first.
const fn bit(at: u32) -> u8 {
    0x80_u8.wrapping_shr(at)
}

/// A request for symbols of one block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShareRequest {
    /// The member's clock, in microseconds; where it begins is of no meaning to others.
    pub clock_us: u32,
    /// The longest round trip that the member knows of, in microseconds.
    pub round_trip_us: u32,
    /// The longest time that it knows of in which a member has read a block and computed symbols of
    /// it, in microseconds.
    pub read_us: u32,
    /// Symbols that it lacks; not 0.
    pub lacking: u32,
    /// Which of them it lacks. `None`: any will do that it does not have, and a member has all of
    /// the block.
    pub missing: Option<MissingSymbols>,
}

/// A symbol that answers a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShareSymbol<'a> {
    /// The member has all of the block.
    pub has_block: bool,
    /// The member whose request it answers.
    pub to: u32,
    /// The clock of that member when the request was sent, and the time since it has arrived.
    pub echo_us: u32,
    /// Encoding symbol ID.
    pub esi: u32,
    /// The symbol.
    pub bytes: &'a [u8],
}

/// What a message is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShareBody<'a> {
    /// A member lacks symbols.
    Request(ShareRequest),
    /// A member has a symbol.
    Symbol(ShareSymbol<'a>),
}

/// A message among the receivers of one site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShareMessage<'a> {
    /// The content.
    pub content: ShareContent,
    /// A number that the sending member has drawn when it began.
    pub member: u32,
    /// The block.
    pub block: SharedBlock,
    /// The rest.
    pub body: ShareBody<'a>,
}

/// Why bytes are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShareError {
    /// They do not begin as one.
    #[error("no message of a receiver that shares")]
    Magic,
    /// A format or a kind of message that is not known.
    #[error("format {format}, kind {kind} of a message is not known")]
    Unknown {
        /// The format.
        format: u8,
        /// The kind.
        kind: u8,
    },
    /// They end too early.
    #[error("{actual} bytes are too few for a message")]
    Truncated {
        /// Number of bytes.
        actual: usize,
    },
    /// Bytes follow the message.
    #[error("bytes follow a request")]
    TrailingBytes,
    /// A request for nothing.
    #[error("a request for no symbol")]
    Nothing,
    /// A map of symbols that is too long, or does not begin and end with one that is lacking.
    #[error("a map of symbols that is too long, or that names none")]
    Map,
}

impl<'a> ShareMessage<'a> {
    /// Bytes before a symbol.
    pub const SYMBOL_HEADER: usize = 36;

    /// Appends the message.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let kind = match &self.body {
            ShareBody::Request(ShareRequest { missing: None, .. }) => COUNTS,
            ShareBody::Request(ShareRequest { missing: Some(_), .. }) => NAMES,
            ShareBody::Symbol(symbol) if symbol.has_block => OF_WHOLE,
            ShareBody::Symbol(_) => OF_PART,
        };
        out.extend(MAGIC);
        out.extend([FORMAT, kind]);
        out.extend(self.content.0);
        let mut put = |fields: &[u32]| {
            fields.iter().for_each(|field| out.extend(field.to_be_bytes()));
        };
        put(&[self.member, self.block.toi, self.block.sbn]);
        match &self.body {
            ShareBody::Request(request) => {
                put(&[request.clock_us, request.round_trip_us, request.read_us, request.lacking]);
                if let Some(missing) = &request.missing {
                    put(&[missing.first]);
                    out.extend(&missing.bits);
                }
            }
            ShareBody::Symbol(symbol) => {
                put(&[symbol.to, symbol.echo_us, symbol.esi]);
                out.extend(symbol.bytes);
            }
        }
    }

    /// Reads a message.
    ///
    /// # Errors
    /// [`ShareError`].
    pub fn parse(datagram: &'a [u8]) -> Result<Self, ShareError> {
        let mut reader = Reader::new(datagram);
        if reader.array() != Some(*MAGIC) {
            return Err(ShareError::Magic);
        }
        let truncated = ShareError::Truncated { actual: datagram.len() };
        Self::read(&mut reader).unwrap_or(Err(truncated))
    }

    /// `None` if the bytes end too early.
    fn read(reader: &mut Reader<'a>) -> Option<Result<Self, ShareError>> {
        let (format, kind) = (reader.u8()?, reader.u8()?);
        if format != FORMAT || kind > OF_WHOLE {
            return Some(Err(ShareError::Unknown { format, kind }));
        }
        let content = ShareContent(reader.array()?);
        let member = reader.u32()?;
        let block = SharedBlock { toi: reader.u32()?, sbn: reader.u32()? };
        let body = match kind {
            COUNTS | NAMES => match read_request(reader, kind == NAMES)? {
                Ok(request) => ShareBody::Request(request),
                Err(error) => return Some(Err(error)),
            },
            _ => ShareBody::Symbol(ShareSymbol {
                has_block: kind == OF_WHOLE,
                to: reader.u32()?,
                echo_us: reader.u32()?,
                esi: reader.u32()?,
                bytes: reader.rest(),
            }),
        };
        Some(Ok(Self { content, member, block, body }))
    }
}

fn read_request(reader: &mut Reader<'_>, names: bool) -> Option<Result<ShareRequest, ShareError>> {
    let (clock_us, round_trip_us) = (reader.u32()?, reader.u32()?);
    let (read_us, lacking) = (reader.u32()?, reader.u32()?);
    if lacking == 0 {
        return Some(Err(ShareError::Nothing));
    }
    let missing = match names {
        true => match MissingSymbols::read(reader)? {
            Ok(missing) => Some(missing),
            Err(error) => return Some(Err(error)),
        },
        false => None,
    };
    if !reader.is_empty() {
        return Some(Err(ShareError::TrailingBytes));
    }
    Some(Ok(ShareRequest { clock_us, round_trip_us, read_us, lacking, missing }))
}
