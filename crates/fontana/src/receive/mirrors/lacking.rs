//! What the blocks lack, and which part of it no mirror is sending.

use super::{DOUBTFUL_FOR, JOINED_GAP, LOOK_EVERY, Mirrors};
use fontana_proto::pull::{RangeSet, Wanted};
use fontana_proto::{BlockId, Instant, Receiver};
use fontana_wire::Toi;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::Duration;

/// Longest and shortest time of a request for repair symbols.
pub(super) const REQUEST_TIME: Duration = Duration::from_secs(2);
pub(super) const LEAST_REQUEST_TIME: Duration = Duration::from_millis(250);
/// Time for an answer to begin, beside the time of the symbols.
const ANSWER_TIME: Duration = Duration::from_millis(500);

/// What the blocks want of a shelf, beside what others are sending.
pub(super) struct Lacking<'a> {
    receiver: &'a Receiver,
    /// Symbols of each block that are under way from others.
    under_way: BTreeMap<BlockId, u32>,
    /// Objects that are left out.
    pub(super) without: BTreeSet<Toi>,
}

impl Wanted for Lacking<'_> {
    fn count(&self, block: BlockId) -> u32 {
        if self.without.contains(&block.toi) {
            return 0;
        }
        let under_way = self.under_way.get(&block).copied().unwrap_or(0);
        self.receiver.block_symbols_wanted(block).saturating_sub(under_way)
    }

    fn missing(&self, block: BlockId, esis: Range<u32>) -> Option<Range<u32>> {
        self.receiver.missing_repair(block, esis)
    }
}

impl Mirrors {
    /// Looks at what the blocks lack, if that may have changed.
    pub(super) fn look(&mut self, now: Instant, receiver: &Receiver) {
        let packets = receiver.session_packets();
        let is_due = now.saturating_since(self.looked_at) >= LOOK_EVERY
            && (packets != self.packets || self.common.pull.is_complete());
        if !self.common.is_dirty && !is_due {
            return;
        }
        (self.common.is_dirty, self.looked_at, self.packets) = (false, now, packets);
        let Some(files) = &self.common.files else { return };
        let repairs = self.repairs_under_way(now);
        let (mut lacking, mut all_wanted) = (RangeSet::default(), 0);
        for block in files.blocks() {
            let Some(positions) = files.positions(block) else { continue };
            if receiver.is_suspect(block) && !self.common.wholes.contains_key(&block) {
                // Packets may show which symbols are wrong. If none come, a mirror sends all of it.
                self.doubtful.entry(block).or_insert(now + DOUBTFUL_FOR);
            }
            let under_way = repairs.get(&block).copied().unwrap_or(0);
            let wanted = receiver.block_symbols_wanted(block);
            all_wanted += u64::from(wanted);
            let wanted = wanted.saturating_sub(under_way);
            let mut missing = RangeSet::default();
            let mut from = fontana_fec::Esi(0);
            while let Some(run) = receiver.missing_source(block, from) {
                let [start, end] = [run.start, run.end].map(|esi| positions.start + u64::from(esi));
                missing.insert(start..end);
                from = fontana_fec::Esi(run.end);
            }
            let mut last: Option<u64> = None;
            for run in self.chosen(&missing, wanted.into()).iter() {
                let start = last.filter(|end| run.start - end <= JOINED_GAP).unwrap_or(run.start);
                files.published(start..run.end).into_iter().for_each(|range| lacking.insert(range));
                last = Some(run.end);
            }
        }
        self.wanted = all_wanted;
        self.common.pull.set_lacking(lacking);
    }

    /// As many positions as a block wants: those that are requested, and then the first ones.
    fn chosen(&self, missing: &RangeSet, wanted: u64) -> RangeSet {
        if missing.len() <= wanted {
            return missing.clone();
        }
        let requested =
            self.mirrors.iter().filter_map(|mirror| self.common.pull.expected(mirror.id));
        let requested = requested.flat_map(|range| missing.within(range).collect::<Vec<_>>());
        let (mut chosen, mut left) = (RangeSet::default(), wanted);
        for run in requested.chain(missing.iter()) {
            let mut rest = RangeSet::default();
            rest.insert(run);
            chosen.iter().for_each(|range| rest.remove(range));
            for range in rest.iter() {
                let end = range.end.min(range.start + left);
                left -= end - range.start;
                chosen.insert(range.start..end);
            }
        }
        chosen
    }

    /// Repair symbols of each block that mirrors are sending, as far as they are on time.
    fn repairs_under_way(&self, now: Instant) -> BTreeMap<BlockId, u32> {
        let mut under_way = BTreeMap::new();
        let on_time = |due: Instant| now < due;
        let sources = self.mirrors.iter().map(|mirror| &mirror.source);
        for source in sources.filter(|source| source.due().is_some_and(on_time)) {
            for (block, count) in source.expected() {
                *under_way.entry(block).or_default() += count;
            }
        }
        under_way
    }

    /// What the blocks want of a shelf now.
    pub(super) fn lacking<'a>(&self, now: Instant, receiver: &'a Receiver) -> Lacking<'a> {
        let mut under_way = self.repairs_under_way(now);
        let requested =
            self.mirrors.iter().filter_map(|mirror| self.common.pull.expected(mirror.id));
        for range in requested.flat_map(|range| self.common.pull.lacking().within(range)) {
            for run in self.common.files.iter().flat_map(|files| files.runs(range.clone())) {
                *under_way.entry(run.block).or_default() += run.esis.end - run.esis.start;
            }
        }
        // One mirror sends these as a whole.
        under_way.extend(self.common.wholes.keys().map(|&block| (block, u32::MAX)));
        Lacking { receiver, under_way, without: BTreeSet::new() }
    }
}

/// When the others stop counting on a request for so many symbols, given the rate of its mirror.
pub(super) fn due(now: Instant, symbols: u64, rate: Option<f64>) -> Instant {
    let time = rate.map_or(REQUEST_TIME, |rate| {
        let seconds = symbols as f64 / rate.max(f64::MIN_POSITIVE);
        let time = Duration::try_from_secs_f64(1.5 * seconds).unwrap_or(Duration::MAX);
        time.min(2 * REQUEST_TIME)
    });
    now + time + ANSWER_TIME
}
