//! Everything a receiver has accepted: objects, their blocks, and what is still missing.

use super::collector::symbol_fits;
use crate::endpoint::BlockId;
use crate::event::{ObjectFailure, ReceiverEvent, ReceiverOutput, Verified};
use crate::job::{BlockOutcome, JobError, ReceiveJob, Saved, SymbolBytes};
use crate::receiver::{DecodePolicy, ReceiverLimits};
use block::Block;
use fontana_fec::{EncodingId, Esi, IdDecoder, ObjectLayout, Plan, PlanCache, Progress, Sbn};
use fontana_wire::{Hash, Toi};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::RangeInclusive;
use std::sync::Arc;

mod block;

pub(super) use block::Taken;
pub use block::repair_slots;

/// One object on its way.
#[derive(Debug)]
pub(super) struct Object {
    pub(super) layout: ObjectLayout,
    /// Expected hash of each block; `None` if nobody has promised any (plain FLUTE).
    block_hashes: Option<Vec<Hash>>,
    blocks: Vec<Block>,
    /// Blocks of which enough has been heard.
    enough: usize,
    unverified: u32,
    packets: u64,
    pub(super) state: ObjectState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ObjectState {
    /// The driver has not answered [`ReceiveJob::Open`] yet.
    Opening,
    Receiving,
    Committing,
    Done,
    Failed,
}

/// How an object is getting on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectProgress {
    /// Its source symbols, `k` summed over its blocks.
    pub source_symbols: u64,
    /// Packets of the object that were received before enough had been heard of it, duplicates
    /// included.
    pub packets: u64,
}

/// The accepted objects of a receiver.
#[derive(Debug)]
pub(super) struct Transfer {
    pub(super) objects: BTreeMap<Toi, Object>,
    /// Objects that are not received, whatever is heard of them.
    refused: BTreeSet<Toi>,
    /// Objects of the manifest that nobody here wants.
    pub(super) left_out: BTreeSet<Toi>,
    plans: Arc<PlanCache>,
    policy: DecodePolicy,
    max_recoveries: usize,
    max_poisonings: u32,
    max_decoder_bytes: u64,
    /// Sum of [`Block::memory`].
    decoder_bytes: u64,
    recovering: usize,
    /// Solved blocks that wait until fewer are being recovered.
    waiting: VecDeque<BlockId>,
    pub(super) source_symbols: u64,
    pub(super) symbols_wanted: u64,
    /// Sum of [`Object::unheard`].
    pub(super) unheard: usize,
}

/// Block lengths whose plans are kept: an object has two at most, and one follows the other. Each
/// takes 6 MB at most, and is made when a block of that length lacks only a few symbols.
const PLANS: usize = 2;

impl Transfer {
    pub(super) fn new(policy: DecodePolicy, limits: &ReceiverLimits) -> Self {
        Self {
            objects: BTreeMap::new(),
            refused: BTreeSet::new(),
            left_out: BTreeSet::new(),
            plans: Arc::new(PlanCache::new(PLANS)),
            policy,
            max_recoveries: limits.max_recoveries.max(1),
            max_poisonings: limits.max_poisonings,
            max_decoder_bytes: limits.max_decoder_bytes,
            decoder_bytes: 0,
            recovering: 0,
            waiting: VecDeque::new(),
            source_symbols: 0,
            symbols_wanted: 0,
            unheard: 0,
        }
    }

    pub(super) fn share_plans(&mut self, plans: Arc<PlanCache>) {
        self.plans = plans;
    }

    /// Whether it has been decided to receive the object, or not to.
    pub(super) fn contains(&self, toi: Toi) -> bool {
        self.objects.contains_key(&toi) || self.refused.contains(&toi)
    }

    /// Decides not to receive an object. At most `limit` of them are remembered: false if it is
    /// not.
    pub(super) fn refuse(&mut self, toi: Toi, limit: usize) -> bool {
        self.refused.len() < limit && self.refused.insert(toi)
    }

