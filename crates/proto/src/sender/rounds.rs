//! Planning windows: the order of symbols, planned and prepared in advance.
//!
//! A *window*, called round here, is a part of the order that is prepared as a whole: a batch for
//! each block that occurs in it. While one window is sent, the next is prepared. If the order
//! depends on the channel, a window has a queue for each channel, as long as the clock needs it.
//! The slowest queues still have a few symbols when the next window begins. These are kept for one
//! more window, and then returned to the order. If the clock proceeds differently than planned (a
//! sender woke up late, and WEBRC's slots did not wait), it may ask for symbols of an empty queue.
//! It then gets a symbol of another queue, because sending any symbol matters more than its
//! channel.

use crate::channel::ChannelId;
use crate::congestion::ChannelClock;
use crate::endpoint::{BatchId, BlockId, SymbolId};
use crate::event::SenderOutput;
use crate::job::SendJob;
use crate::schedule::TransmissionSchedule;
use crate::schedule::{BlockShape, Order, RunLength, SymbolStream, Turn, share};
use fontana_fec::{EncodingId, Esi, Oti};
use fontana_wire::SymbolDigest;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;

/// A source block to send.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) id: BlockId,
    pub(super) shape: BlockShape,
    pub(super) encoding_id: EncodingId,
    pub(super) stream: SymbolStream,
    /// Position in the stream of turn 0 of the order: not 0 if the order was restarted.
    pub(super) start: u64,
    /// Position in the stream after the last symbol that was sent, and after the last one that was
    /// planned.
    pub(super) sent: u64,
    pub(super) planned: u64,
    /// Number of its symbols in the first phase; 0 if it is sent with all others.
    pub(super) first: u64,
    /// Number of its symbols in the opening.
    pub(super) opening: u64,
    /// Number of symbols that were planned on demand, after those of the order.
    pub(super) repaired: u64,
    pub(super) symbol_size: u16,
    /// Bytes to send of its last source symbol.
    pub(super) last_symbol_size: u16,
    /// Transmission information that its packets carry, if they do.
    pub(super) fti: Option<Oti>,
    /// Bytes of the header of its packets.
    pub(super) header_size: u16,
}

impl Block {
    /// A turn with this symbol, if symbols repeat in the order of their numbers.
    fn turn_of(&self, esi: Esi) -> Option<u64> {
        let cycle = u64::from(self.shape.encoding_symbols?).max(1);
        let i = (u64::from(esi.0) + cycle - self.start % cycle) % cycle;
        (self.stream.esi(self.start + i) == esi).then_some(i)
    }

    /// The planned symbol, one of this block's.
    pub(super) fn symbol(&self, planned: Planned) -> SymbolId {
        let Planned { batch, index, esi, .. } = planned;
        let is_last = esi.0 + 1 == self.shape.source_symbols;
        let size = if is_last { self.last_symbol_size } else { self.symbol_size };
        SymbolId { block: self.id, esi, batch, index, size }
    }
}

/// A planned symbol: a turn of its block, and its place among the prepared symbols.
#[derive(Clone, Copy, Debug)]
pub(super) struct Planned {
    pub(super) turn: Turn,
    /// Position in the stream after it.
    end: u64,
    esi: Esi,
    batch: BatchId,
    index: u32,
}

/// Why a queue has no symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Missing {
    /// It is not prepared yet.
    Unprepared,
    /// There are no more symbols for the channel.
    Over,
}

/// Makes the order of a session's symbols.
#[derive(Clone, Copy, Debug)]
pub(super) struct OrderFactory {
    pub(super) schedule: TransmissionSchedule,
    pub(super) layer_count: usize,
    /// Symbols of a block per thousand source symbols; `None`: no limit.
    pub(super) limit_permille: Option<u32>,
    pub(super) seed: u64,
}

