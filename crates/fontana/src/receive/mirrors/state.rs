//! What the deciding thread knows of one mirror.

use super::DOUBTFUL_FOR;
use super::source::Source;
use crate::event::ReceiveEvent;
use crate::web::failure::MirrorFailure;
use crate::web::mirror::{Fetch, Need, Order};
use crate::web::report::MirrorReport;
use crossbeam_channel::Sender;
use fontana_proto::pull::SourceId;
use fontana_proto::{BlockId, Instant};
use fontana_wire::{FreshIndex, Hash, HeldIndex, ShelfIndex, Toi, WebAddress};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// Least time between two events about failures of a mirror.
const TELL_EVERY: Duration = Duration::from_secs(10);

/// A mirror.
pub(super) struct MirrorState {
    pub(super) number: usize,
    pub(super) address: WebAddress,
    pub(super) id: SourceId,
    /// The queue to its thread. `None` once it is dropped.
    orders: Option<Sender<Order>>,
    pub(super) need: Arc<Need>,
    pub(super) source: Source,
    pub(super) work: Work,
    /// Failed orders, and files that were missing, since bytes arrived last. It determines pauses.
    pub(super) failures: u32,
    pub(super) retries_at: Instant,
    /// Times in a row that its shelf had nothing to send, and no mirror sent anything.
    pub(super) idle: u32,
    /// When it is asked again for what it does not have.
    pub(super) ask_again_at: Option<Instant>,
    pub(super) wrong_blocks: u32,
    /// How often it has sent each of these blocks wrong.
    pub(super) wrong: BTreeMap<BlockId, u32>,
    /// Verified blocks that it has sent all of.
    pub(super) right_blocks: u32,
    /// The same, by object.
    pub(super) right: BTreeMap<Toi, u32>,
    /// Orders that were answered with a whole file.
    pub(super) sequential: u32,
    /// Why it has no manifest.
    pub(super) lacks_manifest: Option<MirrorFailure>,
    pub(super) dropped: Option<MirrorFailure>,
    /// Why it has failed since bytes arrived last.
    pub(super) failing: Option<MirrorFailure>,
    /// Why it lacks a file.
    pub(super) lacks_file: Option<MirrorFailure>,
    /// The last failure that was told, and when. The text is empty once bytes have arrived.
    pub(super) told: Option<(Instant, String)>,
    bytes: u64,
    pub(super) useless_bytes: u64,
    /// When bytes arrived first and last.
    arrivals: Option<(Instant, Instant)>,
}

/// What it is doing.
#[derive(Debug)]
pub(super) enum Work {
    Nothing,
    Manifest,
    /// Looks for an index: of a shelf, of a server of fresh symbols, or of what it holds.
    Index,
    /// Sends repair symbols, which its [`Source`] knows.
    Repair,
    Fetch {
        /// The positions of the order.
        range: Range<u64>,
        symbol_size: u16,
        /// The block, if one mirror has to send all of it.
        whole: Option<BlockId>,
    },
}

/// How often a shelf may have nothing to send, while no mirror sends anything, before it is given
/// up: a block that is being solved may lack another symbol.
pub(super) const MAX_IDLE: u32 = 4;

impl MirrorState {
    pub(super) fn new(
        number: usize,
        address: WebAddress,
        id: SourceId,
        orders: Sender<Order>,
        need: Arc<Need>,
    ) -> Self {
        Self {
            number,
            address,
            id,
            orders: Some(orders),
            need,
            source: Source::Unknown,
            work: Work::Nothing,
            failures: 0,
            retries_at: Instant::ZERO,
            idle: 0,
            ask_again_at: None,
            wrong_blocks: 0,
            wrong: BTreeMap::new(),
            right_blocks: 0,
            right: BTreeMap::new(),
            sequential: 0,
            lacks_manifest: None,
            dropped: None,
            failing: None,
            lacks_file: None,
            told: None,
            bytes: 0,
            useless_bytes: 0,
            arrivals: None,
        }
    }

