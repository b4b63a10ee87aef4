//! A limit to the rate of all mirrors together.

use super::patience::Need;
use crate::shared::Lock;
use std::time::{Duration, Instant};

/// How long the sum of what arrives may be ahead of the rate: a piece that was read late is made up
/// for.
const BURST: Duration = Duration::from_millis(100);
/// Longest sleep until it is noticed that nothing more is needed.
const SLICE: Duration = Duration::from_millis(100);

/// A limit that the threads of all mirrors share. Each waits after what it has read, and TCP then
/// slows its server down.
#[derive(Debug)]
pub(crate) struct RateLimit {
    bytes_per_second: u64,
    /// When what was read so far is due.
    due: Lock<Option<Instant>>,
}

impl RateLimit {
    pub(crate) fn new(bytes_per_second: u64) -> Self {
        Self { bytes_per_second: bytes_per_second.max(1), due: Lock::default() }
    }

    /// Waits until `bytes` bytes, which were read, are due, or nothing more is needed.
    pub(super) fn wait(&self, bytes: u64, need: &Need) {
        let due = self.count(bytes, Instant::now());
        while need.left() > 0 {
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            std::thread::sleep(left.min(SLICE));
        }
    }

    /// Counts bytes that were read now. Returns when they are due.
    fn count(&self, bytes: u64, now: Instant) -> Instant {
        let time = Duration::from_secs_f64(bytes as f64 / self.bytes_per_second as f64);
        let mut due = self.due.lock();
        let earliest = now.checked_sub(BURST).unwrap_or(now);
        let from = due.map_or(now, |due| due.max(earliest));
        *due.insert(from + time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_due_at_the_rate_and_time_without_reading_is_lost() {
        let (limit, start) = (RateLimit::new(1_000), Instant::now());
        let after = |milliseconds| start + Duration::from_millis(milliseconds);
        assert_eq!(limit.count(500, start), after(500));
        assert_eq!(limit.count(500, after(100)), after(1_000));
        // A tenth of a second is made up for, and not the hour before.
        assert_eq!(limit.count(100, after(1_050)), after(1_100));
        assert_eq!(limit.count(100, after(3_600_000)), after(3_600_000));
    }
}
