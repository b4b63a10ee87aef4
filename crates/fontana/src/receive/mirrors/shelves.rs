//! Mirrors that have shelves: repair symbols in files.

use super::state::{Holder, Kind, MAX_IDLE, Symbols, Work};
use super::{LOOK_EVERY, Mirrors};
use crate::web::client::FileRange;
use crate::web::failure::MirrorFailure;
use crate::web::mirror::{Fetch, Order};
use fontana_fec::Esi;
use fontana_proto::pull::{FreshPull, PulledRun, ShelfPull};
use fontana_proto::{Instant, Receiver};
use fontana_wire::{FreshIndex, HeldIndex, ShelfIndex};
use std::time::Duration;

/// Longest and shortest time of a request.
const REQUEST_TIME: Duration = Duration::from_secs(2);
const LEAST_REQUEST_TIME: Duration = Duration::from_millis(250);
/// Time for an answer to begin, beside the time of the symbols.
const ANSWER_TIME: Duration = Duration::from_millis(500);

/// When the others stop counting on a request for so many symbols, given the rate of its mirror.
pub(super) fn due(now: Instant, symbols: u64, rate: Option<f64>) -> Instant {
    let time = rate.map_or(REQUEST_TIME, |rate| {
        let seconds = symbols as f64 / rate.max(f64::MIN_POSITIVE);
        let time = Duration::try_from_secs_f64(1.5 * seconds).unwrap_or(Duration::MAX);
        time.min(2 * REQUEST_TIME)
    });
    now + time + ANSWER_TIME
}

impl Mirrors {
    /// Asks a mirror for the index of its shelf. If it has none, it has the files.
    pub(super) fn ask_for_index(&mut self, number: usize) {
        self.order_index(number, None);
    }

    /// The same; a mirror that is receiving answers when it has more than so many blocks.
    pub(super) fn order_index(&mut self, number: usize, known: Option<u64>) {
        let (Some(content), Some(mirror)) = (self.content, self.mirrors.get_mut(number)) else {
            return;
        };
        let name = ShelfIndex::file_name(content);
        let path = match known {
            Some(blocks) => format!("{name}?{}", HeldIndex::query(blocks)).into(),
            None => name.into(),
        };
        mirror.need.begin(u64::MAX);
        let limit = ShelfIndex::SIZE.max(FreshIndex::SIZE).max(HeldIndex::MAX_SIZE) as u64;
        mirror.order(Order::File { path, limit }, Work::Index);
    }

    /// A mirror has sent the index of its shelf, that of a server of fresh symbols, or something
    /// else.
    pub(super) fn on_index(
        &mut self,
        now: Instant,
        number: usize,
        bytes: &[u8],
        receiver: &mut Receiver,
    ) {
        let (Some(files), Some(mirror)) = (&self.files, self.mirrors.get_mut(number)) else {
            return;
        };
        mirror.set_idle();
        let is_of_content = |manifest| Some(manifest) == self.content;
        let shelf = ShelfIndex::parse(bytes).ok().filter(|index| is_of_content(index.manifest));
        let fresh = FreshIndex::parse(bytes).ok().filter(|index| is_of_content(index.manifest));
        let held = HeldIndex::parse(bytes).ok().filter(|index| is_of_content(index.manifest));
        let held = held.map(|index| (index.blocks(), files.held(&index)));
        mirror.kind = match (shelf, fresh.zip(files.as_fresh()), &held) {
            (Some(index), ..) => Kind::Shelf(ShelfPull::new(index.number, files.on_shelf(&index))),
            (None, Some((index, objects)), _) => Kind::Fresh(FreshPull::new(index.start, objects)),
            (None, None, &Some((blocks, _))) => Kind::Holder(Holder { asked_at: now, blocks }),
            (None, None, None) => Kind::Files,
        };
        match mirror.may_have_files() {
            true => self.restore_source(number),
            false => self.pull.remove_source(now, mirror.id),
        }
        self.set_held(number, held.map(|(_, positions)| positions));
        self.end_vain_wholes(now, receiver);
    }

    /// The others do the work of a shelf that is late.
    pub(super) fn note_late_shelves(&mut self, now: Instant) {
        let looked_at = self.looked_at;
        let is_late = |due: Instant| looked_at < due && due <= now;
        self.is_dirty |= self.mirrors.iter().any(|mirror| mirror.due().is_some_and(is_late));
    }

    /// Ends requests whose blocks need no more symbols.
    pub(super) fn cut_useless_symbols(&self, receiver: &Receiver) {
        for mirror in &self.mirrors {
            let left = mirror.due().map(|_| mirror.expected_repairs()).unwrap_or_default();
            if mirror.due().is_some()
                && !left.iter().any(|&(block, _)| receiver.needs_symbols(block))
            {
                mirror.need.set(0);
            }
        }
    }

