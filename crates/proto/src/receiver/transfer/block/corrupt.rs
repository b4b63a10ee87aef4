//! A block whose hash was wrong: its wrong symbols are found and dropped, or it begins again.

use super::in_place::PlacedSource;
use super::{Block, Collecting, MAX_WAITING_SOURCES, Sequel, State};
use crate::counter::Counter;
use crate::receiver::sources::{Choice, Origins, SourceId, Sources};
use crate::receiver::suspicion::{Conclusion, SearchLimits, Suspects};
use crate::receiver::transfer::copies::ReceivedCopies;
use crate::time::Instant;
use fontana_fec::{Esi, Location};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::Duration;

/// How long most of what sessions and mirrors have brought of a block is believed rather than what
/// other receivers have sent. Symbols of other content agree with each other, and any host can send
/// more of them than a receiver has right ones, which may come from nowhere again. Nor is a block
/// of which a session has brought forged symbols to wait for ever.
const OWN_BELIEVED: Duration = Duration::from_secs(60);

/// Times that what other receivers have sent of a block is dropped, and the rest stays, before all
/// is dropped, if sessions send it again: a symbol that they have brought, or an earlier run has
/// saved, is wrong. A round of requests and choices takes seconds, so that these take about as long
/// as [`OWN_BELIEVED`]. What no session sends again may come from nowhere.
const OWN_ROUNDS: u32 = 16;

