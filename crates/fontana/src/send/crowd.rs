//! When the state of all receivers is shown.

use crate::event::SendEvent;
use crate::reporting::Crowd;
use fontana_proto::Instant;
use fontana_proto::report::ReportCollector;
use std::sync::Arc;
use std::time::Duration;

/// Interval of the state of the receivers that are not complete, or have changed.
const NOTABLE_EVERY: Duration = Duration::from_secs(1);
/// Largest number of these.
const MAX_NOTABLE: usize = 2_000;
/// Interval of the state of all receivers.
const WHOLE_EVERY: Duration = Duration::from_secs(60);

/// Takes snapshots of what is known of the receivers.
pub(super) struct CrowdWatch {
    next: Instant,
    next_whole: Instant,
    is_authenticated: bool,
}

impl CrowdWatch {
    pub(super) fn new(is_authenticated: bool) -> Self {
        let next_whole = Instant::ZERO + WHOLE_EVERY;
        Self { next: Instant::ZERO, next_whole, is_authenticated }
    }

    /// The snapshot that is due.
    pub(super) fn poll(
        &mut self,
        now: Instant,
        collector: &mut ReportCollector,
    ) -> Option<SendEvent> {
        if now < self.next {
            return None;
        }
        self.next = now + NOTABLE_EVERY;
        if now >= self.next_whole {
            self.next_whole = now + WHOLE_EVERY;
            return Some(SendEvent::Crowd(self.whole(collector)));
        }
        let crowd = Crowd {
            summary: collector.summary(),
            receivers: collector.notable(MAX_NOTABLE),
            is_whole: false,
            is_authenticated: self.is_authenticated,
        };
        Some(SendEvent::Crowd(Arc::new(crowd)))
    }

    /// The state of all receivers.
    pub(super) fn whole(&self, collector: &ReportCollector) -> Arc<Crowd> {
        Arc::new(Crowd {
            summary: collector.summary(),
            receivers: collector.receivers().cloned().collect(),
            is_whole: true,
            is_authenticated: self.is_authenticated,
        })
    }
}
