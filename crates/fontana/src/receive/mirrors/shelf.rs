//! A mirror that has a shelf: repair symbols in files.

use super::lacking::{Lacking, due};
use super::sink::Sink;
use crate::web::client::FileRange;
use crate::web::mirror::Fetch;
use fontana_fec::Esi;
use fontana_proto::pull::{ShelfPull, ShelfRequest};
use fontana_proto::{BlockId, Instant};
use fontana_wire::{Hash, ShelfIndex, ShelfNumber, Toi};
use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Duration;

/// A shelf, and what was requested of it.
#[derive(Debug)]
pub(super) struct Shelf {
    pull: ShelfPull,
    request: Option<Symbols>,
    /// Objects of which it has no symbols at present.
    missing: BTreeSet<Toi>,
}

/// A request for symbols of a shelf.
#[derive(Debug)]
struct Symbols {
    request: ShelfRequest,
    /// Symbols that have arrived.
    arrived: u64,
    due: Instant,
}

impl Symbols {
    /// The symbols that have not arrived.
    fn left(&self) -> impl Iterator<Item = (BlockId, Range<u32>)> + '_ {
        let mut first = 0;
        self.request.runs.iter().filter_map(move |(block, esis)| {
            let skipped = self.arrived.saturating_sub(first).min((esis.end - esis.start).into());
            first += u64::from(esis.end - esis.start);
            let left = esis.start + skipped as u32..esis.end;
            (!left.is_empty()).then_some((*block, left))
        })
    }
}

impl Shelf {
    pub(super) fn new(pull: ShelfPull) -> Self {
        Self { pull, request: None, missing: BTreeSet::new() }
    }

    pub(super) fn number(&self) -> ShelfNumber {
        self.pull.number()
    }

    pub(super) fn rate(&self, now: Instant) -> Option<f64> {
        self.pull.rate(now)
    }

    pub(super) fn due(&self) -> Option<Instant> {
        self.request.as_ref().map(|symbols| symbols.due)
    }

    pub(super) fn expected(&self) -> Vec<(BlockId, u32)> {
        let left = self.request.iter().flat_map(Symbols::left);
        left.map(|(block, esis)| (block, esis.end - esis.start)).collect()
    }

    /// Whether it has symbols of all objects.
    pub(super) fn is_whole(&self) -> bool {
        self.missing.is_empty()
    }

    /// It may have by now what it did not have.
    pub(super) fn ask_again(&mut self) {
        self.missing.clear();
    }

    pub(super) fn next_request(
        &mut self,
        now: Instant,
        time: Duration,
        content: Hash,
        mut lacking: Lacking<'_>,
    ) -> Option<Fetch> {
        lacking.without.clone_from(&self.missing);
        let request = self.pull.next_request(now, time, &lacking)?;
        let (bytes, symbol_size) = (request.bytes.clone(), request.symbol_size);
        let length = self.pull.file_length(request.toi);
        let path = ShelfIndex::symbols_file_name(content, request.toi.0 as u32).into();
        let symbols = (bytes.end - bytes.start) / u64::from(symbol_size).max(1);
        let due = due(now, symbols, self.pull.rate(now));
        self.request = Some(Symbols { request, arrived: 0, due });
        Some(Fetch {
            bytes: bytes.clone(),
            symbol_size,
            object_length: length,
            pieces: vec![FileRange { path, range: bytes, length }],
            file_start: None,
        })
    }

    /// Symbols have arrived, from this byte of the file on.
    pub(super) fn on_bytes(&mut self, now: Instant, at: u64, bytes: &[u8], sink: &mut Sink<'_>) {
        let Some(symbols) = &mut self.request else { return };
        let size = u32::from(symbols.request.symbol_size);
        let mut symbol = at.saturating_sub(symbols.request.bytes.start) / u64::from(size).max(1);
        let (mut start, end) = (0, bytes.len() as u32 / size.max(1) * size);
        while start < end {
            let left = u64::from((end - start) / size);
            let Some((block, esis)) = symbols.request.run_at(symbol, left) else { break };
            let count = esis.end - esis.start;
            let run = start..start + count * size;
            start = run.end;
            sink.take(now, (block, Esi(esis.start)), size, bytes, run);
            self.pull.on_arrival(now, count.into());
            symbol += u64::from(count);
        }
        symbols.arrived = symbol;
    }

    /// The request has ended. `lacks_file`: the mirror does not have the file.
    pub(super) fn end(&mut self, now: Instant, lacks_file: bool) {
        self.pull.end_request(now);
        if let Some(symbols) = self.request.take().filter(|_| lacks_file) {
            self.missing.insert(symbols.request.toi);
        }
    }
}
