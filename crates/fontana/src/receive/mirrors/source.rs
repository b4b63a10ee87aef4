//! What a mirror has.

use super::fresh::FreshServer;
use super::lacking::Lacking;
use super::shelf::Shelf;
use crate::web::mirror::Fetch;
use crate::web::report::MirrorKind;
use fontana_proto::{BlockId, Instant};
use fontana_wire::Hash;
use std::time::Duration;

/// What a mirror has, and what it was asked for of its repair symbols.
#[derive(Debug)]
pub(super) enum Source {
    /// Not asked yet.
    Unknown,
    /// The files.
    Files,
    /// Blocks of the files: it is still receiving.
    Holder(Holder),
    /// Repair symbols in files.
    Shelf(Shelf),
    /// Repair symbols that it computes.
    Fresh(FreshServer),
}

/// A mirror that is still receiving.
#[derive(Clone, Copy, Debug)]
pub(super) struct Holder {
    /// When it was asked last what it holds.
    pub(super) asked_at: Instant,
    /// The number of its blocks then.
    pub(super) blocks: u64,
}

impl Source {
    /// Whether it has repair symbols instead of files.
    pub(super) fn has_repair(&self) -> bool {
        matches!(self, Self::Shelf(_) | Self::Fresh(_))
    }

    /// The next request for repair symbols, which takes this time at most. `None`: it has none that
    /// are lacking.
    pub(super) fn next_request(
        &mut self,
        now: Instant,
        time: Duration,
        content: Hash,
        lacking: Lacking<'_>,
    ) -> Option<Fetch> {
        match self {
            Self::Unknown | Self::Files | Self::Holder(_) => None,
            Self::Shelf(shelf) => shelf.next_request(now, time, content, lacking),
            Self::Fresh(fresh) => fresh.next_request(now, time, content, &lacking),
        }
    }

    /// When the others stop counting on what it was asked for, if it sends repair symbols.
    pub(super) fn due(&self) -> Option<Instant> {
        match self {
            Self::Unknown | Self::Files | Self::Holder(_) => None,
            Self::Shelf(shelf) => shelf.due(),
            Self::Fresh(fresh) => fresh.due(),
        }
    }

    /// Repair symbols of blocks that it was asked for and has not sent.
    pub(super) fn expected(&self) -> Vec<(BlockId, u32)> {
        match self {
            Self::Unknown | Self::Files | Self::Holder(_) => Vec::new(),
            Self::Shelf(shelf) => shelf.expected(),
            Self::Fresh(fresh) => fresh.expected(),
        }
    }

    /// Whether it has repair symbols of all objects.
    pub(super) fn is_whole(&self) -> bool {
        !matches!(self, Self::Shelf(shelf) if !shelf.is_whole())
    }

    /// Repair symbols per second.
    pub(super) fn rate(&self, now: Instant) -> Option<f64> {
        match self {
            Self::Unknown | Self::Files | Self::Holder(_) => None,
            Self::Shelf(shelf) => shelf.rate(now),
            Self::Fresh(fresh) => fresh.rate(now),
        }
    }

    pub(super) fn kind(&self) -> MirrorKind {
        match self {
            Self::Unknown | Self::Files | Self::Holder(_) => MirrorKind::Files,
            Self::Shelf(shelf) => MirrorKind::Shelf(shelf.number()),
            Self::Fresh(_) => MirrorKind::Fresh,
        }
    }
}
