//! Mirrors that are still receiving: they have blocks, and more of them each time that they are
//! asked.

use super::Mirrors;
use super::state::{Holder, Kind};
use fontana_proto::Instant;
use fontana_proto::pull::RangeSet;
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

impl Mirrors {
    /// Notes what a mirror holds; `None` if it is not receiving.
    pub(super) fn set_held(&mut self, number: usize, held: Option<RangeSet>) {
        let Some(id) = self.mirrors.get(number).map(|mirror| mirror.id) else { return };
        let is_first = held.is_some() && !self.has_holders;
        self.pull.set_held(id, held);
        if is_first && let Some(files) = &self.files {
            self.has_holders = true;
            // Receivers that name each other as mirrors get different blocks of the others.
            let starts = files.blocks().filter_map(|block| Some(files.positions(block)?.start));
            self.pull.scatter(self.random, starts.collect());
        }
    }

    /// A mirror has nothing that is lacking. If it is receiving, it may have by now.
    pub(super) fn on_nothing_held(&mut self, now: Instant, number: usize) {
        let kind = self.mirrors.get(number).map(|mirror| &mirror.kind);
        if let Some(Kind::Holder(holder)) = kind {
            let (blocks, due) = (holder.blocks, holder.is_due(now, LEAST_WAIT));
            if due {
                self.order_index(number, Some(blocks));
            }
        }
    }
}
