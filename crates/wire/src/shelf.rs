//! Shelves: repair symbols in files, for web servers.
//!
//! A shelf is a directory with an index, and a file of symbols for each object of a manifest.
//! Format: `docs/wire.md`, section 16. The place of every symbol follows from the index and the
//! manifest, so that one request reads any range of symbols.

use crate::bytes::Reader;
use crate::hash::{Hash, shelf_index_hash};
use std::fmt;
use std::ops::Range;

/// The number of a shelf: shelves with different numbers have no symbol in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShelfNumber(u8);

impl ShelfNumber {
    /// Encoding symbols between the first ones of two shelves with consecutive numbers.
    pub const SYMBOLS: u32 = 1 << 20;
    /// The largest number: the ESI of RaptorQ has 24 bits.
    pub const MAX: u8 = 15;

    /// A number from 1 to [`MAX`](Self::MAX); `None` for others.
    pub const fn new(number: u8) -> Option<Self> {
        if number >= 1 && number <= Self::MAX { Some(Self(number)) } else { None }
    }

    /// The number.
    pub const fn get(self) -> u8 {
        self.0
    }

    /// The first encoding symbol of each block.
    pub const fn first_esi(self) -> u32 {
        (self.0 as u32).saturating_mul(Self::SYMBOLS)
    }
}

impl fmt::Display for ShelfNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The index of a shelf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShelfIndex {
    /// The content: the hash of its manifest.
    pub manifest: Hash,
    /// The number of the shelf.
    pub number: ShelfNumber,
    /// Symbols of a block for each thousand source symbols.
    pub stretch_permille: u16,
}

/// Why bytes are no index of a shelf.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShelfIndexError {
    /// Another length, or does not begin as an index does.
    #[error("no index of a shelf")]
    NotAnIndex,
    /// A version of the format that is not known.
    #[error("an index of version {0}, which this program does not know")]
    Version(u8),
    /// A number or a stretch that no shelf has.
    #[error("an index with impossible fields")]
    Fields,
    /// The hash at its end is that of other bytes.
    #[error("a damaged index")]
    Damaged,
}

impl ShelfIndex {
    /// Bytes of an index.
    pub const SIZE: usize = 75;
    const MAGIC: [u8; 7] = *b"FONTSHL";
    const VERSION: u8 = 1;

    /// Parses an index.
    ///
    /// # Errors
    /// [`ShelfIndexError`].
    pub fn parse(bytes: &[u8]) -> Result<Self, ShelfIndexError> {
        let parts = bytes.split_last_chunk::<{ Hash::SIZE }>();
        let (fields, hash) = parts.ok_or(ShelfIndexError::NotAnIndex)?;
        let mut reader = Reader::new(fields);
        if reader.array() != Some(Self::MAGIC) {
            return Err(ShelfIndexError::NotAnIndex);
        }
        match reader.u8() {
            Some(Self::VERSION) => {}
            Some(other) => return Err(ShelfIndexError::Version(other)),
            None => return Err(ShelfIndexError::NotAnIndex),
        }
        let mut read = || {
            let number = reader.u8()?;
            let stretch_permille = reader.u16()?;
            let manifest = Hash(reader.array()?);
            reader.is_empty().then_some((number, stretch_permille, manifest))
        };
        let (number, stretch_permille, manifest) = read().ok_or(ShelfIndexError::NotAnIndex)?;
        if shelf_index_hash(fields).0 != *hash {
            return Err(ShelfIndexError::Damaged);
        }
        let number = ShelfNumber::new(number).filter(|_| stretch_permille > 0);
        let number = number.ok_or(ShelfIndexError::Fields)?;
        Ok(Self { manifest, number, stretch_permille })
    }

    /// The bytes of the index.
    pub fn emit(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(Self::SIZE);
        out.extend_from_slice(&Self::MAGIC);
        out.extend_from_slice(&[Self::VERSION, self.number.0]);
        out.extend_from_slice(&self.stretch_permille.to_be_bytes());
        out.extend_from_slice(&self.manifest.0);
        let hash = shelf_index_hash(&out);
        out.extend_from_slice(&hash.0);
        out
    }

    /// The name of the index in its directory.
    pub fn file_name(manifest: Hash) -> String {
        format!("{manifest}.shelf")
    }

    /// The name of the file with the symbols of an object.
    pub fn symbols_file_name(manifest: Hash, toi: u32) -> String {
        format!("{manifest}.{toi}.symbols")
    }

    /// Symbols of a block of `source_symbols`: at least one.
    pub fn block_symbols(&self, source_symbols: u32) -> u32 {
        let thousandths = u64::from(source_symbols).saturating_mul(self.stretch_permille.into());
        // At most 56 403 * 65.535: it fits.
        u32::try_from(thousandths.div_ceil(1_000))
            .unwrap_or(u32::MAX)
            .clamp(1, ShelfNumber::SYMBOLS)
    }

    /// The places of the symbols of an object with blocks of these numbers of source symbols.
    pub fn layout(
        &self,
        symbol_size: u16,
        source_symbols: impl IntoIterator<Item = u32>,
    ) -> ShelfLayout {
        let stack =
            |k: u32| Stack { count: self.block_symbols(k), share: k.div_ceil(SHARES).max(1) };
        ShelfLayout { symbol_size, stacks: source_symbols.into_iter().map(stack).collect() }
    }
}