impl OrderFactory {
    fn order(&self, blocks: &[Block]) -> Order {
        let shapes: Vec<_> = blocks.iter().map(|block| block.shape).collect();
        let first = blocks.iter().map(|block| block.first).collect();
        let opening = blocks.iter().map(|block| block.opening).collect();
        Order::new(self.schedule, &shapes, self.layer_count, self.limit_permille, self.seed)
            .after_first_phase(first)
            .with_opening(opening)
    }
}

/// The planning windows of a session.
#[derive(Debug)]
pub(super) struct Rounds {
    blocks: Vec<Block>,
    orders: OrderFactory,
    order: Order,
    /// The blocks of a window alternate after so many symbols, for any number of symbols of each;
    /// `None`: the window has the order of the schedule.
    alternation: Option<RunLength>,
    rounds: VecDeque<Round>,
    /// The window after the prepared ones, while it is planned.
    draft: Option<Draft>,
    /// True after the first symbol was sent.
    begun: bool,
    /// Turns that were planned and not sent, for each queue.
    returned: Vec<VecDeque<Turn>>,
    /// For each queue, true if the order has no more turns.
    over: Vec<bool>,
    /// The blocks by their ids, once symbols are requested.
    indices: BTreeMap<BlockId, usize>,
    /// Symbols to send of each block on demand, after the order.
    requested: BTreeMap<usize, u64>,
    /// Symbols to send again, after the order.
    named: VecDeque<(usize, Esi)>,
    /// Block of the last symbol that was planned on demand, and how many follow of it.
    requested_run: (usize, u64),
    round_symbols: u32,
    /// Symbols of the next window, while windows grow.
    next_round: u32,
    next_batch: u64,
    /// Number of symbols that were sent or dropped.
    position: u64,
    /// The digests of the symbols of prepared batches, until their window is prepared.
    digests: BTreeMap<BatchId, Vec<SymbolDigest>>,
    /// Every batch that was requested and not answered.
    preparing: BTreeSet<BatchId>,
    /// Blocks that are not sent any more.
    withdrawn: BTreeSet<usize>,
}

#[derive(Debug)]
struct Round {
    queues: Vec<VecDeque<Planned>>,
    unsent: usize,
    begun: bool,
    ready: bool,
    /// Its digests were taken.
    digested: bool,
    batches: Range<u64>,
}

impl Round {
    /// A window begins when all of it is prepared: consecutive symbols are from different batches.
    fn is_ready(&self, preparing: &BTreeSet<BatchId>) -> bool {
        let batches = BatchId(self.batches.start)..BatchId(self.batches.end);
        self.ready || preparing.range(batches).next().is_none()
    }
}

/// A window that is being planned.
#[derive(Debug)]
struct Draft {
    /// The clock at the end of the draft; `None` if there is one queue for all channels.
    clock: Option<ChannelClock>,
    /// For each queue, the symbols that it had when the draft began and that the clock has not
    /// reached.
    waiting: Vec<usize>,
    /// Remaining turns to plan, and packets of the clock to examine for them: the draft requests no
    /// symbols for channels that the clock has left permanently, and their remaining symbols must
    /// not make windows longer.
    turns: usize,
    packets: usize,
    queues: Vec<VecDeque<Planned>>,
    /// The batch of each block that occurs.
    batches: BTreeMap<usize, (BatchId, Vec<Esi>)>,
    first_batch: u64,
    /// It began in the first phase of the order, and ends with it.
    is_first_phase: bool,
    /// The order is over: it has symbols on demand, whose order stays.
    is_repair: bool,
}

/// The result of a step of a draft.
enum Step {
    /// Plan a turn of this queue.
    Turn(usize),
    /// The packet has a symbol already.
    Passed,
    /// The window is complete.
    Whole,
}

/// Steps of a draft for every packet that is sent. Planning a large window at once would take tens
/// of milliseconds, during which packets are due.
const STEPS_AT_A_TIME: usize = 16;

