//! What a mirror does not have, or has sent wrong: a file of that mirror, an object or a block. The
//! others bring it, and the mirror is asked again for what it may get.

use super::source::Source;
use super::state::{MirrorState, Work};
use super::{Common, MirrorFailure, Mirrors};
use crate::event::ReceiveEvent;
use crate::web::mirror::MAX_MISSING;
use fontana_fec::Esi;
use fontana_proto::pull::{Pull, PulledRun};
use fontana_proto::{BlockId, Instant, Receiver};
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

/// Time after which a mirror is asked again for what it did not have.
pub(super) const ASK_AGAIN: Duration = Duration::from_secs(60);
/// Wrong blocks of an object, or times that a block was wrong, after which a mirror is not asked
/// for it any more, if no more of its blocks were right: a file with some damaged sectors is of
/// use, another file is not.
const MIN_WRONG: u32 = 2;
/// Time after which a wrong block that lacks nothing is not solved any more.
const STUCK_FOR: Duration = Duration::from_secs(30);
/// Bytes of symbols of which parts have arrived. More are requested again.
const MAX_PARTS: usize = 4 << 20;

/// Symbols with bytes of several files, of which a part has arrived: mirrors that lack different
/// files complete them together.
#[derive(Debug, Default)]
pub(super) struct Parts {
    symbols: BTreeMap<u64, PartialSymbol>,
    bytes: usize,
}

#[derive(Debug)]
struct PartialSymbol {
    bytes: Vec<u8>,
    /// The parts that have arrived.
    arrived: fontana_proto::pull::RangeSet,
}

impl Parts {
    /// Adds bytes to the symbol at a position, which has `size` bytes, from this one on. Returns
    /// the symbol when it is complete.
    fn add(&mut self, position: u64, size: usize, from: usize, bytes: &[u8]) -> Option<Vec<u8>> {
        if self.bytes + size > MAX_PARTS {
            let dropped = self.symbols.pop_first();
            self.bytes -= dropped.map_or(0, |(_, symbol)| symbol.bytes.len());
        }
        let symbol = self.symbols.entry(position).or_insert_with(|| {
            self.bytes += size;
            PartialSymbol { bytes: vec![0; size], arrived: Default::default() }
        });
        let range = from..from.saturating_add(bytes.len());
        symbol.bytes.get_mut(range.clone())?.copy_from_slice(bytes);
        symbol.arrived.insert(range.start as u64..range.end as u64);
        if symbol.arrived.len() < size as u64 {
            return None;
        }
        self.bytes -= size;
        self.symbols.remove(&position).map(|symbol| symbol.bytes)
    }
}

impl MirrorState {
    /// It does not have these bytes of the object that it was asked for.
    pub(super) fn on_missing(
        &mut self,
        now: Instant,
        bytes: &Range<u64>,
        failure: MirrorFailure,
        common: &mut Common,
    ) {
        let (Some(files), Work::Fetch { range, .. }) = (&common.files, &self.work) else { return };
        self.failures = self.failures.saturating_add(1);
        let file = failure.file().map(|path| files.positions_of_file(range.start, path));
        // A symbol at an end of the gap has been asked for, too: what it lacks is in this file.
        let all = file.into_iter().flatten().chain([files.positions_with(range.start, bytes)]);
        all.for_each(|range| common.pull.set_aside(self.id, range));
        self.note_missing(now, failure, common);
    }

    /// It does not have a file: it is asked again later.
    pub(super) fn note_missing(
        &mut self,
        now: Instant,
        failure: MirrorFailure,
        common: &mut Common,
    ) {
        self.ask_again_at.get_or_insert(now + ASK_AGAIN);
        self.lacks_file = Some(failure.clone());
        if let Some(more) = self.failures.checked_sub(MAX_MISSING)
            && matches!(self.work, Work::Nothing)
        {
            // It may have none at all.
            let pause = failure.pause(more);
            self.retries_at = now + pause;
            common.pull.rest(now, self.id, pause);
        }
        common.events.extend(self.tell(now, failure, ASK_AGAIN));
    }

    /// It may have by now what it did not have: files, or an index.
    pub(super) fn ask_again(&mut self, now: Instant, pull: &mut Pull) {
        if self.ask_again_at.is_none_or(|at| at > now) {
            return;
        }
        (self.ask_again_at, self.lacks_file) = (None, None);
        pull.ask_again(self.id);
        match &mut self.source {
            Source::Shelf(shelf) => shelf.ask_again(),
            source @ Source::Files => *source = Source::Unknown,
            Source::Unknown | Source::Holder(_) | Source::Fresh(_) => {}
        }
    }

    /// It has files: it is a source of them, also if it was something else before.
    pub(super) fn restore_source(&mut self, pull: &mut Pull) {
        if !pull.has_source(self.id) {
            self.id = pull.add_source();
        }
    }

