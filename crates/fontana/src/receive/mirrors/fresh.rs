//! A mirror that computes repair symbols: a server of fresh symbols.

use super::lacking::{Lacking, due};
use super::sink::Sink;
use crate::web::client::FileRange;
use crate::web::mirror::Fetch;
use fontana_fec::Esi;
use fontana_proto::pull::FreshPull;
use fontana_proto::{BlockId, Instant};
use fontana_wire::{FreshFrame, FreshIndex, Hash, Toi};
use std::time::Duration;

/// Requests in a row without a new symbol before a server rests.
const MAX_BARREN: u32 = 3;
/// Longest rest.
const LONGEST_REST: Duration = Duration::from_secs(30);

/// A server, and what was requested of it.
#[derive(Debug)]
pub(super) struct FreshServer {
    pub(super) pull: FreshPull,
    request: Option<Frames>,
}

/// A request for fresh symbols.
#[derive(Clone, Copy, Debug)]
struct Frames {
    toi: Toi,
    /// Bytes of a symbol.
    symbol_size: u16,
    due: Instant,
}

/// Consecutive symbols of a block in a report, without their ids.
struct ArrivedRun {
    block: BlockId,
    first: Esi,
    count: u32,
}

/// A server has sent a symbol that was not requested.
#[derive(Debug)]
pub(super) struct NotRequested;

impl FreshServer {
    pub(super) fn new(pull: FreshPull) -> Self {
        Self { pull, request: None }
    }

    pub(super) fn rate(&self, now: Instant) -> Option<f64> {
        self.pull.rate(now)
    }

    pub(super) fn due(&self) -> Option<Instant> {
        self.request.map(|frames| frames.due)
    }

    pub(super) fn expected(&self) -> Vec<(BlockId, u32)> {
        self.request.map(|_| self.pull.expected().collect()).unwrap_or_default()
    }

    pub(super) fn next_request(
        &mut self,
        now: Instant,
        time: Duration,
        content: Hash,
        lacking: &Lacking<'_>,
    ) -> Option<Fetch> {
        let order = self.pull.next_request(now, time, lacking)?;
        let symbols = order.request.symbols().unwrap_or(0);
        let (toi, symbol_size) = (order.object.toi, order.object.symbol_size);
        let path = FreshIndex::symbols_path(content, toi.0 as u32);
        let path = format!("{path}?{}", order.request).into();
        self.request = Some(Frames { toi, symbol_size, due: due(now, symbols, self.rate(now)) });
        // The whole answer: it is as long as its frames.
        let frame_size = symbol_size + FreshFrame::ID_SIZE as u16;
        let length = symbols * u64::from(frame_size);
        Some(Fetch {
            bytes: 0..length,
            symbol_size: frame_size,
            object_length: length,
            pieces: vec![FileRange { path, range: 0..length, length }],
            file_start: None,
        })
    }

    /// Frames have arrived. Returns the slab with which the driver polls next: their symbols. And
    /// whether all were requested.
    pub(super) fn on_frames(
        &mut self,
        now: Instant,
        bytes: Vec<u8>,
        sink: &mut Sink<'_>,
    ) -> (Vec<u8>, Result<(), NotRequested>) {
        let Some(Frames { toi, symbol_size, .. }) = self.request else { return (bytes, Ok(())) };
        let size = usize::from(symbol_size);
        let (mut slab, mut runs) = (Vec::with_capacity(bytes.len()), Vec::<ArrivedRun>::new());
        let mut result = Ok(());
        for frame in bytes.chunks_exact(FreshFrame::ID_SIZE + size).map(FreshFrame::parse) {
            let Some(FreshFrame { sbn, esi, symbol }) = frame else { continue };
            let block = BlockId { toi, sbn };
            if self.pull.on_symbol(block, esi).is_err() {
                result = Err(NotRequested);
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
        self.pull.on_arrival(now, (slab.len() / size.max(1)) as u64);
        let mut start = 0;
        for ArrivedRun { block, first, count } in runs {
            let end = start + count * size as u32;
            let is_needed = sink.receiver.needs_symbols(block);
            let is_of_use = sink.take(now, (block, first), size as u32, &slab, start..end);
            if is_needed {
                self.pull.on_needed(is_of_use);
            }
            start = end;
        }
        (slab, result)
    }

    /// The request has ended. Returns how long the server rests, if it brings nothing new.
    pub(super) fn end(&mut self, now: Instant) -> Option<Duration> {
        self.request = None;
        // Another address of the same server may bring what this one sends: it is asked more
        // rarely, and not dropped.
        let barren = self.pull.end_request(now).checked_sub(MAX_BARREN).filter(|&more| more > 0)?;
        let wait = Duration::from_millis(500).saturating_mul(1 << barren.min(6));
        Some(wait.min(LONGEST_REST))
    }
}
