//! The mirrors of a reception, as the deciding thread sees them: it asks [`Pull`] what to request,
//! gives the mirrors' threads their orders, hands what arrives to the receiver, and charges mirrors
//! with wrong blocks.

mod begin;
mod files;
mod fresh;
mod holders;
mod index;
mod lacking;
mod missing;
mod prepared;
mod shelf;
mod sink;
mod source;
mod state;

use crate::event::ReceiveEvent;
use crate::mirrored::manifest_file_name;
use crate::report::ReceiveReport;
use crate::web::failure::MirrorFailure;
use crate::web::files::PublishedFiles;
use crate::web::mirror::{Done, Order};
use crate::web::records::{Origin, Records};
use begin::Waiting;
use crossbeam_channel::{Receiver as ChannelReceiver, never};
use fontana_net::PanicError;
use fontana_proto::pull::{Pull, SourceId};
use fontana_proto::{BlockId, Instant, Receiver, SessionKey};
use fontana_wire::{Hash, Manifest, ManifestLimits, Tsi, manifest_hash};
use lacking::{LEAST_REQUEST_TIME, REQUEST_TIME};
use missing::{ASK_AGAIN, Parts};
use state::{MAX_IDLE, MirrorState, Work};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

pub(super) use crate::web::mirror::Report;
pub(super) use prepared::PreparedMirrors;

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
    mirrors: Vec<MirrorState>,
    common: Common,
    reports: ChannelReceiver<Report>,
    /// The limits of a manifest.
    limits: ManifestLimits,
    /// The manifest that is expected.
    expected: Option<Hash>,
    /// The group is received from, too.
    has_group: bool,
    /// Present until the group has brought its part.
    waiting: Option<Waiting>,
    /// When no block was last to be sent as a whole, or a mirror with files was sending something.
    wholes_served_at: Instant,
    /// When a mirror was last sending, or had to, or nothing was wrong.
    useful_at: Instant,
    /// Corrupt blocks that wait for packets, and until when.
    doubtful: BTreeMap<BlockId, Instant>,
    looked_at: Instant,
    /// Symbols that all blocks wanted then.
    wanted: u64,
    /// Packets at that time.
    packets: u64,
}

/// What orders to any mirror, and reports of any, change.
struct Common {
    pull: Pull,
    /// The files of the accepted content, and its hash.
    files: Option<PublishedFiles>,
    content: Option<Hash>,
    records: Records,
    /// Symbols of which a part has arrived.
    parts: Parts,
    /// Blocks that one mirror sends as a whole.
    wholes: BTreeMap<BlockId, Range<u64>>,
    /// What the blocks lack may have changed.
    is_dirty: bool,
    /// A mirror was still receiving.
    has_holders: bool,
    random: u64,
    events: Vec<ReceiveEvent>,
}

impl Common {
    fn new(pull: Pull, random: u64) -> Self {
        Self {
            pull,
            files: None,
            content: None,
            records: Records::default(),
            parts: Parts::default(),
            wholes: BTreeMap::new(),
            is_dirty: false,
            has_holders: false,
            random,
            events: Vec::new(),
        }
    }

    fn block_of_whole(&self, range: &Range<u64>) -> Option<BlockId> {
        self.wholes.iter().find(|(_, own)| *own == range).map(|(&block, _)| block)
    }

    /// A block need not come from one mirror any more.
    fn end_whole(&mut self, block: BlockId, receiver: &mut Receiver) {
        if let Some(range) = self.wholes.remove(&block) {
            self.pull.remove_whole(&range);
            receiver.release(block);
            self.is_dirty = true;
        }
    }
}

/// A defect of a mirror's thread.
pub(super) type Panicked = PanicError;

