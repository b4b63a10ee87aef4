//! One source block: collecting, solving, recovering, verified; or searched for wrong symbols.

use super::copies::{Chosen, Comparison, ReceivedCopies};
use super::slots::{MEANWHILE_SYMBOLS, RepairSlots, repair_slots};
use crate::counter::Counter;
use crate::endpoint::BlockId;
use crate::job::{Choice, ReceiveJob, Recipe, SavedBlock, Search};
use crate::placed::SymbolPlace;
use crate::pull::RangeSet;
use crate::receiver::config::DecodePolicy;
use crate::receiver::sources::{Origins, SourceId, Sources};
use crate::receiver::suspicion::{Conclusion, SEARCH_WORK, SearchLimits, SearchRecord, Suspects};
use fontana_fec::{
    BlockLengthError, CodeProfile, Esi, EsiError, FecScheme, IdDecoder, Location, Novelty, Plan,
    PlanCache, Progress, Work,
};
use fontana_wire::Hash;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

/// A receiver's view of one source block.
#[derive(Debug)]
pub(super) struct Block {
    id: BlockId,
    scheme: FecScheme,
    source_symbols: u32,
    facts: Facts,
    /// Plans that blocks share.
    plans: Arc<PlanCache>,
    state: State,
    /// Repair symbols that were placed.
    repair: RepairSlots,
    /// Fresh symbols so far.
    fresh: u32,
    /// Symbols received so far, useless ones included.
    received: u64,
    /// No attempt to solve before so many have been received.
    solve_at: u64,
    budget: Work,
    corruptions: u32,
    search: SearchRecord,
    /// The sources of the symbols that were placed.
    origins: Origins,
    /// The source from whose symbols alone the block is solved; `None`: from those of all.
    alone: Option<SourceId>,
    /// The sources from whose symbols alone the block was to be solved, since it was solved from
    /// those of all. A few.
    tried: BTreeSet<SourceId>,
    /// Times that the block began again.
    restarts: u32,
    /// Symbols of other sources that wait.
    waiting: BTreeMap<SourceId, u32>,
    /// Symbols that were dropped: as wrong, or because the block is solved from those of one source.
    /// If most symbols are those of a forger, and agree, it is the others that seem to be wrong.
    left_out: BTreeMap<SourceId, u32>,
    /// Whether symbols of doubted sources are used as all others are.
    uses_doubted: bool,
    /// Present from the time when a block without surplus symbols was corrupt.
    copies: Option<Box<ReceivedCopies>>,
    /// A block with enough symbols waits to be solved ([`DecodePolicy::Deferred`]).
    is_deferred: bool,
    /// Source symbols in their places; `None` if that need not be known.
    in_place: Option<RangeSet>,
}

/// Properties of the code, cached because every symbol asks for them.
#[derive(Clone, Copy, Debug)]
struct Facts {
    is_mds: bool,
    is_rateless: bool,
    /// Most symbols beyond `k` that a patient receiver waits for.
    max_margin: u32,
    sure_surplus: Option<u32>,
    decoder_memory: u64,
}

#[derive(Debug)]
enum State {
    /// No symbol has arrived: no memory is used.
    Untouched,
    Collecting(Collecting),
    /// A worker has the decoder. Symbols that arrive in the meantime are placed, and pushed later.
    Solving {
        meanwhile: Vec<Meanwhile>,
    },
    /// Enough symbols have arrived; the block waits to be recovered.
    Solved {
        decoder: Box<dyn IdDecoder>,
        /// Source symbols that will be recovered, ascending.
        lost: Vec<Esi>,
        /// Source symbols of the plan that have arrived since it was made, ascending.
        arrived: Vec<Esi>,
    },
    Recovering {
        /// As in `Solved`.
        lost: Vec<Esi>,
    },
    /// The hash was wrong. More symbols are collected, or the block waits to be searched.
    Suspect(Box<Suspects>),
    /// A worker searches for wrong symbols.
    Locating(Box<Suspects>),
    /// The hash was wrong, or the symbols that are not disputed do not suffice. The block waits for
    /// other copies of its symbols, until so many were received; or for a worker.
    Disputed {
        until: u64,
    },
    /// A worker chooses among copies of symbols.
    Choosing {
        /// As in `Disputed`.
        until: u64,
    },
    Verified,
}

/// A symbol that was placed while a worker had the decoder.
#[derive(Clone, Copy, Debug)]
struct Meanwhile {
    esi: Esi,
    source: SourceId,
    to: SymbolPlace,
}

/// What follows a wrong hash, or a search for wrong symbols.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Sequel {
    /// The block needs more symbols, or waits to be searched.
    Collects,
    /// A wrong symbol of each of these sources was dropped; the others may suffice.
    Dropped(Vec<SourceId>),
    /// Copies of symbols replace those in place. The block is complete.
    Replaced(Chosen),
    /// So many symbols were dropped, of all sources but one.
    LeftOut(u32),
    /// The wrong symbols are not found. The block is to [begin again](Block::begin_again).
    Unlocated,
    /// All symbols agree with each other, but not with the hash. The block is to begin again, or
    /// [to count that](Block::count_agreement).
    Agreed,
    /// All symbols were dropped.
    Restarted,
    /// All symbols were dropped. They agreed with each other, but not with the hash.
    Hopeless,
}

/// A decoder, and the number of symbols that it wants, cached because it is read many times per
/// symbol.
#[derive(Debug)]
struct Collecting {
    decoder: Box<dyn IdDecoder>,
    symbols_wanted: u32,
}

impl Collecting {
    fn new(decoder: Box<dyn IdDecoder>) -> Self {
        Self { symbols_wanted: decoder.symbols_wanted(), decoder }
    }

    fn push(&mut self, esi: Esi) -> Result<Novelty, EsiError> {
        let novelty = self.decoder.push(esi);
        self.symbols_wanted = self.decoder.symbols_wanted();
        novelty
    }
}

