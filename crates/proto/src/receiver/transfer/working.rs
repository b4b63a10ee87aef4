//! Blocks that may have enough symbols: solved, recovered, and verified.

use super::Transfer;
use super::block::{Block, Sequel};
use super::object::Object;
use crate::counter::Counter;
use crate::endpoint::BlockId;
use crate::event::{ReceiverEvent, ReceiverOutput};
use crate::job::{BlockOutcome, ReceiveJob};
use crate::receiver::config::DecodePolicy;
use fontana_fec::{IdDecoder, Plan, Progress, Sbn};
use fontana_wire::{Hash, Toi};
use std::collections::VecDeque;
use std::sync::Arc;

impl Transfer {
    /// Reception is complete: deferred blocks are solved.
    pub(in crate::receiver) fn solve_deferred(&mut self, out: &mut VecDeque<ReceiverOutput>) {
        if self.policy != DecodePolicy::Deferred {
            return;
        }
        let ids = |(&toi, object): (&Toi, &Object)| {
            let count = object.blocks.len() as u32;
            (0..count).map(move |sbn| BlockId { toi, sbn: Sbn(sbn) })
        };
        let blocks: Vec<_> = self.objects.iter().flat_map(ids).collect();
        for block in blocks {
            let job = self.change_block(block, Block::solve_deferred);
            out.extend(job.flatten().map(ReceiverOutput::Job));
        }
    }

    pub(in crate::receiver) fn on_solved(
        &mut self,
        id: BlockId,
        decoder: Box<dyn IdDecoder>,
        progress: Progress,
        out: &mut VecDeque<ReceiverOutput>,
    ) {
        let policy = self.policy;
        let solved = self.change_block(id, |block| match block.on_solved(decoder, progress) {
            Some(plan) => (Some(plan), None),
            None => (None, block.try_solve(policy)),
        });
        match solved {
            Some((Some(plan), _)) => {
                out.push_back(ReceiverOutput::Event(ReceiverEvent::BlockSolved { block: id }));
                self.work_or_queue(id, Some(plan), out);
            }
            Some((None, job)) => out.extend(job.map(ReceiverOutput::Job)),
            None => {}
        }
    }

    /// Recovers or searches a block that waits for it, or queues the block if as many as memory
    /// allows are being worked on.
    pub(super) fn work_or_queue(
        &mut self,
        id: BlockId,
        plan: Option<Arc<Plan>>,
        out: &mut VecDeque<ReceiverOutput>,
    ) {
        if self.working >= self.max_recoveries {
            self.waiting.push_back(id);
        } else if let Some(job) = self.work_on_bytes(id, plan) {
            self.working.count(1);
            out.push_back(ReceiverOutput::Job(job));
        }
    }

    fn work_on_bytes(&mut self, id: BlockId, plan: Option<Arc<Plan>>) -> Option<ReceiveJob> {
        let object = self.objects.get_mut(&id.toi)?;
        let at = id.sbn.0 as usize;
        let expected = object.block_hashes.as_ref().and_then(|hashes| hashes.get(at)).copied();
        object.blocks.get_mut(at)?.work_on_bytes(plan, expected)
    }

    /// A block is recovered or searched: those that wait are next.
    pub(super) fn on_work_done(&mut self, out: &mut VecDeque<ReceiverOutput>) {
        self.working.discount(1);
        self.work_on_waiting(out);
    }

    /// Begins to work on blocks that wait, as far as memory allows.
    pub(super) fn work_on_waiting(&mut self, out: &mut VecDeque<ReceiverOutput>) {
        while self.working < self.max_recoveries
            && let Some(next) = self.waiting.pop_front()
        {
            self.work_or_queue(next, None, out);
        }
    }

    /// A block's bytes are complete, and have this hash. Returns true if it is the wrong one.
    pub(in crate::receiver) fn on_recovered(
        &mut self,
        id: BlockId,
        hash: Hash,
        out: &mut VecDeque<ReceiverOutput>,
    ) -> bool {
        if !self.block(id).is_some_and(|block| block.is_recovering()) {
            // Its object was given up.
            self.work_on_waiting(out);
            return false;
        }
        self.on_work_done(out);
        let right = self.objects.get(&id.toi).is_some_and(|object| match &object.block_hashes {
            None => true,
            Some(hashes) => hashes.get(id.sbn.0 as usize) == Some(&hash),
        });
        if right {
            let counts = self.block(id).map(|block| block.proven_by_source()).unwrap_or_default();
            let excluded = self.block(id).and_then(|block| block.excluded());
            self.sources.on_verified(&counts);
            self.sources.on_wrong(excluded);
            self.holding.remove(&id);
            let outcome = BlockOutcome::Verified;
            out.push_back(ReceiverOutput::Job(ReceiveJob::Settle { block: id, outcome }));
            self.change_block(id, Block::on_verified);
            self.reserved.remove(&id);
            out.push_back(ReceiverOutput::Event(ReceiverEvent::BlockVerified { block: id }));
            self.change(id.toi, |object| {
                object.unverified.discount(1);
                object.commit_if_verified(id.toi, out);
            });
            return false;
        }
        let counts = self.block(id).map(|block| block.symbols_by_source()).unwrap_or_default();
        self.sources.on_corrupt(&counts);
        let sequel = self.change_block(id, Block::on_corrupt);
        let times = self.block(id).map_or(0, |block| block.corruptions());
        out.push_back(ReceiverOutput::Event(ReceiverEvent::BlockCorrupt { block: id, times }));
        self.follow_up(id, sequel.unwrap_or(Sequel::Collects), out);
        true
    }
}
