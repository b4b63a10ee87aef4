//! Work on bytes that an endpoint asks for, and the answers to it, by side.
//!
//! An endpoint decides on ids. Its driver carries out the jobs: on threads, at once on bytes in
//! memory, or on ids alone in a simulation.

use crate::endpoint::{BatchId, BlockId, SessionKey};
use fontana_fec::{Esi, IdDecoder, ObjectLayout, Plan, Progress, Work};
use fontana_wire::{CarouselInstance, FdtFile, Hash, Manifest, StreamIndex, Toi};
use std::error::Error;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// What an opening, an answer or a failure is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// One object.
    Object(Toi),
    /// Everything that was accepted.
    Session,
}

/// The class of a failure, as far as a person or a program acts differently on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Category {
    /// The file system, or the user's quota on it, is full.
    DiskFull,
    /// The device or the operating system failed.
    Io,
    /// A path is not permitted, exists already, is in use, or is not what it should be.
    Refused,
    /// A file was changed while it was being sent.
    SourceChanged,
    /// Numbers that describe no object: a manifest or a caller is wrong.
    Geometry,
}

/// Why a job failed: its class, and the driver's own error as its [source](Error::source).
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

/// Work that a sender asks for.
#[derive(Debug)]
pub enum SendJob {
    /// Make encoding symbols ready to send. Ends with [`SendDone::Prepared`] or
    /// [`SendDone::Failed`].
    Prepare {
        /// Names the batch from now on.
        batch: BatchId,
        /// Block whose symbols they are.
        block: BlockId,
        /// The symbols, in the order of their indices in the batch.
        esis: Vec<Esi>,
    },
    /// The batch will not be asked for again. No answer.
    Release {
        /// The batch.
        batch: BatchId,
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
    /// The batch cannot be made: its source has changed or cannot be read.
    Failed {
        /// The batch.
        batch: BatchId,
        /// Why.
        error: JobError,
    },
}

/// Work that a receiver asks for. Jobs on one block are carried out in the order in which they were
/// asked for; jobs on different blocks may overlap.
#[derive(Debug)]
pub enum ReceiveJob {
    /// Make room for what is about to be received. Ends with [`ReceiveDone::Opened`] or
    /// [`ReceiveDone::Failed`].
    Open(Opening),
    /// Store a received symbol. No answer unless it fails: [`ReceiveDone::Failed`].
    Place {
        /// The symbol's block.
        block: BlockId,
        /// Which symbol.
        esi: Esi,
        /// Where it goes.
        to: SymbolPlace,
        /// Its bytes.
        symbol: SymbolBytes,
    },
    /// Find out, on ids, whether the available symbols suffice. Ends with [`ReceiveDone::Solved`].
    Solve {
        /// The block.
        block: BlockId,
        /// The decoder that knows the available symbols; it comes back with the answer.
        decoder: Box<dyn IdDecoder>,
        /// How much work the attempt may cost.
        budget: Work,
    },
    /// Compute the lost source symbols, put them in place and hash the whole block. Ends with
    /// [`ReceiveDone::Recovered`] or [`ReceiveDone::Failed`].
    Recover {
        /// The block.
        block: BlockId,
        /// How.
        recipe: Recipe,
        /// The repair symbols that were placed; the index of each is its
        /// [`SymbolPlace::RepairSlot`].
        repair: Vec<Esi>,
    },
    /// The block's repair symbols are not needed any more. A driver that keeps a journal notes the
    /// outcome. No answer unless it fails: [`ReceiveDone::Failed`].
    Settle {
        /// The block.
        block: BlockId,
        /// What became of it.
        outcome: BlockOutcome,
    },
    /// Every block of the object is verified; bring the files that are now complete to disk under
    /// their final names. Ends with [`ReceiveDone::Committed`] or [`ReceiveDone::Failed`].
    Commit {
        /// The object.
        toi: Toi,
    },
    /// Every object is committed; finish what is left (empty files, staging). Ends with
    /// [`ReceiveDone::Finished`] or [`ReceiveDone::Failed`].
    Finish,
}

/// What a receiver is about to receive.
#[derive(Clone, Debug)]
pub enum Opening {
    /// All objects of a manifest.
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
    /// One object of an FCAST session (RFC 6968). Its header says what it is when it has arrived: a
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
    /// bytes were delivered: after those of all fragments before it.
    Fragment {
        /// Its number; [`StreamIndex::toi`](fontana_wire::StreamIndex::toi) is its object.
        number: u32,
        /// Its geometry.
        layout: ObjectLayout,
        /// Its slot while it is received and waits: no other open fragment has it.
        slot: u32,
        /// Number of slots.
        slot_count: u32,
        /// Most bytes of any fragment.
        slot_length: u32,
    },
}

impl Opening {
    /// What is opened: named in [`ReceiveDone::Opened`].
    pub fn scope(&self) -> Scope {
        match self {
            Self::Manifest(_) => Scope::Session,
            Self::File { file, .. } => Scope::Object(file.toi),
            Self::Compound { toi, .. } => Scope::Object(*toi),
            Self::Fragment { number, .. } => Scope::Object(StreamIndex::toi(*number)),
        }
    }
}

/// What an earlier run of the receiver saved of what was opened. It is trusted no further than a
/// packet is: the blocks' hashes decide.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Saved {
    /// Packets of the session that were received in all runs before.
    pub session_packets: u64,
    /// Objects whose files have their final names.
    pub committed: Vec<Toi>,
    /// Blocks of which symbols were saved.
    pub blocks: Vec<SavedBlock>,
}

/// What an earlier run of the receiver saved of one block.
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

/// Where a received symbol is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SymbolPlace {
    /// A source symbol: at its final place in the object.
    InPlace,
    /// A repair symbol: in this slot of the block's part of the repair file.
    RepairSlot(u32),
}

/// The bytes of a symbol that arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SymbolBytes {
    /// This range of the slab of the batch that was just handled.
    InSlab(Range<u32>),
    /// These bytes, from a datagram that was handled before it was known where they go.
    Saved(Vec<u8>),
}

/// How to compute the lost symbols of a block.
#[derive(Debug)]
pub enum Recipe {
    /// The plan that an earlier [`ReceiveJob::Solve`] found.
    Plan(Arc<Plan>),
    /// The plan was dropped, to bound memory: solve again, without a budget, then execute. The
    /// decoder has found its solution before and finds it again.
    Decoder(Box<dyn IdDecoder>),
}

impl Recipe {
    /// The plan; `None` if the decoder finds no solution any more, which is a defect.
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

/// What became of a recovered block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockOutcome {
    /// Its bytes have the hash that was expected of them.
    Verified,
    /// Its bytes are wrong: everything that was placed for it is void.
    Corrupt,
}

/// The answer to a [`ReceiveJob`].
#[derive(Debug)]
pub enum ReceiveDone {
    /// There is room.
    Opened {
        /// [`Opening::scope`] of what was opened.
        scope: Scope,
        /// What an earlier run saved of it.
        saved: Saved,
    },
    /// An attempt to solve has ended.
    Solved {
        /// The block.
        block: BlockId,
        /// The decoder, back again.
        decoder: Box<dyn IdDecoder>,
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
    /// An object was committed.
    Committed(Committed),
    /// Everything is on disk and staging is gone.
    Finished,
    /// A job failed for good.
    Failed {
        /// What cannot be received any more.
        scope: Scope,
        /// Why.
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
    /// It holds no file, but a descriptor of an FCAST session.
    Descriptor {
        /// The object.
        toi: Toi,
        /// What it lists.
        instance: CarouselInstance,
    },
}