/// The fate of a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::receiver) enum Taken {
    /// It was fresh and has been placed.
    Fresh,
    /// It was received before.
    Duplicate,
    /// The block needs nothing more, and is verified or given up.
    Late,
    /// The block needs nothing more if no symbol is wrong, which is not known yet.
    Unverified,
    /// The code has no such symbol.
    Invalid,
    /// The object is deselected.
    Deselected,
    /// It differs from the one that was received under its id.
    Disputed,
    /// Decoders of other blocks use all the memory for decoders.
    NoRoom,
}

impl Taken {
    /// Whether there may be something to do for the block.
    pub(in crate::receiver) fn is_news(self) -> bool {
        matches!(self, Self::Fresh | Self::Disputed)
    }
}

/// Sources whose waiting symbols are counted one by one.
const MAX_WAITING_SOURCES: usize = 64;

/// Most symbols beyond `k` that a patient receiver waits for, whatever the user says.
fn max_margin(code: &CodeProfile, source_symbols: u32) -> u32 {
    match code {
        // `k` symbols always suffice.
        CodeProfile { is_mds: true, .. } => 0,
        // A decoder stores no more than these.
        CodeProfile { is_rateless: true, .. } => 64,
        // Tornado: a block of 16 000 symbols never took 1.1 `k` in 10 000 trials (`df.fig2`).
        _ => source_symbols / 8,
    }
}

impl Block {
    pub(super) fn new(
        id: BlockId,
        scheme: FecScheme,
        source_symbols: u32,
        plans: Arc<PlanCache>,
    ) -> Self {
        let (code, profile) = (scheme.profile(), scheme.block_profile(source_symbols));
        let facts = Facts {
            is_mds: code.is_mds,
            is_rateless: code.is_rateless,
            max_margin: max_margin(&code, source_symbols),
            sure_surplus: code.sure_surplus,
            decoder_memory: profile.decoder_memory.unwrap_or(0),
        };
        Self {
            id,
            scheme,
            source_symbols,
            facts,
            plans,
            state: State::Untouched,
            repair: RepairSlots::new(repair_slots(scheme, source_symbols)),
            fresh: 0,
            received: 0,
            solve_at: 0,
            budget: profile.work,
            corruptions: 0,
            search: SearchRecord::default(),
            origins: Origins::default(),
            alone: None,
            tried: BTreeSet::new(),
            restarts: 0,
            waiting: BTreeMap::new(),
            left_out: BTreeMap::new(),
            uses_doubted: false,
            copies: None,
            is_deferred: false,
            in_place: None,
        }
    }

    /// The same, remembering which source symbols it has.
    pub(super) fn tracking_source(self) -> Self {
        Self { in_place: Some(RangeSet::default()), ..self }
    }

    fn note_in_place(&mut self, esi: Esi) {
        if let Some(in_place) = &mut self.in_place {
            in_place.insert(esi.0.into()..u64::from(esi.0) + 1);
        }
    }

    /// The first run of source symbols from `from` on that it lacks. `None` if it has them, or does
    /// not know.
    pub(super) fn missing_source(&self, from: Esi) -> Option<Range<u32>> {
        let in_place = self.in_place.as_ref()?;
        let (mut start, end) = (u64::from(from.0), u64::from(self.source_symbols));
        let mut present = in_place.within(start..end).peekable();
        while let Some(run) = present.next_if(|run| run.start == start) {
            start = run.end;
        }
        let end = present.peek().map_or(end, |next| next.start);
        (start < end).then_some(start as u32..end as u32)
    }

    /// Drops all symbols. False if it is verified, or a job on it is under way: its answer would
    /// belong to symbols that were dropped.
    pub(super) fn refetch(&mut self) -> bool {
        let is_free = match self.state {
            State::Untouched
            | State::Collecting(_)
            | State::Solved { .. }
            | State::Suspect(_)
            | State::Disputed { .. } => true,
            State::Solving { .. }
            | State::Recovering { .. }
            | State::Locating(_)
            | State::Choosing { .. }
            | State::Verified => false,
        };
        if is_free {
            self.alone = None;
            self.restart();
        }
        is_free
    }

    /// The same, to be solved when reception is complete. Without effect if the code does not say
    /// how many symbols suffice.
    pub(super) fn deferred(self) -> Self {
        Self { is_deferred: self.facts.sure_surplus.is_some(), ..self }
    }

    /// The job of solving the block, if it has waited for reception to be complete.
    pub(super) fn solve_deferred(&mut self) -> Option<ReceiveJob> {
        (self.is_deferred && self.has_enough()).then(|| self.solve()).flatten()
    }

    /// Bytes that the block's decoder will take, if it has not begun.
    pub(super) fn memory_to_begin(&self) -> u64 {
        if matches!(self.state, State::Untouched) { self.facts.decoder_memory } else { 0 }
    }

    /// Bytes that the block's decoder and its result take.
    #[inline]
    pub(super) fn memory(&self) -> u64 {
        match self.state {
            State::Untouched | State::Verified => 0,
            _ => {
                let copies = self.copies.as_ref().map_or(0, |copies| copies.memory());
                self.facts.decoder_memory.saturating_add(copies)
            }
        }
    }

    /// Symbols that are missing before the block can be recovered, as far as is known.
    #[inline]
    pub(super) fn symbols_wanted(&self) -> u32 {
        match &self.state {
            State::Untouched => self.source_symbols,
            State::Collecting(collecting) => collecting.symbols_wanted,
            State::Suspect(suspects) => suspects.wanted,
            State::Disputed { .. } if !self.awaits_choice() => 1,
            _ => 0,
        }
    }

    fn decoder(&self) -> Result<Box<dyn IdDecoder>, BlockLengthError> {
        self.plans.decoder(self.scheme, self.source_symbols)
    }