    /// How many of a range of objects [are known](Self::contains).
    pub(super) fn count_known(&self, range: RangeInclusive<Toi>) -> usize {
        // None is in both.
        self.objects.range(range.clone()).count() + self.refused.range(range).count()
    }

    /// Adds an object that the driver has been asked to open.
    pub(super) fn insert(
        &mut self,
        toi: Toi,
        layout: ObjectLayout,
        block_hashes: Option<Vec<Hash>>,
    ) {
        let scheme = layout.oti().scheme;
        let blocks: Vec<_> = (0..layout.block_count())
            .map(Sbn)
            .map(|sbn| {
                let k = layout.source_symbols(sbn).unwrap_or(0);
                let block = Block::new(BlockId { toi, sbn }, scheme, k, Arc::clone(&self.plans));
                if self.policy == DecodePolicy::Deferred { block.deferred() } else { block }
            })
            .collect();
        let count = blocks.len() as u32;
        self.source_symbols += layout.total_source_symbols();
        self.symbols_wanted += layout.total_source_symbols();
        let object = Object {
            layout,
            block_hashes,
            blocks,
            enough: 0,
            unverified: count,
            packets: 0,
            state: ObjectState::Opening,
        };
        self.unheard += object.unheard();
        self.objects.insert(toi, object);
    }

    /// Changes an object, and counts what that changes in how much has been heard.
    fn change<T>(&mut self, toi: Toi, change: impl FnOnce(&mut Object) -> T) -> Option<T> {
        let object = self.objects.get_mut(&toi)?;
        let before = object.unheard();
        let result = change(object);
        self.unheard += object.unheard();
        self.unheard -= before;
        Some(result)
    }

    /// Changes a block, and counts what that changes.
    fn change_block<T>(&mut self, id: BlockId, change: impl FnOnce(&mut Block) -> T) -> Option<T> {
        let (result, changed) = self.objects.get_mut(&id.toi)?.change_block(id.sbn, change)?;
        self.count(&changed);
        Some(result)
    }

    fn count(&mut self, Changed { unheard, symbols_wanted, decoder_bytes }: &Changed) {
        self.unheard = self.unheard + unheard.after - unheard.before;
        self.symbols_wanted =
            (self.symbols_wanted + symbols_wanted.after).saturating_sub(symbols_wanted.before);
        self.decoder_bytes =
            (self.decoder_bytes + decoder_bytes.after).saturating_sub(decoder_bytes.before);
    }

    /// The driver has made room for the object.
    pub(super) fn on_opened(&mut self, toi: Toi, out: &mut VecDeque<ReceiverOutput>) {
        self.change(toi, |object| {
            if object.state == ObjectState::Opening {
                object.state = ObjectState::Receiving;
                object.commit_if_verified(toi, out);
            }
        });
    }

    /// Takes up what an earlier life of the receiver left. Returns how many source symbols need
    /// not be received any more.
    pub(super) fn restore(
        &mut self,
        saved: &Saved,
        verified: Verified,
        out: &mut VecDeque<ReceiverOutput>,
    ) -> u64 {
        let wanted_before = self.symbols_wanted;
        for &toi in &saved.committed {
            let wanted = self.change(toi, |object| {
                object.state = ObjectState::Done;
                object.unverified = 0;
                object.symbols_wanted()
            });
            if let Some(wanted) = wanted {
                self.symbols_wanted = self.symbols_wanted.saturating_sub(wanted);
                out.push_back(ReceiverOutput::Event(ReceiverEvent::ObjectDone { toi, verified }));
            }
        }
        let policy = self.policy;
        for saved in &saved.blocks {
            if self.objects.get(&saved.block.toi).is_none_or(|o| o.state == ObjectState::Done) {
                continue;
            }
            let job = self.change_block(saved.block, |block| {
                block.restore(saved);
                block.try_solve(policy)
            });
            out.extend(job.flatten().map(ReceiverOutput::Job));
        }
        wanted_before.saturating_sub(self.symbols_wanted)
    }

