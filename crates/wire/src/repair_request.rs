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
//!     65      1  1 = it may lack more than it says, otherwise 0
//!     66      1  number of blocks, at most 64
//!     67    12n  for each block, in ascending order: TOI, SBN, symbols that it lacks
//! ```

use crate::bytes::Reader;
use crate::feedback::echo::RollCallEcho;
use crate::feedback::error::FeedbackError;
use crate::receiver_id::ReceiverId;

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
}

impl RepairRequest {
    /// Most blocks of a request. A receiver that lacks more asks for the first ones.
    pub const MAX_BLOCKS: usize = 64;
    pub(crate) const MAX_BODY: usize = LEAST_BYTES + BlockNeed::SIZE * Self::MAX_BLOCKS;

    pub(crate) fn emit_body(&self, out: &mut Vec<u8>) {
        out.extend(self.round.to_be_bytes());
        self.echo.emit(out);
        out.extend(self.loss_ppm.to_be_bytes());
        out.extend(self.mute_us.to_be_bytes());
        out.push(self.may_lack_more.into());
        BlockNeed::emit_list(self.blocks.get(..Self::MAX_BLOCKS).unwrap_or(&self.blocks), out);
    }

    /// `None` if the bytes end too early.
    pub(crate) fn read_body(
        receiver: ReceiverId,
        reader: &mut Reader<'_>,
    ) -> Option<Result<Self, FeedbackError>> {
        let round = reader.u32()?;
        let echo = RollCallEcho::read(reader)?;
        let (loss_ppm, mute_us, more) = (reader.u32()?, reader.u32()?, reader.u8()?);
        if loss_ppm > 1_000_000 || more > 1 {
            return Some(Err(FeedbackError::Share));
        }
        let blocks = match BlockNeed::read_list(Self::MAX_BLOCKS, reader)? {
            Ok(blocks) => blocks,
            Err(error) => return Some(Err(error)),
        };
        let may_lack_more = more == 1;
        if blocks.is_empty() && !may_lack_more {
            return Some(Err(FeedbackError::Blocks));
        }
        Some(Ok(Self { receiver, round, echo, loss_ppm, mute_us, may_lack_more, blocks }))
    }
}