    /// Restores what an earlier run of the receiver saved.
    pub(super) fn restore(&mut self, saved: &SavedBlock) {
        let Ok(mut decoder) = self.decoder() else { return };
        if !matches!(self.state, State::Untouched) {
            return;
        }
        let slots = self.repair.count();
        let k = self.source_symbols;
        let all = (0..k).map(Esi).filter(|_| saved.is_complete);
        let in_place = saved.in_place.iter().copied().filter(|esi| esi.0 < k);
        for esi in all.chain(in_place) {
            self.fresh.count(u32::from(decoder.push(esi) == Ok(Novelty::Fresh)));
            self.note_in_place(esi);
        }
        // A wrong symbol was dropped from its slot: the slot has the symbol that came last.
        let placed = || saved.repair.iter().filter(|&&(_, slot)| slot < slots);
        let slot_of: BTreeMap<Esi, u32> = placed().copied().collect();
        let in_slots: BTreeMap<u32, Esi> = placed().map(|&(esi, slot)| (slot, esi)).collect();
        for (slot, esi) in in_slots.into_iter().filter(|(slot, esi)| slot_of.get(esi) == Some(slot))
        {
            if esi.0 >= self.source_symbols && decoder.push(esi) == Ok(Novelty::Fresh) {
                self.repair.restore(slot, esi);
                self.fresh.count(1);
            }
        }
        self.state = State::Collecting(Collecting::new(decoder));
        self.origins = Origins::of_earlier_run();
    }

    /// Whether symbols of this source wait until others suffice, or none arrive. Pulled ones do not:
    /// the user has chosen where they come from.
    #[inline]
    pub(super) fn holds_back(&self, source: SourceId, sources: &Sources) -> bool {
        if source == SourceId::PULLED {
            return false;
        }
        let is_other = |alone| alone != source && !sources.doubts(alone);
        (sources.doubts(source) || self.alone.is_some_and(is_other)) && !self.uses_doubted
    }

    /// No symbols of other sources arrive: those of all are used.
    pub(super) fn stop_holding(&mut self) {
        self.uses_doubted = true;
    }

    /// The number of placed symbols of each source.
    pub(super) fn symbols_by_source(&self) -> BTreeMap<SourceId, u32> {
        self.origins.counts(self.fresh)
    }

    /// The sources from whose symbols alone the block was to be solved.
    pub(super) fn tried(&self) -> &BTreeSet<SourceId> {
        &self.tried
    }

    /// Counts a symbol that [waits](Self::holds_back).
    pub(super) fn take_waiting(&mut self, source: SourceId) -> Taken {
        if self.is_verified() {
            return Taken::Late;
        }
        if self.alone.is_some() && !self.has_enough() {
            let is_counted =
                self.waiting.contains_key(&source) || self.waiting.len() < MAX_WAITING_SOURCES;
            let source = if is_counted { source } else { SourceId::default() };
            self.waiting.entry(source).or_default().count(1);
        }
        Taken::Unverified
    }

    /// Whether the one source is slow: twice the symbols that the block needs wait, and twice as
    /// many after each attempt.
    pub(super) fn waits_in_vain(&self) -> bool {
        let waiting = self.waiting.values().fold(0_u32, |sum, &more| sum.saturating_add(more));
        let patience = 2_u32.saturating_pow(self.restarts);
        self.alone.is_some()
            && waiting > self.source_symbols.saturating_mul(patience)
            && matches!(self.state, State::Untouched | State::Collecting(_) | State::Suspect(_))
    }

    /// Takes a symbol of the right size. Returns its place, if it is of use. `room` is the memory
    /// in bytes that is left for copies of symbols.
    pub(super) fn take(
        &mut self,
        esi: Esi,
        source: SourceId,
        bytes: &[u8],
        room: u64,
    ) -> (Taken, Option<SymbolPlace>) {
        if matches!(self.state, State::Untouched) {
            match self.decoder() {
                Ok(decoder) => self.state = State::Collecting(Collecting::new(decoder)),
                Err(_) => return (Taken::Invalid, None),
            }
        }
        let is_repair = esi.0 >= self.source_symbols;
        if is_repair && self.repair.are_full() {
            if let State::Suspect(suspects) = &mut self.state {
                // The search has to do with those that there are.
                suspects.wanted = 0;
            }
            return (Taken::Late, None);
        }
        self.received.count(1);
        let has_enough = self.has_enough();
        if let State::Solving { meanwhile } = &self.state
            && meanwhile.len() >= MEANWHILE_SYMBOLS
            && !has_enough
        {
            return (Taken::Late, None);
        }
        let is_compared = self.copies.is_some() && !has_enough && esi.0 < self.encoding_symbols();
        if let Some(copies) = self.copies.as_mut().filter(|_| is_compared) {
            match copies.compare(esi, source, bytes, room) {
                Comparison::First => {}
                Comparison::Repeated => return (Taken::Duplicate, None),
                Comparison::Disputed => {
                    self.leave_out_disputed();
                    return (Taken::Disputed, None);
                }
            }
        }
        match &mut self.state {
            // It only waits for a worker. Early symbols come all at once, and most of them find
            // the block in this state.
            _ if has_enough => return (self.taken_late(), None),
            State::Collecting(collecting) => match collecting.push(esi) {
                Ok(Novelty::Fresh) => {}
                Ok(Novelty::Duplicate) => return (Taken::Duplicate, None),
                Err(_) => return (Taken::Invalid, None),
            },
            State::Solving { meanwhile } => {
                if meanwhile.iter().any(|symbol| symbol.esi == esi) {
                    return (Taken::Duplicate, None);
                }
            }
            State::Suspect(suspects) => {
                if !suspects.insert(esi) {
                    return (Taken::Duplicate, None);
                }
            }
            // A source symbol that was recovered from wrong ones.
            State::Disputed { .. } => {}
            _ => return (Taken::Late, None),
        }
        self.fresh.count(1);
        let to = if is_repair {
            SymbolPlace::RepairSlot(self.repair.place(esi))
        } else {
            self.note_in_place(esi);
            SymbolPlace::InPlace
        };
        match &mut self.state {
            State::Solving { meanwhile } => meanwhile.push(Meanwhile { esi, source, to }),
            _ => self.origins.note(esi, source),
        }
        self.choose_if_incomplete();
        (Taken::Fresh, Some(to))
    }