    /// Whether an object can only be completed by symbols that are still to come.
    pub(super) fn is_collecting(&self, toi: Toi) -> bool {
        self.objects.get(&toi).is_some_and(|object| object.blocks.iter().any(Block::is_collecting))
    }

    /// Whether an object was given up.
    pub(super) fn has_failed(&self) -> bool {
        self.objects.values().any(|object| object.state == ObjectState::Failed)
    }

    /// Forgets an object.
    pub(super) fn remove(&mut self, toi: Toi) {
        if let Some(object) = self.objects.remove(&toi) {
            self.unheard -= object.unheard();
            self.symbols_wanted = self.symbols_wanted.saturating_sub(object.symbols_wanted());
            self.decoder_bytes = self.decoder_bytes.saturating_sub(object.decoder_bytes());
        }
    }

    /// Objects that the driver has been asked to open.
    pub(super) fn opening(&self) -> Vec<Toi> {
        let opening = |(_, o): &(&Toi, &Object)| o.state == ObjectState::Opening;
        self.objects.iter().filter(opening).map(|(&toi, _)| toi).collect()
    }

    /// Whether symbols of the object can be placed, or dropped, already.
    pub(super) fn is_open(&self, toi: Toi) -> bool {
        // The object that nearly every packet is of comes first.
        self.objects.get(&toi).is_some_and(|o| o.state != ObjectState::Opening)
            || self.refused.contains(&toi)
            || self.left_out.contains(&toi)
    }

    /// Takes a symbol of an open object; `bytes` is its length.
    pub(super) fn take(
        &mut self,
        block: BlockId,
        esi: Esi,
        encoding_id: EncodingId,
        bytes: usize,
        symbol: SymbolBytes,
        out: &mut VecDeque<ReceiverOutput>,
    ) -> Taken {
        if self.refused.contains(&block.toi) {
            return Taken::Late;
        }
        if self.left_out.contains(&block.toi) {
            return Taken::LeftOut;
        }
        let Some(object) = self.objects.get_mut(&block.toi) else { return Taken::Invalid };
        if object.layout.encoding_id() != encoding_id
            || !symbol_fits(&object.layout, block.sbn, esi, bytes)
        {
            return Taken::Invalid;
        }
        if object.enough < object.blocks.len() {
            object.packets += 1;
        }
        if object.state != ObjectState::Receiving {
            return Taken::Late;
        }
        let more = object.blocks.get(block.sbn.0 as usize).map_or(0, Block::memory_to_begin);
        if more > 0 && self.decoder_bytes.saturating_add(more) > self.max_decoder_bytes {
            return Taken::NoRoom;
        }
        let policy = self.policy;
        let taken = object.change_block(block.sbn, |block| {
            let (taken, place) = block.take(esi, symbol);
            // Jobs are long: they are put where they belong at once.
            if let Some(job) = place {
                out.push_back(ReceiverOutput::Job(job));
            }
            if let Some(job) = block.try_solve(policy) {
                out.push_back(ReceiverOutput::Job(job));
            }
            taken
        });
        let Some((taken, changed)) = taken else { return Taken::Invalid };
        self.count(&changed);
        taken
    }

    /// Nothing is to be deferred: there is no end to wait for.
    pub(super) fn decode_at_once(&mut self) {
        if self.policy == DecodePolicy::Deferred {
            self.policy = DecodePolicy::Incremental;
        }
    }

