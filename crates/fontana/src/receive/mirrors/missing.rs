//! What a mirror does not have, or has sent wrong: a file of that mirror, an object or a block. The
//! others bring it, and the mirror is asked again for what it may get.

use super::state::{Kind, MirrorState, Work};
use super::{MirrorFailure, Mirrors};
use crate::event::ReceiveEvent;
use fontana_fec::Esi;
use fontana_proto::pull::PulledRun;
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
/// Least time between two events about failures of a mirror.
const TELL_EVERY: Duration = Duration::from_secs(10);
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

impl Mirrors {
    /// A mirror does not have these bytes of the object that it was asked for.
    pub(super) fn on_missing(
        &mut self,
        now: Instant,
        number: usize,
        bytes: &Range<u64>,
        failure: MirrorFailure,
    ) {
        let (Some(files), Some(mirror)) = (&self.files, self.mirrors.get_mut(number)) else {
            return;
        };
        let Work::Fetch { range, .. } = &mirror.work else { return };
        mirror.failures = mirror.failures.saturating_add(1);
        let file = failure.file().map(|path| files.positions_of_file(range.start, path));
        // A symbol at an end of the gap has been asked for, too: what it lacks is in this file.
        let all = file.into_iter().flatten().chain([files.positions_with(range.start, bytes)]);
        all.for_each(|range| self.pull.set_aside(mirror.id, range));
        self.note_missing(now, number, failure);
    }

    /// A mirror does not have a file: it is asked again later.
    pub(super) fn note_missing(&mut self, now: Instant, number: usize, failure: MirrorFailure) {
        let Some(mirror) = self.mirrors.get_mut(number) else { return };
        mirror.ask_again_at.get_or_insert(now + ASK_AGAIN);
        mirror.lacks_file = Some(failure.clone());
        if let Some(more) = mirror.failures.checked_sub(super::MAX_MISSING)
            && matches!(mirror.work, Work::Nothing)
        {
            // It may have none at all.
            let pause = failure.pause(more);
            mirror.retries_at = now + pause;
            self.pull.rest(now, mirror.id, pause);
        }
        self.tell(now, number, failure, ASK_AGAIN);
    }

    /// Mirrors may have by now what they did not have: files, or an index.
    pub(super) fn ask_again(&mut self, now: Instant) {
        for mirror in &mut self.mirrors {
            if mirror.ask_again_at.is_some_and(|at| at <= now) {
                (mirror.ask_again_at, mirror.lacks_file) = (None, None);
                mirror.missing_symbols.clear();
                self.pull.ask_again(mirror.id);
                if matches!(mirror.kind, Kind::Files) {
                    mirror.kind = Kind::Unknown;
                }
            }
        }
    }

    /// A mirror with files is a source of them, also if it was something else before.
    pub(super) fn restore_source(&mut self, number: usize) {
        if let Some(mirror) = self.mirrors.get_mut(number)
            && !self.pull.has_source(mirror.id)
        {
            mirror.id = self.pull.add_source();
        }
    }

    /// A part of a symbol has arrived. Returns the slab with which the driver polls next.
    pub(super) fn on_part(
        &mut self,
        now: Instant,
        number: usize,
        at: u64,
        bytes: &[u8],
        receiver: &mut Receiver,
    ) -> Vec<u8> {
        let (Some(files), Some(mirror)) = (&self.files, self.mirrors.get_mut(number)) else {
            return Vec::new();
        };
        mirror.on_bytes(now, bytes.len());
        let Work::Fetch { range, whole: None, .. } = &mirror.work else { return Vec::new() };
        let position = files.positions_with(range.start, &(at..at + 1)).start;
        let of_object = files.bytes_of(position);
        let runs = files.runs(position..position + 1);
        let is_needed =
            |block: BlockId| receiver.needs_symbols(block) && !self.wholes.contains_key(&block);
        let Some(run) = runs.first().filter(|run| is_needed(run.block)) else {
            return Vec::new();
        };
        let size = (of_object.end - of_object.start) as usize;
        let from = at.saturating_sub(of_object.start) as usize;
        let Some(symbol) = self.parts.add(position, size, from, bytes) else { return Vec::new() };
        let first = Esi(run.esis.start);
        let pulled = PulledRun { block: run.block, first, bytes: 0..symbol.len() as u32 };
        // Which of the mirrors has sent a wrong byte would not be known: it is not recorded.
        receiver.handle_pulled(now, &pulled, &symbol);
        self.pull.remove_lacking(position..position + 1);
        symbol
    }

