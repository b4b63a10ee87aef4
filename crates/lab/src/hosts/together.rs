//! What the threads of a run have in common.

use super::HostsError;
use fontana_net::Clock;
use fontana_proto::Instant;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::Duration;

/// Longest wait, so that threads notice the end of a run soon.
pub(super) const ATTENTION: Duration = Duration::from_millis(20);
/// UDP port of all hosts. No other program uses them.
pub(super) const PORT: u16 = 7701;

/// Ends the run when dropped, also when an error or a panic leaves the scope: all threads of the
/// run read this flag.
pub(super) struct EndRun<'a>(pub(super) &'a AtomicBool);

impl Drop for EndRun<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Joins a thread of a run.
pub(super) fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> Result<T, HostsError> {
    thread.join().map_err(|_| HostsError::Job("a thread of a run has panicked"))
}

/// The time of a run.
pub(super) fn now(clock: Clock) -> Instant {
    Instant::from_nanos(clock.now_nanos())
}