    /// The fate of a symbol that comes when there are enough.
    fn taken_late(&self) -> Taken {
        match self.state {
            State::Verified => Taken::Late,
            // It is verified after the channels were left.
            _ if self.is_deferred => Taken::Late,
            _ => Taken::Unverified,
        }
    }

    /// The job of solving the block, if it is worth trying now.
    pub(super) fn try_solve(&mut self, policy: DecodePolicy) -> Option<ReceiveJob> {
        let State::Collecting(collecting) = &self.state else { return None };
        let patience = match policy {
            _ if self.is_deferred => return None,
            DecodePolicy::Incremental | DecodePolicy::Deferred => 0,
            DecodePolicy::Patient { margin } => margin.min(self.facts.max_margin),
        };
        let patient = self.fresh < self.source_symbols.saturating_add(patience);
        // All source symbols are enough whatever the policy; a decoder says when it wants none.
        let waits = (patient || self.received < self.solve_at) && !self.repair.are_unused();
        if collecting.symbols_wanted > 0 || waits {
            return None;
        }
        self.solve()
    }

    fn solve(&mut self) -> Option<ReceiveJob> {
        if !matches!(self.state, State::Collecting(_)) {
            return None;
        }
        let away = State::Solving { meanwhile: Vec::new() };
        let State::Collecting(Collecting { decoder, .. }) =
            std::mem::replace(&mut self.state, away)
        else {
            return None;
        };
        Some(ReceiveJob::Solve { block: self.id, decoder, budget: self.budget })
    }

    /// A worker has returned the decoder. Returns the plan, if the block is solved.
    pub(super) fn on_solved(
        &mut self,
        mut decoder: Box<dyn IdDecoder>,
        progress: Progress,
    ) -> Option<Arc<Plan>> {
        let State::Solving { meanwhile } = &mut self.state else { return None };
        let meanwhile = std::mem::take(meanwhile);
        self.is_deferred = false;
        match progress {
            Progress::Solved(plan) => {
                let arrived = self.settle_meanwhile(&meanwhile, &plan);
                let mut lost = plan.lost().to_vec();
                lost.retain(|esi| arrived.binary_search(esi).is_err());
                self.state = State::Solved { decoder, lost, arrived };
                return Some(plan);
            }
            Progress::Wanting(_) => {}
            // An attacker may choose symbols that make solving expensive. Each attempt waits for
            // twice as many more, so the work stays in proportion to what arrives. Useless symbols
            // count, because a full decoder has to be tried again.
            Progress::OutOfBudget => {
                let spare = self.received.saturating_sub(u64::from(self.source_symbols));
                self.solve_at = self.received.saturating_add(spare.max(8));
            }
        }
        for Meanwhile { esi, source, to } in meanwhile {
            let is_fresh = decoder.push(esi) == Ok(Novelty::Fresh);
            self.fresh.discount(u32::from(!is_fresh));
            match to {
                // The decoder has it from another slot, or has no use for it.
                SymbolPlace::RepairSlot(slot) if !is_fresh => self.repair.free(slot),
                SymbolPlace::RepairSlot(_) | SymbolPlace::InPlace => self.origins.note(esi, source),
            }
        }
        self.state = State::Collecting(Collecting::new(decoder));
        None
    }

    /// The block was solved without the symbols that arrived meanwhile. Returns the source symbols
    /// among them that the plan recovers.
    fn settle_meanwhile(&mut self, meanwhile: &[Meanwhile], plan: &Plan) -> Vec<Esi> {
        let slot = |symbol: &Meanwhile| match symbol.to {
            SymbolPlace::RepairSlot(slot) => Some(slot),
            SymbolPlace::InPlace => None,
        };
        // Some may have arrived before the attempt as well.
        let mut before = BTreeSet::new();
        let slots: BTreeSet<u32> = meanwhile.iter().filter_map(slot).collect();
        if !slots.is_empty() {
            let list = (0..).zip(self.repair.list());
            before.extend(list.filter(|(slot, _)| !slots.contains(slot)).map(|(_, esi)| esi));
        }
        for symbol in meanwhile {
            let is_repeated = match symbol.to {
                SymbolPlace::RepairSlot(_) => before.contains(&symbol.esi),
                SymbolPlace::InPlace => plan.lost().binary_search(&symbol.esi).is_err(),
            };
            self.fresh.discount(u32::from(is_repeated));
            match slot(symbol) {
                Some(slot) if is_repeated => self.repair.free(slot),
                _ => self.origins.note(symbol.esi, symbol.source),
            }
        }
        let source = meanwhile.iter().map(|symbol| symbol.esi);
        let arrived: BTreeSet<_> =
            source.filter(|esi| plan.lost().binary_search(esi).is_ok()).collect();
        arrived.into_iter().collect()
    }

