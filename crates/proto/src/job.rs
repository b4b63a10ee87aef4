//! Work on bytes that an endpoint requests, and the answers, by side.
//!
//! An endpoint decides on ids. Its driver runs the jobs: on threads, at once on bytes in memory, or
//! on ids alone in a simulation.

use crate::endpoint::{BatchId, BlockId, SessionKey};
use crate::placed::PlacedRun;
use crate::report::{Answer, Authentic, RollCallRefusal};
use fontana_fec::{
    CodeProfile, Esi, IdDecoder, Location, Locator, Novelty, ObjectLayout, Plan, Progress, Work,
};
use fontana_wire::{
    BlockHasher, CarouselInstance, FdtFile, Hash, Manifest, RollCall, StreamIndex, SymbolDigest,
    Toi,
};
use std::error::Error;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::sync::Arc;

/// The subject of an opening, an answer or a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// One object.
    Object(Toi),
    /// All accepted content.
    Session,
}

/// The class of a failure, as far as users or programs react differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Category {
    /// The file system, or the user's quota on it, is full.
    DiskFull,
    /// The device or the operating system failed.
    Io,
    /// A path is not permitted, exists already, is in use, or has the wrong type.
    Refused,
    /// A file was changed while it was being sent.
    SourceChanged,
    /// An inconsistent geometry: a manifest or a caller is wrong.
    Geometry,
}

/// Why a job failed: its class, and the driver's error as its [source](Error::source).
#[derive(Clone, Debug)]
pub struct JobError {
    category: Category,
    source: Arc<dyn Error + Send + Sync>,
}

impl JobError {
    /// A failure of this class.
    pub fn new(category: Category, source: Arc<dyn Error + Send + Sync>) -> Self {
        Self { category, source }
    }

    /// The class of the failure.
    pub fn category(&self) -> Category {
        self.category
    }

    /// The driver's error, if it is of this type.
    pub fn downcast_ref<E: Error + 'static>(&self) -> Option<&E> {
        self.source.downcast_ref()
    }
}

impl fmt::Display for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.source.fmt(f)
    }
}

impl Error for JobError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.source)
    }
}

/// Work that a sender requests.
#[derive(Debug)]
pub enum SendJob {
    /// Prepare encoding symbols for sending. Answered by [`SendDone::Prepared`] or
    /// [`SendDone::Failed`].
    Prepare {
        /// The new batch.
        batch: BatchId,
        /// Block of the symbols.
        block: BlockId,
        /// The symbols, in the order of their indices in the batch.
        esis: Vec<Esi>,
        /// Bytes of the header that comes before each symbol in its packet: a driver can leave
        /// room for it.
        header_size: u16,
    },
    /// The batch is no longer needed. No answer.
    Release {
        /// The batch.
        batch: BatchId,
    },
    /// Receivers lose packets: repair symbols will be needed. A driver can solve blocks ahead. No
    /// answer.
    ExpectRepair,
    /// Sign a roll call that is issued now, by the wall clock. Answered by [`SendDone::Signed`].
    Sign(Box<RollCall>),
    /// Open an answer of a receiver, and find out what vouches for it. Answered by
    /// [`SendDone::Opened`].
    Open {
        /// The address that it claims to come from.
        from: IpAddr,
        /// The datagram.
        datagram: Box<[u8]>,
    },
}

/// The answer to a [`SendJob`].
#[derive(Debug)]
pub enum SendDone {
    /// The batch's symbols are ready.
    Prepared {
        /// The batch.
        batch: BatchId,
    },
    /// The batch's symbols are ready, and the sender announces them by their digests
    /// ([`Sender::with_digests`](crate::Sender::with_digests)).
    Digested {
        /// The batch.
        batch: BatchId,
        /// The digest of each symbol, in the order of the job.
        digests: Vec<SymbolDigest>,
    },
    /// The batch cannot be prepared: its source has changed or cannot be read.
    Failed {
        /// The batch.
        batch: BatchId,
        /// The object's other blocks go on: they are of other files.
        is_alone: bool,
        /// The error.
        error: JobError,
    },
    /// The roll call, with its signature.
    Signed(Vec<u8>),
    /// An answer of a receiver; `None` if it is not authentic.
    Opened(Option<Box<Authentic>>),
}

