//! The order of symbols, laid out and prepared ahead of need.
//!
//! A *round* is a stretch of the order, prepared as a whole: a batch for each block that occurs in it.
//! While one round is sent the next is prepared. If what is sent next depends on the channel, a round
//! holds a queue for each, as long as the clock says that the channel will need it; of the slowest ones
//! a few symbols are then left when the next round begins. They are held for one more round, and handed
//! back to the order if they are not gone by then.

use crate::schedule::{Order, SymbolStream, Turn};
use crate::{
    BatchId, BlockId, ChannelClock, ChannelId, Job, Output, SymbolId, TransmissionSchedule,
};
use fontana_fec::Oti;
use fontana_wire::Toi;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;

/// A source block to send.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) id: BlockId,
    pub(super) encoding_id: u8,
    pub(super) stream: SymbolStream,
    pub(super) symbol_size: u16,
    /// What its packets say of the object, if they are to say it.
    pub(super) fti: Option<Oti>,
}

/// A symbol that has been laid out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Planned {
    pub(super) symbol: SymbolId,
    pub(super) turn: Turn,
}

/// Why there is no symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Missing {
    /// It is not ready yet.
    Unprepared,
    /// Nothing is left to send on the channel.
    Over,
}

/// The rounds of a session.
#[derive(Debug)]
pub(super) struct Rounds {
    blocks: Vec<Block>,
    order: Order,
    /// The blocks of a round take turns symbol by symbol, however many of each there are.
    even: bool,
    rounds: VecDeque<Round>,
    /// Turns that were laid out and not taken, for each queue.
    returned: Vec<VecDeque<Turn>>,
    /// The order has no more turns for the queue.
    over: Vec<bool>,
    round_symbols: u32,
    /// Symbols of the next round, while rounds grow.
    next_round: u32,
    next_batch: u64,
    /// Every batch that has been asked for and not answered.
    preparing: BTreeSet<BatchId>,
    withdrawn: BTreeSet<Toi>,
}

#[derive(Debug)]
struct Round {
    queues: Vec<VecDeque<Planned>>,
    unsent: usize,
    begun: bool,
    ready: bool,
    batches: Range<u64>,
}

/// Rounds double from this length on, so that the first packet need not wait for a large one to be
/// prepared.
const FIRST_ROUND: u32 = 1024;
/// One being sent, one being prepared, and what slow channels have left of the one before.
const MAX_ROUNDS: usize = 3;

