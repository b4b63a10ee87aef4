//! The mirrors of a reception, as the deciding thread sees them: it asks [`Pull`] what to request,
//! gives the mirrors' threads their orders, hands what arrives to the receiver, and charges mirrors
//! with wrong blocks.

mod begin;
mod fresh;
mod holders;
mod lacking;
mod missing;
mod prepared;
mod shelves;
mod state;

use crate::event::ReceiveEvent;
use crate::mirrored::manifest_file_name;
use crate::report::ReceiveReport;
use crate::web::failure::MirrorFailure;
use crate::web::files::PublishedFiles;
use crate::web::mirror::{Done, MAX_MISSING, Order};
use crate::web::records::{Origin, Records};
use begin::Waiting;
use crossbeam_channel::{Receiver as ChannelReceiver, never};
use fontana_net::PanicError;
use fontana_proto::pull::{Pull, PulledRun, SourceId};
use fontana_proto::{BlockId, Instant, Receiver, SessionKey};
use fontana_wire::{Hash, Manifest, ManifestLimits, Tsi, manifest_hash};
use holders::ASK_HOLDER;
use missing::{ASK_AGAIN, Parts};
use state::{Kind, MirrorState, Work};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

pub(super) use crate::web::mirror::Report;
pub(super) use prepared::PreparedMirrors;

/// Failed attempts to get the index of a shelf, after which a mirror is taken for one with files
/// until it is asked again.
const MAX_INDEX_FAILURES: u32 = 2;
/// Orders that a server without ranges carries out without a pause, beside one for each object:
/// each reads a file from its beginning.
const MAX_SEQUENTIAL: u32 = 4;
/// How long a corrupt block of which packets have brought a part waits for more of them, by which
/// its wrong symbols are found, before a mirror sends all of it.
const DOUBTFUL_FOR: Duration = Duration::from_secs(3);
/// Least time between two looks at what the blocks lack while packets arrive.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Time for which a group may announce the manifest before the mirrors are asked for it.
const ASK_AFTER: Duration = Duration::from_secs(2);
/// Symbols that are present and are requested again with what lies around them: as many as arrive
/// in a round trip, about.
const JOINED_GAP: u64 = 48;

/// The mirrors of a reception.
pub(super) struct Mirrors {
    pull: Pull,
    mirrors: Vec<MirrorState>,
    reports: ChannelReceiver<Report>,
    /// The limits of a manifest.
    limits: ManifestLimits,
    /// The manifest that is expected.
    expected: Option<Hash>,
    /// The group is received from, too.
    has_group: bool,
    /// Present until the group has brought its part.
    waiting: Option<Waiting>,
    /// The files of the accepted content, and its hash.
    files: Option<PublishedFiles>,
    content: Option<Hash>,
    /// A mirror was still receiving.
    has_holders: bool,
    random: u64,
    records: Records,
    /// Symbols of which a part has arrived.
    parts: Parts,
    /// Blocks that one mirror sends as a whole.
    wholes: BTreeMap<BlockId, Range<u64>>,
    /// When there was last none of these, or a mirror with files was sending something.
    wholes_served_at: Instant,
    /// When a mirror was last sending, or had to, or nothing was wrong.
    useful_at: Instant,
    /// Corrupt blocks that wait for packets, and until when.
    doubtful: BTreeMap<BlockId, Instant>,
    /// What the blocks lack may have changed.
    is_dirty: bool,
    looked_at: Instant,
    /// Symbols that all blocks wanted then.
    wanted: u64,
    /// Packets at that time.
    packets: u64,
    events: Vec<ReceiveEvent>,
}

/// A defect of a mirror's thread.
pub(super) type Panicked = PanicError;

impl Mirrors {
    /// What the mirrors report.
    pub(super) fn reports(&self) -> &ChannelReceiver<Report> {
        &self.reports
    }

    /// All have ended: none reports any more.
    pub(super) fn end_reports(&mut self) {
        self.reports = never();
    }

    /// Events since the last call.
    pub(super) fn take_events(&mut self) -> Vec<ReceiveEvent> {
        std::mem::take(&mut self.events)
    }

    /// Whether no mirror is left.
    pub(super) fn are_gone(&self) -> bool {
        self.mirrors.iter().all(|mirror| mirror.dropped.is_some())
    }