/// Work that a receiver requests. Jobs on one block run in the order of the requests; jobs on
/// different blocks may overlap.
#[derive(Debug)]
pub enum ReceiveJob {
    /// Prepare storage for what is received. Answered by [`ReceiveDone::Opened`] or
    /// [`ReceiveDone::Failed`].
    Open(Box<Opening>),
    /// Store received symbols. No answer unless it fails: [`ReceiveDone::Failed`].
    Place(PlacedRun),
    /// Find out, on ids, whether the available symbols suffice. Answered by
    /// [`ReceiveDone::Solved`].
    Solve {
        /// The block.
        block: BlockId,
        /// The decoder that has the ids of the available symbols; it is returned with the answer.
        decoder: Box<dyn IdDecoder>,
        /// The budget of the attempt.
        budget: Work,
    },
    /// Compute the lost source symbols, write them to their places, except for those in `arrived`,
    /// and hash the whole block.
    /// Answered by [`ReceiveDone::Recovered`] or [`ReceiveDone::Failed`].
    Recover {
        /// The block.
        block: BlockId,
        /// The plan or decoder.
        recipe: Recipe,
        /// The placed repair symbols; the index of each is its
        /// [`SymbolPlace::RepairSlot`](crate::SymbolPlace::RepairSlot).
        repair: Vec<Esi>,
        /// Source symbols, ascending, that were placed when the block was being solved. The plan
        /// computes them, but what was received stays in its place: if the plan has a wrong symbol,
        /// so has what it computes.
        arrived: Vec<Esi>,
    },
    /// Find the wrong symbols of a block whose hash was wrong. Answered by
    /// [`ReceiveDone::Located`] or [`ReceiveDone::Failed`].
    Locate(Box<Search>),
    /// Find out which copies of source symbols give a block its hash. Answered by
    /// [`ReceiveDone::Chosen`] or [`ReceiveDone::Failed`].
    Choose(Box<Choice>),
    /// The block's repair symbols are no longer needed. A driver with a journal records the
    /// outcome. No answer unless it fails: [`ReceiveDone::Failed`].
    Settle {
        /// The block.
        block: BlockId,
        /// The outcome.
        outcome: BlockOutcome,
    },
    /// Every block of the object is verified: sync the files that are now complete, and give them
    /// their final names. Answered by [`ReceiveDone::Committed`], [`ReceiveDone::Mismatched`] or
    /// [`ReceiveDone::Failed`].
    Commit {
        /// The object.
        toi: Toi,
    },
    /// The object is not received any more: free what was stored of it. No answer.
    Drop {
        /// The object.
        toi: Toi,
    },
    /// Delete what was written of files that the tables of a session do not name any more
    /// ([`Receiver::delete_expired`](crate::Receiver::delete_expired)). No answer.
    Expire(Expired),
    /// Every object is committed: finish the rest (empty files, staging). Answered by
    /// [`ReceiveDone::Finished`] or [`ReceiveDone::Failed`].
    Finish,
    /// Find out whether the publisher has signed this roll call, lately by the wall clock. Answered
    /// by [`ReceiveDone::Called`].
    CheckCall(Box<[u8]>),
    /// Sign and seal an answer to a roll call. Answered by [`ReceiveDone::Sealed`].
    Seal(Box<Answer>),
    /// Read symbols for other receivers of the site, or compute them. Answered by
    /// [`ReceiveDone::Read`]. The batches of a block before the last one of which a symbol was sent
    /// are not needed any more.
    Read {
        /// The block.
        block: BlockId,
        /// The number of this batch, which no other one has.
        batch: u32,
        /// The symbols, in the order of their indices in the batch.
        esis: Vec<Esi>,
        /// What there is of the block.
        stock: BlockStock,
    },
    /// What was read of a block is not needed any more. No answer.
    Release {
        /// The block.
        block: BlockId,
    },
    /// Store bytes beside the memory, in a file that no later run needs: symbols that arrive before
    /// their object is open. No answer unless it fails: [`ReceiveDone::SpillRefused`].
    Spill {
        /// Their place in the file.
        offset: u64,
        /// At most 64 KiB.
        bytes: Vec<u8>,
    },
    /// Read what was stored at a place. Answered by [`ReceiveDone::SpillRead`].
    ReadSpill {
        /// The place.
        offset: u64,
        /// Number of bytes.
        length: u32,
    },
    /// Nothing that was stored is needed any more: free its space. No answer.
    DropSpill,
}

/// What a receiver has of a block that it shares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockStock {
    /// All of it.
    Whole,
    /// The symbols that were received.
    Part {
        /// The repair symbols among them, in the order of their slots.
        repair: Vec<Esi>,
    },
}

