//! Symbols of a block that wait for its others: those of doubted sources, and those of all sources
//! but one.

use super::{Block, MAX_WAITING_SOURCES, State};
use crate::counter::Counter;
use crate::receiver::sources::{SourceId, Sources};
use crate::receiver::transfer::taken::Taken;
use std::collections::BTreeMap;

impl Block {
    /// Whether symbols of this source wait until others suffice, or none arrive. Pulled ones do
    /// not: the user has chosen where they come from.
    #[inline]
    pub(in crate::receiver::transfer) fn holds_back(
        &self,
        source: SourceId,
        sources: &Sources,
    ) -> bool {
        if source == SourceId::PULLED {
            return false;
        }
        let is_other = |alone: SourceId| {
            // Beside a receiver that shares, what comes from elsewhere is used, too.
            let is_beside = alone.is_shared() && !source.is_shared();
            alone != source && !is_beside && !sources.doubts(alone)
        };
        (sources.doubts(source) || self.alone.is_some_and(is_other)) && !self.uses_doubted
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
    pub(in crate::receiver::transfer) fn waits_in_vain(&self) -> bool {
        let waiting = self.waiting.values().fold(0_u32, |sum, &more| sum.saturating_add(more));
        let patience = 2_u32.saturating_pow(self.restarts);
        self.alone.is_some()
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
