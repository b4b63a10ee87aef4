//! The work on blocks that takes long: solving, on ids alone, and recovering or searching for wrong
//! symbols, on bytes. Both have threads of their own: when all blocks complete at the same moment,
//! the reception is complete as soon as they are solved, before they are recovered.

use super::hashing::HashedPrefix;
use super::object::OpenObject;
use super::places::places;
use super::resend::{SymbolRead, SymbolsRead};
use crate::error::Error;
use crate::shared::Sender;
use crossbeam_channel::Receiver;
use fontana_fec::{Esi, IdDecoder, Location, Progress, Work};
use fontana_proto::{BlockId, Choice, Recipe, Scope, Search};
use fontana_store::{RecoveryMemory, RecoverySteps};
use fontana_wire::Hash;
use std::sync::Arc;

/// An attempt to solve a block.
pub(super) struct Attempt {
    pub(super) block: BlockId,
    pub(super) decoder: Box<dyn IdDecoder>,
    pub(super) budget: Work,
}

/// A job on the bytes of a block.
pub(super) enum BytesJob {
    Recover(Recovery),
    /// Find the wrong symbols of a block.
    Locate {
        object: Arc<OpenObject>,
        search: Box<Search>,
    },
    /// Choose among copies of a block's symbols.
    Choose {
        object: Arc<OpenObject>,
        choice: Box<Choice>,
    },
    /// Read symbols, or compute them, for other receivers.
    Read(SymbolRead),
}

/// A block that is to be recovered and hashed. All its symbols are placed.
pub(super) struct Recovery {
    pub(super) object: Arc<OpenObject>,
    pub(super) block: BlockId,
    pub(super) recipe: Recipe,
    /// The placed repair symbols, in the order of their slots.
    pub(super) repair: Vec<Esi>,
    /// Source symbols that were placed while the block was solved.
    pub(super) arrived: Vec<Esi>,
    /// What was hashed of the block while it arrived.
    pub(super) prefix: Box<HashedPrefix>,
}

impl Recovery {
    /// Whether no symbol of the block was lost, and all of it is hashed.
    pub(super) fn is_hashed(&self) -> bool {
        let is_complete =
            matches!(&self.recipe, Recipe::Plan(plan) if plan.lost().len() == self.arrived.len());
        is_complete && self.object.staged.block_length(self.block.sbn) == Some(self.prefix.length())
    }
}

/// The outcome of a job or an attempt.
pub(super) enum WorkerReport {
    Solved {
        block: BlockId,
        decoder: Box<dyn IdDecoder>,
        progress: Progress,
    },
    Recovered {
        block: BlockId,
        hash: Hash,
    },
    Located {
        block: BlockId,
        location: Location,
    },
    Chosen {
        block: BlockId,
        chosen: Option<Vec<Esi>>,
    },
    /// Symbols for other receivers.
    Read(SymbolsRead),
    /// Early symbols that were beside the memory.
    SpillRead {
        offset: u64,
        bytes: Vec<u8>,
    },
    SpillRefused {
        offset: u64,
    },
    Failed {
        scope: Scope,
        error: Error,
    },
}

impl Attempt {
    pub(super) fn solve(self) -> WorkerReport {
        let Self { block, mut decoder, budget } = self;
        let progress = decoder.solve(budget);
        WorkerReport::Solved { block, decoder, progress }
    }
}

/// Solves blocks until the driver drops its end of the queue.
pub(super) fn run_solver(queue: &Receiver<Attempt>, reports: &Sender<WorkerReport>) {
    for attempt in queue {
        if reports.send(attempt.solve()).is_err() {
            return;
        }
    }
}

/// Works on blocks until the placer drops its end of the queue, with at most `budget` bytes of
/// memory for each.
pub(super) fn run_on_bytes(
    queue: &Receiver<BytesJob>,
    reports: &Sender<WorkerReport>,
    budget: usize,
) {
    crate::system::give_way();
    let mut memory = RecoveryMemory::new(budget);
    for job in queue {
        if reports.send(job.work(&mut memory)).is_err() {
            return;
        }
    }
}

impl BytesJob {
    pub(super) fn work(self, memory: &mut RecoveryMemory) -> WorkerReport {
        let block = match &self {
            Self::Recover(recovery) => recovery.block,
            Self::Locate { search, .. } => search.block,
            Self::Choose { choice, .. } => choice.block,
            Self::Read(read) => read.block,
        };
        let _block = tracing::debug_span!("block", toi = %block.toi, sbn = block.sbn.0).entered();
        let report = match self {
            Self::Recover(recovery) => recover(recovery, memory).map(|hash| {
                tracing::debug!(%hash, "recovered");
                WorkerReport::Recovered { block, hash }
            }),
            Self::Locate { object, search } => locate(&object, *search, memory).map(|location| {
                tracing::debug!(?location, "searched for wrong symbols");
                WorkerReport::Located { block, location }
            }),
            Self::Choose { object, choice } => choose(&object, &choice, memory).map(|chosen| {
                tracing::debug!(?chosen, "chose among copies of symbols");
                WorkerReport::Chosen { block, chosen }
            }),
            Self::Read(read) => {
                let symbols = read.read(memory.budget());
                let note = |why: &Error| tracing::debug!(%why, "symbols are not shared");
                let symbols = symbols.inspect_err(note).ok();
                Ok(WorkerReport::Read(SymbolsRead { block, batch: read.batch, symbols }))
            }
        };
        let failed = |error| WorkerReport::Failed { scope: Scope::Object(block.toi), error };
        report.unwrap_or_else(failed)
    }
}

fn locate(
    object: &OpenObject,
    mut search: Search,
    memory: &mut RecoveryMemory,
) -> Result<Location, Error> {
    let mut locator = match search.locator() {
        Ok(locator) => locator,
        Err(location) => return Ok(location),
    };
    let sbn = search.block.sbn;
    object.staged.add_to_search(sbn, &mut locator, memory, places(&search.repair))?;
    Ok(locator.locate(search.locating))
}

/// Blocks that do not fit into memory have no choice.
fn choose(
    object: &OpenObject,
    choice: &Choice,
    memory: &mut RecoveryMemory,
) -> Result<Option<Vec<Esi>>, Error> {
    let sbn = choice.block.sbn;
    let range = |esi| {
        let range = object.staged.bytes_in_block(sbn, esi, 1)?;
        Some(range.start as usize..range.end as usize)
    };
    let bytes = object.staged.read_block(sbn, memory)?;
    Ok(bytes.and_then(|bytes| choice.decide(bytes, range)))
}

fn recover(recovery: Recovery, memory: &mut RecoveryMemory) -> Result<Hash, Error> {
    let Recovery { object, block, recipe, repair, arrived, mut prefix } = recovery;
    let plan = recipe.into_plan().ok_or_else(|| {
        let error = std::io::Error::other("a solved block has no solution any more");
        Error::system("recover a block")(error)
    })?;
    let steps = RecoverySteps { plan: &plan, arrived: &arrived };
    // A symbol that was dropped as wrong, and is recovered: what is written is not what was hashed.
    let first_lost = steps.lost().next().map(|(_, esi)| esi);
    let first_lost = first_lost.map(|esi| object.staged.bytes_in_block(block.sbn, esi, 1));
    if first_lost.is_some_and(|lost| lost.is_none_or(|lost| lost.start < prefix.length())) {
        *prefix = HashedPrefix::default();
    }
    let (from, show) = (prefix.length(), |bytes: &[u8]| prefix.update(bytes));
    object.staged.recover_block(block.sbn, steps, memory, places(&repair), from, show)?;
    Ok(prefix.finalize())
}