    /// Tells that a mirror has failed.
    pub(super) fn tell(
        &mut self,
        now: Instant,
        number: usize,
        failure: MirrorFailure,
        pause: Duration,
    ) {
        let Some(mirror) = self.mirrors.get_mut(number) else { return };
        mirror.failing = Some(failure.clone());
        let text = failure.to_string();
        let is_known = |(at, told): &(Instant, String)| now < *at + TELL_EVERY || *told == text;
        if mirror.told.as_ref().is_some_and(is_known) {
            return;
        }
        mirror.told = Some((now, text));
        let mirror = mirror.address.clone();
        self.events.push(ReceiveEvent::MirrorFailed { mirror, failure, pause });
    }

    /// A mirror has sent a wrong block. It is not asked any more for what is wrong: the block, the
    /// object, or, if that is not all, anything.
    pub(super) fn charge(
        &mut self,
        now: Instant,
        number: usize,
        block: BlockId,
        receiver: &mut Receiver,
    ) {
        let (Some(files), Some(mirror)) = (&self.files, self.mirrors.get_mut(number)) else {
            return;
        };
        mirror.wrong_blocks += 1;
        let of_block = mirror.wrong.entry(block).or_default();
        *of_block += 1;
        if *of_block >= MIN_WRONG
            && let Some(positions) = files.positions(block)
        {
            self.pull.forsake(mirror.id, positions);
        }
        let first = BlockId { sbn: fontana_fec::Sbn(0), ..block };
        let in_object = mirror.wrong.range(first..).take_while(|(id, _)| id.toi == block.toi);
        let wrong: u32 = in_object.map(|(_, count)| count).sum();
        let right = mirror.right.get(&block.toi).copied().unwrap_or(0);
        if wrong >= MIN_WRONG
            && wrong >= right
            && let Some(positions) = files.positions_of_object(block.toi)
        {
            self.pull.forsake(mirror.id, positions);
        }
        // A file of another version is no reason to leave the others to others.
        let is_other = mirror.wrong.keys().any(|other| other.toi != block.toi);
        let is_all = is_other || files.object_count() == 1 || !mirror.may_have_files();
        let (wrong, right) = (mirror.wrong_blocks, mirror.right_blocks);
        let (mirror, toi, block) = (mirror.address.clone(), block.toi, block.sbn.0);
        self.events.push(ReceiveEvent::MirrorWrong { mirror, toi, block });
        if is_all && wrong >= MIN_WRONG && wrong >= right {
            self.drop_mirror(now, number, MirrorFailure::Wrong(wrong), Some(receiver));
        }
    }

    /// Without a group, mirrors that have sent wrong what is left are of no use. So are they if a
    /// block has all of its symbols, and is wrong: only others could tell which of them are.
    pub(super) fn end_hopeless(&mut self, now: Instant, receiver: &Receiver) {
        let is_idle_with_files = |mirror: &MirrorState| {
            mirror.dropped.is_some()
                || (matches!(mirror.kind, Kind::Files) && matches!(mirror.work, Work::Nothing))
        };
        if self.has_group
            || self.mirrors.iter().all(|mirror| mirror.wrong.is_empty())
            || !self.mirrors.iter().all(is_idle_with_files)
            || receiver.symbols_wanted() == 0
        {
            self.useful_at = now;
            return;
        }
        if !self.pull.is_complete() {
            self.useful_at = now;
        }
        // Workers may be about to find the wrong symbols.
        if now < self.useful_at + STUCK_FOR && !self.pull.is_hopeless() {
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