    /// Everything has been heard: what was deferred is solved.
    pub(super) fn solve_deferred(&mut self, out: &mut VecDeque<ReceiverOutput>) {
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

    pub(super) fn on_solved(
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
                self.recover_or_queue(id, Some(plan), out);
            }
            Some((None, job)) => out.extend(job.map(ReceiverOutput::Job)),
            None => {}
        }
    }

    /// Starts to recover a solved block, unless as many as memory allows are under way.
    fn recover_or_queue(
        &mut self,
        id: BlockId,
        plan: Option<Arc<Plan>>,
        out: &mut VecDeque<ReceiverOutput>,
    ) {
        if self.recovering >= self.max_recoveries {
            self.waiting.push_back(id);
        } else if let Some(job) = self.block(id).and_then(|block| block.recover(plan)) {
            self.recovering += 1;
            out.push_back(ReceiverOutput::Job(job));
        }
    }

    fn block(&mut self, id: BlockId) -> Option<&mut Block> {
        self.objects.get_mut(&id.toi)?.blocks.get_mut(id.sbn.0 as usize)
    }

    /// A block's bytes are complete: are they the right ones? Returns true if they were not.
    pub(super) fn on_recovered(
        &mut self,
        id: BlockId,
        hash: Hash,
        out: &mut VecDeque<ReceiverOutput>,
    ) -> bool {
        if !self.block(id).is_some_and(|block| block.is_recovering()) {
            return false;
        }
        self.recovering = self.recovering.saturating_sub(1);
        if let Some(next) = self.waiting.pop_front() {
            self.recover_or_queue(next, None, out);
        }
        let right = self.objects.get(&id.toi).is_some_and(|object| match &object.block_hashes {
            None => true,
            Some(hashes) => hashes.get(id.sbn.0 as usize) == Some(&hash),
        });
        let outcome = if right { BlockOutcome::Verified } else { BlockOutcome::Corrupt };
        out.push_back(ReceiverOutput::Job(ReceiveJob::Settle { block: id, outcome }));
        if right {
            self.change_block(id, Block::on_verified);
            out.push_back(ReceiverOutput::Event(ReceiverEvent::BlockVerified { block: id }));
            self.change(id.toi, |object| {
                object.unverified = object.unverified.saturating_sub(1);
                object.commit_if_verified(id.toi, out);
            });
            return false;
        }
        let times = self.change_block(id, Block::on_poisoned).unwrap_or_default();
        out.push_back(ReceiverOutput::Event(ReceiverEvent::BlockCorrupt { block: id, times }));
        if times > self.max_poisonings {
            self.fail(id.toi, ObjectFailure::Corrupt, out);
        }
        true
    }

    pub(super) fn on_committed(
        &mut self,
        toi: Toi,
        verified: Verified,
        out: &mut VecDeque<ReceiverOutput>,
    ) {
        self.change(toi, |object| {
            if object.state == ObjectState::Committing {
                object.state = ObjectState::Done;
                out.push_back(ReceiverOutput::Event(ReceiverEvent::ObjectDone { toi, verified }));
            }
        });
    }

    /// An object is done that was no file, but spoke of others. False if it was not being
    /// committed.
    pub(super) fn on_descriptor_read(&mut self, toi: Toi) -> bool {
        let read = self.change(toi, |object| {
            let read = object.state == ObjectState::Committing;
            if read {
                object.state = ObjectState::Done;
            }
            read
        });
        read.unwrap_or(false)
    }

    /// Forgets objects of which something has yet to be heard.
    pub(super) fn forget_unfinished(&mut self, is_unwanted: impl Fn(Toi) -> bool) {
        let unfinished = |(&toi, object): (&Toi, &Object)| {
            let waits = matches!(object.state, ObjectState::Opening | ObjectState::Receiving);
            (waits && is_unwanted(toi)).then_some(toi)
        };
        for toi in self.objects.iter().filter_map(unfinished).collect::<Vec<_>>() {
            self.remove(toi);
        }
    }

    /// Gives up an object.
    pub(super) fn fail(
        &mut self,
        toi: Toi,
        failure: ObjectFailure,
        out: &mut VecDeque<ReceiverOutput>,
    ) {
        let mut released = 0;
        let wanted = self.change(toi, |object| {
            if matches!(object.state, ObjectState::Failed | ObjectState::Done) {
                return 0;
            }
            object.state = ObjectState::Failed;
            out.push_back(ReceiverOutput::Event(ReceiverEvent::ObjectFailed { toi, failure }));
            let wanted = object.symbols_wanted();
            let before = object.decoder_bytes();
            object.blocks.iter_mut().for_each(Block::give_up);
            released = before - object.decoder_bytes();
            wanted
        });
        self.decoder_bytes = self.decoder_bytes.saturating_sub(released);
        self.symbols_wanted = self.symbols_wanted.saturating_sub(wanted.unwrap_or(0));
    }

    /// Gives up every object.
    pub(super) fn fail_all(&mut self, error: &JobError, out: &mut VecDeque<ReceiverOutput>) {
        for toi in self.objects.keys().copied().collect::<Vec<_>>() {
            self.fail(toi, ObjectFailure::Job(error.clone()), out);
        }
    }

    /// Whether nothing that can still be heard would help, as far as is known: a block may yet turn
    /// out to be poisoned, or to need another symbol.
    pub(super) fn heard_enough(&self) -> bool {
        self.unheard == 0
    }

    /// Whether every object has been brought to disk.
    pub(super) fn all_committed(&self) -> bool {
        self.refused.is_empty()
            && self.objects.values().all(|object| object.state == ObjectState::Done)
    }

    /// Whether there is nothing left to do for any object.
    pub(super) fn all_settled(&self) -> bool {
        let settled =
            |object: &Object| matches!(object.state, ObjectState::Done | ObjectState::Failed);
        self.objects.values().all(settled)
    }

    pub(super) fn source_symbols(&self) -> u64 {
        self.source_symbols
    }

    pub(super) fn symbols_wanted(&self) -> u64 {
        self.symbols_wanted
    }

    pub(super) fn progress(&self, toi: Toi) -> Option<ObjectProgress> {
        self.objects.get(&toi).map(|object| ObjectProgress {
            source_symbols: object.layout.total_source_symbols(),
            packets: object.packets,
        })
    }
}

