//! One source block: collecting, solving, recovering, verified; or searched for wrong symbols.

use crate::endpoint::BlockId;
use crate::job::{ReceiveJob, Recipe, SavedBlock, Search};
use crate::placed::SymbolPlace;
use crate::receiver::config::DecodePolicy;
use crate::receiver::suspicion::{Conclusion, SEARCH_WORK, SearchLimits, SearchRecord, Suspects};
use fontana_fec::{
    BlockLengthError, Esi, EsiError, FecScheme, IdDecoder, Location, Locator, Novelty, Plan,
    PlanCache, Progress, Work,
};
use std::collections::BTreeMap;
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
    /// Repair symbols that were placed, in the order of their slots.
    repair: Vec<Esi>,
    /// Fresh symbols so far.
    fresh: u32,
    /// Symbols received so far, useless ones included.
    received: u64,
    /// No attempt to solve before so many have been received.
    solve_at: u64,
    budget: Work,
    corruptions: u32,
    search: SearchRecord,
    /// A block with enough symbols waits to be solved ([`DecodePolicy::Deferred`]).
    is_deferred: bool,
}

/// Properties of the code, cached because every symbol asks for them.
#[derive(Clone, Copy, Debug)]
struct Facts {
    is_rateless: bool,
    is_mds: bool,
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
        meanwhile: Vec<Esi>,
    },
    /// Enough symbols have arrived; the block waits to be recovered.
    Solved {
        decoder: Box<dyn IdDecoder>,
        /// Source symbols that will be recovered, ascending.
        lost: Vec<Esi>,
    },
    Recovering {
        /// As in `Solved`.
        lost: Vec<Esi>,
    },
    /// The hash was wrong. More symbols are collected, or the block waits to be searched.
    Suspect(Box<Suspects>),
    /// A worker searches for wrong symbols.
    Locating(Box<Suspects>),
    Verified,
}

/// What follows a wrong hash, or a search for wrong symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sequel {
    /// The block needs more symbols, or waits to be searched.
    Collects,
    /// So many wrong symbols were dropped; the others may suffice.
    Dropped(u32),
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
    /// Decoders of other blocks use all the memory for decoders.
    NoRoom,
}

/// A slot without a symbol: a run of the receiver ended while it was being written. No code has so
/// many symbols.
const EMPTY_SLOT: Esi = Esi(u32::MAX);

/// Symbols stored for a block while a worker has its decoder, which takes milliseconds.
const MEANWHILE_SYMBOLS: usize = 1024;