    /// Gives a mirror with a shelf its next order.
    pub(super) fn order_from_shelf(
        &mut self,
        now: Instant,
        number: usize,
        receiver: &mut Receiver,
    ) {
        let time = self.time_of_request(now);
        let mut lacking = self.lacking(now, receiver);
        let (Some(content), Some(mirror)) = (self.content, self.mirrors.get_mut(number)) else {
            return;
        };
        let Kind::Shelf(shelf) = &mut mirror.kind else { return };
        lacking.without.clone_from(&mirror.missing_symbols);
        let Some(request) = shelf.next_request(now, time, &lacking) else {
            mirror.retries_at = now + LOOK_EVERY;
            return self.on_nothing_to_send(now, number, receiver);
        };
        mirror.idle = 0;
        let length = shelf.file_length(request.toi);
        let path = ShelfIndex::symbols_file_name(content, request.toi.0 as u32).into();
        let bytes = request.bytes.clone();
        let fetch = Fetch {
            bytes: bytes.clone(),
            symbol_size: request.symbol_size,
            object_length: length,
            pieces: vec![FileRange { path, range: bytes.clone(), length }],
            file_start: None,
        };
        let symbols = (bytes.end - bytes.start) / u64::from(request.symbol_size).max(1);
        let due = due(now, symbols, shelf.rate(now));
        mirror.need.begin(bytes.end - bytes.start);
        let work = Symbols { request, arrived: 0, due };
        mirror.order(Order::Fetch(fetch), Work::Symbols(work));
        self.is_dirty = true;
    }

    /// A shelf has nothing that is lacking. Without a group, it is given up after some time in
    /// which no other mirror sends anything.
    pub(super) fn on_nothing_to_send(
        &mut self,
        now: Instant,
        number: usize,
        receiver: &mut Receiver,
    ) {
        let is_idle = self.mirrors.iter().all(|mirror| {
            mirror.dropped.is_some()
                || (matches!(mirror.work, Work::Nothing) && !mirror.may_have_files())
        });
        let Some(mirror) = self.mirrors.get_mut(number) else { return };
        let is_exhausted = is_idle && mirror.missing_symbols.is_empty();
        mirror.idle =
            if is_exhausted && !self.has_group && self.wanted > 0 { mirror.idle + 1 } else { 0 };
        if mirror.idle >= MAX_IDLE {
            self.drop_mirror(now, number, MirrorFailure::Exhausted, Some(receiver));
        }
    }

    /// Half of the time that all mirrors take for what is lacking, within limits.
    pub(super) fn time_of_request(&self, now: Instant) -> Duration {
        let rates = self.mirrors.iter().filter_map(|mirror| match &mirror.kind {
            Kind::Shelf(shelf) => shelf.rate(now),
            Kind::Fresh(fresh) => fresh.rate(now),
            Kind::Files | Kind::Holder(_) | Kind::Unknown => self.pull.rate(now, mirror.id),
        });
        let rate = rates.sum::<f64>().max(f64::MIN_POSITIVE);
        let left = Duration::try_from_secs_f64(self.wanted as f64 / rate / 2.0);
        left.unwrap_or(REQUEST_TIME).clamp(LEAST_REQUEST_TIME, REQUEST_TIME)
    }

    /// Symbols of a shelf have arrived.
    pub(super) fn on_symbols(
        &mut self,
        now: Instant,
        number: usize,
        at: u64,
        bytes: &[u8],
        receiver: &mut Receiver,
    ) {
        let Some(mirror) = self.mirrors.get_mut(number) else { return };
        let (Work::Symbols(symbols), Kind::Shelf(shelf)) = (&mut mirror.work, &mut mirror.kind)
        else {
            return;
        };
        let size = u32::from(symbols.request.symbol_size);
        let mut symbol = at.saturating_sub(symbols.request.bytes.start) / u64::from(size).max(1);
        let (mut start, end) = (0, bytes.len() as u32 / size.max(1) * size);
        while start < end {
            let left = u64::from((end - start) / size);
            let Some((block, esis)) = symbols.request.run_at(symbol, left) else { break };
            let count = esis.end - esis.start;
            let run = start..start + count * size;
            let pulled = PulledRun { block, first: Esi(esis.start), bytes: run.clone() };
            let result = receiver.handle_pulled(now, &pulled, bytes);
            mirror.useless_bytes += result.useless * u64::from(size);
            for fresh in result.fresh {
                let at = |esi: u32| (run.start + (esi - esis.start) * size) as usize;
                let symbols = bytes.get(at(fresh.start)..at(fresh.end)).unwrap_or_default();
                self.records.add(block, number, fresh, symbols);
            }
            shelf.on_arrival(now, count.into());
            start = run.end;
            symbol += u64::from(count);
        }
        symbols.arrived = symbol;
    }
}
