//! Repair requests: which blocks of a session a receiver lacks symbols of, in a
//! [datagram](crate::feedback) to its collector.
//!
//! ```text
//! offset  bytes
//!     41      4  repair round of the roll call
//!     45      8  serial number of the last roll call that it has received
//!     53      4  microseconds since it has arrived
//!     57      4  packets lost, per million
//!     61      4  microseconds until it may send again
//!     65      1  flags: 1 = it may lack more than it says, 2 = it names symbols
//!     66      1  number of blocks, at most 64
//!     67    12n  for each block, in ascending order: TOI, SBN, symbols that it lacks
//! ```
//!
//! A request that names symbols, of a code whose symbols repeat, has from offset 66 on:
//!
//! ```text
//! offset  bytes
//!     66      1  number of maps, 1 to 17
//!     67    44n  for each map, in ascending order: TOI, SBN, ESI of its first symbol, and a bit
//!                for each of 256 symbols from there on, 1 = it lacks the symbol; the first one
//!                is the highest bit of the first byte, and 1
//! ```

use crate::bytes::Reader;
use crate::feedback::echo::RollCallEcho;
use crate::feedback::error::FeedbackError;
use crate::receiver_id::ReceiverId;

/// Flags of a request.
const MORE: u8 = 1;
const NAMED: u8 = 2;
/// Bytes of a request without blocks.
const LEAST_BYTES: usize = 26;

/// Symbols of a block that a receiver lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BlockNeed {
    /// Transport object identifier of the block's object.
    pub toi: u32,
    /// Source block number.
    pub sbn: u32,
    /// Number of symbols, not 0. Any that the receiver does not have are of use.
    pub symbols: u32,
}

impl BlockNeed {
    /// Bytes of a need.
    pub const SIZE: usize = 12;

    /// Writes a list. Its length precedes it in one byte: more than 255 are cut off.
    pub(crate) fn emit_list(list: &[Self], out: &mut Vec<u8>) {
        let list = list.get(..usize::from(u8::MAX)).unwrap_or(list);
        out.push(list.len() as u8);
        for need in list {
            for field in [need.toi, need.sbn, need.symbols] {
                out.extend(field.to_be_bytes());
            }
        }
    }

    /// Reads a list of at most `most`; `None` if the bytes end too early.
    pub(crate) fn read_list(
        most: usize,
        reader: &mut Reader<'_>,
    ) -> Option<Result<Vec<Self>, FeedbackError>> {
        let count = usize::from(reader.u8()?);
        let mut list: Vec<Self> = Vec::new();
        for _ in 0..count {
            let need = Self { toi: reader.u32()?, sbn: reader.u32()?, symbols: reader.u32()? };
            let is_after =
                list.last().is_none_or(|last| (last.toi, last.sbn) < (need.toi, need.sbn));
            if !is_after || need.symbols == 0 {
                return Some(Err(FeedbackError::Blocks));
            }
            list.push(need);
        }
        Some(if count > most { Err(FeedbackError::Blocks) } else { Ok(list) })
    }
}

/// Symbols of a block that a receiver lacks, by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SymbolMap {
    /// Transport object identifier of the block's object.
    pub toi: u32,
    /// Source block number.
    pub sbn: u32,
    /// Number of the first symbol, which it lacks.
    first: u32,
    /// A bit for each symbol from there on.
    bits: [u8; SymbolMap::SYMBOLS as usize / 8],
}

impl SymbolMap {
    /// Symbols of a map.
    pub const SYMBOLS: u32 = 256;
    /// Bytes of a map.
    pub const SIZE: usize = 12 + Self::SYMBOLS as usize / 8;

    /// A map that begins with this symbol, which is lacking.
    pub fn new(toi: u32, sbn: u32, first: u32) -> Self {
        let mut map = Self { toi, sbn, first, bits: [0; Self::SYMBOLS as usize / 8] };
        map.add(first);
        map
    }

    /// Adds a symbol that is lacking. False if it is outside of the map.
    pub fn add(&mut self, esi: u32) -> bool {
        let Some(at) = esi.checked_sub(self.first) else { return false };
        let Some(byte) = self.bits.get_mut((at / 8) as usize) else { return false };
        *byte |= bit(at % 8);
        true
    }

    /// The symbols that are lacking.
    pub fn symbols(&self) -> impl Iterator<Item = u32> + '_ {
        self.offsets().filter_map(|offset| self.first.checked_add(offset))
    }

    /// The places of the symbols that are lacking, from the first one on.
    fn offsets(&self) -> impl Iterator<Item = u32> + '_ {
        let bytes = (0_u32..).step_by(8).zip(&self.bits);
        bytes.flat_map(|(start, byte)| {
            let set = (0..8_u32).filter(move |&at| byte & bit(at) != 0);
            set.map(move |at| start.saturating_add(at))
        })
    }

    fn emit(&self, out: &mut Vec<u8>) {
        for field in [self.toi, self.sbn, self.first] {
            out.extend(field.to_be_bytes());
        }
        out.extend(self.bits);
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let (toi, sbn, first) = (reader.u32()?, reader.u32()?, reader.u32()?);
        Some(Self { toi, sbn, first, bits: reader.array()? })
    }

    /// Whether the first symbol is lacking, and none has a number that does not exist.
    fn is_valid(&self) -> bool {
        let last = self.offsets().last();
        self.offsets().next() == Some(0)
            && last.is_some_and(|last| self.first.checked_add(last).is_some())
    }
}

