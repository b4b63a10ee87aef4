//! Symbols of a block that wait for its others: those of doubted sources, and those of all sources
//! but one.

use super::{Block, MAX_WAITING_SOURCES, State};
use crate::counter::Counter;
use crate::receiver::sources::{Choice, SourceId, Sources};
use crate::receiver::transfer::taken::Taken;
use fontana_fec::Esi;
use std::collections::BTreeMap;

/// Symbols that were chosen to be left out that wait, beyond those that the block lacks, before
/// they are used: meanwhile others can answer.
const MIN_WAITING: u32 = 64;

impl Block {
    /// Whether symbols of this source wait until others suffice, or none arrive. Pulled ones do
    /// not: the user has chosen where they come from.
    #[inline]
    pub(in crate::receiver::transfer) fn holds_back(
        &self,
        source: SourceId,
        esi: Esi,
        sources: &Sources,
    ) -> bool {
        if source == SourceId::PULLED {
            return false;
        }
        let is_other = match self.choice {
            None => false,
            Some(Choice::Alone(alone)) => alone != source && !sources.doubts(alone),
            Some(Choice::Without(other)) => other == source,
            Some(Choice::Source) => source.is_shared() && esi.0 >= self.source_symbols,
        };
        (sources.doubts(source) || is_other) && !self.uses_doubted
    }

    /// No symbols of other sources arrive: those of all are used.
    pub(in crate::receiver::transfer) fn stop_holding(&mut self) {
        self.uses_doubted = true;
    }

    /// Counts a symbol that [waits](Self::holds_back).
    pub(in crate::receiver::transfer) fn take_waiting(&mut self, source: SourceId) -> Taken {
        if self.is_verified() {
            return Taken::Late;
        }
        if (self.choice.is_some() || source.is_shared()) && !self.has_enough() {
            let is_counted =
                self.waiting.contains_key(&source) || self.waiting.len() < MAX_WAITING_SOURCES;
            let source = if is_counted { source } else { SourceId::default() };
            self.waiting.entry(source).or_default().count(1);
        }
        Taken::Unverified
    }

    /// Whether the symbols of other receivers that wait are used after all: more wait than the
    /// block lacks. What others bring meanwhile may be wrong, too.
    pub(in crate::receiver::transfer) fn ends_waiting(&mut self) -> bool {
        if matches!(self.choice, Some(Choice::Alone(_))) {
            return false;
        }
        let shared = self.waiting.iter().filter(|(source, _)| source.is_shared());
        let waiting = shared.fold(0_u32, |sum, (_, &count)| sum.saturating_add(count));
        let ends = waiting > self.symbols_lacking().saturating_add(MIN_WAITING);
        if ends {
            (self.choice, self.waiting) = (None, BTreeMap::new());
            self.uses_doubted = true;
        }
        ends
    }

    /// Whether symbols of others were chosen to be left out.
    pub(in crate::receiver::transfer) fn leaves_out(&self) -> bool {
        matches!(self.choice, Some(Choice::Without(_) | Choice::Source)) && !self.uses_doubted
    }

    /// The source whose symbols were left out when the block was solved.
    pub(in crate::receiver::transfer) fn excluded(&self) -> Option<SourceId> {
        match self.choice {
            Some(Choice::Without(source)) if !self.uses_doubted => Some(source),
            _ => None,
        }
    }

    /// Whether the one source is slow: twice the symbols that the block needs wait, and twice as
    /// many after each attempt.
    pub(in crate::receiver::transfer) fn waits_in_vain(&self) -> bool {
        let waiting = self.waiting.values().fold(0_u32, |sum, &more| sum.saturating_add(more));
        let patience = 2_u32.saturating_pow(self.restarts);
        matches!(self.choice, Some(Choice::Alone(_)))
            && waiting > self.source_symbols.saturating_mul(patience)
            && matches!(self.state, State::Untouched | State::Collecting(_) | State::Suspect(_))
    }

    /// The number of symbols of each source, those that wait or were dropped included.
    pub(in crate::receiver::transfer) fn sources(&self) -> BTreeMap<SourceId, u32> {
        let mut counts = self.symbols_by_source();
        for (&source, &count) in self.waiting.iter().chain(&self.left_out) {
            counts.entry(source).or_default().count(count);
        }
        counts
    }

    /// The number of symbols of each source that are right if the block's bytes are: without those
    /// that they were not recovered from.
    pub(in crate::receiver::transfer) fn proven_by_source(&self) -> BTreeMap<SourceId, u32> {
        let mut counts = self.symbols_by_source();
        if let State::Recovering { unread, .. } = &self.state {
            for &esi in unread {
                if let Some(count) = counts.get_mut(&self.origins.of(esi)) {
                    count.discount(1);
                }
            }
        }
        counts.retain(|_, count| *count > 0);
        counts
    }

    /// The number of placed symbols of each source.
    pub(in crate::receiver::transfer) fn symbols_by_source(&self) -> BTreeMap<SourceId, u32> {
        self.origins.counts(self.fresh)
    }
}
