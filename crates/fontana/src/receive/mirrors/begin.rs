//! When mirrors begin, beside a group: at once, or for what the group leaves.

use super::Mirrors;
use crate::receive::options::SILENCE;
use crate::web::after::WebAfter;
use fontana_proto::{Instant, Receiver};

/// Mirrors that wait for the group.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    after: WebAfter,
    /// Packets of the session so far, and when the last one of them was noticed.
    packets: u64,
    heard_at: Instant,
}

impl Waiting {
    pub(super) fn new(after: WebAfter) -> Self {
        Self { after, packets: 0, heard_at: Instant::ZERO }
    }
}

impl Mirrors {
    /// Whether the mirrors wait for the group. They wait for a time; or for a share of the content,
    /// but not while nothing arrives from the group.
    pub(super) fn wait(&mut self, now: Instant, receiver: &Receiver) -> bool {
        let Some(waiting) = &mut self.waiting else { return false };
        let packets = receiver.session_packets();
        if packets != waiting.packets {
            (waiting.packets, waiting.heard_at) = (packets, now);
        }
        let is_over = match waiting.after {
            WebAfter::Time(time) => now >= Instant::ZERO + time,
            WebAfter::Permille(_) if now.saturating_since(waiting.heard_at) >= SILENCE => true,
            // Nothing is known of objects that are not open.
            WebAfter::Permille(permille) => {
                let (all, wanted) = (receiver.source_symbols(), receiver.symbols_wanted());
                let received = all.saturating_sub(wanted);
                all > 0 && received * 1_000 >= all * u64::from(permille)
            }
        };
        if is_over {
            tracing::info!("the mirrors begin");
            self.waiting = None;
        }
        !is_over
    }
}