/// Symbols of a block on demand that follow each other: a GSO batch.
const REQUESTED_RUN: u64 = 32;

/// Symbols of the first window; windows double from there. So the first packet need not wait for a
/// large window to be prepared.
const FIRST_ROUND: u32 = 1024;
/// One being sent, one being prepared, and what slow channels still have of the previous one.
const MAX_ROUNDS: usize = 3;

impl Rounds {
    pub(super) fn new(blocks: Vec<Block>, orders: OrderFactory, round_symbols: u32) -> Self {
        let round_symbols = round_symbols.max(1);
        let order = orders.order(&blocks);
        Self {
            blocks,
            orders,
            returned: vec![VecDeque::new(); order.queue_count()],
            over: vec![false; order.queue_count()],
            order,
            indices: BTreeMap::new(),
            requested: BTreeMap::new(),
            named: VecDeque::new(),
            requested_run: (0, 0),
            alternation: orders
                .schedule
                .alternates_in_windows()
                .then(|| orders.schedule.run_length()),
            rounds: VecDeque::new(),
            draft: None,
            begun: false,
            round_symbols,
            next_round: FIRST_ROUND.min(round_symbols),
            next_batch: 0,
            position: 0,
            digests: BTreeMap::new(),
            preparing: BTreeSet::new(),
            withdrawn: BTreeSet::new(),
        }
    }

    /// Adds blocks and restarts the order over all of them. Planned symbols that were not sent are
    /// released, and each block continues after its last sent symbol. The first phase and the
    /// opening end.
    pub(super) fn extend(&mut self, added: Vec<Block>, out: &mut VecDeque<SenderOutput>) {
        self.digests.clear();
        while !self.rounds.is_empty() {
            self.release(0, out);
        }
        self.draft = None;
        for block in &mut self.blocks {
            (block.start, block.planned) = (block.sent, block.sent);
            (block.first, block.opening) = (0, 0);
        }
        self.blocks.extend(added);
        self.make_order();
        self.returned = vec![VecDeque::new(); self.order.queue_count()];
        self.over = vec![false; self.order.queue_count()];
        self.next_round = FIRST_ROUND.min(self.round_symbols);
    }

    fn make_order(&mut self) {
        self.order = self.orders.order(&self.blocks);
        self.withdrawn.iter().for_each(|&index| self.order.withdraw(index));
    }

