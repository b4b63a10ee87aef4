//! What a mirror that is still receiving holds: its verified blocks.
//!
//! The index takes the place of that of a shelf, and grows until the mirror is complete. Clients
//! request it again. Format: `docs/wire.md`, section 17.

use crate::bytes::Reader;
use crate::hash::{Hash, held_index_hash};
use fontana_fec::Sbn;

/// The index of a mirror that is still receiving.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldIndex {
    /// The content: the hash of its manifest.
    pub manifest: Hash,
    /// The blocks that it has, ascending. Runs of one object neither overlap nor touch.
    pub runs: Vec<HeldRun>,
}

/// Consecutive blocks of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldRun {
    /// The object.
    pub toi: u32,
    /// The first block.
    pub first: Sbn,
    /// The number of blocks, at least 1.
    pub count: u32,
}

impl HeldRun {
    /// The number after that of the last block.
    pub const fn end(&self) -> Option<u32> {
        self.first.0.checked_add(self.count)
    }
}

/// Why bytes are no index of a mirror that is still receiving.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeldIndexError {
    /// Another length, or does not begin as an index does.
    #[error("no index of a mirror that is receiving")]
    NotAnIndex,
    /// A version of the format that is not known.
    #[error("an index of version {0}, which this program does not know")]
    Version(u8),
    /// Empty, unordered or overlapping runs, or more than [`HeldIndex::MAX_RUNS`].
    #[error("an index with impossible runs of blocks")]
    Runs,
    /// The hash at its end is that of other bytes.
    #[error("a damaged index")]
    Damaged,
}

impl HeldIndex {
    /// Most runs: a mirror that has more shows the first ones.
    pub const MAX_RUNS: usize = 1 << 14;
    /// Most bytes of an index.
    pub const MAX_SIZE: usize = 40 + 12 * Self::MAX_RUNS + Hash::SIZE;
    const MAGIC: [u8; 7] = *b"FONTHLD";
    const VERSION: u8 = 1;

    /// The number of blocks.
    pub fn blocks(&self) -> u64 {
        self.runs.iter().fold(0, |sum, run| sum.saturating_add(run.count.into()))
    }

    /// The query by which a client that knows so many blocks asks to be answered when there are
    /// more.
    pub fn query(blocks: u64) -> String {
        format!("after={blocks}")
    }

    /// The number of blocks in a [query](Self::query), if it has one.
    pub fn parse_query(query: &str) -> Option<u64> {
        query.split('&').find_map(|parameter| parameter.strip_prefix("after="))?.parse().ok()
    }

    /// Parses an index.
    ///
    /// # Errors
    /// [`HeldIndexError`].
    pub fn parse(bytes: &[u8]) -> Result<Self, HeldIndexError> {
        let parts = bytes.split_last_chunk::<{ Hash::SIZE }>();
        let (fields, hash) = parts.ok_or(HeldIndexError::NotAnIndex)?;
        let mut reader = Reader::new(fields);
        if reader.array() != Some(Self::MAGIC) {
            return Err(HeldIndexError::NotAnIndex);
        }
        match reader.u8() {
            Some(Self::VERSION) => {}
            Some(other) => return Err(HeldIndexError::Version(other)),
            None => return Err(HeldIndexError::NotAnIndex),
        }
        let manifest = Hash(reader.array().ok_or(HeldIndexError::NotAnIndex)?);
        let mut runs: Vec<HeldRun> = Vec::new();
        while !reader.is_empty() {
            let mut read = || {
                let (toi, first, count) = (reader.u32()?, Sbn(reader.u32()?), reader.u32()?);
                Some(HeldRun { toi, first, count })
            };
            let run = read().ok_or(HeldIndexError::NotAnIndex)?;
            let is_after = |last: &HeldRun| {
                last.toi < run.toi || (last.toi == run.toi && last.end() < Some(run.first.0))
            };
            let is_right = run.count > 0
                && run.end().is_some()
                && runs.len() < Self::MAX_RUNS
                && runs.last().is_none_or(is_after);
            if !is_right {
                return Err(HeldIndexError::Runs);
            }
            runs.push(run);
        }
        if held_index_hash(fields).0 != *hash {
            return Err(HeldIndexError::Damaged);
        }
        Ok(Self { manifest, runs })
    }

    /// The bytes of the index.
    pub fn emit(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend_from_slice(&Self::MAGIC);
        out.push(Self::VERSION);
        out.extend_from_slice(&self.manifest.0);
        for HeldRun { toi, first, count } in &self.runs {
            for number in [*toi, first.0, *count] {
                out.extend_from_slice(&number.to_be_bytes());
            }
        }
        let hash = held_index_hash(&out);
        out.extend_from_slice(&hash.0);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(runs: &[(u32, u32, u32)]) -> HeldIndex {
        let run = |&(toi, first, count)| HeldRun { toi, first: Sbn(first), count };
        HeldIndex { manifest: Hash([7; 32]), runs: runs.iter().map(run).collect() }
    }

    #[test]
    fn an_index_is_its_bytes_and_any_other_byte_is_an_error() {
        let good = index(&[(1, 0, 3), (1, 4, 1), (2, 0, 1)]);
        let bytes = good.emit();
        assert_eq!(HeldIndex::parse(&bytes), Ok(good));
        for at in 0..bytes.len() {
            let mut other = bytes.clone();
            other[at] ^= 1;
            assert!(HeldIndex::parse(&other).is_err(), "{at}");
            assert!(HeldIndex::parse(&bytes[..at]).is_err(), "{at}");
        }
        let mut newer = bytes;
        newer[7] = 2;
        assert_eq!(HeldIndex::parse(&newer), Err(HeldIndexError::Version(2)));
    }

    #[test]
    fn a_query_has_the_number_of_blocks() {
        assert_eq!(index(&[(1, 0, 3), (2, 4, 1)]).blocks(), 4);
        assert_eq!(HeldIndex::parse_query(&HeldIndex::query(4)), Some(4));
        assert_eq!(HeldIndex::parse_query("x=1&after=7"), Some(7));
        assert_eq!(HeldIndex::parse_query("after=x"), None);
    }

    #[test]
    fn runs_ascend_and_do_not_touch() {
        for runs in [
            &[(1, 0, 0)][..],
            &[(1, 0, 2), (1, 2, 1)],
            &[(1, 3, 1), (1, 0, 1)],
            &[(2, 0, 1), (1, 0, 1)],
            &[(1, u32::MAX, 1)],
        ] {
            assert_eq!(
                HeldIndex::parse(&index(runs).emit()),
                Err(HeldIndexError::Runs),
                "{runs:?}"
            );
        }
        assert!(HeldIndex::parse(&index(&[]).emit()).is_ok());
    }

    #[test]
    fn the_number_of_runs_is_bounded() {
        let most = HeldIndex::MAX_RUNS as u32;
        let runs = |count: u32| (0..count).map(|at| (1, 2 * at, 1)).collect::<Vec<_>>();
        let largest = index(&runs(most)).emit();
        assert_eq!(largest.len(), HeldIndex::MAX_SIZE);
        assert!(HeldIndex::parse(&largest).is_ok());
        let larger = index(&runs(most + 1)).emit();
        assert_eq!(HeldIndex::parse(&larger), Err(HeldIndexError::Runs));
    }
}