    /// A part of a symbol has arrived. Returns the slab with which the driver polls next.
    pub(super) fn on_part(
        &mut self,
        now: Instant,
        at: u64,
        bytes: &[u8],
        common: &mut Common,
        receiver: &mut Receiver,
    ) -> Vec<u8> {
        let Some(files) = &common.files else { return Vec::new() };
        self.note_arrival(now, bytes.len());
        let Work::Fetch { range, whole: None, .. } = &self.work else { return Vec::new() };
        let position = files.positions_with(range.start, &(at..at + 1)).start;
        let of_object = files.bytes_of(position);
        let runs = files.runs(position..position + 1);
        let is_needed =
            |block: BlockId| receiver.needs_symbols(block) && !common.wholes.contains_key(&block);
        let Some(run) = runs.first().filter(|run| is_needed(run.block)) else {
            return Vec::new();
        };
        let size = (of_object.end - of_object.start) as usize;
        let from = at.saturating_sub(of_object.start) as usize;
        let Some(symbol) = common.parts.add(position, size, from, bytes) else {
            return Vec::new();
        };
        let first = Esi(run.esis.start);
        let pulled = PulledRun { block: run.block, first, bytes: 0..symbol.len() as u32 };
        // Which of the mirrors has sent a wrong byte would not be known: it is not recorded.
        receiver.handle_pulled(now, &pulled, &symbol);
        common.pull.remove_lacking(position..position + 1);
        symbol
    }

    /// It has sent a wrong block. It is not asked any more for what is wrong: the block, or the
    /// object. Returns why it is of no use, if that is all.
    pub(super) fn charge(&mut self, block: BlockId, common: &mut Common) -> Option<MirrorFailure> {
        let files = common.files.as_ref()?;
        self.wrong_blocks += 1;
        let of_block = self.wrong.entry(block).or_default();
        *of_block += 1;
        if *of_block >= MIN_WRONG
            && let Some(positions) = files.positions(block)
        {
            common.pull.forsake(self.id, positions);
        }
        let first = BlockId { sbn: fontana_fec::Sbn(0), ..block };
        let in_object = self.wrong.range(first..).take_while(|(id, _)| id.toi == block.toi);
        let wrong: u32 = in_object.map(|(_, count)| count).sum();
        let right = self.right.get(&block.toi).copied().unwrap_or(0);
        if wrong >= MIN_WRONG
            && wrong >= right
            && let Some(positions) = files.positions_of_object(block.toi)
        {
            common.pull.forsake(self.id, positions);
        }
        // A file of another version is no reason to leave the others to others.
        let is_other = self.wrong.keys().any(|other| other.toi != block.toi);
        let is_all = is_other || files.object_count() == 1 || !self.may_have_files();
        let (mirror, toi, block) = (self.address.clone(), block.toi, block.sbn.0);
        common.events.push(ReceiveEvent::MirrorWrong { mirror, toi, block });
        let (wrong, right) = (self.wrong_blocks, self.right_blocks);
        (is_all && wrong >= MIN_WRONG && wrong >= right).then_some(MirrorFailure::Wrong(wrong))
    }
}

impl Mirrors {
    /// Without a group, mirrors that have sent wrong what is left are of no use. So are they if a
    /// block has all of its symbols, and is wrong: only others could tell which of them are.
    pub(super) fn end_hopeless(&mut self, now: Instant, receiver: &Receiver) {
        let is_idle_with_files = |mirror: &MirrorState| {
            mirror.dropped.is_some()
                || (matches!(mirror.source, Source::Files) && matches!(mirror.work, Work::Nothing))
        };
        if self.has_group
            || self.mirrors.iter().all(|mirror| mirror.wrong.is_empty())
            || !self.mirrors.iter().all(is_idle_with_files)
            || receiver.symbols_wanted() == 0
        {
            self.useful_at = now;
            return;
        }
        if !self.common.pull.is_complete() {
            self.useful_at = now;
        }
        // Workers may be about to find the wrong symbols.
        if now < self.useful_at + STUCK_FOR && !self.common.pull.is_hopeless() {
            return;
        }
        for number in 0..self.mirrors.len() {
            let wrong = self.mirrors.get(number).map_or(0, |mirror| mirror.wrong_blocks);
            self.drop_mirror(now, number, MirrorFailure::Wrong(wrong), None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_symbol_are_put_together_and_their_memory_is_bounded() {
        let mut parts = Parts::default();
        assert_eq!(parts.add(3, 5, 0, &[1, 2]), None);
        assert_eq!(parts.add(3, 5, 1, &[2, 3]), None, "again");
        assert_eq!(parts.add(3, 5, 4, &[5, 6]), None, "beyond its end");
        assert_eq!(parts.add(3, 5, 3, &[4, 5]), Some(vec![1, 2, 3, 4, 5]));
        assert_eq!((parts.symbols.len(), parts.bytes), (0, 0));
        for position in 0..10_000 {
            assert_eq!(parts.add(position, 1_400, 7, &[0; 100]), None);
            assert!(parts.bytes <= MAX_PARTS && parts.symbols.len() * 1_400 == parts.bytes);
        }
        assert_eq!(parts.symbols.len(), MAX_PARTS / 1_400);
    }
}
