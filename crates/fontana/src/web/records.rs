//! Which mirror sent what of a block, until the block is verified: so that a mirror that sends
//! wrong bytes is named, also if a block came from several.

use fontana_proto::BlockId;
use fontana_proto::pull::RangeSet;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The symbols of blocks that are not verified.
#[derive(Debug, Default)]
pub(crate) struct Records {
    blocks: BTreeMap<BlockId, Vec<Run>>,
    /// Runs of blocks that were wrong, which are compared with those that come next.
    suspects: BTreeMap<BlockId, Vec<Suspect>>,
}

/// Symbols that arrived together.
#[derive(Debug)]
struct Run {
    mirror: usize,
    esis: Range<u32>,
    hash: blake3::Hash,
}

#[derive(Debug)]
struct Suspect {
    run: Run,
    /// The symbols that came later in its place.
    again: blake3::Hasher,
    hashed: u32,
}

/// Where the symbols of a block came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// All from this mirror.
    One(usize),
    /// All from several mirrors.
    Several,
    /// Not all from mirrors.
    Mixed,
}

impl Records {
    /// Records symbols of a block.
    pub(crate) fn add(&mut self, block: BlockId, mirror: usize, esis: Range<u32>, bytes: &[u8]) {
        if let Some(suspects) = self.suspects.get_mut(&block) {
            for suspect in suspects {
                suspect.compare(&esis, bytes);
            }
        }
        let run = Run { mirror, esis, hash: blake3::hash(bytes) };
        self.blocks.entry(block).or_default().push(run);
    }

    /// Where the symbols of a block of `k` source symbols came from.
    pub(crate) fn origin(&self, block: BlockId, k: u32) -> Origin {
        let Some(runs) = self.blocks.get(&block) else { return Origin::Mixed };
        let esis = runs.iter().map(|run| u64::from(run.esis.start)..u64::from(run.esis.end));
        if esis.collect::<RangeSet>().len() < u64::from(k) {
            return Origin::Mixed;
        }
        let mirrors: BTreeSet<usize> = runs.iter().map(|run| run.mirror).collect();
        match mirrors.first() {
            Some(&mirror) if mirrors.len() == 1 => Origin::One(mirror),
            _ => Origin::Several,
        }
    }

    /// The block is fetched again: the symbols are compared with those that come next.
    pub(crate) fn begin_again(&mut self, block: BlockId) {
        let Some(runs) = self.blocks.remove(&block) else { return };
        // The first ones are compared: those that came later may be part of an attempt that failed.
        self.suspects.entry(block).or_insert_with(|| {
            let again = |run| Suspect { run, again: blake3::Hasher::new(), hashed: 0 };
            runs.into_iter().map(again).collect()
        });
    }

    /// All symbols of the block came from this mirror, and are wrong. It is charged once: they are
    /// not compared with those that come next.
    pub(crate) fn convict(&mut self, block: BlockId, mirror: usize) {
        if let Some(runs) = self.blocks.get_mut(&block) {
            runs.retain(|run| run.mirror != mirror);
        }
        if let Some(suspects) = self.suspects.get_mut(&block) {
            suspects.retain(|suspect| suspect.run.mirror != mirror);
        }
    }

    /// The symbols of a block that these mirrors have sent.
    pub(crate) fn sent_by(&self, block: BlockId, is_of: impl Fn(usize) -> bool) -> Vec<Range<u32>> {
        let runs = self.blocks.get(&block).into_iter().flatten();
        runs.filter(|run| is_of(run.mirror)).map(|run| run.esis.clone()).collect()
    }

    /// The symbols of these mirrors are not part of the block any more.
    pub(crate) fn forget(&mut self, block: BlockId, is_of: impl Fn(usize) -> bool) {
        if let Some(runs) = self.blocks.get_mut(&block) {
            runs.retain(|run| !is_of(run.mirror));
        }
    }

    /// The symbols of an attempt that did not end are forgotten.
    pub(crate) fn forget_attempt(&mut self, block: BlockId) {
        self.blocks.remove(&block);
        for suspect in self.suspects.get_mut(&block).into_iter().flatten() {
            (suspect.again, suspect.hashed) = (blake3::Hasher::new(), 0);
        }
    }

    /// The block is verified. Returns the mirrors that had sent other bytes of it.
    pub(crate) fn on_verified(&mut self, block: BlockId) -> BTreeSet<usize> {
        self.blocks.remove(&block);
        let suspects = self.suspects.remove(&block).unwrap_or_default();
        let wrong = suspects.into_iter().filter(Suspect::is_wrong);
        wrong.map(|suspect| suspect.run.mirror).collect()
    }
}

impl Suspect {
    /// Adds symbols that have arrived in order.
    fn compare(&mut self, esis: &Range<u32>, bytes: &[u8]) {
        let next = self.run.esis.start + self.hashed;
        let end = esis.end.min(self.run.esis.end);
        if esis.start > next || end <= next || esis.is_empty() {
            return;
        }
        // All symbols are of one size, but for the object's last one.
        let size = bytes.len().div_ceil(esis.len());
        let from = (next - esis.start) as usize * size;
        let until = ((end - esis.start) as usize * size).min(bytes.len());
        self.again.update(bytes.get(from..until).unwrap_or_default());
        self.hashed = end - self.run.esis.start;
    }

    fn is_wrong(&self) -> bool {
        let count = self.run.esis.end - self.run.esis.start;
        self.hashed == count && self.again.finalize() != self.run.hash
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fontana_fec::Sbn;
    use fontana_wire::Toi;

    const BLOCK: BlockId = BlockId { toi: Toi(1), sbn: Sbn(0) };

    #[test]
    fn the_mirror_that_sent_other_bytes_is_named() {
        let right: Vec<u8> = (0..100).collect();
        let mut wrong = right.clone();
        wrong[45] ^= 1;
        let mut records = Records::default();
        records.add(BLOCK, 7, 0..4, &wrong[..40]);
        records.add(BLOCK, 8, 4..6, &wrong[40..60]);
        assert_eq!(records.origin(BLOCK, 10), Origin::Mixed);
        records.add(BLOCK, 7, 6..10, &wrong[60..]);
        assert_eq!(records.origin(BLOCK, 10), Origin::Several);
        records.begin_again(BLOCK);
        // An attempt that ends, and another one in other pieces.
        records.add(BLOCK, 9, 0..5, &right[..50]);
        records.forget_attempt(BLOCK);
        records.add(BLOCK, 9, 0..5, &right[..50]);
        records.add(BLOCK, 9, 5..10, &right[50..]);
        assert_eq!(records.origin(BLOCK, 10), Origin::One(9));
        assert_eq!(records.on_verified(BLOCK), BTreeSet::from([8]));
        assert_eq!(records.origin(BLOCK, 10), Origin::Mixed);
    }

    #[test]
    fn a_mirror_that_was_charged_with_a_block_is_not_named_again() {
        let mut records = Records::default();
        for (mirror, byte) in [(7, 1), (8, 2)] {
            records.add(BLOCK, mirror, 0..10, &[byte; 100]);
            records.begin_again(BLOCK);
        }
        records.add(BLOCK, 7, 0..10, &[3; 100]);
        records.convict(BLOCK, 7);
        records.begin_again(BLOCK);
        records.add(BLOCK, 9, 0..10, &[0; 100]);
        assert_eq!(records.on_verified(BLOCK), BTreeSet::new());
    }
}
