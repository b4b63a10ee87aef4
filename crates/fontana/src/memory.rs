//! The division of a memory budget. It is the same for every file size: content that exceeds the
//! memory takes more time, not more memory.

use fontana_proto::{StreamRedundancy, StreamSender};

/// Smallest budget of a session: the fixed parts do not fit into less.
pub const MIN_MEMORY: usize = 32 << 20;

/// Default budget.
pub const DEFAULT_MEMORY: usize = 256 << 20;

/// The part for content, without the program itself, its stacks, socket buffers and plans.
pub(crate) const fn usable(memory: usize) -> usize {
    memory - memory / 8
}

/// A sender's shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SenderMemory {
    /// Bytes of prepared symbols and solved blocks.
    content_bytes: usize,
    /// Most bytes of prepared symbols in one planning window; two windows are held.
    pub(crate) round_bytes: usize,
    /// Bytes that each worker may spend to encode a block.
    pub(crate) worker_bytes: usize,
    /// Bytes of lists of symbols in their order: half of what content leaves.
    pub(crate) order_bytes: u64,
}

impl SenderMemory {
    pub(crate) fn of(memory: usize, workers: usize) -> Self {
        let usable = usable(memory.max(MIN_MEMORY));
        Self {
            content_bytes: usable / 4 * 3,
            round_bytes: usable / 4,
            worker_bytes: usable / 4 / workers.max(1),
            order_bytes: (memory.max(MIN_MEMORY) / 16) as u64,
        }
    }

    /// Bytes for solved blocks beside planning windows of `round_bytes`.
    pub(crate) fn solved_bytes(&self, round_bytes: usize) -> usize {
        self.content_bytes.saturating_sub(2 * round_bytes)
    }
}

/// Largest number of bytes of a stream's fragment. The budget holds eight fragments: the data that
/// is read ahead, a fragment that is cut, one that is encoded (twice: as bytes and as intermediate
/// symbols), one that waits, two that are sent, and the repair symbols of those before them. With
/// repair that receivers request, these are at least 30 % of at most 48 fragments, as long as 15.
pub(crate) fn fragment_bytes(memory: usize, redundancy: StreamRedundancy) -> usize {
    let fragments = match redundancy {
        StreamRedundancy::Fixed { .. } => 9,
        StreamRedundancy::Reported { .. } => 23,
    };
    usable(memory.max(MIN_MEMORY)) / fragments
}

/// Repair symbols that are made for requests of fragments of so many bytes, per thousand source
/// symbols: as many as the budget holds, within what is of use.
pub(crate) fn requested_permille(memory: usize, fragment_bytes: usize) -> u32 {
    let others = fragment_bytes.saturating_mul(8);
    let room = usable(memory.max(MIN_MEMORY)).saturating_sub(others);
    let kept = fragment_bytes.max(1).saturating_mul(StreamSender::PENDING_CAPACITY);
    let (least, most) = StreamRedundancy::REQUESTED_PERMILLE.into_inner();
    // At most a thousand times.
    ((room as u64).saturating_mul(1_000) / kept as u64).clamp(least.into(), most.into()) as u32
}

/// A receiver's shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReceiverMemory {
    /// Bytes of received datagrams that wait to be parsed or written.
    pub(crate) datagram_bytes: usize,
    /// Bytes that each worker may spend to recover a block.
    pub(crate) worker_bytes: usize,
    /// Bytes of symbols that arrive before their objects are open, for example while existing files
    /// are compared.
    pub(crate) spool_bytes: usize,
    /// Bytes of decoders that hold more than symbol ids: Tornado's and LT's.
    pub(crate) decoder_bytes: u64,
}

impl ReceiverMemory {
    pub(crate) fn of(memory: usize, workers: usize) -> Self {
        let usable = usable(memory.max(MIN_MEMORY));
        Self {
            datagram_bytes: (usable / 4).min(64 << 20),
            worker_bytes: usable / 2 / workers.max(1),
            spool_bytes: usable / 8,
            decoder_bytes: (usable / 8) as u64,
        }
    }
}