/// Shares into which as many symbols of a block as it has source symbols are divided.
const SHARES: u32 = 64;

/// Where the symbols of an object are in their file: in rounds, each with a share of every block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShelfLayout {
    symbol_size: u16,
    stacks: Vec<Stack>,
}

/// The symbols of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stack {
    count: u32,
    /// Symbols in a round.
    share: u32,
}

impl Stack {
    /// Symbols in the first rounds.
    fn before(&self, round: u32) -> u32 {
        round.saturating_mul(self.share).min(self.count)
    }
}

/// Symbols of a block that are one after the other in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShelfRun {
    /// The source block number.
    pub sbn: u32,
    /// The symbols, counted from [`ShelfNumber::first_esi`].
    pub indices: Range<u32>,
    /// The offset of the first one in the file, in bytes.
    pub offset: u64,
}

impl ShelfLayout {
    /// Bytes of a symbol.
    pub fn symbol_size(&self) -> u16 {
        self.symbol_size
    }

    /// The number of blocks.
    pub fn block_count(&self) -> usize {
        self.stacks.len()
    }

    /// Bytes of the file.
    pub fn length(&self) -> u64 {
        self.offset_of_round(u32::MAX)
    }

    /// Rounds of the file.
    pub fn rounds(&self) -> u32 {
        let rounds = self.stacks.iter().map(|stack| stack.count.div_ceil(stack.share.max(1)));
        rounds.max().unwrap_or(0)
    }

    fn bytes(&self, symbols: u64) -> u64 {
        symbols.saturating_mul(self.symbol_size.into())
    }

    fn offset_of_round(&self, round: u32) -> u64 {
        let symbols = self.stacks.iter().map(|stack| u64::from(stack.before(round)));
        self.bytes(symbols.fold(0, u64::saturating_add))
    }

    /// The runs of a round, in the order of the file. Blocks with fewer rounds have none.
    pub fn round(&self, round: u32) -> impl Iterator<Item = ShelfRun> + '_ {
        let mut offset = self.offset_of_round(round);
        (0..).zip(&self.stacks).filter_map(move |(sbn, stack)| {
            let indices = stack.before(round)..stack.before(round.saturating_add(1));
            let run = ShelfRun { sbn, offset, indices };
            let count = run.indices.end.saturating_sub(run.indices.start);
            offset = offset.saturating_add(self.bytes(count.into()));
            (count > 0).then_some(run)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(stretch_permille: u16) -> ShelfIndex {
        let number = ShelfNumber::new(3).unwrap();
        ShelfIndex { manifest: Hash([7; 32]), number, stretch_permille }
    }

    #[test]
    fn an_index_is_its_bytes_and_any_other_byte_is_an_error() {
        let bytes = index(400).emit();
        assert_eq!(bytes.len(), ShelfIndex::SIZE);
        assert_eq!(ShelfIndex::parse(&bytes), Ok(index(400)));
        for at in 0..bytes.len() {
            let mut other = bytes.clone();
            other[at] ^= 1;
            assert!(ShelfIndex::parse(&other).is_err(), "{at}");
            assert!(ShelfIndex::parse(&bytes[..at]).is_err(), "{at}");
        }
        assert_eq!(ShelfIndex::parse(&index(0).emit()), Err(ShelfIndexError::Fields));
        let mut newer = bytes;
        newer[7] = 2;
        assert_eq!(ShelfIndex::parse(&newer), Err(ShelfIndexError::Version(2)));
    }

    #[test]
    fn shelves_have_no_symbol_in_common() {
        assert_eq!((ShelfNumber::new(0), ShelfNumber::new(16)), (None, None));
        let last = ShelfNumber::new(ShelfNumber::MAX).unwrap();
        assert_eq!(last.first_esi() + ShelfNumber::SYMBOLS, 1 << 24);
        assert_eq!(index(u16::MAX).block_symbols(56_403), ShelfNumber::SYMBOLS);
        assert_eq!((index(400).block_symbols(1), index(400).block_symbols(10_000)), (1, 4_000));
    }

    /// Whatever the blocks, the runs of all rounds are the file, and each symbol is in one run.
    #[test]
    fn the_runs_of_all_rounds_are_the_file() {
        for stretch in [1, 400, 1_000, 2_345] {
            let layout = index(stretch).layout(10, [1, 63, 64, 65, 749, 10_000]);
            let (mut offset, mut next) = (0, [0; 6]);
            for run in (0..layout.rounds()).flat_map(|round| layout.round(round)) {
                assert_eq!((run.offset, run.indices.start), (offset, next[run.sbn as usize]));
                offset += u64::from(run.indices.end - run.indices.start) * 10;
                next[run.sbn as usize] = run.indices.end;
            }
            assert_eq!(offset, layout.length());
            let counts = [1, 63, 64, 65, 749, 10_000].map(|k| index(stretch).block_symbols(k));
            assert_eq!(next, counts);
            assert_eq!(layout.round(layout.rounds()).count(), 0);
        }
    }
}