/// Slots for the repair symbols of a block of `source_symbols`: as many as its decoder can use, a
/// few in excess, some that arrive twice while a worker has the decoder, and those by which wrong
/// symbols are found.
pub fn repair_slots(scheme: FecScheme, source_symbols: u32) -> u32 {
    scheme
        .block_profile(source_symbols)
        .max_repair_symbols
        .saturating_add(2 * MEANWHILE_SYMBOLS as u32 + Locator::MAX_SURPLUS as u32)
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
            is_rateless: code.is_rateless,
            is_mds: code.is_mds,
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
            repair: Vec::new(),
            fresh: 0,
            received: 0,
            solve_at: 0,
            budget: profile.work,
            corruptions: 0,
            search: SearchRecord::default(),
            is_deferred: false,
        }
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
            _ => self.facts.decoder_memory,
        }
    }

    /// Symbols that are missing before the block can be recovered, as far as is known.
    #[inline]
    pub(super) fn symbols_wanted(&self) -> u32 {
        match &self.state {
            State::Untouched => self.source_symbols,
            State::Collecting(collecting) => collecting.symbols_wanted,
            State::Suspect(suspects) => suspects.wanted,
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
        let slots = repair_slots(self.scheme, self.source_symbols);
        let all = (0..self.source_symbols).map(Esi).filter(|_| saved.is_complete);
        let in_place = saved.in_place.iter().copied().filter(|esi| esi.0 < self.source_symbols);
        for esi in all.chain(in_place) {
            self.fresh += u32::from(decoder.push(esi) == Ok(Novelty::Fresh));
        }
        // A wrong symbol was dropped from its slot: the slot has the symbol that came last.
        let placed = || saved.repair.iter().filter(|&&(_, slot)| slot < slots);
        let slot_of: BTreeMap<Esi, u32> = placed().copied().collect();
        let in_slots: BTreeMap<u32, Esi> = placed().map(|&(esi, slot)| (slot, esi)).collect();
        for (slot, esi) in in_slots.into_iter().filter(|(slot, esi)| slot_of.get(esi) == Some(slot))
        {
            if esi.0 >= self.source_symbols && decoder.push(esi) == Ok(Novelty::Fresh) {
                let index = slot as usize;
                if self.repair.len() <= index {
                    self.repair.resize(index + 1, EMPTY_SLOT);
                }
                if let Some(entry) = self.repair.get_mut(index) {
                    *entry = esi;
                    self.fresh += 1;
                }
            }
        }
        self.state = State::Collecting(Collecting::new(decoder));
    }

    /// Takes a symbol of the right size. Returns its place, if it is of use.
    pub(super) fn take(&mut self, esi: Esi) -> (Taken, Option<SymbolPlace>) {
        if matches!(self.state, State::Untouched) {
            match self.decoder() {
                Ok(decoder) => self.state = State::Collecting(Collecting::new(decoder)),
                Err(_) => return (Taken::Invalid, None),
            }
        }
        let is_repair = esi.0 >= self.source_symbols;
        if is_repair && self.repair.len() >= repair_slots(self.scheme, self.source_symbols) as usize
        {
            if let State::Suspect(suspects) = &mut self.state {
                // The search has to do with those that there are.
                suspects.wanted = 0;
            }
            return (Taken::Late, None);
        }
        self.received += 1;
        let has_enough = self.has_enough();
        match &mut self.state {
            // It only waits for a worker. Early symbols come all at once, and most of them find
            // the block in this state.
            _ if has_enough => return (self.taken_late(), None),
            State::Collecting(collecting) => match collecting.push(esi) {
                Ok(Novelty::Fresh) => {}
                Ok(Novelty::Duplicate) => return (Taken::Duplicate, None),
                Err(_) => return (Taken::Invalid, None),
            },
            State::Solving { meanwhile } if meanwhile.contains(&esi) => {
                return (Taken::Duplicate, None);
            }
            State::Solving { meanwhile } if meanwhile.len() < MEANWHILE_SYMBOLS => {
                meanwhile.push(esi);
            }
            State::Suspect(suspects) => {
                if !suspects.insert(esi) {
                    return (Taken::Duplicate, None);
                }
            }
            _ => return (Taken::Late, None),
        }
        self.fresh += 1;
        let to = if is_repair {
            SymbolPlace::RepairSlot(self.slot_for(esi))
        } else {
            SymbolPlace::InPlace
        };
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

    /// A slot for a repair symbol.
    fn slot_for(&mut self, esi: Esi) -> u32 {
        if let State::Suspect(suspects) = &mut self.state
            && let Some(slot) = suspects.take_free_slot()
            && let Some(entry) = self.repair.get_mut(slot as usize)
        {
            *entry = esi;
            return slot;
        }
        self.repair.push(esi);
        self.repair.len() as u32 - 1
    }

    /// The job of solving the block, if it is worth trying now.
    pub(super) fn try_solve(&mut self, policy: DecodePolicy) -> Option<ReceiveJob> {
        let State::Collecting(collecting) = &self.state else { return None };
        let patience = match policy {
            _ if self.is_deferred => return None,
            DecodePolicy::Incremental | DecodePolicy::Deferred => 0,
            // A decoder stores no more than these.
            DecodePolicy::Patient { margin } if self.facts.is_rateless => margin.min(64),
            DecodePolicy::Patient { .. } => 0,
        };
        let patient = self.fresh < self.source_symbols.saturating_add(patience);
        // All source symbols are enough whatever the policy; a decoder says when it wants none.
        let waits = (patient || self.received < self.solve_at) && !self.repair.is_empty();
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
                self.state = State::Solved { decoder, lost: plan.lost().to_vec() };
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
        for esi in meanwhile {
            if decoder.push(esi) != Ok(Novelty::Fresh) {
                self.fresh -= 1;
            }
        }
        self.state = State::Collecting(Collecting::new(decoder));
        None
    }

    /// The job on the block's bytes that it waits for: it is recovered, with its plan if that was
    /// not dropped, or searched for wrong symbols.
    pub(super) fn work_on_bytes(&mut self, plan: Option<Arc<Plan>>) -> Option<ReceiveJob> {
        match std::mem::replace(&mut self.state, State::Untouched) {
            State::Solved { decoder, lost } => {
                self.state = State::Recovering { lost };
                let recipe = plan.map_or(Recipe::Decoder(decoder), Recipe::Plan);
                Some(ReceiveJob::Recover { block: self.id, recipe, repair: self.repair.clone() })
            }
            State::Suspect(suspects) if suspects.wanted == 0 => {
                let Ok(decoder) = self.decoder() else { return None };
                self.search.on_search(suspects.available());
                let search = Search {
                    block: self.id,
                    profile: self.scheme.profile(),
                    decoder,
                    available: suspects.esis().collect(),
                    repair: self.repair.clone(),
                    solving: self.budget,
                    locating: SEARCH_WORK,
                };
                self.state = State::Locating(suspects);
                Some(ReceiveJob::Locate(Box::new(search)))
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
            State::Solved { .. }
            | State::Recovering { .. }
            | State::Locating(_)
            | State::Verified => true,
        }
    }

    /// Whether the symbols that have arrived will hardly fail to solve the block.
    fn is_sure(&self) -> bool {
        let sure = self.facts.sure_surplus.map(|s| self.source_symbols.saturating_add(s));
        self.repair.is_empty() || sure.is_some_and(|sure| self.fresh >= sure)
    }

    /// Whether the block needs more symbols, and no attempt to solve it is under way.
    pub(super) fn is_collecting(&self) -> bool {
        let needs_some =
            matches!(self.state, State::Untouched | State::Collecting(_) | State::Suspect(_));
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

    /// Whether the block waits to be searched for wrong symbols.
    pub(super) fn awaits_search(&self) -> bool {
        matches!(&self.state, State::Suspect(suspects) if suspects.wanted == 0)
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

    /// Whether symbols are collected until the wrong ones are found.
    pub(super) fn is_suspect(&self) -> bool {
        matches!(self.state, State::Suspect(_))
    }

    pub(super) fn is_verified(&self) -> bool {
        matches!(self.state, State::Verified)
    }

    pub(super) fn on_verified(&mut self) {
        self.state = State::Verified;
        self.repair = Vec::new();
    }

    /// The block is not wanted any more: its decoder is dropped, unless a worker has it.
    pub(super) fn give_up(&mut self) {
        if matches!(self.state, State::Collecting(_) | State::Suspect(_)) {
            self.state = State::Untouched;
            self.repair = Vec::new();
        }
    }

    /// Number of times that the block's bytes were wrong.
    pub(super) fn corruptions(&self) -> u32 {
        self.corruptions
    }

    /// The block's bytes are wrong.
    pub(super) fn on_corrupt(&mut self) -> Sequel {
        self.corruptions += 1;
        self.is_deferred = false;
        let State::Recovering { lost } = &self.state else { return Sequel::Collects };
        let limits = SearchLimits::of(self.scheme, self.source_symbols);
        let Some(limits) = limits.filter(|_| !self.search.is_exhausted()) else {
            return self.restart();
        };
        let mut suspects = Suspects::new(self.source_symbols, lost, &self.repair, EMPTY_SLOT);
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
        let Some(limits) = SearchLimits::of(self.scheme, self.source_symbols) else {
            return self.restart();
        };
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
            Conclusion::Want(_) | Conclusion::Restart => self.restart(),
            Conclusion::Agreed if self.search.on_agreed() => {
                self.restart();
                Sequel::Hopeless
            }
            Conclusion::Agreed => self.restart(),
        }
    }

    /// Continues without `wrong` symbols, which are not among the `others`.
    fn drop_symbols(&mut self, wrong: &[Esi], others: &Suspects) -> Sequel {
        let Ok(mut decoder) = self.decoder() else { return self.restart() };
        for slot in &mut self.repair {
            if wrong.binary_search(slot).is_ok() {
                *slot = EMPTY_SLOT;
            }
        }
        for esi in others.esis() {
            // Symbols that the decoder has no use for stay in their slots.
            let _ = decoder.push(esi);
        }
        self.fresh = others.available();
        self.solve_at = 0;
        self.state = State::Collecting(Collecting::new(decoder));
        Sequel::Dropped(wrong.len() as u32)
    }

    /// All symbols of the block are dropped.
    fn restart(&mut self) -> Sequel {
        self.state = State::Untouched;
        self.repair.clear();
        self.search.on_restart();
        (self.fresh, self.received, self.solve_at) = (0, 0, 0);
        Sequel::Restarted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fontana_fec::Sbn;
    use fontana_fec::codes::raptorq::RaptorQ;
    use fontana_wire::Toi;

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
        assert_eq!(block.repair, [Esi(21), Esi(23), Esi(22)]);
        assert_eq!(block.fresh, 10);
    }
}