impl Block {
    /// The block's bytes are wrong.
    pub(in crate::receiver::transfer) fn on_corrupt(&mut self) -> Sequel {
        self.corruptions.count(1);
        self.is_deferred = false;
        let State::Recovering { lost, .. } = &self.state else { return Sequel::Collects };
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

    /// Number of times that the block's bytes were wrong.
    pub(in crate::receiver::transfer) fn corruptions(&self) -> u32 {
        self.corruptions
    }

    /// A search for wrong symbols has ended.
    pub(in crate::receiver::transfer) fn on_located(
        &mut self,
        now: Instant,
        location: Location,
    ) -> Sequel {
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
            Conclusion::Drop(wrong) if self.believes_own(now, &wrong, &suspects) => {
                self.give_up_search(suspects)
            }
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

    /// Whether the `wrong` ones of these symbols are most of what sessions and mirrors have
    /// brought, and these are believed: what other receivers have sent is wrong then.
    fn believes_own(&mut self, now: Instant, wrong: &[Esi], suspects: &Suspects) -> bool {
        let is_own = |esi: &Esi| !self.origins.of(*esi).is_shared();
        let own = suspects.esis().filter(is_own).count();
        let wrong = wrong.iter().copied().filter(is_own).count();
        if wrong.saturating_mul(2) <= own || !self.has_shared() {
            return false;
        }
        now < *self.contradicted_at.get_or_insert(now) + OWN_BELIEVED
    }

    /// No symbols of use have arrived for a while: the block is searched with those that it has, if
    /// that may help. Whether it waits for that now.
    pub(in crate::receiver::transfer) fn on_idle(&mut self) -> bool {
        let State::Suspect(suspects) = &mut self.state else { return false };
        if suspects.wanted > 0 && self.search.begins_idle(suspects.available()) {
            suspects.wanted = 0;
            return true;
        }
        false
    }

    /// Whether it lacks symbols for a search, others share symbols of it, and searches with those
    /// that it has were of no use.
    pub(in crate::receiver::transfer) fn is_stuck(&self) -> bool {
        let is_early = match self.choice {
            None => self.is_hasty,
            Some(Choice::Without(_) | Choice::Source) => true,
            Some(Choice::Alone(_)) => false,
        };
        is_early && matches!(self.state, State::Suspect(_)) && self.has_shared()
    }

    /// Whether the block is corrupt, and waits until its wrong symbols are found.
    pub(in crate::receiver::transfer) fn is_suspect(&self) -> bool {
        matches!(
            self.state,
            State::Suspect(_)
                | State::Locating(_)
                | State::Disputed { .. }
                | State::Choosing { .. }
        )
    }

    /// Continues without `wrong` symbols, which are not among the `others`.
    fn drop_symbols(&mut self, wrong: &[Esi], others: &Suspects) -> Sequel {
        let Ok(mut decoder) = self.decoder() else { return self.restart() };
        if let Some(copies) = &mut self.copies {
            copies.forget(wrong);
        }
        self.repair.remove(wrong);
        wrong.iter().for_each(|&esi| self.in_place.remove(esi));
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
        Some(match self.choice {
            Some(Choice::Alone(_)) => limits.of_one_source(),
            Some(Choice::Without(_) | Choice::Source) => limits.of_few(),
            None if self.is_hasty && self.has_shared() => limits.of_few(),
            None => limits,
        })
    }

    /// The wrong symbols among these are not found.
    fn give_up_search(&mut self, suspects: Box<Suspects>) -> Sequel {
        self.state = State::Suspect(suspects);
        Sequel::Unlocated
    }

    /// From whose symbols the block is solved.
    pub(in crate::receiver::transfer) fn choice(&self) -> Option<Choice> {
        self.choice
    }

    /// The sources of earlier choices.
    pub(in crate::receiver::transfer) fn tried(&self) -> &BTreeSet<SourceId> {
        &self.tried
    }

    /// The symbols of all sources agreed with each other. Drops all of them. If that has been so
    /// often enough, the hash is not that of the content.
    pub(in crate::receiver::transfer) fn count_agreement(&mut self) -> Sequel {
        let is_hopeless = self.search.on_agreed();
        let sequel = self.restart();
        if is_hopeless { Sequel::Hopeless } else { sequel }
    }

    /// Whether it is to be solved from the source symbols that other receivers have sent: most of
    /// what they have sent are such, or all are there, and that was not tried.
    pub(in crate::receiver::transfer) fn prefers_source(&self) -> bool {
        let State::Suspect(suspects) = &self.state else { return false };
        if self.tried_source {
            return false;
        }
        let shared = suspects.esis().filter(|&esi| self.origins.of(esi).is_shared());
        let (source, repair): (Vec<Esi>, Vec<Esi>) =
            shared.partition(|esi| esi.0 < self.source_symbols);
        let has_most = source.len() > repair.len() || self.missing_source(Esi(0)).is_none();
        has_most && !repair.is_empty()
    }

    /// Whether it is searched for wrong symbols, and has all source symbols by now: the wrong ones
    /// may be repair symbols that other receivers have sent, and no search is needed.
    pub(in crate::receiver::transfer) fn has_all_source(&self) -> bool {
        matches!(self.state, State::Suspect(_))
            && self.missing_source(Esi(0)).is_none()
            && self.prefers_source()
    }

    /// Symbols to ask other receivers for. Of a corrupt block those of others may be wrong: as many
    /// as there are source symbols that it lacks.
    pub(in crate::receiver::transfer) fn symbols_to_ask(&self) -> u32 {
        let lacking = self.symbols_lacking();
        if lacking == 0 || !self.was_corrupt_by_others() {
            return lacking;
        }
        let missing = (0..self.source_symbols).filter(|&esi| !self.in_place.contains(Esi(esi)));
        lacking.max(missing.count() as u32)
    }

    /// Whether its hash was wrong, and other receivers have sent symbols of it.
    pub(in crate::receiver::transfer) fn was_corrupt_by_others(&self) -> bool {
        self.corruptions > 0 && self.has_shared()
    }

    /// Whether other receivers have sent symbols of it.
    pub(in crate::receiver::transfer) fn has_shared(&self) -> bool {
        self.symbols_by_source().keys().any(|source| source.is_shared())
    }

    /// Whether a symbol that it has may be sent to other receivers: one that sessions and mirrors
    /// have brought, or, of a block that was not corrupt, a receiver whose symbols were right.
    pub(in crate::receiver::transfer) fn may_share(&self, esi: Esi, sources: &Sources) -> bool {
        let origin = self.origins.of(esi);
        !origin.is_shared() || self.corruptions == 0 && sources.has_proven(origin)
    }

    /// Begins again, with the symbols that are chosen. The others are dropped.
    pub(in crate::receiver::transfer) fn begin_again(&mut self, choice: Option<Choice>) -> Sequel {
        self.choice = choice;
        self.restarts.count(1);
        match choice {
            Some(Choice::Alone(source) | Choice::Without(source)) => _ = self.tried.insert(source),
            Some(Choice::Source) => self.tried_source = true,
            None => {
                self.rounds.count(1);
                (self.tried, self.left_out) = (BTreeSet::new(), BTreeMap::new());
                self.tried_source = false;
                self.is_hasty = !self.is_hasty;
            }
        }
        (self.uses_doubted, self.waiting) = (false, BTreeMap::new());
        self.search.on_restart();
        let state = std::mem::replace(&mut self.state, State::Untouched);
        let State::Suspect(mut suspects) = state else { return self.restart() };
        // What other receivers have sent is dropped before what sessions and mirrors have brought,
        // which may come from nowhere again.
        let comes_again = self.own_again >= 2 * u64::from(self.source_symbols);
        if choice.is_none() && self.rounds >= OWN_ROUNDS && comes_again {
            return self.restart();
        }
        if choice.is_none() && !self.has_shared() {
            return self.dispute_or_restart();
        }
        let is_other = |&esi: &Esi| {
            let origin = self.origins.of(esi);
            match choice {
                Some(Choice::Alone(source)) => origin != source,
                Some(Choice::Without(source)) => origin == source,
                Some(Choice::Source) => origin.is_shared() && esi.0 >= self.source_symbols,
                None => origin.is_shared(),
            }
        };
        let others: Vec<_> = suspects.esis().filter(is_other).collect();
        suspects.remove(&others);
        match self.drop_symbols(&others, &suspects) {
            Sequel::Dropped(sources) => Sequel::LeftOut(sources.len() as u32),
            sequel => sequel,
        }
    }

    /// Drops pulled symbols of these runs, if the block is corrupt and no job on it is under way.
    pub(in crate::receiver::transfer) fn drop_pulled(
        &mut self,
        runs: &[Range<u32>],
    ) -> Option<Sequel> {
        let State::Suspect(suspects) = &mut self.state else { return None };
        let is_in = |&esi: &Esi| runs.iter().any(|run| run.contains(&esi.0));
        let is_pulled = |&esi: &Esi| self.origins.of(esi) == SourceId::PULLED;
        let wrong: Vec<Esi> = suspects.esis().filter(is_in).filter(is_pulled).collect();
        if wrong.is_empty() {
            return None;
        }
        suspects.remove(&wrong);
        self.search.on_restart();
        let State::Suspect(others) = std::mem::replace(&mut self.state, State::Untouched) else {
            return Some(self.restart());
        };
        let sequel = self.drop_symbols(&wrong, &others);
        // The driver knows where they came from.
        self.left_out.remove(&SourceId::PULLED);
        Some(match sequel {
            Sequel::Dropped(sources) => Sequel::LeftOut(sources.len() as u32),
            sequel => sequel,
        })
    }

    /// All symbols of the block are dropped.
    pub(super) fn restart(&mut self) -> Sequel {
        self.origins = Origins::default();
        (self.rounds, self.own_again) = (0, 0);
        (self.uses_doubted, self.waiting) = (false, BTreeMap::new());
        self.state = State::Untouched;
        self.repair.clear();
        self.in_place = PlacedSource::default();
        self.search.on_restart();
        let has_few = !self.facts.is_rateless;
        self.copies = has_few.then(|| Box::new(ReceivedCopies::new(self.source_symbols)));
        (self.fresh, self.received, self.solve_at) = (0, 0, 0);
        Sequel::Restarted
    }

    /// Drops all symbols. False if it is verified, or a job on it is under way: its answer would
    /// belong to symbols that were dropped.
    pub(in crate::receiver::transfer) fn refetch(&mut self) -> bool {
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
            self.choice = None;
            self.restart();
        }
        is_free
    }
}