/// The shares of a receiver of a session without a manifest, where any host can name files. They
/// divide those of [`ReceiverMemory`] for early symbols and for decoders: such sessions have few
/// blocks of Tornado or LT, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnlistedMemory {
    /// As in [`ReceiverMemory`].
    pub(crate) spool_bytes: usize,
    /// As in [`ReceiverMemory`].
    pub(crate) decoder_bytes: u64,
    /// Files that are open or were received.
    pub(crate) files: usize,
    /// Source blocks of these.
    pub(crate) blocks: u64,
    /// Bytes of a file delivery table as sent. Four are collected at a time.
    pub(crate) table_bytes: u64,
    /// Bytes of a table after decompression.
    pub(crate) decoded_table_bytes: usize,
    /// Files of a table that is read.
    pub(crate) table_files: usize,
}

/// Bytes of a file that a table names: its description, its geometry, its staged file and spool,
/// and its place in the report.
const FILE_BYTES: usize = 2700;
/// Bytes of a file's description while a table is read.
const DESCRIPTION_BYTES: usize = 400;
/// Bytes of a block without a symbol.
const BLOCK_BYTES: u64 = 200;

/// What a larger budget than the smallest leaves beside [`usable`] and the program itself.
fn spare(memory: usize) -> usize {
    memory.saturating_sub(MIN_MEMORY) / 8
}

impl UnlistedMemory {
    pub(crate) fn of(memory: usize, workers: usize) -> Self {
        let ReceiverMemory { spool_bytes, decoder_bytes, .. } = ReceiverMemory::of(memory, workers);
        let sixteenth = (spool_bytes + decoder_bytes as usize) / 16;
        Self {
            spool_bytes: 2 * sixteenth,
            decoder_bytes: sixteenth as u64,
            files: (5 * sixteenth + spare(memory)) / FILE_BYTES,
            blocks: 4 * sixteenth as u64 / BLOCK_BYTES,
            table_bytes: sixteenth as u64 / 4,
            decoded_table_bytes: sixteenth,
            table_files: 2 * sixteenth / DESCRIPTION_BYTES,
        }
    }
}

/// Smallest number of source symbols per block and window, as a share of the block: a 32nd. A block
/// is encoded again for every visit, so encoding costs at most 32 passes over the content for each
/// pass that is sent. A receiver receives at most 3 % too many symbols of some blocks.
pub(crate) const LEAST_VISIT: u32 = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shares_are_less_than_the_whole() {
        for memory in [0, MIN_MEMORY, 128 << 20, DEFAULT_MEMORY, 8 << 30] {
            for workers in [1, 2, 8] {
                let whole = memory.max(MIN_MEMORY);
                let shares = SenderMemory::of(memory, workers);
                for round_bytes in [0, shares.round_bytes] {
                    let of_content = 2 * round_bytes + shares.solved_bytes(round_bytes);
                    let of_workers = workers * shares.worker_bytes;
                    assert!(of_content + of_workers + shares.order_bytes as usize <= whole);
                }
                let shares = ReceiverMemory::of(memory, workers);
                let ReceiverMemory { datagram_bytes, worker_bytes, .. } = shares;
                let decoder_bytes = shares.decoder_bytes as usize;
                let others = shares.spool_bytes + decoder_bytes;
                assert!(datagram_bytes + workers * worker_bytes + others <= whole);
                let unlisted = UnlistedMemory::of(memory, workers);
                let UnlistedMemory { spool_bytes, files, table_files, .. } = unlisted;
                let of_files = files * FILE_BYTES + table_files * DESCRIPTION_BYTES;
                let of_blocks = unlisted.decoder_bytes + unlisted.blocks * BLOCK_BYTES;
                let of_tables = 4 * unlisted.table_bytes as usize + unlisted.decoded_table_bytes;
                let all = spool_bytes + of_files + of_blocks as usize + of_tables;
                assert!(all <= others + spare(memory));
            }
        }
    }
}
