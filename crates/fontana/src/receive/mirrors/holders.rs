//! Mirrors that are still receiving: they have blocks, and more of them each time that they are
//! asked.

use super::Common;
use super::source::{Holder, Source};
use super::state::MirrorState;
use fontana_proto::Instant;
use fontana_proto::pull::{RangeSet, SourceId};
use fontana_wire::Hash;
use std::time::Duration;

/// Time after which a mirror that is receiving is asked again what it holds before its next
/// request: a block of a megabyte takes that long at 16 Mbit/s. If it holds nothing that is
/// lacking, it is asked at once, and answers when it has more.
pub(super) const ASK_HOLDER: Duration = Duration::from_millis(500);

/// Least time between two such requests: of one that does not wait.
const LEAST_WAIT: Duration = Duration::from_millis(50);

impl Holder {
    /// Whether it was asked this long ago.
    pub(super) fn is_due(&self, now: Instant, after: Duration) -> bool {
        now >= self.asked_at + after
    }
}

impl Common {
    /// Notes what a mirror holds; `None` if it is not receiving.
    pub(super) fn set_held(&mut self, id: SourceId, held: Option<RangeSet>) {
        let is_first = held.is_some() && !self.has_holders;
        self.pull.set_held(id, held);
        if is_first && let Some(files) = &self.files {
            self.has_holders = true;
            // Receivers that name each other as mirrors get different blocks of the others.
            let starts = files.blocks().filter_map(|block| Some(files.positions(block)?.start));
            self.pull.scatter(self.random, starts.collect());
        }
    }
}

impl MirrorState {
    /// It has nothing that is lacking. If it is receiving, it may have by now.
    pub(super) fn on_nothing_held(&mut self, now: Instant, content: Option<Hash>) {
        if let Source::Holder(holder) = self.source
            && holder.is_due(now, LEAST_WAIT)
        {
            self.ask_for_index(content, Some(holder.blocks));
        }
    }
}
