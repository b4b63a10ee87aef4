//! How many datagrams a receiver sends in a second, at most.

use crate::time::Instant;
use std::collections::VecDeque;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// A limit on the datagrams of any second.
#[derive(Debug)]
pub(super) struct SecondLimit {
    most: usize,
    /// When the last ones were sent, oldest first.
    sent: VecDeque<Instant>,
}

impl SecondLimit {
    /// How many times as many a burst may be, at most.
    pub(super) const MOST_BURST: usize = 10;

    /// At most so many datagrams in any second, but one.
    pub(super) fn new(most: u32) -> Self {
        Self { most: most.max(1) as usize, sent: VecDeque::new() }
    }

    /// No datagram may be sent before. Within a burst, so many times as many are permitted, at most
    /// [`MOST_BURST`](Self::MOST_BURST).
    pub(super) fn earliest(&self, burst: usize) -> Instant {
        let most = self.most * burst.clamp(1, Self::MOST_BURST);
        let oldest = self.sent.len().checked_sub(most).and_then(|at| self.sent.get(at));
        oldest.map_or(Instant::ZERO, |&oldest| oldest + SECOND)
    }

    /// Goes on by another clock, which begins now: at zero.
    pub(super) fn go_on(&mut self, now: Instant) {
        self.sent.retain(|&at| now < at + SECOND);
        self.sent.iter_mut().for_each(|at| *at = Instant::ZERO);
    }

    /// A datagram is sent.
    pub(super) fn spend(&mut self, now: Instant) {
        if self.sent.len() >= self.most * Self::MOST_BURST {
            self.sent.pop_front();
        }
        self.sent.push_back(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_goes_on_by_another_clock() {
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let mut limit = SecondLimit::new(2);
        [0, 5_000].into_iter().for_each(|ms| limit.spend(at(ms)));
        limit.go_on(at(5_300));
        assert_eq!(limit.earliest(1), Instant::ZERO, "one was sent lately");
        limit.spend(at(100));
        assert_eq!(limit.earliest(1), at(1_000), "and two now");
        assert_eq!(limit.earliest(2), Instant::ZERO, "which may be four");
        (0..2).for_each(|_| limit.spend(at(150)));
        assert_eq!((limit.earliest(1), limit.earliest(2)), (at(1_150), at(1_000)));
    }
}
