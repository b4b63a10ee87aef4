//! What a receiver has accepted: objects, their blocks, and what is missing of them.

use super::config::{DecodePolicy, ReceiverLimits};
use super::sources::{SourceId, Sources};
use super::symbols::{SymbolRun, symbol_fits};
use crate::counter::Counter;
use crate::endpoint::BlockId;
use crate::event::{ReceiverEvent, ReceiverOutput, Verified};
use crate::job::{ReceiveJob, Saved};
use crate::placed::{PlacedRun, SlabSymbols, SymbolBytes};
use block::{Block, Sequel};
use fontana_fec::{EncodingId, Esi, ObjectLayout, PlanCache, Sbn};
use fontana_wire::{Hash, Toi};
use object::{Changed, Object, ObjectState};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::RangeInclusive;
use std::sync::Arc;

mod block;
mod copies;
mod corrupt;
mod ended;
mod lacking;
mod object;
mod pulled;
mod shared;
mod slots;
mod taken;
mod waiting;
mod working;

pub(super) use lacking::Surplus;
pub use object::ObjectProgress;
pub use slots::repair_slots;
pub(super) use taken::Taken;

/// The accepted objects of a receiver.
#[derive(Debug)]
pub(super) struct Transfer {
    objects: BTreeMap<Toi, Object>,
    /// Objects that are not received, whatever arrives of them.
    refused: BTreeSet<Toi>,
    /// Objects of the manifest that the user deselected.
    deselected: BTreeSet<Toi>,
    plans: Arc<PlanCache>,
    policy: DecodePolicy,
    max_recoveries: usize,
    max_decoder_bytes: u64,
    /// Sum of [`Block::memory`].
    decoder_bytes: u64,
    /// Blocks that are being recovered or searched for wrong symbols.
    working: usize,
    /// Blocks that wait for this until it is done with fewer.
    waiting: VecDeque<BlockId>,
    /// Blocks that collect symbols until the wrong ones are found.
    suspects: BTreeSet<BlockId>,
    /// Blocks of which symbols of doubted sources wait.
    holding: BTreeSet<BlockId>,
    pub(super) sources: Sources,
    /// A block that uses waiting symbols of a source from now on.
    usable: Option<BlockId>,
    /// Blocks that take only pulled symbols.
    reserved: BTreeSet<BlockId>,
    source_symbols: u64,
    symbols_wanted: u64,
    /// Sum of [`Object::missing`].
    missing: usize,
}

/// A symbol of an open object, without its bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Incoming {
    pub(super) block: BlockId,
    pub(super) esi: Esi,
    pub(super) encoding_id: EncodingId,
    pub(super) source: SourceId,
}

/// The bytes of a symbol.
#[derive(Debug)]
pub(super) enum SymbolContent<'a> {
    /// They are in the slab of the batch, from `start` on.
    InSlab { bytes: &'a [u8], start: u32 },
    /// They were copied.
    Saved(Vec<u8>),
}

impl SymbolContent<'_> {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::InSlab { bytes, .. } => bytes,
            Self::Saved(bytes) => bytes,
        }
    }

    fn into_symbol_bytes(self) -> SymbolBytes {
        match self {
            Self::InSlab { bytes, start } => {
                SymbolBytes::InSlab(SlabSymbols::one(start, bytes.len() as u32))
            }
            Self::Saved(bytes) => SymbolBytes::Saved(bytes),
        }
    }
}

/// What a block that some symbols have arrived of needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// It is verified, or is not received any more.
    Nothing,
    /// Nothing, if no symbol is wrong.
    Unknown,
    /// More symbols.
    More,
}

/// What a symbol leads to.
#[derive(Debug)]
enum Next {
    /// The bytes of its block are to be worked on.
    Work,
    FollowUp(Sequel),
    /// Symbols that waited are used.
    UseWaiting,
}

/// Block lengths whose plans are cached: an object has two at most, and one follows the other. Each
/// takes 6 MB at most, and is made when a block of that length lacks only a few symbols.
const PLANS: usize = 2;

/// Queues symbols to be placed: with those of the last output, if they follow them.
#[inline]
fn queue_run(out: &mut VecDeque<ReceiverOutput>, run: PlacedRun) {
    if let Some(ReceiverOutput::Job(ReceiveJob::Place(last))) = out.back_mut()
        && last.append(&run)
    {
        return;
    }
    out.push_back(ReceiverOutput::Job(ReceiveJob::Place(run)));
}

impl Transfer {
    pub(super) fn new(policy: DecodePolicy, limits: &ReceiverLimits) -> Self {
        Self {
            objects: BTreeMap::new(),
            refused: BTreeSet::new(),
            deselected: BTreeSet::new(),
            plans: Arc::new(PlanCache::new(PLANS)),
            policy,
            max_recoveries: limits.max_recoveries.max(1),
            max_decoder_bytes: limits.max_decoder_bytes,
            decoder_bytes: 0,
            working: 0,
            waiting: VecDeque::new(),
            suspects: BTreeSet::new(),
            holding: BTreeSet::new(),
            sources: Sources::default(),
            usable: None,
            reserved: BTreeSet::new(),
            source_symbols: 0,
            symbols_wanted: 0,
            missing: 0,
        }
    }