    /// Whether it can be given an order.
    pub(super) fn may_begin(&self, now: Instant) -> bool {
        self.dropped.is_none() && matches!(self.work, Work::Nothing) && now >= self.retries_at
    }

    /// Whether it may send blocks as a whole.
    pub(super) fn may_have_files(&self) -> bool {
        self.dropped.is_none() && !self.source.has_repair()
    }

    /// Whether it may send a block as a whole, and does not rest for long.
    pub(super) fn may_send_wholes(&self, now: Instant) -> bool {
        self.may_have_files() && self.retries_at <= now + DOUBTFUL_FOR
    }

    /// Gives it an order.
    pub(super) fn order(&mut self, order: Order, work: Work) {
        self.work = work;
        if let Some(orders) = &self.orders {
            // The thread runs until its queue is dropped, or reports that it has panicked.
            let _ = orders.send(order);
        }
    }

    /// Asks it for the bytes of an order.
    pub(super) fn fetch(&mut self, fetch: Fetch, work: Work) {
        self.need.begin(fetch.bytes.end - fetch.bytes.start);
        self.order(Order::Fetch(fetch), work);
    }

    /// Asks it for its index: one that has none has the files. One that is receiving answers when
    /// it has more than the `known` blocks.
    pub(super) fn ask_for_index(&mut self, content: Option<Hash>, known: Option<u64>) {
        let Some(name) = content.map(ShelfIndex::file_name) else { return };
        let path = match known {
            Some(blocks) => format!("{name}?{}", HeldIndex::query(blocks)).into(),
            None => name.into(),
        };
        self.need.begin(u64::MAX);
        let limit = ShelfIndex::SIZE.max(FreshIndex::SIZE).max(HeldIndex::MAX_SIZE) as u64;
        self.order(Order::File { path, limit }, Work::Index);
    }

    /// It has nothing to do from here on. Returns what it did.
    pub(super) fn set_idle(&mut self) -> Work {
        std::mem::replace(&mut self.work, Work::Nothing)
    }

    /// Ends its thread.
    pub(super) fn end(&mut self) {
        self.need.end();
        self.orders = None;
    }

    /// The manifest is known.
    pub(super) fn has_manifest(&mut self) {
        if self.lacks_manifest.take().is_some() {
            (self.retries_at, self.failures, self.failing) = (Instant::ZERO, 0, None);
        }
    }

    /// Bytes of content have arrived.
    pub(super) fn note_arrival(&mut self, now: Instant, bytes: usize) {
        (self.failures, self.failing) = (0, None);
        if let Some((_, text)) = &mut self.told {
            text.clear();
        }
        self.bytes += bytes as u64;
        let first = self.arrivals.map_or(now, |(first, _)| first);
        self.arrivals = Some((first, now));
    }

    /// It has failed. Returns the event, if it is news.
    pub(super) fn tell(
        &mut self,
        now: Instant,
        failure: MirrorFailure,
        pause: Duration,
    ) -> Option<ReceiveEvent> {
        self.failing = Some(failure.clone());
        let text = failure.to_string();
        let is_known = |(at, told): &(Instant, String)| now < *at + TELL_EVERY || *told == text;
        if self.told.as_ref().is_some_and(is_known) {
            return None;
        }
        self.told = Some((now, text));
        let mirror = self.address.clone();
        Some(ReceiveEvent::MirrorFailed { mirror, failure, pause })
    }

    pub(super) fn report(&self) -> MirrorReport {
        let active = self.arrivals.map(|(first, last)| last.saturating_since(first));
        MirrorReport {
            mirror: self.address.clone(),
            bytes: self.bytes,
            useless_bytes: self.useless_bytes,
            active: active.unwrap_or(Duration::ZERO),
            wrong_blocks: self.wrong_blocks,
            kind: self.source.kind(),
            dropped: self.dropped.clone(),
            failing: self.failing.clone().or_else(|| self.lacks_file.clone()),
        }
    }
}