    /// Content was accepted.
    pub(super) fn begin(&mut self, manifest: &Manifest) {
        self.files = Some(PublishedFiles::new(manifest));
        self.content = Some(manifest_hash(&manifest.emit()));
        self.is_dirty = true;
        for mirror in &self.mirrors {
            if matches!(mirror.work, Work::Manifest) {
                mirror.need.set(0);
            }
        }
    }

    /// The content was opened, or what is lacking has changed otherwise.
    pub(super) fn note_change(&mut self) {
        self.is_dirty = true;
    }

    /// Gives the mirrors their orders. To be called after everything else.
    pub(super) fn drive(&mut self, now: Instant, receiver: &mut Receiver) {
        if self.wait(now, receiver) {
            return;
        }
        if self.files.is_none() {
            return self.ask_for_manifest(now);
        }
        self.ask_again(now);
        for id in self.pull.give_back(now) {
            self.mirrors.iter().filter(|mirror| mirror.id == id).for_each(|m| m.need.set(0));
        }
        self.note_late_shelves(now);
        self.end_sent_wholes(receiver);
        self.look(now, receiver);
        let is_due = |(_, due): &(&BlockId, &Instant)| **due <= now;
        let due: Vec<BlockId> = self.doubtful.iter().filter(is_due).map(|(&id, _)| id).collect();
        for block in due {
            self.doubtful.remove(&block);
            if receiver.is_suspect(block) && !self.fetch_again(now, block, receiver, Vec::new()) {
                // A worker may be about to find the wrong symbols.
                self.doubtful.insert(block, now + LOOK_EVERY);
            }
        }
        for number in 0..self.mirrors.len() {
            self.give_order(now, number, receiver);
        }
        self.end_late_wholes(now, receiver);
        self.end_hopeless(now, receiver);
        self.cut_useless_symbols(receiver);
        for mirror in &self.mirrors {
            if let (Work::Fetch { range, symbol_size, .. }, Some(rest)) =
                (&mirror.work, self.pull.expected(mirror.id))
            {
                let end = rest.end.clamp(range.start, range.end.max(range.start));
                // The last symbol may be shorter.
                mirror.need.set(if rest.is_empty() {
                    0
                } else {
                    (end - range.start) * u64::from(*symbol_size)
                });
            }
        }
    }

    fn ask_for_manifest(&mut self, now: Instant) {
        let Some(hash) = self.expected else { return };
        if self.has_group && now < Instant::ZERO + ASK_AFTER {
            return;
        }
        let limit = (self.limits.bytes + Hash::SIZE) as u64;
        let path: Arc<str> = manifest_file_name(hash).into();
        for mirror in self.mirrors.iter_mut().filter(|mirror| mirror.may_begin(now)) {
            mirror.need.begin(u64::MAX);
            mirror.order(Order::File { path: Arc::clone(&path), limit }, Work::Manifest);
        }
    }

    /// A mirror has no manifest. It is asked again, unless no source may bring it.
    fn on_no_manifest(&mut self, now: Instant, number: usize, failure: MirrorFailure) {
        if let Some(mirror) = self.mirrors.get_mut(number) {
            mirror.retries_at = now + ASK_AGAIN;
            mirror.lacks_manifest = Some(failure.clone());
        }
        let mut others = self.mirrors.iter().filter(|mirror| mirror.dropped.is_none());
        if !self.has_group && others.all(|mirror| mirror.lacks_manifest.is_some()) {
            for number in 0..self.mirrors.len() {
                let failure = self.mirrors.get(number).and_then(|m| m.lacks_manifest.clone());
                if let Some(failure) = failure {
                    self.drop_mirror(now, number, failure, None);
                }
            }
            return;
        }
        self.tell(now, number, failure, ASK_AGAIN);
    }

