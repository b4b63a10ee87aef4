//! Plain FLUTE sessions among those that a receiver of Fontana's sessions hears: they are reported,
//! so that they can be received as what they are.

use crate::endpoint::SessionKey;
use crate::event::ReceiverEvent;
use crate::receiver::sessions::TableCollector;
use crate::time::Instant;
use fontana_wire::{FdtFile, FdtLimits, Packet, Payload};
use std::collections::BTreeMap;
use std::time::Duration;

/// Time for which tables of a session are heard, and nothing of Fontana, before it is reported: a
/// sender of Fontana repeats its head several times in it.
const HEARD_FOR: Duration = Duration::from_secs(3);
/// Time after the last table after which a session is forgotten.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(30);
/// Sessions that are watched at a time. Each holds at most four tables.
const MAX_SESSIONS: usize = 4;

/// What a table may ask for before anyone wants it.
fn limits() -> FdtLimits {
    FdtLimits {
        encoded_bytes: 256 << 10,
        decoded_bytes: 1 << 20,
        files: 10_000,
        ..FdtLimits::default()
    }
}

/// The sessions with tables, and without a head.
#[derive(Debug, Default)]
pub(super) struct ForeignSessions(BTreeMap<SessionKey, Sighting>);

/// A session that may be plain FLUTE.
#[derive(Debug)]
struct Sighting {
    since: Instant,
    last: Instant,
    tables: TableCollector,
    /// Files of the last table that was read.
    files: usize,
    is_reported: bool,
}

impl ForeignSessions {
    /// A packet of a table, in a session of which nothing of Fontana was heard. Reports the session
    /// once.
    pub(super) fn on_table(
        &mut self,
        now: Instant,
        session: SessionKey,
        packet: &Packet<'_>,
        payload: &Payload<'_>,
    ) -> Option<ReceiverEvent> {
        packet.header.extensions.fdt()?;
        self.0.retain(|_, own| now.saturating_since(own.last) < FORGOTTEN_AFTER);
        if self.0.len() >= MAX_SESSIONS && !self.0.contains_key(&session) {
            return None;
        }
        let own = self.0.entry(session).or_insert_with(|| Sighting {
            since: now,
            last: now,
            tables: TableCollector::default(),
            files: 0,
            is_reported: false,
        });
        own.last = now;
        if let Some(Ok(table)) = own.tables.on_symbol(now, packet, payload, &limits()) {
            // A session of Fontana lists objects that other programs cannot use.
            let is_ours = table.fdt.files.iter().any(FdtFile::is_of_fontana);
            own.files = if is_ours { 0 } else { table.fdt.files.len() };
        }
        let is_due = own.files > 0 && now.saturating_since(own.since) >= HEARD_FOR;
        (is_due && !std::mem::replace(&mut own.is_reported, true))
            .then_some(ReceiverEvent::FluteFound { session, files: own.files as u64 })
    }

    /// A packet that only sessions of Fontana have.
    pub(super) fn remove(&mut self, session: SessionKey) {
        self.0.remove(&session);
    }
}