    /// The job on the block's bytes that it waits for: it is recovered, with its plan if that was
    /// not dropped, or searched for wrong symbols.
    pub(super) fn work_on_bytes(
        &mut self,
        plan: Option<Arc<Plan>>,
        expected: Option<Hash>,
    ) -> Option<ReceiveJob> {
        match std::mem::replace(&mut self.state, State::Untouched) {
            State::Solved { decoder, lost, arrived } => {
                self.state = State::Recovering { lost };
                let recipe = plan.map_or(Recipe::Decoder(decoder), Recipe::Plan);
                let repair = self.repair.list();
                Some(ReceiveJob::Recover { block: self.id, recipe, repair, arrived })
            }
            State::Suspect(suspects) if suspects.wanted == 0 => {
                let Ok(decoder) = self.decoder() else { return None };
                self.search.on_search(suspects.available());
                let search = Search {
                    block: self.id,
                    profile: self.scheme.profile(),
                    decoder,
                    available: suspects.esis().collect(),
                    repair: self.repair.list(),
                    solving: self.budget,
                    locating: SEARCH_WORK,
                };
                self.state = State::Locating(suspects);
                Some(ReceiveJob::Locate(Box::new(search)))
            }
            State::Disputed { until } => {
                self.state = State::Disputed { until };
                let copies = self.copies.as_mut().filter(|copies| copies.may_choose())?;
                let choice =
                    Choice { block: self.id, expected: expected?, copies: copies.choice() };
                self.state = State::Choosing { until };
                Some(ReceiveJob::Choose(Box::new(choice)))
            }
            state => {
                self.state = state;
                None
            }
        }
    }

    /// Whether the block needs no more symbols: it is solved, or all source symbols have arrived,
    /// or so many symbols that the attempt under way will hardly fail. At high rates, thousands of
    /// packets pass during an attempt.
    #[inline]
    pub(super) fn has_enough(&self) -> bool {
        match self.state {
            State::Untouched => false,
            State::Collecting(ref collecting) => {
                let is_exact = self.facts.is_mds;
                self.is_deferred && collecting.symbols_wanted == 0 && (is_exact || self.is_sure())
            }
            State::Solving { .. } => self.is_deferred || self.is_sure(),
            State::Suspect(ref suspects) => suspects.wanted == 0,
            State::Disputed { .. } => self.awaits_choice(),
            State::Solved { .. }
            | State::Recovering { .. }
            | State::Locating(_)
            | State::Choosing { .. }
            | State::Verified => true,
        }
    }

    /// Whether the symbols that have arrived will hardly fail to solve the block.
    fn is_sure(&self) -> bool {
        let sure = self.facts.sure_surplus.map(|s| self.source_symbols.saturating_add(s));
        self.repair.are_unused() || sure.is_some_and(|sure| self.fresh >= sure)
    }

    /// Whether the block needs more symbols, and no attempt to solve it is under way.
    pub(super) fn is_collecting(&self) -> bool {
        let needs_some = matches!(
            self.state,
            State::Untouched | State::Collecting(_) | State::Suspect(_) | State::Disputed { .. }
        );
        needs_some && !self.has_enough()
    }

    /// Whether a [`ReceiveJob::Solve`] is under way.
    pub(super) fn is_solving(&self) -> bool {
        matches!(self.state, State::Solving { .. })
    }

    /// Whether a [`ReceiveJob::Recover`] is under way.
    pub(super) fn is_recovering(&self) -> bool {
        matches!(self.state, State::Recovering { .. })
    }

    /// Whether a [`ReceiveJob::Locate`] is under way.
    pub(super) fn is_locating(&self) -> bool {
        matches!(self.state, State::Locating(_))
    }

    /// Whether a [`ReceiveJob::Choose`] is under way.
    pub(super) fn is_choosing(&self) -> bool {
        matches!(self.state, State::Choosing { .. })
    }

    /// Whether a job on its bytes is under way.
    pub(super) fn is_worked_on(&self) -> bool {
        self.is_recovering() || self.is_locating() || self.is_choosing()
    }

    /// Whether the block waits to be searched for wrong symbols, or for a choice among copies.
    pub(super) fn awaits_work(&self) -> bool {
        matches!(&self.state, State::Suspect(suspects) if suspects.wanted == 0)
            || self.awaits_choice()
    }

    fn awaits_choice(&self) -> bool {
        matches!(self.state, State::Disputed { .. })
            && self.copies.as_ref().is_some_and(|copies| copies.may_choose())
    }

    /// Symbols that the block may have.
    fn encoding_symbols(&self) -> u32 {
        self.scheme.block_profile(self.source_symbols).encoding_symbols
    }

    /// Solves the block again, without the symbols of which there are different copies, if it is
    /// not being worked on. If the others do not suffice, it waits for a choice.
    fn leave_out_disputed(&mut self) {
        if !matches!(self.state, State::Collecting(_) | State::Disputed { .. }) {
            return;
        }
        let Ok(mut decoder) = self.decoder() else { return };
        let Some(copies) = &self.copies else { return };
        for esi in copies.undisputed() {
            // A decoder has no use for more symbols than it needs.
            let _ = decoder.push(esi);
        }
        self.state = State::Collecting(Collecting::new(decoder));
        self.choose_if_incomplete();
    }

    /// The symbols that are not disputed do not suffice, and all others were received: the block
    /// waits for a choice.
    fn choose_if_incomplete(&mut self) {
        if let (State::Collecting(collecting), Some(copies)) = (&self.state, &self.copies)
            && collecting.symbols_wanted > 0
            && copies.may_choose()
        {
            self.state = self.dispute();
        }
    }

    /// The state of waiting for other copies, for as long as two cycles of a sender take.
    fn dispute(&self) -> State {
        let cycle = self.scheme.block_profile(self.source_symbols).symbols_per_cycle;
        State::Disputed { until: self.received.saturating_add(u64::from(cycle).saturating_mul(2)) }
    }

    /// Drops all symbols if no copies of them have led to anything for too long.
    pub(super) fn give_up_waiting(&mut self) -> Option<Sequel> {
        let has_waited = matches!(self.state, State::Disputed { until } if self.received >= until);
        (has_waited && !self.awaits_choice()).then(|| self.restart())
    }

