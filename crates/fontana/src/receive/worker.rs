//! The work on blocks. What moves bytes (placing, recovering) belongs to one worker for each block,
//! so that it stays in order. Solving is work on ids alone and has threads of its own: when all
//! blocks are complete at the same moment, the group is left as soon as that is known, and not
//! after half of them have been recovered.

use super::disk::OpenObject;
use crate::error::Error;
use crossbeam_channel::{Receiver, Sender};
use fontana_fec::{Decoder, Esi, Progress, Work};
use fontana_proto::{BlockId, Placement, Recipe};
use fontana_store::{Note, StagingError, SymbolPlace};
use fontana_wire::{BlockHasher, Hash, Toi};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A job on one block.
pub(super) enum Task {
    Place { object: Arc<OpenObject>, block: BlockId, esi: Esi, to: Placement, symbol: Vec<u8> },
    Recover { object: Arc<OpenObject>, block: BlockId, recipe: Recipe, spool: Vec<Esi> },
    Settle { object: Arc<OpenObject>, block: BlockId, whole: bool },
}

/// An attempt to solve a block.
pub(super) struct Attempt {
    pub(super) block: BlockId,
    pub(super) decoder: Box<dyn Decoder>,
    pub(super) budget: Work,
}

/// Solves until there is nobody to solve for.
pub(super) fn run_solver(queue: &Receiver<Attempt>, reports: &Sender<Report>) {
    for Attempt { block, mut decoder, budget } in queue {
        let progress = decoder.solve(budget);
        if reports.send(Report::Solved { block, decoder, progress }).is_err() {
            return;
        }
    }
}

/// Tasks for one worker, in order.
#[derive(Default)]
pub(super) struct Tasks {
    pub(super) list: Vec<Task>,
    /// Packets of the session that had been received when the list was made.
    pub(super) session_packets: u64,
}

/// What became of it.
pub(super) enum Report {
    Solved { block: BlockId, decoder: Box<dyn Decoder>, progress: Progress },
    Recovered { block: BlockId, hash: Hash },
    Failed { toi: Toi, error: Error },
}

/// Works until there is nobody to work for.
pub(super) fn run(queue: &Receiver<Tasks>, reports: &Sender<Report>, budget: usize) {
    crate::system::give_way();
    for Tasks { list, session_packets } in queue {
        let mut notes = Notes::default();
        for task in list {
            let toi = task.toi();
            let report = work(task, &mut notes, budget)
                .unwrap_or_else(|error| Some(Report::Failed { toi, error }));
            if report.is_some_and(|report| reports.send(report).is_err()) {
                return;
            }
        }
        if !notes.list.is_empty() {
            notes.list.push(Note::Packets { count: session_packets });
        }
        if let Err(error) = notes.write() {
            let _ = reports.send(Report::Failed { toi: Toi::MANIFEST, error: error.into() });
        }
    }
}

fn work(task: Task, notes: &mut Notes, budget: usize) -> Result<Option<Report>, Error> {
    match task {
        Task::Place { object, block, esi, to, symbol } => {
            place(&object, block, esi, to, symbol)?;
            let (toi, sbn) = (block.toi.0 as u32, block.sbn);
            notes.add(
                &object,
                match to {
                    Placement::InPlace => Note::InPlace { toi, sbn, esi },
                    Placement::Spool(slot) => Note::Spooled { toi, sbn, esi, slot },
                },
            );
            Ok(None)
        }
        Task::Recover { object, block, recipe, spool } => {
            let hash = recover(&object, block, recipe, &spool, budget)?;
            Ok(Some(Report::Recovered { block, hash }))
        }
        Task::Settle { object, block, whole } => {
            let (toi, sbn) = (block.toi.0 as u32, block.sbn);
            let note = if whole { Note::Whole { toi, sbn } } else { Note::Void { toi, sbn } };
            notes.add(&object, note);
            if !object.keeps_notes() {
                object.staged.free_repair(sbn)?;
                return Ok(None);
            }
            // First the word that the spool is not needed, then the spool: whoever dies in between
            // finds it needed or not there at all.
            notes.write()?;
            object.staged.free_repair_when_synced(sbn)?;
            Ok(None)
        }
    }
}

/// Notes for the journal, until they are written in one go.
#[derive(Default)]
struct Notes {
    list: Vec<Note>,
    object: Option<Arc<OpenObject>>,
}

impl Notes {
    fn add(&mut self, object: &Arc<OpenObject>, note: Note) {
        if object.keeps_notes() {
            self.list.push(note);
            // All objects of a session share one journal.
            self.object.get_or_insert_with(|| Arc::clone(object));
        }
    }

    fn write(&mut self) -> Result<(), StagingError> {
        let list = std::mem::take(&mut self.list);
        self.object.as_ref().map_or(Ok(()), |object| object.note(&list))
    }
}

impl Task {
    fn toi(&self) -> Toi {
        match self {
            Self::Place { block, .. }
            | Self::Recover { block, .. }
            | Self::Settle { block, .. } => block.toi,
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
    Ok(hasher.finalize())
}
