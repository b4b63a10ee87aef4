//! Models of TCP, as cross traffic: an endless transfer of numbered segments.
//!
//! They have slow start, fast retransmit and recovery (RFC 5681), selective acknowledgements (RFC
//! 2018), a pipe (RFC 6675), the retransmission timer (RFC 6298), and the windows of Reno and CUBIC
//! ([`window`]). A transmission counts as lost when three later ones have arrived, in the order of
//! sending, as RACK does in time (RFC 8985). Windows are in segments, every segment is
//! acknowledged, and the sender always has data.

use fontana_proto::Instant;
use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;
use window::Window;

mod window;

/// Congestion control of a TCP model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpVariant {
    /// Reno (RFC 5681).
    Reno,
    /// CUBIC (RFC 9438).
    Cubic,
}

/// A TCP connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpConfig {
    /// Its congestion control.
    pub variant: TcpVariant,
    /// Bytes of a full segment on links, headers included.
    pub segment_bytes: u32,
    /// Bytes of an acknowledgement on links.
    pub ack_bytes: u32,
    /// Most segments in flight: the receiver's buffer.
    pub max_window: u32,
    /// Lower bound of the retransmission timer.
    pub min_rto: Duration,
}

impl TcpConfig {
    /// A connection with packets of Ethernet's size.
    pub fn new(variant: TcpVariant) -> Self {
        Self {
            variant,
            segment_bytes: 1_500,
            ack_bytes: 52,
            // 6 MB, the default limit of Linux.
            max_window: 4_096,
            // RFC 6298 requires a second; Linux has 200 ms.
            min_rto: Duration::from_millis(200),
        }
    }
}

/// An acknowledgement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ack {
    /// All segments before this one have arrived.
    pub cumulative: u64,
    /// Later segments that have arrived, the most recent block first (RFC 2018, section 4).
    pub blocks: Vec<Range<u64>>,
}

/// The receiving end.
#[derive(Clone, Debug, Default)]
pub struct TcpReceiver {
    cumulative: u64,
    /// Blocks that arrived out of order, the most recently changed first.
    blocks: Vec<Range<u64>>,
}

/// Blocks that fit into an acknowledgement beside a time stamp (RFC 2018, section 3).
const SACK_BLOCKS: usize = 3;

impl TcpReceiver {
    /// Handles a segment that has arrived. Returns its acknowledgement.
    pub fn on_segment(&mut self, segment: u64) -> Ack {
        if segment >= self.cumulative {
            let mut grown = segment..segment + 1;
            self.blocks.retain(|block| {
                let apart = block.end < grown.start || grown.end < block.start;
                if !apart {
                    grown = grown.start.min(block.start)..grown.end.max(block.end);
                }
                apart
            });
            if grown.start == self.cumulative {
                self.cumulative = grown.end;
            } else {
                self.blocks.insert(0, grown);
            }
        }
        let blocks = self.blocks.iter().take(SACK_BLOCKS).cloned().collect();
        Ack { cumulative: self.cumulative, blocks }
    }

    /// Segments that can be delivered to the application.
    pub fn delivered(&self) -> u64 {
        self.cumulative
    }
}

/// The sending end. After each `on_*`, call [`poll_transmit`](Self::poll_transmit) until it returns
/// `None`.
#[derive(Clone, Debug)]
pub struct TcpSender {
    config: TcpConfig,
    window: Window,
    /// The first segment that is not acknowledged.
    unacknowledged: u64,
    /// The segments from there on that were sent at least once.
    flight: VecDeque<Segment>,
    /// Estimated number of segments in flight.
    pipe: u32,
    lost: u32,
    /// Number of transmissions.
    order: u64,
    /// The latest transmission that has arrived.
    latest_delivered: u64,
    /// Losses before this segment belong to the episode for which the window was reduced.
    recovery_ends: Option<u64>,
    /// That episode began with a timeout, so the window grows again at once.
    timed_out: bool,
    rtt: Option<RoundTrip>,
    backoff: u32,
    timer: Option<Instant>,
    retransmitted: u64,
}

/// The measured time of a round trip (RFC 6298, section 2).
#[derive(Clone, Copy, Debug)]
struct RoundTrip {
    smoothed: Duration,
    variation: Duration,
}

#[derive(Clone, Copy, Debug)]
struct Segment {
    state: State,
    order: u64,
    sent_at: Instant,
    resent: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    UnderWay,
    Arrived,
    Lost,
}

/// Later transmissions that arrive before one counts as lost (RFC 5681, section 3.2).
const DUPLICATE_THRESHOLD: u64 = 3;
/// Timer before the first measurement, and its upper bound (RFC 6298, sections 2.1 and 2.5).
const FIRST_RTO: Duration = Duration::from_secs(1);
const MAX_RTO: Duration = Duration::from_secs(60);

