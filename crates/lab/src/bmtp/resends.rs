//! Which requests a sender answers (section 3): those for which it has the bandwidth at once. It
//! forgets the others, and receivers repeat them.

use fontana_proto::Instant;
use std::collections::VecDeque;
use std::time::Duration;

/// Part of the packets that may be resends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResendShare {
    /// Half of them.
    Half,
    /// All of them: requests are always answered, before new data is sent.
    All,
}

/// Most requests that wait for an answer. The sender answers as fast as it sends, so that
/// [`ResendShare::All`] alone can reach it.
const MOST_WAITING: usize = 1 << 16;

/// The requests that are answered next, and what was sent in the last control interval.
#[derive(Clone, Debug)]
pub(super) struct ResendQueue {
    share: ResendShare,
    interval: Duration,
    waiting: VecDeque<u64>,
    recent: VecDeque<SentPacket>,
    recent_resends: usize,
}

#[derive(Clone, Copy, Debug)]
struct SentPacket {
    at: Instant,
    is_resend: bool,
}

impl ResendQueue {
    /// An empty queue. `interval`: the control interval.
    pub(super) fn new(share: ResendShare, interval: Duration) -> Self {
        let (waiting, recent) = (VecDeque::new(), VecDeque::new());
        Self { share, interval, waiting, recent, recent_resends: 0 }
    }

    /// A receiver requests a payload. Returns whether it will be sent.
    pub(super) fn request(&mut self, now: Instant, data: u64) -> bool {
        self.forget(now);
        let resends = self.recent_resends + self.waiting.len();
        let accepted = match self.share {
            ResendShare::Half => 2 * resends < self.recent.len(),
            ResendShare::All => true,
        };
        let accepted = accepted && self.waiting.len() < MOST_WAITING;
        if accepted {
            self.waiting.push_back(data);
        }
        accepted
    }

    /// The payload to send again now; `None` if the next packet has new data.
    pub(super) fn next(&mut self) -> Option<u64> {
        self.waiting.pop_front()
    }

    /// A packet is sent.
    pub(super) fn sent(&mut self, now: Instant, is_resend: bool) {
        self.forget(now);
        self.recent.push_back(SentPacket { at: now, is_resend });
        self.recent_resends += usize::from(is_resend);
    }

    /// Forgets packets that were sent before the last control interval.
    fn forget(&mut self, now: Instant) {
        let from = now - self.interval;
        while let Some(&packet) = self.recent.front().filter(|packet| packet.at < from) {
            self.recent_resends -= usize::from(packet.is_resend);
            self.recent.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(milliseconds)
    }

    #[test]
    fn requests_beyond_half_of_the_packets_of_an_interval_are_forgotten() {
        let mut queue = ResendQueue::new(ResendShare::Half, Duration::from_secs(10));
        assert!(!queue.request(at(0), 1), "nothing was sent yet");
        (0..4).for_each(|packet| queue.sent(at(packet), false));
        assert!(queue.request(at(10), 1) && queue.request(at(10), 2));
        assert!(!queue.request(at(10), 3), "two of four");
        assert_eq!([queue.next(), queue.next(), queue.next()], [Some(1), Some(2), None]);
        queue.sent(at(20), true);
        queue.sent(at(30), true);
        // Two of six were sent again.
        assert!(queue.request(at(40), 3));
        assert!(!queue.request(at(40), 4));
        queue.next();
        // Only the two resends are of the last ten seconds.
        assert!(!queue.request(at(10_010), 5));
        // Neither is.
        queue.sent(at(10_040), false);
        assert!(queue.request(at(10_041), 5));
    }

    #[test]
    fn without_a_limit_requests_are_answered_up_to_the_bound_of_the_queue() {
        let mut queue = ResendQueue::new(ResendShare::All, Duration::from_secs(10));
        assert!((0..MOST_WAITING as u64).all(|data| queue.request(at(0), data)));
        assert!(!queue.request(at(0), 0));
        assert_eq!(queue.next(), Some(0));
        assert!(queue.request(at(0), 0));
    }
}