    /// A choice among copies was made: those of the symbols in `chosen` are right. `None`: the
    /// block waits for others.
    pub(super) fn on_chosen(&mut self, chosen: Option<&[Esi]>) -> Sequel {
        let State::Choosing { until } = self.state else { return Sequel::Collects };
        self.state = State::Disputed { until };
        let (Some(chosen), Some(copies)) = (chosen, &mut self.copies) else {
            return Sequel::Collects;
        };
        let chosen = copies.on_chosen(chosen, &mut self.origins);
        let Ok(mut decoder) = self.decoder() else { return self.restart() };
        for esi in (0..self.source_symbols).map(Esi) {
            let _ = decoder.push(esi);
        }
        self.state = State::Collecting(Collecting::new(decoder));
        Sequel::Replaced(chosen)
    }

    /// No symbols of use have arrived for a while: the block is searched with those that it has, if
    /// that may help. Whether it waits for that now.
    pub(super) fn on_idle(&mut self) -> bool {
        let State::Suspect(suspects) = &mut self.state else { return false };
        if suspects.wanted > 0 && self.search.begins_idle(suspects.available()) {
            suspects.wanted = 0;
            return true;
        }
        false
    }

    /// Whether the block is corrupt, and waits until its wrong symbols are found.
    pub(super) fn is_suspect(&self) -> bool {
        matches!(
            self.state,
            State::Suspect(_)
                | State::Locating(_)
                | State::Disputed { .. }
                | State::Choosing { .. }
        )
    }

    pub(super) fn is_verified(&self) -> bool {
        matches!(self.state, State::Verified)
    }

    pub(super) fn on_verified(&mut self) {
        self.state = State::Verified;
        self.repair.clear();
        self.origins = Origins::default();
        self.copies = None;
        (self.waiting, self.left_out) = (BTreeMap::new(), BTreeMap::new());
        self.in_place = None;
    }

    /// The block is not wanted any more: it uses no memory, and the answers to jobs that are under
    /// way change nothing.
    pub(super) fn give_up(&mut self) {
        if !self.is_verified() {
            self.state = State::Untouched;
            self.repair.clear();
            self.copies = None;
        }
    }

    /// Number of times that the block's bytes were wrong.
    pub(super) fn corruptions(&self) -> u32 {
        self.corruptions
    }

    /// The block's bytes are wrong.
    pub(super) fn on_corrupt(&mut self) -> Sequel {
        self.corruptions.count(1);
        self.is_deferred = false;
        let State::Recovering { lost } = &self.state else { return Sequel::Collects };
        let mut suspects = Suspects::new(self.source_symbols, lost, self.repair.symbols());
        let limits = self.search_limits();
        let Some(limits) = limits.filter(|_| !self.search.is_exhausted()) else {
            return self.give_up_search(Box::new(suspects));
        };
        let available = self.search.collected(suspects.available()).available;
        suspects.wanted = limits.first_wanted(available);
        self.state = State::Suspect(Box::new(suspects));
        Sequel::Collects
    }

    /// A search for wrong symbols has ended.
    pub(super) fn on_located(&mut self, location: Location) -> Sequel {
        if !matches!(self.state, State::Locating(_)) {
            return Sequel::Collects;
        }
        let State::Locating(mut suspects) = std::mem::replace(&mut self.state, State::Untouched)
        else {
            return Sequel::Collects;
        };
        let Some(limits) = self.search_limits() else { return self.restart() };
        let collected = self.search.collected(suspects.available());
        match limits.conclude(location, &collected) {
            Conclusion::Drop(wrong) => {
                suspects.remove(&wrong);
                self.drop_symbols(&wrong, &suspects)
            }
            Conclusion::Want(more) if !self.search.is_exhausted() => {
                suspects.wanted = more;
                self.state = State::Suspect(suspects);
                Sequel::Collects
            }
            Conclusion::Want(_) | Conclusion::Restart => self.give_up_search(suspects),
            Conclusion::Agreed => {
                self.state = State::Suspect(suspects);
                Sequel::Agreed
            }
        }
    }

    /// The source from whose symbols alone the block is solved.
    pub(super) fn alone(&self) -> Option<SourceId> {
        self.alone
    }

    /// The symbols of all sources agreed with each other. Drops all of them. If that has been so
    /// often enough, the hash is not that of the content.
    pub(super) fn count_agreement(&mut self) -> Sequel {
        let is_hopeless = self.search.on_agreed();
        let sequel = self.restart();
        if is_hopeless { Sequel::Hopeless } else { sequel }
    }

    /// Continues without `wrong` symbols, which are not among the `others`.
    fn drop_symbols(&mut self, wrong: &[Esi], others: &Suspects) -> Sequel {
        let Ok(mut decoder) = self.decoder() else { return self.restart() };
        if let Some(copies) = &mut self.copies {
            copies.forget(wrong);
        }
        self.repair.remove(wrong);
        if let Some(in_place) = &mut self.in_place {
            wrong.iter().for_each(|esi| in_place.remove(esi.0.into()..u64::from(esi.0) + 1));
        }
        for esi in others.esis() {
            // Symbols that the decoder has no use for stay in their slots.
            let _ = decoder.push(esi);
        }
        self.fresh = others.available();
        self.solve_at = 0;
        self.state = State::Collecting(Collecting::new(decoder));
        let sources: Vec<_> = wrong.iter().map(|&esi| self.origins.of(esi)).collect();
        for &source in &sources {
            if self.left_out.len() < MAX_WAITING_SOURCES || self.left_out.contains_key(&source) {
                self.left_out.entry(source).or_default().count(1);
            }
        }
        self.origins.forget(wrong);
        Sequel::Dropped(sources)
    }

    fn search_limits(&self) -> Option<SearchLimits> {
        let limits = SearchLimits::of(self.scheme, self.source_symbols)?;
        Some(if self.alone.is_some() { limits.of_one_source() } else { limits })
    }