impl TcpSender {
    /// A connection that has just been established.
    pub fn new(config: TcpConfig) -> Self {
        Self {
            config,
            window: Window::new(config.variant),
            unacknowledged: 0,
            flight: VecDeque::new(),
            pipe: 0,
            lost: 0,
            order: 0,
            latest_delivered: 0,
            recovery_ends: None,
            timed_out: false,
            rtt: None,
            backoff: 0,
            timer: None,
            retransmitted: 0,
        }
    }

    /// The congestion window, in segments.
    pub fn window(&self) -> f64 {
        self.window.segments()
    }

    /// Number of retransmissions.
    pub fn retransmitted(&self) -> u64 {
        self.retransmitted
    }

    /// When [`on_timeout`](Self::on_timeout) is due.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.timer
    }

    /// The segment to send now; `None` if the window is full.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<u64> {
        let allowed = (self.window.segments() as u32).clamp(1, self.config.max_window);
        if self.pipe >= allowed {
            return None;
        }
        let order = self.order;
        let sent = Segment { state: State::UnderWay, order, sent_at: now, resent: false };
        let lost = self.first_lost();
        let index = lost.unwrap_or(self.flight.len());
        if let Some(segment) = self.flight.get_mut(index) {
            *segment = Segment { resent: true, ..sent };
            self.lost -= 1;
            self.retransmitted += 1;
        } else if index < self.config.max_window as usize {
            self.flight.push_back(sent);
        } else {
            return None;
        }
        self.order += 1;
        self.pipe += 1;
        self.timer.get_or_insert(now + self.rto());
        Some(self.unacknowledged + index as u64)
    }

    fn first_lost(&self) -> Option<usize> {
        if self.lost == 0 {
            return None;
        }
        self.flight.iter().position(|segment| segment.state == State::Lost)
    }

    /// Handles an acknowledgement.
    pub fn on_ack(&mut self, now: Instant, ack: &Ack) {
        let mut newest = None;
        let advanced = ack.cumulative.saturating_sub(self.unacknowledged);
        for _ in 0..advanced {
            let Some(segment) = self.flight.pop_front() else { break };
            self.unacknowledged += 1;
            self.note_arrival(segment, &mut newest);
        }
        for block in &ack.blocks {
            for number in block.clone() {
                let index = number.checked_sub(self.unacknowledged);
                let segment = index.and_then(|index| self.flight.get(index as usize)).copied();
                let Some(segment) = segment.filter(|s| s.state != State::Arrived) else { continue };
                self.note_arrival(segment, &mut newest);
                if let Some(segment) = index.and_then(|i| self.flight.get_mut(i as usize)) {
                    segment.state = State::Arrived;
                }
            }
        }
        if let Some(sent_at) = newest {
            self.measure(now.saturating_since(sent_at));
        }
        if advanced > 0 {
            self.backoff = 0;
            self.timer = (!self.flight.is_empty()).then(|| now + self.rto());
        }
        if self.recovery_ends.is_some_and(|end| self.unacknowledged >= end) {
            (self.recovery_ends, self.timed_out) = (None, false);
        }
        if self.find_losses() && self.recovery_ends.is_none() {
            self.recovery_ends = Some(self.unacknowledged + self.flight.len() as u64);
            self.window.on_loss();
        } else if (self.recovery_ends.is_none() || self.timed_out) && advanced > 0 {
            self.window.on_ack(now, advanced, self.rtt.map_or(FIRST_RTO, |rtt| rtt.smoothed));
        }
    }

    /// Handles the retransmission timeout (RFC 6298, section 5).
    pub fn on_timeout(&mut self, now: Instant) {
        if self.timer.is_none_or(|timer| timer > now) {
            return;
        }
        // A repeated timeout belongs to the same episode (RFC 5681, section 3.1).
        if self.backoff == 0 {
            self.window.on_timeout(self.pipe);
        }
        for segment in self.flight.iter_mut().filter(|s| s.state == State::UnderWay) {
            segment.state = State::Lost;
            self.lost += 1;
        }
        self.pipe = 0;
        self.recovery_ends = Some(self.unacknowledged + self.flight.len() as u64);
        self.timed_out = true;
        self.window.collapse();
        self.backoff = (self.backoff + 1).min(6);
        self.timer = None;
    }

    /// Counts a segment as arrived. By Karn's rule, only segments that were sent once measure the
    /// round trip.
    fn note_arrival(&mut self, segment: Segment, newest: &mut Option<Instant>) {
        match segment.state {
            State::Arrived => return,
            State::UnderWay => self.pipe = self.pipe.saturating_sub(1),
            State::Lost => self.lost = self.lost.saturating_sub(1),
        }
        self.latest_delivered = self.latest_delivered.max(segment.order);
        if !segment.resent {
            *newest = (*newest).max(Some(segment.sent_at));
        }
    }

    /// Marks overtaken transmissions as lost. Returns whether there are any.
    fn find_losses(&mut self) -> bool {
        let latest = self.latest_delivered;
        let overtaken = |s: &&mut Segment| {
            s.state == State::UnderWay && s.order + DUPLICATE_THRESHOLD <= latest
        };
        let mut found = 0;
        for segment in self.flight.iter_mut().filter(overtaken) {
            segment.state = State::Lost;
            found += 1;
        }
        self.pipe = self.pipe.saturating_sub(found);
        self.lost += found;
        found > 0
    }

    fn measure(&mut self, sample: Duration) {
        self.rtt = Some(match self.rtt {
            None => RoundTrip { smoothed: sample, variation: sample / 2 },
            Some(RoundTrip { smoothed, variation }) => RoundTrip {
                smoothed: smoothed * 7 / 8 + sample / 8,
                variation: variation * 3 / 4 + smoothed.abs_diff(sample) / 4,
            },
        });
    }

    fn rto(&self) -> Duration {
        let measured = self.rtt.map(|rtt| rtt.smoothed + 4 * rtt.variation);
        let rto = measured.map_or(FIRST_RTO, |rto| rto.max(self.config.min_rto));
        (rto * (1 << self.backoff)).min(MAX_RTO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    #[test]
    fn a_receiver_reports_the_latest_block_first_and_merges_what_meets() {
        let mut receiver = TcpReceiver::default();
        assert_eq!(receiver.on_segment(0), Ack { cumulative: 1, blocks: vec![] });
        assert_eq!(receiver.on_segment(4).blocks.first(), Some(&(4..5)));
        assert_eq!(receiver.on_segment(2).blocks, [2..3, 4..5]);
        let Ack { blocks, .. } = receiver.on_segment(3);
        assert_eq!((blocks.len(), blocks.first()), (1, Some(&(2..5))));
        assert_eq!(receiver.on_segment(1), Ack { cumulative: 5, blocks: vec![] });
        assert_eq!(receiver.on_segment(1), Ack { cumulative: 5, blocks: vec![] }, "once more");
    }

    /// A round trip of everything that may be sent, but `lost`. What was sent.
    fn round(
        (sender, receiver): (&mut TcpSender, &mut TcpReceiver),
        at: Instant,
        lost: &[u64],
    ) -> Vec<u64> {
        let sent: Vec<_> = std::iter::from_fn(|| sender.poll_transmit(at)).collect();
        for &segment in sent.iter().filter(|segment| !lost.contains(segment)) {
            let ack = receiver.on_segment(segment);
            sender.on_ack(at + RTT, &ack);
        }
        sent
    }

    #[test]
    fn slow_start_doubles_and_one_loss_halves_without_a_timeout() {
        let mut sender = TcpSender::new(TcpConfig::new(TcpVariant::Reno));
        let mut receiver = TcpReceiver::default();
        let both = (&mut sender, &mut receiver);
        let (mut at, both) = (Instant::ZERO, both);
        let (sender, receiver) = both;
        for expected in [10, 20, 40] {
            assert_eq!(round((sender, receiver), at, &[]).len(), expected);
            at = at + RTT;
        }
        assert_eq!(round((sender, receiver), at, &[75]).len(), 80);
        at = at + RTT;
        // 70 to 74 arrived in order, and the third after the lost one told of it.
        assert_eq!(sender.window(), 42.5);
        let sent = round((sender, receiver), at, &[]);
        assert_eq!((sent[0], sender.retransmitted()), (75, 1));
        assert!(sent.len() <= 42 && receiver.delivered() >= 150);
    }

    #[test]
    fn a_retransmission_that_is_lost_is_sent_again() {
        let config = TcpConfig::new(TcpVariant::Cubic);
        let mut sender = TcpSender::new(TcpConfig { min_rto: FIRST_RTO, ..config });
        let mut receiver = TcpReceiver::default();
        let mut at = Instant::ZERO;
        for lost in [&[3][..], &[3], &[3], &[]] {
            round((&mut sender, &mut receiver), at, lost);
            at = at + RTT;
            assert!(sender.poll_timeout().is_none_or(|timer| timer > at), "no timeout");
        }
        assert_eq!(sender.retransmitted(), 3);
        assert!(receiver.delivered() > 20);
    }

    #[test]
    fn when_everything_is_lost_the_timer_starts_again_with_one_segment() {
        let mut sender = TcpSender::new(TcpConfig::new(TcpVariant::Reno));
        let mut receiver = TcpReceiver::default();
        let all: Vec<_> = (0..100).collect();
        assert_eq!(round((&mut sender, &mut receiver), Instant::ZERO, &all).len(), 10);
        let timer = sender.poll_timeout().unwrap();
        assert_eq!(timer, Instant::ZERO + FIRST_RTO);
        sender.on_timeout(timer - Duration::from_nanos(1));
        assert_eq!(sender.poll_transmit(timer), None, "not yet");
        sender.on_timeout(timer);
        assert_eq!(round((&mut sender, &mut receiver), timer, &all), [0]);
        assert_eq!(sender.poll_timeout(), Some(timer + 2 * FIRST_RTO), "backed off");
        sender.on_timeout(timer + 2 * FIRST_RTO);
        let at = timer + 2 * FIRST_RTO;
        assert_eq!(round((&mut sender, &mut receiver), at, &[]), [0]);
        assert!(round((&mut sender, &mut receiver), at + RTT, &[]).len() >= 2);
    }
}
