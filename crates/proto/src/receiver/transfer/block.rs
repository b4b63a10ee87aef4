//! One source block: collecting, solving, recovering, verified; or searched for wrong symbols.

use super::copies::{Chosen, Comparison, ReceivedCopies};
use super::slots::{MEANWHILE_SYMBOLS, RepairSlots, repair_slots};
use super::taken::Taken;
use crate::counter::Counter;
use crate::endpoint::BlockId;
use crate::job::SavedBlock;
use crate::placed::SymbolPlace;
use crate::receiver::sources::{Choice, Origins, SourceId};
use crate::receiver::suspicion::{SearchRecord, Suspects};
use crate::time::Instant;
use fontana_fec::{
    BlockLengthError, CodeProfile, Esi, EsiError, FecScheme, IdDecoder, Novelty, PlanCache, Work,
};
use in_place::PlacedSource;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

mod corrupt;
mod disputed;
mod in_place;
mod solving;
mod waiting;

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
    /// When what other receivers have sent has first shown most of what sessions and mirrors have
    /// brought to be wrong.
    contradicted_at: Option<Instant>,
    /// The sources of the symbols that were placed.
    origins: Origins,
    /// From whose symbols the block is solved; `None`: from those of all.
    choice: Option<Choice>,
    /// Whether sources are chosen before a search has collected all symbols that it may: others
    /// share symbols of the block. Every other time that it begins again.
    is_hasty: bool,
    /// The sources of the choices since it was solved from the symbols of all. A few.
    tried: BTreeSet<SourceId>,
    /// [`Choice::Source`] was one of them.
    tried_source: bool,
    /// Times that the block began again.
    restarts: u32,
    /// Times that it began again from the symbols of all sources, since all were dropped.
    rounds: u32,
    /// Symbols that it had, and that sessions have brought again.
    own_again: u64,
    /// Symbols of other sources that wait.
    waiting: BTreeMap<SourceId, u32>,
    /// Symbols that were dropped: as wrong, or because the block is solved from those of one
    /// source. If most symbols are those of a forger, and agree, it is the others that seem to be
    /// wrong.
    left_out: BTreeMap<SourceId, u32>,
    /// Whether symbols of doubted sources are used as all others are.
    uses_doubted: bool,
    /// Present from the time when a block without surplus symbols was corrupt.
    copies: Option<Box<ReceivedCopies>>,
    /// A block with enough symbols waits to be solved ([`DecodePolicy::Deferred`]).
    is_deferred: bool,
    /// Source symbols in their places. Those that were found to be wrong are not among them.
    in_place: PlacedSource,
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
        /// Repair symbols that were placed and that the plan does not read.
        unread: Vec<Esi>,
    },
    Recovering {
        /// As in `Solved`.
        lost: Vec<Esi>,
        /// As in `Solved`.
        unread: Vec<Esi>,
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

/// Part of a block that is requested at a time, beyond `k` symbols of a code whose surplus varies.
const PARTS: u32 = 64;
/// Sources whose waiting or dropped symbols are counted one by one.
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
            contradicted_at: None,
            origins: Origins::default(),
            choice: None,
            is_hasty: true,
            tried: BTreeSet::new(),
            tried_source: false,
            restarts: 0,
            rounds: 0,
            own_again: 0,
            waiting: BTreeMap::new(),
            left_out: BTreeMap::new(),
            uses_doubted: false,
            copies: None,
            is_deferred: false,
            in_place: PlacedSource::default(),
        }
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

    /// Symbols with which the block will almost certainly be recovered. 0 if enough have arrived,
    /// or if that is not known before the attempt under way ends.
    pub(super) fn symbols_lacking(&self) -> u32 {
        if self.has_enough() {
            return 0;
        }
        let k = self.source_symbols;
        let least = match self.facts.sure_surplus {
            _ if self.facts.is_mds => k.saturating_sub(self.fresh),
            Some(surplus) => k.saturating_add(surplus).saturating_sub(self.fresh),
            // Nothing says how many more it takes: a few per cent, in a few requests.
            None => k.saturating_sub(self.fresh).max(k / PARTS),
        };
        let lacking = least.max(self.symbols_wanted());
        match self.state {
            State::Untouched | State::Solving { .. } => lacking,
            // It is not being solved: it waits for more, by its policy or after a costly attempt.
            State::Collecting(_) => lacking.max(1),
            _ => self.symbols_wanted(),
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
            self.in_place.insert(esi);
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
        let refusal = match &mut self.state {
            // It only waits for a worker. Early symbols come all at once, and most of them find
            // the block in this state.
            _ if has_enough => return (self.taken_late(), None),
            State::Collecting(collecting) => match collecting.push(esi) {
                Ok(Novelty::Fresh) => None,
                Ok(Novelty::Duplicate) => Some(Taken::Duplicate),
                Err(_) => Some(Taken::Invalid),
            },
            State::Solving { meanwhile } => {
                // A forged copy would replace the symbol that the plan reads.
                let is_known =
                    self.in_place.contains(esi) || meanwhile.iter().any(|symbol| symbol.esi == esi);
                is_known.then_some(Taken::Duplicate)
            }
            State::Suspect(suspects) => (!suspects.insert(esi)).then_some(Taken::Duplicate),
            // A source symbol that was recovered from wrong ones.
            State::Disputed { .. } => None,
            _ => Some(Taken::Late),
        };
        if let Some(refusal) = refusal {
            self.own_again.count(u64::from(refusal == Taken::Duplicate && !source.is_shared()));
            if let Some(copies) = self.copies.as_mut().filter(|_| is_compared) {
                // The first one of its id, and not placed: a decoder had no use for it.
                copies.forget(&[esi]);
            }
            return (refusal, None);
        }
        self.fresh.count(1);
        let to = if is_repair {
            SymbolPlace::RepairSlot(self.repair.place(esi))
        } else {
            self.in_place.insert(esi);
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

    /// Whether the block needs no more symbols: it is solved, or all source symbols have arrived,
    /// or so many symbols that the attempt under way will hardly fail. At high rates, thousands of
    /// packets pass during an attempt.
    #[inline]
    pub(super) fn has_enough(&self) -> bool {
        match self.state {
            State::Untouched => false,
            State::Collecting(ref collecting) => {
                let is_exact = self.facts.is_mds;
                // A carousel may have no more symbols than these.
                let is_sure =
                    || is_exact || self.is_sure() || self.missing_source(Esi(0)).is_none();
                self.is_deferred && collecting.symbols_wanted == 0 && is_sure()
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

    /// Whether it has symbols that [may be sent](Self::may_share).
    pub(super) fn is_sound(&self) -> bool {
        matches!(
            self.state,
            State::Collecting(_)
                | State::Solving { .. }
                | State::Solved { .. }
                | State::Recovering { .. }
                | State::Suspect(_)
        )
    }

    /// The repair symbols that were placed.
    pub(super) fn repair_symbols(&self) -> impl Iterator<Item = Esi> {
        self.repair.symbols()
    }

    /// The same, in the order of their slots.
    pub(super) fn repair_in_slots(&self) -> Vec<Esi> {
        self.repair.list()
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
        self.in_place = PlacedSource::default();
    }

    /// The block is not wanted any more: it uses no memory, and the answers to jobs that are under
    /// way change nothing.
    pub(super) fn give_up(&mut self) {
        if !self.is_verified() {
            self.state = State::Untouched;
            self.repair.clear();
            self.copies = None;
            self.in_place = PlacedSource::default();
        }
    }
}

#[cfg(test)]
mod tests;