/// What a change of a block has changed in the sums of a transfer.
struct Changed {
    unheard: Step<usize>,
    symbols_wanted: Step<u64>,
    decoder_bytes: Step<u64>,
}

struct Step<T> {
    before: T,
    after: T,
}

impl Object {
    /// Changes a block, and says what that has changed. `None` if there is no such block.
    fn change_block<T>(
        &mut self,
        Sbn(sbn): Sbn,
        change: impl FnOnce(&mut Block) -> T,
    ) -> Option<(T, Changed)> {
        let unheard = self.unheard();
        let block = self.blocks.get_mut(sbn as usize)?;
        let sums = |block: &Block| (u64::from(block.symbols_wanted()), block.memory());
        let (before, enough_before) = (sums(block), block.has_enough());
        let result = change(block);
        let (after, enough) = (sums(block), block.has_enough());
        self.enough = self.enough + usize::from(enough) - usize::from(enough_before);
        let changed = Changed {
            unheard: Step { before: unheard, after: self.unheard() },
            symbols_wanted: Step { before: before.0, after: after.0 },
            decoder_bytes: Step { before: before.1, after: after.1 },
        };
        Some((result, changed))
    }

    /// What is still to be heard: blocks, or the driver's word that symbols can be taken.
    pub(super) fn unheard(&self) -> usize {
        match self.state {
            ObjectState::Opening => self.blocks.len() + 1,
            ObjectState::Receiving => self.blocks.len() - self.enough,
            ObjectState::Committing | ObjectState::Done | ObjectState::Failed => 0,
        }
    }

    pub(super) fn symbols_wanted(&self) -> u64 {
        self.blocks.iter().map(|block| u64::from(block.symbols_wanted())).sum()
    }

    /// Sum of [`Block::memory`].
    fn decoder_bytes(&self) -> u64 {
        self.blocks.iter().map(Block::memory).sum()
    }

    fn commit_if_verified(&mut self, toi: Toi, out: &mut VecDeque<ReceiverOutput>) {
        if self.state == ObjectState::Receiving && self.unverified == 0 {
            self.state = ObjectState::Committing;
            out.push_back(ReceiverOutput::Job(ReceiveJob::Commit { toi }));
        }
    }
}
