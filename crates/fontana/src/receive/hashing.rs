//! Hashes of blocks that are computed while their symbols arrive in order, so that their bytes need
//! not be read from the disk again.

use fontana_proto::BlockId;
use fontana_wire::{BlockHasher, Hash};
use std::collections::BTreeMap;
use std::ops::Range;

/// Blocks that are hashed while they arrive, at most: 2 KiB each. Others are read when they are
/// complete.
const MAX_BLOCKS: usize = 512;

/// Bytes of the first run of a block from which on the block is hashed while it arrives. Hashing
/// short pieces takes several times as long as reading the block again.
const LEAST: u64 = 8 << 10;

/// The hash of the first bytes of a block: those that are on the disk now.
#[derive(Debug, Default)]
pub(super) struct HashedPrefix {
    hasher: BlockHasher,
    length: u64,
}

impl HashedPrefix {
    /// Number of bytes that are hashed.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Adds the next bytes of the block.
    pub(super) fn update(&mut self, bytes: &[u8]) {
        self.hasher.update(bytes);
        self.length += bytes.len() as u64;
    }

    /// The hash of the bytes.
    pub(super) fn finalize(&self) -> Hash {
        self.hasher.finalize()
    }
}

/// The prefixes of blocks that have arrived in order so far.
#[derive(Debug, Default)]
pub(super) struct HashedPrefixes(BTreeMap<BlockId, Box<HashedPrefix>>);

impl HashedPrefixes {
    /// The prefix that has to be updated when `bytes` of the block are written, `of` bytes long. A
    /// prefix that they do not continue is forgotten: they may replace bytes of it.
    pub(super) fn continued(
        &mut self,
        block: BlockId,
        bytes: &Range<u64>,
        of: u64,
    ) -> Option<&mut HashedPrefix> {
        let length = bytes.end.saturating_sub(bytes.start);
        let known = self.0.get(&block).map(|prefix| prefix.length);
        if known != Some(bytes.start) {
            if known.is_some() {
                self.0.remove(&block);
            }
            let begins = bytes.start == 0 && (length >= LEAST || length == of);
            if !begins || self.0.len() >= MAX_BLOCKS {
                return None;
            }
        }
        Some(self.0.entry(block).or_default())
    }

    /// Takes what is hashed of a block.
    pub(super) fn take(&mut self, block: BlockId) -> Box<HashedPrefix> {
        self.0.remove(&block).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fontana_fec::Sbn;
    use fontana_wire::Toi;

    const OF: u64 = 1 << 20;

    fn block(sbn: u32) -> BlockId {
        BlockId { toi: Toi(1), sbn: Sbn(sbn) }
    }

    /// Writes these bytes, all of them `1`; whether they are hashed.
    fn write(prefixes: &mut HashedPrefixes, sbn: u32, bytes: Range<u64>) -> bool {
        let prefix = prefixes.continued(block(sbn), &bytes, OF);
        let is_hashed = prefix.is_some();
        if let Some(prefix) = prefix {
            prefix.update(&vec![1; (bytes.end - bytes.start) as usize]);
        }
        is_hashed
    }

    #[test]
    fn a_block_that_arrives_in_order_is_hashed() {
        let mut prefixes = HashedPrefixes::default();
        assert!(write(&mut prefixes, 0, 0..LEAST));
        assert!(write(&mut prefixes, 0, LEAST..LEAST + 1));
        let prefix = prefixes.take(block(0));
        let mut expected = BlockHasher::new();
        expected.update(&vec![1; LEAST as usize + 1]);
        assert_eq!((prefix.length(), prefix.finalize()), (LEAST + 1, expected.finalize()));
        assert_eq!(prefixes.take(block(0)).length(), 0);
    }

    #[test]
    fn bytes_out_of_order_or_replaced_ones_end_the_prefix() {
        for other in [LEAST + 1..2 * LEAST, 5..LEAST, 0..5] {
            let mut prefixes = HashedPrefixes::default();
            assert!(write(&mut prefixes, 0, 0..LEAST));
            assert!(!write(&mut prefixes, 0, other.clone()), "{other:?}");
            assert!(!write(&mut prefixes, 0, LEAST..2 * LEAST));
            assert_eq!(prefixes.take(block(0)).length(), 0);
        }
        // A prefix that is written again begins again.
        let mut prefixes = HashedPrefixes::default();
        assert!(write(&mut prefixes, 0, 0..2 * LEAST));
        assert!(write(&mut prefixes, 0, 0..LEAST));
        assert_eq!(prefixes.take(block(0)).length(), LEAST);
    }

    #[test]
    fn short_runs_and_too_many_blocks_are_not_hashed() {
        let mut prefixes = HashedPrefixes::default();
        assert!(!write(&mut prefixes, 0, 0..LEAST - 1));
        assert!(prefixes.continued(block(0), &(0..5), 5).is_some(), "the whole block");
        for sbn in 1..MAX_BLOCKS as u32 {
            assert!(write(&mut prefixes, sbn, 0..LEAST));
        }
        assert!(!write(&mut prefixes, MAX_BLOCKS as u32, 0..LEAST));
        assert!(write(&mut prefixes, 1, LEAST..LEAST + 1));
    }
}
