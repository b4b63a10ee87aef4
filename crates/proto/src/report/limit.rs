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
    /// At most so many datagrams in any second, but one.
    pub(super) fn new(most: u32) -> Self {
        Self { most: most.max(1) as usize, sent: VecDeque::new() }
    }

    /// No datagram may be sent before.
    pub(super) fn earliest(&self) -> Instant {
        match self.sent.front() {
            Some(&oldest) if self.sent.len() >= self.most => oldest + SECOND,
            _ => Instant::ZERO,
        }
    }

    /// Goes on by another clock, which begins now: at zero.
    pub(super) fn go_on(&mut self, now: Instant) {
        self.sent.retain(|&at| now < at + SECOND);
        self.sent.iter_mut().for_each(|at| *at = Instant::ZERO);
    }

    /// A datagram is sent.
    pub(super) fn spend(&mut self, now: Instant) {
        if self.sent.len() >= self.most {
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
        assert_eq!(limit.earliest(), Instant::ZERO, "one was sent lately");
        limit.spend(at(100));
        assert_eq!(limit.earliest(), at(1_000), "and two now");
    }
}
