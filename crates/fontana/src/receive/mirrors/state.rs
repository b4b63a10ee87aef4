//! What the deciding thread knows of one mirror.

use super::DOUBTFUL_FOR;
use crate::web::failure::MirrorFailure;
use crate::web::mirror::{Need, Order};
use crate::web::report::{MirrorKind, MirrorReport};
use crossbeam_channel::Sender;
use fontana_proto::pull::{FreshPull, ShelfPull, ShelfRequest, SourceId};
use fontana_proto::{BlockId, Instant};
use fontana_wire::{Toi, WebAddress};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// A mirror.
pub(super) struct MirrorState {
    pub(super) address: WebAddress,
    pub(super) id: SourceId,
    /// The queue to its thread. `None` once it is dropped.
    orders: Option<Sender<Order>>,
    pub(super) need: Arc<Need>,
    pub(super) kind: Kind,
    pub(super) work: Work,
    /// Failed orders, and files that were missing, since bytes arrived last. It determines pauses.
    pub(super) failures: u32,
    pub(super) retries_at: Instant,
    /// Times in a row that its shelf had nothing to send, and no mirror sent anything.
    pub(super) idle: u32,
    /// When it is asked again for what it does not have.
    pub(super) ask_again_at: Option<Instant>,
    /// Objects of which it has no symbols at present.
    pub(super) missing_symbols: BTreeSet<Toi>,
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
    /// Looks for the index of a shelf.
    Index,
    /// Symbols of a shelf.
    Symbols(Symbols),
    /// Fresh symbols.
    Fresh(Frames),
    Fetch {
        /// The positions of the order.
        range: Range<u64>,
        symbol_size: u16,
        /// The block, if one mirror has to send all of it.
        whole: Option<BlockId>,
    },
}

/// What a mirror has.
#[derive(Debug)]
pub(super) enum Kind {
    /// Not asked yet.
    Unknown,
    /// The files.
    Files,
    /// Blocks of the files: it is still receiving.
    Holder(Holder),
    /// A shelf.
    Shelf(ShelfPull),
    /// Fresh symbols.
    Fresh(FreshPull),
}

/// A mirror that is still receiving.
#[derive(Clone, Copy, Debug)]
pub(super) struct Holder {
    /// When it was asked last what it holds.
    pub(super) asked_at: Instant,
    /// The number of its blocks then.
    pub(super) blocks: u64,
}

/// How often a shelf may have nothing to send, while no mirror sends anything, before it is given
/// up: a block that is being solved may lack another symbol.
pub(super) const MAX_IDLE: u32 = 4;

/// A request for fresh symbols.
#[derive(Debug)]
pub(super) struct Frames {
    pub(super) toi: Toi,
    /// Bytes of a symbol.
    pub(super) symbol_size: u16,
    /// When the others stop counting on it.
    pub(super) due: Instant,
}

/// A request for symbols of a shelf.
#[derive(Debug)]
pub(super) struct Symbols {
    pub(super) request: ShelfRequest,
    /// Symbols that have arrived.
    pub(super) arrived: u64,
    /// When the others stop counting on it.
    pub(super) due: Instant,
}

impl Symbols {
    /// The symbols that have not arrived.
    pub(super) fn left(&self) -> impl Iterator<Item = (BlockId, Range<u32>)> + '_ {
        let mut first = 0;
        self.request.runs.iter().filter_map(move |(block, esis)| {
            let skipped = self.arrived.saturating_sub(first).min((esis.end - esis.start).into());
            first += u64::from(esis.end - esis.start);
            let left = esis.start + skipped as u32..esis.end;
            (!left.is_empty()).then_some((*block, left))
        })
    }
}

impl MirrorState {
    pub(super) fn new(
        address: WebAddress,
        id: SourceId,
        orders: Sender<Order>,
        need: Arc<Need>,
    ) -> Self {
        Self {
            address,
            id,
            orders: Some(orders),
            need,
            kind: Kind::Unknown,
            work: Work::Nothing,
            failures: 0,
            retries_at: Instant::ZERO,
            idle: 0,
            ask_again_at: None,
            missing_symbols: BTreeSet::new(),
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
        self.dropped.is_none() && !matches!(self.kind, Kind::Shelf(_) | Kind::Fresh(_))
    }

    /// Whether it may send a block as a whole, and does not rest for long.
    pub(super) fn may_send_wholes(&self, now: Instant) -> bool {
        self.may_have_files() && self.retries_at <= now + DOUBTFUL_FOR
    }

    /// When the others stop counting on its symbols, if it sends repair symbols.
    pub(super) fn due(&self) -> Option<Instant> {
        match &self.work {
            Work::Symbols(symbols) => Some(symbols.due),
            Work::Fresh(frames) => Some(frames.due),
            Work::Nothing | Work::Manifest | Work::Index | Work::Fetch { .. } => None,
        }
    }

    /// Repair symbols of blocks that it was asked for and has not sent.
    pub(super) fn expected_repairs(&self) -> Vec<(BlockId, u32)> {
        match (&self.work, &self.kind) {
            (Work::Symbols(symbols), _) => {
                symbols.left().map(|(block, esis)| (block, esis.end - esis.start)).collect()
            }
            (Work::Fresh(_), Kind::Fresh(fresh)) => fresh.expected().collect(),
            _ => Vec::new(),
        }
    }

    /// Gives it an order.
    pub(super) fn order(&mut self, order: Order, work: Work) {
        self.work = work;
        if let Some(orders) = &self.orders {
            // The thread runs until its queue is dropped, or reports that it has panicked.
            let _ = orders.send(order);
        }
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

    pub(super) fn on_bytes(&mut self, now: Instant, bytes: usize) {
        (self.failures, self.failing) = (0, None);
        if let Some((_, text)) = &mut self.told {
            text.clear();
        }
        self.bytes += bytes as u64;
        let first = self.arrivals.map_or(now, |(first, _)| first);
        self.arrivals = Some((first, now));
    }

    pub(super) fn report(&self) -> MirrorReport {
        let active = self.arrivals.map(|(first, last)| last.saturating_since(first));
        MirrorReport {
            mirror: self.address.clone(),
            bytes: self.bytes,
            useless_bytes: self.useless_bytes,
            active: active.unwrap_or(Duration::ZERO),
            wrong_blocks: self.wrong_blocks,
            kind: match &self.kind {
                Kind::Shelf(shelf) => MirrorKind::Shelf(shelf.number()),
                Kind::Fresh(_) => MirrorKind::Fresh,
                Kind::Unknown | Kind::Files | Kind::Holder(_) => MirrorKind::Files,
            },
            dropped: self.dropped.clone(),
            failing: self.failing.clone().or_else(|| self.lacks_file.clone()),
        }
    }
}
