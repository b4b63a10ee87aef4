//! Repair on demand: what receivers request, between the collecting and the pacing thread.

use super::options::SendOptions;
use super::update::Update;
use crate::content::Content;
use crate::error::{Error, SetupError};
use crossbeam_channel::{SendError, Sender};
use fontana_fec::{EncodingId, Sbn};
use fontana_proto::report::{RepairConfig, RepairRounds};
use fontana_proto::{BlockId, Instant, SendMode};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Largest number of blocks that a roll call says are being sent: half of a packet.
const PENDING_CAPACITY: usize = 48;
/// Receivers whose requests are remembered, 50 bytes each.
const MAX_RECEIVERS: usize = 1 << 16;
/// Longest wait until the collecting thread sees that symbols are sent.
const SENT_LATENCY: Duration = Duration::from_millis(2);

/// Most source symbols of a block of Reed-Solomon. It has as many repair symbols, for receivers
/// that lose half; those of a longer block would repeat while receivers still lack some.
const MOST_OF_REED_SOLOMON: u32 = 128;

/// How many of the requests that the pacing thread has taken are sent: 0 before the source symbols
/// are, then one more than the requests.
pub(super) type SentRequests = Arc<AtomicU64>;

/// What the session repairs, if it repairs on demand.
pub(super) fn repair_config(
    options: &SendOptions,
    content: &Content,
    channels: u8,
    packets_per_second: f64,
) -> Result<Option<RepairConfig>, Error> {
    if options.mode != SendMode::RepairOnDemand {
        return Ok(None);
    }
    let needs = |needs| Err(SetupError::RepairOnDemand { needs }.into());
    let Some(reports) = options.format.fontana().and_then(|format| format.reports.as_ref()) else {
        return needs("reports, with which receivers request");
    };
    if channels != 1 {
        return needs("a session on one channel");
    }
    let mut blocks = BTreeMap::new();
    for object in &content.objects {
        let layout = object.source.layout();
        let code = layout.oti().scheme.profile();
        if !code.is_rateless && !code.is_mds {
            return needs("RaptorQ, Raptor, LT, Reed-Solomon, or no code (not Tornado)");
        }
        let repeats_soon = !code.is_rateless && code.encoding_id != EncodingId::NO_CODE;
        for sbn in (0..layout.block_count()).map(Sbn) {
            let k = layout.source_symbols(sbn).unwrap_or(0);
            if repeats_soon && k > MOST_OF_REED_SOLOMON {
                return needs("blocks of at most 128 symbols with Reed-Solomon");
            }
            blocks.insert(BlockId { toi: object.toi, sbn }, k);
        }
    }
    Ok(Some(RepairConfig {
        blocks,
        symbols_per_second: packets_per_second,
        pending_capacity: PENDING_CAPACITY,
        max_receivers: MAX_RECEIVERS,
        max_age: reports.max_age,
        trusts_unauthenticated: reports.trust_unauthenticated,
        has_signers: reports.has_signers(),
    }))
}

/// The repair rounds of the collecting thread.
pub(super) struct RepairStage {
    pub(super) rounds: RepairRounds,
    sent: SentRequests,
    /// Requests that were handed to the pacing thread.
    given: u64,
    silent_since: Option<Instant>,
    losses: Losses,
}

/// Whether a receiver has lost packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Losses {
    None,
    Reported,
    /// The pacing thread knows.
    Told,
}

impl RepairStage {
    pub(super) fn new(config: RepairConfig, sent: SentRequests) -> Self {
        let rounds = RepairRounds::new(config, Instant::ZERO);
        Self { rounds, sent, given: 0, silent_since: None, losses: Losses::None }
    }

    /// A receiver has lost packets, or requests symbols.
    pub(super) fn note_losses(&mut self) {
        if self.losses == Losses::None {
            self.losses = Losses::Reported;
        }
    }

    /// Continues the round. Returns whether a roll call is wanted.
    pub(super) fn poll(
        &mut self,
        now: Instant,
        updates: &Sender<Update>,
    ) -> Result<bool, SendError<Update>> {
        if self.losses == Losses::Reported {
            self.losses = Losses::Told;
            updates.send(Update::Losses)?;
        }
        if let Some(symbols) = self.rounds.poll_symbols() {
            self.given += 1;
            updates.send(Update::Repair(symbols))?;
        }
        if let Some(symbols) = self.rounds.poll_named() {
            self.given += 1;
            updates.send(Update::Resend(symbols))?;
        }
        if self.is_sent() {
            self.rounds.handle_sent(now);
        }
        self.rounds.handle_timeout(now);
        self.silent_since =
            if self.rounds.is_silent() { self.silent_since.or(Some(now)) } else { None };
        Ok(self.rounds.wants_call(now))
    }

    fn is_sent(&self) -> bool {
        self.sent.load(Ordering::Acquire) == 1 + self.given
    }

    /// Since when nothing has been lacking.
    pub(super) fn silent_since(&self) -> Option<Instant> {
        self.silent_since
    }

    /// Longest wait of the collecting thread.
    pub(super) fn patience(&self, now: Instant) -> Duration {
        match self.rounds.poll_timeout().filter(|_| self.is_sent()) {
            Some(due) => due.saturating_since(now),
            None => SENT_LATENCY,
        }
    }
}

/// The pacing thread's side: says when all symbols are sent.
pub(super) struct RepairProgress {
    sent: SentRequests,
    /// Requests that were taken.
    taken: u64,
}

impl RepairProgress {
    pub(super) fn new(sent: SentRequests) -> Self {
        Self { sent, taken: 0 }
    }

    /// A request was taken.
    pub(super) fn take(&mut self) {
        self.taken += 1;
    }

    /// All symbols have been given to the kernel.
    pub(super) fn all_sent(&self) {
        self.sent.store(1 + self.taken, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pacing_thread_is_told_once_that_receivers_lose_packets() {
        let config = RepairConfig {
            blocks: BTreeMap::new(),
            symbols_per_second: 1e3,
            pending_capacity: PENDING_CAPACITY,
            max_receivers: 1,
            max_age: None,
            trusts_unauthenticated: false,
            has_signers: false,
        };
        let mut stage = RepairStage::new(config, SentRequests::default());
        let (updates, told) = crossbeam_channel::unbounded();
        let mut told_after = |loses: bool| {
            if loses {
                stage.note_losses();
            }
            stage.poll(Instant::ZERO, &updates).unwrap();
            told.try_iter().filter(|update| matches!(update, Update::Losses)).count()
        };
        assert_eq!([false, true, false, true].map(&mut told_after), [0, 1, 0, 0]);
    }
}