/// Files of a plain FLUTE session whose tables have expired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expired {
    /// The paths that their names stand for, ascending.
    pub paths: Vec<String>,
    /// Also those that earlier runs of the receiver have written, and that no table has named since
    /// this run began.
    pub earlier: bool,
}

/// The content that a receiver opens.
#[derive(Clone, Debug)]
pub enum Opening {
    /// All objects of a manifest.
    Manifest(Arc<Manifest>),
    /// One file of a plain FLUTE session (RFC 6726).
    File {
        /// The session.
        session: SessionKey,
        /// The object, whose packets have the [TOI of the file](crate::sent_toi).
        object: Toi,
        /// Its entry in the file delivery table.
        file: Arc<FdtFile>,
        /// Of two files with one name, the one with the higher number is newer.
        version: u64,
        /// When the table expires that names it, in Unix seconds.
        expires: u64,
        /// Its geometry.
        layout: ObjectLayout,
    },
    /// One object of an FCAST session (RFC 6968). Its header arrives with its content: it is a
    /// file, a slice of one, or a descriptor ([`Committed::Descriptor`]).
    Compound {
        /// The session.
        session: SessionKey,
        /// The object.
        toi: Toi,
        /// Its geometry.
        layout: ObjectLayout,
    },
    /// One fragment of a stream. Its slot is free again when it is committed, which is when its
    /// bytes were delivered, after those of all earlier fragments.
    Fragment {
        /// Its number; [`StreamIndex::toi`](fontana_wire::StreamIndex::toi) is its object.
        number: u32,
        /// Its geometry.
        layout: ObjectLayout,
        /// Its slot until it is delivered: no other open fragment has it.
        slot: u32,
        /// Number of slots.
        slot_count: u32,
        /// Largest length of a fragment in bytes.
        slot_length: u32,
    },
}

impl Opening {
    /// The subject of the opening, as in [`ReceiveDone::Opened`].
    pub fn scope(&self) -> Scope {
        match self {
            Self::Manifest(_) => Scope::Session,
            Self::File { object, .. } => Scope::Object(*object),
            Self::Compound { toi, .. } => Scope::Object(*toi),
            Self::Fragment { number, .. } => Scope::Object(StreamIndex::toi(*number)),
        }
    }
}

/// What an earlier run of the receiver has saved of the opened content. It is not trusted more than
/// packets: the blocks' hashes verify it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Saved {
    /// Packets of the session received in all earlier runs.
    pub session_packets: u64,
    /// Objects whose files have their final names.
    pub committed: Vec<Toi>,
    /// Blocks with saved symbols.
    pub blocks: Vec<SavedBlock>,
}

/// What an earlier run of the receiver has saved of one block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedBlock {
    /// The block.
    pub block: BlockId,
    /// All its source symbols are in their places.
    pub is_complete: bool,
    /// Source symbols in their places.
    pub in_place: Vec<Esi>,
    /// Repair symbols, and their slots.
    pub repair: Vec<(Esi, u32)>,
}

/// How to compute the lost symbols of a block.
#[derive(Debug)]
pub enum Recipe {
    /// The plan of an earlier [`ReceiveJob::Solve`].
    Plan(Arc<Plan>),
    /// The plan was dropped to bound memory: solve again, without a budget, then execute. The
    /// decoder has found its solution before and finds it again.
    Decoder(Box<dyn IdDecoder>),
}

impl Recipe {
    /// The plan; `None` if the decoder finds no solution, which is a defect.
    pub fn into_plan(self) -> Option<Arc<Plan>> {
        match self {
            Self::Plan(plan) => Some(plan),
            Self::Decoder(mut decoder) => match decoder.solve(Work::UNBOUNDED) {
                Progress::Solved(plan) => Some(plan),
                Progress::Wanting(_) | Progress::OutOfBudget => None,
            },
        }
    }
}

/// A search for the wrong symbols of a block.
#[derive(Debug)]
pub struct Search {
    /// The block.
    pub block: BlockId,
    /// The code of the block.
    pub profile: CodeProfile,
    /// A decoder of the block without symbols.
    pub decoder: Box<dyn IdDecoder>,
    /// The available symbols, ascending. Source symbols are in their places. Any other source
    /// symbol of the block has been recovered, from wrong symbols.
    pub available: Vec<Esi>,
    /// The placed repair symbols, as in [`ReceiveJob::Recover`].
    pub repair: Vec<Esi>,
    /// The budget to find a plan.
    pub solving: Work,
    /// The budget of [`Locator::locate`].
    pub locating: Work,
}