    /// Gives a mirror that is idle its next order.
    fn give_order(&mut self, now: Instant, number: usize, receiver: &mut Receiver) {
        let Some(mirror) = self.mirrors.get(number).filter(|mirror| mirror.may_begin(now)) else {
            return;
        };
        match mirror.kind {
            Kind::Unknown => return self.ask_for_index(number),
            Kind::Shelf(_) => return self.order_from_shelf(now, number, receiver),
            Kind::Fresh(_) => return self.order_fresh(now, number, receiver),
            Kind::Holder(holder) if holder.is_due(now, ASK_HOLDER) => {
                return self.ask_for_index(number);
            }
            Kind::Files | Kind::Holder(_) => {}
        }
        let id = mirror.id;
        let Some(request) = self.pull.next_request(now, id) else {
            return self.on_nothing_held(now, number);
        };
        let whole = request.is_whole.then(|| self.block_of_whole(&request.range)).flatten();
        if let Some(block) = whole {
            self.records.forget_attempt(block);
            if !receiver.refetch(block) {
                self.pull.end_request(now, id);
                self.end_whole(block, receiver);
                return;
            }
        }
        self.continue_request(now, number, request.range, whole);
    }

    /// Gives a mirror the order for the beginning of a range.
    fn continue_request(
        &mut self,
        now: Instant,
        number: usize,
        range: Range<u64>,
        whole: Option<BlockId>,
    ) {
        let (Some(files), Some(mirror)) = (&self.files, self.mirrors.get_mut(number)) else {
            return;
        };
        let Some((fetch, range)) = files.fetch(range) else {
            return self.pull.end_request(now, mirror.id);
        };
        mirror.need.begin(fetch.bytes.end - fetch.bytes.start);
        let symbol_size = fetch.symbol_size;
        mirror.order(Order::Fetch(fetch), Work::Fetch { range, symbol_size, whole });
    }

    fn block_of_whole(&self, range: &Range<u64>) -> Option<BlockId> {
        self.wholes.iter().find(|(_, own)| *own == range).map(|(&block, _)| block)
    }

