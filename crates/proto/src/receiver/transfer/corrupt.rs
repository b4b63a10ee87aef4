//! Corrupt blocks: what follows a wrong hash, a search for wrong symbols, or a choice among copies.

use super::block::{Block, Sequel};
use super::{Need, Transfer, queue_run};
use crate::endpoint::BlockId;
use crate::event::{ObjectFailure, ReceiverEvent, ReceiverOutput};
use crate::job::{BlockOutcome, ReceiveJob, SymbolCopy};
use crate::placed::{PlacedRun, SymbolBytes, SymbolPlace};
use crate::receiver::sources::Choice;
use crate::time::Instant;
use fontana_fec::{Esi, Location};
use std::collections::VecDeque;

impl Transfer {
    /// A search for the wrong symbols of a block has ended.
    pub(in crate::receiver) fn on_located(
        &mut self,
        now: Instant,
        id: BlockId,
        location: Location,
        out: &mut VecDeque<ReceiverOutput>,
    ) {
        if !self.block(id).is_some_and(|block| block.is_locating()) {
            return self.work_on_waiting(out);
        }
        self.on_work_done(out);
        if let Some(sequel) = self.change_block(id, |block| block.on_located(now, location)) {
            self.follow_up(id, sequel, out);
        }
    }

    /// A choice among the copies of a block's symbols was made.
    pub(in crate::receiver) fn on_chosen(
        &mut self,
        id: BlockId,
        chosen: Option<&[Esi]>,
        out: &mut VecDeque<ReceiverOutput>,
    ) {
        if !self.block(id).is_some_and(|block| block.is_choosing()) {
            return self.work_on_waiting(out);
        }
        self.on_work_done(out);
        if let Some(sequel) = self.change_block(id, |block| block.on_chosen(chosen)) {
            self.follow_up(id, sequel, out);
        }
    }

    /// Drops what other receivers have sent of a block whose wrong symbols are not found.
    pub(in crate::receiver) fn drop_shared(
        &mut self,
        id: BlockId,
        out: &mut VecDeque<ReceiverOutput>,
    ) {
        if self.block(id).is_some_and(|block| block.is_suspect() && block.has_shared())
            && let Some(sequel) = self.change_block(id, |block| block.begin_again(None))
        {
            self.follow_up(id, sequel, out);
        }
    }

    /// Does what follows a wrong hash or a search.
    pub(super) fn follow_up(
        &mut self,
        id: BlockId,
        sequel: Sequel,
        out: &mut VecDeque<ReceiverOutput>,
    ) {
        let void = ReceiveJob::Settle { block: id, outcome: BlockOutcome::Corrupt };
        self.suspects.remove(&id);
        match sequel {
            Sequel::Collects => {
                self.suspects.insert(id);
                if self.block(id).is_some_and(|block| block.awaits_work()) {
                    self.work_or_queue(id, None, out);
                }
            }
            Sequel::Dropped(sources) => {
                let count = sources.len() as u32;
                self.sources.on_wrong(sources);
                let left = self.block(id).map(|block| block.symbols_by_source());
                self.sources.on_cleared(&left.unwrap_or_default());
                self.solve_without(id, count, out);
            }
            Sequel::Replaced(chosen) => {
                let count = chosen.wrong.len() as u32;
                self.sources.on_wrong(chosen.wrong);
                for SymbolCopy { esi, bytes } in chosen.copies {
                    let (to, bytes) = (SymbolPlace::InPlace, SymbolBytes::Saved(bytes));
                    queue_run(out, PlacedRun { block: id, first: esi, count: 1, to, bytes });
                }
                self.solve_without(id, count, out);
            }
            Sequel::LeftOut(count) => self.solve_without(id, count, out),
            Sequel::Unlocated => {
                let Some(block) = self.block(id) else { return };
                let (sources, tried) = (block.sources(), block.tried().clone());
                let choice = match block.prefers_source() {
                    true => Some(Choice::Source),
                    false => self.sources.next_choice(&sources, &tried),
                };
                self.usable = choice.map(|_| id);
                if let Some(sequel) = self.change_block(id, |block| block.begin_again(choice)) {
                    self.follow_up(id, sequel, out);
                }
            }
            Sequel::Agreed => {
                let Some(block) = self.block(id) else { return };
                let (choice, has_shared) = (block.choice(), block.has_shared());
                let sources = block.symbols_by_source();
                // A forger of all symbols of a block can make them agree, and any host can send as
                // another receiver.
                let sequel = if choice.is_some() || has_shared || self.sources.has_others(&sources)
                {
                    Some(Sequel::Unlocated)
                } else {
                    self.change_block(id, Block::count_agreement)
                };
                if let Some(sequel) = sequel {
                    self.follow_up(id, sequel, out);
                }
            }
            Sequel::Restarted => out.push_back(ReceiverOutput::Job(void)),
            Sequel::Hopeless => {
                out.push_back(ReceiverOutput::Job(void));
                self.fail(id.toi, ObjectFailure::Corrupt, out);
            }
        }
    }

    /// Solves a block again, of which so many symbols were dropped, if the others suffice.
    fn solve_without(&mut self, id: BlockId, count: u32, out: &mut VecDeque<ReceiverOutput>) {
        let event = ReceiverEvent::SymbolsDropped { block: id, count };
        out.push_back(ReceiverOutput::Event(event));
        let policy = self.policy;
        let job = self.change_block(id, |block| block.try_solve(policy));
        out.extend(job.flatten().map(ReceiverOutput::Job));
    }

    /// Whether blocks wait for symbols by which their wrong ones are found.
    pub(in crate::receiver) fn has_suspects(&self) -> bool {
        !self.suspects.is_empty()
    }

    /// The first block whose wrong symbols were not found yet.
    pub(in crate::receiver) fn first_suspect(&self) -> Option<BlockId> {
        self.suspects.iter().copied().find(|&id| self.need(id) != Need::Nothing)
    }

    /// No symbols of use have arrived for [`IDLE`](super::suspicion::IDLE): such blocks are
    /// searched with those that they have.
    pub(in crate::receiver) fn on_idle(&mut self, out: &mut VecDeque<ReceiverOutput>) {
        for id in self.suspects.iter().copied().collect::<Vec<_>>() {
            if !self.block(id).is_some_and(|block| block.is_suspect()) {
                self.suspects.remove(&id);
            } else if self.change_block(id, Block::on_idle) == Some(true) {
                self.work_or_queue(id, None, out);
            } else if self.block(id).is_some_and(|block| block.is_stuck()) {
                self.follow_up(id, Sequel::Unlocated, out);
            }
        }
    }
}
