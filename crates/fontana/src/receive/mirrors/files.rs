//! A mirror that has the files, or some of their blocks: the orders that it gets, and what comes.

use super::Common;
use super::fresh::NotRequested;
use super::holders::ASK_HOLDER;
use super::missing::ASK_AGAIN;
use super::sink::Sink;
use super::source::Source;
use super::state::{MirrorState, Work};
use crate::web::failure::MirrorFailure;
use crate::web::files::PublishedFiles;
use crate::web::mirror::MAX_MISSING;
use fontana_fec::Esi;
use fontana_proto::{BlockId, Instant, Receiver};
use std::ops::Range;

/// Failed attempts to get the index of a shelf, after which a mirror is taken for one with files
/// until it is asked again.
const MAX_INDEX_FAILURES: u32 = 2;
/// Orders that a server without ranges carries out without a pause, beside one for each object:
/// each reads a file from its beginning.
const MAX_SEQUENTIAL: u32 = 4;

impl MirrorState {
    /// Gives it its next order.
    pub(super) fn give_order(
        &mut self,
        now: Instant,
        common: &mut Common,
        receiver: &mut Receiver,
    ) {
        match self.source {
            Source::Unknown => return self.ask_for_index(common.content, None),
            Source::Holder(holder) if holder.is_due(now, ASK_HOLDER) => {
                return self.ask_for_index(common.content, None);
            }
            _ => {}
        }
        let Some(request) = common.pull.next_request(now, self.id) else {
            return self.on_nothing_held(now, common.content);
        };
        let whole = request.is_whole.then(|| common.block_of_whole(&request.range)).flatten();
        if let Some(block) = whole {
            common.records.forget_attempt(block);
            if !receiver.refetch(block) {
                common.pull.end_request(now, self.id);
                return common.end_whole(block, receiver);
            }
        }
        self.continue_request(now, request.range, whole, common);
    }

    /// Gives it the order for the beginning of a range.
    fn continue_request(
        &mut self,
        now: Instant,
        range: Range<u64>,
        whole: Option<BlockId>,
        common: &mut Common,
    ) {
        let Some((fetch, range)) = common.files.as_ref().and_then(|files| files.fetch(range))
        else {
            return common.pull.end_request(now, self.id);
        };
        let work = Work::Fetch { range, symbol_size: fetch.symbol_size, whole };
        self.fetch(fetch, work);
    }

    /// Bytes have arrived, from this one of the file on. Returns the slab with which the driver
    /// polls next.
    pub(super) fn on_bytes(
        &mut self,
        now: Instant,
        at: u64,
        bytes: Vec<u8>,
        common: &mut Common,
        receiver: &mut Receiver,
    ) -> (Vec<u8>, Result<(), NotRequested>) {
        self.note_arrival(now, bytes.len());
        let Common { files, records, wholes, pull, .. } = common;
        let mut sink = Sink { receiver, records, mirror: self.number, useless: 0 };
        let mut taken = (bytes, Ok(()));
        match (&self.work, &mut self.source) {
            (Work::Repair, Source::Shelf(shelf)) => shelf.on_bytes(now, at, &taken.0, &mut sink),
            (Work::Repair, Source::Fresh(fresh)) => {
                taken = fresh.on_frames(now, taken.0, &mut sink);
            }
            (Work::Fetch { range, whole, .. }, _) => {
                let Some(files) = files else { return taken };
                let length = taken.0.len();
                let Some(positions) = files.positions_of_bytes(range.start, at, length) else {
                    return taken;
                };
                let size = u32::from(files.symbol_size(range.start));
                let mut start = 0;
                for run in files.runs(positions.clone()) {
                    let count = run.esis.end - run.esis.start;
                    let part = start..(start + count * size).min(length as u32);
                    start = part.end;
                    if *whole != Some(run.block) && wholes.contains_key(&run.block) {
                        // One mirror sends all of this block, and this one was asked for it before.
                        sink.useless += u64::from(part.end - part.start);
                        continue;
                    }
                    sink.take(now, (run.block, Esi(run.esis.start)), size, &taken.0, part);
                }
                pull.on_arrival(now, self.id, positions);
            }
            (Work::Nothing | Work::Manifest | Work::Index | Work::Repair, _) => {}
        }
        self.useless_bytes += sink.useless;
        taken
    }

