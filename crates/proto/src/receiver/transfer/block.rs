//! One source block on its way: collecting, solving, recovering, verified.

use crate::endpoint::BlockId;
use crate::job::{ReceiveJob, Recipe, SavedBlock, SymbolBytes, SymbolPlace};
use crate::receiver::DecodePolicy;
use fontana_fec::{
    BlockLengthError, Esi, EsiError, FecScheme, IdDecoder, Novelty, Plan, PlanCache, Progress, Work,
};
use std::sync::Arc;

/// A receiver's view of one source block.
#[derive(Debug)]
pub(super) struct Block {
    id: BlockId,
    scheme: FecScheme,
    source_symbols: u32,
    facts: Facts,
    /// What decoders share.
    plans: Arc<PlanCache>,
    state: State,
    /// Repair symbols in the spool, in the order of their slots.
    spool: Vec<Esi>,
    /// Fresh symbols so far.
    fresh: u32,
    /// Symbols heard so far, also those that were of no use.
    heard: u64,
    /// No attempt to solve before so many have been heard.
    solve_at: u64,
    budget: Work,
    poisoned: u32,
    /// What suffices is left to be solved later ([`DecodePolicy::Deferred`]).
    is_deferred: bool,
}

/// What is asked of the code for many symbols.
#[derive(Clone, Copy, Debug)]
struct Facts {
    is_rateless: bool,
    is_mds: bool,
    sure_surplus: Option<u32>,
    decoder_memory: u64,
}

#[derive(Debug)]
enum State {
    /// Nothing has arrived yet: no memory is spent.
    Untouched,
    Collecting(Collecting),
    /// The decoder is away; symbols that arrive in the meantime are placed and told to it later.
    Solving {
        meanwhile: Vec<Esi>,
    },
    /// Enough has arrived; waiting for its turn to be recovered.
    Solved(Box<dyn IdDecoder>),
    Recovering,
    Verified,
}

/// A decoder that symbols are told to, and what it wants: it is asked once for every symbol, and
/// the block many times.
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

/// What became of a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::receiver) enum Taken {
    /// It was fresh and has been placed.
    Fresh,
    /// It was heard before.
    Duplicate,
    /// The block needs nothing more.
    Late,
    /// The code has no such symbol.
    Invalid,
    /// Nobody here wants the object.
    LeftOut,
    /// Decoders of other blocks have all the memory there is for them.
    NoRoom,
}

/// A slot of the spool that holds nothing, because a life ended while it was being written. No
/// code has so many symbols.
const EMPTY_SLOT: Esi = Esi(u32::MAX);

/// Symbols kept for a block while its decoder is away: a solver takes milliseconds.
const MEANWHILE_SYMBOLS: usize = 1024;

