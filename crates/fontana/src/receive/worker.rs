//! The work on blocks: placing symbols, solving, recovering. Each block belongs to one worker, so
//! that its jobs stay in order.

use super::disk::OpenObject;
use crate::Error;
use crossbeam_channel::{Receiver, Sender};
use fontana_fec::{Decoder, Esi, Progress, Work};
use fontana_proto::{BlockId, Placement, Recipe};
use fontana_store::SymbolPlace;
use fontana_wire::{BlockHasher, Hash, Toi};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A job on one block.
pub(super) enum Task {
    Place { object: Arc<OpenObject>, block: BlockId, esi: Esi, to: Placement, symbol: Vec<u8> },
    Solve { block: BlockId, decoder: Box<dyn Decoder>, budget: Work },
    Recover { object: Arc<OpenObject>, block: BlockId, recipe: Recipe, spool: Vec<Esi> },
}

/// What became of it.
pub(super) enum Report {
    Solved { block: BlockId, decoder: Box<dyn Decoder>, progress: Progress },
    Recovered { block: BlockId, hash: Hash },
    Failed { toi: Toi, error: Error },
}

/// Works until there is nobody to work for.
pub(super) fn run(queue: &Receiver<Vec<Task>>, reports: &Sender<Report>, budget: usize) {
    for task in queue.iter().flatten() {
        let toi = task.toi();
        let report = match task {
            Task::Place { object, block, esi, to, symbol } => {
                place(&object, block, esi, to, symbol).map(|()| None)
            }
            Task::Solve { block, mut decoder, budget } => {
                let progress = decoder.solve(budget);
                Ok(Some(Report::Solved { block, decoder, progress }))
            }
            Task::Recover { object, block, recipe, spool } => {
                recover(&object, block, recipe, &spool, budget)
                    .map(|hash| Some(Report::Recovered { block, hash }))
            }
        };
        let report = report.unwrap_or_else(|error| Some(Report::Failed { toi, error }));
        if report.is_some_and(|report| reports.send(report).is_err()) {
            return;
        }
    }
}

impl Task {
    fn toi(&self) -> Toi {
        match self {
            Self::Place { block, .. } | Self::Solve { block, .. } | Self::Recover { block, .. } => {
                block.toi
            }
        }
    }
}

fn place(
    object: &OpenObject,
    block: BlockId,
    esi: Esi,
    to: Placement,
    mut symbol: Vec<u8>,
) -> Result<(), Error> {
    // The last source symbol may come without its padding.
    symbol.resize(usize::from(object.staged.layout().oti().symbol_size), 0);
    match to {
        Placement::InPlace => object.staged.write_source(block.sbn, esi, &symbol)?,
        Placement::Spool(slot) => object.staged.write_repair(block.sbn, slot, &symbol)?,
    }
    Ok(())
}

fn recover(
    object: &OpenObject,
    block: BlockId,
    recipe: Recipe,
    spool: &[Esi],
    budget: usize,
) -> Result<Hash, Error> {
    let plan = match recipe {
        Recipe::Plan(plan) => plan,
        Recipe::Decoder(mut decoder) => match decoder.solve(Work::UNBOUNDED) {
            Progress::Solved(plan) => plan,
            Progress::Wanting(_) | Progress::OutOfBudget => {
                let error = std::io::Error::other("a solved block has no solution any more");
                return Err(Error::System { doing: "recover a block", error });
            }
        },
    };
    let slots: BTreeMap<Esi, u32> = spool.iter().copied().zip(0..).collect();
    let place = |esi: Esi| slots.get(&esi).map_or(SymbolPlace::InPlace, |&s| SymbolPlace::Spool(s));
    object.staged.recover_block(block.sbn, &plan, budget, place)?;
    let mut hasher = BlockHasher::new();
    object.staged.for_each_chunk_of_block(block.sbn, |bytes| hasher.update(bytes))?;
    object.staged.free_repair(block.sbn)?;
    Ok(hasher.finalize())
}
