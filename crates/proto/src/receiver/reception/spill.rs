//! Early symbols beyond the memory for them, in a file that the driver has.
//!
//! A receiver that joins while a session is sent has heard much of the content before its manifest
//! is complete. A stranger can send symbols in the session's name, too: the file is limited, and
//! what others have brought is freed when their session is refused or forgotten.

use super::{Arrival, Phase, Reception, Surroundings};
use crate::counter::Counter;
use crate::endpoint::SessionKey;
use crate::event::ReceiverOutput;
use crate::job::ReceiveJob;
use crate::receiver::config::{MetadataMode, ReceiverConfig, ReceiverStats};
use crate::receiver::sessions::{CHUNK_BYTES, Chunk, ContentId, SessionState, Standing, records};
use crate::time::Instant;
use std::collections::BTreeSet;

/// Chunks that are read at the same time. Between two batches of packets the driver answers one:
/// it reads faster than packets arrive, and places what it has read before it reads more.
const READ_AHEAD: usize = 4;

/// Which places of the driver's file are used.
#[derive(Debug, Default)]
pub(super) struct SpillFile {
    /// Places that were used, from the beginning of the file on.
    slots: u32,
    /// Those of them that are free.
    free: BTreeSet<u32>,
    /// The first place that the driver has refused.
    refused: Option<u32>,
    /// Chunks that are being read, and the sessions that have brought them.
    reading: Vec<(SessionKey, Chunk)>,
}

impl SpillFile {
    /// A free place, the first one; `None` if there is none within so many bytes.
    fn take(&mut self, max_bytes: u64) -> Option<u32> {
        let limit = max_bytes.checked_div(CHUNK_BYTES as u64).unwrap_or(0);
        let limit = u32::try_from(limit).unwrap_or(u32::MAX).min(self.refused.unwrap_or(u32::MAX));
        if let Some(slot) = self.free.first().copied().filter(|&slot| slot < limit) {
            self.free.remove(&slot);
            return Some(slot);
        }
        let slot = self.slots;
        let has_room = slot < limit;
        self.slots.count(u32::from(has_room));
        has_room.then_some(slot)
    }

    /// Whether it has been written to, and nothing in it is needed.
    fn is_idle(&self) -> bool {
        self.slots > 0 && self.free.len() >= self.slots as usize
    }
}

fn offset_of(slot: u32) -> u64 {
    u64::from(slot).saturating_mul(CHUNK_BYTES as u64)
}

fn slot_at(offset: u64) -> u32 {
    let slot = offset.checked_div(CHUNK_BYTES as u64).unwrap_or(0);
    u32::try_from(slot).unwrap_or(u32::MAX)
}

/// Whether a head that was checked shows that a session carries what is expected. Without an
/// expectation any host can be the sender of a session.
fn is_named(config: &ReceiverConfig, session: &SessionState) -> bool {
    let expected = &config.expectation;
    config.metadata == MetadataMode::Manifest
        && (expected.manifest.is_some() || expected.publisher.is_some())
        && matches!(session.content, Some(ContentId::Manifest(_)))
        && session.standing != Standing::Refused
}

impl Reception {
    /// Stores a symbol in the driver's file, with others. False if it is not.
    #[cold]
    pub(super) fn spill(
        &mut self,
        config: &ReceiverConfig,
        session: &mut SessionState,
        arrival: &Arrival<'_>,
    ) -> bool {
        let &Arrival { block, esi, encoding_id, source, symbol, .. } = arrival;
        let max_bytes = config.limits.max_spilled_bytes;
        if max_bytes < CHUNK_BYTES as u64 || !is_named(config, session) {
            return false;
        }
        if !session.spilled.has_room(symbol.len()) {
            let Some(slot) = self.spill.take(max_bytes) else { return false };
            let bytes = session.spilled.complete(slot);
            let job = ReceiveJob::Spill { offset: offset_of(slot), bytes };
            self.outputs.push_back(ReceiverOutput::Job(job));
        }
        session.spilled.push(block, (esi, encoding_id), source, symbol)
    }

    /// Begins to place what a session has in the file, if its objects are open by now.
    pub(super) fn place_spilled(
        &mut self,
        config: &ReceiverConfig,
        now: Instant,
        session: &mut SessionState,
        stats: &mut ReceiverStats,
    ) {
        if session.spilled.is_empty() || !self.transfer.opening().is_empty() {
            return;
        }
        let rest = session.spilled.take_records();
        self.place_records(config, now, session, &rest, stats);
        self.read_spilled(session);
    }