    /// A server without ranges sends all of a file: the rest of it need not come from others.
    pub(super) fn on_sequential(&mut self, common: &mut Common) {
        self.sequential += 1;
        if let Work::Fetch { range, whole: None, .. } = &mut self.work
            && let Some(end) = common.files.as_ref().and_then(|it| it.object_end(range.start))
        {
            range.end = end;
            common.pull.extend_request(self.id, end);
        }
    }

    /// The order has been carried out.
    pub(super) fn on_ended(&mut self, now: Instant, common: &mut Common) {
        let (range, whole) = match (self.set_idle(), &mut self.source) {
            (Work::Fetch { range, whole, .. }, _) => (range, whole),
            (Work::Repair, Source::Shelf(shelf)) => {
                shelf.end(now, false);
                common.is_dirty = true;
                return;
            }
            (Work::Repair, Source::Fresh(fresh)) => {
                if let Some(rest) = fresh.end(now) {
                    self.retries_at = now + rest;
                }
                common.is_dirty = true;
                return;
            }
            _ => return,
        };
        let files = common.files.as_ref().map_or(0, PublishedFiles::object_count);
        let is_again = self.sequential.saturating_sub(MAX_SEQUENTIAL + files as u32);
        let is_missing = self.failures.saturating_sub(MAX_MISSING);
        if is_again > 0 || is_missing > 0 {
            let pause = MirrorFailure::Cut.pause(is_again.max(is_missing));
            self.retries_at = now + pause;
            return common.pull.rest(now, self.id, pause);
        }
        match common.pull.expected(self.id) {
            // The range continues in the next object.
            Some(rest) if !rest.is_empty() && rest.start == range.end => {
                self.continue_request(now, rest, whole, common);
            }
            _ => common.pull.end_request(now, self.id),
        }
    }

    /// The order has failed: it did this `work`.
    pub(super) fn on_failed(
        &mut self,
        now: Instant,
        work: &Work,
        failure: MirrorFailure,
        common: &mut Common,
    ) {
        let pause = failure.pause(self.failures);
        let lacks_file = failure.file().is_some();
        match (work, &mut self.source) {
            (Work::Fetch { range, .. }, _) => {
                common.pull.end_request(now, self.id);
                if let (Some(path), Some(files)) = (failure.file(), &common.files) {
                    let all = files.positions_of_file(range.start, path);
                    all.into_iter().for_each(|range| common.pull.set_aside(self.id, range));
                    return self.note_missing(now, failure, common);
                }
            }
            (Work::Repair, Source::Shelf(shelf)) => {
                shelf.end(now, lacks_file);
                common.is_dirty = true;
                if lacks_file {
                    return self.note_missing(now, failure, common);
                }
            }
            (Work::Repair, source @ Source::Fresh(_)) => {
                if let Source::Fresh(fresh) = source {
                    fresh.end(now);
                }
                common.is_dirty = true;
                if failure.is_not_there() {
                    // The server was started again: its symbols have other numbers.
                    *source = Source::Unknown;
                }
            }
            // A mirror that was receiving goes on when it comes back.
            (Work::Index, Source::Holder(_)) if failure.may_pass() => {}
            (Work::Index, source)
                if lacks_file || (failure.may_pass() && self.failures > MAX_INDEX_FAILURES) =>
            {
                *source = Source::Files;
                common.pull.set_held(self.id, None);
                if !lacks_file {
                    self.ask_again_at.get_or_insert(now + ASK_AGAIN);
                }
                return self.restore_source(&mut common.pull);
            }
            _ => {}
        }
        tracing::info!(mirror = %self.address, %failure, ?pause, "trying again");
        self.retries_at = now + pause;
        common.pull.rest(now, self.id, pause);
        common.events.extend(self.tell(now, failure, pause));
    }
}