/// Slots in the spool of a block of `source_symbols`: as many repair symbols as its decoder has a
/// use for; a few may be needed in excess, and some may arrive twice while a solver is busy.
pub fn repair_slots(scheme: FecScheme, source_symbols: u32) -> u32 {
    scheme
        .block_profile(source_symbols)
        .max_repair_symbols
        .saturating_add(2 * MEANWHILE_SYMBOLS as u32)
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
            spool: Vec::new(),
            fresh: 0,
            heard: 0,
            solve_at: 0,
            budget: profile.work,
            poisoned: 0,
            is_deferred: false,
        }
    }

    /// The same, to be solved when everything has been heard, if it can be told when that is.
    pub(super) fn deferred(self) -> Self {
        Self { is_deferred: self.facts.sure_surplus.is_some(), ..self }
    }

    /// The job of solving the block, if it has waited for everything else to be heard.
    pub(super) fn solve_deferred(&mut self) -> Option<ReceiveJob> {
        (self.is_deferred && self.has_enough()).then(|| self.solve()).flatten()
    }

    /// Bytes that the block's decoder will take, if it has not begun.
    pub(super) fn memory_to_begin(&self) -> u64 {
        if matches!(self.state, State::Untouched) { self.facts.decoder_memory } else { 0 }
    }

    /// Bytes that are set aside for the block's decoder and what comes of it.
    #[inline]
    pub(super) fn memory(&self) -> u64 {
        match self.state {
            State::Untouched | State::Verified => 0,
            _ => self.facts.decoder_memory,
        }
    }

    /// Symbols that are still missing before the block can be recovered, as far as is known.
    #[inline]
    pub(super) fn symbols_wanted(&self) -> u32 {
        match &self.state {
            State::Untouched => self.source_symbols,
            State::Collecting(collecting) => collecting.symbols_wanted,
            _ => 0,
        }
    }

    fn decoder(&self) -> Result<Box<dyn IdDecoder>, BlockLengthError> {
        self.plans.decoder(self.scheme, self.source_symbols)
    }

    /// Takes up what an earlier life of the receiver left.
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
        for &(esi, slot) in saved.repair.iter().filter(|&&(_, slot)| slot < slots) {
            if esi.0 >= self.source_symbols && decoder.push(esi) == Ok(Novelty::Fresh) {
                let index = slot as usize;
                if self.spool.len() <= index {
                    self.spool.resize(index + 1, EMPTY_SLOT);
                }
                if let Some(entry) = self.spool.get_mut(index) {
                    *entry = esi;
                    self.fresh += 1;
                }
            }
        }
        self.state = State::Collecting(Collecting::new(decoder));
    }

    /// Takes a symbol of the right size. The job that places it, if it is worth keeping.
    pub(super) fn take(&mut self, esi: Esi, symbol: SymbolBytes) -> (Taken, Option<ReceiveJob>) {
        if matches!(self.state, State::Untouched) {
            match self.decoder() {
                Ok(decoder) => self.state = State::Collecting(Collecting::new(decoder)),
                Err(_) => return (Taken::Invalid, None),
            }
        }
        let is_repair = esi.0 >= self.source_symbols;
        if is_repair && self.spool.len() >= repair_slots(self.scheme, self.source_symbols) as usize
        {
            return (Taken::Late, None);
        }
        self.heard += 1;
        let has_enough = self.has_enough();
        match &mut self.state {
            // It only waits for a solver. Symbols that were spooled before it was known where they
            // go come all at once, and most of them find it so.
            _ if has_enough => return (Taken::Late, None),
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
            _ => return (Taken::Late, None),
        }
        self.fresh += 1;
        let to = if is_repair {
            self.spool.push(esi);
            SymbolPlace::RepairSlot(self.spool.len() as u32 - 1)
        } else {
            SymbolPlace::InPlace
        };
        (Taken::Fresh, Some(ReceiveJob::Place { block: self.id, esi, to, symbol }))
    }

    /// The job of solving the block, if it is worth trying now.
    pub(super) fn try_solve(&mut self, policy: DecodePolicy) -> Option<ReceiveJob> {
        let State::Collecting(collecting) = &self.state else { return None };
        let patience = match policy {
            _ if self.is_deferred => return None,
            DecodePolicy::Incremental | DecodePolicy::Deferred => 0,
            // A decoder does not keep more than these.
            DecodePolicy::Patient { margin } if self.facts.is_rateless => margin.min(64),
            DecodePolicy::Patient { .. } => 0,
        };
        let patient = self.fresh < self.source_symbols.saturating_add(patience);
        // All source symbols are enough whatever the policy; a decoder says when it wants none.
        let waits = (patient || self.heard < self.solve_at) && !self.spool.is_empty();
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

    /// The decoder is back. The plan, if the block is solved.
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
                self.state = State::Solved(decoder);
                return Some(plan);
            }
            Progress::Wanting(_) => {}
            // Symbols that were chosen to make solving expensive: wait for others, and twice as
            // many each time, so that the work spent stays in proportion to what arrives. What
            // arrives counts, not what is kept of it: a decoder that is full must be tried again.
            Progress::OutOfBudget => {
                let spare = self.heard.saturating_sub(u64::from(self.source_symbols));
                self.solve_at = self.heard.saturating_add(spare.max(8));
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

    /// The job of recovering a solved block, with the plan if there is one at hand.
    pub(super) fn recover(&mut self, plan: Option<Arc<Plan>>) -> Option<ReceiveJob> {
        if !matches!(self.state, State::Solved(_)) {
            return None;
        }
        let State::Solved(decoder) = std::mem::replace(&mut self.state, State::Recovering) else {
            return None;
        };
        let recipe = plan.map_or(Recipe::Decoder(decoder), Recipe::Plan);
        Some(ReceiveJob::Recover {
            block: self.id,
            recipe,
            repair: std::mem::take(&mut self.spool),
        })
    }

    /// Whether enough has been heard of the block: it is solved, or all source symbols are there,
    /// or so many symbols while the solver is still at work that it will hardly fail. Not to wait
    /// for the solver matters at high rates, where thousands of packets pass meanwhile.
    #[inline]
    pub(super) fn has_enough(&self) -> bool {
        match self.state {
            State::Untouched => false,
            State::Collecting(ref collecting) => {
                let is_exact = self.facts.is_mds;
                self.is_deferred && collecting.symbols_wanted == 0 && (is_exact || self.is_sure())
            }
            State::Solving { .. } => self.is_deferred || self.is_sure(),
            State::Solved(_) | State::Recovering | State::Verified => true,
        }
    }

    /// Whether the symbols at hand will hardly fail to solve the block.
    fn is_sure(&self) -> bool {
        let sure = self.facts.sure_surplus.map(|s| self.source_symbols.saturating_add(s));
        self.spool.is_empty() || sure.is_some_and(|sure| self.fresh >= sure)
    }

    /// Whether only more symbols can help: nobody is at work on those that are there.
    pub(super) fn is_collecting(&self) -> bool {
        matches!(self.state, State::Untouched | State::Collecting(_)) && !self.has_enough()
    }

    /// Whether a [`ReceiveJob::Recover`] is under way.
    pub(super) fn is_recovering(&self) -> bool {
        matches!(self.state, State::Recovering)
    }

    pub(super) fn on_verified(&mut self) {
        self.state = State::Verified;
    }

    /// The block is not wanted any more: its decoder goes, unless somebody is at work on it.
    pub(super) fn give_up(&mut self) {
        if matches!(self.state, State::Collecting(_)) {
            self.state = State::Untouched;
            self.spool = Vec::new();
        }
    }

    /// The block's bytes are wrong: everything that was heard of it is worthless. Returns how
    /// often that has happened.
    pub(super) fn on_poisoned(&mut self) -> u32 {
        self.poisoned += 1;
        self.is_deferred = false;
        self.state = State::Untouched;
        self.spool.clear();
        (self.fresh, self.heard, self.solve_at) = (0, 0, 0);
        self.poisoned
    }
}