    /// Reads the next chunks of a session.
    fn read_spilled(&mut self, session: &mut SessionState) {
        while self.spill.reading.len() < READ_AHEAD
            && let Some(chunk) = session.spilled.chunks.pop_front()
        {
            self.spill.reading.push((session.key, chunk));
            let (offset, length) = (offset_of(chunk.slot), chunk.length);
            let job = ReceiveJob::ReadSpill { offset, length };
            self.outputs.push_back(ReceiverOutput::Job(job));
        }
    }

    /// Places the symbols of a chunk. Returns how many there are.
    fn place_records(
        &mut self,
        config: &ReceiverConfig,
        now: Instant,
        session: &mut SessionState,
        bytes: &[u8],
        stats: &mut ReceiverStats,
    ) -> u64 {
        let symbols: Vec<_> = records(bytes).collect();
        let count = symbols.len() as u64;
        let of_content = symbols.into_iter().filter(|symbol| self.expects(symbol.block.toi));
        let of_content: Vec<_> = of_content.collect();
        self.place_saved(config, now, session, of_content, stats);
        count
    }

    /// The driver has read a chunk.
    pub(super) fn on_spill_read(
        &mut self,
        around: &mut Surroundings<'_>,
        now: Instant,
        offset: u64,
        bytes: &[u8],
    ) {
        let slot = slot_at(offset);
        let Some(at) = self.spill.reading.iter().position(|(_, chunk)| chunk.slot == slot) else {
            return;
        };
        let (key, chunk) = self.spill.reading.swap_remove(at);
        self.spill.free.insert(slot);
        let is_needed = self.phase == Phase::Listening;
        let session = around.sessions.find(key).and_then(|at| around.sessions.get_mut(at));
        if let Some(session) = session.filter(|s| is_needed && s.standing == Standing::Accepted) {
            let bytes = bytes.get(..chunk.length as usize).unwrap_or(bytes);
            let (config, stats) = (around.config, &mut *around.stats);
            let read = self.place_records(config, now, session, bytes, stats);
            count_lost(stats, chunk.symbols.saturating_sub(read));
        }
        for session in around.sessions.iter_mut() {
            if !is_needed {
                self.free_spilled(session);
            } else if session.standing == Standing::Accepted {
                self.read_spilled(session);
            }
        }
        self.drop_idle_spill();
    }

    /// The driver has not stored a chunk, nor will it store any behind it.
    pub(super) fn on_spill_refused(&mut self, around: &mut Surroundings<'_>, offset: u64) {
        let slot = slot_at(offset);
        self.spill.refused = Some(self.spill.refused.map_or(slot, |first| first.min(slot)));
        // It may be free again, or be read already.
        let is_it = |chunk: &Chunk| chunk.slot == slot;
        if let Some((_, chunk)) = self.spill.reading.iter_mut().find(|(_, chunk)| is_it(chunk)) {
            chunk.length = 0;
        }
        for chunks in around.sessions.iter_mut().map(|session| &mut session.spilled.chunks) {
            if let Some(at) = chunks.iter().position(is_it)
                && let Some(chunk) = chunks.remove(at)
            {
                self.spill.free.insert(slot);
                count_lost(around.stats, chunk.symbols);
            }
        }
        self.drop_idle_spill();
    }

    /// Frees what a session has in the file.
    pub(super) fn discard_spilled(&mut self, session: &mut SessionState) {
        self.free_spilled(session);
        self.drop_idle_spill();
    }

    fn free_spilled(&mut self, session: &mut SessionState) {
        session.spilled.take_records();
        self.spill.free.extend(session.spilled.chunks.drain(..).map(|chunk| chunk.slot));
    }

    fn drop_idle_spill(&mut self) {
        if self.spill.is_idle() {
            self.spill = SpillFile::default();
            self.outputs.push_back(ReceiverOutput::Job(ReceiveJob::DropSpill));
        }
    }
}

/// Counts symbols that were stored and cannot be read.
fn count_lost(stats: &mut ReceiverStats, symbols: u64) {
    stats.spilled.discount(symbols);
    stats.without_room.count(symbols);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_used_again_within_the_limit_and_before_a_refused_one() {
        let mut file = SpillFile::default();
        let limit = 3 * CHUNK_BYTES as u64 + 1;
        assert!(!file.is_idle(), "it was never used");
        let taken: Vec<_> = (0..4).map(|_| file.take(limit)).collect();
        assert_eq!(taken, [Some(0), Some(1), Some(2), None]);
        file.free.extend([1, 2]);
        file.refused = Some(2);
        assert_eq!((file.take(limit), file.take(limit)), (Some(1), None));
        file.free.extend([0, 1]);
        assert!(file.is_idle());
    }
}