    pub(super) fn share_plans(&mut self, plans: Arc<PlanCache>) {
        self.plans = plans;
    }

    /// Whether it has been decided to receive the object, or not to.
    pub(super) fn contains(&self, toi: Toi) -> bool {
        self.objects.contains_key(&toi) || self.refused.contains(&toi)
    }

    /// Whether symbols of an object are still collected.
    pub(super) fn is_incomplete(&self, toi: Toi) -> bool {
        let waits = |o: &Object| matches!(o.state, ObjectState::Opening | ObjectState::Receiving);
        self.objects.get(&toi).is_some_and(waits)
    }

    /// Whether an object was given up.
    pub(super) fn has_given_up(&self, toi: Toi) -> bool {
        self.objects.get(&toi).is_some_and(|object| object.state == ObjectState::Failed)
    }

    /// Whether the decision not to receive one more object can be remembered.
    pub(super) fn may_refuse(&self, limit: usize) -> bool {
        self.refused.len() < limit
    }

    /// Decides not to receive an object. At most `limit` of them are remembered: false if it is
    /// not.
    pub(super) fn refuse(&mut self, toi: Toi, limit: usize) -> bool {
        self.may_refuse(limit) && self.refused.insert(toi)
    }

    /// Deselects an object that is not open yet: nothing of it is received.
    pub(super) fn deselect(&mut self, toi: Toi) {
        if !self.objects.get(&toi).is_some_and(|o| o.state == ObjectState::Opening) {
            return;
        }
        if let Some(object) = self.objects.remove(&toi) {
            self.missing.discount(object.missing());
            let symbols = object.layout.total_source_symbols();
            self.source_symbols.discount(symbols);
            self.symbols_wanted.discount(object.symbols_wanted());
            self.deselected.insert(toi);
        }
    }

    /// How many of a range of objects [are known](Self::contains).
    pub(super) fn count_known(&self, range: RangeInclusive<Toi>) -> usize {
        // None is in both.
        let opened = self.objects.range(range.clone()).count();
        opened.saturating_add(self.refused.range(range).count())
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
        self.source_symbols.count(layout.total_source_symbols());
        self.symbols_wanted.count(layout.total_source_symbols());
        let object = Object {
            layout,
            block_hashes,
            blocks,
            enough: 0,
            unverified: count,
            packets: 0,
            state: ObjectState::Opening,
        };
        self.missing.count(object.missing());
        self.objects.insert(toi, object);
    }

    /// Changes an object, and what is missing by it.
    fn change<T>(&mut self, toi: Toi, change: impl FnOnce(&mut Object) -> T) -> Option<T> {
        let object = self.objects.get_mut(&toi)?;
        let before = object.missing();
        let result = change(object);
        self.missing.change_part(before, object.missing());
        Some(result)
    }

    /// Changes a block, and the sums with it.
    fn change_block<T>(&mut self, id: BlockId, change: impl FnOnce(&mut Block) -> T) -> Option<T> {
        let (result, changed) = self.objects.get_mut(&id.toi)?.change_block(id.sbn, change)?;
        self.count(&changed);
        Some(result)
    }