    /// Handles a report. Returns the slab with which the driver polls next.
    ///
    /// # Errors
    /// A mirror's thread has panicked.
    pub(super) fn on_report(
        &mut self,
        now: Instant,
        report: Report,
        receiver: &mut Receiver,
    ) -> Result<Vec<u8>, Panicked> {
        let Report { mirror: number, what } = report;
        match what {
            Done::Panicked(panic) => return Err(panic),
            Done::Bytes { at, bytes } => {
                let is_fresh = |mirror: &MirrorState| matches!(mirror.work, Work::Fresh(_));
                if self.mirrors.get(number).is_some_and(is_fresh) {
                    return Ok(self.on_frames(now, number, bytes, receiver));
                }
                self.on_bytes(now, number, at, &bytes, receiver);
                return Ok(bytes);
            }
            Done::Part { at, bytes } => {
                return Ok(self.on_part(now, number, at, &bytes, receiver));
            }
            Done::Missing { bytes, failure } => self.on_missing(now, number, &bytes, failure),
            Done::File(bytes, address) => {
                let mirror = self.mirrors.get(number);
                if mirror.is_some_and(|mirror| matches!(mirror.work, Work::Index)) {
                    self.on_index(now, number, &bytes, receiver);
                } else {
                    let source = address.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |a| a.ip());
                    self.on_manifest(now, number, &bytes, source, receiver);
                }
            }
            Done::Sequential => self.on_sequential(number),
            Done::Ended => self.on_ended(now, number, receiver),
            Done::Failed(failure) => self.on_failed(now, number, failure, receiver),
        }
        Ok(Vec::new())
    }

    fn on_bytes(
        &mut self,
        now: Instant,
        number: usize,
        at: u64,
        bytes: &[u8],
        receiver: &mut Receiver,
    ) {
        let (Some(files), Some(mirror)) = (&self.files, self.mirrors.get_mut(number)) else {
            return;
        };
        mirror.on_bytes(now, bytes.len());
        let (range, whole) = match &mirror.work {
            Work::Fetch { range, whole, .. } => (range, *whole),
            Work::Symbols(_) => return self.on_symbols(now, number, at, bytes, receiver),
            Work::Nothing | Work::Manifest | Work::Index | Work::Fresh(_) => return,
        };
        let Some(positions) = files.positions_of_bytes(range.start, at, bytes.len()) else {
            return;
        };
        let size = u32::from(files.symbol_size(range.start));
        let mut start = 0;
        for run in files.runs(positions.clone()) {
            let count = run.esis.end - run.esis.start;
            let end = (start + count * size).min(bytes.len() as u32);
            if whole != Some(run.block) && self.wholes.contains_key(&run.block) {
                // One mirror sends all of this block, and this one was asked for it before.
                mirror.useless_bytes += u64::from(end - start);
                start = end;
                continue;
            }
            let first = fontana_fec::Esi(run.esis.start);
            let pulled = PulledRun { block: run.block, first, bytes: start..end };
            let result = receiver.handle_pulled(now, &pulled, bytes);
            mirror.useless_bytes += result.useless * u64::from(size);
            // Symbols that packets have brought are requested again with what lies around them.
            for esis in result.fresh {
                let at = |esi: u32| (start + (esi - run.esis.start) * size).min(end) as usize;
                let symbols = bytes.get(at(esis.start)..at(esis.end)).unwrap_or_default();
                self.records.add(run.block, number, esis, symbols);
            }
            start = end;
        }
        self.pull.on_arrival(now, mirror.id, positions);
    }

    fn on_manifest(
        &mut self,
        now: Instant,
        number: usize,
        bytes: &[u8],
        source: IpAddr,
        receiver: &mut Receiver,
    ) {
        self.set_idle(number);
        let Some(hash) = self.expected.filter(|_| self.files.is_none()) else { return };
        let manifest = match bytes.split_last_chunk::<{ Hash::SIZE }>() {
            Some((manifest, &at_end))
                if manifest_hash(manifest) == hash && Hash(at_end) == hash =>
            {
                Manifest::parse(manifest, &self.limits).ok()
            }
            _ => None,
        };
        match manifest {
            Some(manifest) => {
                self.mirrors.iter_mut().for_each(MirrorState::has_manifest);
                let from = SessionKey { source, tsi: Tsi(0) };
                if let Err(reason) = receiver.accept_manifest(from, hash, &Arc::new(manifest)) {
                    let event = ReceiveEvent::Rejected { session: from, reason };
                    self.events.push(event);
                }
            }
            None => {
                let path = manifest_file_name(hash);
                let failure = MirrorFailure::Manifest { path, bytes: bytes.len() };
                self.on_no_manifest(now, number, failure);
            }
        }
    }

    /// A server without ranges sends all of a file: the rest of it need not come from others.
    fn on_sequential(&mut self, number: usize) {
        let (Some(files), Some(mirror)) = (&self.files, self.mirrors.get_mut(number)) else {
            return;
        };
        mirror.sequential += 1;
        if let Work::Fetch { range, whole: None, .. } = &mut mirror.work
            && let Some(end) = files.object_end(range.start)
        {
            range.end = end;
            self.pull.extend_request(mirror.id, end);
        }
    }

    fn on_ended(&mut self, now: Instant, number: usize, receiver: &mut Receiver) {
        let Some(mirror) = self.mirrors.get_mut(number) else { return };
        let (id, work) = (mirror.id, mirror.set_idle());
        if let (Work::Symbols(_), Kind::Shelf(shelf)) = (&work, &mut mirror.kind) {
            shelf.end_request(now);
            self.is_dirty = true;
        }
        if matches!(work, Work::Fresh(_)) {
            return self.end_fresh(now, number);
        }
        let Work::Fetch { range, whole, .. } = work else { return };
        let files = self.files.as_ref().map_or(0, PublishedFiles::object_count);
        let is_again = mirror.sequential.saturating_sub(MAX_SEQUENTIAL + files as u32);
        let is_missing = mirror.failures.saturating_sub(MAX_MISSING);
        if is_again > 0 || is_missing > 0 {
            let pause = MirrorFailure::Cut.pause(is_again.max(is_missing));
            mirror.retries_at = now + pause;
            self.pull.rest(now, id, pause);
            return self.end_sent_wholes(receiver);
        }
        match self.pull.expected(id) {
            // The range continues in the next object.
            Some(rest) if !rest.is_empty() && rest.start == range.end => {
                self.continue_request(now, number, rest, whole);
            }
            _ => self.pull.end_request(now, id),
        }
        self.end_sent_wholes(receiver);
    }

    /// Blocks that were sent as a whole, and need symbols nevertheless: there was no memory for the
    /// decoder, or copies differ.
    fn end_sent_wholes(&mut self, receiver: &mut Receiver) {
        let is_vain = |(block, positions): &(&BlockId, &Range<u64>)| {
            self.pull.is_sent(positions) && receiver.needs_symbols(**block)
        };
        let vain: Vec<BlockId> =
            self.wholes.iter().filter(is_vain).map(|(&block, _)| block).collect();
        vain.into_iter().for_each(|block| self.end_whole(block, receiver));
    }

    fn on_failed(
        &mut self,
        now: Instant,
        number: usize,
        failure: MirrorFailure,
        receiver: &mut Receiver,
    ) {
        let Some(mirror) = self.mirrors.get_mut(number).filter(|m| m.dropped.is_none()) else {
            return;
        };
        let (id, work) = (mirror.id, mirror.set_idle());
        mirror.failures = mirror.failures.saturating_add(1);
        let pause = failure.pause(mirror.failures);
        let file = failure.file();
        match (&work, &mut mirror.kind) {
            (Work::Manifest, _) if !failure.may_pass() => {
                return self.on_no_manifest(now, number, failure);
            }
            (Work::Fetch { range, .. }, _) => {
                self.pull.end_request(now, id);
                if let (Some(path), Some(files)) = (file, &self.files) {
                    let all = files.positions_of_file(range.start, path);
                    all.into_iter().for_each(|range| self.pull.set_aside(id, range));
                    return self.note_missing(now, number, failure);
                }
            }
            (Work::Symbols(symbols), Kind::Shelf(shelf)) => {
                shelf.end_request(now);
                self.is_dirty = true;
                if file.is_some() {
                    mirror.missing_symbols.insert(symbols.request.toi);
                    return self.note_missing(now, number, failure);
                }
            }
            (Work::Fresh(_), Kind::Fresh(fresh)) => {
                fresh.end_request(now);
                self.is_dirty = true;
                if failure.is_not_there() {
                    // The server was started again: its symbols have other numbers.
                    mirror.kind = Kind::Unknown;
                }
            }
            // A mirror that was receiving goes on when it comes back.
            (Work::Index, Kind::Holder(_)) if failure.may_pass() => {}
            (Work::Index, kind)
                if failure.file().is_some()
                    || (failure.may_pass() && mirror.failures > MAX_INDEX_FAILURES) =>
            {
                *kind = Kind::Files;
                self.pull.set_held(id, None);
                if file.is_none() {
                    mirror.ask_again_at.get_or_insert(now + ASK_AGAIN);
                }
                return self.restore_source(number);
            }
            _ => {}
        }
        tracing::info!(mirror = %mirror.address, %failure, ?pause, "trying again");
        mirror.retries_at = now + pause;
        self.pull.rest(now, id, pause);
        self.tell(now, number, failure, pause);
        self.end_vain_wholes(now, receiver);
    }

    fn set_idle(&mut self, number: usize) {
        if let Some(mirror) = self.mirrors.get_mut(number) {
            mirror.set_idle();
        }
    }

    /// A block is verified.
    pub(super) fn on_verified(&mut self, now: Instant, block: BlockId, receiver: &mut Receiver) {
        self.end_whole(block, receiver);
        if let Some(positions) = self.files.as_ref().and_then(|files| files.positions(block)) {
            let k = (positions.end - positions.start) as u32;
            if let Origin::One(number) = self.records.origin(block, k)
                && let Some(mirror) = self.mirrors.get_mut(number)
            {
                mirror.right_blocks += 1;
                *mirror.right.entry(block.toi).or_default() += 1;
            }
            self.pull.remove_lacking(positions);
        }
        for number in self.records.on_verified(block) {
            self.charge(now, number, block, receiver);
        }
    }

    /// A block is corrupt.
    pub(super) fn on_corrupt(&mut self, now: Instant, block: BlockId, receiver: &mut Receiver) {
        let positions = self.files.as_ref().and_then(|files| files.positions(block));
        let Some(positions) = positions.filter(|_| !self.are_gone()) else { return };
        let symbols = (positions.end - positions.start) as u32;
        let is_fetched = match self.records.origin(block, symbols) {
            Origin::One(number) => {
                let tried = self.mirrors.get(number).map(|mirror| mirror.id);
                self.records.convict(block, number);
                self.charge(now, number, block, receiver);
                self.fetch_again(now, block, receiver, tried.into_iter().collect())
            }
            Origin::Several => self.fetch_again(now, block, receiver, Vec::new()),
            Origin::Mixed => false,
        };
        if !is_fetched {
            self.doubtful.insert(block, now + DOUBTFUL_FOR);
        }
    }

    /// One mirror is to send all of a block. False if that is not possible now.
    fn fetch_again(
        &mut self,
        now: Instant,
        block: BlockId,
        receiver: &mut Receiver,
        tried: Vec<SourceId>,
    ) -> bool {
        let positions = self.files.as_ref().and_then(|files| files.positions(block));
        let published = |range: &Range<u64>| {
            let files = self.files.as_ref();
            files.is_some_and(|files| files.published(range.clone()) == [range.clone()])
        };
        let has_files = |positions: &Range<u64>| self.may_send_whole(now, positions);
        let Some(positions) = positions.filter(published).filter(has_files) else {
            return false;
        };
        let is_dropped = receiver.refetch(block);
        if is_dropped {
            self.records.begin_again(block);
            self.pull.add_whole(positions.clone(), tried);
            self.wholes.insert(block, positions);
        }
        is_dropped
    }

    /// A block need not come from one mirror any more.
    fn end_whole(&mut self, block: BlockId, receiver: &mut Receiver) {
        if let Some(range) = self.wholes.remove(&block) {
            self.pull.remove_whole(&range);
            receiver.release(block);
            self.is_dirty = true;
        }
    }

    fn drop_mirror(
        &mut self,
        now: Instant,
        number: usize,
        failure: MirrorFailure,
        receiver: Option<&mut Receiver>,
    ) {
        let Some(mirror) = self.mirrors.get_mut(number).filter(|m| m.dropped.is_none()) else {
            return;
        };
        mirror.dropped = Some(failure.clone());
        mirror.end();
        let (id, address) = (mirror.id, mirror.address.clone());
        self.pull.remove_source(now, id);
        self.events.push(ReceiveEvent::MirrorDropped { mirror: address, failure });
        if let Some(receiver) = receiver {
            self.end_vain_wholes(now, receiver);
        }
    }

    /// Blocks that are to be sent as a whole do not wait for mirrors that send nothing.
    fn end_late_wholes(&mut self, now: Instant, receiver: &mut Receiver) {
        let is_sending = |mirror: &MirrorState| matches!(mirror.work, Work::Fetch { .. });
        if self.wholes.is_empty() || self.mirrors.iter().any(is_sending) {
            self.wholes_served_at = now;
        } else if now.saturating_since(self.wholes_served_at) >= DOUBTFUL_FOR {
            self.end_all_wholes(receiver);
        }
        // Nor for those that have other files.
        let is_vain = |(_, range): &(&BlockId, &Range<u64>)| !self.may_send_whole(now, range);
        let vain: Vec<BlockId> =
            self.wholes.iter().filter(is_vain).map(|(&block, _)| block).collect();
        vain.into_iter().for_each(|block| self.end_whole(block, receiver));
    }

    /// Whether a mirror may send these positions as a whole soon.
    fn may_send_whole(&self, now: Instant, positions: &Range<u64>) -> bool {
        let may_send = |mirror: &MirrorState| {
            mirror.may_send_wholes(now) && self.pull.may_have(mirror.id, positions)
        };
        self.mirrors.iter().any(may_send)
    }

    /// No mirror could send a block as a whole soon: packets, shelves or fresh symbols may bring
    /// it.
    pub(super) fn end_vain_wholes(&mut self, now: Instant, receiver: &mut Receiver) {
        if !self.mirrors.iter().any(|mirror| mirror.may_send_wholes(now)) {
            self.end_all_wholes(receiver);
        }
    }

    fn end_all_wholes(&mut self, receiver: &mut Receiver) {
        for block in self.wholes.keys().copied().collect::<Vec<_>>() {
            self.end_whole(block, receiver);
        }
    }

    /// What became of each mirror.
    pub(super) fn report(&self, report: &mut ReceiveReport) {
        report.mirrors = self.mirrors.iter().map(MirrorState::report).collect();
    }
}

impl Drop for Mirrors {
    fn drop(&mut self) {
        self.mirrors.iter_mut().for_each(MirrorState::end);
    }
}

#[cfg(test)]
mod faults;
#[cfg(test)]
mod tests;
