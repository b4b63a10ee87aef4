//! A block that may have enough symbols: it is solved on ids, and then recovered. Symbols that
//! arrive while a worker has its decoder are settled afterwards.

use super::{Block, Collecting, Meanwhile, State};
use crate::counter::Counter;
use crate::job::{Choice, ReceiveJob, Recipe, Search};
use crate::placed::SymbolPlace;
use crate::receiver::config::DecodePolicy;
use crate::receiver::suspicion::SEARCH_WORK;
use fontana_fec::{Esi, IdDecoder, Novelty, Plan, Progress};
use fontana_wire::Hash;
use std::collections::BTreeSet;
use std::sync::Arc;

impl Block {
    /// The same, to be solved when reception is complete. Without effect if the code does not say
    /// how many symbols suffice.
    pub(in crate::receiver::transfer) fn deferred(self) -> Self {
        Self { is_deferred: self.facts.sure_surplus.is_some(), ..self }
    }

    /// The job of solving the block, if it has waited for reception to be complete.
    pub(in crate::receiver::transfer) fn solve_deferred(&mut self) -> Option<ReceiveJob> {
        (self.is_deferred && self.has_enough()).then(|| self.solve()).flatten()
    }

    /// The job of solving the block, if it is worth trying now.
    pub(in crate::receiver::transfer) fn try_solve(
        &mut self,
        policy: DecodePolicy,
    ) -> Option<ReceiveJob> {
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
    pub(in crate::receiver::transfer) fn on_solved(
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
                let is_unread = |esi: &Esi| plan.inputs().binary_search(esi).is_err();
                let unread = self.repair.symbols().filter(is_unread).collect();
                self.state = State::Solved { decoder, lost, arrived, unread };
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
    pub(in crate::receiver::transfer) fn work_on_bytes(
        &mut self,
        plan: Option<Arc<Plan>>,
        expected: Option<Hash>,
    ) -> Option<ReceiveJob> {
        match std::mem::replace(&mut self.state, State::Untouched) {
            State::Solved { decoder, lost, arrived, unread } => {
                self.state = State::Recovering { lost, unread };
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
}