/// Bit 0 to 7 of a byte, the highest first.
const fn bit(at: u32) -> u8 {
    0x80_u8.wrapping_shr(at)
}

/// What a receiver asks for in a repair round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepairRequest {
    /// The process.
    pub receiver: ReceiverId,
    /// The round that it answers: needs are those at its start.
    pub round: u32,
    /// The last roll call that it has received.
    pub echo: RollCallEcho,
    /// Packets lost of those sent on its channels, per million.
    pub loss_ppm: u32,
    /// Time in microseconds until it may send again: its user limits it.
    pub mute_us: u32,
    /// It may lack more: of further blocks, or of content that it does not know yet.
    pub may_lack_more: bool,
    /// What it lacks, in ascending order of the blocks. None only if it may lack more.
    pub blocks: Vec<BlockNeed>,
    /// The symbols that it lacks, in ascending order, if they repeat; then there are no `blocks`.
    pub maps: Vec<SymbolMap>,
}

impl RepairRequest {
    /// Most blocks of a request. A receiver that lacks more asks for the first ones.
    pub const MAX_BLOCKS: usize = 64;
    /// Most maps of a request, which are no longer than the most blocks.
    pub const MAX_MAPS: usize = BlockNeed::SIZE * Self::MAX_BLOCKS / SymbolMap::SIZE;
    pub(crate) const MAX_BODY: usize = LEAST_BYTES + BlockNeed::SIZE * Self::MAX_BLOCKS;

    pub(crate) fn emit_body(&self, out: &mut Vec<u8>) {
        out.extend(self.round.to_be_bytes());
        self.echo.emit(out);
        out.extend(self.loss_ppm.to_be_bytes());
        out.extend(self.mute_us.to_be_bytes());
        let named = if self.maps.is_empty() { 0 } else { NAMED };
        out.push(u8::from(self.may_lack_more) | named);
        if !self.maps.is_empty() {
            let maps = self.maps.get(..Self::MAX_MAPS).unwrap_or(&self.maps);
            out.push(maps.len() as u8);
            maps.iter().for_each(|map| map.emit(out));
            return;
        }
        BlockNeed::emit_list(self.blocks.get(..Self::MAX_BLOCKS).unwrap_or(&self.blocks), out);
    }

    /// `None` if the bytes end too early.
    pub(crate) fn read_body(
        receiver: ReceiverId,
        reader: &mut Reader<'_>,
    ) -> Option<Result<Self, FeedbackError>> {
        let round = reader.u32()?;
        let echo = RollCallEcho::read(reader)?;
        let (loss_ppm, mute_us, flags) = (reader.u32()?, reader.u32()?, reader.u8()?);
        if flags & !(MORE | NAMED) != 0 {
            return Some(Err(FeedbackError::Flags(flags)));
        }
        if loss_ppm > 1_000_000 {
            return Some(Err(FeedbackError::Share));
        }
        let may_lack_more = flags & MORE != 0;
        if flags & NAMED != 0 {
            let maps = match read_maps(reader)? {
                Ok(maps) => maps,
                Err(error) => return Some(Err(error)),
            };
            let blocks = Vec::new();
            return Some(Ok(Self {
                receiver,
                round,
                echo,
                loss_ppm,
                mute_us,
                may_lack_more,
                blocks,
                maps,
            }));
        }
        let blocks = match BlockNeed::read_list(Self::MAX_BLOCKS, reader)? {
            Ok(blocks) => blocks,
            Err(error) => return Some(Err(error)),
        };
        if blocks.is_empty() && !may_lack_more {
            return Some(Err(FeedbackError::Blocks));
        }
        let maps = Vec::new();
        Some(Ok(Self { receiver, round, echo, loss_ppm, mute_us, may_lack_more, blocks, maps }))
    }
}

/// Reads maps; `None` if the bytes end too early.
fn read_maps(reader: &mut Reader<'_>) -> Option<Result<Vec<SymbolMap>, FeedbackError>> {
    let count = usize::from(reader.u8()?);
    let mut maps: Vec<SymbolMap> = Vec::new();
    for _ in 0..count {
        let map = SymbolMap::read(reader)?;
        let key = |map: &SymbolMap| (map.toi, map.sbn, map.first);
        let is_after = maps.last().is_none_or(|last| key(last) < key(&map));
        if !is_after || !map.is_valid() {
            return Some(Err(FeedbackError::Blocks));
        }
        maps.push(map);
    }
    let is_allowed = (1..=RepairRequest::MAX_MAPS).contains(&count);
    Some(if is_allowed { Ok(maps) } else { Err(FeedbackError::Blocks) })
}