impl Rounds {
    pub(super) fn new(
        blocks: Vec<Block>,
        order: Order,
        schedule: TransmissionSchedule,
        round_symbols: u32,
    ) -> Self {
        let round_symbols = round_symbols.max(1);
        Self {
            blocks,
            returned: vec![VecDeque::new(); order.queue_count()],
            over: vec![false; order.queue_count()],
            order,
            even: matches!(schedule, TransmissionSchedule::Interleaved { .. }),
            rounds: VecDeque::new(),
            round_symbols,
            next_round: FIRST_ROUND.min(round_symbols),
            next_batch: 0,
            preparing: BTreeSet::new(),
            withdrawn: BTreeSet::new(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    pub(super) fn block(&self, index: usize) -> Option<&Block> {
        self.blocks.get(index)
    }

    /// The queue that a channel is served from.
    pub(super) fn queue_of(&self, channel: ChannelId) -> usize {
        usize::from(channel.0).min(self.returned.len().saturating_sub(1))
    }

    /// Lays out what should be prepared by now.
    pub(super) fn plan_ahead(&mut self, clock: Option<&ChannelClock>, out: &mut VecDeque<Output>) {
        while self.rounds.len() < 2 || self.rounds.back().is_some_and(|round| round.begun) {
            if !self.plan(clock, out) {
                break;
            }
        }
    }

    /// The next symbol of a queue; it stays there until it is [taken](Self::take).
    pub(super) fn peek(
        &mut self,
        queue: usize,
        clock: Option<&ChannelClock>,
        out: &mut VecDeque<Output>,
    ) -> Result<Planned, Missing> {
        loop {
            self.drop_withdrawn(queue, out);
            let waiting =
                |round: &&mut Round| round.queues.get(queue).is_some_and(|q| !q.is_empty());
            if let Some(round) = self.rounds.iter_mut().find(waiting) {
                // A round begins when all of it is ready: neighbors in it are of different batches.
                let batches = BatchId(round.batches.start)..BatchId(round.batches.end);
                round.ready |= self.preparing.range(batches).next().is_none();
                let next = round.queues.get(queue).and_then(|q| q.front().copied());
                return next.filter(|_| round.ready).ok_or(Missing::Unprepared);
            }
            // The clock went another way than was foreseen, or there is nothing left.
            if self.is_over(queue) || !self.plan(clock, out) {
                return Err(Missing::Over);
            }
        }
    }

    /// The symbol that was [peeked](Self::peek) at was sent.
    pub(super) fn take(&mut self, queue: usize, out: &mut VecDeque<Output>) {
        let waiting = |round: &Round| round.queues.get(queue).is_some_and(|q| !q.is_empty());
        let Some(index) = self.rounds.iter().position(waiting) else { return };
        if let Some(round) = self.rounds.get_mut(index) {
            round.begun = true;
            round.unsent -=
                usize::from(round.queues.get_mut(queue).and_then(VecDeque::pop_front).is_some());
            if round.unsent == 0 {
                self.release(index, out);
            }
        }
    }

    /// Whether nothing is left on any channel.
    pub(super) fn are_over(&self) -> bool {
        self.rounds.is_empty()
    }

    pub(super) fn on_prepared(&mut self, batch: BatchId) {
        self.preparing.remove(&batch);
    }

    /// A batch cannot be made. The object that it was for, if there is anything left of it to send.
    pub(super) fn on_prepare_failed(&mut self, batch: BatchId) -> Option<Toi> {
        self.preparing.remove(&batch);
        let mut planned = self.rounds.iter().flat_map(|round| round.queues.iter().flatten());
        planned.find(|planned| planned.symbol.batch == batch).map(|p| p.symbol.block.toi)
    }

    /// Gives up an object; false if it had been given up.
    pub(super) fn withdraw(&mut self, toi: Toi) -> bool {
        let is_new = self.withdrawn.insert(toi);
        if is_new {
            for (index, _) in self.blocks.iter().enumerate().filter(|(_, b)| b.id.toi == toi) {
                self.order.withdraw(index);
            }
        }
        is_new
    }

    /// Lays out a round and asks for its batches; false if there is nothing to lay out.
    fn plan(&mut self, clock: Option<&ChannelClock>, out: &mut VecDeque<Output>) -> bool {
        if (0..self.over.len()).all(|queue| self.is_over(queue)) {
            return false;
        }
        if self.rounds.len() >= MAX_ROUNDS {
            self.hand_back(out);
        }
        let first_batch = self.next_batch;
        let mut batches: BTreeMap<usize, (BatchId, Vec<_>)> = BTreeMap::new();
        let mut queues = vec![VecDeque::new(); self.returned.len()];
        for queue in self.upcoming(clock) {
            let Some(turn) = self.next_turn(queue) else { continue };
            let Some(block) = self.blocks.get(turn.block) else { continue };
            let esi = block.stream.esi(turn.i);
            let (batch, esis) = batches.entry(turn.block).or_insert_with(|| {
                self.next_batch += 1;
                (BatchId(self.next_batch - 1), Vec::new())
            });
            let symbol = SymbolId { block: block.id, esi, batch: *batch, index: esis.len() as u32 };
            esis.push(esi);
            queues.get_mut(queue).into_iter().for_each(|q| q.push_back(Planned { symbol, turn }));
        }
        self.next_round = self.next_round.saturating_mul(2).min(self.round_symbols);
        let unsent = queues.iter().map(VecDeque::len).sum();
        if unsent == 0 {
            return false;
        }
        if self.even {
            // Whatever the grain.
            let share = |planned: &Planned| {
                let length =
                    batches.get(&planned.turn.block).map_or(1, |(_, esis)| esis.len() as u64);
                ((2 * u64::from(planned.symbol.index) + 1) << 31) / length
            };
            queues.iter_mut().for_each(|queue| queue.make_contiguous().sort_by_key(share));
        }
        for (block, (batch, esis)) in batches {
            let Some(block) = self.blocks.get(block) else { continue };
            self.preparing.insert(batch);
            out.push_back(Output::Job(Job::Prepare { batch, block: block.id, esis }));
        }
        let batches = first_batch..self.next_batch;
        self.rounds.push_back(Round { queues, unsent, begun: false, ready: false, batches });
        true
    }

    /// The queues that the symbols of the next round are for, in their order: as the clock will ask for
    /// them when it has taken what is there already.
    fn upcoming(&self, clock: Option<&ChannelClock>) -> Vec<usize> {
        let length = self.next_round as usize;
        let Some(clock) = clock.filter(|_| self.returned.len() > 1) else { return vec![0; length] };
        let mut waiting = vec![0_usize; self.returned.len()];
        for round in &self.rounds {
            for (waiting, queue) in waiting.iter_mut().zip(&round.queues) {
                *waiting += queue.len();
            }
        }
        let total = length + waiting.iter().sum::<usize>();
        let mut clock = clock.clone();
        let mut upcoming = Vec::with_capacity(length);
        for _ in 0..total {
            // Symbols for channels that the clock has left for good are not asked for: what is there
            // of them must not make rounds longer.
            if upcoming.len() == length {
                break;
            }
            let queue = self.queue_of(clock.peek().channel);
            match waiting.get_mut(queue) {
                Some(waiting) if *waiting > 0 => *waiting -= 1,
                _ => upcoming.push(queue),
            }
            clock.advance();
        }
        upcoming
    }

    /// The next turn of a queue, if it has one.
    fn next_turn(&mut self, queue: usize) -> Option<Turn> {
        let returned = self.returned.get_mut(queue).and_then(VecDeque::pop_front);
        let turn = returned.or_else(|| self.order.turn(queue));
        if turn.is_none()
            && let Some(over) = self.over.get_mut(queue)
        {
            *over = true;
        }
        turn
    }

    /// Ends the oldest round: what is left of it will be prepared anew.
    fn hand_back(&mut self, out: &mut VecDeque<Output>) {
        if let Some(round) = self.rounds.front_mut() {
            for (returned, queue) in self.returned.iter_mut().zip(&mut round.queues) {
                returned.extend(queue.drain(..).map(|planned| planned.turn));
            }
            self.release(0, out);
        }
    }

    fn release(&mut self, index: usize, out: &mut VecDeque<Output>) {
        if let Some(round) = self.rounds.remove(index) {
            let batches = round.batches.map(BatchId);
            out.extend(batches.map(|batch| Output::Job(Job::Release { batch })));
        }
    }

    /// Whether nothing more can be laid out for the queue.
    fn is_over(&self, queue: usize) -> bool {
        let returned = self.returned.get(queue).is_some_and(|turns| !turns.is_empty());
        !returned && self.over.get(queue).is_none_or(|&over| over)
    }

    /// Drops the symbols of withdrawn objects from the head of a queue.
    fn drop_withdrawn(&mut self, queue: usize, out: &mut VecDeque<Output>) {
        if self.withdrawn.is_empty() {
            return;
        }
        loop {
            let next = self.rounds.iter().find_map(|round| round.queues.get(queue)?.front());
            match next.map(|planned| planned.symbol.block.toi) {
                Some(toi) if self.withdrawn.contains(&toi) => self.take(queue, out),
                _ => return,
            }
        }
    }
}