impl Mirrors {
    fn new(
        mirrors: Vec<MirrorState>,
        common: Common,
        reports: ChannelReceiver<Report>,
        (expected, limits): (Option<Hash>, ManifestLimits),
        (has_group, waiting): (bool, Option<Waiting>),
    ) -> Self {
        Self {
            mirrors,
            common,
            reports,
            limits,
            expected,
            has_group,
            waiting,
            wholes_served_at: Instant::ZERO,
            useful_at: Instant::ZERO,
            doubtful: BTreeMap::new(),
            looked_at: Instant::ZERO,
            wanted: 0,
            packets: 0,
        }
    }

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
        std::mem::take(&mut self.common.events)
    }

    /// Whether no mirror is left.
    pub(super) fn are_gone(&self) -> bool {
        self.mirrors.iter().all(|mirror| mirror.dropped.is_some())
    }

    /// Content was accepted.
    pub(super) fn begin(&mut self, manifest: &Manifest) {
        self.common.files = Some(PublishedFiles::new(manifest));
        self.common.content = Some(manifest_hash(&manifest.emit()));
        self.common.is_dirty = true;
        for mirror in &self.mirrors {
            if matches!(mirror.work, Work::Manifest) {
                mirror.need.set(0);
            }
        }
    }

    /// The content was opened, or what is lacking has changed otherwise.
    pub(super) fn note_change(&mut self) {
        self.common.is_dirty = true;
    }

    /// Gives the mirrors their orders. To be called after everything else.
    pub(super) fn drive(&mut self, now: Instant, receiver: &mut Receiver) {
        if self.wait(now, receiver) {
            return;
        }
        if self.common.files.is_none() {
            return self.ask_for_manifest(now);
        }
        self.mirrors.iter_mut().for_each(|mirror| mirror.ask_again(now, &mut self.common.pull));
        for id in self.common.pull.give_back(now) {
            self.mirrors.iter().filter(|mirror| mirror.id == id).for_each(|m| m.need.set(0));
        }
        self.note_late_repair(now);
        self.end_sent_wholes(receiver);
        self.look(now, receiver);
        let is_due = |(_, due): &(&BlockId, &Instant)| **due <= now;
        let due: Vec<BlockId> = self.doubtful.iter().filter(is_due).map(|(&id, _)| id).collect();
        for block in due {
            self.doubtful.remove(&block);
            let is_suspect = receiver.is_suspect(block) && !self.drop_wrong(block, receiver);
            if is_suspect && !self.fetch_again(now, block, receiver, Vec::new()) {
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
                (&mirror.work, self.common.pull.expected(mirror.id))
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
        } else if let Some(mirror) = self.mirrors.get_mut(number) {
            self.common.events.extend(mirror.tell(now, failure, ASK_AGAIN));
        }
    }

    /// Gives a mirror that is idle its next order.
    fn give_order(&mut self, now: Instant, number: usize, receiver: &mut Receiver) {
        let Some(mirror) = self.mirrors.get_mut(number).filter(|mirror| mirror.may_begin(now))
        else {
            return;
        };
        match mirror.source.has_repair() {
            true => self.order_repair(now, number, receiver),
            false => mirror.give_order(now, &mut self.common, receiver),
        }
    }

    /// Asks a mirror for repair symbols.
    fn order_repair(&mut self, now: Instant, number: usize, receiver: &mut Receiver) {
        let (time, lacking) = (self.time_of_request(now), self.lacking(now, receiver));
        let (Some(content), Some(mirror)) = (self.common.content, self.mirrors.get_mut(number))
        else {
            return;
        };
        match mirror.source.next_request(now, time, content, lacking) {
            Some(fetch) => {
                mirror.idle = 0;
                mirror.fetch(fetch, Work::Repair);
                self.common.is_dirty = true;
            }
            None => {
                mirror.retries_at = now + LOOK_EVERY;
                self.on_nothing_to_send(now, number, receiver);
            }
        }
    }

    /// A mirror has no repair symbols that are lacking. Without a group, it is given up after some
    /// time in which no other mirror sends anything.
    fn on_nothing_to_send(&mut self, now: Instant, number: usize, receiver: &mut Receiver) {
        let is_idle = self.mirrors.iter().all(|mirror| {
            mirror.dropped.is_some()
                || (matches!(mirror.work, Work::Nothing) && mirror.source.has_repair())
        });
        let Some(mirror) = self.mirrors.get_mut(number) else { return };
        let is_exhausted = is_idle && mirror.source.is_whole();
        mirror.idle =
            if is_exhausted && !self.has_group && self.wanted > 0 { mirror.idle + 1 } else { 0 };
        if mirror.idle >= MAX_IDLE {
            self.drop_mirror(now, number, MirrorFailure::Exhausted, Some(receiver));
        }
    }

    /// Half of the time that all mirrors take for what is lacking, within limits.
    fn time_of_request(&self, now: Instant) -> Duration {
        let rates = self.mirrors.iter().filter_map(|mirror| match mirror.source.has_repair() {
            true => mirror.source.rate(now),
            false => self.common.pull.rate(now, mirror.id),
        });
        let rate = rates.sum::<f64>().max(f64::MIN_POSITIVE);
        let left = Duration::try_from_secs_f64(self.wanted as f64 / rate / 2.0);
        left.unwrap_or(REQUEST_TIME).clamp(LEAST_REQUEST_TIME, REQUEST_TIME)
    }

    /// The others do the work of a mirror that is late with repair symbols.
    fn note_late_repair(&mut self, now: Instant) {
        let looked_at = self.looked_at;
        let is_late = |due: Instant| looked_at < due && due <= now;
        let mut sources = self.mirrors.iter().map(|mirror| &mirror.source);
        self.common.is_dirty |= sources.any(|source| source.due().is_some_and(is_late));
    }

    /// Ends requests whose blocks need no more symbols.
    fn cut_useless_symbols(&self, receiver: &Receiver) {
        for mirror in self.mirrors.iter().filter(|mirror| mirror.source.due().is_some()) {
            let left = mirror.source.expected();
            if !left.iter().any(|&(block, _)| receiver.needs_symbols(block)) {
                mirror.need.set(0);
            }
        }
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
        let Self { mirrors, common, .. } = self;
        let Some(mirror) = mirrors.get_mut(number) else { return Ok(Vec::new()) };
        match what {
            Done::Panicked(panic) => return Err(panic),
            Done::Bytes { at, bytes } => {
                let (slab, result) = mirror.on_bytes(now, at, bytes, common, receiver);
                if result.is_err() {
                    self.drop_mirror(now, number, MirrorFailure::NotRequested, Some(receiver));
                }
                return Ok(slab);
            }
            Done::Part { at, bytes } => {
                return Ok(mirror.on_part(now, at, &bytes, common, receiver));
            }
            Done::Missing { bytes, failure } => mirror.on_missing(now, &bytes, failure, common),
            Done::File(bytes, address) => match mirror.set_idle() {
                Work::Index => {
                    mirror.on_index(now, &bytes, common);
                    self.end_vain_wholes(now, receiver);
                }
                _ => {
                    let source = address.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |a| a.ip());
                    self.on_manifest(now, number, &bytes, source, receiver);
                }
            },
            Done::Sequential => mirror.on_sequential(common),
            Done::Ended => {
                mirror.on_ended(now, common);
                self.end_sent_wholes(receiver);
            }
            Done::Failed(failure) => self.on_failed(now, number, failure, receiver),
        }
        Ok(Vec::new())
    }

    fn on_manifest(
        &mut self,
        now: Instant,
        number: usize,
        bytes: &[u8],
        source: IpAddr,
        receiver: &mut Receiver,
    ) {
        let Some(hash) = self.expected.filter(|_| self.common.files.is_none()) else { return };
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
                    self.common.events.push(event);
                }
            }
            None => {
                let path = manifest_file_name(hash);
                let failure = MirrorFailure::Manifest { path, bytes: bytes.len() };
                self.on_no_manifest(now, number, failure);
            }
        }
    }

    /// Blocks that were sent as a whole, and need symbols nevertheless: there was no memory for the
    /// decoder, or copies differ.
    fn end_sent_wholes(&mut self, receiver: &mut Receiver) {
        let is_vain = |(block, positions): &(&BlockId, &Range<u64>)| {
            self.common.pull.is_sent(positions) && receiver.needs_symbols(**block)
        };
        let vain: Vec<BlockId> =
            self.common.wholes.iter().filter(is_vain).map(|(&block, _)| block).collect();
        vain.into_iter().for_each(|block| self.common.end_whole(block, receiver));
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
        let work = mirror.set_idle();
        mirror.failures = mirror.failures.saturating_add(1);
        if matches!(work, Work::Manifest) && !failure.may_pass() {
            return self.on_no_manifest(now, number, failure);
        }
        mirror.on_failed(now, &work, failure, &mut self.common);
        self.end_vain_wholes(now, receiver);
    }

    /// A block is verified.
    pub(super) fn on_verified(&mut self, now: Instant, block: BlockId, receiver: &mut Receiver) {
        self.common.end_whole(block, receiver);
        if let Some(positions) = self.common.files.as_ref().and_then(|files| files.positions(block))
        {
            let k = (positions.end - positions.start) as u32;
            if let Origin::One(number) = self.common.records.origin(block, k)
                && let Some(mirror) = self.mirrors.get_mut(number)
            {
                mirror.right_blocks += 1;
                *mirror.right.entry(block.toi).or_default() += 1;
            }
            self.common.pull.remove_lacking(positions);
        }
        for number in self.common.records.on_verified(block) {
            self.charge(now, number, block, receiver);
        }
    }

    /// A mirror has sent a wrong block.
    fn charge(&mut self, now: Instant, number: usize, block: BlockId, receiver: &mut Receiver) {
        let mirror = self.mirrors.get_mut(number);
        if let Some(failure) = mirror.and_then(|mirror| mirror.charge(block, &mut self.common)) {
            self.drop_mirror(now, number, failure, Some(receiver));
        }
    }

    /// A block is corrupt.
    pub(super) fn on_corrupt(&mut self, now: Instant, block: BlockId, receiver: &mut Receiver) {
        if self.drop_wrong(block, receiver) {
            return;
        }
        let positions = self.common.files.as_ref().and_then(|files| files.positions(block));
        let Some(positions) = positions.filter(|_| !self.are_gone()) else { return };
        let symbols = (positions.end - positions.start) as u32;
        let is_fetched = match self.common.records.origin(block, symbols) {
            Origin::One(number) => {
                let tried = self.mirrors.get(number).map(|mirror| mirror.id);
                self.common.records.convict(block, number);
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

    /// Drops, of a corrupt block, what mirrors have sent that were dropped for wrong symbols. False
    /// if there is nothing, or that is not possible now.
    fn drop_wrong(&mut self, block: BlockId, receiver: &mut Receiver) -> bool {
        let is_wrong = |number: usize| {
            let dropped = self.mirrors.get(number).and_then(|mirror| mirror.dropped.as_ref());
            matches!(dropped, Some(MirrorFailure::Wrong(_) | MirrorFailure::NotRequested))
        };
        let runs = self.common.records.sent_by(block, is_wrong);
        let is_dropped = !runs.is_empty() && receiver.drop_pulled(block, &runs);
        if is_dropped {
            self.common.records.forget(block, is_wrong);
            self.common.is_dirty = true;
        }
        is_dropped
    }

    /// One mirror is to send all of a block. False if that is not possible now.
    fn fetch_again(
        &mut self,
        now: Instant,
        block: BlockId,
        receiver: &mut Receiver,
        tried: Vec<SourceId>,
    ) -> bool {
        let positions = self.common.files.as_ref().and_then(|files| files.positions(block));
        let published = |range: &Range<u64>| {
            let files = self.common.files.as_ref();
            files.is_some_and(|files| files.published(range.clone()) == [range.clone()])
        };
        let has_files = |positions: &Range<u64>| self.may_send_whole(now, positions);
        let Some(positions) = positions.filter(published).filter(has_files) else {
            return false;
        };
        let is_dropped = receiver.refetch(block);
        if is_dropped {
            self.common.records.begin_again(block);
            self.common.pull.add_whole(positions.clone(), tried);
            self.common.wholes.insert(block, positions);
        }
        is_dropped
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
        self.common.pull.remove_source(now, id);
        self.common.events.push(ReceiveEvent::MirrorDropped { mirror: address, failure });
        // Corrupt blocks of which it has sent a part need not wait.
        self.doubtful.values_mut().for_each(|due| *due = (*due).min(now));
        if let Some(receiver) = receiver {
            self.end_vain_wholes(now, receiver);
        }
    }

    /// Blocks that are to be sent as a whole do not wait for mirrors that send nothing.
    fn end_late_wholes(&mut self, now: Instant, receiver: &mut Receiver) {
        let is_sending = |mirror: &MirrorState| matches!(mirror.work, Work::Fetch { .. });
        if self.common.wholes.is_empty() || self.mirrors.iter().any(is_sending) {
            self.wholes_served_at = now;
        } else if now.saturating_since(self.wholes_served_at) >= DOUBTFUL_FOR {
            self.end_all_wholes(receiver);
        }
        // Nor for those that have other files.
        let is_vain = |(_, range): &(&BlockId, &Range<u64>)| !self.may_send_whole(now, range);
        let vain: Vec<BlockId> =
            self.common.wholes.iter().filter(is_vain).map(|(&block, _)| block).collect();
        vain.into_iter().for_each(|block| self.common.end_whole(block, receiver));
    }

    /// Whether a mirror may send these positions as a whole soon.
    fn may_send_whole(&self, now: Instant, positions: &Range<u64>) -> bool {
        let may_send = |mirror: &MirrorState| {
            mirror.may_send_wholes(now) && self.common.pull.may_have(mirror.id, positions)
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
        for block in self.common.wholes.keys().copied().collect::<Vec<_>>() {
            self.common.end_whole(block, receiver);
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
