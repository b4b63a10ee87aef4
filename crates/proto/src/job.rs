//! Work on bytes, which an endpoint asks for and its driver does: on threads, or at once.

use crate::endpoint::{BatchId, BlockId};
use crate::receiver::SessionKey;
use fontana_fec::{Decoder, Esi, ObjectLayout, Plan, Progress, Work};
use fontana_wire::{CarouselInstance, FdtFile, Hash, Manifest, StreamIndex, Toi};
use std::ops::Range;
use std::sync::Arc;

/// A piece of work. Jobs on one block must be carried out in the order in which they were asked
/// for; jobs on different blocks may overlap.
#[derive(Debug)]
pub enum Job {
    /// Sender: make encoding symbols ready to send. Ends with [`Done::Prepared`] or
    /// [`Done::PrepareFailed`].
    Prepare {
        /// Names the batch from now on.
        batch: BatchId,
        /// Block whose symbols they are.
        block: BlockId,
        /// The symbols, in the order of their indices in the batch.
        esis: Vec<Esi>,
    },
    /// Sender: the batch will not be asked for again. No answer.
    Release {
        /// The batch.
        batch: BatchId,
    },
    /// Receiver: make room for what is about to be received. Ends with [`Done::Opened`] or
    /// [`Done::Failed`].
    Open(Opening),
    /// Receiver: put a received symbol away. No answer unless it fails: [`Done::Failed`].
    Place {
        /// The symbol's block.
        block: BlockId,
        /// Which symbol.
        esi: Esi,
        /// Where it goes.
        to: Placement,
        /// Its bytes.
        symbol: SymbolBytes,
    },
    /// Receiver: find out, on ids, whether the symbols at hand suffice. Ends with
    /// [`Done::Solved`].
    Solve {
        /// The block.
        block: BlockId,
        /// The decoder that knows which symbols are at hand; it comes back with the answer.
        decoder: Box<dyn Decoder>,
        /// How much work the attempt may cost.
        budget: Work,
    },
    /// Receiver: compute the lost source symbols, put them in place and hash the whole block.
    /// Ends with [`Done::Recovered`] or [`Done::Failed`].
    Recover {
        /// The block.
        block: BlockId,
        /// How.
        recipe: Recipe,
        /// The repair symbols that were placed; the index of each is its [`Placement::Spool`] slot.
        spool: Vec<Esi>,
    },
    /// Receiver: the block was verified, or everything that was placed for it is void. Either way
    /// its spool is free; a driver that keeps a journal notes it. No answer unless it fails:
    /// [`Done::Failed`].
    Settle {
        /// The block.
        block: BlockId,
        /// True if it was verified.
        whole: bool,
    },
    /// Receiver: every block of the object is verified; bring the files that are now whole to
    /// disk under their final names. Ends with [`Done::Committed`] or [`Done::Failed`].
    Commit {
        /// The object.
        toi: Toi,
    },
    /// Receiver: every object is committed; finish what is left (empty files, staging). Ends with
    /// [`Done::Finished`] or [`Done::Failed`].
    Finish,
}

/// What a receiver is about to receive.
#[derive(Clone, Debug)]
pub enum Opening {
    /// A whole manifest.
    Manifest(Arc<Manifest>),
    /// One file of a plain FLUTE session (RFC 6726).
    File {
        /// The session.
        session: SessionKey,
        /// What the file delivery table says of it.
        file: Arc<FdtFile>,
        /// Its geometry.
        layout: ObjectLayout,
    },
    /// One object of an FCAST session (RFC 6968). What it is, its header says when it has arrived: a
    /// file, a slice of one, or a descriptor ([`Done::CarouselRead`]).
    Compound {
        /// The session.
        session: SessionKey,
        /// The object.
        toi: Toi,
        /// Its geometry.
        layout: ObjectLayout,
    },
    /// One fragment of a stream. Its place is free again when it is committed, which is when its
    /// bytes were handed over: after those of all fragments before it.
    Fragment {
        /// Its number; [`StreamIndex::toi`](fontana_wire::StreamIndex::toi) is its object.
        number: u32,
        /// Its geometry.
        layout: ObjectLayout,
        /// Its place while it is received and waits: no other open fragment has it.
        slot: u32,
        /// How many places there are.
        slot_count: u32,
        /// Most bytes of any fragment.
        slot_length: u32,
    },
}

impl Opening {
    /// Names the opening in [`Done::Opened`]: the manifest's TOI, the file's, or the fragment's.
    pub fn toi(&self) -> Toi {
        match self {
            Self::Manifest(_) => Toi::MANIFEST,
            Self::File { file, .. } => file.toi,
            Self::Compound { toi, .. } => *toi,
            Self::Fragment { number, .. } => StreamIndex::toi(*number),
        }
    }
}

/// What an earlier life of the receiver left of what was opened. Nothing in it is trusted further
/// than a packet is: the blocks' hashes decide.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// Packets of the session that were received in all lives before.
    pub session_packets: u64,
    /// Objects whose files have their final names.
    pub committed: Vec<Toi>,
    /// Blocks of which something was kept.
    pub blocks: Vec<KeptBlock>,
}

/// What an earlier life of the receiver left of one block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptBlock {
    /// The block.
    pub block: BlockId,
    /// All its source symbols are in their places.
    pub whole: bool,
    /// Source symbols in their places.
    pub in_place: Vec<Esi>,
    /// Repair symbols, and their slots of the spool.
    pub spooled: Vec<(Esi, u32)>,
}

/// Where a received symbol is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// A source symbol: at its final place in the object.
    InPlace,
    /// A repair symbol: in this slot of the block's spool.
    Spool(u32),
}

/// The bytes of a symbol that arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SymbolBytes {
    /// This range of the datagram that was just handled.
    InDatagram(Range<usize>),
    /// These bytes, from a datagram that was handled before it was known where they go.
    Kept(Vec<u8>),
}

/// How to compute the lost symbols of a block.
#[derive(Debug)]
pub enum Recipe {
    /// The plan that an earlier [`Job::Solve`] found.
    Plan(Arc<Plan>),
    /// No plan was kept, to bound memory: solve again, without a budget, then execute. The
    /// decoder has found its solution before and finds it again.
    Decoder(Box<dyn Decoder>),
}

/// What became of a job.
#[derive(Debug)]
pub enum Done {
    /// The batch's symbols are ready.
    Prepared {
        /// The batch.
        batch: BatchId,
    },
    /// The batch cannot be made: its source has changed or cannot be read.
    PrepareFailed {
        /// The batch.
        batch: BatchId,
    },
    /// There is room.
    Opened {
        /// [`Opening::toi`] of what was opened.
        toi: Toi,
        /// What was there already.
        kept: Kept,
    },
    /// An attempt to solve has ended.
    Solved {
        /// The block.
        block: BlockId,
        /// The decoder, back again.
        decoder: Box<dyn Decoder>,
        /// What the attempt found.
        progress: Progress,
    },
    /// The block's bytes are complete.
    Recovered {
        /// The block.
        block: BlockId,
        /// Hash of the block's bytes as they now are.
        hash: Hash,
    },
    /// The object's files are on disk.
    Committed {
        /// The object.
        toi: Toi,
    },
    /// The object that was to be committed was none of the files, but a descriptor of an FCAST
    /// session.
    CarouselRead {
        /// The object.
        toi: Toi,
        /// What it lists.
        instance: CarouselInstance,
    },
    /// Everything is on disk and staging is gone.
    Finished,
    /// A receiver's job failed for good; the driver knows why.
    Failed {
        /// The object concerned, or the manifest's TOI if all of them are.
        toi: Toi,
    },
}