    /// The wrong symbols among these are not found.
    fn give_up_search(&mut self, suspects: Box<Suspects>) -> Sequel {
        self.state = State::Suspect(suspects);
        Sequel::Unlocated
    }

    /// The number of symbols of each source, those that wait or were dropped included.
    pub(super) fn sources(&self) -> BTreeMap<SourceId, u32> {
        let mut counts = self.symbols_by_source();
        for (&source, &count) in self.waiting.iter().chain(&self.left_out) {
            counts.entry(source).or_default().count(count);
        }
        counts
    }

    /// Begins again: with the symbols of one source alone, if there is one. The others are dropped.
    pub(super) fn begin_again(&mut self, alone: Option<SourceId>) -> Sequel {
        self.alone = alone;
        self.restarts.count(1);
        match alone {
            Some(source) => _ = self.tried.insert(source),
            None => (self.tried, self.left_out) = (BTreeSet::new(), BTreeMap::new()),
        }
        (self.uses_doubted, self.waiting) = (false, BTreeMap::new());
        self.search.on_restart();
        let state = std::mem::replace(&mut self.state, State::Untouched);
        let State::Suspect(mut suspects) = state else { return self.restart() };
        let Some(alone) = alone else { return self.dispute_or_restart() };
        let others: Vec<_> = suspects.esis().filter(|&esi| self.origins.of(esi) != alone).collect();
        suspects.remove(&others);
        match self.drop_symbols(&others, &suspects) {
            Sequel::Dropped(sources) => Sequel::LeftOut(sources.len() as u32),
            sequel => sequel,
        }
    }

    /// The wrong symbols are not found: other copies of them may show which they are, if the
    /// symbols were compared since the block was corrupt first. If not, all are dropped.
    fn dispute_or_restart(&mut self) -> Sequel {
        if self.copies.is_none() {
            return self.restart();
        }
        self.state = self.dispute();
        Sequel::Collects
    }

