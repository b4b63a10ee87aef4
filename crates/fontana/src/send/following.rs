//! What the collecting thread and the pacing thread of a stream tell each other.

use super::update::{StreamUpdate, Update};
use crate::reporting::AwaitedReceivers;
use crossbeam_channel::{SendError, Sender};
use fontana_proto::Instant;
use fontana_proto::report::{ExpectedState, ReceiverStatus, ReportCollector};
use fontana_wire::ReceiverState;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Interval of the checks that look at every receiver.
const CHECK_EVERY: Duration = Duration::from_millis(50);
/// Longest wait of the collecting thread while fragments may be repaired: a round begins within it.
const REPAIR_LATENCY: Duration = Duration::from_millis(10);

/// What the pacing thread says.
#[derive(Debug, Default)]
pub(super) struct StreamProgress {
    /// A roll call is wanted soon.
    wants_call: AtomicBool,
    /// The stream has been sent to its end.
    is_sent: AtomicBool,
}

impl StreamProgress {
    pub(super) fn want_call(&self) {
        self.wants_call.store(true, Ordering::Release);
    }

    pub(super) fn set_sent(&self) {
        self.is_sent.store(true, Ordering::Release);
    }
}

/// The collecting thread's side of a stream.
pub(super) struct StreamStage {
    pub(super) progress: Arc<StreamProgress>,
    /// Receivers to wait for before the beginning; 0: none.
    pub(super) waits_for: u32,
    /// Repair follows what receivers request.
    pub(super) repairs: bool,
    awaited: Option<AwaitedReceivers>,
    is_followed: bool,
    next_check: Instant,
    sent_since: Option<Instant>,
}

impl StreamStage {
    pub(super) fn new(progress: Arc<StreamProgress>, waits_for: u32, repairs: bool) -> Self {
        Self {
            progress,
            waits_for,
            repairs,
            awaited: None,
            is_followed: false,
            next_check: Instant::ZERO,
            sent_since: None,
        }
    }

    /// Tells the pacing thread who reports. `counts`: which reports count. Returns whether a roll
    /// call is wanted.
    pub(super) fn poll(
        &mut self,
        now: Instant,
        collector: &ReportCollector,
        counts: impl Fn(&ReceiverStatus) -> bool,
        updates: &Sender<Update>,
    ) -> Result<bool, SendError<Update>> {
        if self.progress.is_sent.load(Ordering::Acquire) {
            self.sent_since.get_or_insert(now);
        }
        if now >= self.next_check {
            self.next_check = now + CHECK_EVERY;
            if self.is_waiting() {
                let awaited = self.count(collector, &counts);
                if self.awaited.as_ref() != Some(&awaited) {
                    updates.send(Update::Stream(StreamUpdate::Awaited(awaited.clone())))?;
                    self.awaited = Some(awaited);
                }
            }
            let is_followed = collector.is_followed(counts);
            if self.repairs && is_followed != self.is_followed {
                self.is_followed = is_followed;
                updates.send(Update::Stream(StreamUpdate::Followed(is_followed)))?;
            }
        }
        Ok(self.progress.wants_call.swap(false, Ordering::AcqRel))
    }

    fn count(
        &self,
        collector: &ReportCollector,
        counts: impl Fn(&ReceiverStatus) -> bool,
    ) -> AwaitedReceivers {
        let is_present = |status: &&ReceiverStatus| {
            counts(status) && !matches!(status.report.state, ReceiverState::Failed { .. })
        };
        let known = collector.receivers().filter(is_present).count();
        let missing = collector.summary().missing.into_iter();
        let missing = missing.filter(|missing| missing.state == ExpectedState::NeverHeard);
        AwaitedReceivers {
            receivers: self.waits_for,
            known: u32::try_from(known).unwrap_or(u32::MAX),
            missing: missing.map(|missing| missing.label).collect(),
        }
    }

    /// Whether the stream waits for receivers.
    pub(super) fn is_waiting(&self) -> bool {
        self.waits_for > 0 && !self.awaited.as_ref().is_some_and(AwaitedReceivers::is_over)
    }

    /// Since when the stream has been sent to its end.
    pub(super) fn sent_since(&self) -> Option<Instant> {
        self.sent_since
    }

    /// Longest wait of the collecting thread, if it is limited.
    pub(super) fn patience(&self) -> Option<Duration> {
        self.is_followed.then_some(REPAIR_LATENCY)
    }
}
