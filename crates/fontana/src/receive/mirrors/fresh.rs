//! Mirrors that compute repair symbols: servers of fresh symbols.

use super::shelves::due;
use super::state::{Frames, Kind, Work};
use super::{LOOK_EVERY, Mirrors};
use crate::web::client::FileRange;
use crate::web::failure::MirrorFailure;
use crate::web::mirror::{Fetch, Order};
use fontana_fec::Esi;
use fontana_proto::pull::PulledRun;
use fontana_proto::{BlockId, Instant, Receiver};
use fontana_wire::{FreshFrame, FreshIndex};
use std::time::Duration;

/// Requests in a row without a new symbol before a server rests.
const MAX_BARREN: u32 = 3;
/// Longest rest.
const LONGEST_REST: Duration = Duration::from_secs(30);

/// Consecutive symbols of a block in a report, without their ids.
struct ArrivedRun {
    block: BlockId,
    first: Esi,
    count: u32,
}

impl Mirrors {
    /// Gives a server of fresh symbols its next order.
    pub(super) fn order_fresh(&mut self, now: Instant, number: usize, receiver: &mut Receiver) {
        let (time, lacking) = (self.time_of_request(now), self.lacking(now, receiver));
        let (Some(content), Some(mirror)) = (self.content, self.mirrors.get_mut(number)) else {
            return;
        };
        let Kind::Fresh(fresh) = &mut mirror.kind else { return };
        let Some(order) = fresh.next_request(now, time, &lacking) else {
            mirror.retries_at = now + LOOK_EVERY;
            return self.on_nothing_to_send(now, number, receiver);
        };
        mirror.idle = 0;
        let symbols = order.request.symbols().unwrap_or(0);
        let (toi, symbol_size) = (order.object.toi, order.object.symbol_size);
        // The whole answer: it is as long as its frames.
        let frame_size = symbol_size + FreshFrame::ID_SIZE as u16;
        let length = symbols * u64::from(frame_size);
        let path = FreshIndex::symbols_path(content, toi.0 as u32);
        let path = format!("{path}?{}", order.request).into();
        let fetch = Fetch {
            bytes: 0..length,
            symbol_size: frame_size,
            object_length: length,
            pieces: vec![FileRange { path, range: 0..length, length }],
            file_start: None,
        };
        let due = due(now, symbols, fresh.rate(now));
        mirror.need.begin(length);
        mirror.order(Order::Fetch(fetch), Work::Fresh(Frames { toi, symbol_size, due }));
        self.is_dirty = true;
    }

    /// Frames have arrived. Returns the slab with which the driver polls next: their symbols.
    pub(super) fn on_frames(
        &mut self,
        now: Instant,
        number: usize,
        bytes: Vec<u8>,
        receiver: &mut Receiver,
    ) -> Vec<u8> {
        let Some(mirror) = self.mirrors.get_mut(number) else { return bytes };
        mirror.on_bytes(now, bytes.len());
        let (Work::Fresh(frames), Kind::Fresh(fresh)) = (&mirror.work, &mut mirror.kind) else {
            return bytes;
        };
        let (toi, size) = (frames.toi, usize::from(frames.symbol_size));
        let (mut slab, mut runs) = (Vec::with_capacity(bytes.len()), Vec::<ArrivedRun>::new());
        let mut is_wrong = false;
        for frame in bytes.chunks_exact(FreshFrame::ID_SIZE + size).map(FreshFrame::parse) {
            let Some(FreshFrame { sbn, esi, symbol }) = frame else { continue };
            let block = BlockId { toi, sbn };
            if fresh.on_symbol(block, esi).is_err() {
                is_wrong = true;
                break;
            }
            slab.extend_from_slice(symbol);
            match runs.last_mut() {
                Some(run) if run.block == block && run.first.0 + run.count == esi.0 => {
                    run.count += 1;
                }
                _ => runs.push(ArrivedRun { block, first: esi, count: 1 }),
            }
        }
        fresh.on_arrival(now, (slab.len() / size.max(1)) as u64);
        let mut start = 0;
        for ArrivedRun { block, first, count } in runs {
            let end = start + count * size as u32;
            let is_needed = receiver.needs_symbols(block);
            let pulled = PulledRun { block, first, bytes: start..end };
            let result = receiver.handle_pulled(now, &pulled, &slab);
            mirror.useless_bytes += result.useless * size as u64;
            if is_needed {
                fresh.on_needed(!result.fresh.is_empty());
            }
            for esis in result.fresh {
                let at = |esi: u32| start as usize + (esi - first.0) as usize * size;
                let symbols = slab.get(at(esis.start)..at(esis.end)).unwrap_or_default();
                self.records.add(block, number, esis, symbols);
            }
            start = end;
        }
        if is_wrong {
            self.drop_mirror(now, number, MirrorFailure::NotRequested, Some(receiver));
        }
        slab
    }

    /// A request for fresh symbols has ended.
    pub(super) fn end_fresh(&mut self, now: Instant, number: usize) {
        self.is_dirty = true;
        let Some(mirror) = self.mirrors.get_mut(number) else { return };
        let Kind::Fresh(fresh) = &mut mirror.kind else { return };
        // Another address of the same server may bring what this one sends: it is asked more
        // rarely, and not dropped.
        if let Some(barren @ 1..) = fresh.end_request(now).checked_sub(MAX_BARREN) {
            let wait = Duration::from_millis(500).saturating_mul(1 << barren.min(6));
            mirror.retries_at = now + wait.min(LONGEST_REST);
        }
    }
}