    fn count(&mut self, Changed { missing, symbols_wanted, decoder_bytes }: &Changed) {
        self.missing.change_part(missing.before, missing.after);
        self.symbols_wanted.change_part(symbols_wanted.before, symbols_wanted.after);
        self.decoder_bytes.change_part(decoder_bytes.before, decoder_bytes.after);
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

    /// Restores what an earlier run of the receiver saved. Returns the number of source symbols
    /// that need not be received any more.
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
                self.symbols_wanted.discount(wanted);
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

    /// Whether an object can only be completed by symbols that have not arrived.
    pub(super) fn is_collecting(&self, toi: Toi) -> bool {
        self.objects.get(&toi).is_some_and(|object| object.blocks.iter().any(Block::is_collecting))
    }

    /// Symbols that an object lacks; 0 if there is no such object.
    pub(super) fn symbols_wanted_of(&self, toi: Toi) -> u64 {
        self.objects.get(&toi).map_or(0, Object::symbols_wanted)
    }

    /// Whether jobs are running that may show that nothing more is needed.
    pub(super) fn awaits_jobs(&self) -> bool {
        self.objects.values().any(|object| match object.state {
            ObjectState::Opening => true,
            ObjectState::Receiving => object.blocks.iter().any(Block::is_solving),
            ObjectState::Committing | ObjectState::Done | ObjectState::Failed => false,
        })
    }

    /// Objects that the driver has been asked to open.
    pub(super) fn opening(&self) -> Vec<Toi> {
        let opening = |(_, o): &(&Toi, &Object)| o.state == ObjectState::Opening;
        self.objects.iter().filter(opening).map(|(&toi, _)| toi).collect()
    }

    /// Whether symbols of the object can be placed or dropped already.
    pub(super) fn is_open(&self, toi: Toi) -> bool {
        // The object that nearly every packet is of comes first.
        self.objects.get(&toi).is_some_and(|o| o.state != ObjectState::Opening)
            || self.refused.contains(&toi)
            || self.deselected.contains(&toi)
    }

    /// Takes a symbol of an open object.
    pub(super) fn take(
        &mut self,
        symbol: &Incoming,
        content: SymbolContent<'_>,
        out: &mut VecDeque<ReceiverOutput>,
    ) -> Taken {
        let &Incoming { block, esi, encoding_id, source } = symbol;
        let length = content.bytes().len();
        if self.refused.contains(&block.toi) {
            return Taken::Late;
        }
        if self.deselected.contains(&block.toi) {
            return Taken::Deselected;
        }
        let Some(object) = self.objects.get_mut(&block.toi) else { return Taken::Invalid };
        if object.layout.encoding_id() != encoding_id
            || !symbol_fits(&object.layout, block.sbn, esi, length)
        {
            return Taken::Invalid;
        }
        if object.enough < object.blocks.len() {
            object.packets.count(1);
        }
        if object.state != ObjectState::Receiving {
            return Taken::Late;
        }
        let more = object.blocks.get(block.sbn.0 as usize).map_or(0, Block::memory_to_begin);
        if more > self.max_decoder_bytes.saturating_sub(self.decoder_bytes) {
            return Taken::NoRoom;
        }
        let policy = self.policy;
        let sources = &self.sources;
        let room = self.max_decoder_bytes.saturating_sub(self.decoder_bytes);
        let taken = object.change_block(block.sbn, |state| {
            if state.holds_back(source, esi, sources) {
                let taken = state.take_waiting(source);
                let next = match state.ends_waiting() {
                    true => Some(Next::UseWaiting),
                    false => state.waits_in_vain().then_some(Next::FollowUp(Sequel::Unlocated)),
                };
                return (taken, next);
            }
            let (taken, place) = state.take(esi, source, content.bytes(), room);
            if let Some(to) = place {
                let bytes = content.into_symbol_bytes();
                queue_run(out, PlacedRun { block, first: esi, count: 1, to, bytes });
            }
            if let Some(job) = state.try_solve(policy) {
                out.push_back(ReceiverOutput::Job(job));
            }
            let next = match state.give_up_waiting() {
                Some(sequel) => Some(Next::FollowUp(sequel)),
                None if taken.is_news() && state.has_all_source() => {
                    Some(Next::FollowUp(Sequel::Unlocated))
                }
                None => (taken.is_news() && state.awaits_work()).then_some(Next::Work),
            };
            (taken, next)
        });
        let Some(((taken, next), changed)) = taken else { return Taken::Invalid };
        self.count(&changed);
        match next {
            Some(Next::Work) => self.work_or_queue(block, None, out),
            Some(Next::UseWaiting) => self.usable = Some(block),
            Some(Next::FollowUp(sequel)) => self.follow_up(block, sequel, out),
            None => {}
        }
        if taken == Taken::Unverified && self.need(block) == Need::More {
            self.holding.insert(block);
        }
        taken
    }

    /// Whether there is memory for the decoder of a block, if it has not begun.
    fn has_room_for(&self, block: &Block) -> bool {
        block.memory_to_begin() <= self.max_decoder_bytes.saturating_sub(self.decoder_bytes)
    }

    /// The symbols of a payload of an open object, from `esi` on, if they are several. The payload
    /// [is invalid](Taken::Invalid) as a single symbol.
    pub(super) fn symbol_run(
        &self,
        block: BlockId,
        esi: Esi,
        encoding_id: EncodingId,
        bytes: usize,
    ) -> Option<SymbolRun> {
        let object = self.objects.get(&block.toi)?;
        let is_its_code = object.layout.encoding_id() == encoding_id;
        is_its_code.then(|| SymbolRun::new(&object.layout, block.sbn, esi, bytes)).flatten()
    }

    /// Changes when to decode the objects that are inserted from now on.
    pub(super) fn set_policy(&mut self, policy: DecodePolicy) {
        self.policy = policy;
    }

    fn block(&mut self, id: BlockId) -> Option<&mut Block> {
        self.objects.get_mut(&id.toi)?.blocks.get_mut(id.sbn.0 as usize)
    }

    /// What a symbol of the block is good for.
    pub(super) fn need(&self, id: BlockId) -> Need {
        let object = self.objects.get(&id.toi);
        let object = object.filter(|object| object.state == ObjectState::Receiving);
        match object.and_then(|object| object.blocks.get(id.sbn.0 as usize)) {
            None => Need::Nothing,
            Some(block) if block.is_verified() => Need::Nothing,
            Some(block) if block.has_enough() => Need::Unknown,
            Some(_) => Need::More,
        }
    }

    /// Whether blocks are solved only after the channels were left.
    pub(super) fn is_deferred(&self) -> bool {
        self.policy == DecodePolicy::Deferred
    }

    /// Whether no further symbol is needed, as far as is known: a block may turn out to be corrupt,
    /// or to need another symbol.
    pub(super) fn is_received(&self) -> bool {
        self.missing == 0
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