impl Search {
    /// The locator, to which the driver adds the bytes of symbols. Its plan reads the first symbols
    /// that suffice.
    ///
    /// # Errors
    /// The result of the search, if there is no plan within the budget.
    pub fn locator(&mut self) -> Result<Locator, Location> {
        for &esi in &self.available {
            if self.decoder.push(esi) != Ok(Novelty::Fresh) || self.decoder.symbols_wanted() > 0 {
                continue;
            }
            match self.decoder.solve(self.solving) {
                Progress::Solved(plan) => {
                    return Ok(Locator::new(&self.profile, &plan, self.available.iter().copied()));
                }
                Progress::Wanting(_) => {}
                Progress::OutOfBudget => break,
            }
        }
        Err(Location::OutOfBudget)
    }
}

/// A block all of whose source symbols are in their places, with other copies of some of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The block.
    pub block: BlockId,
    /// The hash of its bytes.
    pub expected: Hash,
    /// At most [`MAX_COPIES`](Self::MAX_COPIES) other copies, of different symbols.
    pub copies: Vec<SymbolCopy>,
}

/// A source symbol and its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SymbolCopy {
    /// The symbol.
    pub esi: Esi,
    /// Its bytes. The last symbol of an object may lack its padding.
    pub bytes: Vec<u8>,
}

impl Choice {
    /// Symbols of which there may be another copy: each doubles the number of blocks that are
    /// hashed.
    pub const MAX_COPIES: usize = 8;
    /// Bytes that are hashed for one choice, at most: a second of a core.
    const MAX_HASHED: usize = 1 << 30;

    /// Tries all combinations of copies on the `bytes` of the block. `range` returns the bytes of a
    /// symbol among them, without padding. The symbols whose copy replaces the one in place; `None`
    /// if no combination gives the hash.
    pub fn decide(
        &self,
        bytes: &mut [u8],
        range: impl Fn(Esi) -> Option<Range<usize>>,
    ) -> Option<Vec<Esi>> {
        let copies: Vec<_> = self.copies.iter().take(Self::MAX_COPIES).collect();
        let most = Self::MAX_HASHED.checked_div(bytes.len()).unwrap_or(0);
        let combinations = 1_usize.checked_shl(copies.len() as u32).unwrap_or(0);
        let is_right = |bytes: &[u8]| {
            let mut hasher = BlockHasher::new();
            hasher.update(bytes);
            hasher.finalize() == self.expected
        };
        if most > 0 && is_right(bytes) {
            return Some(Vec::new());
        }
        // The bytes that are not in place, for each copy.
        let mut others: Vec<Vec<u8>> = copies.iter().map(|copy| copy.bytes.clone()).collect();
        for tried in (1..combinations).take(most) {
            // In the order of the Gray code, each combination differs from the last by one symbol.
            let at = tried.trailing_zeros() as usize;
            let (copy, other) = (copies.get(at)?, others.get_mut(at)?);
            let in_place = bytes.get_mut(range(copy.esi)?)?;
            in_place.iter_mut().zip(other).for_each(|(byte, other)| std::mem::swap(byte, other));
            if is_right(bytes) {
                let gray = tried ^ (tried >> 1);
                let is_chosen = |&(at, _): &(u32, _)| gray & 1_usize.rotate_left(at) != 0;
                let chosen = (0..).zip(&copies).filter(is_chosen);
                return Some(chosen.map(|(_, copy)| copy.esi).collect());
            }
        }
        None
    }
}

/// The result of a recovered block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockOutcome {
    /// Its bytes have the expected hash.
    Verified,
    /// Its bytes are wrong, and which of its symbols are is not known: all are void.
    Corrupt,
}