    /// Goes on with all blocks without end, in the order of the schedule, or with what is requested
    /// alone. What is planned is sent; what was requested and is not planned is forgotten, because
    /// all blocks advance, or have. For a session on one channel.
    pub(super) fn advance_all(&mut self, advances: bool) {
        self.orders.limit_permille = if advances { None } else { Some(0) };
        for block in &mut self.blocks {
            (block.start, block.repaired) = (block.planned, 0);
            if self.begun {
                (block.first, block.opening) = (0, 0);
            }
        }
        self.make_order();
        self.requested.clear();
        self.named.clear();
        self.over.fill(!advances);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Source symbols of all blocks.
    pub(super) fn source_symbols(&self) -> u64 {
        self.blocks.iter().map(|block| u64::from(block.shape.source_symbols)).sum()
    }

    /// Number of symbols of the first phase.
    pub(super) fn first_symbols(&self) -> u64 {
        self.blocks.iter().map(|block| block.first).sum()
    }

    pub(super) fn block(&self, index: usize) -> Option<&Block> {
        self.blocks.get(index)
    }

    /// The queue of a channel.
    pub(super) fn queue_of(&self, channel: ChannelId) -> usize {
        usize::from(channel.0).min(self.returned.len().saturating_sub(1))
    }

    /// Continues planning what should be prepared by now.
    pub(super) fn plan_ahead(
        &mut self,
        clock: Option<&ChannelClock>,
        out: &mut VecDeque<SenderOutput>,
    ) {
        // Before the first packet there is nothing else to send.
        let steps = if self.begun { STEPS_AT_A_TIME } else { usize::MAX };
        while self.draft.is_some()
            || self.rounds.len() < 2
            || self.rounds.back().is_some_and(|round| round.begun)
        {
            if !self.plan(steps, clock, out) {
                break;
            }
        }
    }

    /// The next symbol of a queue, and the queue that has it. It stays there until
    /// [`take`](Self::take).
    pub(super) fn peek(
        &mut self,
        queue: usize,
        clock: Option<&ChannelClock>,
        out: &mut VecDeque<SenderOutput>,
    ) -> Result<(usize, Planned), Missing> {
        loop {
            self.drop_withdrawn(queue, out);
            let own = self.next_in(queue);
            if let Some((planned, true)) = own {
                return Ok((queue, planned));
            }
            let may_have_more = own.is_some() || !self.is_over(queue);
            if let Some(other) = self.fullest_ready().filter(|_| may_have_more) {
                self.drop_withdrawn(other, out);
                if let Some((planned, true)) = self.next_in(other) {
                    return Ok((other, planned));
                }
                continue;
            }
            if own.is_some() {
                return Err(Missing::Unprepared);
            }
            if self.is_over(queue) || !self.plan(usize::MAX, clock, out) {
                return Err(Missing::Over);
            }
        }
    }

    /// The next planned symbol of a queue, and whether it is prepared.
    fn next_in(&mut self, queue: usize) -> Option<(Planned, bool)> {
        self.rounds.iter_mut().find_map(|round| {
            let next = round.queues.get(queue)?.front().copied()?;
            round.ready = round.is_ready(&self.preparing);
            Some((next, round.ready))
        })
    }

    /// The queue with the most symbols in the oldest window, if that is prepared.
    fn fullest_ready(&self) -> Option<usize> {
        let round = self.rounds.front().filter(|round| round.is_ready(&self.preparing))?;
        let (queue, symbols) = round.queues.iter().enumerate().max_by_key(|(_, q)| q.len())?;
        (!symbols.is_empty()).then_some(queue)
    }

    /// Removes the symbol that [`peek`](Self::peek) returned, after it was sent.
    pub(super) fn take(&mut self, queue: usize, out: &mut VecDeque<SenderOutput>) {
        let waiting = |round: &Round| round.queues.get(queue).is_some_and(|q| !q.is_empty());
        let Some(index) = self.rounds.iter().position(waiting) else { return };
        self.begun = true;
        self.position += 1;
        if let Some(round) = self.rounds.get_mut(index) {
            round.begun = true;
            if let Some(Planned { turn, end, .. }) =
                round.queues.get_mut(queue).and_then(VecDeque::pop_front)
            {
                round.unsent -= 1;
                if let Some(block) = self.blocks.get_mut(turn.block) {
                    block.sent = block.sent.max(end);
                }
            }
            if round.unsent == 0 {
                self.release(index, out);
            }
        }
    }

    /// True if all symbols of the first phase were sent, also if there is none.
    pub(super) fn is_first_phase_over(&self) -> bool {
        let is_over = |(index, block): (usize, &Block)| {
            block.sent >= block.first || self.withdrawn.contains(&index)
        };
        self.blocks.iter().enumerate().all(is_over)
    }

    /// True if no channel has anything to send.
    pub(super) fn are_over(&self) -> bool {
        self.rounds.is_empty()
            && self.draft.is_none()
            && self.requested.is_empty()
            && self.named.is_empty()
    }

    /// True if everything that was ordered or requested is sent.
    pub(super) fn are_sent(&self) -> bool {
        self.are_over() && self.over.iter().all(|&over| over)
    }

    /// Handles a batch that is prepared, with the digests of its symbols if the driver makes them.
    pub(super) fn on_prepared(&mut self, batch: BatchId, digests: Vec<SymbolDigest>) {
        if self.preparing.remove(&batch) && !digests.is_empty() {
            self.digests.insert(batch, digests);
        }
    }

    /// The number of symbols that were sent or dropped: the position of the next one in the order
    /// of a session on one channel.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// The digests of the next window that is prepared, in the order in which its symbols are sent,
    /// and the position of the first one. Each window has one turn. Symbols that cannot be prepared
    /// have zeros.
    pub(super) fn prepared_digests(&mut self) -> Option<(u64, Vec<SymbolDigest>)> {
        let at = self.rounds.iter().position(|round| !round.digested)?;
        let before: usize = self.rounds.iter().take(at).map(|round| round.unsent).sum();
        let round = self.rounds.get_mut(at).filter(|round| round.is_ready(&self.preparing))?;
        round.digested = true;
        let digest = |planned: &Planned| {
            let of_batch = self.digests.get(&planned.batch);
            let digest = of_batch.and_then(|digests| digests.get(planned.index as usize));
            digest.copied().unwrap_or_default()
        };
        let digests = round.queues.iter().flatten().map(digest).collect();
        let batches = BatchId(round.batches.start)..BatchId(round.batches.end);
        self.digests.retain(|batch, _| !batches.contains(batch));
        Some((self.position + before as u64, digests))
    }

    /// Handles a batch that cannot be prepared. Returns its block if it has symbols left to send.
    pub(super) fn on_prepare_failed(&mut self, batch: BatchId) -> Option<BlockId> {
        self.preparing.remove(&batch);
        let mut planned = self.rounds.iter().flat_map(|round| round.queues.iter().flatten());
        let planned = planned.find(|planned| planned.batch == batch)?;
        self.blocks.get(planned.turn.block).map(|block| block.id)
    }

    /// Withdraws a block, or its whole object; false if that was withdrawn already.
    pub(super) fn withdraw(&mut self, id: BlockId, is_alone: bool) -> bool {
        let is_lost = |block: &Block| match is_alone {
            true => block.id == id,
            false => block.id.toi == id.toi,
        };
        let lost = (0..).zip(&self.blocks).filter(|(_, block)| is_lost(block));
        let before = self.withdrawn.len();
        for (index, _) in lost {
            if self.withdrawn.insert(index) {
                self.order.withdraw(index);
                self.requested.remove(&index);
                self.named.retain(|&(block, _)| block != index);
            }
        }
        self.withdrawn.len() > before
    }

    /// Continues the plan of the next window for some steps, and requests its batches if it is
    /// complete. False if there is nothing to request yet, or nothing to plan.
    fn plan(
        &mut self,
        steps: usize,
        clock: Option<&ChannelClock>,
        out: &mut VecDeque<SenderOutput>,
    ) -> bool {
        let draft = self.draft.take();
        if draft.is_none() && (0..self.over.len()).all(|queue| self.is_over(queue)) {
            return false;
        }
        let mut draft = draft.unwrap_or_else(|| self.begin(clock, out));
        for _ in 0..steps {
            match draft.step() {
                Step::Turn(queue) => {
                    self.lay_out(&mut draft, queue);
                    // The blocks of a window advance evenly: another one begins the order proper.
                    if draft.is_first_phase && self.order.is_first_phase_over() {
                        return self.finish(draft, out);
                    }
                }
                Step::Passed => {}
                Step::Whole => return self.finish(draft, out),
            }
        }
        self.draft = Some(draft);
        false
    }

    /// A draft of symbols for the queues that the clock will use after it has taken the symbols
    /// that are planned already.
    fn begin(&mut self, clock: Option<&ChannelClock>, out: &mut VecDeque<SenderOutput>) -> Draft {
        if self.rounds.len() >= MAX_ROUNDS {
            self.hand_back(out);
        }
        let turns = self.next_round as usize;
        self.next_round = self.next_round.saturating_mul(2).min(self.round_symbols);
        let mut waiting = vec![0_usize; self.returned.len()];
        for round in &self.rounds {
            for (waiting, queue) in waiting.iter_mut().zip(&round.queues) {
                *waiting += queue.len();
            }
        }
        Draft {
            clock: clock.filter(|_| self.returned.len() > 1).cloned(),
            turns,
            packets: turns + waiting.iter().sum::<usize>(),
            waiting,
            queues: vec![VecDeque::new(); self.returned.len()],
            batches: BTreeMap::new(),
            first_batch: self.next_batch,
            is_first_phase: !self.order.is_first_phase_over(),
            is_repair: !self.indices.is_empty(),
        }
    }

    fn lay_out(&mut self, draft: &mut Draft, queue: usize) {
        let Some(turn) = self.next_turn(queue) else { return };
        let Some(block) = self.blocks.get_mut(turn.block) else { return };
        let esi = block.stream.esi(block.start + turn.i);
        let end = block.start + turn.i + 1;
        block.planned = block.planned.max(end);
        let (batch, esis) = draft.batches.entry(turn.block).or_insert_with(|| {
            self.next_batch += 1;
            (BatchId(self.next_batch - 1), Vec::new())
        });
        let planned = Planned { turn, end, esi, batch: *batch, index: esis.len() as u32 };
        esis.push(esi);
        draft.queues.get_mut(queue).into_iter().for_each(|q| q.push_back(planned));
    }

    /// Requests the batches of a window; false if it is empty.
    fn finish(&mut self, draft: Draft, out: &mut VecDeque<SenderOutput>) -> bool {
        let Draft { mut queues, batches, first_batch, is_repair, .. } = draft;
        let unsent = queues.iter().map(VecDeque::len).sum();
        if unsent == 0 {
            return false;
        }
        if let Some(run_length) = self.alternation.filter(|_| !is_repair) {
            // The middle of the run, as a share of the block's symbols in the window.
            let share = |planned: &Planned| {
                let block = planned.turn.block;
                let length = batches.get(&block).map_or(1, |(_, esis)| esis.len() as u64);
                let k = self.blocks.get(block).map_or(1, |block| block.shape.source_symbols);
                let run = run_length.of(k.into());
                (((2 * (u64::from(planned.index) / run) + 1) * run) << 31) / length
            };
            queues.iter_mut().for_each(|queue| queue.make_contiguous().sort_by_cached_key(share));
        }
        for (block, (batch, esis)) in batches {
            let Some(block) = self.blocks.get(block) else { continue };
            self.preparing.insert(batch);
            let Block { id, header_size, .. } = *block;
            let job = SendJob::Prepare { batch, block: id, esis, header_size };
            out.push_back(SenderOutput::Job(job));
        }
        let batches = first_batch..self.next_batch;
        self.rounds.push_back(Round {
            queues,
            unsent,
            begun: false,
            ready: false,
            digested: false,
            batches,
        });
        true
    }

    /// The next turn of a queue, if it has one.
    fn next_turn(&mut self, queue: usize) -> Option<Turn> {
        let returned = self.returned.get_mut(queue).and_then(VecDeque::pop_front);
        let turn = returned.or_else(|| self.order.turn(queue)).or_else(|| self.requested_turn());
        if turn.is_none()
            && let Some(over) = self.over.get_mut(queue)
        {
            *over = true;
        }
        turn
    }

    /// The next symbol on demand. Blocks alternate in runs, whatever is requested of each:
    /// receivers that lack little need not wait for those that lack much.
    fn requested_turn(&mut self) -> Option<Turn> {
        while let Some((index, esi)) = self.named.pop_front() {
            let turn = self.blocks.get(index).and_then(|block| block.turn_of(esi));
            if let Some(i) = turn {
                return Some(Turn { block: index, i });
            }
        }
        let (last, run) = self.requested_run;
        let from = if run > 0 { last } else { last + 1 };
        let next = self.requested.range(from..).next().or_else(|| self.requested.first_key_value());
        let (&index, _) = next?;
        let left = self.requested.get_mut(&index)?;
        *left -= 1;
        if *left == 0 {
            self.requested.remove(&index);
        }
        let run = if index == last && run > 0 { run } else { REQUESTED_RUN };
        self.requested_run = (index, run - 1);
        let limit = self.orders.limit_permille.unwrap_or(0);
        let block = self.blocks.get_mut(index)?;
        let turns = share(block.shape.source_symbols, limit);
        let i = self.order.beyond(&block.shape, turns) + block.repaired;
        block.repaired += 1;
        Some(Turn { block: index, i })
    }

    /// Plans this many more symbols of a block, after the order; none while that has no end. A
    /// block that is unknown or withdrawn has none.
    pub(super) fn repair(&mut self, id: BlockId, symbols: u32) {
        let is_served = self.orders.limit_permille.is_none();
        if let Some(index) = self.index_of(id).filter(|_| symbols > 0 && !is_served) {
            *self.requested.entry(index).or_insert(0) += u64::from(symbols);
            self.over.fill(false);
        }
    }

    /// Plans a symbol of a block again, after the order.
    pub(super) fn resend(&mut self, id: BlockId, esi: Esi) {
        let is_served = self.orders.limit_permille.is_none();
        if let Some(index) = self.index_of(id).filter(|_| !is_served) {
            self.named.push_back((index, esi));
            self.over.fill(false);
        }
    }

    /// The index of a block that is known and not withdrawn.
    fn index_of(&mut self, id: BlockId) -> Option<usize> {
        if self.indices.len() != self.blocks.len() {
            self.indices =
                (0..).zip(&self.blocks).map(|(index, block)| (block.id, index)).collect();
        }
        self.indices.get(&id).copied().filter(|index| !self.withdrawn.contains(index))
    }

    /// Ends the oldest window: its remaining symbols will be prepared again.
    fn hand_back(&mut self, out: &mut VecDeque<SenderOutput>) {
        if let Some(round) = self.rounds.front_mut() {
            for (returned, queue) in self.returned.iter_mut().zip(&mut round.queues) {
                returned.extend(queue.drain(..).map(|planned| planned.turn));
            }
            self.release(0, out);
        }
    }

    fn release(&mut self, index: usize, out: &mut VecDeque<SenderOutput>) {
        if let Some(round) = self.rounds.remove(index) {
            let batches = round.batches.map(BatchId);
            out.extend(batches.map(|batch| SenderOutput::Job(SendJob::Release { batch })));
        }
    }

    /// True if nothing more can be planned for the queue.
    fn is_over(&self, queue: usize) -> bool {
        let returned = self.returned.get(queue).is_some_and(|turns| !turns.is_empty());
        !returned && self.over.get(queue).is_none_or(|&over| over)
    }

    /// Drops the symbols of withdrawn blocks from the head of a queue.
    fn drop_withdrawn(&mut self, queue: usize, out: &mut VecDeque<SenderOutput>) {
        if self.withdrawn.is_empty() {
            return;
        }
        loop {
            let next = self.rounds.iter().find_map(|round| round.queues.get(queue)?.front());
            if !next.is_some_and(|planned| self.withdrawn.contains(&planned.turn.block)) {
                return;
            }
            self.take(queue, out);
        }
    }
}

impl Draft {
    fn step(&mut self) -> Step {
        if self.turns == 0 || self.packets == 0 {
            return Step::Whole;
        }
        let mut queue = 0;
        if let Some(clock) = &mut self.clock {
            self.packets -= 1;
            queue = usize::from(clock.peek().channel.0).min(self.queues.len().saturating_sub(1));
            clock.advance();
            if let Some(waiting) = self.waiting.get_mut(queue).filter(|waiting| **waiting > 0) {
                *waiting -= 1;
                return Step::Passed;
            }
        }
        self.turns -= 1;
        Step::Turn(queue)
    }
}