    /// All symbols of the block are dropped.
    fn restart(&mut self) -> Sequel {
        self.origins = Origins::default();
        (self.uses_doubted, self.waiting) = (false, BTreeMap::new());
        self.state = State::Untouched;
        self.repair.clear();
        self.in_place = self.in_place.as_ref().map(|_| RangeSet::default());
        self.search.on_restart();
        let has_few = !self.facts.is_rateless;
        self.copies = has_few.then(|| Box::new(ReceivedCopies::new(self.source_symbols)));
        (self.fresh, self.received, self.solve_at) = (0, 0, 0);
        Sequel::Restarted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fontana_fec::codes::no_code::NoCode;
    use fontana_fec::codes::raptorq::RaptorQ;
    use fontana_fec::codes::tornado::{Tornado, TornadoCode};
    use fontana_fec::{Located, Sbn};
    use fontana_wire::Toi;

    #[test]
    fn patience_waits_for_the_margin_but_for_no_more_than_an_eighth_of_a_tornado_block() {
        const K: u32 = 1_000;
        let id = BlockId { toi: Toi(1), sbn: Sbn(0) };
        let scheme =
            FecScheme::Tornado(Tornado { max_source_block_length: K, code: TornadoCode::Z });
        for (margin, attempted_at) in [(0, 1_000), (60, 1_060), (u32::MAX, 1_125)] {
            let mut block = Block::new(id, scheme, K, Arc::new(PlanCache::new(1)));
            let attempted = (K / 2..2 * K).position(|esi| {
                block.take(Esi(esi), SourceId::default(), &[], 0);
                block.try_solve(DecodePolicy::Patient { margin }).is_some()
            });
            assert_eq!(attempted, Some(attempted_at - 1), "{margin}");
        }
    }

    #[test]
    fn a_slot_that_was_used_again_has_its_last_symbol() {
        let id = BlockId { toi: Toi(1), sbn: Sbn(0) };
        let scheme = FecScheme::RaptorQ(RaptorQ { source_blocks: 1, sub_blocks: 1, alignment: 1 });
        let mut block = Block::new(id, scheme, 10, Arc::new(PlanCache::new(1)));
        block.restore(&SavedBlock {
            block: id,
            is_complete: false,
            in_place: (0..7).map(Esi).collect(),
            // Symbol 20 was wrong, and so was 22 in slot 1.
            repair: [(20, 0), (22, 1), (21, 0), (23, 1), (22, 2)].map(|(e, s)| (Esi(e), s)).into(),
        });
        assert_eq!(block.repair.list(), [Esi(21), Esi(23), Esi(22)]);
        assert_eq!(block.fresh, 10);
    }

    const A: SourceId = SourceId::new(1);
    const B: SourceId = SourceId::new(2);

    fn new_block(scheme: FecScheme, source_symbols: u32) -> Block {
        let id = BlockId { toi: Toi(1), sbn: Sbn(0) };
        Block::new(id, scheme, source_symbols, Arc::new(PlanCache::new(1)))
    }

    fn raptorq(source_symbols: u32) -> Block {
        let scheme = RaptorQ { source_blocks: 1, sub_blocks: 1, alignment: 1 };
        new_block(FecScheme::RaptorQ(scheme), source_symbols)
    }

    /// The symbols of the two sources differ.
    fn take(block: &mut Block, esi: u32, source: SourceId) -> Taken {
        let bytes = [esi as u8, u8::from(source == B)];
        block.take(Esi(esi), source, &bytes, 1 << 20).0
    }

    /// The decoder of an attempt to solve the block that has begun.
    fn begin_solving(block: &mut Block) -> Box<dyn IdDecoder> {
        match block.try_solve(DecodePolicy::Incremental) {
            Some(ReceiveJob::Solve { decoder, .. }) => decoder,
            job => panic!("{job:?}"),
        }
    }

    /// Solves the block, and begins to recover it.
    fn recover(block: &mut Block) {
        let mut decoder = begin_solving(block);
        let progress = decoder.solve(Work::UNBOUNDED);
        let plan = block.on_solved(decoder, progress);
        assert!(matches!(block.work_on_bytes(plan, None), Some(ReceiveJob::Recover { .. })));
    }

    #[test]
    fn a_symbol_that_was_dropped_is_of_no_source() {
        let mut block = raptorq(10);
        (0..9).for_each(|esi| assert_eq!(take(&mut block, esi, A), Taken::Fresh));
        assert_eq!(take(&mut block, 20, B), Taken::Fresh);
        recover(&mut block);
        assert_eq!(block.on_corrupt(), Sequel::Collects);
        (21..25).for_each(|esi| assert_eq!(take(&mut block, esi, A), Taken::Fresh));
        assert!(matches!(block.work_on_bytes(None, None), Some(ReceiveJob::Locate(_))));
        let located = Located { wrong: vec![Esi(20)], surplus_left: 3, rank: 1 };
        assert_eq!(block.on_located(Location::Located(located)), Sequel::Dropped(vec![B]));
        assert_eq!(block.symbols_by_source(), [(A, 13)].into());
    }

    #[test]
    fn a_symbol_that_was_replaced_is_of_the_source_of_its_copy() {
        let mut block = new_block(FecScheme::NoCode(NoCode { max_source_block_length: 2 }), 2);
        for sequel in [Sequel::Restarted, Sequel::Collects] {
            assert_eq!([0, 1].map(|esi| take(&mut block, esi, A)), [Taken::Fresh; 2]);
            recover(&mut block);
            assert_eq!(block.on_corrupt(), Sequel::Unlocated);
            assert_eq!(block.begin_again(None), sequel);
        }
        assert_eq!(take(&mut block, 0, B), Taken::Disputed);
        let choice = block.work_on_bytes(None, Some(Hash([0; 32])));
        assert!(matches!(choice, Some(ReceiveJob::Choose(_))));
        assert!(matches!(block.on_chosen(Some(&[Esi(0)])), Sequel::Replaced(_)));
        assert_eq!(block.symbols_by_source(), [(A, 1), (B, 1)].into());
    }

    #[test]
    fn a_block_is_not_fetched_again_while_a_worker_has_its_decoder_or_its_symbols() {
        let mut block = raptorq(10);
        (0..10).for_each(|esi| assert_eq!(take(&mut block, esi, A), Taken::Fresh));
        let mut decoder = begin_solving(&mut block);
        assert!(!block.refetch(), "the solution would be that of other symbols");
        let progress = decoder.solve(Work::UNBOUNDED);
        let plan = block.on_solved(decoder, progress);
        assert!(block.work_on_bytes(plan, None).is_some() && !block.refetch());
        assert_eq!(block.on_corrupt(), Sequel::Collects);
        (20..24).for_each(|esi| assert_eq!(take(&mut block, esi, A), Taken::Fresh));
        assert!(block.work_on_bytes(None, None).is_some() && !block.refetch());
        assert_eq!(block.on_located(Location::Wanting(4)), Sequel::Collects);
        assert!(block.refetch() && block.symbols_wanted() == 10);
    }

    #[test]
    fn symbols_that_arrive_twice_do_not_take_all_slots() {
        let mut block = raptorq(10);
        (20..30).for_each(|esi| assert_eq!(take(&mut block, esi, A), Taken::Fresh));
        for _ in 0..2_000 {
            let decoder = begin_solving(&mut block);
            (20..22).for_each(|esi| _ = take(&mut block, esi, B));
            assert!(block.on_solved(decoder, Progress::Wanting(1)).is_none());
        }
        assert_eq!(take(&mut block, 40, A), Taken::Fresh);
        assert_eq!(
            block.symbols_by_source(),
            [(A, 11)].into(),
            "the first ones are in their slots"
        );
    }

    #[test]
    fn a_symbol_that_was_not_placed_is_taken_when_it_arrives_again() {
        const K: u32 = 2_000;
        let tornado = Tornado { max_source_block_length: K, code: TornadoCode::Z };
        let mut block = new_block(FecScheme::Tornado(tornado), K);
        assert_eq!(block.begin_again(None), Sequel::Restarted, "symbols are compared now");
        let (first, others) = (K / 2..3 * K / 2, (0..K / 2).chain(3 * K / 2..2 * K));
        first.for_each(|esi| assert_eq!(take(&mut block, esi, A), Taken::Fresh));
        let decoder = begin_solving(&mut block);
        let late = others.clone().find(|&esi| take(&mut block, esi, A) == Taken::Late);
        assert_eq!(late, others.clone().nth(MEANWHILE_SYMBOLS));
        assert!(block.on_solved(decoder, Progress::Wanting(1)).is_none());
        assert_eq!(take(&mut block, late.unwrap(), A), Taken::Fresh);
    }

    #[test]
    fn a_source_symbol_that_arrives_while_its_block_is_solved_is_not_recovered() {
        let mut block = raptorq(10);
        (0..7).chain(20..23).for_each(|esi| assert_eq!(take(&mut block, esi, A), Taken::Fresh));
        let mut decoder = begin_solving(&mut block);
        assert_eq!(take(&mut block, 8, B), Taken::Fresh);
        let progress = decoder.solve(Work::UNBOUNDED);
        let plan = block.on_solved(decoder, progress).unwrap();
        assert_eq!(plan.lost(), [7, 8, 9].map(Esi));
        let job = block.work_on_bytes(Some(plan), None);
        let Some(ReceiveJob::Recover { arrived, .. }) = job else { panic!("{job:?}") };
        assert_eq!(arrived, [Esi(8)]);
        assert_eq!(block.symbols_by_source(), [(A, 10), (B, 1)].into());
        // If a symbol is wrong, this one helps to find it.
        assert_eq!((block.on_corrupt(), block.symbols_wanted()), (Sequel::Collects, 3));
    }
}