/// The answer to a [`ReceiveJob`].
#[derive(Debug)]
pub enum ReceiveDone {
    /// The storage is ready.
    Opened {
        /// [`Opening::scope`] of the opened content.
        scope: Scope,
        /// What an earlier run has saved of it.
        saved: Saved,
    },
    /// An attempt to solve has ended.
    Solved {
        /// The block.
        block: BlockId,
        /// The decoder.
        decoder: Box<dyn IdDecoder>,
        /// The result of the attempt.
        progress: Progress,
    },
    /// The block's bytes are complete.
    Recovered {
        /// The block.
        block: BlockId,
        /// Hash of the block's bytes.
        hash: Hash,
    },
    /// A search for wrong symbols has ended.
    Located {
        /// The block.
        block: BlockId,
        /// The result of the search.
        location: Location,
    },
    /// Copies of a block's symbols were compared with its hash.
    Chosen {
        /// The block.
        block: BlockId,
        /// The symbols whose copy replaces the one in place; `None` if no combination of copies
        /// gives the hash.
        chosen: Option<Vec<Esi>>,
    },
    /// An object was committed.
    Committed(Committed),
    /// An object without hashes of its blocks (plain FLUTE, FCAST) is complete, and its bytes are
    /// not what the session says of them. What was stored of it is freed.
    Mismatched {
        /// The object.
        toi: Toi,
        /// The hash of its bytes. Another collection with the same hash shows that the sender's
        /// data are wrong.
        digest: Hash,
        /// What differs.
        error: JobError,
    },
    /// Everything is on disk, and staging is removed.
    Finished,
    /// A roll call that is to be obeyed, or why it is not.
    Called(Result<Box<RollCall>, RollCallRefusal>),
    /// An answer to a roll call.
    Sealed {
        /// [`Answer::to`].
        to: SocketAddr,
        /// The datagram.
        datagram: Vec<u8>,
    },
    /// Symbols for other receivers were read, or cannot be.
    Read {
        /// The block.
        block: BlockId,
        /// The number of the batch.
        batch: u32,
        /// The symbols are there.
        is_read: bool,
    },
    /// What was stored beside the memory.
    SpillRead {
        /// The place.
        offset: u64,
        /// Fewer bytes than were asked for if they cannot be read.
        bytes: Vec<u8>,
    },
    /// Bytes were not stored at a place: there is no room, or the disk has failed.
    SpillRefused {
        /// The place.
        offset: u64,
    },
    /// A job failed permanently.
    Failed {
        /// The content that cannot be received.
        scope: Scope,
        /// The error.
        error: JobError,
    },
}

/// An object that was committed.
#[derive(Debug)]
pub enum Committed {
    /// Its files are on disk, or its bytes were delivered.
    Content {
        /// The object.
        toi: Toi,
    },
    /// The object is a descriptor of an FCAST session, not a file.
    Descriptor {
        /// The object.
        toi: Toi,
        /// The objects that it lists.
        instance: CarouselInstance,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use fontana_fec::Sbn;

    const SYMBOL: usize = 3;

    fn hash(bytes: &[u8]) -> Hash {
        let mut hasher = BlockHasher::new();
        hasher.update(bytes);
        hasher.finalize()
    }

    fn decide(right: &[u8], placed: &[u8], copies: &[(u32, &[u8])]) -> Option<Vec<u32>> {
        let copy =
            |&(esi, bytes): &(u32, &[u8])| SymbolCopy { esi: Esi(esi), bytes: bytes.to_vec() };
        let choice = Choice {
            block: BlockId { toi: Toi(1), sbn: Sbn(0) },
            expected: hash(right),
            copies: copies.iter().map(copy).collect(),
        };
        let range = |Esi(esi): Esi| {
            let start = esi as usize * SYMBOL;
            (start < placed.len()).then(|| start..(start + SYMBOL).min(placed.len()))
        };
        let chosen = choice.decide(&mut placed.to_vec(), range)?;
        Some(chosen.into_iter().map(|esi| esi.0).collect())
    }

    /// Every combination of right and wrong copies, also of the last symbol, which is shorter.
    #[test]
    fn the_copies_that_give_the_hash_are_chosen() {
        let right = b"abcdefghijk";
        for wrong in 0..16_u32 {
            let mut placed = right.to_vec();
            let mut copies: Vec<Vec<u8>> = Vec::new();
            for symbol in 0..4 {
                let range = symbol * SYMBOL..(symbol * SYMBOL + SYMBOL).min(right.len());
                let mut copy = right[range.clone()].to_vec();
                match wrong >> symbol & 1 {
                    0 => copy[0] ^= 1,
                    _ => placed[range.start] ^= 1,
                }
                copy.resize(SYMBOL, 0);
                copies.push(copy);
            }
            let copies: Vec<_> = (0..).zip(copies.iter().map(Vec::as_slice)).collect();
            let expected = (0..4).filter(|symbol| wrong >> symbol & 1 == 1).collect();
            assert_eq!(decide(right, &placed, &copies), Some(expected), "{wrong:b}");
        }
    }

    #[test]
    fn no_copy_is_chosen_if_none_gives_the_hash() {
        assert_eq!(decide(b"abcdef", b"abXdef", &[(0, b"abd"), (1, b"xyz")]), None);
        assert_eq!(decide(b"abcdef", b"abXdef", &[(7, b"abc")]), None, "there is no such symbol");
    }
}
